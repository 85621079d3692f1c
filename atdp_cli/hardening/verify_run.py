"""The check at the end of a run: its trace must agree with journal and plan, noise and samples with their law.

The trace is written by the functions that sample, clip and add noise, each from the variables that it used and by
measuring what it did. The journal is written by the loop before each step, and the ledger is made of it. Here each
entry of the trace is equated with the line of the journal that paid for it and with the plan, and the measurements
are held against the law that they must follow.

The last line of a killed session's journal may have paid for a step that nothing traced. A session that came to its
end has no such line.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from atdp_cli.errors import ConformanceError
from atdp_cli.hardening.budget import Cursor
from atdp_cli.hardening.progress import Progress
from atdp_cli.hardening.verify_entries import Difference, PaidEntry, TrainedWith, differences, planned_deviation
from atdp_cli.hardening.workspace import Workspace
from atdp_cli.privacy.journal import journal_lines
from atdp_cli.privacy.ledger import GaussianRelease, PlainTraining, PrivateEvent, SubsampledGaussian, private_events
from atdp_cli.privacy.trace import (
    Noised,
    Released,
    ReleaseTrace,
    Sampled,
    StepTrace,
    TracedSession,
    TraceEntry,
    read_trace,
)
from atdp_cli.training.examples import Weighing
from atdp_cli.training.parallel.collectives import all_reduce_any
from atdp_cli.training.parallel.ranks import Ranks
from atdp_cli.training.plan import Plan, StagePlan, step_events
from atdp_cli.training.recipe import DPSGD
from atdp_cli.training.state import StageResult

FALSE_ALARM = 1e-13
"""The probability that a sound run is found to break a law, all of its checks together."""


@dataclass(frozen=True, kw_only=True)
class NoiseTest:
    """A measured figure and the distribution that it should have.

    Attributes:
        where: The stage, and the step or release.
        what: The figure.
        p: How probable it is that the figure is at least that far from what was planned, on either side.
    """

    where: str
    what: str
    planned: float
    used: float
    p: float


def noise_test(where: str, *, squares: float, coordinates: int, standard_deviation: float) -> NoiseTest:
    """Test whether noise is as long as `coordinates` normals of this standard deviation: Σz²/σ² is χ²-distributed.

    For a discrete Gaussian on a fine grid it is so up to the grid's width over σ, squared.

    Args:
        squares: Σ of the squares of the noise.
    """
    from scipy.special import gammainc, gammaincc

    half, reached = coordinates / 2, squares / standard_deviation**2 / 2
    tail = float(min(gammainc(half, reached), gammaincc(half, reached))) if coordinates else 1.0
    return NoiseTest(
        where=where,
        what="the noise's root mean square",
        planned=standard_deviation,
        used=(squares / max(coordinates, 1)) ** 0.5,
        p=min(1.0, 2 * tail),
    )


def sample_test(where: str, *, drawn: int, draws: int, sampling_rate: float) -> NoiseTest:
    """Test whether so many of the draws took their record: Binomial(draws, q)."""
    from scipy.stats import binom

    tail = min(binom.cdf(drawn, draws, sampling_rate), binom.sf(drawn - 1, draws, sampling_rate))
    return NoiseTest(
        where=where,
        what="the share of records that were sampled",
        planned=sampling_rate,
        used=drawn / max(draws, 1),
        p=min(1.0, 2 * float(tail)),
    )


def first_broken(checks: Sequence[NoiseTest]) -> NoiseTest | None:
    """The first figure that its distribution all but rules out, at a level shared by all checks; None without one."""
    level = FALSE_ALARM / max(len(checks), 1)
    return next((check for check in checks if not check.p >= level), None)


REMEDY = "Nothing was published. Report this; --force starts anew."

_Results = Sequence[tuple[StageResult, Weighing]]

_Place = tuple[int, str, int | str]
"""The position of a stage, what it does, and which of its steps, releases or epochs it is."""


def check_conformance(
    plan: Plan, results: _Results, work: Workspace, start: Progress, *, engine: str, device: str, ranks: Ranks
) -> int:
    """Compare the trace of a run that took its last step with its journal and plan, in every process.

    Args:
        results: Of all stages.
        start: Where this session began.
        engine: The name of the clipping engine, as the report has it.
        device: The type of the model's device.

    Returns:
        How many steps of the model were traced by no session: their lines were lost.
        Only the first process knows the earlier sessions.

    Raises:
        ConformanceError: Names the first thing that differs, with stage, epoch and step.
        InputError: The trace or the journal cannot be read.
    """
    untraced, problem = 0, None
    try:
        untraced = _check(plan, results, work, start.cursor, TrainedWith(engine=engine, device=device))
    except ConformanceError as error:
        problem = error
    (differs,) = all_reduce_any(ranks, (problem is not None,))
    if problem is not None:
        raise problem
    if differs:
        raise ConformanceError("Another process of this run used what the journal does not say.", REMEDY)
    return untraced


def _check(plan: Plan, results: _Results, work: Workspace, start: Cursor, now: TrainedWith) -> int:
    sessions, paid = read_trace(work.trace), list[PaidEntry]()
    for session, events in zip(sessions, _paid_in(work, sessions), strict=True):
        left, last = iter(events), session is sessions[-1]
        own = _pay(plan, session, left)
        for paid_entry in own:
            for difference in differences(paid_entry, session, now if last else None):
                raise _error(paid_entry.entry, difference)
        _check_streams(own)
        if last and (unused := next(left, None)) is not None:
            problem = f"Stage {unused.stage}: the journal has {_words(unused)}, which nothing used."
            raise ConformanceError(problem, REMEDY)
        paid += own
    _check_complete(plan, results, sessions[-1], start)
    if (broken := first_broken(list(_noise_tests(paid)))) is not None:
        problem = f"{broken.where}: {broken.what} was {broken.used:g}, and {broken.planned:g} was planned."
        raise ConformanceError(problem, REMEDY)
    steps = {place for place in _expected(plan, results, Cursor()) if place[1] == "step"}
    return len(steps - {_place(paid_entry.position, paid_entry.entry) for paid_entry in paid})


def _paid_in(work: Workspace, sessions: Sequence[TracedSession]) -> Iterator[tuple[PrivateEvent, ...]]:
    """The events that the journal got in each session."""
    lines = journal_lines(work.journal)
    bounds = [*(session.journal for session in sessions), lines[-1][0] if lines else 0]
    for begin, end in pairwise(bounds):
        yield private_events(event for size, event in lines if begin < size <= end)


def _pay(plan: Plan, session: TracedSession, events: Iterator[PrivateEvent]) -> list[PaidEntry]:
    """The session's entries, each with the next event if it needs to be paid."""
    steps = {
        position: step_events(stage) for position, stage in enumerate(plan.stages) if stage.sampling_rate is not None
    }
    paid = []
    for position, entry in session.entries:
        stage = plan.stages[position] if position < len(plan.stages) else None
        if stage is None or not stage.steps:
            raise _error(entry, Difference(what="the stage", planned="one without noise", used="one with noise"))
        free = isinstance(entry, StepTrace) and position not in steps
        event = None if free else next(events, None)
        if event is None and not free:
            raise _error(entry, Difference(what="the journal's event", planned="one", used="missing"))
        paid.append(PaidEntry(position=position, stage=stage, steps=steps.get(position, ()), entry=entry, event=event))
    return paid


