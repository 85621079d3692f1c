"""What makes a run that goes on the same run: the records, the models, the recipe and its privacy, each by name."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from atdp_cli.errors import UsageError
from atdp_cli.jobs.recipes import resolved
from atdp_cli.jobs.request import HardenRequest, Planned
from atdp_cli.model.folder import base_of, is_adapter, tokenizer_folder, weight_files
from atdp_cli.privacy.ledger import file_sha256
from atdp_cli.text.corpora.records import Record
from atdp_cli.training.recipefile import recipe_text

RECORDS, START, RECIPE, PLAN = "records", "starting checkpoint", "recipe", "plan"
NOT_GIVEN = "not given"

Identity = Mapping[str, str]
"""Parts of a run by name: hashes of what is large or private, and settings as they are."""


def identity_of(planned: Planned) -> dict[str, str]:
    """All on which a run's steps and their ε depend; what may change between two attempts is not in it.

    The hash of the records has no key, so it stays where the records' spans are.

    Raises:
        InputError: A file cannot be read.
    """
    request = planned.request
    found = {
        RECORDS: _records(planned),
        START: _model(request.model),
        RECIPE: recipe_text(resolved(planned)),
        "--prior": request.prior,
        "--target-epsilon": _given(request.target_epsilon),
        "--max-epsilon": _given(request.max_epsilon),
        "--reference": NOT_GIVEN if request.reference is None else _model(request.reference),
        "--until-exposure": _given(request.until_exposure),
        "--manifest": _file(request.manifest),
        "--spans": _file(request.spans),
        "--allow": _files(request.detector.allow),
        "--deny": _files(request.detector.deny),
        "--spacy-pipeline": _given(request.detector.pipeline),
        "--crosscheck": _crosscheck(request),
        "--review-each-epoch": _given(request.review),
        "--insecure-seed": _given(request.insecure_seed),
    }
    spent = [event.model_copy(update={"run": None}).model_dump(mode="json") for event in planned.plan.ledger.events]
    return found | {PLAN: _digest([json.dumps(spent)])}


def check_same(folder: Path, before: Identity, now: Identity) -> None:
    """Refuse to go on with another run than the one that was begun.

    Raises:
        UsageError: Names the first thing in which they differ.
    """
    for name in {**before, **now}:
        was, is_now = before.get(name, NOT_GIVEN), now.get(name, NOT_GIVEN)
        if was != is_now:
            raise UsageError(
                f"{folder} is from another run: {_difference(name, was, is_now)}.",
                "Give it what it was begun with, or start again with --force; nothing of it was released.",
            )


def _difference(name: str, was: str, is_now: str) -> str:
    if name == RECORDS:
        return "the records are not the same, so a corpus has changed, or what of it is held out"
    if name == START:
        return "the starting checkpoint's files are not the same"
    if name == RECIPE:
        first, second = _first_difference(was, is_now)
        return f"its recipe has {first}, this one {second}"
    if name == PLAN:
        return "its plan was another, as another version of atdp may make it"
    if max(len(was), len(is_now)) > 40:
        return f"what {name} names is not the same"
    return f"{name} was {was}, now it is {is_now}"


def _first_difference(was: str, is_now: str) -> tuple[str, str]:
    """The first lines that are not in both texts."""
    before, after = was.splitlines(), is_now.splitlines()
    return (
        next((f"`{line}`" for line in before if line not in after), "other stages"),
        next((f"`{line}`" for line in after if line not in before), "other stages"),
    )


def _records(planned: Planned) -> str:
    split = planned.split
    held_out = json.dumps(sorted(split.held_out))
    return _digest([held_out, *_told(split.records), "sources", *_told(split.sources or ())])


def _told(records: Iterable[Record]) -> Iterable[str]:
    return (json.dumps([record.id, record.text]) for record in records)


def _model(folder: Path) -> str:
    files = [*weight_files(folder), tokenizer_folder(folder) / "tokenizer.json"]
    if is_adapter(folder):
        files += weight_files(base_of(folder))
    return _digest(file_sha256(file) for file in files)


def _crosscheck(request: HardenRequest) -> str:
    asked = request.detector.crosscheck
    return NOT_GIVEN if asked is None else f"{asked.model}, {'masked' if asked.masked else 'unmasked'}"


def _given(value: object) -> str:
    return NOT_GIVEN if value is None else str(value)


def _file(path: Path | None) -> str:
    return NOT_GIVEN if path is None else file_sha256(path)


def _files(paths: Sequence[Path]) -> str:
    return _digest(file_sha256(path) for path in paths) if paths else NOT_GIVEN


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
