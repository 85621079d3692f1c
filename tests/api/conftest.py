"""What the API is compared with: the commands; and a place for temporary files that is looked into."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import atdp, fixed_manifest, leaky

__all__ = ["atdp", "fixed_manifest", "leaky"]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files, in which every call leaves nothing."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


@pytest.fixture(scope="session")
def loaded(checkpoint_folder: Path) -> tuple[Any, Any]:
    """The small checkpoint in memory, as transformers loads it, and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(checkpoint_folder), AutoTokenizer.from_pretrained(checkpoint_folder)
