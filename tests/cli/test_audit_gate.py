"""`atdp audit-canary` as a gate: the files and annotations that it writes, the baseline, and no secret anywhere."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.cli.conftest import Atdp, Ended, Leaky
from tests.reporting.test_sarif import check_sarif

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "atdp_cli" / "reporting" / "schemas" / "audit.schema.json").read_text(encoding="utf-8")
)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither on GitHub, even where these tests run there, nor in the repository."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def broken(checkpoint_folder: Path, tmp_path: Path) -> Path:
    """A model whose weights are damaged."""
    folder = Path(shutil.copytree(checkpoint_folder, tmp_path / "broken"))
    (folder / "model.safetensors").write_bytes(b"no")
    return folder


def _check_json(ended: Ended) -> list[dict[str, Any]]:
    assert list(Draft202012Validator(SCHEMA).iter_errors(ended.json)) == []
    return list(ended.json["models"])


def test_the_json_has_the_shipped_schema(atdp: Atdp, leaky: Leaky, checkpoint_folder: Path, broken: Path) -> None:
    options = ["--manifest", leaky.manifest, "--alpha", "0.05", "--json"]
    ended = atdp("audit-canary", leaky.model, checkpoint_folder, broken, *options, "--max-exposure", "20")
    assert [entry["gate"] for entry in _check_json(ended)] == ["FAIL", "PASS", "ERROR"]
    ended = atdp("audit-canary", leaky.model, *options, "--reference", checkpoint_folder)
    (entry,) = _check_json(ended)
    assert entry["canaries"][0]["exposure_ratio"] is not None
    ended = atdp("audit-canary", leaky.model, "--canary", "My ID is 1234", "--json")
    assert _check_json(ended)[0]["canaries"][0]["p_value"] is None


def test_a_name_that_is_not_utf_8_is_reported_all_the_same(
    atdp: Atdp, leaky: Leaky, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    model = tmp_path / "m\udcff"
    try:
        model.symlink_to(leaky.model)
    except OSError:
        pytest.skip("this file system has UTF-8 names alone")
    files = ["--junit", "j.xml", "--sarif", "s.sarif", "--write-baseline", "b.json"]
    assert atdp("audit-canary", leaky.model, model, "--manifest", leaky.manifest, *files, "-q").code == 1
    check_sarif(json.loads((tmp_path / "s.sarif").read_text(encoding="utf-8")))
    assert [suite.get("errors") for suite in ET.parse("j.xml").getroot()] == ["0", "0"]  # noqa: S314 - our own
    assert next(iter(json.loads((tmp_path / "b.json").read_text())["models"])) == str(leaky.model)


def test_files_are_not_overwritten_nor_left_half_done(atdp: Atdp, leaky: Leaky, broken: Path, tmp_path: Path) -> None:
    (tmp_path / "j.xml").write_text("mine")
    options = ["--manifest", leaky.manifest]
    ended = atdp("audit-canary", leaky.model, *options, "--junit", "j.xml")
    assert (ended.code, (tmp_path / "j.xml").read_text()) == (2, "mine")
    assert "--force" in ended.err
    assert atdp("audit-canary", leaky.model, *options, "--sarif", "no/s.sarif").code == 2
    assert atdp("audit-canary", leaky.model, *options, "--junit", "a", "--sarif", "./a").code == 2
    assert atdp("audit-canary", broken, *options, "--junit", "j.xml", "--sarif", "s", "--force").code == 2
    assert (tmp_path / "j.xml").read_text() == "mine"
    assert atdp("audit-canary", leaky.model, *options, "--junit", "j.xml", "--force").code == 1
    assert (tmp_path / "j.xml").read_text().startswith("<?xml")
    assert {path.name for path in tmp_path.iterdir()} == {"j.xml", "broken"}


def _numbers(text: str) -> Iterator[str]:
    """Numbers that stand alone: not in a longer one, not after the point of a fraction."""
    return (actual[0] for actual in re.finditer(r"(?<![\d.,])\d+(?![\d.,]*\d)", text))


def test_no_output_holds_a_secret_unless_asked(
    atdp: Atdp, leaky: Leaky, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = json.loads(leaky.manifest.read_text())["canaries"]
    secrets = {canary["secret"][0] for canary in known}
    shutil.copy(leaky.manifest, tmp_path / "c.json")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    files = ["--junit", "j.xml", "--sarif", "s.sarif", "--write-baseline", "b.json", "--force"]
    command = ["audit-canary", leaky.model, "--manifest", "c.json", "--reference", checkpoint_folder, *files]
    table = atdp(*command)
    shutil.copy("b.json", "known.json")
    as_json = atdp(*command, "--json", "--baseline", "known.json")
    shown = [table.out, table.err, as_json.out, as_json.err]
    written = [path.read_text() for path in tmp_path.iterdir() if path.name != "c.json"]
    assert len(written) == 5
    # A rank may happen to be the number of another canary's secret; it is no secret there.
    entry = as_json.json["models"][0]
    ranks = {str(value) for canary in entry["canaries"] for name, value in canary.items() if "rank" in name}
    for text in (*shown, *written):
        assert not (secrets - ranks) & set(_numbers(text))
        assert not re.search(r"My ID is\s*\d", text)
    assert "secret" not in table.out

    ended = atdp(*command, "--show-secrets")
    assert secrets <= set(_numbers(ended.out))
    for path in tmp_path.iterdir():
        assert path.name == "c.json" or not (secrets - ranks) & set(_numbers(path.read_text()))
    typed = atdp("audit-canary", leaky.model, "--canary", f"My ID is {known[0]['secret'][0]}", "--junit", "t.xml")
    assert f"ID is {known[0]['secret'][0]}" not in typed.out + typed.err + (tmp_path / "t.xml").read_text()
