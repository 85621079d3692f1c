"""Membership inference: can an attacker tell canaries that were trained on from canaries that were held out?"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from atdp_cli.audit.canary import Target
from atdp_cli.audit.request import CanaryTargets
from atdp_cli.audit.results import Membership
from atdp_cli.audit.trie import damaged_logits
from atdp_cli.errors import UsageError
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.forward import Batch, logits_of, padded
from atdp_cli.model.windows import encode_record, length_batches

Scores = NDArray[np.float64]
Coins = NDArray[np.bool_]
Record = NDArray[np.int64]

MIN_OUTS = 100
"""Held-out records below which a false positive rate of 1 % cannot be told from 0."""

_LOGITS = 16 * 2**20  # bytes of one batch, as in `trie`
_LEAST_DEVIATION = 1e-12  # of the next token's log p, nats; less is rounding of a uniform or a certain distribution
_Z = 1.959963984540054  # the normal distribution's 97.5 % quantile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordScores:
    """A model's scores of each record.

    Attributes:
        log_p: Natural logarithm of the probability of all tokens after the first, shape [records].
        min_k: Min-K%++ of these tokens, shape [records].
    """

    log_p: Scores
    min_k: Scores


def infer_membership(
    scores: RecordScores, inside: Coins, *, reference: RecordScores | None = None
) -> tuple[Membership, ...]:
    """Run every attack that the scores allow; each takes records with high scores for members.

    - `loss`: log p of the record (Yeom et al. 2018, arXiv 1709.01604), summed, not averaged, over its tokens.
    - `reference`: log p - log p_ref, which cancels how likely the record is anyway (Carlini et al. 2021, arXiv
      2012.07805). Only with a reference.
    - `min-k++`: Min-K%++ (Zhang et al. 2024, arXiv 2404.02936).

    Args:
        scores: By the model.
        inside: Which records were trained on, shape [records].
        reference: By a model that saw none of them, in the same order.
    """
    results = [membership("loss", scores.log_p, inside)]
    if reference is not None:
        results.append(membership("reference", scores.log_p - reference.log_p, inside))
    return (*results, membership("min-k++", scores.min_k, inside))


def canary_records(
    checkpoint: Checkpoint, canaries: CanaryTargets, targets: Sequence[Target], *, name: str
) -> RecordScores:
    """Score the record of each target: a canary, or a candidate that could have been one."""
    template, reader = canaries.scored, canaries.reader(checkpoint.tokenizer)
    texts = [template.record(template.secret(target.index)) for target in targets]
    records = [np.array(encode_record(reader, text), dtype=np.int64) for text in texts]
    return score_records(checkpoint.model, records, name=name)


def score_records(
    model: PreTrainedModel, records: Sequence[Record], *, share: float = 0.2, name: str = "the model"
) -> RecordScores:
    """Score each record by a forward pass in the model's precision, with sums in float64.

    Min-K%++ is the mean over the `share` of tokens (at least one) with the lowest

        z_t = (log p(x_t | x_<t) - mu_t) / sigma_t,

    mu_t and sigma_t being mean and standard deviation of log p(. | x_<t) under that same next-token
    distribution. Source: Zhang et al. 2024, "Min-K%++: Improved baseline for detecting pre-training data from large
    language models", arXiv 2404.02936. The share of n tokens is floor(share * n); sigma_t is at least 1e-12, so
    that a uniform distribution gives 0.

    Args:
        model: A causal language model in evaluation mode, float32 or float64.
        records: Token ids of each, start token included, at least two and at most the model's context; shape [T].
        share: k of Min-K%, in (0, 1].
        name: Of the model, for errors.

    Raises:
        UsageError: A record has no token to predict, or `share` is out of range.
        RunError: The model gives a logit that is NaN or infinite.
    """
    if not 0 < share <= 1:
        raise UsageError(f"The share of tokens is {share}, and it must lie above 0 and at most at 1.", "Use 0.2.")
    if any(len(record) < 2 for record in records):
        raise UsageError("A record has no token after its first, so there is nothing to predict.", "Leave it out.")
    log_p, min_k = np.zeros(len(records)), np.zeros(len(records))
    vocabulary = model.get_input_embeddings().weight.shape[0]
    for group in length_batches(list(map(len, records)), _LOGITS / (4 * vocabulary)):
        batch = Batch(*padded([records[i] for i in group]))
        with torch.inference_mode():
            logits = logits_of(model, batch)
            for row, i in zip(logits, group, strict=True):
                token_log_p, z = _token_scores(row, torch.from_numpy(records[i]).to(row.device), name)
                log_p[i] = token_log_p.sum()
                min_k[i] = np.sort(z)[: max(1, int(share * z.size))].mean()
    return RecordScores(log_p=log_p, min_k=min_k)


def membership(attack: Literal["loss", "reference", "min-k++"], scores: Scores, inside: Coins) -> Membership:
    """Measure how well `scores`, higher for members, tell members from others; both of shape [records]."""
    members, others = scores[inside], np.sort(scores[~inside])
    known = members.size > 0 and others.size > 0
    auc, low, high = _area(members, others) if known else (None, None, None)
    return Membership(
        attack=attack,
        members=members.size,
        non_members=others.size,
        auc=auc,
        auc_low=low,
        auc_high=high,
        tpr_at_1_fpr=_tpr(members, others) if known and others.size >= MIN_OUTS else None,
    )


def _token_scores(logits: torch.Tensor, ids: torch.Tensor, name: str) -> tuple[Scores, Scores]:
    """log p and z of each token after the first, shapes [T - 1], from logits of shape [T or more, V]."""
    room = max(1, _LOGITS // (4 * logits.shape[1]))  # positions at a time, for copies of their logits
    log_p, z = [], []
    for start in range(0, len(ids) - 1, room):
        following = ids[1:][start : start + room]
        part = logits[start : start + len(following)]
        if not torch.isfinite(part).all():
            raise damaged_logits(name)
        # Everything below the largest logit: sums see no large numbers, and a uniform distribution is exactly 0.
        below = part - part.amax(-1, keepdim=True)
        p = below.exp()
        total = p.sum(-1, dtype=torch.float64)
        mean = (p * below).sum(-1, dtype=torch.float64) / total
        variance = (p * (below - mean[:, None].to(p.dtype)).square()).sum(-1, dtype=torch.float64) / total
        chosen = below.gather(1, following[:, None])[:, 0].double()
        log_p.append((chosen - total.log()).cpu().numpy())
        z.append(((chosen - mean) / variance.sqrt().clamp_min(_LEAST_DEVIATION)).cpu().numpy())
    return np.concatenate(log_p), np.concatenate(z)


def _area(members: Scores, others: Scores) -> tuple[float, float, float]:
    """The AUC with its 95 % interval.

    The Mann-Whitney statistic over all pairs; `others` sorted. The interval is Wilson's (1927) for a proportion of as
    many draws as make its variance that of the AUC, auc (1 - auc) / V, so it stays in [0, 1] and has a width even
    where the scores separate completely. V is the larger of two estimates: DeLong's (DeLong, DeLong and
    Clarke-Pearson 1988, Biometrics 44), which holds for any two distributions but falls to 0 near AUC 1, and
    Hanley and McNeil's with both group sizes averaged (Newcombe 2006, Statistics in Medicine 25, method 4), which
    is exact where members and others are alike. For a DeLong's that is 0 or undefined the most that the
    variance can be is taken, auc (1 - auc) / min(m, n) (Birnbaum and Klose 1957).
    """
    m, n = members.size, others.size
    below = (np.searchsorted(others, members, "left") + np.searchsorted(others, members, "right")) / (2 * n)
    auc = float(below.mean())
    ranked = np.sort(members)
    above = 1 - (np.searchsorted(ranked, others, "left") + np.searchsorted(ranked, others, "right")) / (2 * m)
    delong = float(below.var(ddof=1) / m + above.var(ddof=1) / n) if min(m, n) > 1 else 0.0
    draws = auc * (1 - auc) / delong if delong > 0 and 0 < auc < 1 else min(m, n)
    spread = (m + n) / 2 - 1
    alike = m * n / (1 + spread * (1 - auc) / (2 - auc) + spread * auc / (1 + auc))
    low, high = _wilson(auc, min(draws, alike))
    return auc, low, high


def _wilson(share: float, draws: float) -> tuple[float, float]:
    """Wilson's 95 % score interval for a proportion seen in that many draws."""
    centre = share + _Z**2 / (2 * draws)
    half = _Z * sqrt(share * (1 - share) / draws + _Z**2 / (4 * draws**2))
    whole = 1 + _Z**2 / draws
    # It holds the share itself; rounding would leave it out at 0 and at 1.
    return max(0.0, min(share, (centre - half) / whole)), min(1.0, max(share, (centre + half) / whole))


def _tpr(members: Scores, others: Scores) -> float:
    """Share of the members strictly above the lowest threshold that at most 1 % of the (sorted) others pass."""
    threshold = others[-1 - others.size // 100]
    return float((members > threshold).mean())
