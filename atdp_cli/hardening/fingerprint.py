"""The fingerprint of a run: two attempts with the same one are the same run. Loads no torch."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.split import Split
from atdp_cli.detection.options import DetectionOptions
from atdp_cli.detection.settings import CrosscheckSettings, DetectorSettings
from atdp_cli.errors import UsageError
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.recipes import resolved_recipe
from atdp_cli.hardening.request import SettledRequest, options_of
from atdp_cli.model.folder import base_of, is_adapter, tokenizer_folder, weight_files
from atdp_cli.model.hashes import seal_of
from atdp_cli.settings import declared, flags
from atdp_cli.training.options import TrainingRunOptions
from atdp_cli.training.recipe_file import recipe_text

RECORDS, START, RECIPE, PLAN = "records", "starting checkpoint", "recipe", "plan"

SETTINGS = "settings of models"
"""The part that holds configuration and tokenizer of all models that are read."""

NOT_GIVEN = "not given"

Fingerprint = Mapping[str, str]
"""Parts of a run by name: hashes of what is large or private, and settings as they are."""


def check_same_fingerprint(folder: Path, before: Fingerprint, now: Fingerprint) -> None:
    """Refuse to resume another run than the one that was interrupted.

    Raises:
        UsageError: Names the first thing in which they differ.
    """
    if difference := first_difference(before, now):
        raise UsageError(
            f"{folder} is from another run: {difference}.",
            "Give it what it was started with, or start again with --force; nothing of it was released.",
        )


def first_difference(before: Fingerprint, now: Fingerprint) -> str | None:
    """The first difference between two runs; None if they are the same."""
    for name in {**before, **now}:
        was, is_now = before.get(name, NOT_GIVEN), now.get(name, NOT_GIVEN)
        if was != is_now:
            return _describe(name, was, is_now)
    return None


DIFFERENCES = {
    RECORDS: "the records are not the same, so a corpus has changed, or what of it is held out",
    START: "the starting checkpoint's files are not the same",
    SETTINGS: "a configuration, a tokenizer or the settings of an adapter are not the same",
    PLAN: "its plan was another, as another version of atdp may make it",
}
"""The message for each part whose hashes differ."""


def _describe(name: str, was: str, is_now: str) -> str:
    if name in DIFFERENCES:
        return DIFFERENCES[name]
    if name == RECIPE:
        pairs = zip_longest(was.splitlines(), is_now.splitlines(), fillvalue="other stages")
        first, second = next(pair for pair in pairs if pair[0] != pair[1])
        return f"its recipe has `{first}`, this one `{second}`"
    if max(len(was), len(is_now)) > 40:
        return f"what {name} names is not the same"
    return f"{name} was {was}, now it is {is_now}"


def fingerprint(planned: Planned) -> dict[str, str]:
    """Everything that a run's steps and their ε depend on; what may change between attempts is left out.

    The hash of the records has no key, so it stays where the records' spans are.

    Raises:
        InputError: A file cannot be read.
    """
    request, sha256, plan = planned.request, planned.sha256, _plan(planned)
    start = {RECORDS: _records(planned.split), START: _model(request.model, sha256), RECIPE: plan[RECIPE]}
    values = options_of(request)
    options = {
        flags(name, option)[0]: _text(values[name], sha256)
        for name, _, option in declared(TrainingRunOptions, DetectionOptions)
        if option.fingerprint is True
    } | {
        f"{name} of --detector": _text(values[name], sha256)
        for name, _, option in declared(DetectorSettings)
        if option.fingerprint is True
    }
    return start | options | plan | {SETTINGS: _settings(request, sha256)}


def _plan(planned: Planned) -> dict[str, str]:
    """The parts of the fingerprint that change with the plan."""
    events = [event.model_dump(mode="json", exclude={"run", "relation"}) for event in planned.plan.ledger.events]
    searches = [json.dumps(asdict(stage.search)) for stage in planned.plan.training if stage.search is not None]
    return {RECIPE: recipe_text(resolved_recipe(planned)), PLAN: _digest([json.dumps(events), *searches])}


def _records(split: Split) -> str:
    held_out = json.dumps(sorted(split.held_out))
    return _digest([held_out, *_contents(split.records), "sources", *_contents(split.sources or ())])


def _contents(records: Iterable[Record]) -> Iterable[str]:
    return (json.dumps([record.id, record.canonical]) for record in records)


def _model(folder: Path, sha256: Callable[[Path], str]) -> str:
    files = [*weight_files(folder), tokenizer_folder(folder) / "tokenizer.json"]
    if is_adapter(folder):
        files += weight_files(base_of(folder))
    return _digest(map(sha256, files))


def _settings(request: SettledRequest, sha256: Callable[[Path], str]) -> str:
    models = filter(None, (request.model, request.reference))
    return _digest(name + digest for folder in models for name, digest in seal_of(folder, sha256).items())


def _text(value: object, sha256: Callable[[Path], str]) -> str:
    """A setting as the fingerprint holds it; files and folders as hashes, so that they may move."""
    match value:
        case None | ():
            return NOT_GIVEN
        case Path():
            return _model(value, sha256) if value.is_dir() else sha256(value)
        case tuple():
            return _digest(map(sha256, value))
        case CrosscheckSettings():
            return f"{value.model}, {'unmasked' if value.send_unmasked else 'masked'}"
        case _:
            return str(value)


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
