"""The recorded state of audits and maps: with a baseline, a gate only fails models that are worse than recorded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from atdp_cli.audit.results import AnyAudit, Audit, AuditPart, BaselineComparison, BaselineState, Conclusion, Verdict
from atdp_cli.files.documents import copy_fields, read_document
from atdp_cli.memorisation.results import MapVerdict, MemoryMap
from atdp_cli.reporting.ci.checks import fail_together, failing_attacks, failing_bound, fails_alone

TOLERANCE_BITS = 1.0
"""How far an exposure, or a bound on ε, that failed already may rise before it counts as worse."""


class RecordedCanary(AuditPart):
    """One canary, by its place in the manifest."""

    repeats: int
    pool: int
    exposure: float
    exposure_ratio: float | None
    failing: bool


class RecordedAudit(AuditPart):
    """The audit of one model's canaries.

    Attributes:
        together: Whether the canaries taken together failed (Fisher).
        bound: The largest bound on ε that failed the model; None if none did.
        attacks: Those whose tests failed it.
    """

    verdict: Conclusion
    together: bool
    mean_exposure: float | None
    mean_exposure_ratio: float | None
    bound: float | None
    canaries: tuple[RecordedCanary, ...]
    attacks: tuple[str, ...] = ()


class RecordedMap(AuditPart):
    """One model's map.

    Attributes:
        tested, held_out: Groups of records.
        memorised: How many of them stood out.
        greedy: Texts that greedy decoding said.
    """

    verdict: MapVerdict | None
    tested: int
    held_out: int
    memorised: int
    greedy: int


class Baseline(AuditPart):
    """The models by their paths as given on the command line. Holds neither secret, text nor place."""

    schema_version: Literal[1]
    kind: Literal["atdp-audit-baseline"]
    models: dict[str, RecordedAudit | RecordedMap]


def make_baseline(results: Sequence[AnyAudit | MemoryMap]) -> Baseline:
    """The state that was found; models that could not be audited are left out."""
    return Baseline(
        schema_version=1,
        kind="atdp-audit-baseline",
        models={_name(result): _recorded(result) for result in results if isinstance(result, Audit | MemoryMap)},
    )


def read_baseline(path: Path) -> Baseline:
    """Reads what `--write-baseline` wrote.

    Raises:
        InputError: Missing, unreadable or malformed.
    """
    remedy = "Give the file that --write-baseline wrote."
    return read_document(path, Baseline, name="The baseline", remedy=remedy)


def new_failures(result: AnyAudit, baseline: Baseline) -> AnyAudit:
    """The audit judged against the recorded state: `gate` is PASS where it fails no worse than recorded.

    A failure is no worse if the model is recorded as failing, there are as many canaries of the same repeats and pool,
    and whatever fails now (a canary; all together; a bound on ε; an attack) failed then, with an exposure (by either
    score; the mean for all together), or a bound, that has risen by no more than `TOLERANCE_BITS`. Nothing but FAIL is
    changed.
    """
    recorded = baseline.models.get(_name(result))
    if result.verdict is not Verdict.FAIL:
        return result.model_copy(update={"baseline": BaselineComparison(state="not-needed")})
    comparison = _compare(result, recorded)
    gate = Verdict.PASS if comparison.state == "known" else Verdict.FAIL
    return result.model_copy(update={"gate": gate, "baseline": comparison})


def new_memories(found: MemoryMap, baseline: Baseline) -> MemoryMap:
    """The map judged against the recorded state: `gate` is PASS where it fails no worse than recorded.

    It is no worse if the model is recorded as failing, as many groups of records were tested and held out, no more are
    memorised, and greedy decoding says no more texts.
    """
    recorded, state = baseline.models.get(_name(found)), "not-needed"
    if found.verdict == "FAIL":
        state = "unrecorded"
        if isinstance(recorded, RecordedMap) and (recorded.tested, recorded.held_out) == (found.tested, found.held_out):
            fewer = found.memorised <= recorded.memorised and found.greedy <= recorded.greedy
            state = "known" if recorded.verdict == "FAIL" and fewer else "worse"
    return found.model_copy(update={"baseline": state})


def _compare(audit: Audit, recorded: RecordedAudit | RecordedMap | None) -> BaselineComparison:
    if not isinstance(recorded, RecordedAudit) or not _same_canaries(audit, recorded):
        return BaselineComparison(state="unrecorded")
    known: list[int] = []
    worse: list[int] = []
    for number, (canary, before) in enumerate(zip(audit.canaries, recorded.canaries, strict=True), start=1):
        if fails_alone(audit, canary):
            risen = _risen(canary.exposure, before.exposure) or _risen(canary.exposure_ratio, before.exposure_ratio)
            (worse if risen or not before.failing else known).append(number)
    combined = audit.combined
    together = fail_together(audit) and (
        not recorded.together
        or _risen(combined.mean_exposure, recorded.mean_exposure)
        or _risen(combined.mean_exposure_ratio, recorded.mean_exposure_ratio)
    )
    bound = failing_bound(audit)
    beyond = bound is not None and (recorded.bound is None or _risen(bound, recorded.bound))
    attacked = not set(failing_attacks(audit)) <= set(recorded.attacks)
    state: BaselineState = "worse" if worse or together or beyond or attacked else "known"
    return BaselineComparison(state=state, known=tuple(known), worse=tuple(worse))


def _recorded(audit: Audit | MemoryMap) -> RecordedAudit | RecordedMap:
    if isinstance(audit, MemoryMap):
        return copy_fields(RecordedMap, audit)
    return copy_fields(
        RecordedAudit,
        audit,
        audit.combined,
        together=fail_together(audit),
        bound=failing_bound(audit),
        canaries=tuple(copy_fields(RecordedCanary, each, failing=fails_alone(audit, each)) for each in audit.canaries),
        attacks=failing_attacks(audit),
    )


def _name(result: AnyAudit | MemoryMap) -> str:
    return Path(result.model).as_posix()


def _same_canaries(audit: Audit, recorded: RecordedAudit) -> bool:
    now = [(canary.repeats, canary.pool) for canary in audit.canaries]
    return now == [(canary.repeats, canary.pool) for canary in recorded.canaries]


def _risen(now: float | None, before: float | None) -> bool:
    """Whether a figure has risen by more than the tolerance; one that either side lacks has not."""
    return now is not None and before is not None and now > before + TOLERANCE_BITS
