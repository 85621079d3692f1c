"""What the scripts of tables have in common: their exit code, lines of progress, and the files of their results."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atdp_cli.errors import AtdpError


def parser_for(description: str | None, *, seeds: int, canaries: int = 17) -> argparse.ArgumentParser:
    """A parser with what every table is made from.

    Args:
        description: The script's docstring.
        seeds, canaries: The defaults of their options.
    """
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", type=Path, required=True, help="the base checkpoint")
    options.add_argument("--corpus", type=Path, required=True, help="plain text, a record a line")
    options.add_argument("--out", type=Path, required=True, help="folder for all that is written")
    options.add_argument("--records", type=int, help="take the first so many of the corpus")
    options.add_argument(
        "--seeds", type=int, default=seeds, help="repetitions, each with canaries and noise of its own"
    )
    options.add_argument("--canaries", type=int, default=canaries, help="of each seed")
    options.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each")
    return options


def exit_code(run: Callable[[argparse.Namespace], None], arguments: argparse.Namespace) -> int:
    """Run a script; what a user can mend ends it with one line."""
    try:
        run(arguments)
    except AtdpError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def progress() -> Callable[[str], None]:
    """Prints a line with the seconds since now."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", file=sys.stderr, flush=True)

    return say


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Results as data."""
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_results(out: Path, document: dict[str, Any], table: str) -> None:
    """Write results.json and table.md, and print the table."""
    write_json(out / "results.json", document)
    (out / "table.md").write_text(table, encoding="utf-8")
    print(table)
