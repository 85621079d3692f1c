"""Inputs that once broke a reader: each is refused in one line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.manifest import read_manifest
from atdp_cli.corpus.record import read_records
from atdp_cli.corpus.rewrite import rewrite_corpus
from atdp_cli.corpus.segments import Selection
from atdp_cli.detection.term_lists import read_terms
from atdp_cli.errors import AtdpError, InputError
from atdp_cli.files.documents import MAX_FILE
from atdp_cli.model.folder import base_of
from atdp_cli.privacy.journal import read_journal
from atdp_cli.privacy.ledger import read_ledger, write_ledger
from atdp_cli.reporting.ci.baseline import read_baseline
from atdp_cli.reporting.write import as_json, read_audits, read_report, with_audits
from atdp_cli.training.recipe import parse_recipe
from atdp_cli.training.recipe_file import RecipeFile, read_recipe, recipe_text
from tests.fuzz.survival import check
from tests.fuzz.test_documents import AUDIT, MANIFEST
from tests.privacy.ledgers import ledger
from tests.reporting.documents import public

LEDGER_KEY = '"two\\nlines": 1, "schema_version"'
CLEARS_THE_SCREEN = "\x1b[2J"


def written_ledger(path: Path) -> str:
    write_ledger(path, ledger())
    return path.read_text()


def reported(**fields: object) -> str:
    return json.dumps(json.loads(as_json(public())) | fields)


def recipe(**fields: str) -> str:
    """The named recipe atdp with some of its lines another."""
    lines = recipe_text(RecipeFile(name="atdp", recipe=parse_recipe("atdp"))).splitlines()
    return "\n".join(
        f"{name} = {fields[name]}" if (name := line.partition(" = ")[0]) in fields else line for line in lines
    )


FILES: dict[str, tuple[Callable[[Path], object], Callable[[Path], str | bytes]]] = {
    "a ledger's key of two lines": (
        read_ledger,
        lambda path: written_ledger(path).replace('"schema_version"', LEDGER_KEY),
    ),
    "a choice of two lines": (
        read_manifest,
        lambda _: json.dumps(json.loads(MANIFEST.replace("names.txt", "two\\nlines")) | {"choices": {}}),
    ),
    "a model's name that clears the screen": (
        read_baseline,
        lambda _: json.dumps({"schema_version": 1, "kind": "atdp-audit-baseline", "models": {CLEARS_THE_SCREEN: {}}}),
    ),
    "a report of a kind that is a list": (read_report, lambda _: reported(kind=[])),
    "a report without a guarantee end to end": (read_report, lambda _: reported(guarantees=[])),
    "a report of more records than floats can say": (read_report, lambda _: reported(records=10**400)),
    "a report with half a character": (read_report, lambda _: reported(unit="\ud800")),
    "an audit with half a character": (read_audits, lambda _: AUDIT.replace("models/one", "\\ud800")),
    "a report's software of two lines": (read_report, lambda _: reported(software={"two\nlines": 1})),
    "a report without end": (read_report, lambda _: " " * (MAX_FILE + 1)),
    "a journal that is not UTF-8": (read_journal, lambda _: b"\x80"),
    "a kind of six thousand digits": (read_recipe, lambda _: recipe(kind="0x" + "f" * 5000)),
    "a recipe's name of a thousand characters": (read_recipe, lambda _: recipe(name=f'"{"x" * 9000}\\n"')),
    "a stage's name of two lines": (read_recipe, lambda _: recipe(name='"two\\nlines"')),
    "a nested set in a list": (read_terms, lambda _: "/[[a]/\n"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, tmp_path: Path) -> None:
    read, content = FILES[name]
    path = tmp_path / "file"
    found = content(path)
    path.write_bytes(found if isinstance(found, bytes) else found.encode())
    with pytest.raises(InputError):
        read(path)
    check(read, path)


@pytest.mark.parametrize("text", ["{choice:two\nlines}", f"{{choice:{CLEARS_THE_SCREEN}}}", "{choice:\ud800}"])
def test_templates(text: str) -> None:
    with pytest.raises(AtdpError):
        parse_template(text)
    check(parse_template, text)


@pytest.mark.parametrize("text", ["atdp+two\nlines", "x" * 10_000, f"atdp+{CLEARS_THE_SCREEN}"])
def test_recipes(text: str) -> None:
    with pytest.raises(AtdpError):
        parse_recipe(text)
    check(parse_recipe, text)


@pytest.mark.parametrize("name", ["x" * 300, "two\nlines", 10**400, ["a"]])
def test_bases_of_adapters(name: object, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": name}))
    with pytest.raises(InputError, match="not at hand"):
        base_of(tmp_path)
    check(base_of, tmp_path)


def test_a_journal_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_journal(tmp_path / "journal.jsonl")


@pytest.mark.parametrize("exposure", ["1e999", "NaN"])
def test_an_exposure_without_bounds(exposure: str, tmp_path: Path) -> None:
    path, audit = tmp_path / "audit.json", json.loads(AUDIT)
    audit["models"][0]["canaries"][0]["exposure"] = "exposure"
    path.write_text(json.dumps(audit).replace('"exposure": "exposure"', f'"exposure": {exposure}'))
    with pytest.raises(InputError, match="is malformed at models"):
        with_audits(public(), read_audits(path))


def test_a_level_of_nothing(tmp_path: Path) -> None:
    path, audit = tmp_path / "audit.json", json.loads(AUDIT)
    audit["models"][0]["combined"]["level"] = 0
    path.write_text(json.dumps(audit))
    with pytest.raises(InputError, match="is malformed at models"):
        with_audits(public(), read_audits(path))


def test_a_column_with_fewer_rows_than_the_text(tmp_path: Path) -> None:
    """The texts can be read, and the rows that they stand in cannot."""
    source, target = Path(__file__).parent / "found" / "rows_apart.parquet", tmp_path / "out.parquet"
    assert len(list(read_records(source, unit="id"))) == 3
    with pytest.raises(InputError, match="damaged"):
        rewrite_corpus(source, target, lambda records: (() for _ in records), Selection(unit="id"))
    assert not target.exists()
