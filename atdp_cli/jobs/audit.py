"""`atdp audit-canary` and `atdp plant-canary` as functions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.canary import Target, Template, draw, find_template, parse_template, plant
from atdp_cli.audit.candidates import Candidates, default_cache, load_candidates
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.manifest import Manifest, make_manifest, read_manifest, token_mismatch, write_manifest
from atdp_cli.audit.trie import score_pool
from atdp_cli.audit.verdict import Audit, audit_scores
from atdp_cli.errors import AtdpError, InputError, RunError, UsageError
from atdp_cli.events import Notify
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, load_tokenizer
from atdp_cli.model.folder import check_folder
from atdp_cli.model.tokens import tokenizer_fingerprint
from atdp_cli.text.files import check_new, check_readable, check_same_kind, kind_of, read_lines, written_whole

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


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A model that could not be audited, and why."""

    model: str
    error: AtdpError


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """The public base model: its tokenizer's fingerprint and its score of every candidate."""

    fingerprint: str
    scores: Scores


def pose(manifest: Path | None, canary: str | None) -> Question:
    """The question that a manifest or a typed canary asks.

    Raises:
        UsageError: Neither was given, or both.
        InputError: The manifest is malformed.
    """
    if manifest is not None and canary is not None:
        raise UsageError("--manifest and --canary exclude each other.", "Give one of them.")
    if manifest is not None:
        found = read_manifest(manifest)
        return Question(template=parse_template(found.template), targets=found.targets(), manifest=found)
    if canary is None:
        raise UsageError(*NO_CANARIES)
    template, secret = find_template(canary)
    target = Target(index=template.index_of(secret), repeats=1)
    return Question(template=template, targets=(target,), manifest=None)


def audit_models(
    models: Sequence[Path],
    question: Question,
    *,
    reference: Path | None,
    alpha: float,
    max_exposure: float | None,
    notify: Notify,
) -> Iterator[Audit | Unfinished]:
    """One audit a model, in order; a model that fails among several is reported and the rest go on.

    Raises:
        InputError: The reference, or the only model, cannot be read.
    """
    base = _score_reference(reference, question, notify) if reference is not None else None
    for folder in models:
        try:
            yield _audit(folder, question, base, alpha=alpha, max_exposure=max_exposure, notify=notify)
        except AtdpError as error:
            if len(models) == 1:
                raise
            yield Unfinished(model=str(folder), error=error)


def plant_canaries(
    corpus: Path,
    output: Path,
    manifest: Path,
    *,
    tokenizer: Path,
    template: str,
    count: int,
    repeats: int,
    again: Path | None,
    force: bool,
) -> Manifest:
    """Plant canaries in a text corpus and write the manifest.

    Args:
        again: A manifest whose canaries are planted anew at their own places, instead of drawing secrets.

    Raises:
        UsageError: A file would be overwritten, or a number is out of range.
        InputError: The corpus, the tokenizer or the manifest cannot be used.
    """
    if output.resolve() == manifest.resolve():
        raise UsageError("The corpus and the manifest would be one file.", "Give --manifest another name.")
    for path in (output, manifest):
        check_new(path, force=force)
    check_same_kind(corpus, output)
    check_folder(tokenizer)
    tokens = load_tokenizer(tokenizer)
    lines, endings = _read_lines(corpus)
    drawn: Literal["csprng", "by-hand"] = "csprng"
    if again is None:
        slot = parse_template(template)
        secrets = draw(slot, count)
        planted, positions = plant(lines, slot, secrets, repeats)
    else:
        known = read_manifest(again)
        drawn = known.drawn
        slot = parse_template(known.template)
        secrets = tuple(canary.secret for canary in known.canaries)
        wanted = [canary.positions for canary in known.canaries]
        planted, positions = plant(
            lines, slot, secrets, [canary.repeats for canary in known.canaries], positions=wanted
        )
    records = sum(1 for line in planted if line.strip())
    made = make_manifest(tokens, slot, secrets, positions, records=records, drawn=drawn)
    # The manifest first: a planted corpus whose secrets are lost would be worth nothing.
    write_manifest(manifest, made)
    with written_whole(output) as stream:
        stream.write(_joined(planted, positions, endings).encode("utf-8"))
    return made


def _audit(
    folder: Path,
    question: Question,
    base: Reference | None,
    *,
    alpha: float,
    max_exposure: float | None,
    notify: Notify,
) -> Audit:
    checkpoint = load_checkpoint(folder)
    if base is not None and base.fingerprint != tokenizer_fingerprint(checkpoint.tokenizer):
        raise InputError(
            f"{folder} and the reference have different tokenizers.", "Give the base model that it was trained from."
        )
    candidates = _candidates(checkpoint.tokenizer, question, notify)
    return audit_scores(
        str(folder),
        _scores(checkpoint, candidates, str(folder), notify),
        candidates.lengths,
        question.targets,
        reference_scores=base.scores if base is not None else None,
        calibrated=question.manifest is not None and question.manifest.calibrated,
        mismatch=token_mismatch(question.manifest, checkpoint.tokenizer) if question.manifest else None,
        alpha=alpha,
        max_exposure=max_exposure,
    )


def _score_reference(folder: Path, question: Question, notify: Notify) -> Reference:
    checkpoint = load_checkpoint(folder)
    return Reference(
        fingerprint=tokenizer_fingerprint(checkpoint.tokenizer),
        scores=_scores(checkpoint, _candidates(checkpoint.tokenizer, question, notify), str(folder), notify),
    )


def _scores(checkpoint: Checkpoint, candidates: Candidates, name: str, notify: Notify) -> Scores:
    try:
        return score_pool(checkpoint.model, candidates, name=name, notify=notify)
    except (RuntimeError, MemoryError) as error:  # torch's out of memory, or a model that its own code cannot run
        raise RunError(
            f"{name} could not be scored ({type(error).__name__}).", "Free some memory and try again."
        ) from error


def _candidates(tokenizer: PreTrainedTokenizerFast, question: Question, notify: Notify) -> Candidates:
    return load_candidates(tokenizer, question.template, cache=default_cache(), notify=notify)


def _read_lines(corpus: Path) -> tuple[list[str], list[str]]:
    """The lines of a plain text corpus and their endings; the last one gets an ending if it has none."""
    if kind_of(corpus) != "text":
        raise UsageError(f"{corpus} is not plain text.", "Canaries are planted in .txt corpora, a record a line.")
    check_readable(corpus)
    lines, endings = [], []
    for _, line, ending in read_lines(corpus):
        lines.append(line)
        endings.append(ending or "\n")
    return lines, endings


def _joined(planted: Sequence[str], positions: Sequence[Sequence[int]], endings: Sequence[str]) -> str:
    """The planted lines with the corpus' endings at its own lines, and its first ending at the canaries'."""
    ours = {line for group in positions for line in group}
    kept = iter(endings)
    return "".join(
        line + (endings[0] if number in ours else next(kept)) for number, line in enumerate(planted, start=1)
    )
