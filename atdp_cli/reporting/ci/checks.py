"""The checks that every CI output reports: of each canary or memorised text, and of the model."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from json import JSONDecoder
from typing import Literal

from atdp_cli.audit.results import RANKS, AnyAudit, Audit, CanaryResult, Verdict
from atdp_cli.memorisation.results import MemorisedPlace, MemoryMap


class Outcome(StrEnum):
    """The outcome of one check. KNOWN: it fails, and is no worse than the baseline says."""

    PASS = "PASS"  # noqa: S105 - an outcome, not a password
    FAIL = "FAIL"
    KNOWN = "KNOWN"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


Kind = Literal["canary", "text"]
"""The kinds of things that an audit checks one by one."""

COMMANDS: dict[Kind, str] = {"canary": "audit-canary", "text": "audit-corpus"}
"""The command that makes the checks of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One canary or memorised text of a model, or all of them together.

    Attributes:
        number: Of the canary in the manifest's order, or of the text in the map's, from 1; None for the verdict on the
            model.
        text: What there is to say of it, in sentences. Holds no secret.
    """

    model: str
    number: int | None
    outcome: Outcome
    text: str
    kind: Kind = "canary"

    @property
    def name(self) -> str:
        """`canary 3`, `text 3` or `verdict`."""
        return "verdict" if self.number is None else f"{self.kind} {self.number}"

    @property
    def message(self) -> str:
        """The text, and before it that the baseline has the failure where it does."""
        return f"Fails, no worse than the baseline. {self.text}" if self.outcome is Outcome.KNOWN else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """Where results are shown.

    Attributes:
        uri: Of the manifest or the corpus, relative to the working folder where it lies in it.
        lines: On which line each canary's entry, or each text, begins.
    """

    uri: str
    lines: tuple[int, ...]

    def line(self, number: int | None) -> int:
        """The line of a check; the first for the verdict."""
        return 1 if number is None or number > len(self.lines) else self.lines[number - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedModel:
    """The checks of one model, the verdict last.

    Attributes:
        completed: Whether it could be audited.
        file: None for results without a location, as where the canary was typed.
    """

    model: str
    checks: tuple[Check, ...]
    completed: bool = True
    file: ResultFile | None = None


def checked(result: AnyAudit | MemoryMap, file: ResultFile | None = None) -> CheckedModel:
    """The checks of one model.

    Args:
        file: The manifest with the line of each canary, or the corpus with that of each text; None where there is none.
    """
    if isinstance(result, MemoryMap):
        return _checked_map(result, file)
    completed = result.verdict is not Verdict.ERROR
    return CheckedModel(model=result.model, checks=checks_of(result), completed=completed, file=file)


def checks_of(audit: AnyAudit) -> tuple[Check, ...]:
    """Every canary of a model, then its verdict."""
    canaries = tuple(
        Check(model=audit.model, number=number, outcome=_outcome(audit, number), text=_describe(canary))
        for number, canary in enumerate(audit.canaries, start=1)
    )
    known = audit.gate is not audit.verdict
    outcome = Outcome.KNOWN if known else Outcome(audit.verdict)
    return (*canaries, Check(model=audit.model, number=None, outcome=outcome, text=" ".join(audit.reasons)))


def fails_alone(audit: AnyAudit, canary: CanaryResult) -> bool:
    """Whether this canary by itself fails its model: by Holm's test or by the user's limit, by either score.

    None does where the verdict is not FAIL, for then its rank is not to be relied on, and none that is not planted.
    """
    if audit.verdict is not Verdict.FAIL or not canary.planted:
        return False
    level, limit = audit.combined.level, audit.max_exposure
    if RANKS in audit.gates and any(p is not None and p <= level for p in (canary.holm_p, canary.holm_p_ratio)):
        return True
    exposures = (canary.exposure, canary.exposure_ratio)
    return limit is not None and any(bits is not None and bits > limit for bits in exposures)


def fail_together(audit: Audit) -> bool:
    """Whether Fisher's test of all canaries fails the model, by either score."""
    p_values = (audit.combined.fisher_p, audit.combined.fisher_p_ratio)
    able = audit.verdict is Verdict.FAIL and RANKS in audit.gates
    return able and any(p is not None and p <= audit.combined.level for p in p_values)