def _check_streams(paid: Sequence[PaidEntry]) -> None:
    """Check that no draw of a key stream is used twice."""
    ends: dict[tuple[int, str], int] = {}
    for paid_entry in paid:
        for used in paid_entry.entry.uses if isinstance(paid_entry.entry, StepTrace) else ():
            if isinstance(used, Sampled | Noised):
                end = ends.get((paid_entry.position, used.kind), 0)
                if used.start < end:
                    what = f"the first draw for what was {used.kind}"
                    raise _error(paid_entry.entry, Difference(what=what, planned=f"≥ {end}", used=used.start))
                ends[paid_entry.position, used.kind] = used.end


def _check_complete(plan: Plan, results: _Results, session: TracedSession, start: Cursor) -> None:
    """Check that the last session made each release once and took each step once, in order, and nothing more."""
    expected = list(_expected(plan, results, start))
    counts = Counter(_place(position, entry) for position, entry in session.entries)
    for position, what, which in expected:
        if (position, what, which) not in counts:
            problem = f"Stage {plan.stages[position].stage.name}: the trace lacks {what} {which}."
            raise ConformanceError(problem, REMEDY)
    known = set(expected)
    for position, entry in session.entries:
        place = _place(position, entry)
        if place not in known or counts[place] > 1:
            raise _error(
                entry, Difference(what="how often it was done", planned=int(place in known), used=counts[place])
            )
    for stage, (result, _) in zip(plan.stages, results, strict=True):
        if (chosen_on := _chosen_on(result)) is not None and not _declares_choice(stage, chosen_on):
            text = "decoyed text" if chosen_on == "decoy" else "values of the records"
            problem = f"Stage {stage.stage.name}: its settings were chosen on {text}, which the ledger does not say."
            raise ConformanceError(problem, REMEDY)
    order = [(position, entry.step) for position, entry in session.entries if isinstance(entry, StepTrace)]
    if order != sorted(order):
        raise ConformanceError("The trace has steps in another order than the plan.", REMEDY)


