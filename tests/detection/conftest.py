"""What the tests of the text room share."""

from pathlib import Path
from typing import Any

import pytest

from atdp_cli.detection.scan import load_pipeline
from tests.cli.conftest import fixed_manifest

__all__ = ["fixed_manifest"]


@pytest.fixture(scope="session")
def pipeline() -> Any:
    """The default spaCy pipeline, loaded once."""
    return load_pipeline()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of corpora beside the checkout."""
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the corpora (../shared/data beside the checkout) are absent")
    return folder
