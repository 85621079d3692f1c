"""A check that each planted canary reaches the loss of a trainer, with the reason if not."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.manifest import Manifest, token_mismatch
from atdp_cli.errors import InputError, UsageError
from atdp_cli.integrations.canary_search import (
    UNCOUNTED,
    CanarySearch,
    CanaryTokens,
    FoundCanaries,
    Match,
    Tokens,
    canary_tokens,
    sequences,
)

Example = str | Mapping[str, Any]
"""A training example before any template or tokenizer: a text, or a dict with text or messages somewhere in it."""


class Unreached(StrEnum):
    """Why a canary does not train as the manifest says."""

    MASKED = "masked"
    PACKED_ACROSS = "packed across"
    TRUNCATED = "truncated"
    TEMPLATE_DROPPED = "template dropped"
    DEDUPLICATED = "deduplicated"
    HELD_OUT = "held out"
    OTHER_TOKENS = "other tokens"
    NO_GRADIENT = "no gradient"
    NOT_PLANTED = "not planted"
    LEFT_OUT = "left out"
    ABSENT = "absent"


EXPLANATIONS: Mapping[Unreached, str] = {
    Unreached.MASKED: "It is read, and the loss leaves out a token of its secret: its label is -100.",
    Unreached.PACKED_ACROSS: "Packing cut it: it begins at the end of one sequence and goes on in another.",
    Unreached.TRUNCATED: "It is cut off: a sequence ends, or begins, in the middle of it.",
    Unreached.TEMPLATE_DROPPED: "It is in the examples, and the chat template leaves it out.",
    Unreached.DEDUPLICATED: "Fewer records carry it than were planted: duplicates were removed, or some held out.",
    Unreached.HELD_OUT: "It is in none of the examples.",
    Unreached.OTHER_TOKENS: "Its text is read as other tokens than those that were planted and are audited.",
    Unreached.NO_GRADIENT: "It is in the loss, and no trainable parameter gets a finite gradient from it.",
    Unreached.NOT_PLANTED: "Its coin left it out of the corpus, and it is read all the same.",
    Unreached.LEFT_OUT: "It is in the examples and in no batch: filtered, cut off before it begins, or in a last batch "
    "that is dropped.",
    Unreached.ABSENT: "It is in no batch: held out, filtered, cut off before it begins, or in a last batch that is "
    "dropped. Give the examples to tell.",
}


@dataclass(frozen=True, kw_only=True)
class CanaryReach:
    """Whether one canary reached the loss. Counts are over one pass of the data loader.

    Attributes:
        number: Its place in the manifest, from 0.
        planted: Records that carry its secret by the manifest; 0 where its coin left it out.
        trained: Places where the manifest's tokens stand in a row and the loss counts every token of the secret.
        alone: Of those, where nothing but the start token stands before it, which is what the audit scores.
        masked: Places where they stand, and the loss leaves out a token of the secret.
        reason: Why it does not train as often as it was planted; None where it does.
    """

    number: int
    planted: int
    trained: int
    alone: int
    masked: int
    reason: Unreached | None

    @property
    def reached(self) -> bool:
        """Whether it trains as the manifest says."""
        return self.reason is None

    @property
    def explanation(self) -> str:
        """The reason as a sentence, with the counts; empty where there is none."""
        if self.reason is None:
            return ""
        return f"{EXPLANATIONS[self.reason]} Planted {self.planted}, in the loss {self.trained}, masked {self.masked}."


def verify_canaries(
    dataloader: Iterable[Mapping[str, Any]],
    manifest: Manifest,
    tokenizer: PreTrainedTokenizerFast,
    *,
    examples: Iterable[Example] | None = None,
    model: torch.nn.Module | None = None,
) -> tuple[CanaryReach, ...]:
    """Prove for each canary of the manifest that a trainer's batches put its secret into the loss.

    The manifest's tokens (without the start token) must stand in a row in a sequence, and each token of the secret must
    be its own label, not -100. That holds under packing, truncation, chat templates and assistant-only masks, as the
    batches are what is left after all of them. Nothing is claimed of what the model learns from it.

    Args:
        dataloader: `trainer.get_train_dataloader()`. It is read once, and again where text must be compared; its random
            state stays as it was.
        tokenizer: The model's; the canaries must have been planted for it.
        examples: What the trainer was given, before templates and tokens. With them a canary that was held out, one
            that was removed as a duplicate and one that a chat template drops can be told apart.
        model: As it will be trained, with its adapter and in its settings. With it one forward and backward pass a
            canary shows that its secret's tokens alone give some trainable parameter a gradient. Parameters, their
            gradients and the random state stay as they were.

    Returns:
        One result a canary, in the manifest's order. No result holds a secret.

    Raises:
        InputError: The tokenizer splits the canaries otherwise, or the batches hold no labels.
        UsageError: Several processes train, and each would see its own share alone; or `examples` is a DatasetDict.
    """
    if isinstance(examples, Mapping | str):
        raise UsageError(f"examples is a {type(examples).__name__}, and no row of it an example.", "Give one split.")
    if (
        torch.distributed.is_available()
        and torch.distributed.is_initialized()
        and torch.distributed.get_world_size() > 1
    ):
        raise UsageError("Each of several processes reads a share of the canaries.", "Verify them in one process.")
    if problem := token_mismatch(manifest, tokenizer):
        raise InputError(problem, "Plant the canaries again with --tokenizer of this model.")
    canaries = canary_tokens(manifest, tokenizer)
    with torch.random.fork_rng():
        counts, without_gradient = _read(dataloader, canaries, tokenizer, model)
    results = [
        _judged(number, tokens, _planted(manifest, canary.token_ids), counts, without_gradient)
        for number, (canary, tokens) in enumerate(zip(manifest.canaries, canaries, strict=True))
    ]
    missing = [result for result in results if result.reason is Unreached.ABSENT]
    if not missing:
        return tuple(results)
    with torch.random.fork_rng():
        reasons = _by_text(dataloader, manifest, tokenizer, missing, examples)
    unexplained = [result for result in missing if result.number not in reasons]
    reasons |= _by_count(unexplained, canaries, counts, has_examples=examples is not None)
    return tuple(replace(result, reason=reasons.get(result.number, result.reason)) for result in results)


def _planted(manifest: Manifest, token_ids: Tokens) -> int:
    """Records with these tokens: two canaries may have drawn one secret."""
    return sum(canary.repeats for canary in manifest.canaries if canary.planted and canary.token_ids == token_ids)


def _read(
    dataloader: Iterable[Mapping[str, Any]],
    canaries: Sequence[CanaryTokens],
    tokenizer: PreTrainedTokenizerFast,
    model: torch.nn.Module | None,
) -> tuple[FoundCanaries, set[Tokens]]:
    """Count the canaries in each batch, and find those that give no trainable parameter a gradient."""
    search, tried, without = CanarySearch(canaries, tokenizer.bos_token_id), set[Tokens](), set[Tokens]()
    for batch in dataloader:
        for sequence in sequences(batch):
            for match in search.read(sequence):
                if model is not None and match.canary.ids not in tried:
                    tried.add(match.canary.ids)
                    if not gives_gradient(model, batch, match):
                        without.add(match.canary.ids)
    return search.counts, without


def _judged(
    number: int, tokens: CanaryTokens, planted: int, counts: FoundCanaries, without_gradient: set[Tokens]
) -> CanaryReach:
    trained, masked = counts.trained[tokens.ids], counts.masked[tokens.ids]
    if not planted:
        reason = Unreached.NOT_PLANTED if trained + masked else None
    elif trained >= planted:
        reason = Unreached.NO_GRADIENT if tokens.ids in without_gradient else None
    else:
        reason = Unreached.MASKED if masked else _cut(tokens, counts)
    return CanaryReach(
        number=number,
        planted=planted,
        trained=trained,
        alone=counts.alone[tokens.ids],
        masked=masked,
        reason=reason,
    )


def _cut(tokens: CanaryTokens, counts: FoundCanaries) -> Unreached:
    ids = tokens.ids
    pieces = [(counts.tails[ids[:place]], counts.heads[ids[place:]]) for place in range(1, len(ids))]
    if any(tail and head for tail, head in pieces):
        return Unreached.PACKED_ACROSS
    # Only a piece with some of the secret, or a whole one, tells which canary it is from.
    tails = any(tail for place, (tail, _) in enumerate(pieces, start=1) if place > tokens.first)
    heads = any(head for place, (_, head) in enumerate(pieces, start=1) if place <= tokens.first)
    return Unreached.TRUNCATED if tails or heads else Unreached.ABSENT


def _by_text(
    dataloader: Iterable[Mapping[str, Any]],
    manifest: Manifest,
    tokenizer: PreTrainedTokenizerFast,
    missing: Sequence[CanaryReach],
    examples: Iterable[Example] | None,
) -> dict[int, Unreached]:
    """The reasons, by the texts of batches and examples, for canaries whose tokens are in no batch, or in too few."""
    template = manifest.slots()
    patterns = {reach.number: _pattern(template.record(manifest.canaries[reach.number].secret)) for reach in missing}
    read, given, dropped = Counter[int](), Counter[int](), set[int]()
    for batch in dataloader:
        for sequence in sequences(batch):
            text = tokenizer.decode(sequence.ids.tolist())
            read.update({number: len(pattern.findall(text)) for number, pattern in patterns.items()})
    for example in examples or ():
        text = "\n".join(texts_in(example))
        here = {number for number, pattern in patterns.items() if pattern.search(text)}
        given.update(here)
        rendered = _rendered(example, tokenizer) if here else None
        dropped |= {number for number in here if rendered is not None and not patterns[number].search(rendered)}
    reasons = {}
    for reach in missing:
        if read[reach.number] > reach.trained:
            reasons[reach.number] = Unreached.OTHER_TOKENS
        elif examples is not None and given[reach.number] < reach.planted:
            reasons[reach.number] = Unreached.DEDUPLICATED if given[reach.number] else Unreached.HELD_OUT
        elif reach.number in dropped:
            reasons[reach.number] = Unreached.TEMPLATE_DROPPED
    return reasons


def _pattern(record: str) -> re.Pattern[str]:
    """A canary's text, and not the longer one of another canary that begins with it."""
    return re.compile(re.escape(record) + r"(?!\w)")


