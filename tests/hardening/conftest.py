"""What the tests of harden share."""

from functools import cache
from pathlib import Path

import pytest

from atdp_cli.detection.scan import load_pipeline
from atdp_cli.hardening import model
from tests.audit.conftest import bpe
from tests.cli.conftest import fixed_manifest
from tests.hardening.resumption import Place

__all__ = ["bpe", "fixed_manifest", "place"]

pipeline = cache(load_pipeline)


@pytest.fixture
def place(
    checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Place:
    """Where short runs are made; they share one pipeline, which takes longer to load than they last."""
    monkeypatch.setattr(model, "load_pipeline", pipeline)
    return Place(model=checkpoint_folder, corpus=corpus, spans=span_file, folder=tmp_path)
