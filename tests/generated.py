"""Files that are made from the code: completions, the page of help texts, screens. `make generated` writes them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from atdp_cli.audit_result import AuditDocument
from atdp_cli.cli.app import COMMANDS
from atdp_cli.report.document import PrivateReport, PublicReport
from tests.transcripts import golden_files

ROOT = Path(__file__).parent.parent
COMPLETIONS = {"bash": "atdp.bash", "zsh": "_atdp", "fish": "atdp.fish"}
SCHEMAS: dict[str, type[BaseModel]] = {
    "privacy_report.schema.json": PublicReport,
    "private_report.schema.json": PrivateReport,
    "audit.schema.json": AuditDocument,
}
INTRODUCTION = """# Commands

This page is what `atdp COMMAND --help` prints; a test keeps the two the same.
"""


def generated() -> dict[Path, Callable[[], str]]:
    """Every generated file but the golden ones, with what makes the text that it must have."""
    completions = {ROOT / "completions" / name: partial(completion, shell) for shell, name in COMPLETIONS.items()}
    return completions | {ROOT / "docs" / "commands.md": commands_page} | schemas()


def schemas() -> dict[Path, Callable[[], str]]:
    """The JSON schemas of both reports and of an audit."""
    folder = ROOT / "atdp_cli" / "report" / "schemas"
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
    sections = [INTRODUCTION]
    for name in COMMANDS:
        sections.append(f"## atdp {name}\n\n```text\n{_atdp([name, '--help']).strip()}\n```\n")
    return "\n".join(sections)


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


if __name__ == "__main__":
    for path, text in ({path: text() for path, text in generated().items()} | golden_files()).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
