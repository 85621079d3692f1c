"""`atdp harden` as a function: fold a recipe over a checkpoint, and write the model with its report."""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.manifest import read_manifest, token_mismatch
from atdp_cli.errors import InputError, RunError
from atdp_cli.events import FellBack, Notify
from atdp_cli.jobs.describe import Measured, private_report, public_report
from atdp_cli.jobs.encoding import Flagged, Limits, Windows, encode, spot
from atdp_cli.jobs.request import HardenRequest, Planned
from atdp_cli.jobs.workplace import Workplace, workplace
from atdp_cli.model.checkpoint import (
    Checkpoint,
    context_length,
    load_checkpoint,
    random_tokens,
    save_checkpoint,
)
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.model.tokens import encode_record
from atdp_cli.model.windows import Window, check_alignment
from atdp_cli.privacy.csprng import KeyStream, insecure_stream, secure_stream
from atdp_cli.privacy.guarantee import Guarantee, guarantees
from atdp_cli.privacy.journal import JOURNAL_FILE, open_journal, read_journal, spend
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, compact, file_sha256, software, timestamp, write_ledger
from atdp_cli.privacy.weights import released_share
from atdp_cli.report.card import render_card
from atdp_cli.report.document import REPORT_FILE, PublicReport
from atdp_cli.text.spanfile import spans_line
from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.clipping.loop import clipped_sum
from atdp_cli.training.objective import Weighing, make_example, sensitive_share, weigh
from atdp_cli.training.plan import StagePlan, release_event
from atdp_cli.training.recipe import Text, Weighted
from atdp_cli.training.stage import Randomness, StageResult, run_plain, run_private

SPANS_FILE = "spans.jsonl"
ALL_ALIKE = (
    "sensitive tokens already carry the target share, so w is 1 and all tokens weigh the same; "
    "a narrower --tier or a larger --target-share changes that"
)


@dataclass(frozen=True, kw_only=True)
class Hardened:
    """A finished run. Perplexities are of held-out private text."""

    output: Path
    ledger: Ledger
    guarantees: tuple[Guarantee, ...]
    before: Perplexity
    after: Perplexity
    steps: int
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """What the stages read, one entry a training record for each text, and the held-out windows."""

    flagged: tuple[Flagged, ...]
    pipeline: str | None
    training: Mapping[Text, Sequence[Windows]]
    held_out: Sequence[Window]
    planted: tuple[int, ...] | None


def harden(planned: Planned, checkpoint: Checkpoint, notify: Notify) -> Hardened:
    """Run the plan and write OUT/ and OUT.private/.

    Raises:
        InputError: The manifest or the spans do not fit, or no held-out record has a token.
        RunError: Training left the finite numbers, or the result does not load again.
    """
    started, created = time.monotonic(), timestamp()
    request = planned.request
    with workplace(request.output, force=request.force) as work:
        material = prepare(planned, checkpoint, notify)
        before = perplexity(checkpoint.model, material.held_out)
        results = _fold(planned, checkpoint.model, material, work, notify)
        save_checkpoint(checkpoint.model, checkpoint.tokenizer, work.model, request.dtype or checkpoint.stored_dtype)
        after = perplexity(_reload(work.model).model, material.held_out)
        if after.all is None or not math.isfinite(after.all):
            raise RunError("The hardened model's held-out perplexity is not finite.", "Lower the learning rate.")
        ledger = _seal(planned, work, created)
        found = guarantees(ledger)
        measured = Measured(
            before=before,
            after=after,
            results=[result for result, _ in results],
            weighings=[weighing for _, weighing in results],
            seconds=time.monotonic() - started,
            sensitive_share=sensitive_share(material.held_out),
            pipeline=material.pipeline,
            planted=material.planted,
        )
        _write_reports(public_report(planned, ledger, found, measured), measured, material, work)
    return Hardened(
        output=request.output,
        ledger=ledger,
        guarantees=found,
        before=before,
        after=after,
        steps=sum(stage.steps for stage in planned.plan.stages),
        seconds=measured.seconds,
    )


def estimate_seconds(planned: Planned, checkpoint: Checkpoint) -> float:
    """A rough time for the stages: one timed record of typical length, made of random tokens, times the plan."""
    lengths = [len(encode_record(checkpoint.tokenizer, record.text)) for record in planned.split.records[:50]]
    length = max(2, min(round(sum(lengths) / len(lengths)), context_length(checkpoint.model)))
    ids = random_tokens(checkpoint.model, length)
    took = []
    for _ in range(3):
        started = time.monotonic()
        loss = checkpoint.model(input_ids=ids, use_cache=False).logits.float().logsumexp(-1).sum()
        torch.autograd.grad(loss, trainable(checkpoint.model), allow_unused=True)
        took.append(time.monotonic() - started)
    return min(took) * sum(stage.steps * stage.batch for stage in planned.plan.stages)


def prepare(planned: Planned, checkpoint: Checkpoint, notify: Notify) -> Material:
    """Find the spans, cut every record into windows, and check that planted canaries are among them.

    Raises:
        InputError: No held-out record has a token, or the manifest was made for other tokens.
    """
    request, split = planned.request, planned.split
    check_alignment(checkpoint.tokenizer)
    limits = Limits(context=context_length(checkpoint.model), windows=request.max_windows)
    spotted = spot(split.records, request, notify)
    training = tuple(one for place, one in enumerate(spotted.records) if place not in split.held_out)
    measured = tuple(one for place, one in enumerate(spotted.records) if place in split.held_out)
    texts = {stage.stage.text for stage in planned.plan.stages}
    encoded = {text: encode(training, text, checkpoint.tokenizer, limits) for text in sorted(texts)}
    held_out = [window for windows in encode(measured, Text.RAW, checkpoint.tokenizer, limits) for window in windows]
    if not any(window.targets.any() for window in held_out):
        raise InputError("No held-out record has a token to predict.", "Give another --valid file, or more records.")
    return Material(
        flagged=spotted.records,
        pipeline=spotted.pipeline,
        training=encoded,
        held_out=held_out,
        planted=_planted(request, encoded.get(Text.RAW, ()), checkpoint.tokenizer, notify),
    )


