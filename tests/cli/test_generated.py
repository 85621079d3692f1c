"""Files made from the code are fresh."""

from pathlib import Path

import pytest

from tests.generated import generated

FILES = generated()


@pytest.mark.parametrize("path", FILES, ids=lambda path: Path(path).name)
def test_the_file_is_what_the_code_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FILES[path](), "run `make generated`"
