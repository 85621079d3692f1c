"""`atdp audit-canary` as a function."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.alternatives import SAMPLE
from atdp_cli.audit.canary import Target, Template, find_template
from atdp_cli.audit.candidates import LARGEST_POOL, sampled
from atdp_cli.audit.distribution import distribution
from atdp_cli.audit.exposure import Scores, Standing
from atdp_cli.audit.findings import Audit, EpsilonBound
from atdp_cli.audit.manifest import Manifest, read_manifest, token_mismatch
from atdp_cli.audit.membership import RecordScores
from atdp_cli.audit.verdict import DEFAULT, Limits, judge, with_own_secrets
from atdp_cli.errors import AtdpError, InputError, UsageError
from atdp_cli.events import Notify
from atdp_cli.jobs.attacks import NONE, Attack, Attacks, canary_records, extracted, resurfaced, told_apart
from atdp_cli.jobs.claims import HALF_AND_ROOT, Games, epsilon_bounds
from atdp_cli.jobs.corpusnumbers import Located
from atdp_cli.jobs.engines import ALONE, Engine
from atdp_cli.jobs.modeltasks import on_each
from atdp_cli.jobs.onray import Ray
from atdp_cli.jobs.ownsecrets import OwnReference, measure_own, reference_own
from atdp_cli.jobs.standing import Pool, all_scores, likeliest_scores, placed, placed_exactly, pool_of
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, load_tokenizer
from atdp_cli.model.folder import check_folder, tokenizer_folder, weight_files
from atdp_cli.model.tokens import tokenizer_fingerprint
from atdp_cli.privacy.ledger import file_sha256

NO_CANARIES = (
    "There is nothing to audit: no --manifest and no --canary was given.",
    "Canaries must be in the data before fine-tuning: run 'atdp plant-canary CORPUS -o planted.txt --manifest "
    "canaries.json --tokenizer MODEL', fine-tune on planted.txt, then audit with --manifest canaries.json.",
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of every model.

    Attributes:
        manifest: None for a secret that was typed by hand, which is uncalibrated.
    """

    template: Template
    targets: tuple[Target, ...]
    manifest: Manifest | None

    @property
    def calibrated(self) -> bool:
        """Whether the secrets were drawn at random."""
        return self.manifest is not None and self.manifest.calibrated


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A model that could not be audited, and why."""

    model: str
    error: AtdpError


@dataclass(frozen=True, kw_only=True)
class Own:
    """Numbers of the corpus itself, and how many alternatives to draw for those with too many to list."""

    located: Located
    sample: int = SAMPLE

    def __post_init__(self) -> None:
        if self.sample < 1:
            raise UsageError(f"alternatives is {self.sample}.", "Choose a number from 1.")


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What is done with every model, and what fails it.

    Attributes:
        reference: Folder of the public base model.
        full: Describe the distribution over all candidates.
        shown: Say there what the likeliest candidates are.
        own: The corpus' own numbers, to be ranked too.
    """

    reference: Path | None = None
    limits: Limits = DEFAULT
    games: Games = HALF_AND_ROOT
    attacks: Attacks = NONE
    full: bool = False
    shown: bool = False
    own: Own | None = None


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


def pose(manifest: Path | None, canary: str | None) -> Question | None:
    """The question that a manifest or a typed canary asks; None where neither was given.

    Raises:
        UsageError: Both were given.
        InputError: The manifest is malformed.
    """
    if manifest is not None and canary is not None:
        raise UsageError("--manifest and --canary exclude each other.", "Give one of them.")
    if manifest is not None:
        found = read_manifest(manifest)
        return Question(template=found.slots(), targets=found.targets(), manifest=found)
    if canary is None:
        return None
    template, secret = find_template(canary)
    target = Target(index=template.index_of(secret), repeats=1)
    return Question(template=template, targets=(target,), manifest=None)


def check_posed(question: Question | None, request: AuditRequest) -> None:
    """Refuses, before any model is read, what cannot be answered.

    Raises:
        UsageError: As said.
    """
    if question is None:
        if request.own is None:
            raise UsageError(*NO_CANARIES)
        if request.attacks.wanted or request.full:
            raise UsageError("--attacks and --full are about canaries, and there are none.", "Give --manifest.")
        return
    coins = question.manifest is not None and question.manifest.coins
    if Attack.MEMBERSHIP in request.attacks.wanted and not coins:
        raise UsageError(
            "--attacks membership compares canaries that a coin put in with those that it left out.",
            "Plant them with plant-canary --in-out.",
        )
    if request.games.guesses is not None and not coins:
        raise UsageError("--guesses is about coins, and none were tossed.", "Plant with plant-canary --in-out.")
    if request.full and sampled(question.template):
        raise UsageError(
            f"--full describes all candidates, and the template has over {LARGEST_POOL:,}.", "Use a shorter slot."
        )


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
    asked: dict[str, Any] = {"question": question, "request": request, "base": base, "pool": pool}
    if isinstance(engine, Ray):
        asked["pool"] = pool or _first_pool(models, question, notify)
        audits = on_each(engine, models, partial(_apart, **asked), notify)
    else:
        audits = _one_by_one(models, notify, **asked)
    for folder, found in zip(models, audits, strict=True):
        if not isinstance(found, AtdpError):
            yield found
        elif len(models) == 1:
            raise found
        else:
            yield Unfinished(model=str(folder), error=found)


def _one_by_one(
    models: Sequence[Path],
    notify: Notify,
    *,
    question: Question | None,
    request: AuditRequest,
    base: Base | None,
    pool: Pool | None,
) -> Iterator[Audit | AtdpError]:
    for folder in models:
        try:
            checkpoint = load_checkpoint(folder)
            if base is not None and base.fingerprint != tokenizer_fingerprint(checkpoint.tokenizer):
                raise InputError(
                    f"{folder} and the reference have different tokenizers.",
                    "Give the base model that it was trained from.",
                )
            pool = _pool(checkpoint.tokenizer, question, pool, notify)
            found = _audit(folder, checkpoint, question, pool, base, request=request, notify=notify)
            yield replace(found, weights={file.name: file_sha256(file) for file in weight_files(folder)})
        except AtdpError as error:
            yield error


def _apart(folder: Path, notify: Notify, **asked: Any) -> Audit:
    """One model's audit, as `_one_by_one` gives it, in a process of its own."""
    (found,) = _one_by_one([folder], notify, **asked)
    if isinstance(found, AtdpError):
        raise found
    return found


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
