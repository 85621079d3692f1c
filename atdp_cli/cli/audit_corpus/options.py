"""The options of `atdp audit-corpus`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from atdp_cli.cli.terminal.ci_files import CiOptions
from atdp_cli.errors import UsageError
from atdp_cli.options import Option, Options
from atdp_cli.ranges import contradiction
from atdp_cli.text.options import DATA, OUTPUT

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
        from atdp_cli.report.memory_page import MAP_PAGE

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
