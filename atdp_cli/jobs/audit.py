"""`atdp audit-canary` as a function."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.attacks.attack import Attack, canary_records, extraction_of, membership_of, relearn
from atdp_cli.audit.attacks.membership import RecordScores
from atdp_cli.audit.corpus_numbers import NumberReference, rank_numbers, score_reference
from atdp_cli.audit.distribution import distribution
from atdp_cli.audit.epsilon import epsilon_bounds
from atdp_cli.audit.exposure import Rank, Scores
from atdp_cli.audit.manifest import token_mismatch
from atdp_cli.audit.ranking import Pool, all_scores, likeliest_scores, pool_of, rank_targets, rank_targets_exactly
from atdp_cli.audit.request import AuditRequest, CanaryTargets, check_request
from atdp_cli.audit.result import Audit, EpsilonBound
from atdp_cli.audit.verdict import judge, with_own_secrets
from atdp_cli.errors import AtdpError, InputError, RunError
from atdp_cli.events import Event, FellBack, Notify, RecordsRead
from atdp_cli.files.provenance import file_sha256
from atdp_cli.jobs.backend import THIS_PROCESS, Backend
from atdp_cli.jobs.machine import cores
from atdp_cli.jobs.ray import Ray, connected, submit_to
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, load_tokenizer
from atdp_cli.model.folder import check_folder, tokenizer_folder, weight_files
from atdp_cli.model.tokens import tokenizer_fingerprint


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
    own: NumberReference | None


def audit_models(
    models: Sequence[Path],
    question: CanaryTargets | None,
    request: AuditRequest,
    notify: Notify,
    engine: Backend = THIS_PROCESS,
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
    check_request(question, request)
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
    question: CanaryTargets | None,
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
    question: CanaryTargets | None,
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
    question: CanaryTargets | None,
    pool: Pool | None,
    base: Base | None,
    request: AuditRequest,
) -> Audit:
    """A model's audit in a process of its own."""
    return _audited(folder, question, pool, base, request=request, notify=notify)[0]


def _first_pool(models: Sequence[Path], question: CanaryTargets | None, notify: Notify) -> Pool | None:
    """The candidates for the first model whose tokenizer can be read."""
    for folder in models if question is not None else ():
        with suppress(AtdpError):
            check_folder(folder)
            return _pool(load_tokenizer(tokenizer_folder(folder)), question, None, notify)
    return None


def _pool(
    tokenizer: PreTrainedTokenizerFast, question: CanaryTargets | None, before: Pool | None, notify: Notify
) -> Pool | None:
    """The candidates for a model, which may be those of the model before; None without canaries."""
    if question is None or (before is not None and before.fingerprint == tokenizer_fingerprint(tokenizer)):
        return before
    return pool_of(tokenizer, question.template, question.targets, notify)


def _base(
    checkpoint: Checkpoint, question: CanaryTargets | None, pool: Pool | None, request: AuditRequest, notify: Notify
) -> Base:
    name = str(request.reference)
    records, scores, own = None, np.zeros(0), None
    if question is not None and pool is not None:
        scores = all_scores(checkpoint.model, pool, name, notify)
        if Attack.MEMBERSHIP in request.attacks.wanted:
            records = canary_records(checkpoint, question.template, question.targets, name=name)
    if request.own is not None:
        own = score_reference(checkpoint, request.own.located, sample=request.own.sample, name=name, notify=notify)
    return Base(fingerprint=tokenizer_fingerprint(checkpoint.tokenizer), scores=scores, records=records, own=own)


def _audit(
    folder: Path,
    checkpoint: Checkpoint,
    question: CanaryTargets | None,
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
    own = rank_numbers(
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
    question: CanaryTargets,
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
    plain = rank_targets(scores, pool, targets)
    if pool.product is not None:
        plain = rank_targets_exactly(checkpoint.model, pool.product, template, targets, plain, name=name, notify=notify)
    ratio = rank_targets(scores - base.scores, pool, targets) if base is not None else None
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
    folder: Path, question: CanaryTargets, standings: Sequence[Rank], request: AuditRequest
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
    question: CanaryTargets,
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
        found["extraction"] = extraction_of(checkpoint.model, pool, targets, scores, samples=attacks.samples, name=name)
    if Attack.MEMBERSHIP in attacks.wanted:
        own = canary_records(checkpoint, question.template, targets, name=name)
        found["membership"] = membership_of(own, base.records if base is not None else None, targets)
    if Attack.RESURFACING in attacks.wanted and attacks.other_text is not None:
        found["resurfaced"] = relearn(
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


Result = TypeVar("Result")

Work = Callable[[Path, Notify], Result]
"""What is done with a model's folder; a function of a module, or a partial one."""


@dataclass(frozen=True, kw_only=True)
class _Settings(Generic[Result]):
    """What a worker is told.

    Attributes:
        place: The working folder, which relative paths begin at.
        threads: Sums over other numbers of threads differ in their last bits.
    """

    work: Work[Result]
    place: Path
    threads: int


def on_each(ray: Ray, models: Sequence[Path], work: Work[Result], notify: Notify) -> Iterator[Result | AtdpError]:
    """What the work gives for each model, or why it could not be done, in order.

    A task takes as many processors as torch has threads here. Of its events those are told that say what a user might
    not expect.

    Raises:
        RunError: Ray cannot be started or reached.
        UsageError: No machine has so many processors.
    """
    threads = torch.get_num_threads()
    settings = _Settings(work=work, place=Path.cwd(), threads=threads)
    with connected(replace(ray, processors=max(threads, cores()))) as library:
        submit = submit_to(library, _begin, settings, processors=threads)
        waiting = [submit(model) for model in models]
        for done, wait in enumerate(waiting, start=1):
            try:
                found, heard = wait()
            except AtdpError as error:
                yield error
            else:
                for event in heard:
                    notify(event)
                yield found
            notify(RecordsRead(task="models on Ray", done=done, total=len(models)))


def _begin(settings: _Settings[Any]) -> Callable[[Path], tuple[Any, list[Event]]]:
    try:
        os.chdir(settings.place)
    except OSError as error:
        raise RunError(
            f"A worker of Ray has no folder {settings.place}.", "Work in a folder that all machines see by one path."
        ) from error
    torch.set_num_threads(settings.threads)

    def done(model: Path) -> tuple[Any, list[Event]]:
        heard: list[Event] = []
        return settings.work(model, heard.append), [event for event in heard if isinstance(event, FellBack)]

    return done
