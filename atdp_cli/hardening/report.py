"""The reports of a run, from its plan, its ledger and what was measured."""

import os
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from atdp_cli.corpus.spans import FlaggedRecord, merge
from atdp_cli.detection.crosscheck.request import public_name
from atdp_cli.detection.detector import missed_names
from atdp_cli.detection.scan import pipeline_name
from atdp_cli.detection.term_lists import read_terms
from atdp_cli.files.documents import copy_fields
from atdp_cli.hardening.data import RunData
from atdp_cli.hardening.measure import Given, Measured, Surprise, compare_surprise, surprise
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.hardening.resume import missing_steps, steps_of
from atdp_cli.hardening.summary import stage_entry
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.device import cores
from atdp_cli.model.folder import is_adapter
from atdp_cli.model.hashes import seal_of
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.relation import Flags
from atdp_cli.reporting.annex import with_public, with_verdict
from atdp_cli.reporting.card import inherited_card
from atdp_cli.reporting.document import (
    CROSSCHECKED,
    FLOATING_NOISE,
    NOT_COVERED,
    REVIEWED,
    VERIFIED,
    CrossCheckEntry,
    DetectorEntry,
    HardwareEntry,
    PrivateReport,
    PublicReport,
    StageEntry,
    StagePrivate,
)
from atdp_cli.reporting.entries import BeforeAfter, PerplexityEntry, RanksBeforeAfter, TunedEntry
from atdp_cli.reporting.from_ledger import fields_from_ledger
from atdp_cli.reporting.stage_facts import clipped, had_noise, had_noisy_steps
from atdp_cli.training.clip.select import SelectedEngine
from atdp_cli.training.examples import Weighing, sensitive_share
from atdp_cli.training.plan import StagePlan, with_chosen_rate
from atdp_cli.training.search import Trial
from atdp_cli.training.state import StageResult


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A run after its last step, before any of it is written.

    Attributes:
        checkpoint: The trained model, whole.
        before: Of the model as it was loaded.
        surprise: How surprising it found the made-up sentence.
        stages: The result of each stage.
        untraced: Steps with noise of which it is not known what they used; see `check_conformance`.
        seconds: That the run has taken so far, whenever it is called.
        device: That it trained on.
    """

    checkpoint: Checkpoint
    engine: SelectedEngine
    data: RunData
    before: Measured
    surprise: Surprise
    stages: tuple[tuple[StageResult, Weighing], ...]
    untraced: int
    seconds: Callable[[], float]
    device: torch.device

    @property
    def results(self) -> tuple[StageResult, ...]:
        """The result of each stage without its weighing."""
        return tuple(result for result, _ in self.stages)


CPUINFO = Path("/proc/cpuinfo")


def hardware(device: torch.device) -> HardwareEntry:
    """This machine: processor, cores available to the process, memory in GiB, and the GPU of `device`."""
    accelerator = None if device.type == "cpu" else device.type
    if device.type == "cuda":
        accelerator = torch.cuda.get_device_name(device)
    return HardwareEntry(processor=_processor(), cores=cores(), memory=_memory(), accelerator=accelerator)


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


_ENGINE_CHECK = {
    False: "agreed with clipping one record at a time, on random tokens, before the first step",
    True: "clips one record at a time",
}

_IN_HALF = "; layers compute in bfloat16, all that privacy rests on in float32"


def engine_statement(engine: SelectedEngine) -> str:
    """How the clipping engine was checked, and in which precision it computes."""
    return _ENGINE_CHECK[engine.name == "per-record"] + (_IN_HALF if engine.precision == "bfloat16" else "")


def not_covered(request: SettledRequest, *, noise: bool) -> tuple[str, ...]:
    """The limits of ε, a sentence each."""
    floating = (FLOATING_NOISE,) if noise else ()
    crosschecked = () if request.detector.crosscheck is None else (CROSSCHECKED,)
    reviewed = () if request.review is None else (REVIEWED,)
    return (*NOT_COVERED, *floating, *crosschecked, *reviewed)


def detector_entry(request: SettledRequest, flags: Flags, pipeline: Any) -> DetectorEntry:
    """The detector as the report lists it, with its pipeline only if it found the spans."""
    crosscheck = request.detector.crosscheck
    return DetectorEntry(
        tier=flags.tier,
        pipeline=None if request.spans is not None else pipeline_name(pipeline),
        lists=bool(flags.human),
        kept=flags.kept,
        crosscheck=None
        if crosscheck is None
        else CrossCheckEntry(model=public_name(crosscheck), masked=not crosscheck.send_unmasked),
    )


def trained_entry(plan: StagePlan, result: StageResult) -> StageEntry:
    """A trained stage as the report lists it, with the settings that were chosen."""
    tuned = result.tuned
    if tuned is not None:
        plan = with_chosen_rate(plan, tuned.learning_rate)
    return stage_entry(plan).model_copy(
        update={
            "tuned": None if tuned is None else copy_fields(TunedEntry, tuned, trials=len(tuned.trials)),
            "restored_epoch": result.restored_epoch,
            "ended_after": result.ended_after,
        }
    )


def public_report(
    planned: Planned, trained: TrainedRun, ledger: Ledger, written: Checkpoint, folder: Path, *, ended_early: str | None
) -> PublicReport:
    """The part that may be published with the model.

    Args:
        written: The model as it was loaded again.
        folder: That it was loaded from.
        ended_early: Why the run took fewer steps than planned, as a sentence.
    """
    request, plan = planned.request, planned.plan
    stages = tuple(trained_entry(stage, result) for stage, result in zip(plan.stages, trained.results, strict=True))
    clips = clipped(stages)
    report = PublicReport(
        **fields_from_ledger(ledger, guarantees(ledger), stages),
        records=planned.split.training,
        held_out=len(planned.split.held_out),
        inherited_ledger=planned.inherited is not None,
        recipe=request.recipe_name,
        stages=stages,
        detector=detector_entry(request, planned.flags, trained.data.pipeline),
        engine=trained.engine.name if clips else None,
        engines_refused=trained.engine.refused if clips else (),
        engine_check=engine_statement(trained.engine) if clips else None,
        verified=VERIFIED if had_noise(stages) and not trained.untraced else None,
        sentence=compare_surprise(trained.surprise, surprise(written, trained.data.sentence)),
        repeated_steps=steps_of(ledger.events) - steps_of(plan.ledger.events) + missing_steps(plan, trained.results),
        ended_early=ended_early,
        start=seal_of(request.model, planned.sha256),
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
    trained: TrainedRun,
    after: Measured,
    given: Given | None,
    public: PublicReport,
    request: SettledRequest,
    *,
    interruptions: int,
) -> PrivateReport:
    """The whole report, for the owner of the records.

    Args:
        after: Of the model as it was loaded again.
        given: MODEL, where the run started from another and it could be loaded; else None.
        interruptions: How often the run was interrupted.
    """
    data = trained.data
    before, ranks = trained.before, None
    if before.ranks is not None and after.ranks is not None:
        ranks = RanksBeforeAfter(before=before.ranks, after=after.ranks)
    private = PrivateReport(
        public=public,
        hardware=hardware(trained.device),
        seconds=trained.seconds(),
        perplexity=BeforeAfter(before=before.raw, after=after.raw),
        usefulness=(
            *after.usefulness("after"),
            *before.usefulness("before"),
            *(() if given is None or given.measured is None else given.measured.usefulness("given")),
        ),
        value_ranks=ranks,
        sensitive_share=sensitive_share(data.yardstick.held_out),
        stages=tuple(
            copy_fields(
                StagePrivate,
                stage,
                weighing,
                name=entry.name,
                perplexities=tuple(copy_fields(PerplexityEntry, epoch) for epoch in stage.perplexities),
                trial_losses=tuple(trial.loss for trial in _trials(stage)),
                trial_p_values=tuple(trial.p_values for trial in _trials(stage) if trial.p_values),
                sensitive_weight=weighing.share,
            )
            for entry, (stage, weighing) in zip(public.stages, trained.stages, strict=True)
        ),
        planted_canaries=data.planted,
        flagged_share=_share(data.trained),
        missed_names=(
            None
            if public.detector.pipeline is None
            else missed_names((each.record for each in data.trained), data.pipeline)
        ),
        flagged_spans=sum(len(flagged.spans) for flagged in data.trained),
        flagged_labels=tuple(Counter(span.label for each in data.trained for span in each.spans).most_common()),
        unread_records=sum(not any(windows) for windows in zip(*data.training.values(), strict=True)),
        listed_terms=sum(len(read_terms(file)) for file in (*request.detector.allow, *request.detector.deny)),
        interruptions=interruptions,
        given=None if given is None else dict(given.seal),
        command=request.command,
    )
    return with_public(private, public)


def _share(records: Sequence[FlaggedRecord]) -> float:
    """The share of flagged characters."""
    flagged = sum(span.end - span.start for each in records for span in merge(each.spans))
    return flagged / max(1, sum(len(each.record.text) for each in records))


def _trials(stage: StageResult) -> tuple[Trial, ...]:
    return () if stage.tuned is None else stage.tuned.trials
