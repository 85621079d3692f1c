"""The fields of a report that follow from ledger and stages; `atdp report --verify` computes them again."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from atdp_cli.privacy.accountant import epsilon_points, epsilons
from atdp_cli.privacy.ledger import (
    GaussianRelease,
    Ledger,
    LedgerEvent,
    PlainTraining,
    ReadModel,
    SubsampledGaussian,
    private_events,
)
from atdp_cli.privacy.relation import Flags
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.privacy.wording import POISSON, guarantee_sentences
from atdp_cli.reporting.document import (
    FLOATING_POINT,
    ReferenceEntry,
    SamplingEntry,
    StageEntry,
)
from atdp_cli.reporting.entries import GroupFigure, guarantee_entries, person_figures
from atdp_cli.reporting.stage_facts import had_noise, had_noisy_steps
from atdp_cli.reporting.wording import lay_summary

HIDDEN_SAMPLE = (
    "Poisson: each record by an independent draw in each step, from AES-256-CTR keyed by the operating system; "
    "neither the key nor the sample is written anywhere."
)

SEEDED_SAMPLE = "Poisson, from a seed: whoever knows it knows every sample."


def fields_from_ledger(ledger: Ledger, guarantees: Sequence[Guarantee], stages: Sequence[StageEntry]) -> dict[str, Any]:
    """Fields of `PublicReport` by their names, with the summary of a report without an audit."""
    private = private_events(ledger.events)
    return {
        "summary": lay_summary(ledger, guarantees),
        "verdict": guarantee_sentences(ledger, guarantees),
        "guarantees": guarantee_entries(guarantees),
        "epsilon": epsilons(private, ledger.delta, grid=ledger.grid) if private else None,
        "person": _person(ledger, guarantees),
        "delta": ledger.delta,
        "unit": ledger.unit,
        "checkpoint_history": ledger.checkpoint_history,
        "references": _references(ledger),
        "sampling": _sampling(ledger, stages),
        "noise_source": _noise_source(ledger) if had_noise(stages) else None,
        "floating_point": FLOATING_POINT if had_noisy_steps(stages) else None,
        "insecure_seed": ledger.insecure_seed,
        "epsilon_over_steps": epsilon_points(private, ledger.delta, grid=ledger.grid) if private else (),
        "passes": sum(map(_passes, stages)),
        "weights": ledger.seal,
        "software": ledger.software,
        "created": ledger.created or "",
    }


def _person(ledger: Ledger, guarantees: Sequence[Guarantee]) -> tuple[GroupFigure, ...]:
    """As `PublicReport.person` has it."""
    counted = (each for each in guarantees if each.scope in ("end_to_end", "selective", "declared"))
    held = next((each for each in counted if each.epsilon is None or math.isfinite(each.epsilon)), None)
    if held is None or held.epsilon is None or held.exact:
        return ()
    return person_figures(ledger, held)


def _passes(stage: StageEntry) -> float:
    """The number of times that a stage reads a record, on average."""
    if stage.text is None:
        return 0.0
    taken = _taken(stage)
    return stage.epochs * taken / stage.steps if stage.sampling_rate is None else taken * stage.sampling_rate


def _taken(stage: StageEntry) -> int:
    """The steps that a stage took; repeated ones count once."""
    return stage.steps if stage.ended_after is None else stage.ended_after


def _sampling(ledger: Ledger, stages: Sequence[StageEntry]) -> SamplingEntry | None:
    """None where no stage draws records in secret."""
    if not any(map(_draws, stages)):
        return None
    return SamplingEntry(assumed=POISSON, run=SEEDED_SAMPLE if ledger.insecure_seed else HIDDEN_SAMPLE)


def _draws(stage: StageEntry) -> bool:
    return stage.sampling_rate is not None and stage.text is not None


def _references(ledger: Ledger) -> tuple[ReferenceEntry, ...]:
    """Each model that the stages read, once."""
    read = {tuple(event.weights.items()): event for event in ledger.events if isinstance(event, ReadModel)}
    return tuple(ReferenceEntry(past=event.past, weights=event.weights) for event in read.values())


def _noise_source(ledger: Ledger) -> str:
    seeded = "insecure seed: nothing is protected"
    return seeded if ledger.insecure_seed else "AES-256-CTR, on a GPU ChaCha20, keyed by the operating system"


def stage_differences(ledger: Ledger, stages: Sequence[StageEntry]) -> Iterator[tuple[int | None, str]]:
    """Where stages and the ledger's events of the same run do not fit, as a clause with the stage's position.

    The position is None for events of a stage that is not listed. Steps may be in the ledger more often than a stage
    took them: an interrupted run spends repeated steps again.
    """
    own = [event for event in ledger.events if event.run == ledger.run]
    for position, stage in enumerate(stages):
        yield from (
            (position, clause) for clause in _clauses(stage, [event for event in own if event.stage == stage.name])
        )
    listed = {stage.name for stage in stages}
    for name in dict.fromkeys(event.stage for event in own if event.stage not in listed):
        yield None, f"the ledger has a stage {name}"


def _clauses(stage: StageEntry, events: Sequence[LedgerEvent]) -> Iterator[str]:
    plain = {event.text for event in events if isinstance(event, PlainTraining)}
    if plain != ({stage.text} if stage.mechanism == "plain" and _taken(stage) else set()):
        yield f"by the ledger, it read {', '.join(sorted(plain)) or 'no'} text without noise"
    steps = [event for event in events if isinstance(event, SubsampledGaussian)]
    if any((event.sampling_rate, event.clip_norm) != (stage.sampling_rate, stage.clip_norm) for event in steps):
        yield "the ledger has another sampling rate or clip norm"
    spent = Counter[float]()
    for event in steps:
        spent[event.noise_multiplier] += event.steps
    if _steps_taken(stage) - spent or not spent.keys() <= set(stage.noise_multipliers):
        yield "the ledger has other noise multipliers, or fewer steps"
    released = {event.noise_multiplier for event in events if isinstance(event, GaussianRelease)}
    if stage.release_noise_multiplier is not None and _taken(stage) and stage.release_noise_multiplier not in released:
        yield "the ledger has no release with that noise"
    if released and stage.release_noise_multiplier is None:
        yield "the ledger has a release"


def _steps_taken(stage: StageEntry) -> Counter[float]:
    """How many steps with each noise multiplier a stage took on records; repeated ones count once."""
    steps, taken = Counter[float](), _taken(stage)
    if not _draws(stage):
        return steps
    in_epoch = stage.steps // stage.epochs
    for epoch, sigma in enumerate(stage.noise_multipliers):
        if (in_this := min(in_epoch, taken - epoch * in_epoch)) > 0:
            steps[sigma] += in_this
    return steps


def repeated_steps(ledger: Ledger, stages: Sequence[StageEntry]) -> int:
    """Steps with noise that the ledger has beyond those of the stages."""
    own = (event for event in ledger.events if event.run == ledger.run and isinstance(event, SubsampledGaussian))
    return sum(event.steps for event in own) - sum(_steps_taken(stage).total() for stage in stages)


def stated_flags(ledger: Ledger) -> tuple[Flags, ...]:
    """The flags of the run's stages, each once."""
    relations = (
        event.relation
        for event in ledger.events
        if event.run == ledger.run and isinstance(event, PlainTraining | SubsampledGaussian | GaussianRelease)
    )
    return tuple(dict.fromkeys(relation.flags for relation in relations if relation.flags))
