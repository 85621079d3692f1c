"""The YAML between the first two lines of dashes of a Markdown file, read within bounds: it comes from others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atdp_cli.files.bounded_read import open_regular

MAX_BYTES, MAX_DEPTH = 1 << 16, 20
"""Bytes of front matter that are read, and levels of nesting in it; a model's card has a tenth of both."""


_BAD_VALUES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What PyYAML raises for values such as `!!int ''`."""


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
    """What is between the dashes.

    Raises:
        OSError, ValueError: It cannot be read, is none, or is too long.
    """
    with open_regular(path) as stream:
        lines = stream.read(MAX_BYTES).decode("utf-8-sig", errors="ignore").lstrip().splitlines()
    if not lines or lines[0].rstrip() != "---":
        return ""
    return "\n".join(lines[1 : lines.index("---", 1)])


def _check(text: str) -> None:
    """Refuse what the library would follow without end.

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
