"""`atdp audit-corpus`: what a model has memorised of its corpus, with nothing planted."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.audit_canary.report_files import file_uri, write_text_file
from atdp_cli.cli.audit_corpus.options import MapOptions, MapOutputOptions, MappedDataOptions
from atdp_cli.cli.audit_corpus.output import show_map
from atdp_cli.cli.options.shared import BackendOptions, ProgressOptions, ThreadOptions, make_detector
from atdp_cli.cli.terminal.console import progress, stdout_console, write_json
from atdp_cli.cli.terminal.escape import escaped_json, escaped_lines
from atdp_cli.errors import UsageError
from atdp_cli.text.options import DetectionOptions, RecordOptions, ReplacingOptions

if TYPE_CHECKING:
    from atdp_cli.jobs.audit_corpus import CorpusMap

_EXIT_CODES = {None: 0, "PASS": 0, "FAIL": 1, "INCONCLUSIVE": 4}


def audit_corpus_command(
    corpus: MappedDataOptions,
    records: RecordOptions,
    mapping: MapOptions,
    detection: DetectionOptions,
    backend: BackendOptions,
    writing: MapOutputOptions,
    replacing: ReplacingOptions,
    saying: ProgressOptions,
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="One or more model folders.")],
    threads: ThreadOptions,
) -> None:
    """Map what each model has memorised of its corpus: the places that it knows better than held-out text.

    Nothing needs to be planted, and no detector is asked: two passes over every record find stretches that stand out.
    Exit codes: 0 within --max-memorised, or no limit; 1 above it; 2 usage or unreadable input; 3 not completed;
    4 above it, but the held-out records are too few to be sure.
    """
    from atdp_cli.files.atomic_write import same_file
    from atdp_cli.files.corpus_file import check_readable
    from atdp_cli.memory_result import MemoryDocument
    from atdp_cli.model.folder import check_folder

    corpus.check()
    if writing.output is not None and len(models) > 1:
        raise UsageError("-o takes the map of one model.", "Map the models one by one, or use --json.")
    writing.check(force=replacing.force)
    for file in (corpus.data, corpus.valid):
        if file is not None:
            check_readable(file)
    for folder in (*models, *(() if mapping.reference is None else (mapping.reference,))):
        check_folder(folder)
    if mapping.reference is not None and any(same_file(mapping.reference, folder) for folder in models):
        raise UsageError("The reference is a model to map.", "Give the base that it was trained from, or leave it out.")
    detector = make_detector(detection, corpus.data, backend)
    console = saying.console()

    from atdp_cli.jobs.audit_corpus import MapRequest, map_models, write_map  # loads torch
    from atdp_cli.model.device import use_threads

    use_threads(threads.threads)
    request = MapRequest(
        data=corpus.data,
        valid=corpus.valid,
        unit=records.unit,
        text_field=records.text_field,
        holdout_by=corpus.holdout_by,
        detector=detector,
        **dict(mapping),
    )
    with progress(console, saying.progress) as notify:
        maps = list(map_models(models, request, notify))
    if writing.output is not None:
        write_map(maps[0], writing.output, replace=replacing.force)
    _write_reports(writing, maps, corpus.data)
    if saying.as_json:
        write_json(MemoryDocument(models=tuple(each.memory for each in maps)).model_dump(mode="json"))
    shown = console if saying.as_json else stdout_console()
    for number, each in enumerate(maps):
        if number:
            shown.print()
        show_map(each.memory, [record.text for record in each.records] if writing.show_secrets else None, shown)
    codes = {_EXIT_CODES[each.memory.verdict] for each in maps}
    raise typer.Exit(1 if 1 in codes else max(codes))


def _write_reports(writing: MapOutputOptions, maps: "Sequence[CorpusMap]", data: Path) -> None:
    """The files for CI that were asked for."""
    from atdp_cli import __version__
    from atdp_cli.files.corpus_file import kind_of
    from atdp_cli.files.document import document_text
    from atdp_cli.report.junit import junit
    from atdp_cli.report.memory_checks import best_places, checked_map
    from atdp_cli.report.sarif import ResultFile, sarif

    models = [checked_map(each.memory) for each in maps]
    if writing.junit is not None:
        write_text_file(writing.junit, escaped_lines(junit(models, "audit-corpus")))
    if writing.sarif is None:
        return
    runs = []
    for each, model in zip(maps, models, strict=True):
        # The id of a record of plain text is the line on which it begins.
        lines = (
            tuple(int(each.records[place.record - 1].id) for place in best_places(each.memory))
            if kind_of(data) == "text"
            else ()
        )
        file = ResultFile(uri=file_uri(data), lines=lines)
        runs.append(sarif([model], file, __version__, kind="text"))
    log = runs[0] | {"runs": [run for each in runs for run in each["runs"]]}
    write_text_file(writing.sarif, escaped_json(document_text(log)))
