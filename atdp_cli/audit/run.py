"""Auditing models for their canaries: `atdp audit-canary` as a function."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import exp
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.agreement import disagreements
from atdp_cli.audit.attacks.membership import RecordScores, canary_records
from atdp_cli.audit.attacks.run import Attacked, with_attacks
from atdp_cli.audit.canary import Target, Template
from atdp_cli.audit.epsilon import play_games
from atdp_cli.audit.epsilon_games import games_for, pair_scores, relative_pairs
from atdp_cli.audit.exposure import Rank, Scores
from atdp_cli.audit.hypothesis_tests import Levels
from atdp_cli.audit.rank import (
    Pool,
    all_scores,
    check_same_tokenizer,
    likeliest_scores,
    pool_of,
    rank_targets,
    sample_length_groups,
)
from atdp_cli.audit.request import AuditRequest, CanaryTargets, prepare_audit
from atdp_cli.audit.results import (
    RANKS,
    AnyAudit,
    Audit,
    AuditDocument,
    Distribution,
    Gate,
    TopCandidate,
    UnfinishedAudit,
    Verdict,
)
from atdp_cli.audit.stated_epsilon import ledger_of
from atdp_cli.audit.trie import check_context
from atdp_cli.audit.verdict import judge
from atdp_cli.detection.run_on import Ray, connected, make_executor, submit_to
from atdp_cli.errors import AtdpError, RunError
from atdp_cli.events import ChoiceWarning, Event, Notify, RecordsRead, ignore
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, load_tokenizer
from atdp_cli.model.device import cores, find_device, use_threads
from atdp_cli.model.folder import check_folder, tokenizer_folder
from atdp_cli.model.windows import encode_record

BINS = 40


def distribution(
    scores: Scores, template: Template, targets: Sequence[Target], *, top: int = 20, show_secrets: bool = False
) -> Distribution:
    """The distribution of log p over a whole pool.

    Args:
        scores: log p of every candidate, shape [pool], finite.
        top: How many of the likeliest to list.
        show_secrets: Whether to say what they are.
    """
    counts, edges = np.histogram(scores, bins=BINS)
    numbers = {target.index: number for number, target in reversed(list(enumerate(targets, start=1)))}
    first = np.argsort(-scores, kind="stable")[:top]
    return Distribution(
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        total=float(np.exp(scores).sum()),
        top=tuple(
            TopCandidate(
                rank=rank,
                log_p=float(scores[index]),
                probability=exp(scores[index]),
                canary=numbers.get(int(index)),
                secret=template.secret(int(index)) if show_secrets else None,
            )
            for rank, index in enumerate(first, start=1)
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceScores:
    """The public base model's scores of everything that is ranked.

    Attributes:
        fingerprint: Of its tokenizer.
        scores: Of every candidate.
        records: Of every canary's record, for membership inference.
        pairs: Of every canary's record and of its mirror image's; None where bounds on ε have no use for them.
    """

    fingerprint: str
    scores: Scores
    records: RecordScores | None
    pairs: tuple[Scores, Scores] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Shared:
    """The inputs that all models share.

    Attributes:
        pool: The candidates for models of one tokenizer; None before the first of it.
    """

    canaries: CanaryTargets
    request: AuditRequest
    pool: Pool | None = None
    reference: ReferenceScores | None = None


def audit_canary(request: AuditRequest, notify: Notify = ignore) -> AuditDocument:
    """Measure how well each model remembers planted secrets: their rank among all alternatives.

    A model that fails to load among several is an `UnfinishedAudit`, and the others are still audited.

    Returns:
        The verdict on each model, in order; none is an exception.

    Raises:
        UsageError: The options contradict each other or the canaries.
        InputError: The manifest, the reference or the only model cannot be read.
        RunError: Ray cannot be started or reached.
    """
    return AuditDocument(models=tuple(audit_models(prepare_audit(request), request, notify)))


def audit_models(canaries: CanaryTargets, request: AuditRequest, notify: Notify) -> Iterator[AnyAudit]:
    """`audit_canary` model by model, each as it ends.

    Models of one tokenizer share the tokenised candidates and their trie, and all share the reference's scores.

    Args:
        canaries: From `prepare_audit`.
    """
    executor = make_executor(request.run_on, 1)
    use_threads(request.threads)
    find_device(request.device)
    shared = _Shared(canaries=canaries, request=request)
    if request.reference is not None:
        checkpoint = load_checkpoint(request.reference, request.device)
        pool = _pool(checkpoint.tokenizer, shared, notify)
        shared = replace(shared, pool=pool, reference=_reference_scores(checkpoint, pool, shared, notify))
        del checkpoint
    if isinstance(executor, Ray):
        yield from _on_ray(executor, request.models, shared, notify)
        return
    for folder in request.models:
        audit: AnyAudit
        try:
            audit, shared = _audit_model(folder, shared, notify)
        except AtdpError as error:
            audit = _unfinished(folder, error, alone=len(request.models) == 1)
        yield audit


def _unfinished(folder: Path, error: AtdpError, *, alone: bool) -> UnfinishedAudit:
    if alone:
        raise error
    return UnfinishedAudit(model=str(folder), reasons=(str(error),))


def _audit_model(folder: Path, shared: _Shared, notify: Notify) -> tuple[Audit, _Shared]:
    """Audit a model, which leaves memory before the next one loads, and return what the next one shares."""
    checkpoint = load_checkpoint(folder, shared.request.device, audited=True)
    if shared.reference is not None:
        check_same_tokenizer(folder, checkpoint, shared.reference.fingerprint)
    canaries = shared.canaries
    reader = canaries.reader(checkpoint.tokenizer)
    records = (canaries.scored.record(canaries.scored.secret(target.index)) for target in canaries.targets)
    # Before millions of candidates are tokenised.
    check_context(checkpoint.model, max(len(encode_record(reader, record)) for record in records), str(folder))
    pool = _pool(checkpoint.tokenizer, shared, notify)
    shared = replace(shared, pool=pool)
    audit = _audit(folder, checkpoint, pool, shared, notify)
    return audit.model_copy(update={"weights": dict(checkpoint.seal)}), shared


def _pool(tokenizer: PreTrainedTokenizerFast, shared: _Shared, notify: Notify) -> Pool:
    """The candidates for a model, which may be those of the model before."""
    canaries = shared.canaries
    sample = shared.request.sample_rule(canaries)
    reader = canaries.reader(tokenizer)
    return pool_of(reader, canaries.scored, canaries.targets, notify, sample=sample, previous=shared.pool)


def _reference_scores(checkpoint: Checkpoint, pool: Pool, shared: _Shared, notify: Notify) -> ReferenceScores:
    canaries, request, name = shared.canaries, shared.request, str(shared.request.reference)
    scores = all_scores(checkpoint.model, pool, name, notify)
    records = None
    if "membership" in request.tried:
        records = canary_records(checkpoint, canaries, canaries.targets, name=name)
    return ReferenceScores(
        fingerprint=checkpoint.tokenizer_sha256,
        scores=scores,
        records=records,
        pairs=pair_scores(checkpoint, canaries, name=name) if canaries.calibrated else None,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedCanaries:
    """The canaries as one model ranks them.

    Attributes:
        scores: log p of every candidate that bears on a rank.
        plain: The canaries' ranks by log p.
        ratio: Those by log p - log p_ref; None without a reference.
    """

    scores: Scores
    plain: tuple[Rank, ...]
    ratio: tuple[Rank, ...] | None


def rank_canaries(
    model: PreTrainedModel,
    canaries: CanaryTargets,
    pool: Pool,
    reference: Scores | None,
    *,
    full: bool = False,
    name: str,
    notify: Notify,
) -> RankedCanaries:
    """Rank the canaries by a model in memory, which is in eval mode and fp32.

    Args:
        reference: The public base model's scores of the pool.
        full: Score candidates too that bear on no rank.

    Raises:
        UsageError: The model is in another mode or in half precision, or its context is too short.
        RunError: The model cannot be run.
    """
    targets = canaries.targets
    if reference is None and not full:
        scores = likeliest_scores(model, pool, targets, name, notify)
    else:
        scores = all_scores(model, pool, name, notify)
    plain = rank_targets(scores, pool, targets)
    ratio = rank_targets(scores - reference, pool, targets) if reference is not None else None
    return RankedCanaries(scores=scores, plain=plain, ratio=ratio)


def _audit(folder: Path, checkpoint: Checkpoint, pool: Pool, shared: _Shared, notify: Notify) -> Audit:
    canaries, reference, request = shared.canaries, shared.reference, shared.request
    model, template, targets, name = checkpoint.model, canaries.template, canaries.targets, str(folder)
    plan = games_for(ledger_of(folder, checkpoint.seal), canaries, pool, request)
    base = None if reference is None else reference.scores
    ranked = rank_canaries(model, canaries, pool, base, full=request.describe_candidates, name=name, notify=notify)
    scores, plain, ratio = ranked.scores, ranked.plain, ranked.ratio
    mismatch = canaries.mismatch(checkpoint.tokenizer)
    judge_ranks = partial(
        judge,
        name,
        targets=targets,
        pool=template.pool,
        levels=plan.levels,
        calibrated=canaries.calibrated,
        limits=request.limits,
        length_groups=sample_length_groups(pool, targets),
        by_ranks=RANKS in request.gates,
    )
    paired = any(game.method == "pair" for game in plan.games)
    pairs = pair_scores(checkpoint, canaries, name=name) if paired else None
    pairs = relative_pairs(pairs, reference.pairs if reference else None)
    # Ranks of other tokens than the trained ones bound nothing.
    bounds = play_games(plan, ratio or plain, targets, pairs) if mismatch is None else ()
    audit = judge_ranks(plain, ratio, mismatch=mismatch, epsilon=bounds)
    if audit.verdict is Verdict.PASS and (doubts := disagreements(model, pool, targets, name)):
        audit = audit.model_copy(
            update={"verdict": Verdict.INCONCLUSIVE, "gate": Verdict.INCONCLUSIVE, "reasons": doubts}
        )
    gates = request.attack_gates if canaries.calibrated and mismatch is None else frozenset[Gate]()
    judge_copy = partial(judge_ranks, needs_power=False, by_ranks=True)
    if "relearning" in gates:
        copy_levels = Levels(test=plan.levels.attack / (2 if reference is None else 4), bound=0.0, attack=0.0)
        judge_copy = partial(judge_copy, levels=copy_levels)
    attacked = Attacked(
        name=name,
        checkpoint=checkpoint,
        canaries=canaries,
        pool=pool,
        scores=scores,
        reference=None if reference is None else reference.scores,
        reference_records=None if reference is None else reference.records,
        gates=gates,
        level=plan.levels.attack,
        judge=judge_copy,
    )
    audit = with_attacks(audit, attacked, request, notify).model_copy(update={"group_epsilon": plan.groups})
    if not request.describe_candidates:
        return audit
    whole = distribution(scores, template, targets, show_secrets=request.show_secrets)
    return audit.model_copy(update={"distribution": whole})


def _on_ray(ray: Ray, models: Sequence[Path], shared: _Shared, notify: Notify) -> Iterator[AnyAudit]:
    """Audit each model in a Ray task, with as many processors as torch has threads here.

    Of its events only those are passed on that say what a user might not expect.

    Raises:
        RunError: Ray cannot be started or reached.
        UsageError: No machine has so many processors.
    """
    if shared.pool is None:
        shared = replace(shared, pool=_first_pool(models, shared, notify))
    threads = torch.get_num_threads()
    with connected(replace(ray, processors=max(threads, cores()))) as library:
        submit = submit_to(library, _begin, (shared, Path.cwd(), threads), processors=threads)
        tasks = [submit(model) for model in models]
        for done, (folder, wait) in enumerate(zip(models, tasks, strict=True), start=1):
            audit: AnyAudit
            try:
                audit, events = wait()
            except AtdpError as error:
                audit, events = _unfinished(folder, error, alone=len(models) == 1), []
            for event in events:
                notify(event)
            yield audit
            notify(RecordsRead(task="models on Ray", done=done, total=len(models)))


def _first_pool(models: Sequence[Path], shared: _Shared, notify: Notify) -> Pool | None:
    """The candidates for the first model whose tokenizer can be read."""
    for folder in models:
        with suppress(AtdpError):
            check_folder(folder, audited=True)
            return _pool(load_tokenizer(tokenizer_folder(folder)), shared, notify)
    return None


def _begin(work: tuple[_Shared, Path, int]) -> Callable[[Path], tuple[Audit, list[Event]]]:
    """A worker's function, in the working folder that relative paths begin at.

    It has as many threads as here: sums over other numbers of them differ in their last bits.
    """
    shared, place, threads = work
    try:
        os.chdir(place)
    except OSError as error:
        raise RunError(
            f"A worker of Ray has no folder {place}.", "Work in a folder that all machines see by one path."
        ) from error
    torch.set_num_threads(threads)

    def audit(folder: Path) -> tuple[Audit, list[Event]]:
        events: list[Event] = []
        result, _ = _audit_model(folder, shared, events.append)
        return result, [event for event in events if isinstance(event, ChoiceWarning)]

    return audit
