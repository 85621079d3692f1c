"""The notebook of the quickstart: nothing of a run is kept in it, and it runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.conftest import ROOT

NOTEBOOK = ROOT / "examples" / "quickstart" / "quickstart.ipynb"


def test_nothing_of_a_run_is_in_the_notebook() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(notebook.cells) == 10
    assert [(cell.outputs, cell.execution_count, cell.metadata) for cell in code] == [([], None, {})] * len(code)
    assert json.loads(NOTEBOOK.read_text())["metadata"].keys() == {"kernelspec", "language_info"}


@pytest.mark.ci
def test_the_notebook_runs_and_ends_as_it_says(tmp_path: Path) -> None:
    """In the folder that it is in; `tests.notebook` needs IPython, and neither Jupyter nor a kernel."""
    own = {"TMPDIR": str(tmp_path), "IPYTHONDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.notebook", NOTEBOOK.name],
        cwd=NOTEBOOK.parent,
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    cells = json.loads(done.stdout.splitlines()[-1])
    assert len(cells) == 8
    assert "PERSON" in cells[1]["printed"]
    before, after = cells[5]["printed"].splitlines()
    assert before.startswith("unprotected  FAIL")
    assert after.startswith("hardened     ")
    assert "FAIL" not in after
    assert "What the detector flagged is protected" in cells[6]["printed"]
    assert cells[6]["shown"].startswith("<iframe srcdoc=")
    assert "privacy" in cells[6]["shown"]
    assert cells[7]["printed"].count("records memorised") == 2
