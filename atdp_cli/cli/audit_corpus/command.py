"""`atdp audit-corpus`: what a model has memorised of its corpus, with nothing planted."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.audit_corpus.options import MapBaselineOptions, MapOptions, MapOutputOptions, MappedDataOptions
from atdp_cli.cli.audit_corpus.output import show_map
from atdp_cli.cli.options.shared import BackendOptions, ProgressOptions, ThreadOptions, make_detector
from atdp_cli.cli.terminal.ci_files import file_uri, write_ci_files
from atdp_cli.cli.terminal.console import progress, stdout_console, write_json
from atdp_cli.errors import UsageError
from atdp_cli.text.options import DetectionOptions, RecordOptions, ReplacingOptions
from atdp_cli.training.options import DeviceOptions

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.audit_corpus import CorpusMap
    from atdp_cli.report.ci.checks import ResultFile

_EXIT_CODES = {None: 0, "PASS": 0, "FAIL": 1, "INCONCLUSIVE": 4}


def audit_corpus_command(
    corpus: MappedDataOptions,
    records: RecordOptions,
    mapping: MapOptions,
    against: MapBaselineOptions,
    detection: DetectionOptions,
    backend: BackendOptions,
    writing: MapOutputOptions,
    replacing: ReplacingOptions,
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
    from atdp_cli.report.ci.memory_baseline import compared_with, read_map_baseline

    corpus.check()
    writing.check(corpus.data, models, force=replacing.force)
    against.check(mapping.max_memorised)
    _check_paths(corpus, mapping.reference, models)
    baseline = None if against.baseline is None else read_map_baseline(against.baseline)
    detector = make_detector(detection, corpus.data, backend)
    console = saying.console()

    from atdp_cli.jobs.audit_corpus import MapRequest, map_models  # loads torch
    from atdp_cli.model.device import find_device, use_threads

    use_threads(threads.threads)
    find_device(computing.device)
    request = MapRequest(
        data=corpus.data,
        valid=corpus.valid,
        unit=records.unit,
        text_field=records.text_field,
        holdout_by=corpus.holdout_by,
        detector=detector,
        device=computing.device,
        **dict(mapping),
    )
    with progress(console, saying.progress) as notify:
        maps = list(map_models(models, request, notify))
    if baseline is not None:
        maps = [replace(each, memory=compared_with(baseline, each.memory)) for each in maps]
    _write_files(writing, maps, corpus.data, replacing=replacing.force)
    _show(maps, console, as_json=saying.as_json, show_secrets=writing.show_secrets)
    if (page := writing.page(corpus.data)) is not None:
        console.print(f"The page is {page}.", soft_wrap=True)
    codes = {_EXIT_CODES[each.memory.gate] for each in maps}
    raise typer.Exit(1 if 1 in codes else max(codes))


def _check_paths(corpus: MappedDataOptions, reference: Path | None, models: Sequence[Path]) -> None:
    """Refuse what would end the command later."""
    from atdp_cli.files.atomic_write import same_file
    from atdp_cli.files.corpus_file import check_readable
    from atdp_cli.model.folder import check_folder

    for file in (corpus.data, corpus.valid):
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


def _write_files(writing: MapOutputOptions, maps: "Sequence[CorpusMap]", data: Path, *, replacing: bool) -> None:
    """The files that were asked for: the map, those for CI, the page."""
    from atdp_cli.jobs.audit_corpus import write_map
    from atdp_cli.report.ci.github import memory_summary
    from atdp_cli.report.ci.memory_baseline import make_map_baseline
    from atdp_cli.report.ci.memory_checks import checked_map

    if writing.output is not None:
        write_map(maps[0], writing.output, replace=replacing)
    found = [each.memory for each in maps]
    write_ci_files(
        writing.files,
        [checked_map(each.memory, _lines(each, data)) for each in maps],
        kind="text",
        baseline=make_map_baseline(found),
        summary=memory_summary(found),
    )
    if (page := writing.page(data)) is not None:
        _write_page(page, maps, replacing=replacing, show_text=writing.show_secrets)


def _lines(mapped: "CorpusMap", data: Path) -> "ResultFile":
    """The corpus, with the line of each memorised text where it is plain text: there a record's id is its line."""
    from atdp_cli.files.corpus_file import kind_of
    from atdp_cli.report.ci.checks import ResultFile
    from atdp_cli.report.ci.memory_checks import best_places

    lines = (int(mapped.records[place.record - 1].id) for place in best_places(mapped.memory))
    return ResultFile(uri=file_uri(data), lines=tuple(lines) if kind_of(data) == "text" else ())


def _write_page(path: Path, maps: "Sequence[CorpusMap]", *, replacing: bool, show_text: bool) -> None:
    from atdp_cli.files.atomic_write import atomic_write
    from atdp_cli.files.private import make_private
    from atdp_cli.report.memory_page import render_map_page

    records = [[(record.id, record.text) for record in each.records] for each in maps]
    page = render_map_page([each.memory for each in maps], records, show_text=show_text)
    make_private(path.parent)
    with atomic_write(path, mode=0o600, replace=replacing) as stream:
        stream.write(page.encode("utf-8", "backslashreplace"))
