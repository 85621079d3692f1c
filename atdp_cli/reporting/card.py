"""The model card: what it inherits from the checkpoint's card, and its text as escaped Markdown."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from atdp_cli.files.documents import open_regular
from atdp_cli.privacy.wording import SCOPES
from atdp_cli.reporting import stage_facts
from atdp_cli.reporting.audit_entry import MODEL_NAMES
from atdp_cli.reporting.document import CardEntry, Loader, PublicReport
from atdp_cli.reporting.html import VERDICTS, environment, render_value
from atdp_cli.reporting.wording import model_title

MAX_BYTES, MAX_DEPTH = 1 << 16, 20
"""Bytes of front matter that are read, and levels of nesting in it; a model's card has a tenth of both."""

_BAD_VALUES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors that PyYAML raises for values such as `!!int ''`."""


def front_matter(path: Path) -> Mapping[str, Any]:
    """The mapping at the head of a file; empty where there is none, or it is larger, deeper or of another kind.

    Aliases are not followed: some lines of them can stand for more than any memory holds.
    """
    import yaml

    try:
        text = _block(path)
        _check(text)
        fields = yaml.safe_load(text)
    except (OSError, yaml.YAMLError, *_BAD_VALUES):
        return {}
    return fields if isinstance(fields, dict) else {}


def _block(path: Path) -> str:
    """The text between the dashes.

    Raises:
        OSError, ValueError: It cannot be read, is none, or is too long.
    """
    with open_regular(path) as stream:
        lines = stream.read(MAX_BYTES).decode("utf-8-sig", errors="ignore").lstrip().splitlines()
    if not lines or lines[0].rstrip() != "---":
        return ""
    return "\n".join(lines[1 : lines.index("---", 1)])


def _check(text: str) -> None:
    """Refuse aliases and deep nesting, which the library would follow without end.

    Raises:
        ValueError: It has aliases or too many levels.
        yaml.YAMLError: It is no YAML.
    """
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
            raise ValueError("front matter")


CARD = "README.md"

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
"""A licence, a language, a half of a repository's name; nothing that could be a sentence."""


def inherited_card(folder: Path, *, encoder: bool, adapter: bool) -> CardEntry:
    """Licence, language, task and base model as the metadata of `folder`'s card state them, where they are well-formed.

    The folder's own name stays out of it: it may say whose text the model was trained on.

    Args:
        encoder: Whether the model has an encoder and a decoder.
        adapter: Whether a LoRA adapter is written and not a whole model.
    """
    metadata = front_matter(folder / CARD)
    link = metadata.get("license_link")
    return CardEntry(
        loader=_loader(encoder=encoder, adapter=adapter),
        pipeline_tag=_name(metadata.get("pipeline_tag")) or (None if encoder else "text-generation"),
        base_model=tuple(name for name in _several(metadata.get("base_model")) if _repository(name)),
        license=_name(metadata.get("license")),
        license_name=_name(metadata.get("license_name")),
        license_link=link if isinstance(link, str) and re.fullmatch(r"https://[!-~]{1,200}", link) else None,
        language=tuple(name for name in _several(metadata.get("language")) if _name(name)),
    )


def _loader(*, encoder: bool, adapter: bool) -> Loader:
    if adapter:
        return "AutoPeftModelForSeq2SeqLM" if encoder else "AutoPeftModelForCausalLM"
    return "AutoModelForSeq2SeqLM" if encoder else "AutoModelForCausalLM"


def _several(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [name for name in values if isinstance(name, str)]


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and NAME.fullmatch(value) else None


def _repository(name: str) -> bool:
    """Whether it names a repository of the hub, as `owner/name`, and no folder at hand."""
    halves = name.split("/")
    return len(halves) <= 2 and all(_name(half) for half in halves) and not Path(name).exists()


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
    finite = epsilon is not None and math.isfinite(epsilon) and not report.insecure_seed
    return (
        _markdown()
        .get_template("card.md.j2")
        .render(
            report=report,
            title=model_title(report),
            verdicts=VERDICTS,
            finite=finite,
            scopes=SCOPES,
            shown=render_value,
            names=MODEL_NAMES,
            stage_facts=stage_facts,
        )
    )
