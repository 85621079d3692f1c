"""`atdp audit-corpus`: what a model has memorised of its corpus, with nothing planted."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.audit_corpus.options import MapBaselineOptions, MapOptions, MapOutputOptions, MappedDataOptions
from atdp_cli.cli.audit_corpus.output import show_map
from atdp_cli.cli.options.shared import ProgressOptions
from atdp_cli.cli.terminal.ci_files import tell_github
from atdp_cli.cli.terminal.console import progress, stdout_console, write_json
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.model.options import DeviceOptions, ThreadOptions
from atdp_cli.text.options import (
    ChatTemplateOptions,
    DetectionOptions,
    ExecutorOptions,
    RecordOptions,
)

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.audit_corpus import CorpusMap
    from atdp_cli.report.ci.checks import CheckedModel

_EXIT_CODES = {None: 0, "PASS": 0, "FAIL": 1, "INCONCLUSIVE": 4}


def audit_corpus_command(
    corpus: MappedDataOptions,
    records: RecordOptions,
    chat: ChatTemplateOptions,
    mapping: MapOptions,
    against: MapBaselineOptions,
    detection: DetectionOptions,
    working: ExecutorOptions,
    writing: MapOutputOptions,
    saying: ProgressOptions,
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="One or more model folders.")],
    threads: ThreadOptions,
    computing: DeviceOptions,
) -> None:
    """Map what each model has memorised of its corpus: the places that it knows better than held-out text.

    Nothing needs to be planted, and no detector is asked: two passes over every record find stretches that stand out.
    Exit codes: 0 within --max-memorised, no worse than --baseline, or no limit; 1 above it; 2 usage or unreadable
    input; 3 not completed; 4 above it, but the held-out records are too few to be sure.
    """
    from atdp_cli.report.ci.github import memory_summary

    console = saying.console()
    with progress(console, saying.progress) as notify:
        maps, checked = run_map(
            models,
            corpus=corpus,
            records=records,
            chat=chat,
            mapping=mapping,
            against=against,
            detection=detection,
            working=working,
            writing=writing,
            threads=threads,
            computing=computing,
            notify=notify,
            began=lambda: console.print(f"Mapping {'1 model' if len(models) == 1 else f'{len(models):,} models'}."),
        )
    tell_github(checked, memory_summary([each.memory for each in maps]))
    _show(maps, console, as_json=saying.as_json, show_secrets=writing.show_secrets)
    if (page := writing.page(corpus.data)) is not None:
        console.print(f"The page is {page}.", soft_wrap=True)
    codes = {_EXIT_CODES[each.memory.gate] for each in maps}
    raise typer.Exit(1 if 1 in codes else max(codes))


def run_map(
    models: Sequence[Path],
    *,
    corpus: MappedDataOptions,
    records: RecordOptions,
    chat: ChatTemplateOptions,
    mapping: MapOptions,
    against: MapBaselineOptions,
    detection: DetectionOptions,
    working: ExecutorOptions,
    writing: MapOutputOptions,
    threads: ThreadOptions,
    computing: DeviceOptions,
    notify: Notify,
    began: Callable[[], None] = lambda: None,
) -> "tuple[list[CorpusMap], list[CheckedModel]]":
    """Map as the options say, and write the files that were asked for.

    Args:
        began: Called before torch is loaded, once nothing was refused.

    Returns:
        The map of each model, and what the files for CI have.
    """
    from atdp_cli.jobs.detector import make_detector
    from atdp_cli.report.ci.baseline import new_failures, read_baseline

    corpus.check()
    writing.check_map(corpus.data, models)
    against.check(mapping.max_memorised)
    _check_paths(corpus, mapping.reference, models)
    baseline = None if against.baseline is None else read_baseline(against.baseline)
    detector = make_detector(detection, corpus.data, run_on=working.run_on)
    began()

    from atdp_cli.cli.audit_corpus.files import write_map_files  # loads torch
    from atdp_cli.jobs.audit_corpus import MapRequest, map_models
    from atdp_cli.model.device import find_device, use_threads

    use_threads(threads.threads)
    find_device(computing.device)
    request = MapRequest(
        data=corpus.data,
        valid=corpus.eval_data,
        unit=records.privacy_unit,
        text_field=records.text_field,
        turns=records.turns,
        chat_template=chat.chat_template,
        holdout_by=corpus.holdout_by,
        detector=detector,
        device=computing.device,
        **dict(mapping),
    )
    maps = list(map_models(models, request, notify))
    if baseline is not None:
        maps = [replace(each, memory=new_failures(each.memory, baseline)) for each in maps]
    return maps, write_map_files(writing, maps, corpus.data)


def _check_paths(corpus: MappedDataOptions, reference: Path | None, models: Sequence[Path]) -> None:
    """Refuse what would end the command later."""
    from atdp_cli.files.atomic_write import same_file
    from atdp_cli.files.corpus_file import check_readable
    from atdp_cli.model.folder import check_folder

    for file in (corpus.data, corpus.eval_data):
        if file is not None:
            check_readable(file)
    for folder in models:
        check_folder(folder, audited=True)
    if reference is not None:
        check_folder(reference)
    if reference is not None and any(same_file(reference, folder) for folder in models):
        raise UsageError("The reference is a model to map.", "Give the base that it was trained from, or leave it out.")


def _show(maps: "Sequence[CorpusMap]", console: "Console", *, as_json: bool, show_secrets: bool) -> None:
    """The result on standard output, and for people."""
    from atdp_cli.memory_result import MemoryDocument

    if as_json:
        write_json(MemoryDocument(models=tuple(each.memory for each in maps)).model_dump(mode="json"))
    shown = console if as_json else stdout_console()
    for number, each in enumerate(maps):
        if number:
            shown.print()
        show_map(each.memory, [record.text for record in each.records] if show_secrets else None, shown)
