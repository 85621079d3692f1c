"""The specification of a run of `harden`: its fingerprint, and what its folders have to know."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from atdp_cli.files.provenance import file_sha256
from atdp_cli.jobs.harden.recipes import resolved_recipe
from atdp_cli.jobs.harden.request import Planned, options_of
from atdp_cli.model.folder import base_of, is_adapter, tokenizer_folder, weight_files
from atdp_cli.options import declared, flags
from atdp_cli.runs.fingerprint import NOT_GIVEN, PLAN, RECIPE, RECORDS, START
from atdp_cli.runs.spec import RunSpec
from atdp_cli.text.corpus.records import Record
from atdp_cli.text.crosscheck.request import CrossCheck
from atdp_cli.text.options import DetectionOptions
from atdp_cli.training.options import TrainingRunOptions
from atdp_cli.training.recipe_file import recipe_text


def run_spec(planned: Planned) -> RunSpec:
    """What the folders of the run have to know of it.

    Raises:
        InputError: A file cannot be read.
    """
    request = planned.request
    return RunSpec(
        output=request.output,
        fingerprint=fingerprint(planned),
        plan=planned.plan,
        target_epsilon=request.target_epsilon,
        max_epsilon=request.max_epsilon,
        command=request.command,
        force=request.force,
        resume=request.resume,
    )


def fingerprint(planned: Planned) -> dict[str, str]:
    """All on which a run's steps and their ε depend; what may change between two attempts is not in it.

    The hash of the records has no key, so it stays where the records' spans are.

    Raises:
        InputError: A file cannot be read.
    """
    request = planned.request
    start = {RECORDS: _records(planned), START: _model(request.model), RECIPE: recipe_text(resolved_recipe(planned))}
    values = options_of(request)
    options = {
        flags(name, option)[0]: _text(values[name])
        for name, _, option in declared(TrainingRunOptions, DetectionOptions)
        if option.fingerprint is True
    }
    spent = [event.model_copy(update={"run": None}).model_dump(mode="json") for event in planned.plan.ledger.events]
    return start | options | {PLAN: _digest([json.dumps(spent)])}


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


def _text(value: object) -> str:
    """A setting as the fingerprint has it: of files and folders a hash, so that they may move."""
    match value:
        case None | ():
            return NOT_GIVEN
        case Path():
            return _model(value) if value.is_dir() else file_sha256(value)
        case tuple():
            return _digest(file_sha256(path) for path in value)
        case CrossCheck():
            return f"{value.model}, {'masked' if value.masked else 'unmasked'}"
        case _:
            return str(value)


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
