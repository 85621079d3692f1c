"""`atdp audit-corpus`: map what each model has memorised of its corpus."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column

from atdp_cli.audit.results import Verdict
from atdp_cli.cli.audit_canary_screen import exit_code
from atdp_cli.cli.ci_files import CiOptions, file_uri, tell_github, write_ci_files
from atdp_cli.cli.console import make_table, progress, stdout_console, write_json
from atdp_cli.cli.help import ProgressOptions
from atdp_cli.errors import UsageError
from atdp_cli.files.atomic_write import atomic_write
from atdp_cli.files.corpus_file import kind_of
from atdp_cli.files.private import make_private, private_folder
from atdp_cli.memorisation.request import AUDIT, MapRequest, prepare_map
from atdp_cli.memorisation.results import MemorisedPlace, MemoryDocument, MemoryMap
from atdp_cli.reporting.ci.baseline import new_memories, read_baseline
from atdp_cli.reporting.ci.checks import (
    CheckedModel,
    ResultFile,
    best_places,
    checked,
    memory_sentences,
    samples_needed,
)
from atdp_cli.reporting.ci.formats import memory_summary
from atdp_cli.reporting.memorisation_page import MAP_PAGE, render_map_page
from atdp_cli.settings import OUTPUT, Option

if TYPE_CHECKING:
    from atdp_cli.memorisation.run import CorpusMap


class MapOutputOptions(CiOptions):
    """The files to write, the baseline, and the text to show."""

    baseline: Annotated[Path | None, Option(AUDIT, main=True)] = None
    """Fail only what is worse than this file of --write-baseline records: a model or numbers of records that it does
    not know, more memorised records, or more texts that greedy decoding says. Needs --max-memorised. Models are known
    by their paths as given."""

    output: Annotated[Path | None, Option(OUTPUT, main=True, flags=("--output", "-o"), writes=True)] = None
    """Write the map of one model: a spans file with every place, its scores and p-value, and no text. It is what
    harden --extra-spans takes."""

    html: Annotated[bool, Option(OUTPUT)] = False
    """Write memory_map.html into CORPUS.private/, the private folder beside --data: the worst texts and the records
    with most of them."""

    show_secrets: Annotated[bool, Option(OUTPUT)] = False
    """Show the places' text on the screen, and with --html that of the records on the page. No other file and no JSON
    holds it."""

    def page(self, data: Path) -> Path | None:
        """The path of the page; None if it was not asked for.

        Raises:
            UsageError: The corpus has no folder.
        """
        if not self.html:
            return None
        folder = private_folder(data)
        if folder is None:
            raise UsageError("--html writes into the folder beside --data, which is no file.", "Give a file.")
        return folder / MAP_PAGE

    def check_map(self, request: MapRequest) -> None:
        """Refuse output files that exist or are the same, before anything is read.

        Raises:
            UsageError: A file exists, two are the same, one is for the maps of several models, or a baseline is given
                where nothing can fail.
            InputError: A folder does not exist.
        """
        if self.output is not None and len(request.models) > 1:
            raise UsageError("-o takes the map of one model.", "Map the models one by one, or use --json.")
        page = self.page(request.data)
        self.check(request, *((page,) if page is not None and page.parent.exists() else ()))
        if self.baseline is not None and request.max_memorised is None:
            raise UsageError("--baseline says what may fail, and nothing can without a limit.", "Add --max-memorised.")


def audit_corpus_command(request: MapRequest, writing: MapOutputOptions, saying: ProgressOptions) -> None:
    """Map what each model has memorised of its corpus: the places that it knows better than held-out text.

    Nothing needs to be planted, and no detector is asked: two passes over every record find stretches that stand out.
    Exit codes: 0 within --max-memorised, no worse than --baseline, or no limit; 1 above it; 2 usage or unreadable
    input; 3 not completed; 4 above it, but the held-out records are too few to be sure.
    """
    console = saying.console()
    writing.check_map(request)
    with progress(console, saying.progress) as notify:
        detector = prepare_map(request)
        baseline = None if writing.baseline is None else read_baseline(writing.baseline)
        models = len(request.models)
        console.print(f"Mapping {'1 model' if models == 1 else f'{models:,} models'}.")
        from atdp_cli.memorisation.run import map_models

        maps = list(map_models(detector, request, notify))
    if baseline is not None:
        maps = [replace(each, memory=new_memories(each.memory, baseline)) for each in maps]
    checked = write_map_files(writing, maps, request.data)
    tell_github(checked, memory_summary([each.memory for each in maps]))
    _show(maps, console, as_json=saying.as_json, show_secrets=writing.show_secrets)
    if (page := writing.page(request.data)) is not None:
        console.print(f"The page is {page}.", soft_wrap=True)
    raise typer.Exit(exit_code(Verdict(each.memory.gate or "PASS") for each in maps))


MAX_VALUES = 20


def _show(maps: "Sequence[CorpusMap]", console: Console, *, as_json: bool, show_secrets: bool) -> None:
    """Print the results, as JSON or for people."""
    if as_json:
        write_json(MemoryDocument(models=tuple(each.memory for each in maps)).model_dump(mode="json"))
    shown = console if as_json else stdout_console()
    for number, each in enumerate(maps):
        if number:
            shown.print()
        show_map(each.memory, [record.text for record in each.records] if show_secrets else None, shown)


MAX_CHARACTERS = 60

NOTES = (
    "nats: above the model's average gain, at the best of its places.",
    "samples: draws after the text before it until even odds that one holds it.",
    "decoys: the share likelier than a flagged value; a: as likely anywhere else.",
)


def show_map(memory_map: MemoryMap, texts: Sequence[str] | None, console: Console) -> None:
    """Print one model's map.

    Args:
        texts: Those of all records, to show what stands at the places; None to show labels alone.
    """
    head = "" if memory_map.verdict is None else f"{memory_map.verdict} "
    known = " (no worse than the baseline)" if memory_map.baseline == "known" else ""
    console.print(f"{head}{memory_map.model}{known}", style="bold", soft_wrap=True)
    for line in memory_sentences(memory_map):
        console.print(line)
    if not memory_map.places:
        return
    counts = Counter(place.value for place in memory_map.places)
    values = best_places(memory_map)
    rows = [
        (
            f"{place.record:,}",
            f"{place.start}–{place.end}",
            f"{counts[place.value]:,}",
            place.label,
            f"{place.gain:.1f}",
            samples_needed(place),
            _decoys(place),
            *((texts[place.record - 1][place.start : place.end][:MAX_CHARACTERS],) if texts else ()),
        )
        for place in values[:MAX_VALUES]
    ]
    columns = ("record", "characters", "places", "label", "nats", "samples", "decoys", Column("text", overflow="fold"))
    console.print(make_table(columns if texts else columns[:-1], rows, right=(0, 2, 4, 5, 6)))
    if len(values) > MAX_VALUES:
        console.print(f"And {len(values) - MAX_VALUES:,} more texts; -o or --json has all places.")
    for line in NOTES:
        console.print(line)


def _decoys(place: MemorisedPlace) -> str:
    if place.rank is None:
        return "–"
    return f"{place.rank.likelier:.3f}{' a' if place.rank.anywhere else ''}"


def write_map_files(writing: MapOutputOptions, maps: "Sequence[CorpusMap]", data: Path) -> list[CheckedModel]:
    """Write the files that were asked for: the map, those for CI, the page."""
    from atdp_cli.memorisation.run import write_map

    if writing.output is not None:
        write_map(maps[0], writing.output, replace=writing.force)
    models = [checked(each.memory, _lines(each, data)) for each in maps]
    write_ci_files(writing, [each.memory for each in maps], models, kind="text")
    if (page := writing.page(data)) is not None:
        _write_page(page, maps, replacing=writing.force, show_text=writing.show_secrets)
    return models


def _lines(mapped: "CorpusMap", data: Path) -> ResultFile:
    """The corpus, with the line of each memorised text where it is plain text: there a record's id is its line."""
    lines = (int(mapped.records[place.record - 1].id) for place in best_places(mapped.memory))
    return ResultFile(uri=file_uri(data), lines=tuple(lines) if kind_of(data) == "text" else ())


def _write_page(path: Path, maps: "Sequence[CorpusMap]", *, replacing: bool, show_text: bool) -> None:
    records = [[(record.id, record.text) for record in each.records] for each in maps]
    page = render_map_page([each.memory for each in maps], records, show_text=show_text)
    make_private(path.parent)
    with atomic_write(path, mode=0o600, replace=replacing) as stream:
        stream.write(page.encode("utf-8", "backslashreplace"))
