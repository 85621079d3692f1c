"""The model card: what comes from files is text in it, and neither Markdown nor YAML."""

import re

import pytest
import yaml

from atdp_cli.reporting.card import code, escaped_markdown, render_card
from tests.reporting.documents import public

PAYLOADS = (
    "a`b",
    "``` \n# Approved",
    "<img src=x onerror=alert(1)>",
    "x\n\n# Approved by everyone",
    "[PASS](https://evil.example)",
    "![](https://evil.example/pixel)",
    "a | b",
    "**ε = 0**",
    "x\n---\nlicense: mit",
    "\x1b[31mred",
    "\u202eSSAP",
    "&lt;script&gt;",
    "{{ 7 * 7 }}",
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_recipes_name_is_code_in_the_card(payload: str) -> None:
    card = render_card(public(recipe=payload))
    assert len(card.splitlines()) == len(render_card(public(recipe="plain")).splitlines())
    [line] = [line for line in card.splitlines() if line.startswith("Recipe ")]
    fenced = re.fullmatch(r"Recipe (`+) ?(.*?) ?\1 over [\d,]+ records\.", line)
    assert fenced is not None, line
    assert fenced[1] not in re.findall("`+", fenced[2])
    assert line.isprintable()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_units_name_is_text_in_the_card(payload: str) -> None:
    card = render_card(public(unit=payload))
    assert all(mark.isprintable() or mark == "\n" for mark in card)
    assert len(card.splitlines()) == len(render_card(public(unit="line")).splitlines())
    line = next(line for line in card.splitlines() if line.startswith("The privacy unit is one "))
    assert not re.search(r"(?<!\\)[`*<>|\[\]&!]", line), line


def test_metadata_is_text_to_yaml() -> None:
    report = public()
    card = report.model_copy(update={"card": report.card.model_copy(update={"pipeline_tag": "null", "license": "no"})})
    metadata = yaml.safe_load(render_card(card).split("---\n")[1])
    assert (metadata["pipeline_tag"], metadata["license"]) == ("null", "no")


def test_what_is_plain_stays_plain() -> None:
    assert escaped_markdown("ε = 2.99 at δ = 1e-06, for one line.") == "ε = 2.99 at δ = 1e-06, for one line."
    assert (code("redacted+atdp"), escaped_markdown(7)) == ("`redacted+atdp`", 7)
