"""An audit on the terminal: one table of canaries, the verdict, and a paragraph for each thing that was asked for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from atdp_cli.cli.terminal.console import figure

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Entry = dict[str, Any]
"""One entry of the `models` list of `audit-canary --json`."""

BAR = 40
"""Characters of the histogram's longest bar."""


def show_audit(entry: Entry, secrets: Sequence[str] | None, console: "Console") -> None:
    """Print one model's audit.

    Args:
        secrets: Each canary's secret; None where they are not to be shown.
    """
    if entry["verdict"] == "ERROR":
        console.print(f"ERROR {entry['model']}: {entry['reasons'][0]}", style="bold", soft_wrap=True)
        return
    if entry["canaries"]:
        console.print(_table(entry, secrets))
    known = " (no worse than the baseline)" if entry["gate"] != entry["verdict"] else ""
    console.print(f"{entry['verdict']} {entry['model']}{known}", style="bold", soft_wrap=True)
    for line in (*entry["reasons"], *_against(entry), *entry["notices"], *_capped(entry)):
        console.print(line)
    for line in (*map(_bound, entry["epsilon"]), *_extraction(entry), *_membership(entry), *_resurfaced(entry)):
        console.print(line)
    if entry["own_secrets"] is not None:
        _show_own(entry["own_secrets"], console)
    if entry["distribution"] is not None:
        _show_distribution(entry["distribution"], console)


def _table(entry: Entry, secrets: Sequence[str] | None) -> "Table":
    from rich.table import Table

    coins = not all(one["planted"] for one in entry["canaries"])
    by_ratio = ("by ratio", "p by ratio") if entry["tested_against_base"] else ()
    head = ("canary", *(("planted",) if coins else ()), *(("secret",) if secrets else ()))
    table = Table(*head, "rank", "of", "exposure", "p", *by_ratio)
    for column in table.columns:
        column.justify = "right"
    for number, one in enumerate(entry["canaries"], start=1):
        table.add_row(
            str(number),
            *(("yes" if one["planted"] else "no",) if coins else ()),
            *((secrets[number - 1],) if secrets else ()),
            f"{one['stratum_rank_max']:,}",
            f"{one['stratum_size']:,}",
            f"{one['exposure']:.2f}",
            _p(one["p_value"]),
            *((figure(one["exposure_ratio"]), _p(one["p_value_ratio"])) if by_ratio else ()),
        )
    return table


def _against(entry: Entry) -> tuple[str, ...]:
    """What the comparison with a baseline found."""
    compared = entry["baseline"]
    if compared is None or compared["state"] in ("not-needed", "known"):
        return ()
    if compared["state"] == "unrecorded":
        return ("The baseline does not know this model, or knows it with other canaries.",)
    if not compared["worse"]:
        return ("What fails besides single canaries is worse than in the baseline.",)
    return (f"Canaries worse than in the baseline: {', '.join(map(str, compared['worse']))}.",)


def _capped(entry: Entry) -> Iterator[str]:
    """That ranks are within a sample, where they are."""
    for one in entry["canaries"]:
        if one["compared"] < one["pool"]:
            yield (
                f"The template has {one['pool']:.3g} candidates: ranks are among {one['compared'] - 1:,} of them, "
                "drawn uniformly, and the canary, which caps its exposure."
            )
            return


def _bound(one: Mapping[str, Any]) -> str:
    if one["method"] == "in-out":
        played = f"{one['correct']} of {one['guesses']} guessed coins are right"
    else:
        played = f"{one['correct']} of {one['guesses']} canaries rank within {one['top']:,}"
    proved = (
        f"ε ≥ {one['epsilon']:.2f} for all records of a canary together: {played} ({one['adjacency']}, "
        f"δ = {one['delta']:g}, confidence {one['confidence']:.1%}; at most {one['attainable']:.2f} could be shown)."
    )
    claim = "" if one["claim"] is None else f"{one['claim']:.2f}"
    return (
        f"{proved} "
        + {
            "no-claim": "No claim to test: no finite ε holds for them end to end, or the model has no ledger.",
            "inconclusive": f"The ledger's {claim} is more than these canaries could refute.",
            "not-refuted": f"It does not refute the ledger's {claim}.",
            "refuted": f"It refutes the ledger's {claim}.",
        }[one["finding"]]
    )


