"""The terminal output of `atdp audit-canary`: the results of one model in full, of several models a line each and a
table."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Column, Table

from atdp_cli.audit.results import AnyAudit, Audit, Distribution, EpsilonBound, UnfinishedAudit, Verdict
from atdp_cli.cli.console import figure, make_table

_EXIT_CODES = {Verdict.ERROR: 3, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 4, Verdict.PASS: 0}

_ENDED = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.ERROR: "not completed",
}

BAR = 40
"""Characters of the histogram's longest bar."""


def show_audit(audit: AnyAudit, secrets: Sequence[str] | None, console: Console) -> None:
    """Print one model's audit.

    Args:
        secrets: Each canary's secret; None where they are not to be shown.
    """
    if isinstance(audit, UnfinishedAudit):
        console.print(f"ERROR {audit.model}: {audit.reasons[0]}", style="bold", soft_wrap=True)
        return
    if audit.canaries:
        console.print(_table(audit, secrets))
    known = " (no worse than the baseline)" if audit.gate is not audit.verdict else ""
    console.print(f"{audit.verdict} {audit.model}{known}", style="bold", soft_wrap=True)
    for line in (*audit.reasons, *_against(audit), *_groups(audit), *audit.notices, *_capped(audit)):
        console.print(line)
    said = frozenset(each.missing for each in audit.group_epsilon)
    bounds = (_bound(each, said) for each in audit.epsilon)
    for line in (*bounds, *_extraction(audit), *_membership(audit), *_relearning(audit)):
        console.print(line)
    if audit.distribution is not None:
        _show_distribution(audit.distribution, console)


def _table(audit: Audit, secrets: Sequence[str] | None) -> Table:
    coins = not all(canary.planted for canary in audit.canaries)
    by_ratio = ("by ratio", "p by ratio") if audit.tested_against_base else ()
    head = ("canary", *(("planted",) if coins else ()), *(("secret",) if secrets else ()))
    head = (*head, "rank", "of", "exposure", "p", *by_ratio)
    rows = [
        (
            str(number),
            *(("yes" if canary.planted else "no",) if coins else ()),
            *((secrets[number - 1],) if secrets else ()),
            f"{canary.stratum_rank_max:,}",
            f"{canary.stratum_size:,}",
            f"{canary.exposure:.2f}",
            _p(canary.p_value),
            *((figure(canary.exposure_ratio), _p(canary.p_value_ratio)) if by_ratio else ()),
        )
        for number, canary in enumerate(audit.canaries, start=1)
    ]
    return make_table(head, rows, right=range(len(head)))


def _against(audit: Audit) -> tuple[str, ...]:
    """The result of the comparison with a baseline."""
    comparison = audit.baseline
    if comparison is None or comparison.state in ("not-needed", "known"):
        return ()
    if comparison.state == "unrecorded":
        return ("The baseline does not know this model, or knows it with other canaries.",)
    if not comparison.worse:
        return ("What fails besides single canaries is worse than in the baseline.",)
    return (f"Canaries worse than in the baseline: {', '.join(map(str, comparison.worse))}.",)


def _capped(audit: Audit) -> Iterator[str]:
    """A note that ranks are within a sample, if they are."""
    for canary in audit.canaries:
        if canary.compared < canary.pool:
            yield (
                f"The template has {canary.pool:.3g} candidates: ranks are among {canary.compared - 1:,} of them, "
                "drawn uniformly, and the canary, which caps its exposure. --set run.ranking=exact ranks it among "
                "all of up to 10⁷."
            )
            return


def _groups(audit: Audit) -> Iterator[str]:
    """The ε that the ledger states end to end for a canary's records together, a line for each number of records."""
    from atdp_cli.privacy.wording import epsilon_delta

    for group in audit.group_epsilon:
        records = "the one record" if group.records == 1 else f"the {group.records:,} records"
        together = " together" if group.records > 1 else ""
        if group.epsilon is None:
            yield f"For {records} of a canary{together} no finite ε holds end to end: {group.missing}."
        else:
            claimed = epsilon_delta(group.epsilon, group.delta)
            yield f"For {records} of a canary{together} the ledger claims {claimed}, end to end."


def _bound(bound: EpsilonBound, said: frozenset[str | None]) -> str:
    """A bound and what it says of the claim.

    Args:
        said: Why nothing is claimed, where a line above says so.
    """
    if bound.method == "in-out":
        result = f"{bound.correct} of {bound.guesses} guessed coins are right"
    elif bound.method == "pair":
        result = f"{bound.correct} of {bound.guesses} canaries score higher than their mirror images"
    else:
        result = f"{bound.correct} of {bound.guesses} canaries rank within {bound.top:,}"
    claim = "" if bound.claim is None else f"{bound.claim:.2f}"
    scope = " for flagged characters" if bound.scope == "selective" else ""
    missing = bound.missing or "no finite ε holds for them, or the model has no ledger"
    finding = {
        "no-claim": "No claim to test." if missing in said else f"No claim to test: {missing}.",
        "inconclusive": f"The ledger's {claim}{scope} is more than these canaries could refute.",
        "not-refuted": f"It does not refute the ledger's {claim}{scope}.",
        "refuted": f"It refutes the ledger's {claim}{scope}.",
    }[bound.finding]
    return (
        f"ε ≥ {bound.epsilon:.2f} for all records of a canary together: {result} (replace-one, "
        f"δ = {bound.delta:g}, confidence {bound.confidence:.1%}; at most {bound.attainable:.2f} could be shown). "
        f"{finding}"
    )


