"""The page about identifiers says what the code does."""

import re
from pathlib import Path

import pytest

from atdp_cli.detection.identifiers import IDENTIFIER_LABELS, national

PAGE = (Path(__file__).parents[3] / "docs" / "identifiers.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_table_lists_every_label_once() -> None:
    assert sorted(re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE)) == sorted(IDENTIFIER_LABELS)


def test_the_page_counts_the_registers() -> None:
    countries = {row.module.split(".")[0] for row in national.ROWS}
    assert f"{len(national.ROWS)} registers in {len(countries)} countries" in PAGE


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_adding_one_run(example: str) -> None:
    assert "assert" in example
    exec(compile(example, "docs/identifiers.md", "exec"), {})  # noqa: S102


def test_the_page_has_an_example_of_a_row_and_of_a_pattern() -> None:
    assert len(EXAMPLES) == 2
