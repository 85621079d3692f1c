"""The options of `atdp audit-canary`, by subject."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.options import Force
from atdp_cli.errors import UsageError

LIMITS, OUTPUT = "Limits", "Output"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What fails a model."""

    alpha: Annotated[
        float, typer.Option(help="Chance of failing a model that remembers nothing.", rich_help_panel=LIMITS)
    ] = 0.01
    max_exposure: Annotated[
        float | None, typer.Option(help="Fail above this exposure of any canary, in bits.", rich_help_panel=LIMITS)
    ] = None
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Fail only what is worse than this file of --write-baseline records: a model or other canaries that "
            "it does not know, a canary or test that did not fail then, or an exposure that has risen by more than "
            "1 bit. Models are known by their paths as given.",
            rich_help_panel=LIMITS,
        ),
    ] = None
    exit_zero: Annotated[
        bool,
        typer.Option(
            "--exit-zero", help="Exit with 0 in place of 1 and of 4; 2, 3 and 130 stay.", rich_help_panel=LIMITS
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Reports:
    """The files to write, and what is shown. The files never hold a secret."""

    junit: Annotated[
        Path | None,
        typer.Option(
            help="Write JUnit XML: a suite a model, a case a canary and one for the verdict.", rich_help_panel=OUTPUT
        ),
    ] = None
    sarif: Annotated[
        Path | None,
        typer.Option(help="Write SARIF 2.1.0; its locations are lines of the manifest.", rich_help_panel=OUTPUT),
    ] = None
    write_baseline: Annotated[
        Path | None,
        typer.Option(help="Record what was found, for --baseline in later runs.", rich_help_panel=OUTPUT),
    ] = None
    show_secrets: Annotated[
        bool,
        typer.Option(
            "--show-secrets",
            help="Add the secrets to the table. No file and no JSON holds them.",
            rich_help_panel=OUTPUT,
        ),
    ] = False
    force: Force = False

    def check(self) -> None:
        """Refuse, before anything is scored, to write where something is or over one another.

        Raises:
            UsageError: A file exists, or two are the same.
            InputError: A folder does not exist.
        """
        from atdp_cli.text.files import check_new

        given = [path for path in (self.junit, self.sarif, self.write_baseline) if path is not None]
        if len({path.resolve() for path in given}) < len(given):
            raise UsageError(
                "--junit, --sarif and --write-baseline name one file twice.", "Give each a file of its own."
            )
        for path in given:
            check_new(path, force=self.force)
