"""How well a model remembers the corpus's own numbers: each among others of its format, uncalibrated.

Nobody drew these numbers at random. Dates, years and area codes are likelier than other digits before any training:
an exposure here is no evidence of memory by itself. That by the ratio to the public base model takes out what was
likely before.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Literal

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.alternatives import SAMPLE, alternatives, format_of, tokenise_after
from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.number_search import LocatedNumber, LocatedNumbers
from atdp_cli.audit.ranking import Pool, all_scores, likeliest_scores, rank_targets
from atdp_cli.audit.trie import build_trie
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import Notify, RecordsRead, ignore
from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.tokens import encode_record, tokenizer_fingerprint
from atdp_cli.number_result import NumberResult, NumberResults


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberPool:
    """A number's alternatives as one tokenizer and context give them. Its tokens are private.

    Attributes:
        place: The position of the number among the candidates.
        size: Numbers of its format.
    """

    secret: LocatedNumber
    pool: Pool = field(repr=False)
    place: int = field(repr=False)
    size: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberPools:
    """The alternatives of all numbers that can be tested; `skipped_*` as in `NumberResults`."""

    fingerprint: str
    context: int
    pools: tuple[NumberPool, ...]
    skipped_context: int
    skipped_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberReference:
    """The public base model's scores of each number's alternatives, for all models that were trained from it."""

    pools: NumberPools
    scores: tuple[Scores, ...] = field(repr=False)


def score_reference(
    checkpoint: Checkpoint,
    located: LocatedNumbers,
    *,
    sample: int = SAMPLE,
    name: str = "the reference",
    notify: Notify = ignore,
) -> NumberReference:
    """Score every number's alternatives by the public base model, so that it need not stay in memory.

    Raises:
        UsageError: It is an encoder-decoder model.
        RunError: It cannot be run, or gives something that is not a number.
    """
    pools = _pools(checkpoint, located, sample, notify)
    announced = _announced(pools.pools, name, notify)
    return NumberReference(
        pools=pools, scores=tuple(all_scores(checkpoint.model, number.pool, name, ignore) for number in announced)
    )


def rank_numbers(
    checkpoint: Checkpoint,
    located: LocatedNumbers,
    *,
    sample: int = SAMPLE,
    reference: NumberReference | None = None,
    name: str = "the model",
    notify: Notify = ignore,
) -> NumberResults:
    """Rank each number among its alternatives by what a model says of them after the record's text before them.

    Without a reference only those alternatives are scored that may rank before the number, so that a remembered
    number costs little.

    Args:
        sample: How many alternatives to draw where there are too many to list.
        reference: What the public base model says of the same numbers, by `score_reference`.
        name: Of the model, for progress and errors.

    Raises:
        UsageError: It is an encoder-decoder model.
        InputError: The reference has another tokenizer or another context.
        RunError: The model cannot be run, or gives something that is not a number.
    """
    if reference is not None:
        _check_alike(checkpoint, reference.pools, name)
    pools = _pools(checkpoint, located, sample, notify) if reference is None else reference.pools
    results = []
    for index, number in enumerate(_announced(pools.pools, name, notify)):
        base = None if reference is None else reference.scores[index]
        results.append(_result(checkpoint.model, number, base, name))
    plain = [result.exposure for result in results]
    ratio = [result.exposure_ratio for result in results if result.exposure_ratio is not None]
    return NumberResults(
        eligible=located.eligible,
        tested=len(results),
        skipped_short=located.skipped_short,
        skipped_long=located.skipped_long,
        skipped_repeated=located.skipped_repeated,
        skipped_context=pools.skipped_context,
        skipped_tokens=pools.skipped_tokens,
        results=tuple(results),
        mean_exposure=fmean(plain) if plain else None,
        mean_exposure_ratio=fmean(ratio) if ratio else None,
        max_exposure=max([*plain, *ratio], default=None),
    )


def _result(model: PreTrainedModel, number: NumberPool, base: Scores | None, name: str) -> NumberResult:
    target = [Target(index=number.place, repeats=1)]
    if base is None:
        scores = likeliest_scores(model, number.pool, target, name, ignore)
    else:
        scores = all_scores(model, number.pool, name, ignore)
    [plain] = rank_targets(scores, number.pool, target)
    [ratio] = [None] if base is None else rank_targets(scores - base, number.pool, target)
    located = number.secret
    return NumberResult(
        record=located.record,
        line=located.line,
        start=located.start,
        end=located.end,
        label=located.label,
        pool=number.size,
        compared=plain.pool,
        rank_min=plain.rank_min,
        rank_max=plain.rank_max,
        stratum_size=plain.stratum_size,
        exposure=plain.exposure,
        exposure_plain=plain.exposure_plain,
        exposure_ratio=None if ratio is None else ratio.exposure,
        exposure_ratio_plain=None if ratio is None else ratio.exposure_plain,
    )


def _pools(checkpoint: Checkpoint, located: LocatedNumbers, sample: int, notify: Notify) -> NumberPools:
    """The alternatives of every number that this model's tokens and context allow to be tested."""
    if checkpoint.model.config.is_encoder_decoder:
        raise UsageError(
            "The corpus's own numbers are ranked by what a model continues a text with, and an encoder-decoder "
            "model continues none.",
            "Leave --secrets out for it.",
        )
    tokenizer, context = checkpoint.tokenizer, context_length(checkpoint.model)
    fingerprint = tokenizer_fingerprint(tokenizer)
    pools: list[NumberPool] = []
    skipped: Counter[str] = Counter()
    for done, secret in enumerate(located.secrets, start=1):
        pool = _pool(tokenizer, fingerprint, secret, sample, context)
        if isinstance(pool, NumberPool):
            pools.append(pool)
        else:
            skipped[pool] += 1
        notify(RecordsRead(task="tokenising alternatives", done=done, total=len(located.secrets)))
    return NumberPools(
        fingerprint=fingerprint,
        context=context,
        pools=tuple(pools),
        skipped_context=skipped["context"],
        skipped_tokens=skipped["tokens"],
    )


