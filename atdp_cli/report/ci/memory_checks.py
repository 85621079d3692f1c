"""What a memory map says of each memorised text and of the model, for the screen and for CI."""

from collections import Counter

from atdp_cli.memory_result import MemorisedPlace, MemoryMap
from atdp_cli.report.ci.checks import Check, CheckedModel, Outcome, ResultFile

_OUTCOMES = {None: Outcome.PASS, "PASS": Outcome.PASS, "FAIL": Outcome.FAIL, "INCONCLUSIVE": Outcome.INCONCLUSIVE}


def best_places(memory_map: MemoryMap) -> tuple[MemorisedPlace, ...]:
    """The place of greatest gain of each memorised text, in the order of their numbers."""
    first = {place.value: place for place in reversed(memory_map.places)}
    return tuple(first[value] for value in sorted(first))


def checked_map(memory_map: MemoryMap, file: ResultFile | None = None) -> CheckedModel:
    """Each memorised text, which fails where the model does, then the verdict.

    Args:
        file: The corpus, with the line of each text; None where it has no lines.
    """
    outcome = Outcome.KNOWN if memory_map.baseline == "known" else _OUTCOMES[memory_map.verdict]
    counts = Counter(place.value for place in memory_map.places)
    texts = tuple(
        Check(model=memory_map.model, number=place.value, outcome=outcome, text=_describe(place, counts), kind="text")
        for place in best_places(memory_map)
    )
    text = " ".join(memory_sentences(memory_map))
    verdict = Check(model=memory_map.model, number=None, outcome=outcome, text=text, kind="text")
    return CheckedModel(model=memory_map.model, checks=(*texts, verdict), file=file)


def _describe(place: MemorisedPlace, counts: Counter[int]) -> str:
    others = counts[place.value] - 1
    also = f" and {others:,} other places" if others else ""
    return (
        f"{place.label}: record {place.record:,}, characters {place.start}–{place.end}{also}; {place.gain:.1f} nats "
        f"above the model's average gain, adjusted p = {place.adjusted_p:.2g}, samples for even odds: "
        f"{samples_needed(place)}."
    )


def memory_sentences(memory_map: MemoryMap) -> list[str]:
    """How much is memorised, and how sure that is."""
    by = "log p over the reference" if memory_map.reference is not None else "log p alone, as there is no --reference"
    against = f"of {memory_map.tested:,} against {memory_map.held_out:,} held out, by {by}"
    if not memory_map.memorised:
        listed = f"Memorised: 0 {against}."
    elif memory_map.calibrated:
        labels = Counter(place.label for place in memory_map.places).most_common(3)
        named = ", ".join(f"{label} {count:,}" for label, count in labels)
        listed = (
            f"Memorised: {memory_map.memorised:,} {against}, at a false discovery rate of {memory_map.fdr:.0%}. "
            f"Places: {len(memory_map.places):,} ({named})."
        )
    else:
        listed = (
            f"Uncalibrated: {memory_map.memorised:,} {against}, score above every held-out one; that may be chance."
        )
    sentences = [listed]
    if not memory_map.calibrated:
        sentences.append(
            f"Nothing is significant unless {memory_map.fewest_findings:,} stand out together; more held-out records "
            "lower that number."
        )
    if memory_map.max_memorised is not None:
        sentences.append(f"Limit: {memory_map.max_memorised:,}.")
    return sentences


def samples_needed(place: MemorisedPlace) -> str:
    """How a client gets a place from the text before it: `greedy`, or by so many samples with even odds."""
    if place.greedy:
        return "greedy"
    if place.queries_half is None or place.queries_half >= 10**6:
        return "> 10⁶"
    return f"{place.queries_half:,.0f}"
