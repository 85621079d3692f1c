"""The notebook of the quickstart: nothing of a run is kept in it, and it runs."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

NOTEBOOK = ROOT / "examples" / "quickstart" / "quickstart.ipynb"


def test_nothing_of_a_run_is_in_the_notebook() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(notebook.cells) == 10
    assert [(cell.outputs, cell.execution_count, cell.metadata) for cell in code] == [([], None, {})] * len(code)
    assert json.loads(NOTEBOOK.read_text())["metadata"].keys() == {"kernelspec", "language_info"}


@pytest.mark.deep
def test_the_notebook_runs_and_ends_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    printed = ["".join(output.get("text", "") for output in cell.get("outputs", ())) for cell in notebook.cells]
    before, after = printed[6].splitlines()
    assert before.startswith("unprotected  FAIL")
    assert after.startswith("hardened     ")
    assert "FAIL" not in after
    assert "<iframe" in notebook.cells[7].outputs[-1].data["text/html"]
    assert printed[8].count("records memorised") == 2
