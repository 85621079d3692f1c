"""`atdp audit-canary` as a function."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.distribution import distribution
from atdp_cli.audit.exposure import Scores, Standing
from atdp_cli.audit.findings import Audit, EpsilonBound
from atdp_cli.audit.manifest import token_mismatch
from atdp_cli.audit.membership import RecordScores
from atdp_cli.audit.verdict import judge, with_own_secrets
from atdp_cli.errors import AtdpError, InputError
from atdp_cli.events import Notify
from atdp_cli.jobs.attacks import Attack, canary_records, extracted, resurfaced, told_apart
from atdp_cli.jobs.claims import epsilon_bounds
from atdp_cli.jobs.engines import ALONE, Engine
from atdp_cli.jobs.modeltasks import on_each
from atdp_cli.jobs.onray import Ray
from atdp_cli.jobs.ownsecrets import OwnReference, measure_own, reference_own
from atdp_cli.jobs.questions import AuditRequest, Question, check_posed
from atdp_cli.jobs.standing import Pool, all_scores, likeliest_scores, placed, placed_exactly, pool_of
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, load_tokenizer
from atdp_cli.model.folder import check_folder, tokenizer_folder, weight_files
from atdp_cli.model.tokens import tokenizer_fingerprint
from atdp_cli.privacy.ledger import file_sha256


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A model that could not be audited, and why: in words, for an error would keep the model in memory."""

    model: str
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Base:
    """The public base model: its tokenizer's fingerprint, and what it says of all that is asked.

    Attributes:
        scores: Of every candidate; none without canaries.
        records: Of every canary's record, for membership.
    """

    fingerprint: str
    scores: Scores
    records: RecordScores | None
    own: OwnReference | None


def audit_models(
    models: Sequence[Path],
    question: Question | None,
    request: AuditRequest,
    notify: Notify,
    engine: Engine = ALONE,
) -> Iterator[Audit | Unfinished]:
    """One audit a model, in order; a model that fails among several is reported and the rest go on.

    Models of one tokenizer share the tokenised candidates and their trie, and all share the reference's scores.

    Args:
        models: Their folders.
        question: None where only the corpus' own numbers are asked about.
        request: What is done.
        notify: Told how far it is.
        engine: Here one by one, or as tasks of Ray, which do the same with as many threads as are set here.

    Raises:
        UsageError: What is asked cannot be answered.
        InputError: The reference, or the only model, cannot be read.
        RunError: Ray cannot be started or reached.
    """
    check_posed(question, request)
    pool: Pool | None = None
    base: Base | None = None
    if request.reference is not None:
        checkpoint = load_checkpoint(request.reference)
        pool = _pool(checkpoint.tokenizer, question, None, notify)
        base = _base(checkpoint, question, pool, request, notify)
        del checkpoint
    if isinstance(engine, Ray):
        yield from _on_ray(engine, models, question, pool, base, request=request, notify=notify)
        return
    for folder in models:
        found: Audit | Unfinished
        try:
            found, pool = _audited(folder, question, pool, base, request=request, notify=notify)
        except AtdpError as error:
            if len(models) == 1:
                raise
            found = Unfinished(model=str(folder), reason=str(error))
        yield found


def _audited(
    folder: Path,
    question: Question | None,
    pool: Pool | None,
    base: Base | None,
    *,
    request: AuditRequest,
    notify: Notify,
) -> tuple[Audit, Pool | None]:
    """The audit of a model, which is gone from memory before the next one loads, and the candidates for it."""
    checkpoint = load_checkpoint(folder)
    if base is not None and base.fingerprint != tokenizer_fingerprint(checkpoint.tokenizer):
        raise InputError(
            f"{folder} and the reference have different tokenizers.",
            "Give the base model that it was trained from.",
        )
    pool = _pool(checkpoint.tokenizer, question, pool, notify)
    found = _audit(folder, checkpoint, question, pool, base, request=request, notify=notify)
    return replace(found, weights={file.name: file_sha256(file) for file in weight_files(folder)}), pool


def _on_ray(
    ray: Ray,
    models: Sequence[Path],
    question: Question | None,
    pool: Pool | None,
    base: Base | None,
    *,
    request: AuditRequest,
    notify: Notify,
) -> Iterator[Audit | Unfinished]:
    pool = pool or _first_pool(models, question, notify)
    work = partial(_apart, question=question, pool=pool, base=base, request=request)
    for folder, found in zip(models, on_each(ray, models, work, notify), strict=True):
        if not isinstance(found, AtdpError):
            yield found
        elif len(models) == 1:
            raise found
        else:
            yield Unfinished(model=str(folder), reason=str(found))


def _apart(
    folder: Path,
    notify: Notify,
    *,
    question: Question | None,
    pool: Pool | None,
    base: Base | None,
    request: AuditRequest,
) -> Audit:
    """A model's audit in a process of its own."""
    return _audited(folder, question, pool, base, request=request, notify=notify)[0]


