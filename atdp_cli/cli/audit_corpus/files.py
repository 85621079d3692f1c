"""The files that `atdp audit-corpus` writes."""

from collections.abc import Sequence
from pathlib import Path

from atdp_cli.cli.audit_corpus.options import MapOutputOptions
from atdp_cli.cli.terminal.ci_files import file_uri, write_ci_files
from atdp_cli.files.atomic_write import atomic_write
from atdp_cli.files.corpus_file import kind_of
from atdp_cli.files.private import make_private
from atdp_cli.jobs.audit_corpus import CorpusMap, write_map
from atdp_cli.report.ci.checks import CheckedModel, ResultFile, best_places, checked
from atdp_cli.report.memory_page import render_map_page


def write_map_files(writing: MapOutputOptions, maps: Sequence[CorpusMap], data: Path) -> list[CheckedModel]:
    """The files that were asked for: the map, those for CI, the page."""
    if writing.output is not None:
        write_map(maps[0], writing.output, replace=writing.force)
    models = [checked(each.memory, _lines(each, data)) for each in maps]
    write_ci_files(writing, [each.memory for each in maps], models, kind="text")
    if (page := writing.page(data)) is not None:
        _write_page(page, maps, replacing=writing.force, show_text=writing.show_secrets)
    return models


def _lines(mapped: CorpusMap, data: Path) -> ResultFile:
    """The corpus, with the line of each memorised text where it is plain text: there a record's id is its line."""
    lines = (int(mapped.records[place.record - 1].id) for place in best_places(mapped.memory))
    return ResultFile(uri=file_uri(data), lines=tuple(lines) if kind_of(data) == "text" else ())


def _write_page(path: Path, maps: Sequence[CorpusMap], *, replacing: bool, show_text: bool) -> None:
    records = [[(record.id, record.text) for record in each.records] for each in maps]
    page = render_map_page([each.memory for each in maps], records, show_text=show_text)
    make_private(path.parent)
    with atomic_write(path, mode=0o600, replace=replacing) as stream:
        stream.write(page.encode("utf-8", "backslashreplace"))
