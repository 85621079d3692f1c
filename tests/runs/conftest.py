"""What tests of runs share."""

from functools import cache
from pathlib import Path

import pytest

from atdp_cli.jobs.harden import model
from atdp_cli.text.detection.scan import load_pipeline
from tests.runs.resumption import Place

pipeline = cache(load_pipeline)


@pytest.fixture
def place(
    checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Place:
    """Where short runs are made; they share one pipeline, which takes longer to load than they last."""
    monkeypatch.setattr(model, "load_pipeline", pipeline)
    return Place(model=checkpoint_folder, corpus=corpus, spans=span_file, folder=tmp_path)
