"""The generated pages of the reference: every public name of `atdp_cli`, and every field of the files written."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

import atdp_cli
from atdp_cli.audit.manifest import Manifest
from atdp_cli.audit.results import AuditDocument
from atdp_cli.memorisation.results import MemoryDocument
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.reporting.document import PrivateReport, PublicReport

FILES: dict[str, tuple[type[BaseModel], str]] = {
    "privacy_ledger.json": (
        Ledger,
        "In `OUT/` and in the folder of `atdp decoy`: what was spent, [in order](accounting.md#the-ledger).",
    ),
    "OUT/privacy_report.json": (PublicReport, "[The report](report.md) that may be published."),
    "OUT.private/privacy_report.json": (PrivateReport, "The whole report. It stays with the records' owner."),
    "canaries.json": (Manifest, "The manifest of `plant-canary`. It holds every secret."),
    "audit.json": (AuditDocument, "What `audit-canary --json` prints."),
    "map.json": (MemoryDocument, "What `audit-corpus --json` prints."),
}
"""The JSON files, by the names that the pages give them."""

PYTHON_HEAD = """# Python: every name

*Which functions, requests and results does `atdp_cli` export?*

Made from the code. What they are for, with examples: [Python](python.md). The fields of a request are the options of
its [command](commands.md).

"""

FILES_HEAD = """# Files

*Which fields do the JSON files have that atdp writes?*

Made from the code. Which file is where, and who may see it: [Security](security.md#what-a-run-writes). A type that
begins with a capital has fields of its own; those of reports, audits and maps are in the schemas of
`atdp_cli/reporting/schemas/`.

"""


def python_page() -> str:
    """Functions with their signatures, then requests, results and errors, each with its docstring and fields."""
    names = {name: getattr(atdp_cli, name) for name in atdp_cli.__all__ if name != "events"}
    functions = {name: each for name, each in names.items() if inspect.isfunction(each)}
    models = {name: each for name, each in names.items() if inspect.isclass(each) and issubclass(each, BaseModel)}
    parts = [PYTHON_HEAD + "## Functions\n"]
    parts += [
        f"### {name}\n\n```python\n{_signature(name, each)}\n```\n\n{_block(each)}" for name, each in functions.items()
    ]
    parts.append("## Requests\n")
    parts += [_fields(name, each) for name, each in models.items() if name.endswith("Request")]
    parts.append("## Results\n")
    parts += [_fields(name, each) for name, each in models.items() if not name.endswith("Request")]
    parts.append("## Errors\n")
    parts += [f"### {name}\n\n{_block(each)}" for name, each in names.items() if name not in functions | models]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def files_page() -> str:
    """The fields of each JSON file."""
    parts = [f"## {name}\n\n{words}\n\n{_table(kind)}" for name, (kind, words) in FILES.items()]
    return FILES_HEAD + "\n".join(parts)


def _signature(name: str, function: Any) -> str:
    parameters = inspect.signature(function).parameters.values()
    shown = [each.name if each.default is each.empty else f"{each.name}=…" for each in parameters]
    return f"{name}({', '.join(shown)}) -> {_type(inspect.signature(function).return_annotation)}"


def _block(documented: Any) -> str:
    return f"```text\n{inspect.getdoc(documented) or ''}\n```\n"


def _fields(name: str, model: type[BaseModel]) -> str:
    first = (inspect.getdoc(model) or "").partition("\n\n")[0].replace("\n", " ")
    return f"### {name}\n\n{first}\n\n{_table(model, helped=not name.endswith('Request'))}"


def _table(model: type[BaseModel], *, helped: bool = True) -> str:
    """Its fields as rows: name, type, default, help; help is the field's own, or the docstring's line of the field."""
    attributes = dict(_attributes(inspect.getdoc(model) or ""))
    rows = [
        "| field | type | default | what it is |\n|---|---|---|---|\n"
        if helped
        else "| field | type | default |\n|---|---|---|\n"
    ]
    for name, field in model.model_fields.items():
        default = "" if field.is_required() or field.default in (None, (), False) else f"`{_plain(field.default)}`"
        words = " ".join((field.description or attributes.get(name, "")).split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {_type(field.annotation)} | {default} |" + (f" {words} |\n" if helped else "\n"))
    return "".join(rows)


def _plain(value: Any) -> str:
    text = str(getattr(value, "value", value)).replace("|", "\\|").replace("\n", " ")
    return "…" if isinstance(value, BaseModel) or len(text) > 60 else text


def _type(annotation: Any) -> str:
    """A type in the fewest words: without modules, bounds and Optional."""
    if annotation is type(None):
        return "null"
    arguments = getattr(annotation, "__args__", ())
    if str(annotation).startswith("typing.Literal"):
        return ", ".join(f"`{each}`" for each in arguments)
    if arguments:
        inner = dict.fromkeys(_type(each) for each in arguments if each is not Ellipsis)
        several = getattr(annotation, "__origin__", None) in (tuple, list, frozenset)
        return ("list of " if several else "") + " or ".join(inner) if not _is_dict(annotation) else "object"
    return str(getattr(annotation, "__name__", annotation)).replace("Path", "path").replace("NoneType", "null")


def _is_dict(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is dict


def _attributes(docstring: str) -> Iterator[tuple[str, str]]:
    """The entries of a docstring's section Attributes; names that share an entry each have it."""
    section = docstring.partition("Attributes:\n")[2].partition("\n\n")[0]
    for entry in re.split(r"\n(?=    \w)", section):
        names, _, words = entry.strip().partition(": ")
        for name in names.split(", "):
            yield name, words
