"""A check that what an audit scores is what the model generates: whole passes, generation and later places."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import LogitsProcessorList, PreTrainedModel

from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.hypothesis_tests import fisher_in_sample
from atdp_cli.audit.pool import Candidates, Ids
from atdp_cli.audit.rank import Pool, pool_position, rank_targets, sample_length_groups
from atdp_cli.audit.trie import build_trie, score_pool
from atdp_cli.model.adapter import no_warnings
from atdp_cli.model.checkpoint import context_length, random_tokens

COMPARED, ASKED, SAMPLE = 4, 16, 64
"""Canaries whose scores are compared, canaries that are asked at later places, and candidates beside them there."""

TOLERANCE = 0.01
"""The largest difference between two ways of scoring, as a share of the range of all scores: rounding is far below."""

LEVEL = 1e-4
"""At a later place, of Fisher's test: a failure there is a doubt, so it is no part of alpha."""

LATER = 64
"""Tokens of other text before a canary, whatever the configuration says."""

SWITCHES = ("sliding_window", "attention_chunk_size", "original_max_position_embeddings", "window_size")
"""Settings of the number of tokens from which on a model reads otherwise."""


def disagreements(model: PreTrainedModel, pool: Pool, targets: Sequence[Target], name: str) -> tuple[str, ...]:
    """Why the scores of an audit may not be those of the text that the model generates, in sentences.

    The scores of some canaries and other candidates are compared with those of whole passes without a cache, and with
    those of greedy generation under the folder's own settings, which is led along their tokens. Then canaries are
    ranked among a sample behind other records, and behind random tokens: `LATER` of them, and as many as each switch
    of the configuration says.

    Args:
        model: As `score_pool` takes it.
        pool: What it was audited by.
    """
    planted = [pool_position(pool, targets, i) for i, target in enumerate(targets) if target.planted]
    draw = np.random.default_rng(0)  # public: secrets are drawn independently of it
    others = draw.integers(pool.candidates.lengths.size, size=SAMPLE)
    compared = [*planted[:: max(1, len(planted) // COMPARED)][:COMPARED], *others[:COMPARED]]
    found = [_differs(model, _part(pool.candidates, compared), name)]
    asked = _part(pool.candidates, [*others, *planted[:ASKED]])
    rows = [np.append(asked.prefix, tail[:length]) for tail, length in zip(asked.tails, asked.lengths, strict=True)]
    longest = max(map(len, rows))
    own = [target for target in targets if target.planted][:ASKED]
    for place in sorted(_places(model)):
        if place + longest > context_length(model, place + longest):
            continue
        records, noise = np.concatenate(rows[:SAMPLE]), random_tokens(model, place)[0].numpy()
        for text in (records, noise):
            behind = _behind(np.resize(text, place).astype(np.int32), asked)
            found.append(_remembers(model, asked, behind, own, name))
        found.append(_differs(model, _part(behind, range(SAMPLE - 1, SAMPLE + 1)), name, generates=False))
    return tuple(dict.fromkeys(reason for reason in found if reason))


def _places(model: PreTrainedModel) -> set[int]:
    """How many tokens of other text to ask canaries behind."""
    config = model.config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    values = [part.get(name) for part in (vars(config), rope) for name in SWITCHES]
    return {LATER, *(value for value in values if type(value) is int and value > 0)}


def _part(candidates: Candidates, places: Sequence[int]) -> Candidates:
    return Candidates(
        prefix=candidates.prefix, tails=candidates.tails[list(places)], lengths=candidates.lengths[list(places)]
    )


def _behind(filler: Ids, candidates: Candidates) -> Candidates:
    prefix = np.concatenate([filler, candidates.prefix])
    return Candidates(prefix=prefix, tails=candidates.tails, lengths=candidates.lengths)


def _remembers(
    model: PreTrainedModel, asked: Candidates, behind: Candidates, targets: Sequence[Target], name: str
) -> str | None:
    """Whether canaries rank high behind other text; `asked` are a sample and the targets behind it."""
    trie = build_trie(asked.tails, asked.lengths)
    pool = Pool(fingerprint="", candidates=asked, trie=trie, sampled=True)
    scores = score_pool(model, behind, trie=trie, name=name)
    p = fisher_in_sample(
        [rank.p_value for rank in rank_targets(scores, pool, targets)], sample_length_groups(pool, targets) or ()
    )
    if p > LEVEL:
        return None
    place = behind.prefix.size - asked.prefix.size
    return f"Behind {place} tokens of other text the canaries rank where chance would hardly put them (p = {p:.2g})."


def _differs(model: PreTrainedModel, rows: Candidates, name: str, *, generates: bool = True) -> str | None:
    """How the cached scores of some rows differ from those of whole passes or of generation; None where they do not."""
    cached = score_pool(model, rows, name=name)
    whole, generated = np.zeros_like(cached), np.zeros_like(cached)
    for length in sorted(set(rows.lengths.tolist()) - {0}):
        of_length = rows.lengths == length
        tails = torch.from_numpy(rows.tails[of_length, :length].astype(np.int64)).to(model.device)
        prefix = torch.from_numpy(rows.prefix.astype(np.int64)).to(model.device).expand(len(tails), -1)
        with torch.inference_mode():
            logits = model(input_ids=torch.cat([prefix, tails], dim=1), use_cache=False).logits
        steps = _log_p(logits[:, rows.prefix.size - 1 : -1], tails)
        whole[of_length] = steps.sum(axis=1)
        if generates:
            try:
                driven = _generation(model, prefix, tails)
            except Exception as error:  # a folder's settings can ask for anything
                return (
                    f"The model cannot generate by its own settings ({type(error).__name__}), so it was not compared."
                )
            generated[of_length] = whole[of_length] + (driven - steps[:, : driven.shape[1]]).sum(axis=1)
    limit = TOLERANCE * float(np.ptp(whole))
    for what, scores in (("whole passes without a cache", whole), ("its own generation", generated)):
        if (generates or scores is whole) and not (np.abs(scores - cached) <= limit).all():
            return f"The model scores by {what} otherwise than step by step, so what it generates was not audited."
    return None


def _generation(model: PreTrainedModel, prefix: torch.Tensor, tails: torch.Tensor) -> NDArray[np.float64]:
    """log p of the tokens of tails of one length in greedy generation, shape [rows, steps that it takes]."""

    def along(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        forced = torch.full_like(scores, -torch.inf)
        return forced.scatter_(1, tails[:, ids.shape[1] - prefix.shape[1], None], 0.0)

    settings = copy.deepcopy(model.generation_config)
    settings.update(do_sample=False, num_beams=1, num_return_sequences=1, max_new_tokens=tails.shape[1])
    settings.update(pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    with no_warnings():
        output = model.generate(
            inputs=prefix,
            attention_mask=torch.ones_like(prefix),
            generation_config=settings,
            logits_processor=LogitsProcessorList([along]),
        )
    return _log_p(torch.stack(output.logits, dim=1), tails[:, : len(output.logits)])


def _log_p(logits: torch.Tensor, tokens: torch.Tensor) -> NDArray[np.float64]:
    log_p: Scores = logits.double().log_softmax(-1).gather(2, tokens[:, :, None])[:, :, 0].cpu().numpy()
    return log_p
