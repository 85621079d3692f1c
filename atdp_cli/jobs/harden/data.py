"""What the stages of a run read: spans, windows, and the planted canaries among them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.manifest import read_manifest, token_mismatch
from atdp_cli.errors import InputError
from atdp_cli.events import FellBack, Notify
from atdp_cli.files.private import KEY_BYTES
from atdp_cli.jobs.harden.encoding import Encoding, FlaggedRecord, Windows, encode, flag_corpus
from atdp_cli.jobs.harden.request import HardenRequest, Planned
from atdp_cli.jobs.harden.streams import integer_draws, stream
from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.windows import Window, check_alignment
from atdp_cli.runs.broadcast import main_process_first
from atdp_cli.text.redaction.decoys import WITHOUT, Choose, uniformly
from atdp_cli.text.redaction.placeholders import Masking
from atdp_cli.training.recipe import Text, reads_records


@dataclass(frozen=True, kw_only=True, eq=False)
class RunData:
    """What the stages read, one entry a training record for each text, and the held-out windows.

    Attributes:
        flagged: All records, the held-out ones too, with their spans.
        trained: Those of the training records.
        decoys: Draws decoys for the training records; no two epochs have the same.
    """

    flagged: tuple[FlaggedRecord, ...]
    trained: tuple[FlaggedRecord, ...]
    pipeline: str | None
    training: Mapping[Text, Sequence[Windows]]
    decoys: Callable[[Choose], Sequence[Windows]]
    held_out: Sequence[Window]
    planted: tuple[int, ...] | None

    @property
    def unread(self) -> int:
        """Training records of which no text has a token to learn from."""
        return sum(not any(found) for found in zip(*self.training.values(), strict=True))


def prepare_data(planned: Planned, checkpoint: Checkpoint, notify: Notify) -> RunData:
    """Find the spans, cut every record into windows, and check that planted canaries are among them.

    Raises:
        InputError: No held-out record has a token, the manifest was made for other tokens, or decoys are wanted for
            spans of a contextual tier.
    """
    request, split = planned.request, planned.split
    check_alignment(checkpoint.tokenizer)
    encoding = encoding_of(planned, checkpoint)
    with main_process_first(request.ranks):
        spotted = flag_corpus(split, request, notify)
    training = tuple(one for place, one in enumerate(spotted.records) if place not in split.held_out)
    measured = tuple(one for place, one in enumerate(spotted.records) if place in split.held_out)
    texts = {stage.stage.text for stage in planned.plan.training if reads_records(stage.stage)}
    if Text.DECOY in texts:
        _check_decoys(spotted.records)
    # These decoys are weighed, and never trained on: each epoch draws its own.
    choose = uniformly(integer_draws(stream(request, 0, "decoys")))
    encoded = {text: encode(training, text, encoding, choose) for text in sorted(texts)}
    held_out = [window for windows in encode(measured, Text.RAW, encoding) for window in windows]
    if not any(window.targets.any() for window in held_out):
        raise InputError("No held-out record has a token to predict.", "Give another --valid file, or more records.")
    return RunData(
        flagged=spotted.records,
        trained=training,
        pipeline=spotted.pipeline,
        training=encoded,
        decoys=lambda choose: encode(training, Text.DECOY, encoding, choose),
        held_out=held_out,
        planted=_planted(request, encoded.get(Text.RAW, ()), checkpoint.tokenizer, notify),
    )


def encoding_of(planned: Planned, checkpoint: Checkpoint) -> Encoding:
    """How this run's records become windows; pseudonyms have a key of their own in every run."""
    request, config = planned.request, checkpoint.model.config
    return Encoding(
        tokenizer=checkpoint.tokenizer,
        context=context_length(checkpoint.model),
        windows=request.max_windows,
        masking=Masking(request.style, stream(request, 0, "pseudonyms").uniforms(KEY_BYTES // 8).tobytes()),
        start=config.decoder_start_token_id if config.is_encoder_decoder else None,
    )


def _check_decoys(records: Sequence[FlaggedRecord]) -> None:
    """A file of spans may come from any tier."""
    found = sorted({span.label for one in records for span in one.spans} & WITHOUT)
    if found:
        raise InputError(
            f"The spans hold words of a contextual tier ({', '.join(found)}), and decoys stand for entities.",
            "Write them again by atdp detect --tier high-entity.",
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
    inside = {canary.token_ids for canary in manifest.canaries if canary.planted}
    absent = sum(canary.planted and not count for canary, count in zip(manifest.canaries, counts, strict=True))
    if absent:
        raise InputError(
            f"{absent} of {len(counts)} canaries in {request.manifest} are in no training record of this corpus.",
            "Give the whole corpus that plant-canary wrote; with few repeats, hold out another file by --valid.",
        )
    if any(count and canary.token_ids not in inside for canary, count in zip(manifest.canaries, counts, strict=True)):
        raise InputError(
            f"A canary whose coin left it out of the corpus, in {request.manifest}, is in its training records.",
            "Give the corpus and the manifest that one plant-canary wrote together.",
        )
    repeats = sum(canary.repeats * canary.planted for canary in manifest.canaries)
    trained = sum(records[token_ids + end] for token_ids in inside)
    if trained < repeats:
        notify(FellBack(what="canaries", reason=f"{trained} of {repeats} repeats train; the others are held out"))
    return counts
