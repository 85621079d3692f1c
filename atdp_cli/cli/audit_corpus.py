"""The options of `atdp audit-corpus`."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BeforeValidator, Field

from atdp_cli.cli.ci_files import CiOptions, file_uri, tell_github, write_ci_files
from atdp_cli.cli.console import progress, stdout_console, write_json
from atdp_cli.cli.help import ProgressOptions
from atdp_cli.detection.options import ChatTemplateOptions, DetectionOptions, ExecutorOptions, RecordOptions
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.files.atomic_write import atomic_write
from atdp_cli.files.corpus_file import kind_of
from atdp_cli.files.private import make_private
from atdp_cli.memorisation.results import MemorisedPlace, MemoryMap
from atdp_cli.memorisation.run import CorpusMap, write_map
from atdp_cli.model.options import DeviceOptions, ThreadOptions
from atdp_cli.reporting.ci.checks import (
    CheckedModel,
    ResultFile,
    best_places,
    checked,
    memory_sentences,
    samples_needed,
)
from atdp_cli.reporting.memorisation_page import render_map_page
from atdp_cli.settings import DATA, OUTPUT, Option, Options, contradiction

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.memorisation.run import CorpusMap
    from atdp_cli.reporting.ci.checks import CheckedModel


AUDIT = "Audit"


def _limit(text: object) -> object:
    """`12`, `0.5%` or 0.005."""
    if not isinstance(text, str):
        return text
    try:
        if text.endswith("%"):
            return float(text.removesuffix("%")) / 100
        return float(text) if "." in text else int(text)
    except ValueError:
        raise contradiction(
            "max-memorised is neither a number nor a share.", "Give a whole number, or a share such as 0.5%."
        ) from None


class MappedDataOptions(Options):
    """What the models were trained on, and what they never read."""

    data: Annotated[Path, Option(DATA, main=True)]
    """What the models were trained on: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet."""

    eval_data: Annotated[Path | None, Option(DATA, main=True)] = None
    """Records of the same kind that no model has read: what chance looks like. The more, the smaller the p-values."""

    harden_split: Annotated[bool, Option(DATA, main=True)] = False
    """The models were trained by atdp harden on --data alone, so that it held out every twentieth record."""

    holdout_by: Annotated[str, Option(DATA, metavar="blank-line|FIELD")] = "record"
    """What is tested as one and held out whole, as for harden: the lines between blank ones, or all records with the
    same value of a field. Use it where records of a conversation or a user are alike."""

    def check(self) -> None:
        """Refuse a map without held-out records, or with two kinds of them.

        Raises:
            UsageError: As said.
        """
        if self.eval_data is None and not self.harden_split:
            raise UsageError(
                "Only records that the models never read tell memory from text that is merely likely.",
                "Give them by --eval-data, or --harden-split where atdp harden trained the models on --data.",
            )
        if self.eval_data is not None and self.harden_split:
            raise UsageError("--eval-data and --harden-split both say what is held out.", "Leave one of them out.")


class MapOptions(Options):
    """How a map is drawn, and what fails it."""

    reference: Annotated[Path | None, Option(AUDIT, main=True)] = None
    """The public base model. With it a token's score is log p − log p_ref; without it, log p."""

    fdr: Annotated[float, Field(gt=0, lt=1), Option(AUDIT)] = 0.05
    """The false discovery rate: the share of the findings that may be there by chance."""

    decoys: Annotated[int, Field(ge=1, le=10_000), Option(AUDIT)] = 200
    """Decoys that each flagged value among the findings is ranked among."""

    max_memorised: Annotated[
        Annotated[int, Field(ge=0)] | Annotated[float, Field(ge=0, le=1)] | None,
        Option(AUDIT, main=True, metavar="N|SHARE"),
        BeforeValidator(_limit),
    ] = None
    """Exit with 1 if more records are memorised than this number or share, such as 0.5%. Default: no limit."""


class MapBaselineOptions(Options):
    """What a limit is compared with."""

    baseline: Annotated[Path | None, Option(AUDIT, main=True)] = None
    """Fail only what is worse than this file of --write-baseline records: a model or numbers of records that it does
    not know, more memorised records, or more texts that greedy decoding says. Needs --max-memorised. Models are known
    by their paths as given."""

    def check(self, limit: float | None) -> None:
        """Refuse a baseline where nothing can fail.

        Raises:
            UsageError: As said.
        """
        if self.baseline is not None and limit is None:
            raise UsageError("--baseline says what may fail, and nothing can without a limit.", "Add --max-memorised.")


