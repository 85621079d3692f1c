"""Extraction: which canaries a client of the model gets by greedy decoding and by sampling, and at what cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from math import isfinite, isnan

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from atdp_cli.audit.pool import Candidates
from atdp_cli.audit.results import Extraction
from atdp_cli.audit.trie import damaged_logits
from atdp_cli.errors import RunError

Path = tuple[int, ...]

_LOGITS = 16 * 2**20  # bytes of one batch, as in `trie`
_LEAST_LOG_P = -720.0  # below it every number of queries passes the largest float


def extract(
    model: PreTrainedModel,
    candidates: Candidates,
    targets: Sequence[int],
    log_p: NDArray[np.float64],
    *,
    samples: int = 1000,
    seed: int = 0,
    name: str = "the model",
) -> tuple[Extraction, ...]:
    """Try to extract each target in three ways: greedily, by sampling, and by (n, p)-discoverable extraction.

    Args:
        model: In evaluation mode; any causal model, since no cache is used.
        candidates: As `trie.score_pool` accepts them for this model.
        targets: Places of the canaries among the candidates.
        log_p: The exact log p(tail | prefix) of each target (`trie.score_pool`), at most 0, shape [targets].
        samples: Continuations to draw, from 1. All targets share them.
        seed: Of the draws.
        name: Of the model, for errors.

    Returns:
        In the order of `targets`.

    Raises:
        RunError: The model gives a logit, or the caller a log-probability, that is not a number.
    """
    if np.isnan(log_p).any():
        raise RunError(f"{name} gives a canary a probability that is not a number.", "Check the checkpoint.")
    tails = [tuple(candidates.tails[i, : candidates.lengths[i]].tolist()) for i in targets]
    prefix = tuple(candidates.prefix.tolist())
    generator = torch.Generator().manual_seed(seed)
    decoded = greedy_continuation(model, prefix, max(map(len, tails), default=0), name=name)
    counts = sample_continuations(model, prefix, tails, samples=samples, generator=generator, name=name)
    return tuple(
        Extraction(
            greedy=decoded[: len(tail)] == tail,
            sampled=count,
            samples=samples,
            log_p=float(target_log_p),
            queries_half=queries_needed(float(target_log_p), 0.5),
            queries_nine_tenths=queries_needed(float(target_log_p), 0.9),
        )
        for tail, count, target_log_p in zip(tails, counts, log_p, strict=True)
    )


def queries_needed(log_p: float, chance: float) -> float | None:
    """The n of (n, p)-discoverable extraction: the least n with 1 - (1 - p_z)^n >= p; None beyond the largest float.

    n = ceil(ln(1 - p) / ln(1 - p_z)) and at least 1, in decimal arithmetic of as many digits as p_z needs: the
    result is the exact whole number, rounded only where it passes 2^53. Source: Hayes et al. 2024, "Measuring
    memorization in language models via probabilistic extraction", arXiv 2410.19482, for sampling at temperature 1.

    Args:
        log_p: ln p_z, at most 0; what rounding puts above counts as 0. -inf gives None.
        chance: p, in (0, 1), taken as the decimal fraction that it prints as.

    Raises:
        ValueError: `chance` is out of range, or `log_p` is not a number.
    """
    if not 0 < chance < 1 or isnan(log_p):
        raise ValueError(f"no number of queries for log p {log_p} and chance {chance}")
    if log_p < _LEAST_LOG_P:
        return None
    with localcontext(prec=60 + int(-log_p)):
        missed = 1 - Decimal(min(log_p, 0.0)).exp()
        # Where p_z is 1 to that many digits the logarithm is -Infinity, and the quotient 0.
        queries = (1 - Decimal(str(chance))).ln() / missed.ln()
        needed = max(1.0, float(queries.to_integral_value(ROUND_CEILING)))
    return needed if isfinite(needed) else None


def greedy_continuation(model: PreTrainedModel, prefix: Path, length: int, *, name: str = "the model") -> Path:
    """The `length` tokens by which greedy decoding continues the prefix."""
    path: Path = ()
    while len(path) < length:
        ((_, probabilities),) = _next_tokens(model, prefix, [path], name)
        path = (*path, int(probabilities.argmax()))
    return path


def sample_continuations(
    model: PreTrainedModel,
    prefix: Path,
    tails: Sequence[Path],
    *,
    samples: int,
    generator: torch.Generator,
    name: str = "the model",
) -> list[int]:
    """How many of `samples` independent continuations of the prefix begin with each tail.

    Each continuation draws its tokens one by one at temperature 1. Those that agree so far share one row of a
    forward pass, and one that can no longer begin with any tail is not continued, which no count can notice: a
    pass has at most as many rows as there are tails, however many continuations are drawn.

    Args:
        generator: On the CPU, wherever the model is.
    """
    continued = {tail[:depth] for tail in tails for depth in range(len(tail))}
    counted = continued.union(tails)
    reached: Counter[Path] = Counter({(): samples})
    alive: list[Path] = [()] if () in continued else []
    while alive:
        following: list[Path] = []
        for path, probabilities in _next_tokens(model, prefix, alive, name):
            drawn = torch.multinomial(probabilities, reached[path], replacement=True, generator=generator)
            counts = Counter((*path, token) for token in drawn.tolist())
            reached.update({child: count for child, count in counts.items() if child in counted})
            following += [child for child in counts if child in continued]
        alive = following
    return [reached[tail] for tail in tails]


def _next_tokens(
    model: PreTrainedModel, prefix: Path, paths: Sequence[Path], name: str
) -> Iterator[tuple[Path, torch.Tensor]]:
    """Each of the paths, all of one length, with the next token's probabilities in float64, shape [vocabulary]."""
    width = len(prefix) + len(paths[0])
    vocabulary = model.get_input_embeddings().weight.shape[0]
    room = max(1, _LOGITS // (4 * width * vocabulary))
    for start in range(0, len(paths), room):
        part = paths[start : start + room]
        ids = torch.tensor([(*prefix, *path) for path in part], device=model.device)
        with torch.inference_mode():
            logits = model(input_ids=ids, use_cache=False).logits[:, -1].cpu().double()
        if not torch.isfinite(logits).all():
            raise damaged_logits(name)
        yield from zip(part, logits.softmax(-1), strict=True)