def _extraction(audit: Audit) -> Iterator[str]:
    if audit.extraction is None:
        return
    planted = audit.planted_extraction()
    samples = planted[0].samples if planted else 0
    greedy, sampled = sum(entry.greedy for entry in planted), sum(entry.sampled > 0 for entry in planted)
    fewest = min((entry.queries_half for entry in planted if entry.queries_half is not None), default=None)
    yield (
        f"Extraction, from what all candidates begin with: {greedy} of {len(planted)} canaries by greedy decoding, "
        f"{sampled} in {samples:,} samples"
        + ("." if fewest is None else f"; the easiest takes {fewest:.4g} samples for an even chance.")
    )


def _membership(audit: Audit) -> Iterator[str]:
    for score in audit.membership or ():
        if score.auc is None:
            yield f"Membership inference by {score.attack}: all coins fell alike, so there is nothing to compare."
            continue
        rate = score.tpr_at_1_fpr
        few = f"not resolvable with {score.non_members} canaries left out"
        yield (
            f"Membership inference by {score.attack}: AUC {score.auc:.2f} "
            f"({score.auc_low:.2f} to {score.auc_high:.2f}), "
            f"true positives at 1 % false ones {few if rate is None else f'{rate:.0%}'}."
        )


def _relearning(audit: Audit) -> Iterator[str]:
    if audit.relearning is None:
        return
    before, after = audit.combined, audit.relearning.combined
    change = f"{figure(before.mean_exposure)} → {figure(after.mean_exposure)} bits"
    if after.mean_exposure_ratio is not None:
        change += f", by ratio {figure(before.mean_exposure_ratio)} → {figure(after.mean_exposure_ratio)}"
    yield (
        f"Relearning: after {audit.relearning.steps} steps on other text the mean exposure goes {change}; "
        f"the copy's own verdict is {audit.relearning.verdict}."
    )


def _show_distribution(distribution: Distribution, console: Console) -> None:
    show_secrets = distribution.top[0].secret is not None
    head = ("rank", "probability", "canary", *(("secret",) if show_secrets else ()))
    rows = [
        (
            str(candidate.rank),
            f"{candidate.probability:.3g}",
            "" if candidate.canary is None else str(candidate.canary),
            *((", ".join(candidate.secret),) if candidate.secret else ()),
        )
        for candidate in distribution.top
    ]
    console.print("The likeliest candidates:")
    console.print(make_table(head, rows, right=range(len(head))))
    console.print("log p (natural) of all candidates:")
    most = max(distribution.counts)
    for low, count in zip(distribution.edges, distribution.counts, strict=False):
        console.print(f"{low:9.2f} {'█' * round(BAR * count / most):{BAR}} {count:>9,}")


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"


def model_line(audit: AnyAudit) -> str:
    """The verdict on one of several models, and the first reason for it; of one that passed its exposures."""
    if audit.verdict is not Verdict.PASS or isinstance(audit, UnfinishedAudit):
        known = "" if audit.gate is audit.verdict else " (no worse than the baseline)"
        return f"{audit.verdict} {audit.model}{known}: {audit.reasons[0]}"
    combined = audit.combined
    return (
        f"{audit.verdict} {audit.model}: highest exposure {figure(combined.max_exposure)} bits, "
        f"mean {figure(combined.mean_exposure)}."
    )


def show_summary(audits: Sequence[AnyAudit], console: Console) -> None:
    """All models in a table, and how many ended in which way."""
    rows = []
    for audit in audits:
        planted = sum(canary.planted for canary in audit.canaries)
        combined = audit.combined
        cells = ("–",) * 3
        if combined is not None:
            cells = (figure(combined.max_exposure), figure(combined.mean_exposure), _p(combined.fisher_p))
        rows.append((audit.model, audit.verdict, str(planted or "–"), *cells))
    head = (Column("model", overflow="fold"), "verdict", "canaries", "highest", "mean", "p")
    console.print(make_table(head, rows, title="Exposure, bits", right=range(2, 6)))
    ended = Counter(audit.gate for audit in audits)
    counts = ", ".join(f"{ended[verdict]} {words}" for verdict, words in _ENDED.items() if ended[verdict])
    console.print(f"{len(audits)} models: {counts}. All about one: audit it alone; about each: --json.")


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """The exit code over several models: the first of 3, 1, 4, 0 that occurs; 4 where there is no model."""
    codes = {_EXIT_CODES[verdict] for verdict in verdicts}
    return next((code for code in (3, 1, 4, 0) if code in codes), 4)