def _planted(
    request: HardenRequest, training: Sequence[Windows], tokenizer: PreTrainedTokenizerFast, notify: Notify
) -> tuple[int, ...] | None:
    """How many training records carry each canary, token for token; None where the raw text is not read."""
    if request.manifest is None:
        return None
    manifest = read_manifest(request.manifest)
    if problem := token_mismatch(manifest, tokenizer):
        raise InputError(problem, "Plant the canaries again with --tokenizer of this model.")
    if not training:
        return None
    end = () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
    records = Counter(tuple(windows[0].token_ids.tolist()) for windows in training if len(windows) == 1)
    counts = tuple(records[canary.token_ids + end] for canary in manifest.canaries)
    absent = sum(count == 0 for count in counts)
    if absent:
        raise InputError(
            f"{absent} of {len(counts)} canaries in {request.manifest} are in no training record of this corpus.",
            "Give the whole corpus that plant-canary wrote; with few repeats, hold out another file by --valid.",
        )
    repeats = sum({canary.token_ids: canary.repeats for canary in manifest.canaries}.values())
    trained = sum({canary.token_ids: count for canary, count in zip(manifest.canaries, counts, strict=True)}.values())
    if trained < repeats:
        notify(FellBack(what="canaries", reason=f"{trained} of {repeats} repeats train; the others are held out"))
    return counts


def _fold(
    planned: Planned, model: PreTrainedModel, material: Material, work: Workplace, notify: Notify
) -> tuple[tuple[StageResult, Weighing], ...]:
    """Run the stages in order on one model, the journal ahead of each step."""
    with open_journal(work.private / JOURNAL_FILE) as journal:
        return tuple(
            _run_stage(position, stage, planned.request, model, material=material, journal=journal, notify=notify)
            for position, stage in enumerate(planned.plan.stages)
        )


def _run_stage(
    position: int,
    plan: StagePlan,
    request: HardenRequest,
    model: PreTrainedModel,
    *,
    material: Material,
    journal: TextIO,
    notify: Notify,
) -> tuple[StageResult, Weighing]:
    records, objective = material.training[plan.stage.text], plan.stage.objective
    weighing = weigh(records, objective, _release(position, plan, request, records, journal))
    if weighing.weight == 1 or (weighing.clamped or 0) > 0.5:
        notify(FellBack(what=f"stage {plan.stage.name}", reason=ALL_ALIKE))
    examples = [make_example(record, objective, released_weight=weighing.weight) for record in records]

    def held_out() -> Perplexity:
        return perplexity(model, material.held_out)

    if plan.sampling_rate is None:
        spend(journal, plan.events[0])
        seed = request.insecure_seed
        return run_plain(model, examples, plan, held_out=held_out, notify=notify, seed=seed), weighing
    result = run_private(
        model,
        examples,
        plan,
        engine=clipped_sum,
        randomness=Randomness(sample=_stream(request, position, "sample"), noise=_stream(request, position, "noise")),
        journal=journal,
        held_out=held_out,
        notify=notify,
    )
    return result, weighing


def _release(
    position: int, plan: StagePlan, request: HardenRequest, records: Sequence[Windows], journal: TextIO
) -> float | None:
    """The corpus' share of sensitive tokens with noise, if the stage's weight asks for it; paid for first."""
    objective = plan.stage.objective
    if not (isinstance(objective, Weighted) and objective.weight == "released"):
        return None
    event = release_event(plan.stage.name, objective)
    spend(journal, event)
    draw = float(_stream(request, position, "release").normals(1)[0])
    return released_share([sensitive_share(record) for record in records], event.noise_multiplier * draw)


def _stream(request: HardenRequest, position: int, purpose: str) -> KeyStream:
    if request.insecure_seed is None:
        return secure_stream()
    return insecure_stream(request.insecure_seed, f"{purpose} of stage {position}")


def _reload(folder: Path) -> Checkpoint:
    try:
        return load_checkpoint(folder)
    except InputError as error:
        raise RunError(f"The hardened model does not load again: {error.problem}", "Try --dtype float32.") from error


def _seal(planned: Planned, work: Workplace, created: str) -> Ledger:
    """The ledger of what was spent, as the journal has it, with the hashes of the weights just written."""
    inherited = planned.inherited.events if planned.inherited else ()
    events = compact(inherited + read_journal(work.private / JOURNAL_FILE))
    seal = {file.name: file_sha256(file) for file in sorted(work.model.glob("*.safetensors"))}
    ledger = planned.plan.ledger.model_copy(
        update={
            "events": events,
            "seal": seal,
            "created": created,
            "software": software(),
        }
    )
    write_ledger(work.model / LEDGER_FILE, ledger)
    return ledger


def _write_reports(public: PublicReport, measured: Measured, material: Material, work: Workplace) -> None:
    (work.model / REPORT_FILE).write_text(public.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (work.model / "README.md").write_text(render_card(public), encoding="utf-8")
    private = private_report(public, measured)
    (work.private / REPORT_FILE).write_text(private.model_dump_json(indent=2) + "\n", encoding="utf-8")
    with (work.private / SPANS_FILE).open("w", encoding="utf-8") as spans:
        spans.writelines(spans_line(record.id, found) + "\n" for record, found in material.flagged)
