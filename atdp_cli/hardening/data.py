"""The data of a run's stages: spans, windows, planted canaries, and what people review before an epoch."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.manifest import Manifest, token_mismatch, tokens_after
from atdp_cli.corpus.spans import FlaggedRecord
from atdp_cli.corpus.split import Split
from atdp_cli.detection.detector import Detector, options_given, run_detector
from atdp_cli.detection.review.queue import Header, writable, write_queue
from atdp_cli.detection.review.run import lists_beside
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import ChoiceWarning, Notify, ReviewQueued, ignore
from atdp_cli.files.atomic_write import real_path
from atdp_cli.hardening.encode import Encoding, Windows, encode, encoding_for, flag, flag_corpus
from atdp_cli.hardening.measure import Yardstick, make_yardstick, mark_sentence, pick_ranked, without_decoys
from atdp_cli.hardening.model import LoadedModel, reads_one_text
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.memorisation.ranks import spread
from atdp_cli.model.chat import chat_template_for
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.windows import Window, check_alignment
from atdp_cli.privacy.rng import KeyStream
from atdp_cli.replacement.decoys import Choose, integer_draws, uniformly
from atdp_cli.replacement.equality import DecoyEquality
from atdp_cli.reporting.document import MADE_UP_SENTENCE
from atdp_cli.training.parallel.collectives import main_process_first
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import TextVariant, reads_records

T = TypeVar("T")

EpochData = Callable[[StagePlan, int, Choose], Sequence[Windows]]
"""(stage, epoch, what decoys are drawn with) → the training records' windows as the current term lists flag them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunData:
    """The data of the stages, one entry a training record for each text, and the held-out windows.

    Attributes:
        pipeline: The spaCy pipeline; None where the run reads spans from a file and needs none.
        flagged: All records, the held-out ones too, with their spans.
        trained: Those of the training records.
        held_out_records: Those of the held-out records.
        training: Windows of the training records, by text.
        yardstick: What the model is measured on before and after.
        planted: How many training records carry each canary; None where there is no manifest or no raw text is read.
        sentence: The made-up sentence; none for a model that reads one text and writes another.
    """

    pipeline: Any
    encoding: Encoding
    flagged: tuple[FlaggedRecord, ...]
    trained: tuple[FlaggedRecord, ...]
    held_out_records: tuple[FlaggedRecord, ...]
    training: Mapping[TextVariant, Sequence[Windows]]
    yardstick: Yardstick
    planted: tuple[int, ...] | None
    sentence: Windows

    def decoys(self, choose: Choose, equality: DecoyEquality = "record") -> Sequence[Windows]:
        """The training records with decoys; each epoch draws its own."""
        return encode(self.trained, TextVariant.DECOY, self.encoding, choose, equality)

    def held_out_decoys(self, choose: Choose, equality: DecoyEquality, *, most: int) -> Sequence[Window]:
        """Windows of at most so many held-out records, evenly apart by position, with decoys."""
        records = [self.held_out_records[place] for place in spread(len(self.held_out_records), most)]
        return [
            each for windows in encode(records, TextVariant.DECOY, self.encoding, choose, equality) for each in windows
        ]


def prepare_data(planned: Planned, loaded: LoadedModel, stream: KeyStream, notify: Notify) -> RunData:
    """Find the spans, cut every record into windows, and check that planted canaries are among them.

    Args:
        stream: For the decoys that are weighed.

    Raises:
        InputError: No held-out record has a token, the manifest was made for other tokens, or decoys are wanted for
            spans of a contextual tier.
    """
    request, split, checkpoint, pipeline = planned.request, planned.split, loaded.checkpoint, loaded.pipeline
    tokenizer = checkpoint.tokenizer
    check_alignment(tokenizer)
    encoding = _encoding(planned, checkpoint)
    if planned.manifest is not None:
        _check_learnt(planned.manifest, encoding)
    with_sentence = reads_one_text(checkpoint)
    with main_process_first(request.ranks):
        flagged = flag_corpus(split, request, pipeline, notify)
    trained = training_records(flagged, split)
    texts = {stage.stage.text for stage in planned.plan.training if reads_records(stage.stage)}
    if TextVariant.DECOY in texts:
        _check_decoys(flagged)
    # These decoys are weighed, and never trained on: each epoch draws its own.
    choose = uniformly(integer_draws(stream))
    training = {text: encode(trained, text, encoding, choose) for text in sorted(texts)}
    held_out_records = tuple(record for place, record in enumerate(flagged) if place in split.held_out)
    ranked = None
    if TextVariant.DECOY in texts and with_sentence:
        ranked = pick_ranked(planned.plan, planned.manifest, trained, held_out_records, encoding)
    yardstick = make_yardstick(held_out_records, encoding, ranked)
    planted = None
    if planned.manifest is not None:
        # Where only decoys or placeholders are read the corpus must still be the one that was planted.
        raw = training.get(TextVariant.RAW) or (encode(trained, TextVariant.RAW, encoding) if training else ())
        planted = _planted(planned.manifest, request.manifest, raw, tokenizer, notify)
    return RunData(
        pipeline=pipeline,
        encoding=encoding,
        flagged=flagged,
        trained=trained,
        held_out_records=held_out_records,
        training=training,
        yardstick=yardstick,
        planted=planted if TextVariant.RAW in training else None,
        sentence=mark_sentence(MADE_UP_SENTENCE, request.detector, checkpoint, pipeline) if with_sentence else (),
    )


def training_records(records: Sequence[T], split: Split) -> tuple[T, ...]:
    """The records that are not held out, in order."""
    return tuple(record for position, record in enumerate(records) if position not in split.held_out)


