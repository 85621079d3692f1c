"""Files that are made from the code: completions, the page of help texts, screens. `make generated` writes them."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from atdp_cli.audit.results import AuditDocument
from atdp_cli.cli.app import COMMANDS, load_command
from atdp_cli.cli.generate import option_groups
from atdp_cli.cli.help import has_short_help
from atdp_cli.hardening.recipes import hypothetical_ledger
from atdp_cli.memorisation.results import MemoryDocument
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.wording import other_values
from atdp_cli.reporting.document import AuditReport, PrivateReport, PublicReport
from atdp_cli.settings import declared, flags
from atdp_cli.training.recipe import parse_recipe
from tests.house import HEAD, table
from tests.pictures import before_after, memory_map, rooms
from tests.reference import files_page, python_page
from tests.transcripts import golden_files

ROOT = Path(__file__).parent.parent
DESIGN = ROOT / "docs" / "design.md"
COMPLETIONS = {"bash": "atdp.bash", "zsh": "_atdp", "fish": "atdp.fish"}
SCHEMAS: dict[str, type[BaseModel]] = {
    "privacy_report.schema.json": PublicReport,
    "private_report.schema.json": PrivateReport,
    "audit.schema.json": AuditDocument,
    "audit_report.schema.json": AuditReport,
    "memory_map.schema.json": MemoryDocument,
}
RECIPE_TABLE = "| recipe | what it does | guarantee with `--checkpoint-history public` |\n|---|---|---|\n"
INTRODUCTION = """# Commands

*Which options does each command have?*

This page is what `atdp --help` and `atdp COMMAND --help-all` print, or `--help` of a command with few; a test keeps
them the same.
"""


SETTINGS_HEAD = """## Settings without a flag

Few need them: `--set run.KEY=VALUE`, as in `--set run.threads=4`; in Python each is a field of the request.

| key | commands | default | what it is |
|---|---|---|---|
"""


def generated() -> dict[Path, Callable[[], str]]:
    """Every generated file but the golden ones, with what makes the text that it must have."""
    completions = {ROOT / "completions" / name: partial(completion, shell) for shell, name in COMPLETIONS.items()}
    pages: dict[str, Callable[[], str]] = {
        "commands.md": commands_page,
        "choosing.md": choosing_page,
        "reference-python.md": python_page,
        "files.md": files_page,
        "pictures/before-after.svg": before_after,
        "pictures/memory-map.svg": memory_map,
        "pictures/rooms.svg": rooms,
    }
    return completions | {ROOT / "docs" / name: made for name, made in pages.items()} | schemas()


def schemas() -> dict[Path, Callable[[], str]]:
    """The JSON schemas of both reports, of an audit and of a memory map."""
    folder = ROOT / "atdp_cli" / "reporting" / "schemas"
    return {folder / name: partial(schema, kind) for name, kind in SCHEMAS.items()}


def schema(kind: type[BaseModel]) -> str:
    """The JSON schema of a document, by the version that it states."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(draft | kind.model_json_schema(mode="serialization"), indent=2, ensure_ascii=False) + "\n"


def completion(shell: str) -> str:
    """The completion script of one shell."""
    return _atdp([], _ATDP_COMPLETE=f"source_{shell}").strip() + "\n"


def commands_page() -> str:
    """The help texts as Markdown."""
    sections = [INTRODUCTION, f"```text\n{_atdp(['--help']).strip()}\n```\n"]
    for name in COMMANDS:
        asked = "--help-all" if has_short_help(load_command(name)) else "--help"
        sections.append(f"## atdp {name}\n\n```text\n{_atdp([name, asked]).strip()}\n```\n")
    return "\n".join([*sections, settings_table()])


def settings_table() -> str:
    """The settings without a flag, each once, as Markdown."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for command in COMMANDS:
        for group in option_groups(load_command(command)).values():
            for name, field, option in declared(group):
                if not option.flag:
                    default = "" if field.default is None else str(field.default)
                    words = " ".join((field.description or "").split()).replace("|", "\\|")
                    rows.setdefault((flags(name, option)[0], default, words), []).append(command)
    lines = [f"| `{key}` | {', '.join(of)} | {default} | {words} |" for (key, default, words), of in rows.items()]
    return SETTINGS_HEAD + "\n".join(lines) + "\n"


def choosing_page() -> str:
    """The page of recipes, with what each guarantees as its ledger says it."""
    head, mark, rest = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8").partition(RECIPE_TABLE)
    rows, end, tail = rest.partition("\n\n")
    reported = [f"{row.rpartition(' | ')[0]} | {_row_claim(row)} |" for row in rows.splitlines()]
    return head + mark + "\n".join(reported) + end + tail


def _row_claim(row: str) -> str:
    """What the recipes of a row guarantee, together where it is the same."""
    by_claim: dict[str, list[str]] = {}
    for name in re.findall(r"`([a-z+-]+)`", row.split("|")[1]):
        by_claim.setdefault(_claim(name), []).append(f"`{name}`")
    if len(by_claim) == 1:
        return next(iter(by_claim))
    return "; ".join(f"{', '.join(names)}: {claim}" for claim, names in by_claim.items())


def _claim(name: str) -> str:
    """What a recipe guarantees with --checkpoint-history public."""
    by_scope = {each.scope: each for each in guarantees(hypothetical_ledger(parse_recipe(name), "public"))}
    whole, selective = by_scope["end_to_end"], by_scope.get("selective")
    if whole.epsilon is None:
        return "nothing is spent"
    if whole.epsilon != math.inf:
        return "each record, end to end"
    if selective is None or selective.neighbours is None:
        return "none"
    zero = ", ε = 0" if selective.exact else ""
    return f"flagged characters alone, against {other_values(selective.neighbours)}{zero}"


def _atdp(arguments: list[str], **settings: str) -> str:
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "TYPER_USE_RICH": "0", "PYTHONIOENCODING": "utf-8"}
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "VIRTUAL_ENV")}
    code = "import sys; from atdp_cli.cli.app import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=inherited | plain | settings,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def design_page() -> str:
    """The page of the design, with the table of the rooms as they are. `tests/test_house.py` keeps it."""
    head, mark, rest = DESIGN.read_text(encoding="utf-8").partition(HEAD)
    return head + (table(ROOT) if mark else "") + "\n" + rest.partition("\n\n")[2]


if __name__ == "__main__":
    made = {path: text() for path, text in generated().items()} | golden_files() | {DESIGN: design_page()}
    for path, text in made.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
