"""The keywords of the API's functions as typed dictionaries, made from the options of the commands."""

import inspect
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from atdp_cli import api
from atdp_cli.api.options import NUMBERS_AS_TEXT, keywords_of
from atdp_cli.cli.commands import load_command

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "detect": api.detect,
    "redact": api.redact,
    "harden": api.harden,
    "audit-canary": api.audit_canary,
    "audit-corpus": api.audit_corpus,
    "account": api.account,
}

HEAD = '''"""The keywords of the API's functions: the options of the commands, of which `make generated` makes them."""

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

'''


def keywords_module() -> str:
    """The text of `atdp_cli/api/keywords.py`."""
    classes = [_typed_dict(command, function) for command, function in FUNCTIONS.items()]
    return HEAD + "\n".join(classes)


def _typed_dict(command: str, function: Callable[..., Any]) -> str:
    named = set(inspect.signature(function).parameters)
    lines = [
        f"    {keyword}: {spelt(keyword, field)}"
        for keyword, _, field in keywords_of(load_command(command))
        if keyword not in named
    ]
    name = "".join(part.capitalize() for part in command.split("-"))
    return "\n".join(
        [f"\nclass {name}Keywords(TypedDict, total=False):", f'    """Of `atdp {command}`."""', "", *lines, ""]
    )


def spelt(keyword: str, field: FieldInfo) -> str:
    """The type of a field as source text: what the keyword takes, and None for not given."""
    before = any(isinstance(part, BeforeValidator) for part in field.metadata)
    number = keyword in NUMBERS_AS_TEXT
    kinds = [*(["float"] if number else []), *_kinds(field.annotation), *(["str"] if before else []), "None"]
    return " | ".join(kind for kind in dict.fromkeys(kinds) if kind != "None") + " | None"


def _kinds(annotation: Any) -> list[str]:
    """The members of a union, in order, each as source text."""
    origin, parts = get_origin(annotation), get_args(annotation)
    match annotation:
        case _ if origin is Annotated:
            kinds = _kinds(parts[0])
        case _ if origin in (Union, UnionType):
            kinds = [kind for part in parts for kind in _kinds(part)]
        case _ if origin is Literal:
            kinds = [f"Literal[{_quoted(parts)}]"]
        case _ if origin is tuple:
            kinds = [f"Sequence[{' | '.join(_kinds(parts[0]))}]"]
        case _ if annotation is Path:
            kinds = ["str", "os.PathLike[str]"]
        case _ if issubclass(annotation, Enum):
            kinds = [f"Literal[{_quoted([each.value for each in annotation])}]"]
        case _:
            kinds = ["None" if annotation is NoneType else annotation.__name__]
    return kinds


def _quoted(values: Iterable[object]) -> str:
    return ", ".join(f'"{value}"' for value in values)
