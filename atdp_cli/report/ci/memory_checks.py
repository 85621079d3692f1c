"""What a memory map says of each memorised text and of the model, for the screen and for CI."""

from collections import Counter

from atdp_cli.memory_result import MemorisedPlace, MemoryMap
from atdp_cli.report.ci.checks import Check, CheckedModel, Outcome, ResultFile

_OUTCOMES = {None: Outcome.PASS, "PASS": Outcome.PASS, "FAIL": Outcome.FAIL, "INCONCLUSIVE": Outcome.INCONCLUSIVE}


def best_places(found: MemoryMap) -> tuple[MemorisedPlace, ...]:
    """The place of greatest gain of each memorised text, in the order of their numbers."""
    first = {place.value: place for place in reversed(found.places)}
    return tuple(first[value] for value in sorted(first))


def checked_map(found: MemoryMap, file: ResultFile | None = None) -> CheckedModel:
    """Each memorised text, which fails where the model does, then the verdict.

    Args:
        file: The corpus, with the line of each text; None where it has no lines.
    """
    outcome = Outcome.KNOWN if found.baseline == "known" else _OUTCOMES[found.verdict]
    counts = Counter(place.value for place in found.places)
    texts = tuple(
        Check(model=found.model, number=place.value, outcome=outcome, text=_describe(place, counts), kind="text")
        for place in best_places(found)
    )
    text = " ".join(memory_sentences(found))
    verdict = Check(model=found.model, number=None, outcome=outcome, text=text, kind="text")
    return CheckedModel(model=found.model, checks=(*texts, verdict), file=file)


def _describe(place: MemorisedPlace, counts: Counter[int]) -> str:
    others = counts[place.value] - 1
    also = f" and {others:,} other places" if others else ""
    return (
        f"{place.label}: record {place.record:,}, characters {place.start}–{place.end}{also}; {place.gain:.1f} nats "
        f"above the model's average gain, adjusted p = {place.adjusted_p:.2g}, samples for even odds: "
        f"{samples_needed(place)}."
    )


def memory_sentences(found: MemoryMap) -> list[str]:
    """How much is memorised, and how sure that is."""
    by = "log p over the reference" if found.reference is not None else "log p alone, as there is no --reference"
    against = f"of {found.tested:,} against {found.held_out:,} held out, by {by}"
    if not found.memorised:
        listed = f"Memorised: 0 {against}."
    elif found.calibrated:
        labels = Counter(place.label for place in found.places).most_common(3)
        named = ", ".join(f"{label} {count:,}" for label, count in labels)
        listed = (
            f"Memorised: {found.memorised:,} {against}, at a false discovery rate of {found.fdr:.0%}. "
            f"Places: {len(found.places):,} ({named})."
        )
    else:
        listed = f"Uncalibrated: {found.memorised:,} {against}, score above every held-out one; that may be chance."
    sentences = [listed]
    if not found.calibrated:
        sentences.append(
            f"Nothing is significant unless {found.fewest_findings:,} stand out together; more held-out records lower "
            "that number."
        )
    if found.max_memorised is not None:
        sentences.append(f"Limit: {found.max_memorised:,}.")
    return sentences


def samples_needed(place: MemorisedPlace) -> str:
    """How a client gets a place from the text before it: `greedy`, or by so many samples with even odds."""
    if place.greedy:
        return "greedy"
    if place.queries_half is None or place.queries_half >= 10**6:
        return "> 10⁶"
    return f"{place.queries_half:,.0f}"