class MapOutputOptions(CiOptions):
    """Where the map goes, and what is shown."""

    output: Annotated[Path | None, Option(OUTPUT, main=True, flags=("--output", "-o"))] = None
    """Write the map of one model: a spans file with every place, its scores and p-value, and no text. It is what
    harden --extra-spans takes."""

    html: Annotated[bool, Option(OUTPUT)] = False
    """Write memory_map.html into CORPUS.private/, the private folder beside --data: the worst texts and the records
    with most of them."""

    show_secrets: Annotated[bool, Option(OUTPUT)] = False
    """Show the places' text on the screen, and with --html that of the records on the page. No other file and no JSON
    holds it."""

    def page(self, data: Path) -> Path | None:
        """Where the page goes; None if it was not asked for.

        Raises:
            UsageError: The corpus has no folder.
        """
        if not self.html:
            return None
        from atdp_cli.files.private import private_folder
        from atdp_cli.reporting.memorisation_page import MAP_PAGE

        folder = private_folder(data)
        if folder is None:
            raise UsageError("--html writes into the folder beside --data, which is no file.", "Give a file.")
        return folder / MAP_PAGE

    def check_map(self, data: Path, models: Sequence[Path]) -> None:
        """Refuse, before anything is read, to write where something is or over one another.

        Raises:
            UsageError: A file exists, two are the same, or one is for the maps of several models.
            InputError: A folder does not exist.
        """
        if self.output is not None and len(models) > 1:
            raise UsageError("-o takes the map of one model.", "Map the models one by one, or use --json.")
        page = self.page(data)
        inside = page if page is not None and page.parent.exists() else None
        self.check(self.output, inside)


MOST_VALUES = 20


MOST_CHARACTERS = 60


NOTES = (
    "nats: above the model's average gain, at the best of its places.",
    "samples: draws after the text before it until even odds that one holds it.",
    "decoys: the share likelier than a flagged value; a: as likely anywhere else.",
)


def show_map(memory_map: MemoryMap, texts: Sequence[str] | None, console: "Console") -> None:
    """Print one model's map.

    Args:
        texts: Those of all records, to show what stands at the places; None to show labels alone.
    """
    from rich.table import Table

    head = "" if memory_map.verdict is None else f"{memory_map.verdict} "
    known = " (no worse than the baseline)" if memory_map.baseline == "known" else ""
    console.print(f"{head}{memory_map.model}{known}", style="bold", soft_wrap=True)
    for line in memory_sentences(memory_map):
        console.print(line)
    if not memory_map.places:
        return
    table = Table("record", "characters", "places", "label", "nats", "samples", "decoys")
    for number in (0, 2, 4, 5, 6):
        table.columns[number].justify = "right"
    if texts:
        table.add_column("text", overflow="fold")
    counts = Counter(place.value for place in memory_map.places)
    values = best_places(memory_map)
    for place in values[:MOST_VALUES]:
        shown = (texts[place.record - 1][place.start : place.end][:MOST_CHARACTERS],) if texts else ()
        table.add_row(
            f"{place.record:,}",
            f"{place.start}–{place.end}",
            f"{counts[place.value]:,}",
            place.label,
            f"{place.gain:.1f}",
            samples_needed(place),
            _decoys(place),
            *shown,
        )
    console.print(table)
    if len(values) > MOST_VALUES:
        console.print(f"And {len(values) - MOST_VALUES:,} more texts; -o or --json has all places.")
    for line in NOTES:
        console.print(line)


def _decoys(place: MemorisedPlace) -> str:
    if place.rank is None:
        return "–"
    return f"{place.rank.likelier:.3f}{' a' if place.rank.anywhere else ''}"


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
    from atdp_cli.reporting.ci.formats import memory_summary

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
    from atdp_cli.detection.detector import make_detector
    from atdp_cli.reporting.ci.baseline import new_failures, read_baseline

    corpus.check()
    writing.check_map(corpus.data, models)
    against.check(mapping.max_memorised)
    _check_paths(corpus, mapping.reference, models)
    baseline = None if against.baseline is None else read_baseline(against.baseline)
    detector = make_detector(detection, corpus.data, run_on=working.run_on)
    began()

    from atdp_cli.memorisation.run import MapRequest, map_models
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
    from atdp_cli.memorisation.results import MemoryDocument

    if as_json:
        write_json(MemoryDocument(models=tuple(each.memory for each in maps)).model_dump(mode="json"))
    shown = console if as_json else stdout_console()
    for number, each in enumerate(maps):
        if number:
            shown.print()
        show_map(each.memory, [record.text for record in each.records] if show_secrets else None, shown)


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
