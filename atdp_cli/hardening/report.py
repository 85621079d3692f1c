"""The reports of a run, from its plan, its ledger and what was measured."""

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from atdp_cli.detection.term_lists import read_terms
from atdp_cli.hardening.describe import detector_entry, engine_statement, not_covered, trained_entry
from atdp_cli.hardening.measure import compare_surprise, surprise
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.hardening.results import HardenResult, TrainedRun
from atdp_cli.hardening.resume import missing_steps, steps_of
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.device import cores
from atdp_cli.model.folder import is_adapter
from atdp_cli.model.hashes import seal_of
from atdp_cli.reporting.annex import with_verdict
from atdp_cli.reporting.card import inherited_card
from atdp_cli.reporting.document import (
    VERIFIED,
    HardwareEntry,
    PrivateReport,
    PublicReport,
    StageEntry,
    StagePrivate,
)
from atdp_cli.reporting.entries import PerplexityEntry
from atdp_cli.reporting.from_ledger import as_entry, fields_from_ledger
from atdp_cli.reporting.stage_facts import clipped, had_noise, had_noisy_steps
from atdp_cli.training.objective import sensitive_share
from atdp_cli.training.state import StageResult
from atdp_cli.training.tune.search import Trial

if TYPE_CHECKING:
    from atdp_cli.training.state import StageResult


CPUINFO = Path("/proc/cpuinfo")


def hardware(device: torch.device) -> HardwareEntry:
    """This machine: processor, cores available to the process, memory in GiB, and the GPU of `device`."""
    return HardwareEntry(
        processor=_processor(),
        cores=cores(),
        memory=_memory(),
        accelerator=torch.cuda.get_device_name(device) if device.type == "cuda" else _other(device),
    )


def _other(device: torch.device) -> str | None:
    return None if device.type == "cpu" else device.type


def _processor() -> str:
    if CPUINFO.is_file():
        for line in CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _memory() -> float:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return 0.0
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)


def trained_stages(planned: Planned, trained: TrainedRun) -> tuple[StageEntry, ...]:
    """The stages as the reports list them, with the settings that were chosen."""
    return tuple(
        trained_entry(plan, result) for plan, (result, _) in zip(planned.plan.stages, trained.stages, strict=True)
    )


def public_report(
    planned: Planned, trained: TrainedRun, result: HardenResult, written: Checkpoint, folder: Path
) -> PublicReport:
    """The part that may be published with the model.

    Args:
        written: The model as it was loaded again.
        folder: That it was loaded from.
    """
    request, plan, ledger = planned.request, planned.plan, result.ledger
    stages = result.stages
    clips = clipped(stages)
    report = PublicReport(
        **fields_from_ledger(ledger, result.guarantees, stages),
        records=planned.split.training,
        held_out=len(planned.split.held_out),
        inherited_ledger=planned.inherited is not None,
        recipe=request.recipe_name,
        stages=stages,
        detector=detector_entry(request, trained.data.pipeline),
        engine=trained.engine.name if clips else None,
        engines_refused=trained.engine.refused if clips else (),
        engine_check=engine_statement(trained.engine) if clips else None,
        verified=VERIFIED if had_noise(stages) and not trained.untraced else None,
        sentence=compare_surprise(trained.surprise, surprise(written, trained.data.sentence)),
        repeated_steps=steps_of(ledger.events) - steps_of(plan.ledger.events) + missing_steps(plan, trained.results),
        ended_early=result.ended_early,
        start=seal_of(request.model, planned.sha256),
        hardware=hardware(trained.device),
        command=request.command_without_paths,
        card=inherited_card(
            request.model,
            encoder=bool(trained.checkpoint.model.config.is_encoder_decoder),
            adapter=is_adapter(folder),
        ),
        not_covered=not_covered(request, noise=had_noisy_steps(stages)),
    )
    return with_verdict(report)


def private_report(
    request: SettledRequest, trained: TrainedRun, result: HardenResult, public: PublicReport, *, interruptions: int
) -> PrivateReport:
    """The whole report, for the owner of the records.

    Args:
        interruptions: How often the run was interrupted.
    """
    data = trained.data
    return PrivateReport(
        public=public,
        seconds=result.seconds,
        perplexity=result.perplexity,
        decoyed_perplexity=result.decoyed,
        value_ranks=result.ranks,
        sensitive_share=sensitive_share(data.yardstick.held_out),
        stages=tuple(
            StagePrivate(
                name=entry.name,
                perplexities=tuple(as_entry(PerplexityEntry, epoch) for epoch in stage.perplexities),
                mean_norms=stage.mean_norms,
                not_finite=stage.not_finite,
                seconds=stage.seconds,
                processor_seconds=stage.processor_seconds,
                tokens=stage.tokens,
                clamped=weighing.clamped,
                trial_losses=tuple(trial.loss for trial in _trials(stage)),
                trial_p_values=tuple(trial.p_values for trial in _trials(stage) if trial.p_values),
                unlisted_words=stage.unlisted_words,
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


def _trials(stage: StageResult) -> tuple[Trial, ...]:
    return () if stage.tuned is None else stage.tuned.trials