def _first_pool(models: Sequence[Path], question: Question | None, notify: Notify) -> Pool | None:
    """The candidates for the first model whose tokenizer can be read."""
    for folder in models if question is not None else ():
        with suppress(AtdpError):
            check_folder(folder)
            return _pool(load_tokenizer(tokenizer_folder(folder)), question, None, notify)
    return None


def _pool(
    tokenizer: PreTrainedTokenizerFast, question: Question | None, before: Pool | None, notify: Notify
) -> Pool | None:
    """The candidates for a model, which may be those of the model before; None without canaries."""
    if question is None or (before is not None and before.fingerprint == tokenizer_fingerprint(tokenizer)):
        return before
    return pool_of(tokenizer, question.template, question.targets, notify)


def _base(
    checkpoint: Checkpoint, question: Question | None, pool: Pool | None, request: AuditRequest, notify: Notify
) -> Base:
    name = str(request.reference)
    records, scores, own = None, np.zeros(0), None
    if question is not None and pool is not None:
        scores = all_scores(checkpoint.model, pool, name, notify)
        if Attack.MEMBERSHIP in request.attacks.wanted:
            records = canary_records(checkpoint, question.template, question.targets, name=name)
    if request.own is not None:
        own = reference_own(checkpoint, request.own.located, sample=request.own.sample, name=name, notify=notify)
    return Base(fingerprint=tokenizer_fingerprint(checkpoint.tokenizer), scores=scores, records=records, own=own)


def _audit(
    folder: Path,
    checkpoint: Checkpoint,
    question: Question | None,
    pool: Pool | None,
    base: Base | None,
    *,
    request: AuditRequest,
    notify: Notify,
) -> Audit:
    name, limits = str(folder), request.limits
    if question is None or pool is None:
        ratio = None if base is None else ()
        found = judge(name, (), ratio, (), pool=0, calibrated=False, limits=limits)
    else:
        found = _audit_canaries(folder, checkpoint, question, pool, base, request=request, notify=notify)
    if request.own is None:
        return found
    own = measure_own(
        checkpoint,
        request.own.located,
        sample=request.own.sample,
        reference=None if base is None else base.own,
        name=name,
        notify=notify,
    )
    return with_own_secrets(found, own, limits, alone=question is None)


def _audit_canaries(
    folder: Path,
    checkpoint: Checkpoint,
    question: Question,
    pool: Pool,
    base: Base | None,
    *,
    request: AuditRequest,
    notify: Notify,
) -> Audit:
    template, targets, name = question.template, question.targets, str(folder)
    if base is None and not request.full:
        scores = likeliest_scores(checkpoint.model, pool, targets, name, notify)
    else:
        scores = all_scores(checkpoint.model, pool, name, notify)
    plain = placed(scores, pool, targets)
    if pool.product is not None:
        plain = placed_exactly(checkpoint.model, pool.product, template, targets, plain, name=name, notify=notify)
    ratio = placed(scores - base.scores, pool, targets) if base is not None else None
    mismatch = token_mismatch(question.manifest, checkpoint.tokenizer) if question.manifest else None
    found = judge(
        name,
        plain,
        ratio,
        targets,
        pool=template.pool,
        calibrated=question.calibrated,
        mismatch=mismatch,
        # Ranks of other tokens than the trained ones bound nothing.
        epsilon=_bounds(folder, question, ratio or plain, request) if mismatch is None else (),
        limits=request.limits,
    )
    more = _attacked(checkpoint, question, pool, scores, base, request=request, name=name, notify=notify)
    full = distribution(scores, template, targets, shown=request.shown) if request.full else None
    return replace(found, distribution=full, **more)


def _bounds(
    folder: Path, question: Question, standings: Sequence[Standing], request: AuditRequest
) -> tuple[EpsilonBound, ...]:
    if question.manifest is None or not question.calibrated:
        return ()
    return epsilon_bounds(
        folder,
        standings,
        question.targets,
        pool=question.template.pool,
        coins=question.manifest.coins,
        games=request.games,
        alpha=request.limits.alpha,
    )


def _attacked(
    checkpoint: Checkpoint,
    question: Question,
    pool: Pool,
    scores: Scores,
    base: Base | None,
    *,
    request: AuditRequest,
    name: str,
    notify: Notify,
) -> dict[str, Any]:
    """The fields of `Audit` that the attacks fill."""
    attacks, targets, found = request.attacks, question.targets, dict[str, Any]()
    if Attack.EXTRACTION in attacks.wanted:
        found["extraction"] = extracted(checkpoint.model, pool, targets, scores, samples=attacks.samples, name=name)
    if Attack.MEMBERSHIP in attacks.wanted:
        own = canary_records(checkpoint, question.template, targets, name=name)
        found["membership"] = told_apart(own, base.records if base is not None else None, targets)
    if Attack.RESURFACING in attacks.wanted and attacks.other_text is not None:
        found["resurfaced"] = resurfaced(
            checkpoint,
            attacks.other_text,
            pool,
            targets,
            base.scores if base is not None else None,
            steps=attacks.steps,
            judged=partial(
                judge,
                name,
                targets=targets,
                pool=question.template.pool,
                calibrated=question.calibrated,
                limits=request.limits,
            ),
            name=name,
            notify=notify,
        )
    return found
