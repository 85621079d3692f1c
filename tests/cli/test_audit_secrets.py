"""`atdp audit-canary --secrets`: the corpus' own numbers, by their place and never by their text."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from atdp_cli.cli.app import run
from tests.cli.conftest import Atdp

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "atdp_cli" / "report" / "schemas" / "audit.schema.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def detected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A corpus with a phone number or a code on every line, and what `atdp detect` says of it."""
    folder = tmp_path_factory.mktemp("own")
    dice = random.Random(5)
    corpus, spans = folder / "corpus.txt", folder / "spans.jsonl"
    phones = [f"{dice.randrange(200, 1000):03}-{dice.randrange(10_000):04}" for _ in range(6)]
    codes = [f"{dice.randrange(10_000):04}" for _ in range(6)]
    corpus.write_text("".join(f"Ring me at {own} or write.\n" for own in (*phones, *codes)))
    assert run(["detect", str(corpus), "-o", str(spans), "-q"]) == 0
    return corpus, spans


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d{3}-\d{4}|\b\d{4}\b", text))


@pytest.mark.ci
def test_numbers_are_ranked_by_place_and_never_shown(
    atdp: Atdp, detected: tuple[Path, Path], checkpoint_folder: Path
) -> None:
    corpus, spans = detected
    command = ["audit-canary", checkpoint_folder, "--data", corpus, "--secrets", spans, "--alternatives", "200"]
    ended = atdp(*command, "--reference", checkpoint_folder, "--json")
    assert ended.code == 4, ended.err
    assert list(Draft202012Validator(SCHEMA).iter_errors(ended.json)) == []
    entry: dict[str, Any] = ended.json["models"][0]
    own = entry["own_secrets"]
    assert own["tested"] == len(own["results"]) > 0
    lines = corpus.read_text().split("\n")
    for result in own["results"]:
        assert re.search(r"\d", lines[result["line"] - 1][result["start"] : result["end"]])
        assert result["compared"] == (201 if result["pool"] > 20_000 else result["pool"])
        assert result["exposure_ratio"] == 0, "a model is no likelier than itself to say anything"
    assert "--max-exposure" in entry["reasons"][0]
    shown = atdp(*command)
    ranks = {str(result[name]) for result in own["results"] for name in ("rank_min", "rank_max", "pool", "compared")}
    secret = numbers(corpus.read_text()) - ranks
    assert not secret & numbers(shown.out.replace(",", "") + shown.err + ended.out + ended.err)
    assert "no evidence of memory" in " ".join(shown.out.split())


@pytest.mark.parametrize("limit", [0.5, 6.0, 13.5])
def test_only_a_limit_judges_them(
    atdp: Atdp, detected: tuple[Path, Path], checkpoint_folder: Path, limit: float
) -> None:
    corpus, spans = detected
    command = ["audit-canary", checkpoint_folder, "--data", corpus, "--secrets", spans, "--most-secrets", "4"]
    ended = atdp(*command, "--alternatives", "200", "--max-exposure", limit, "--json")
    results = ended.json["models"][0]["own_secrets"]["results"]
    most, reach = max(result["exposure"] for result in results), max(result["stratum_size"] for result in results)
    assert len(results) <= 4
    assert ended.code == (1 if most > limit else 4 if reach <= 2**limit else 0)


@pytest.mark.parametrize("option", ["--data", "--secrets"])
def test_corpus_and_spans_go_together(
    atdp: Atdp, detected: tuple[Path, Path], checkpoint_folder: Path, option: str
) -> None:
    ended = atdp("audit-canary", checkpoint_folder, option, detected[0])
    assert ended.code == 2
    assert "go together" in ended.err


@pytest.mark.parametrize("options", [["--full"], ["--attacks", "extraction"]])
def test_attacks_and_the_distribution_need_canaries(
    atdp: Atdp, detected: tuple[Path, Path], checkpoint_folder: Path, options: list[str]
) -> None:
    corpus, spans = detected
    ended = atdp("audit-canary", checkpoint_folder, "--data", corpus, "--secrets", spans, *options)
    assert ended.code == 2
    assert "--manifest" in ended.err
