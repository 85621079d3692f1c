"""Hook of mkdocs: links to files of the repository that the site does not have become their names."""

import re
from pathlib import PurePosixPath
from typing import Any

OUTSIDE = re.compile(r"(!?)\[([^\]]*)\]\(\.\./([^)\s]+)\)")
"""A link or a picture of a file above docs/: whether it is a picture, its text, its path in the repository."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page as mkdocs shall read it; mkdocs calls this for each page."""
    return OUTSIDE.sub(_name, markdown)


def _name(link: re.Match[str]) -> str:
    picture, text, path = link.groups()
    path = path.partition("#")[0]
    shown = "" if text == path or PurePosixPath(path).name == text or not text else f"{text} "
    return f"`{path}`" if picture or not shown else f"{shown}(`{path}`)"
