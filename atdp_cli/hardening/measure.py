"""Measurements of a model: perplexity and ranks on private text, and surprise on a made-up sentence.

The sentence is the same for every model, so that it reveals nothing of a corpus.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from atdp_cli.audit.manifest import Manifest
from atdp_cli.corpus.record import Record, read_records
from atdp_cli.corpus.spans import FlaggedRecord, Span, Tier
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.detector import Detector
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.errors import AtdpError, InputError
from atdp_cli.files.documents import copy_fields
from atdp_cli.hardening.encode import Encoding, Windows, encode, encoding_for, flag
from atdp_cli.memorisation.ranks import (
    FlaggedValue,
    TokenisedValue,
    compare_ranks,
    pick_alike,
    pick_values,
    tokenise_values,
    value_ranks,
)
from atdp_cli.memorisation.results import ComparedRanks
from atdp_cli.model.chat import ChatTemplate, load_chat_template
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.model.forward import pad
from atdp_cli.model.perplexity import RepeatedValues, perplexity, repeated_values, token_losses
from atdp_cli.model.rendered import as_read
from atdp_cli.model.windows import Window
from atdp_cli.privacy.ledger import unprotected_past
from atdp_cli.replacement.decoys import WITHOUT, public_draws, uniformly
from atdp_cli.reporting.document import TokenEntry
from atdp_cli.reporting.entries import PerplexityEntry, UsefulnessEntry
from atdp_cli.settings import path_of
from atdp_cli.training.plan import Plan
from atdp_cli.training.recipe import TextVariant
from atdp_cli.training.search import RANKED_VALUES, RangeTest

SEARCHED_SAMPLES = 2
"""The number of samples of other training records: one by which a learning rate is chosen, and one that confirms it."""


@dataclass(frozen=True, kw_only=True)
class RankedValues:
    """Flagged values with their decoys, one a record, whose ranks show what a model remembers.

    Attributes:
        training: Of training records; at least one.
        held_out: Of held-out records, with the same labels as far as there are; at least one.
        searched: Samples of other training records, by which a learning rate is chosen and then confirmed; none where
            nothing is searched by them. None of them is empty.
    """

    training: Sequence[TokenisedValue]
    held_out: Sequence[TokenisedValue]
    searched: tuple[Sequence[TokenisedValue], ...] = ()


def pick_ranked(
    plan: Plan,
    manifest: Manifest | None,
    trained: Sequence[FlaggedRecord],
    held_out: Sequence[FlaggedRecord],
    encoding: Encoding,
) -> RankedValues | None:
    """The values to rank; None if nothing can be memorised, or training or held-out records have no value.

    The samples of training records take turns, so that no record is in two of them.
    """
    ledger = plan.ledger
    if not unprotected_past(ledger.checkpoint_history, ledger):  # the stages of this run are in it
        return None
    searched = any(isinstance(stage.search, RangeTest) for stage in plan.training)
    training, control = (
        [_flagged_text(flagged, encoding.chat) for flagged in records]
        for records in (_unplanted(trained, manifest), held_out)
    )
    samples = 1 + SEARCHED_SAMPLES * searched
    values = _tokenised(pick_values(training, most=samples * RANKED_VALUES), encoding)
    if not values:
        return None
    alike = _tokenised(pick_alike(control, [each.value for each in values], most=RANKED_VALUES), encoding)
    own, *others = (values[sample::samples] for sample in range(samples))
    if not alike:
        return None
    return RankedValues(training=own, held_out=alike, searched=tuple(each for each in others if each))


def _flagged_text(flagged: FlaggedRecord, chat: ChatTemplate | None) -> tuple[str, Sequence[Span]]:
    """What a model reads of a record: the first text with a span if there are several."""
    return next((read for read in as_read(flagged, chat) if read[1]), ("", ()))


def _unplanted(records: Sequence[FlaggedRecord], manifest: Manifest | None) -> Sequence[FlaggedRecord]:
    """The records without those of canaries, which an audit is to judge by: no learning rate is chosen by them."""
    if manifest is None:
        return records
    secrets = (secret for each in manifest.canaries for secret in (each.secret, each.other) if secret is not None)
    planted = set(map(manifest.slots().record, secrets))
    return [flagged for flagged in records if (flagged.record.texts or [flagged.record.text])[-1] not in planted]


def _tokenised(values: Sequence[FlaggedValue], encoding: Encoding) -> tuple[TokenisedValue, ...]:
    """Tokenise the values, with the same decoys in every run."""
    return tokenise_values(encoding.tokenizer, values, uniformly(public_draws("ranked decoys")))


def rank_tests(model: PreTrainedModel, ranked: RankedValues) -> Iterator[float]:
    """The p-value of each sample that a search looks at, as in `ComparedRanks`. The model must be in eval mode."""
    held_out = value_ranks(model, ranked.held_out)
    for values in ranked.searched:
        yield compare_ranks(value_ranks(model, values), held_out).p_value


@dataclass(frozen=True, kw_only=True)
class Yardstick:
    """The texts and values that models are measured on, the same in every run.

    Attributes:
        held_out: Windows of the held-out records as they are.
        decoyed: The same with decoys drawn uniformly; none where spans of a contextual tier have no decoys.
        ranked: None where raw text can't have been memorised, nothing reads decoys, or no training or no held-out
            record has a value with a rank.
    """

    held_out: Sequence[Window]
    decoyed: Sequence[Window]
    ranked: RankedValues | None


def make_yardstick(records: Sequence[FlaggedRecord], encoding: Encoding, ranked: RankedValues | None) -> Yardstick:
    """The yardstick of some held-out records.

    Raises:
        InputError: None has a token to predict.
    """
    held_out = [window for windows in encode(records, TextVariant.RAW, encoding) for window in windows]
    if not any(window.targets.any() for window in held_out):
        raise InputError("No held-out record has a token to predict.", "Give another --eval-data, or more records.")
    choose = uniformly(public_draws("held-out decoys"))
    decoyed = () if without_decoys(records) else encode(records, TextVariant.DECOY, encoding, choose)
    return Yardstick(held_out=held_out, decoyed=[window for windows in decoyed for window in windows], ranked=ranked)


def without_decoys(records: Sequence[FlaggedRecord]) -> list[str]:
    """The labels of spans that have no decoys."""
    return sorted({span.label for record in records for span in record.spans} & WITHOUT)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A model's figures on a yardstick: perplexities of held-out records, raw and with decoys, ranks of values, and how
    repeated values of the decoyed records are continued.
    """

    raw: PerplexityEntry
    decoyed: PerplexityEntry | None
    ranks: ComparedRanks | None
    repeated: RepeatedValues | None = None

    def usefulness(self, of: str) -> Iterator[UsefulnessEntry]:
        """What the model can do, as the report has it; nothing without decoys."""
        if self.repeated is not None and self.decoyed is not None:
            yield copy_fields(UsefulnessEntry, self.repeated, of=of, perplexity=self.decoyed, raw=self.raw)