def _chosen_on(result: StageResult) -> Literal["decoy", "raw"] | None:
    """The text that a stage's settings were chosen on; None if none were chosen."""
    if result.tuned is not None:
        return result.tuned.chosen_on
    return None if result.restored_epoch is None else "decoy"


def _declares_choice(stage: StagePlan, chosen_on: Literal["decoy", "raw"]) -> bool:
    """Whether the stage declares this choice; a declared choice on raw text also covers one on decoyed text."""
    declared = {event.chosen_on for event in stage.events if isinstance(event, PlainTraining)}
    return bool(declared & {chosen_on, "raw"})


def _place(position: int, entry: TraceEntry) -> _Place:
    match entry:
        case StepTrace():
            return position, "step", entry.step
        case ReleaseTrace():
            return position, "release of", entry.statistic


def _expected(plan: Plan, results: _Results, start: Cursor) -> Iterator[_Place]:
    """The steps with noise and the releases from a position to the run's end."""
    for position, (stage, (result, _)) in enumerate(zip(plan.stages, results, strict=True)):
        if not stage.steps or position < start.stage or result.ended_after == 0:
            continue
        resumed = position == start.stage
        for event in stage.events:
            if isinstance(event, GaussianRelease) and not (resumed and start.released):
                yield position, "release of", event.statistic
        if isinstance(stage.stage.mechanism, DPSGD):
            last = stage.steps if result.ended_after is None else result.ended_after
            yield from ((position, "step", step) for step in range(start.step + 1 if resumed else 1, last + 1))


def _noise_tests(paid: Sequence[PaidEntry]) -> Iterator[NoiseTest]:
    """The tests of each step's and release's noise, of a stage's noise together, and of its samples."""
    noise: dict[int, list[float]] = {}
    samples: dict[int, list[int]] = {}
    for paid_entry in paid:
        for used in paid_entry.entry.uses:
            scale = planned_deviation(paid_entry)
            if isinstance(used, Noised | Released):
                where = _words(paid_entry.entry)
                yield noise_test(where, squares=used.squares, coordinates=used.coordinates, standard_deviation=scale)
            if isinstance(used, Noised):
                total = noise.setdefault(paid_entry.position, [0.0, 0.0])
                noise[paid_entry.position] = [total[0] + used.squares / scale**2, total[1] + used.coordinates]
            if isinstance(used, Sampled):
                counts = samples.setdefault(paid_entry.position, [0, 0])
                samples[paid_entry.position] = [counts[0] + used.drawn, counts[1] + used.records]
    stages = {paid_entry.position: paid_entry.stage for paid_entry in paid}
    for position, (squares, coordinates) in noise.items():
        where = f"Stage {stages[position].stage.name}, all steps, in standard deviations"
        yield noise_test(where, squares=squares, coordinates=int(coordinates), standard_deviation=1.0)
    for position, (drawn, draws) in samples.items():
        where = f"Stage {stages[position].stage.name}, all steps"
        yield sample_test(where, drawn=drawn, draws=draws, sampling_rate=stages[position].sampling_rate or 0.0)


def _error(entry: TraceEntry, difference: Difference) -> ConformanceError:
    problem = f"{_words(entry)}: {difference.what} was {difference.used}, and {difference.planned} was planned."
    return ConformanceError(problem, REMEDY)


def _words(entry_or_event: TraceEntry | PrivateEvent) -> str:
    match entry_or_event:
        case StepTrace():
            return f"Stage {entry_or_event.stage}, epoch {entry_or_event.epoch}, step {entry_or_event.step}"
        case ReleaseTrace():
            return f"Stage {entry_or_event.stage}, release of {entry_or_event.statistic}"
        case GaussianRelease():
            return f"a release of {entry_or_event.statistic}"
        case SubsampledGaussian():
            return f"a step with a noise multiplier of {entry_or_event.noise_multiplier:g}"
