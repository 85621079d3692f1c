"""Executes a notebook's cells in order in one IPython shell, and prints what each printed and showed, as JSON."""

import json
import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


def main(notebook: Path) -> None:
    """Raise what a cell raises. Text that a cell's commands print is not caught."""
    shell = InteractiveShell.instance()
    shown = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        with capture_output() as captured:
            done = shell.run_cell("".join(cell["source"]), store_history=True)
        done.raise_error()
        html = getattr(done.result, "_repr_html_", str)() if done.result is not None else ""
        shown.append({"printed": captured.stdout, "shown": html})
    json.dump(shown, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