def _encoding(planned: Planned, checkpoint: Checkpoint) -> Encoding:
    """The encoding of this run's records."""
    request = planned.request
    chat = chat_template_for(planned.split, checkpoint.tokenizer, request.chat_template)
    if chat is not None and not reads_one_text(checkpoint):
        raise UsageError(
            "Conversations are learnt by decoders, and the model is an encoder-decoder one.",
            "Give fields of text by run.source-field and --text-field.",
        )
    return encoding_for(checkpoint, chat, windows=request.max_windows, loss_on=request.loss_on or "assistant")


def _check_decoys(records: Sequence[FlaggedRecord]) -> None:
    """A file of spans may come from any tier."""
    if contextual := without_decoys(records):
        raise InputError(
            f"The spans hold words of a contextual tier ({', '.join(contextual)}), and decoys stand for entities.",
            "Write them again by atdp detect --tier high-entity.",
        )


def _check_learnt(manifest: Manifest, encoding: Encoding) -> None:
    said = manifest.conversation
    if said is not None and encoding.loss_on == "assistant" and said.role != "assistant":
        raise UsageError(
            f"The canaries of --manifest are said by the {said.role}, and run.loss-on=assistant learns none of them.",
            "Use --set run.loss-on=all; or leave --manifest out, and audit what a model knows that only read them.",
        )


def _planted(
    manifest: Manifest,
    path: Path | None,
    training: Sequence[Windows],
    tokenizer: PreTrainedTokenizerFast,
    notify: Notify,
) -> tuple[int, ...] | None:
    """How many training records carry each canary, token for token; None where no record is read."""
    if problem := token_mismatch(manifest, tokenizer):
        raise InputError(problem, "Plant the canaries again with --tokenizer of this model.")
    if not training:
        return None
    end = tokens_after(manifest, tokenizer)
    records = Counter(tuple(windows[0].token_ids.tolist()) for windows in training if len(windows) == 1)
    counts = tuple(records[canary.token_ids + end] for canary in manifest.canaries)
    inside = {canary.token_ids for canary in manifest.canaries if canary.planted}
    absent = sum(canary.planted and not count for canary, count in zip(manifest.canaries, counts, strict=True))
    if absent:
        raise InputError(
            f"{absent} of {len(counts)} canaries in {path} are in no training record of this corpus.",
            "Give the whole corpus that plant-canary wrote; with few repeats, hold out another file by --eval-data.",
        )
    if any(count and canary.token_ids not in inside for canary, count in zip(manifest.canaries, counts, strict=True)):
        raise InputError(
            f"A canary whose coin left it out of the corpus, in {path}, is in its training records.",
            "Give the corpus and the manifest that one plant-canary wrote together.",
        )
    repeats = sum(canary.repeats * canary.planted for canary in manifest.canaries)
    trained = sum(records[token_ids + end] for token_ids in inside)
    if trained < repeats:
        notify(ChoiceWarning(what="canaries", reason=f"{trained} of {repeats} repeats train; the others are held out"))
    return counts


REVIEW_FOLDER = "review"


def review_each_epoch(
    request: SettledRequest, split: Split, data: RunData, private_folder: Path, notify: Notify
) -> EpochData | None:
    """The training records before each epoch, as people's term lists flag them; None without --review-each-epoch.

    Every epoch gets a queue of its own in `OUT.private/review/`, a sample of the sentences as they are flagged
    then. `atdp review` writes its lists beside it; those of all queues so far, also of an interrupted run, are added
    to the lists of the run. Training does not wait for anybody.

    Source: the audit of "Adaptive Token-Weighted Differential Privacy for LLMs": 1 % of the sentences an epoch.
    """
    if request.review is None:
        return None
    folder = private_folder / REVIEW_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    for half_written in folder.glob(".*.jsonl.*.tmp"):  # by an interrupted run
        half_written.unlink()
    corpora = request.data if request.eval_data is None else (*request.data, request.eval_data)
    header = Header(
        corpora=tuple(writable(str(real_path(path))) for path in corpora),
        unit=request.privacy_unit,
        text_field=request.text_field,
        turns=None if request.turns is None else writable(request.turns),
        tier=request.detector.tier,
        review_share=request.review,
        options={name: writable(value) for name, value in options_given(request.detector).items()},
    )

    def epoch_data(plan: StagePlan, epoch: int, choose: Choose) -> Sequence[Windows]:
        queues = sorted(folder.glob("[0-9]*-epoch-*.jsonl"))
        detector = _with_lists(request.detector, queues)
        detections = tuple(run_detector(split.records, detector, data.pipeline, ignore))
        queue = folder / f"{len(queues) + 1}-{plan.stage.name}-epoch-{epoch}.jsonl"
        queued = write_queue(queue, detections, header, random.SystemRandom())
        notify(ReviewQueued(queue=str(queue), sentences=queued.flagged + queued.unflagged))
        sources = None if split.sources is None else run_detector(split.sources, detector, data.pipeline, ignore)
        records = training_records(flag(detections, sources, detector.tier), split)
        return encode(records, plan.stage.text, data.encoding, choose, plan.stage.decoy_equality)

    return epoch_data


def _with_lists(detector: Detector, queues: Sequence[Path]) -> Detector:
    reviewed = [lists_beside(queue) for queue in queues]
    return replace(
        detector,
        allow=(*detector.allow, *(lists.allow for lists in reviewed if lists.allow.is_file())),
        deny=(*detector.deny, *(lists.deny for lists in reviewed if lists.deny.is_file())),
    )
