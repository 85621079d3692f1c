"""The recorded state of audits: a gate with a baseline fails a model only where it is worse than recorded."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from atdp_cli.errors import InputError
from atdp_cli.files.bounded_read import read_whole
from atdp_cli.report.audited import Entry, failing, failing_bound, failing_number

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
        own_number: The highest exposure of a number of the corpus that failed it, bits.
    """

    verdict: Literal["PASS", "FAIL", "INCONCLUSIVE"]
    together: bool
    mean_exposure: float | None
    mean_exposure_ratio: float | None
    bound: float | None
    own_number: float | None
    canaries: tuple[RecordedCanary, ...]


class Baseline(_Record):
    """The models by their paths as given on the command line. Holds no secret."""

    schema_version: Literal[1]
    kind: Literal["atdp-audit-baseline"]
    models: dict[str, RecordedModel]


def make_baseline(entries: Sequence[Entry]) -> Baseline:
    """The state that these audits found; models that could not be audited are left out."""
    return Baseline(
        schema_version=1,
        kind="atdp-audit-baseline",
        models={_name(entry): _recorded(entry) for entry in entries if entry["verdict"] != "ERROR"},
    )


def read_baseline(path: Path) -> Baseline:
    """Reads what `--write-baseline` wrote.

    Raises:
        InputError: Missing, unreadable or malformed.
    """
    remedy = "Give the file that --write-baseline wrote."
    try:
        return Baseline.model_validate_json(read_whole(path), strict=True)
    except OSError as error:
        raise InputError(f"The baseline {path} cannot be read: {error.strerror}.", remedy) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"The baseline {path} is malformed at {place}: {first['msg']}.", remedy) from None


def new_failures(entry: Entry, baseline: Baseline) -> dict[str, Any]:
    """The entry judged against the recorded state: `gate` is PASS where it fails no worse than recorded.

    A failure is no worse if the model is recorded as failing, with as many canaries of the same repeats and
    pool, and whatever fails now (a canary; all together; a bound on ε; a number of the corpus) failed then, with an
    exposure (by either score; the mean for all together), or a bound, that has risen by no more than
    `TOLERANCE_BITS`. Nothing but FAIL is changed.
    """
    if entry["verdict"] != "FAIL":
        return {**entry, "baseline": {"state": "not-needed", "known": [], "worse": []}}
    before = baseline.models.get(_name(entry))
    if before is None or not _same_canaries(entry, before):
        return {**entry, "baseline": {"state": "unrecorded", "known": [], "worse": []}}
    known: list[int] = []
    worse: list[int] = []
    for number, (now, then) in enumerate(zip(entry["canaries"], before.canaries, strict=True), start=1):
        if failing(entry, now):
            risen = _risen(now, then, "exposure", "exposure_ratio")
            (worse if risen or not then.failing else known).append(number)
    together = _together(entry) and (
        not before.together or _risen(entry["combined"], before, "mean_exposure", "mean_exposure_ratio")
    )
    beyond = any(
        now is not None and (then is None or now > then + TOLERANCE_BITS)
        for now, then in ((failing_bound(entry), before.bound), (failing_number(entry), before.own_number))
    )
    gate = "FAIL" if worse or together or beyond else "PASS"
    state = "worse" if gate == "FAIL" else "known"
    return {**entry, "gate": gate, "baseline": {"state": state, "known": known, "worse": worse}}


def _recorded(entry: Entry) -> RecordedModel:
    combined = entry["combined"]
    return RecordedModel(
        verdict=entry["verdict"],
        together=_together(entry),
        mean_exposure=combined["mean_exposure"],
        mean_exposure_ratio=combined["mean_exposure_ratio"],
        bound=failing_bound(entry),
        own_number=failing_number(entry),
        canaries=tuple(
            RecordedCanary(
                repeats=canary["repeats"],
                pool=canary["pool"],
                exposure=canary["exposure"],
                exposure_ratio=canary["exposure_ratio"],
                failing=failing(entry, canary),
            )
            for canary in entry["canaries"]
        ),
    )


def _name(entry: Entry) -> str:
    return Path(entry["model"]).as_posix()


def _same_canaries(entry: Entry, before: RecordedModel) -> bool:
    now = [(canary["repeats"], canary["pool"]) for canary in entry["canaries"]]
    return now == [(canary.repeats, canary.pool) for canary in before.canaries]


def _together(entry: Entry) -> bool:
    """Whether Fisher's test rejects, by either score."""
    combined = entry["combined"]
    tested = (combined["fisher_p"], combined["fisher_p_ratio"])
    return entry["verdict"] == "FAIL" and any(p is not None and p <= combined["level"] for p in tested)


def _risen(now: Mapping[str, Any], then: BaseModel, *names: str) -> bool:
    """Whether a figure has risen by more than the tolerance; one that either side lacks has not."""
    pairs = [(now[name], getattr(then, name)) for name in names]
    return any(new is not None and old is not None and new > old + TOLERANCE_BITS for new, old in pairs)