def measure(checkpoint: Checkpoint, on: Yardstick) -> Measured:
    """Measure a model, which must be in eval mode."""
    model, ranks = checkpoint.model, None
    if on.ranked is not None:
        ranks = compare_ranks(value_ranks(model, on.ranked.training), value_ranks(model, on.ranked.held_out))
    return Measured(
        raw=copy_fields(PerplexityEntry, perplexity(model, on.held_out)),
        decoyed=copy_fields(PerplexityEntry, perplexity(model, on.decoyed)) if on.decoyed else None,
        ranks=ranks,
        repeated=repeated_values(model, checkpoint.tokenizer, on.decoyed) if on.decoyed else None,
    )


@dataclass(frozen=True, kw_only=True)
class Given:
    """MODEL, where the run started from another.

    Attributes:
        seal: SHA-256 of each of its files.
        measured: None where it reads other tokens than the result.
    """

    seal: Mapping[str, str]
    measured: Measured | None


def measure_given(folder: Path | None, start: Checkpoint, on: Yardstick) -> Given | None:
    """Measure MODEL where the run starts from another; None where it does not, or MODEL cannot be loaded."""
    if folder is None:
        return None
    try:
        given = load_checkpoint(folder, str(start.model.device))
    except AtdpError:  # nothing but its figures is asked of it
        return None
    same_tokens = given.tokenizer_sha256 == start.tokenizer_sha256
    return Given(seal=given.seal, measured=measure(given, replace(on, ranked=None)) if same_tokens else None)


