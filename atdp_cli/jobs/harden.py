"""`atdp harden` as a function: fold a recipe over a checkpoint, and write the model with its report."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.errors import InputError, RunError
from atdp_cli.events import Notify
from atdp_cli.jobs.describe import Measured, private_report, public_report
from atdp_cli.jobs.encoding import Windows
from atdp_cli.jobs.machine import hardware
from atdp_cli.jobs.material import Material, prepare
from atdp_cli.jobs.modelcard import inherited_card
from atdp_cli.jobs.opening import Opened
from atdp_cli.jobs.recipes import resolved
from atdp_cli.jobs.reporting import write_reports
from atdp_cli.jobs.request import HardenRequest, Planned
from atdp_cli.jobs.reviewing import review_each_epoch
from atdp_cli.jobs.sentence import compared, marked, surprise
from atdp_cli.jobs.stages import Bench, fold
from atdp_cli.jobs.stopping import enough, watch, write_unseen
from atdp_cli.jobs.workplace import FAILED, Workplace, beside, check_output, publish, workplace
from atdp_cli.model.adapter import merged
from atdp_cli.model.checkpoint import (
    Checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from atdp_cli.model.folder import is_adapter, weight_files
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.privacy.guarantee import Guarantee, guarantees
from atdp_cli.privacy.journal import JOURNAL_FILE, read_journal
from atdp_cli.privacy.ledger import (
    LEDGER_FILE,
    Ledger,
    LedgerEvent,
    SubsampledGaussian,
    compact,
    file_sha256,
    software,
    timestamp,
    write_ledger,
)
from atdp_cli.report.document import MADE_UP_SENTENCE
from atdp_cli.text.corrections import read_terms
from atdp_cli.text.spanfile import spans_line
from atdp_cli.training.objective import sensitive_share
from atdp_cli.training.recipefile import RECIPE_FILE, write_recipe
from atdp_cli.training.stage import Enough

SPANS_FILE = "spans.jsonl"


@dataclass(frozen=True, kw_only=True)
class Hardened:
    """A finished run. Perplexities are of held-out private text.

    Attributes:
        output: Where the model is: OUT/, or OUT.failed/ where its perplexity rose above the limit.
        failed: Why it is there, as a sentence.
    """

    output: Path
    ledger: Ledger
    guarantees: tuple[Guarantee, ...]
    before: Perplexity
    after: Perplexity
    steps: int
    seconds: float
    failed: str | None = None


def harden(planned: Planned, opened: Opened, notify: Notify) -> Hardened:
    """Run the plan and write OUT/ and OUT.private/, or OUT.failed/ and OUT.failed.private/.

    Raises:
        InputError: The manifest or the spans do not fit, or no held-out record has a token.
        RunError: Training left the finite numbers, or the result does not load again.
    """
    started, created = time.monotonic(), timestamp()
    request, checkpoint = planned.request, opened.checkpoint
    if request.max_increase is not None:
        check_output(beside(request.output, FAILED), force=request.force)
    with workplace(request.output, force=request.force) as work:
        material = prepare(planned, checkpoint, notify)
        before = perplexity(checkpoint.model, material.held_out)
        sentence = _sentence(request, checkpoint)
        expected = surprise(checkpoint, sentence)
        bench = Bench(
            request=request,
            model=checkpoint.model,
            reference=opened.reference,
            material=material,
            engine=opened.engine.run,
            reread=review_each_epoch(planned, checkpoint, work, notify),
            enough=_enough(request, opened, work, notify),
            notify=notify,
        )
        results = fold(planned, bench, work)
        finished = merged(checkpoint.model) if request.merge_adapter else checkpoint.model
        save_checkpoint(finished, checkpoint.tokenizer, work.model, request.dtype or checkpoint.stored_dtype)
        written = _reload(work.model)
        after = perplexity(written.model, material.held_out)
        if after.all is None or not math.isfinite(after.all):
            raise RunError("The hardened model's held-out perplexity is not finite.", "Lower the learning rate.")
        ledger = _seal(planned, work, created)
        found = guarantees(ledger)
        measured = Measured(
            engine=opened.engine,
            before=before,
            after=after,
            results=[result for result, _ in results],
            weighings=[weighing for _, weighing in results],
            seconds=time.monotonic() - started,
            sensitive_share=sensitive_share(material.held_out),
            pipeline=material.pipeline,
            planted=material.planted,
            start={file.name: file_sha256(file) for file in weight_files(request.model)},
            sentence=compared(expected, surprise(written, sentence)),
            hardware=hardware(checkpoint.model.device),
            card=inherited_card(
                request.model,
                encoder=bool(checkpoint.model.config.is_encoder_decoder),
                adapter=is_adapter(work.model),
            ),
            flagged_spans=sum(len(one.spans) for one in material.trained),
            unread_records=material.unread,
            listed_terms=sum(len(read_terms(file)) for file in (*request.detector.allow, *request.detector.deny)),
        )
        write_recipe(work.model / RECIPE_FILE, resolved(planned))
        public = public_report(planned, ledger, found, measured)
        write_reports(work.model, work.private, public, private_report(public, measured, request.command))
        _write_spans(material, work)
        failed = _failed(before, after, request.max_increase)
        output = request.output if failed is None else beside(request.output, FAILED)
        publish(work, output)
    return Hardened(
        output=output,
        ledger=ledger,
        guarantees=found,
        before=before,
        after=after,
        steps=planned.plan.steps,
        seconds=measured.seconds,
        failed=failed,
    )


def _enough(request: HardenRequest, opened: Opened, work: Workplace, notify: Notify) -> Enough | None:
    """The stopping rule that --until-exposure asks for, the canaries that it never looks at written down."""
    if request.until_exposure is None or request.manifest is None or opened.reference is None:
        return None
    tokenizer, model = opened.checkpoint.tokenizer, opened.checkpoint.model
    watching = watch(request.manifest, request.until_exposure, tokenizer, opened.reference, notify)
    write_unseen(watching, work.private)
    return lambda: enough(model, watching, notify)


def _failed(before: Perplexity, after: Perplexity, limit: float | None) -> str | None:
    """What --max-perplexity-increase says to the result; None where it is within."""
    if limit is None or before.all is None or after.all is None:
        return None
    rise = after.all / before.all - 1
    if rise <= limit:
        return None
    return f"Held-out perplexity rose by {rise:.1%}, more than --max-perplexity-increase {limit:.4g} allows."


def _reload(folder: Path) -> Checkpoint:
    try:
        return load_checkpoint(folder)
    except InputError as error:
        raise RunError(f"The hardened model does not load again: {error.problem}", "Try --dtype float32.") from error


def _seal(planned: Planned, work: Workplace, created: str) -> Ledger:
    """The ledger of what was spent, as the journal has it, with the hashes of the weights just written."""
    before = planned.plan.before
    spent = read_journal(work.private / JOURNAL_FILE)
    if _steps(before) + _steps(spent) < _steps(planned.plan.ledger.events):
        raise RunError("The journal has fewer steps than were taken.", "Run again; report this if it happens twice.")
    events = compact(before + spent)
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


def _steps(events: Sequence[LedgerEvent]) -> int:
    return sum(event.steps for event in events if isinstance(event, SubsampledGaussian))


def _sentence(request: HardenRequest, checkpoint: Checkpoint) -> Windows:
    """The made-up sentence for this model; none for a model that reads one text and says another."""
    if checkpoint.model.config.is_encoder_decoder:
        return ()
    return marked(MADE_UP_SENTENCE, request.detector.tier, checkpoint, pipeline=request.detector.pipeline)


def _write_spans(material: Material, work: Workplace) -> None:
    with (work.private / SPANS_FILE).open("w", encoding="utf-8") as spans:
        spans.writelines(spans_line(one.record.id, one.spans) + "\n" for one in material.flagged)