def failing_bound(audit: Audit) -> float | None:
    """The largest lower bound on ε that fails the model: above the user's limit, or above the ledger's claim."""
    limit = audit.max_epsilon_lower_bound
    failing = [
        bound.epsilon
        for bound in audit.epsilon
        if bound.finding == "refuted" or (limit is not None and bound.epsilon > limit)
    ]
    return max(failing, default=None) if audit.verdict is Verdict.FAIL else None


def failing_attacks(audit: Audit) -> tuple[str, ...]:
    """The attacks whose tests fail the model."""
    return tuple(test.attack for test in audit.attack_tests if test.rejects and audit.verdict is Verdict.FAIL)


def canary_lines(manifest: str) -> tuple[int, ...]:
    """The line, from 1, on which each canary's entry begins in the text of a manifest that has been read already."""
    decoder = JSONDecoder()

    def skip(place: int, also: str = "") -> int:
        while manifest[place] in " \t\r\n" + also:
            place += 1
        return place

    place = skip(0, "{\ufeff")
    while manifest[place] != "}":
        key, place = decoder.raw_decode(manifest, place)
        place = skip(place, ":")
        if key != "canaries":
            place = skip(decoder.raw_decode(manifest, place)[1], ",")
            continue
        lines = []
        place = skip(place + 1)
        while manifest[place] != "]":
            lines.append(manifest.count("\n", 0, place) + 1)
            place = skip(decoder.raw_decode(manifest, place)[1], ",")
        return tuple(lines)
    return ()


def _outcome(audit: AnyAudit, number: int) -> Outcome:
    if audit.verdict is Verdict.INCONCLUSIVE:
        return Outcome.INCONCLUSIVE
    if not fails_alone(audit, audit.canaries[number - 1]):
        return Outcome.PASS
    return Outcome.KNOWN if audit.baseline is not None and number in audit.baseline.known else Outcome.FAIL


def _describe(canary: CanaryResult) -> str:
    text = "" if canary.planted else "Not planted, so it counts for nothing. "
    text += (
        f"Rank {canary.stratum_rank_max:,} of {canary.stratum_size:,}, "
        f"exposure {canary.exposure:.2f} bits{_adjusted_p(canary.holm_p)}."
    )
    if canary.exposure_ratio is not None:
        bits = f"{canary.exposure_ratio:.2f} bits{_adjusted_p(canary.holm_p_ratio)}"
        text += f" By the ratio to the reference: exposure {bits}."
    return text


def _adjusted_p(value: float | None) -> str:
    return "" if value is None else f", adjusted p = {value:.2g}"


def best_places(memory_map: MemoryMap) -> tuple[MemorisedPlace, ...]:
    """The place of greatest gain of each memorised text, in the order of their numbers."""
    first = {place.value: place for place in reversed(memory_map.places)}
    return tuple(first[value] for value in sorted(first))


def _checked_map(memory_map: MemoryMap, file: ResultFile | None) -> CheckedModel:
    """Each memorised text, which fails where the model does, then the verdict."""
    outcome = Outcome.KNOWN if memory_map.baseline == "known" else Outcome(memory_map.verdict or "PASS")
    counts = Counter(place.value for place in memory_map.places)
    texts = tuple(
        Check(
            model=memory_map.model,
            number=place.value,
            outcome=outcome,
            text=_describe_place(place, counts[place.value]),
            kind="text",
        )
        for place in best_places(memory_map)
    )
    text = " ".join(memory_sentences(memory_map))
    verdict = Check(model=memory_map.model, number=None, outcome=outcome, text=text, kind="text")
    return CheckedModel(model=memory_map.model, checks=(*texts, verdict), file=file)


def _describe_place(place: MemorisedPlace, count: int) -> str:
    others = count - 1
    also = f" and {others:,} other places" if others else ""
    return (
        f"{place.label}: record {place.record:,}, characters {place.start}–{place.end}{also}; {place.gain:.1f} nats "
        f"above the model's average gain, adjusted p = {place.adjusted_p:.2g}, samples for even odds: "
        f"{samples_needed(place)}."
    )


def memory_sentences(memory_map: MemoryMap) -> list[str]:
    """The amount that is memorised, and how sure that is."""
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
    """The samples by which a client gets a place from the text before it: `greedy`, or by so many samples with even
    odds.
    """
    if place.greedy:
        return "greedy"
    if place.queries_half is None or place.queries_half >= 10**6:
        return "> 10⁶"
    return f"{place.queries_half:,.0f}"
