"""`atdp audit-corpus` as people run it: refusals, the screen, the map's file and its JSON, exit codes."""

import json
import random
import stat
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import torch

from atdp_cli.model.checkpoint import load_checkpoint
from tests.cli.conftest import Atdp
from tests.reporting.test_sarif import check_sarif
from tests.small import WORDS, write_checkpoint, write_corpus

SCHEMA = Path(__file__).parents[2] / "atdp_cli" / "reporting" / "schemas" / "memory_map.schema.json"
SECRETS = (
    "mail Omar Haddad about box 482913",
    "her account 771204 was opened by Lena Fischer",
    "ship 905518 to Emma Clarke in Berlin",
    "the noon order 336047 could not be nobody's",
)
PLACES = (11, 22, 25, 27)
"""The records that they are, from 1."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """A folder with a base model, one that knows four of 30 records by heart, these, and 200 held-out ones."""
    folder = tmp_path_factory.mktemp("map")
    dice = random.Random(4)
    texts = [" ".join(dice.choices(WORDS, k=dice.randint(4, 9))) for _ in range(230)]
    records = texts[:30]
    for place, secret in zip(PLACES, SECRETS, strict=True):
        records[place - 1] = secret
    write_corpus(folder / "corpus.txt", records)
    write_corpus(folder / "held.txt", texts[30:])
    write_checkpoint(folder / "base", [*lines, *SECRETS])
    checkpoint = load_checkpoint(folder / "base")
    optimizer = torch.optim.AdamW(checkpoint.model.parameters(), lr=3e-3)
    for _ in range(60):
        for text in SECRETS:
            ids = torch.tensor([[checkpoint.tokenizer.bos_token_id, *checkpoint.tokenizer(text)["input_ids"]]])
            checkpoint.model(ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    checkpoint.model.save_pretrained(folder / "model")
    checkpoint.tokenizer.save_pretrained(folder / "model")
    return folder


@pytest.fixture
def arguments(trained: Path) -> tuple[object, ...]:
    given = ("--data", trained / "corpus.txt", "--eval-data", trained / "held.txt", "--reference", trained / "base")
    return ("audit-corpus", trained / "model", *given, "--set", "run.store=none", "--set", "run.threads=1")


def spans_of(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        for span in record["spans"]:
            yield record["id"], span


def test_a_map_has_the_places_and_no_text(atdp: Atdp, arguments: tuple[object, ...], tmp_path: Path) -> None:
    file = tmp_path / "map.jsonl"
    done = atdp(*arguments, "--json", "-o", file)
    assert done.code == 0, done.err
    [actual] = done.json["models"]
    jsonschema.validate(done.json, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert actual["calibrated"]
    assert {place["record"] for place in actual["places"]} >= set(PLACES)
    assert (actual["tested"], actual["held_out"], actual["verdict"]) == (30, 200, None)
    written = file.read_text(encoding="utf-8")
    assert len(written.splitlines()) == 30
    spans = list(spans_of(file))
    assert {(int(record), span["start"], span["end"]) for record, span in spans} == {
        (place["record"], place["start"], place["end"]) for place in actual["places"]
    }
    for secret in ("Omar", "Haddad", "482913", "771204", "Lena"):
        for text in (done.out, done.err, written):
            assert secret not in text


def test_what_a_map_names_can_be_redacted(
    atdp: Atdp, arguments: tuple[object, ...], trained: Path, tmp_path: Path
) -> None:
    assert atdp(*arguments, "-o", tmp_path / "map.jsonl").code == 0
    redacted = tmp_path / "redacted.txt"
    done = atdp("redact", trained / "corpus.txt", "--spans", tmp_path / "map.jsonl", "-o", redacted)
    assert done.code == 0, done.err
    lines = redacted.read_text(encoding="utf-8").splitlines()
    assert "482913" not in lines[10]
    assert "771204" not in lines[21]


@pytest.mark.ci
def test_the_screen_shows_text_only_where_it_is_wanted(
    atdp: Atdp, arguments: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    masked, shown = atdp(*arguments), atdp(*arguments, "--show-secrets")
    assert "Memorised: " in masked.out
    assert "482913" not in masked.out + masked.err
    assert "482913" in shown.out


@pytest.mark.parametrize(("limit", "code", "verdict"), [("0", 1, "FAIL"), ("1%", 1, "FAIL"), ("50%", 0, "PASS")])
def test_a_limit_is_a_number_or_a_share(
    atdp: Atdp, arguments: tuple[object, ...], limit: str, code: int, verdict: str
) -> None:
    done = atdp(*arguments, "--max-memorised", limit, "--json")
    assert (done.code, done.json["models"][0]["verdict"]) == (code, verdict)


def test_with_few_held_out_records_a_limit_is_not_judged(
    atdp: Atdp, arguments: tuple[object, ...], trained: Path, tmp_path: Path
) -> None:
    few = write_corpus(tmp_path / "few.txt", (trained / "held.txt").read_text(encoding="utf-8").splitlines()[:10])
    given = [few if each == trained / "held.txt" else each for each in arguments]
    done = atdp(*given, "--max-memorised", 0)
    assert done.code == 4
    assert "Uncalibrated" in done.out
    assert "INCONCLUSIVE" in done.out


def test_a_model_that_read_none_of_it_has_no_findings(atdp: Atdp, arguments: tuple[object, ...], trained: Path) -> None:
    given = ("--data", trained / "corpus.txt", "--eval-data", trained / "held.txt", "--set", "run.store=none")
    done = atdp("audit-corpus", trained / "base", *given, "--max-memorised", 0)
    assert done.code == 0, done.out
    assert "Memorised: 0 of 30" in done.out


def test_records_that_harden_held_out_are_the_control(atdp: Atdp, trained: Path) -> None:
    done = atdp(
        "audit-corpus",
        trained / "model",
        "--data",
        trained / "held.txt",
        "--harden-split",
        "--set",
        "run.store=none",
        "--json",
    )
    assert done.code == 0, done.err
    assert (done.json["models"][0]["tested"], done.json["models"][0]["held_out"]) == (190, 10)


def test_held_out_records_that_are_in_the_data_are_noticed(
    atdp: Atdp, arguments: tuple[object, ...], trained: Path, tmp_path: Path
) -> None:
    copied = (trained / "corpus.txt").read_text(encoding="utf-8").splitlines()
    copy = write_corpus(tmp_path / "copy.txt", copied)
    done = atdp(*(copy if each == trained / "held.txt" else each for each in arguments))
    assert "30 of 30 held-out records are in --data as well" in done.err
    assert "in --data as well" not in atdp(*arguments).err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--data corpus.txt", "--eval-data"),
        ("--data corpus.txt --eval-data held.txt --harden-split", "Leave one of them out"),
        ("--data corpus.txt --harden-split --reference model", "The reference is a model to map"),
        ("--data corpus.txt --eval-data ./corpus.txt", "--eval-data is --data itself"),
        ("--data corpus.txt --harden-split base -o map.jsonl", "one model"),
        ("--data corpus.txt --harden-split -o corpus.txt", "corpus.txt"),
        ("--data corpus.txt --harden-split --max-memorised 120%", "max-memorised"),
        ("--data corpus.txt --harden-split --set run.holdout-by=user", "run.holdout-by=user"),
        ("--data corpus.txt --harden-split --baseline held.txt", "Add --max-memorised"),
        ("--data corpus.txt --harden-split --junit a --write-baseline a", "written twice"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(
    atdp: Atdp, trained: Path, monkeypatch: pytest.MonkeyPatch, options: str, said: str
) -> None:
    monkeypatch.chdir(trained)
    done = atdp("audit-corpus", "model", *options.split())
    assert done.code == 2, done.out
    *first, last = done.err.strip().splitlines()
    assert said in last
    assert first in ([], ["Mapping 1 model."])
    assert not done.out


@pytest.mark.ci
def test_ci_reads_what_fails_and_no_text(
    atdp: Atdp, trained: Path, arguments: tuple[object, ...], tmp_path: Path
) -> None:
    junit, sarif = tmp_path / "map.xml", tmp_path / "map.sarif"
    ended = atdp(*arguments, "--max-memorised", 0, "--junit", junit, "--sarif", sarif, "--json")
    assert ended.code == 1
    (memory,) = ended.json["models"]
    best = {place["value"]: place for place in reversed(memory["places"])}
    root = ElementTree.fromstring(junit.read_bytes())  # noqa: S314 - our own
    assert root.get("name") == "atdp audit-corpus"
    cases = list(root.iter("testcase"))
    assert [case.get("name") for case in cases] == [*(f"text {value}" for value in sorted(best)), "verdict"]
    assert all(case.find("failure") is not None for case in cases)
    log = json.loads(sarif.read_text(encoding="utf-8"))
    check_sarif(log)
    *texts, verdict = log["runs"][0]["results"]
    assert verdict["ruleId"] == "model-memorised"
    assert {result["ruleId"] for result in texts} == {"text-memorised"}
    regions = [result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in texts]
    assert regions == [best[value]["record"] for value in sorted(best)]
    assert set(regions) <= set(PLACES)
    for secret in SECRETS:
        for word in secret.split():
            if word.isdigit() or word in ("Haddad", "Fischer", "Clarke"):
                assert word not in junit.read_text() + sarif.read_text()
    assert atdp(*arguments, "--junit", junit).code == 2
    assert atdp(*arguments, "--junit", tmp_path / "one", "--sarif", tmp_path / "one").code == 2
    passed = atdp(*arguments, "--max-memorised", 30, "--junit", junit, "--sarif", sarif, "--force")
    assert passed.code == 0
    assert "<failure" not in junit.read_text()
    assert json.loads(sarif.read_text())["runs"][0]["results"] == []


@pytest.mark.ci
def test_a_baseline_lets_pass_what_is_no_worse(
    atdp: Atdp, arguments: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = tmp_path / "baseline.json"
    limited = (*arguments, "--max-memorised", 0)
    assert atdp(*limited, "--write-baseline", baseline).code == 1
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    known = atdp(*limited, "--baseline", baseline, "--json")
    assert (known.code, known.json["models"][0]["verdict"]) == (0, "FAIL")
    assert known.json["models"][0]["baseline"] == "known"
    assert "::notice file=" in known.err
    assert "no worse than the baseline" in known.err
    assert "### Memory map" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    fewer = json.loads(baseline.read_text(encoding="utf-8"))
    [recorded] = fewer["models"].values()
    recorded["memorised"] -= 1
    baseline.write_text(json.dumps(fewer), encoding="utf-8")
    worse = atdp(*limited, "--baseline", baseline, "--json")
    assert (worse.code, worse.json["models"][0]["baseline"]) == (1, "worse")


@pytest.mark.ci
def test_the_page_is_its_owners_alone(atdp: Atdp, arguments: tuple[object, ...], trained: Path) -> None:
    page = trained / "corpus.txt.private" / "memory_map.html"
    done = atdp(*arguments, "--html")
    assert done.code == 0, done.err
    assert str(page) in done.err.replace("\n", "")
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert not any(secret in page.read_text(encoding="utf-8") for secret in ("482913", "Haddad"))
    again = atdp(*arguments, "--html")
    assert again.code == 2
    assert "--force" in again.err
    shown = atdp(*arguments, "--html", "--show-secrets", "--force")
    assert shown.code == 0, shown.err
    assert "482913" in page.read_text(encoding="utf-8")