def texts_in(value: Any) -> Iterator[str]:
    """All strings in an example, in lists and dicts as deep as they go."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(part)


def _rendered(example: Example, tokenizer: PreTrainedTokenizerFast) -> str | None:
    """An example as the chat template renders it; None if it is no conversation, or without a template."""
    if isinstance(example, str) or tokenizer.chat_template is None:
        return None
    messages = example.get("messages")
    if messages is None and isinstance(example.get("prompt"), list):
        messages = [*example["prompt"], *example.get("completion", ())]
    return None if messages is None else str(tokenizer.apply_chat_template(messages, tokenize=False))


def _by_count(
    missing: Sequence[CanaryReach], canaries: Sequence[CanaryTokens], counts: FoundCanaries, *, has_examples: bool
) -> dict[int, Unreached]:
    """The reasons, by counts, for canaries that no text explains.

    Sequences that end before a secret fit every canary: they explain the missing ones only if they are as many.

    Args:
        has_examples: The examples are known, and hold all of them.
    """
    begins = {
        canaries[reach.number].ids[:place] for reach in missing for place in range(1, canaries[reach.number].first + 1)
    }
    if missing and sum(counts.tails[ids] for ids in begins) >= sum(reach.planted - reach.trained for reach in missing):
        return {reach.number: Unreached.TRUNCATED for reach in missing}
    if has_examples:
        return {reach.number: Unreached.LEFT_OUT for reach in missing}
    return {reach.number: Unreached.DEDUPLICATED for reach in missing if reach.trained}


def gives_gradient(model: torch.nn.Module, batch: Mapping[str, Any], match: Match) -> bool:
    """Whether the loss of a secret's tokens alone gives a trainable parameter a gradient that is finite and not 0.

    The model runs in training mode, as the trainer has it, since checkpointed activations lose gradients only there.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        return False
    place = next(model.parameters()).device
    inputs = {
        name: value[match.row : match.row + 1].to(place) if _of_rows(value, batch) else value
        for name, value in batch.items()
    }
    labels = torch.full_like(inputs["labels"], UNCOUNTED)
    labels[:, match.secret] = inputs["labels"][:, match.secret]
    with _as_in_training(model, trained):
        loss = model(**inputs | {"labels": labels}).loss
        if not loss.requires_grad:
            return False
        loss.backward()
        gradients = [parameter.grad for parameter in trained if parameter.grad is not None]
        finite = all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
        return finite and any(bool(gradient.any()) for gradient in gradients)


def _of_rows(value: Any, batch: Mapping[str, Any]) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim > 0 and len(value) == len(batch["input_ids"])


@contextmanager
def _as_in_training(model: torch.nn.Module, trained: Sequence[torch.nn.Parameter]) -> Iterator[None]:
    """Training mode without gradients from before; modes, gradients and buffers are put back afterwards."""
    modes = {module: module.training for module in model.modules()}
    kept = [parameter.grad for parameter in trained]
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.train()
    for parameter in trained:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in zip(trained, kept, strict=True):
            parameter.grad = gradient
        for module, mode in modes.items():
            module.training = mode
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
