"""The README's picture of a terminal: the first lines of what `atdp report` prints of a folder, as SVG.

python -m tests.browser.terminal demo-out/automatic --output examples/quickstart/terminal.svg
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, LINES = 80, 31


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder that atdp harden wrote")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "atdp_cli", "report", str(arguments.folder)]
    coloured = os.environ | {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    printed = subprocess.run(command, env=coloured, capture_output=True, text=True, check=True).stdout
    arguments.output.write_text(picture(f"$ atdp report ./{arguments.folder.name}\n{printed}"), encoding="utf-8")


def picture(printed: str) -> str:
    """The first lines of what a terminal shows, as an SVG that asks no host for a font."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi("\n".join(printed.splitlines()[:LINES])))
        svg = console.export_svg(title="atdp")
    without_fonts = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in without_fonts.splitlines()) + "\n"


if __name__ == "__main__":
    main()
