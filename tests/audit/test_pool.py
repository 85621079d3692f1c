"""Tokenised candidates: equal to `encode_record`, and kept on disk without being trusted."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atdp_cli.audit.canary import Template, parse_template
from atdp_cli.audit.pool import PADDING, Candidates, default_cache, load_candidates, tokenise
from atdp_cli.events import ChoiceWarning, Event, RecordsRead
from atdp_cli.model.windows import encode_record

TEXTS = [
    "My ID is {digits:4}",
    "{digits:3}",
    "{hex:3} is it.",
    "My {letters:2}, 12",
    "é{digits:2}\u00a0x",
    "  {digits:2} ",
]


def sequence(candidates: Candidates, index: int) -> list[int]:
    tail: list[int] = candidates.tails[index, : candidates.lengths[index]].tolist()
    return [*candidates.prefix.tolist(), *tail]


def assert_equal_to_encode_record(tokenizer: Any, template: Template, candidates: Candidates, sample: int) -> None:
    for index in random.Random(0).sample(range(template.pool), min(sample, template.pool)):
        assert sequence(candidates, index) == encode_record(tokenizer, template.record(template.secret(index)))


@pytest.mark.parametrize("tokenizer", ["bpe", "characters", "gpt2_tokenizer", "stories_tokenizer"])
@pytest.mark.parametrize("text", TEXTS)
def test_candidates_are_what_encode_record_gives(tokenizer: str, text: str, request: pytest.FixtureRequest) -> None:
    loaded = request.getfixturevalue(tokenizer)
    template = parse_template(text)
    candidates = tokenise(loaded, template)
    assert_equal_to_encode_record(loaded, template, candidates, 300)
    assert candidates.tails.shape[0] == template.pool
    assert (np.count_nonzero(candidates.tails != PADDING, axis=1) == candidates.lengths).all()


@pytest.mark.parametrize("tokenizer", ["bpe", "characters", "gpt2_tokenizer", "stories_tokenizer"])
def test_the_prefix_is_as_long_as_can_be(tokenizer: str, request: pytest.FixtureRequest) -> None:
    candidates = tokenise(request.getfixturevalue(tokenizer), parse_template("My ID is {digits:3}"))
    assert candidates.lengths.min() == 0 or len(np.unique(candidates.tails[:, 0])) > 1


def test_candidates_of_one_template_differ_in_length(bpe: Any) -> None:
    """Or these tests would say little about strata and ragged tries."""
    assert len(np.unique(tokenise(bpe, parse_template("My ID is {digits:4}")).lengths)) >= 3


def test_truncation_and_padding_asked_for_elsewhere_change_nothing(bpe: Any) -> None:
    template = parse_template("My ID is {digits:2}")
    bpe.backend_tokenizer.enable_truncation(3)
    bpe.backend_tokenizer.enable_padding(length=20)
    assert_equal_to_encode_record(bpe, template, tokenise(bpe, template), 100)


def test_the_second_time_comes_from_the_cache(bpe: Any, tmp_path: Path) -> None:
    template, heard = parse_template("My ID is {digits:3}"), list[Event]()
    first = load_candidates(bpe, template, cache=tmp_path / "a", notify=heard.append)
    assert heard[-1] == RecordsRead(task="tokenising candidates", done=1000, total=1000)
    heard.clear()
    second = load_candidates(bpe, template, cache=tmp_path / "a", notify=heard.append)
    assert heard == []
    assert_same(first, second)
    assert [file.suffix for file in (tmp_path / "a").iterdir()] == [".npz"]


def test_templates_and_tokenizers_have_files_of_their_own(bpe: Any, characters: Any, tmp_path: Path) -> None:
    for tokenizer in (bpe, characters):
        for text in ("a{digits:2}", "{digits:2}a", "a{hex:2}"):
            load_candidates(tokenizer, parse_template(text), cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 6
    assert not any("digits" in file.name for file in tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "flipped", "pickle", "stale", "short", "types"])
def test_a_damaged_cache_file_is_written_anew(damage: str, bpe: Any, tmp_path: Path) -> None:
    template = parse_template("My ID is {digits:3}")
    right = load_candidates(bpe, template, cache=tmp_path)
    path = next(tmp_path.iterdir())
    content = path.read_bytes()
    arrays: dict[str, Any] = {"prefix": right.prefix, "tails": right.tails, "lengths": right.lengths}
    match damage:
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_bytes(b"not an archive")
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "flipped":
            middle = len(content) // 2
            path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        case "pickle":
            np.savez(path, **(arrays | {"tails": np.array([{}], dtype=object)}))
        case "stale":
            np.savez(path, **(arrays | {"prefix": right.prefix + 1}))
        case "short":
            np.savez(path, **(arrays | {"tails": right.tails[:-1], "lengths": right.lengths[:-1]}))
        case "types":
            np.savez(path, **(arrays | {"tails": right.tails.astype(np.int64)}))
    damaged = path.read_bytes()
    assert_same(load_candidates(bpe, template, cache=tmp_path), right)
    assert path.read_bytes() != damaged
    assert_same(load_candidates(bpe, template, cache=tmp_path), right)


@pytest.mark.ci
def test_no_flipped_bit_gets_through(bpe: Any, tmp_path: Path) -> None:
    template = parse_template("My ID is {digits:2}")
    right = load_candidates(bpe, template, cache=tmp_path)
    path = next(tmp_path.iterdir())
    content = path.read_bytes()
    dice = random.Random(0)
    for _ in range(300):
        damaged = bytearray(content)
        damaged[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        assert_same(load_candidates(bpe, template, cache=tmp_path), right)


def test_a_cache_that_cannot_be_written_is_done_without(bpe: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    heard = list[Event]()
    candidates = load_candidates(bpe, parse_template("{digits:2}"), cache=tmp_path / "file", notify=heard.append)
    assert candidates.tails.shape[0] == 100
    assert isinstance(heard[-1], ChoiceWarning)


def test_the_cache_folder_follows_the_desktop_standard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "atdp"
    monkeypatch.setenv("HOME", str(tmp_path))
    for unusable in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert default_cache() == tmp_path / ".cache" / "atdp"


def assert_same(candidates: Candidates, other: Candidates) -> None:
    assert np.array_equal(candidates.prefix, other.prefix)
    assert np.array_equal(candidates.tails, other.tails)
    assert np.array_equal(candidates.lengths, other.lengths)
