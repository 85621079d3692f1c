"""The reports of a run, from its plan, its ledger and what was measured."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from atdp_cli.jobs.harden.describe import (
    average_passes,
    detector_entry,
    engine_statement,
    noise_source,
    not_covered,
    reference_entries,
    sampling_entry,
    trained_entry,
)
from atdp_cli.jobs.harden.model_card import inherited_card
from atdp_cli.jobs.harden.request import HardenRequest, Planned
from atdp_cli.jobs.harden.result import HardenResult, TrainedRun
from atdp_cli.jobs.harden.sentence import compare_surprise, surprise
from atdp_cli.jobs.machine import hardware
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.folder import is_adapter
from atdp_cli.model.seal import seal_of
from atdp_cli.privacy.accountant import epsilons, moments
from atdp_cli.privacy.ledger import private_events
from atdp_cli.privacy.statement import guarantee_sentences
from atdp_cli.report.document import (
    FLOATING_POINT,
    VERIFIED,
    BeforeAfter,
    EpsilonEntry,
    EpsilonPoint,
    PerplexityEntry,
    PrivateReport,
    PublicReport,
    StagePrivate,
    guarantee_entries,
)
from atdp_cli.report.happened import clipped, had_noise, had_noisy_steps
from atdp_cli.report.numbers import json_numbers
from atdp_cli.report.wording import lay_summary
from atdp_cli.runs.resume import missing_steps, steps_of
from atdp_cli.text.detection.term_lists import read_terms
from atdp_cli.training.objective import sensitive_share

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Entry = TypeVar("Entry", bound=BaseModel)


def public_report(
    planned: Planned, trained: TrainedRun, result: HardenResult, written: Checkpoint, folder: Path
) -> PublicReport:
    """The part that may be published with the model.

    Args:
        written: The model as it was loaded again.
        folder: That it was loaded from.
    """
    request, plan, ledger = planned.request, planned.plan, result.ledger
    private = private_events(ledger.events)
    stages = tuple(
        trained_entry(stage, request.style, *stage_result)
        for stage, stage_result in zip(plan.stages, trained.stages, strict=True)
    )
    clips, noisy, noisy_steps = clipped(stages), had_noise(stages), had_noisy_steps(stages)
    return PublicReport(
        summary=lay_summary(ledger, result.guarantees),
        verdict=guarantee_sentences(ledger, result.guarantees),
        guarantees=guarantee_entries(result.guarantees),
        epsilon=_as(EpsilonEntry, epsilons(private, ledger.delta, grid=ledger.grid)) if private else None,
        delta=ledger.delta,
        unit=ledger.unit,
        records=planned.split.training,
        held_out=len(planned.split.held_out),
        prior=ledger.prior,
        inherited_ledger=planned.inherited is not None,
        references=reference_entries(ledger),
        recipe=request.recipe_name,
        stages=stages,
        detector=detector_entry(request, trained.data.pipeline),
        engine=trained.engine.name if clips else None,
        engines_refused=trained.engine.refused if clips else (),
        engine_check=engine_statement(trained.engine) if clips else None,
        sampling=sampling_entry(plan, ledger),
        noise_source=noise_source(ledger) if noisy else None,
        floating_point=FLOATING_POINT if noisy_steps else None,
        verified=VERIFIED if noisy and not trained.untraced else None,
        insecure_seed=ledger.insecure_seed,
        epsilon_over_steps=tuple(
            _as(EpsilonPoint, point) for point in (moments(private, ledger.delta, grid=ledger.grid) if private else ())
        ),
        sentence=compare_surprise(trained.surprise, surprise(written, trained.data.sentence)),
        passes=average_passes(plan, trained.results),
        repeated_steps=steps_of(ledger.events) - steps_of(plan.ledger.events) + missing_steps(plan, trained.results),
        ended_early=result.ended_early,
        start=seal_of(request.model, planned.sha256),
        weights=ledger.seal,
        software=ledger.software,
        hardware=hardware(trained.device),
        command=request.command_without_paths,
        card=inherited_card(
            request.model,
            encoder=bool(trained.checkpoint.model.config.is_encoder_decoder),
            adapter=is_adapter(folder),
        ),
        created=ledger.created or "",
        not_covered=not_covered(request, noise=noisy_steps),
    )


def _as(entry: type[Entry], figures: "DataclassInstance") -> Entry:
    """Figures as the report lists them."""
    return entry.model_validate(json_numbers(asdict(figures)))


def private_report(
    request: HardenRequest, trained: TrainedRun, result: HardenResult, public: PublicReport, *, interruptions: int
) -> PrivateReport:
    """The whole report, for the owner of the records.

    Args:
        interruptions: How often the run was interrupted.
    """
    data = trained.data
    return PrivateReport(
        public=public,
        seconds=result.seconds,
        perplexity=BeforeAfter(before=_as(PerplexityEntry, result.before), after=_as(PerplexityEntry, result.after)),
        sensitive_share=sensitive_share(data.held_out),
        stages=tuple(
            StagePrivate(
                name=entry.name,
                perplexities=tuple(_as(PerplexityEntry, epoch) for epoch in stage.perplexities),
                mean_norms=stage.mean_norms,
                not_finite=stage.not_finite,
                seconds=stage.seconds,
                processor_seconds=stage.processor_seconds,
                tokens=stage.tokens,
                clamped=weighing.clamped,
                sensitive_weight=weighing.share,
            )
            for entry, (stage, weighing) in zip(public.stages, trained.stages, strict=True)
        ),
        planted_canaries=data.planted,
        flagged_spans=sum(len(flagged.spans) for flagged in data.trained),
        unread_records=data.unread,
        listed_terms=sum(len(read_terms(file)) for file in (*request.detector.allow, *request.detector.deny)),
        interruptions=interruptions,
        command=request.command,
    )
