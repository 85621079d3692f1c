"""The specification of a run of `harden`, and whether it can begin. Imports no torch before that is known."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.split import Split
from atdp_cli.detection.options import DetectionOptions
from atdp_cli.detection.settings import CrosscheckSettings, DetectorSettings
from atdp_cli.hardening.fingerprint import NOT_GIVEN, PLAN, RECIPE, RECORDS, SETTINGS, START
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.recipes import resolved_recipe
from atdp_cli.hardening.request import SettledRequest, options_of
from atdp_cli.hardening.run_spec import RunSpec
from atdp_cli.hardening.workspace import check_output
from atdp_cli.model.folder import base_of, is_adapter, tokenizer_folder, weight_files
from atdp_cli.model.hashes import seal_of
from atdp_cli.settings import declared, flags
from atdp_cli.training.options import TrainingRunOptions
from atdp_cli.training.recipe_file import recipe_text

if TYPE_CHECKING:
    from atdp_cli.hardening.results import HardenResult


def open_run(planned: Planned) -> "RunSpec | HardenResult | None":
    """The specification of a run that can begin, since its folders are free.

    Returns:
        Where the run to resume is over already, its result; None in its place in all processes but the first.

    Raises:
        UsageError: Something is in the way, or another run is at work there.
        InputError: A file cannot be read.
    """
    spec, ranks = run_spec(planned), planned.request.ranks
    if spec.resume:
        from atdp_cli.hardening.broadcast import broadcast_flag
        from atdp_cli.hardening.results import completed_run

        result = completed_run(spec) if ranks.first else None
        if broadcast_flag(ranks, result is not None):
            return result
    if ranks.first:
        check_output(spec)
    return spec


def run_spec(planned: Planned) -> RunSpec:
    """What the run's folders, journal and checkpoints need to know of it.

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
        corpus_key=planned.corpus_key,
        command=request.command,
        force=request.force,
        resume=request.resume,
    )


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
