"""The recorded state of audits: a gate with a baseline fails a model only where it is worse than recorded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from atdp_cli.audit_result import AnyAudit, Audit, BaselineComparison, Conclusion, Verdict
from atdp_cli.files.document import read_document
from atdp_cli.report.ci.checks import fail_together, failing_attacks, failing_bound, fails_alone

TOLERANCE_BITS = 1.0
"""How far an exposure, or a bound on ε, that failed already may rise before it counts as worse."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RecordedCanary(_Record):
    """One canary, by its place in the manifest."""

    repeats: int
    pool: int
    exposure: float
    exposure_ratio: float | None
    failing: bool


class RecordedModel(_Record):
    """One model.

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


class Baseline(_Record):
    """The models by their paths as given on the command line. Holds no secret."""

    schema_version: Literal[1]
    kind: Literal["atdp-audit-baseline"]
    models: dict[str, RecordedModel]


def make_baseline(audits: Sequence[AnyAudit]) -> Baseline:
    """The state that these audits found; models that could not be audited are left out."""
    return Baseline(
        schema_version=1,
        kind="atdp-audit-baseline",
        models={_name(audit): _recorded(audit) for audit in audits if isinstance(audit, Audit)},
    )


def read_baseline(path: Path) -> Baseline:
    """Reads what `--write-baseline` wrote.

    Raises:
        InputError: Missing, unreadable or malformed.
    """
    remedy = "Give the file that --write-baseline wrote."
    return read_document(path, Baseline, name="The baseline", remedy=remedy)


def new_failures(audit: AnyAudit, baseline: Baseline) -> AnyAudit:
    """The audit judged against the recorded state: `gate` is PASS where it fails no worse than recorded.

    A failure is no worse if the model is recorded as failing, with as many canaries of the same repeats and
    pool, and whatever fails now (a canary; all together; a bound on ε; an attack) failed then,
    with an exposure (by either score; the mean for all together), or a bound, that has risen by no more than
    `TOLERANCE_BITS`. Nothing but FAIL is changed.
    """
    if audit.verdict is not Verdict.FAIL:
        return audit.model_copy(update={"baseline": BaselineComparison(state="not-needed")})
    comparison = _compare(audit, baseline.models.get(_name(audit)))
    gate = Verdict.PASS if comparison.state == "known" else Verdict.FAIL
    return audit.model_copy(update={"gate": gate, "baseline": comparison})


def _compare(audit: Audit, recorded: RecordedModel | None) -> BaselineComparison:
    if recorded is None or not _same_canaries(audit, recorded):
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
    state: Literal["worse", "known"] = "worse" if worse or together or beyond or attacked else "known"
    return BaselineComparison(state=state, known=tuple(known), worse=tuple(worse))


def _recorded(audit: Audit) -> RecordedModel:
    return RecordedModel(
        verdict=audit.verdict,
        together=fail_together(audit),
        mean_exposure=audit.combined.mean_exposure,
        mean_exposure_ratio=audit.combined.mean_exposure_ratio,
        bound=failing_bound(audit),
        canaries=tuple(
            RecordedCanary(
                **canary.model_dump(include={"repeats", "pool", "exposure", "exposure_ratio"}),
                failing=fails_alone(audit, canary),
            )
            for canary in audit.canaries
        ),
        attacks=failing_attacks(audit),
    )


def _name(audit: AnyAudit) -> str:
    return Path(audit.model).as_posix()


def _same_canaries(audit: Audit, recorded: RecordedModel) -> bool:
    now = [(canary.repeats, canary.pool) for canary in audit.canaries]
    return now == [(canary.repeats, canary.pool) for canary in recorded.canaries]


def _risen(now: float | None, before: float | None) -> bool:
    """Whether a figure has risen by more than the tolerance; one that either side lacks has not."""
    return now is not None and before is not None and now > before + TOLERANCE_BITS
