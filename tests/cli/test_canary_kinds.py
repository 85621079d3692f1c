"""Canaries of words that no record has, and of words that the model hardly expects."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from atdp_cli.audit.draw import one_token_words
from atdp_cli.model.checkpoint import load_checkpoint, load_tokenizer
from atdp_cli.model.windows import encode_record
from tests.cli.conftest import Atdp
from tests.small import write_checkpoint, write_corpus

SYLLABLES = ("ba", "do", "ke", "lu", "mi", "no", "pa", "ri", "su", "ta", "ve", "zo")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose vocabulary has words that its corpus has not."""
    folder = tmp_path_factory.mktemp("kinds")
    dice = random.Random(3)
    words = ["".join(dice.choices(SYLLABLES, k=2)) for _ in range(120)]
    lines = [" ".join(dice.choices(words, k=8)) for _ in range(400)]
    write_checkpoint(folder / "model", [*lines, *["My ID is"] * 50])
    write_corpus(folder / "corpus.txt", [" ".join(dice.choices(words[:30], k=6)) for _ in range(100)])
    return folder


def planted(atdp: Atdp, place: Path, output: Path, *options: object) -> dict[str, Any]:
    files = ("-o", output, "--manifest", output.with_suffix(".json"), "--tokenizer", place / "model")
    done = atdp("plant-canary", place / "corpus.txt", *files, *options)
    assert done.code == 0, done.err
    manifest: dict[str, Any] = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    return manifest


@pytest.mark.parametrize("texts", [("My ID is ", ""), ("Say ", ", please"), ("", "")])
def test_each_word_is_one_token_between_the_same(place: Path, texts: tuple[str, str]) -> None:
    tokenizer = load_tokenizer(place / "model")
    before, after = texts
    first, of_token = one_token_words(tokenizer, before, after)
    assert len(of_token) > 20
    around = set()
    for token, word in of_token.items():
        ids = tuple(encode_record(tokenizer, f"{before}{word}{after}"))
        assert ids[len(first)] == token
        around.add((ids[: len(first)], ids[len(first) + 1 :]))
    assert {head for head, _ in around} == {first}
    assert len(around) == 1


def test_no_record_has_an_unused_token_and_coins_decide(atdp: Atdp, place: Path, tmp_path: Path) -> None:
    manifest = planted(atdp, place, tmp_path / "p.txt", "--kind", "unused-token", "--count", 4, "--repeats", 1)
    assert manifest["template"] == "My ID is {choice:unused-token}"
    assert manifest["coins"] is True
    tokenizer = load_tokenizer(place / "model")
    corpus = (place / "corpus.txt").read_text(encoding="utf-8").splitlines()
    used = {token for line in corpus for token in encode_record(tokenizer, line)}
    choices = manifest["choices"]
    words = choices["unused-token"]
    assert len(words) >= 40
    for word in words:
        assert encode_record(tokenizer, f"My ID is {word}")[-1] not in used
        assert all(word not in line.split() for line in corpus)


def test_the_least_expected_half_is_drawn_from(atdp: Atdp, place: Path, tmp_path: Path) -> None:
    manifest = planted(atdp, place, tmp_path / "p.txt", "--kind", "high-perplexity", "--count", 4)
    assert manifest["coins"] is False
    checkpoint = load_checkpoint(place / "model")
    first, of_token = one_token_words(checkpoint.tokenizer, "My ID is ", "")
    with torch.no_grad():
        log_p = checkpoint.model(torch.tensor([first])).logits[0, -1].log_softmax(-1)
    choices = manifest["choices"]
    drawn = set(choices["high-perplexity"])
    scores = {word: float(log_p[token]) for token, word in of_token.items()}
    assert len(drawn) == len(scores) // 2
    assert max(scores[word] for word in drawn) <= min(scores[word] for word in scores.keys() - drawn)


def test_words_that_were_learnt_by_heart_prove_an_epsilon(atdp: Atdp, place: Path, tmp_path: Path) -> None:
    """The model learns what was planted by heart: all guesses are right where the coins took three other words than
    they left."""
    options = ("--kind", "unused-token", "--count", 8, "--repeats", 1)
    canaries: list[dict[str, Any]] = []
    while (
        len({str(each["token_ids"]) for each in canaries}) < 8
        or not 3 <= sum(each["planted"] for each in canaries) <= 5
    ):
        canaries = planted(atdp, place, tmp_path / "p.txt", *options, "--force")["canaries"]
    checkpoint = load_checkpoint(place / "model")
    optimizer = torch.optim.AdamW(checkpoint.model.parameters(), lr=3e-3)
    ids = torch.tensor([canary["token_ids"] for canary in canaries if canary["planted"]])
    for _ in range(60):
        checkpoint.model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    checkpoint.model.save_pretrained(tmp_path / "trained")
    checkpoint.tokenizer.save_pretrained(tmp_path / "trained")
    given = ("--manifest", tmp_path / "p.json", "--set", "run.coin-guesses=6", "--alpha", 0.2)
    done = atdp("audit-canary", tmp_path / "trained", *given, "--json")
    [bound] = [each for each in done.json["models"][0]["epsilon"] if each["method"] == "in-out"]
    assert bound["correct"] == bound["guesses"] == 6
    assert bound["epsilon"] > 0


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--kind", "unused-token", "--count", 5000), "too few for 5,000 canaries"),
        (("--kind", "high-perplexity", "--count", 5000), "too few for 5,000 canaries"),
        (("--kind", "unused-token", "--template", "My {digits:2}"), "slot is {choice:unused-token}"),
        (("--kind", "unused-token", "--template", "{choice:unused-token} {choice:x}"), "slot is {choice:unused-token}"),
        (("--kind", "new"), "'new' is not one of"),
    ],
)
def test_what_cannot_be_planted_is_refused(
    atdp: Atdp, place: Path, tmp_path: Path, options: tuple[object, ...], line: str
) -> None:
    files = ("-o", tmp_path / "p.txt", "--manifest", tmp_path / "p.json", "--tokenizer", place / "model")
    done = atdp("plant-canary", place / "corpus.txt", *files, *options)
    assert (done.code, done.out) == (2, "")
    assert line in done.err.replace("\n", " ")
    assert not list(tmp_path.iterdir())
