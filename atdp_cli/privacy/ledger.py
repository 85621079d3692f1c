"""The ledger: what every stage spent, in order. Its file is `privacy_ledger.json`.

The file ends with a digest of its content, so that a lost event or a changed figure is noticed, and it seals the
weights beside it. Both detect accidents, a mix-up or a damaged file. They are no signature: whoever can write the file
can write a matching digest.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from atdp_cli.errors import InputError
from atdp_cli.files.checkpoint_names import checkpoint_files, is_weights
from atdp_cli.files.documents import RepeatedKeyError, file_sha256, parse_json, read_whole
from atdp_cli.privacy.relation import Relation
from atdp_cli.settings import MIN_DELTA

LEDGER_FILE = "privacy_ledger.json"
DIGEST = "digest"

BASE = "base/"
"""The prefix in a seal of the names of an adapter's base files."""

MIN_RATE, MAX_NOISE, MAX_STEPS, MAX_RECORDS, MAX_COPIES = 1e-12, 1e12, 10**9, 10**12, 10_000
"""Bounds for the figures of a ledger: beyond them the accountants leave the range of floats, or run out of memory."""

Past = Literal["public", "declared", "unknown"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PlainTraining(_Frozen):
    """Training without protection: nothing bounds what it learnt from the text that it read.

    Attributes:
        run: The name of the run that spent it; None until the ledger is written. See `Ledger.run`.
        text: In `decoy` text every flagged span is a random value of the same shape, made by replacement/decoys.py.
        relation: Between which corpora it is stable: where it read the same text of both.
        chosen_on: The text on which the stage's settings were chosen: `decoy` by the loss of trials on held-out records
            with decoys of the same release, `raw` by how a model ranked true values of the records, which nothing
            bounds. None where no text had a say.
    """

    kind: Literal["plain"] = "plain"
    run: str | None = None
    stage: str
    text: Literal["raw", "redacted", "decoy"]
    relation: Relation
    chosen_on: Literal["decoy", "raw"] | None = None


class SubsampledGaussian(_Frozen):
    """`steps` equal steps of the Poisson-subsampled Gaussian mechanism.

    Attributes:
        sampling_rate: q from `MIN_RATE` to 1, the probability of each record to be in a step.
        noise_multiplier: σ > 0, the noise's standard deviation over the clip norm; at most `MAX_NOISE`.
        clip_norm: C > 0, the largest L2 norm of a record's gradient.
        relation: Between which corpora each step is stable without its noise.
    """

    kind: Literal["subsampled_gaussian"] = "subsampled_gaussian"
    run: str | None = None
    stage: str
    sampling: Literal["poisson"] = "poisson"
    sampling_rate: float = Field(ge=MIN_RATE, le=1)
    noise_multiplier: float = Field(gt=0, le=MAX_NOISE)
    clip_norm: float = Field(gt=0)
    steps: int = Field(ge=1, le=MAX_STEPS)
    relation: Relation


class GaussianRelease(_Frozen):
    """One Gaussian release of a statistic of all records, noise σ·sensitivity.

    Attributes:
        sensitivity: How far zeroing out a record moves the statistic, in the L2 norm.
        replaced: How far replacing a record moves it, in sensitivities: at most 2, and at most √2 where what each
            record adds has no negative part.
        relation: Between which corpora the statistic is the same.
    """

    kind: Literal["gaussian_release"] = "gaussian_release"
    run: str | None = None
    stage: str
    statistic: str
    sensitivity: float = Field(gt=0)
    noise_multiplier: float = Field(gt=0, le=MAX_NOISE)
    replaced: float = Field(default=2.0, ge=1, le=2)
    relation: Relation


class ReadModel(_Frozen):
    """A stage read another model, its reference. The events of that model's own ledger come before this one.

    Attributes:
        past: Whether the reference's first checkpoint never saw the corpus: `public` as its ledger says of this corpus,
            `declared` where no ledger speaks of this corpus and the user says so, else `unknown`.
        weights: SHA-256 of each of its weight files.
    """

    kind: Literal["read_model"] = "read_model"
    run: str | None = None
    stage: str
    past: Past
    weights: dict[str, str]


class DecoyedText(_Frozen):
    """Copies of the corpus with decoys, written for trainers of others: what is not flagged stands in them as it is.

    Whatever is trained on them reads no more of the records, so it spends nothing else.

    Attributes:
        copies: Each with decoys of its own, all drawn by the same release or by none.
        relation: Between which corpora the copies have the same distribution, given the release.
    """

    kind: Literal["decoyed_text"] = "decoyed_text"
    run: str | None = None
    stage: str
    text: Literal["decoy"] = "decoy"
    copies: int = Field(ge=1, le=MAX_COPIES)
    relation: Relation


class DeclaredTraining(_Frozen):
    """A model that was trained elsewhere, on decoyed text and on nothing else of the corpus, as its user declares.

    The event adds no condition of its own, but no guarantee for flagged characters is better than declared after it.

    Attributes:
        corpora: The runs that wrote the decoyed text.
        weights: SHA-256 of each of the model's weight files.
    """

    kind: Literal["declared_training"] = "declared_training"
    run: str | None = None
    stage: str
    corpora: tuple[str, ...] = Field(min_length=1)
    weights: dict[str, str]


PrivateEvent = SubsampledGaussian | GaussianRelease
LedgerEvent = Annotated[
    PlainTraining | ReadModel | SubsampledGaussian | GaussianRelease | DecoyedText | DeclaredTraining,
    Field(discriminator="kind"),
]
CheckpointHistory = Literal["public", "unknown"]


class Ledger(_Frozen):
    """Everything a model's weights have spent, as far as this tool knows.

    Attributes:
        unit: What one record is: line, paragraph, document, or the name of a field.
        adjacency: `zero-out`: one record is replaced by an empty one at its place.
        checkpoint_history: Whether the first checkpoint is known never to have seen the corpora of the events.
        records: The largest N of the runs, in training records. Public under zero-out adjacency.
        delta: The δ that the run was planned for.
        grid: The PLD accountant's discretisation, in units of privacy loss.
        events: In the order in which they happened.
        run: A random name of the run that writes the ledger. In the file its events carry that name, and those of the
            runs before it theirs; ledgers that share an ancestor count it once.
        seal: SHA-256 of each file that the model is loaded from, and of those of an adapter's base as `base/NAME`. It
            shows accidents, not forgery.
    """

    schema_version: Literal[1] = 1
    kind: Literal["atdp-ledger"] = "atdp-ledger"
    unit: str
    adjacency: Literal["zero-out"] = "zero-out"
    checkpoint_history: CheckpointHistory
    records: int = Field(ge=1, le=MAX_RECORDS)
    delta: float = Field(ge=MIN_DELTA, lt=1)
    grid: float = Field(gt=0)
    events: tuple[LedgerEvent, ...]
    run: str | None = None
    seal: dict[str, str] = {}
    insecure_seed: bool = False
    created: str | None = None
    software: dict[str, str] = {}


def compact(events: Iterable[LedgerEvent]) -> tuple[LedgerEvent, ...]:
    """The events in order, neighbouring equal steps merged into one event."""
    merged: list[LedgerEvent] = []
    for event in events:
        last = merged[-1] if merged else None
        if (
            isinstance(event, SubsampledGaussian)
            and isinstance(last, SubsampledGaussian)
            and event.model_copy(update={"steps": 1}) == last.model_copy(update={"steps": 1})
        ):
            merged[-1] = last.model_copy(update={"steps": last.steps + event.steps})
        else:
            merged.append(event)
    return tuple(merged)


def private_events(events: Iterable[LedgerEvent]) -> tuple[PrivateEvent, ...]:
    """The events with noise."""
    return tuple(event for event in events if isinstance(event, SubsampledGaussian | GaussianRelease))


def unprotected_past(checkpoint_history: CheckpointHistory, inherited: Ledger | None) -> bool:
    """Whether a checkpoint may have memorised raw text: its past is unknown, or its ledger says so."""
    events = () if inherited is None else inherited.events
    return checkpoint_history == "unknown" or any(
        isinstance(event, PlainTraining) and event.text == "raw" for event in events
    )


def new_run() -> str:
    """A random name for a run. It is public."""
    return secrets.token_hex(8)


def write_ledger(path: Path, ledger: Ledger) -> None:
    """Write `ledger` as a file."""
    path.write_text(ledger_text(ledger), encoding="utf-8")


def ledger_text(ledger: Ledger) -> str:
    """`ledger` as indented JSON with its digest; events of its own run get the run's name."""
    events = tuple(event.model_copy(update={"run": event.run or ledger.run}) for event in ledger.events)
    ledger = ledger.model_copy(update={"events": events})
    document = ledger.model_dump(mode="json") | {DIGEST: digest_of(ledger)}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def digest_of(ledger: Ledger) -> str:
    """SHA-256 of the whole ledger."""
    return hashlib.sha256(ledger.model_dump_json().encode()).hexdigest()


def read_ledger(path: Path) -> Ledger:
    """Read a ledger file.

    Raises:
        InputError: The file is missing, is no ledger, has an unknown version, or its digest does not match.
    """
    try:
        text = read_whole(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a ledger.", "Give a privacy_ledger.json or its folder.") from error
    ledger, digest = _parsed(path, text)
    if digest != digest_of(ledger):
        raise InputError(
            f"{path} is not what was written: its digest does not fit, so an event may be missing or a figure changed.",
            "Restore the file as the tool wrote it, or remove it and take the past as unknown.",
        )
    return ledger


def _parsed(path: Path, text: str) -> tuple[Ledger, object]:
    """The ledger in a text, and its digest as stated there."""
    try:
        document = parse_json(text)
        digest = document.pop(DIGEST, None) if isinstance(document, dict) else None
        # JSON has no tuples, which strict validation of Python values would require.
        return Ledger.model_validate_json(json.dumps(document)), digest
    except ValidationError as error:
        first = error.errors()[0]
        where, what = ".".join(str(part) for part in first["loc"]) or "the file", first["msg"]
    except RepeatedKeyError:
        where, what = "the file", "a key stands more than once"
    except (ValueError, RecursionError):
        where, what = "the file", "Invalid JSON"
    raise InputError(
        f"{path} is not a ledger that this version reads: {where}: {what}.", "Take the file as the tool wrote it."
    )


def read_beside(folder: Path, sha256: Callable[[Path], str] = file_sha256) -> Ledger | None:
    """The ledger beside a checkpoint, its seal compared with the files there; None where there is none.

    Args:
        sha256: Hashes a file.

    Raises:
        InputError: The ledger is malformed, or its seal does not match the files beside it.
    """
    return read_verified(folder, sha256) if (folder / LEDGER_FILE).exists() else None


def read_verified(path: Path, sha256: Callable[[Path], str] = file_sha256) -> Ledger:
    """The ledger in a file or a folder, its seal compared with a model's files where weights lie beside it.

    The files of an adapter's base are not looked at.

    Raises:
        InputError: There is none, it is malformed, or its seal does not match the files beside it.
    """
    path = path / LEDGER_FILE if path.is_dir() else path
    ledger = read_ledger(path)
    present = checkpoint_files(path.parent)
    if any(map(is_weights, present.values())):
        own = {name: digest for name, digest in ledger.seal.items() if not name.startswith(BASE)}
        compare_seal(path, own, present, sha256)
    return ledger


def compare_seal(
    ledger: Path, sealed: Mapping[str, str], files: Mapping[str, Path], sha256: Callable[[Path], str]
) -> None:
    """Refuse files that are not those that a ledger sealed: one that changed, is missing or was added.

    Raises:
        InputError: Names the first.
    """
    for name in sorted(sealed.keys() | files.keys()):
        # Only a file that was found is opened, whatever the seal names.
        if name not in files or sealed.get(name) != sha256(files[name]):
            raise InputError(
                f"{ledger} does not fit the model beside it: {name} is not what it sealed.",
                "Restore the folder as it was written, or remove the ledger and take the past as unknown.",
            )