MOST_WINDOWS = 8
"""Of a record; what is longer is left out."""


def compare(
    models: Sequence[Path | str],
    eval_data: Path | str,
    *,
    text_field: str = "text",
    privacy_unit: str = "line",
    device: str = "auto",
) -> tuple[UsefulnessEntry, ...]:
    """Compare models by records that none of them read, with fresh values in place of what the detector flags.

    Equal values of a record are equal in its fresh ones, which are the same for every model and call. How often does a
    model say a value again that the record has before, and what is its perplexity?

        [base, mine, hardened] = compare(["base", "mine", "mine-hardened"], "heldout.jsonl", text_field="messages")

    Args:
        models: Folders as `harden` and `audit_canary` take them.
        eval_data: A corpus file.
        text_field, privacy_unit, device: As for `harden`.

    Returns:
        An entry for each model, in order; none where the text has nothing that decoys stand for.

    Raises:
        InputError: A model or the file cannot be read, or no record has a token to predict.
    """
    records = list(read_records(path_of(eval_data, "eval_data"), unit=privacy_unit, text_field=text_field))
    flagged = flag(detect_records(records, pipeline=load_pipeline()), None, Tier.LOW_ENTITY)
    talks = any(record.turns for record in records)
    entries: list[UsefulnessEntry] = []
    for folder in models:
        checkpoint = load_checkpoint(path_of(folder, "models"), device, audited=True)
        chat = load_chat_template(checkpoint.tokenizer, None) if talks else None
        encoding = encoding_for(checkpoint, chat, windows=MOST_WINDOWS)
        entries += measure(checkpoint, make_yardstick(flagged, encoding, None)).usefulness(str(folder))
    return tuple(entries)


@dataclass(frozen=True, kw_only=True)
class Surprise:
    """How surprising each token of a sentence is to a model, in bits, flagged as the detector would.

    Attributes:
        bits: -log₂ of each token's probability; None for the first one where nothing precedes it.
    """

    tokens: tuple[str, ...]
    sensitive: tuple[bool, ...]
    bits: tuple[float | None, ...]


def mark_sentence(text: str, detector: Detector, checkpoint: Checkpoint, pipeline: Any) -> Windows:
    """The windows of a sentence, with what the detector flags in it without term lists.

    Args:
        pipeline: From `load_pipeline`.
    """
    detections = detect_records(
        [Record(id="1", text=text)],
        pipeline=pipeline,
        speaker_labels=detector.speaker_labels,
        label_filter=detector.label_filter,
    )
    flagged = flag(detections, None, detector.tier)
    [windows] = encode(flagged, TextVariant.RAW, encoding_for(checkpoint, None, windows=1))
    return windows


@torch.inference_mode()
def surprise(checkpoint: Checkpoint, windows: Windows) -> Surprise:
    """Bits of the text's tokens in the first window; start and end tokens are left out."""
    if not windows:
        return Surprise(tokens=(), sensitive=(), bits=())
    window = windows[0]
    losses = token_losses(checkpoint.model, pad([window]))[0].cpu().double() / log(2)
    special = set(checkpoint.tokenizer.all_special_ids)
    ids = window.token_ids.tolist()
    positions = [position for position, token in enumerate(ids) if token not in special]
    return Surprise(
        tokens=tuple(checkpoint.tokenizer.decode([ids[position]]) for position in positions),
        sensitive=tuple(bool(window.sensitive[position]) for position in positions),
        bits=tuple(float(losses[position - 1]) if position else None for position in positions),
    )


def compare_surprise(before: Surprise, after: Surprise) -> tuple[TokenEntry, ...]:
    """The surprise of both models, token by token."""
    return tuple(
        TokenEntry(text=text, sensitive=flagged, before=first, after=second)
        for text, flagged, first, second in zip(before.tokens, before.sensitive, before.bits, after.bits, strict=True)
    )
