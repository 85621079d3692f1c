"""The detector file: what it may hold, what `--write-detector` writes, and the page that lists its settings."""

import re
from pathlib import Path

import pytest

from atdp_cli.detection.settings import CrosscheckSettings, DetectorSettings, read_detector, write_detector
from atdp_cli.errors import InputError, UsageError
from atdp_cli.settings import Options

PAGE = Path(__file__).parents[2] / "docs" / "detection.md"


def helps(table: type[Options], prefix: str = "") -> dict[str, str]:
    """The help of each setting, by its name."""
    return {f"{prefix}{name}": " ".join(str(field.description).split()) for name, field in table.model_fields.items()}


def test_the_file_that_is_written_changes_nothing_and_its_examples_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "detector.toml"
    write_detector(path)
    assert read_detector(path) == DetectorSettings() == read_detector(None)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line.removeprefix("# ") for line in lines if re.match(r"# (\w+ = |\[)", line)))
    every = read_detector(path)
    assert every.model_fields_set == DetectorSettings.model_fields.keys()
    assert every.crosscheck is not None
    assert every.crosscheck.model_fields_set == CrosscheckSettings.model_fields.keys()
    with pytest.raises(UsageError, match="exists"):
        write_detector(path)


def test_the_page_lists_every_setting() -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == helps(DetectorSettings) | helps(CrosscheckSettings, "crosscheck.")


@pytest.mark.parametrize(
    "text", ["key = 2024-01-01", "[crosscheck]\nmodel = 'm'\nkey = 'SECRET'", "SECRET"], ids=["date", "key", "word"]
)
def test_no_value_is_quoted(text: str, tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text(text)
    with pytest.raises(InputError) as refused:
        read_detector(tmp_path / "d.toml")
    assert "SECRET" not in str(refused.value)
    assert "\n" not in str(refused.value)