def _pool(
    tokenizer: PreTrainedTokenizerFast, fingerprint: str, secret: LocatedNumber, sample: int, context: int
) -> NumberPool | Literal["context", "tokens"]:
    """A number's alternatives, or why it is skipped."""
    formatted = format_of(secret.text[secret.start : secret.end])
    if formatted is None:
        raise ValueError("a located number has no digits")
    template, digits = formatted
    alone = encode_record(tokenizer, secret.text[: secret.end])
    if encode_record(tokenizer, secret.text)[: len(alone)] != alone:
        return "tokens"
    texts, place = alternatives(template, digits, (secret.record, secret.start), sample)
    candidates = tokenise_after(tokenizer, secret.text[: secret.start], texts, place=place, context=context)
    if candidates is None:
        return "context"
    pool = Pool(
        fingerprint=fingerprint,
        candidates=candidates,
        trie=build_trie(candidates.tails, candidates.lengths),
        sampled=len(texts) < template.pool,
    )
    return NumberPool(secret=secret, pool=pool, place=place, size=template.pool)


def _check_alike(checkpoint: Checkpoint, reference: NumberPools, name: str) -> None:
    remedy = "Give the base model that it was trained from."
    if reference.fingerprint != tokenizer_fingerprint(checkpoint.tokenizer):
        raise InputError(f"{name} and the reference have different tokenizers.", remedy)
    if reference.context != context_length(checkpoint.model):
        raise InputError(f"{name} and the reference have contexts of different lengths.", remedy)


def _announced(pools: Sequence[NumberPool], name: str, notify: Notify) -> Iterator[NumberPool]:
    """The pools one by one; `notify` hears of each when it has been used."""
    for done, pool in enumerate(pools, start=1):
        yield pool
        notify(RecordsRead(task=f"ranking by {Path(name).name}", done=done, total=len(pools)))