def _extraction(entry: Entry) -> Iterator[str]:
    found = entry["extraction"]
    if found is None:
        return
    planted = [one for one, canary in zip(found, entry["canaries"], strict=True) if canary["planted"]]
    samples = planted[0]["samples"] if planted else 0
    greedy, sampled = (sum(bool(one[name]) for one in planted) for name in ("greedy", "sampled"))
    fewest = min((one["queries_half"] for one in planted if one["queries_half"] is not None), default=None)
    yield (
        f"Extraction, from what all candidates begin with: {greedy} of {len(planted)} canaries by greedy decoding, "
        f"{sampled} in {samples:,} samples"
        + ("." if fewest is None else f"; the easiest takes {fewest:.4g} samples for an even chance.")
    )


def _membership(entry: Entry) -> Iterator[str]:
    for one in entry["membership"] or ():
        if one["auc"] is None:
            yield f"Membership by {one['attack']}: all coins fell alike, so there is nothing to compare."
            continue
        rate = one["tpr_at_1_fpr"]
        few = f"not resolvable with {one['non_members']} canaries left out"
        yield (
            f"Membership by {one['attack']}: AUC {one['auc']:.2f} ({one['auc_low']:.2f} to {one['auc_high']:.2f}), "
            f"true positives at 1 % false ones {few if rate is None else f'{rate:.0%}'}."
        )


def _resurfaced(entry: Entry) -> Iterator[str]:
    found = entry["resurfaced"]
    if found is None:
        return
    before, after = entry["combined"], found["combined"]
    said = f"{figure(before['mean_exposure'])} → {figure(after['mean_exposure'])} bits"
    if after["mean_exposure_ratio"] is not None:
        said += f", by ratio {figure(before['mean_exposure_ratio'])} → {figure(after['mean_exposure_ratio'])}"
    yield (
        f"Resurfacing: after {found['steps']} steps on other text the mean exposure goes {said}; "
        f"the copy's own verdict is {found['verdict']}."
    )


def _show_own(found: Mapping[str, Any], console: "Console") -> None:
    from rich.table import Table

    results, mean = found["results"], figure(found["mean_exposure"])
    console.print(
        f"Numbers of the corpus itself: {len(results)} of {found['eligible']} tested. Nobody drew them at random: an "
        "exposure is no evidence of memory by itself, since years, say, are likelier than other digits before any "
        f"training. Mean exposure {mean} bits, by ratio {figure(found['mean_exposure_ratio'])}."
    )
    if not results:
        return
    table = Table("record", "characters", "label", "rank", "of", "exposure", "by ratio")
    for column in (*table.columns[:2], *table.columns[3:]):
        column.justify = "right"
    for one in sorted(results, key=lambda one: -one["exposure"]):
        table.add_row(
            str(one["record"]),
            f"{one['start']}–{one['end']}",
            one["label"],
            f"{one['rank_max']:,}",
            f"{one['compared']:,}",
            f"{one['exposure']:.2f}",
            figure(one["exposure_ratio"]),
        )
    console.print(table)


def _show_distribution(found: Mapping[str, Any], console: "Console") -> None:
    from rich.table import Table

    table = Table("rank", "probability", "canary", *(("secret",) if found["top"][0]["secret"] else ()))
    for column in table.columns:
        column.justify = "right"
    for one in found["top"]:
        canary = "" if one["canary"] is None else str(one["canary"])
        table.add_row(
            str(one["rank"]),
            f"{one['probability']:.3g}",
            canary,
            *((", ".join(one["secret"]),) if one["secret"] else ()),
        )
    console.print("The likeliest candidates:")
    console.print(table)
    console.print("log p (natural) of all candidates:")
    most = max(found["counts"])
    for low, count in zip(found["edges"], found["counts"], strict=False):
        console.print(f"{low:9.2f} {'█' * round(BAR * count / most):{BAR}} {count:>9,}")


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
