"""The model card, `README.md` of OUT/."""

import re
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from atdp_cli.report import stage_facts
from atdp_cli.report.document import PublicReport
from atdp_cli.report.html import VERDICTS, environment, render_value
from atdp_cli.report.wording import model_title

_MARKS = re.compile(r"[\\`*_\[\]<>|&#!~]")


def _markdown() -> Environment:
    """The templates, with all that a report says escaped: names of recipes, fields and stages come from files."""
    templates = environment().overlay(finalize=escaped_markdown)
    templates.filters = templates.filters | {"code": code}
    return templates


def escaped_markdown(value: Any) -> Any:
    """A text as Markdown that shows the same on one line; what is no text, or is Markdown already, as it is."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _MARKS.sub(lambda mark: "\\" + mark[0], _one_line(value))


def code(text: str) -> Markup:
    """A text as a span of code, fenced by more backticks than stand together in it."""
    line = _one_line(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return Markup(f"{fence}{space}{line}{space}{fence}")  # noqa: S704 - Markdown shows code as it is


def _one_line(text: str) -> str:
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode("ascii") for mark in text)


def render_card(report: PublicReport) -> str:
    """The card as Markdown with Hugging Face metadata."""
    # A finite ε that anyone may rely on; None where nothing of the corpus was read.
    epsilon = next(guarantee.epsilon for guarantee in report.guarantees if guarantee.scope == "end_to_end")
    finite = isinstance(epsilon, float) and not report.insecure_seed
    return (
        _markdown()
        .get_template("card.md.j2")
        .render(
            report=report,
            title=model_title(report),
            verdicts=VERDICTS,
            finite=finite,
            scopes=stage_facts.SCOPES,
            shown=render_value,
            stage_facts=stage_facts,
        )
    )
