"""Windows: every token predicted once, every flag on the tokens that overlap it."""

import json
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import combining

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, ByT5Tokenizer, PreTrainedTokenizerFast

from atdp_cli.errors import InputError
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.model.windows import Marks, align_record, check_alignment, encode_record, encode_windows

TEXT = "Zoë’s e-mail: 🎉 ana@example.com\tשלום e\u0301 naïve,\r\nthe   end"


@pytest.fixture(scope="session")
def tokenizer(checkpoint_folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(checkpoint_folder)


@cache
def wordpiece() -> Any:
    words = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer(lowercase=True)
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.train_from_iterator(
        [TEXT] * 3, trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")


@cache
def metaspace() -> Any:
    pieces = Tokenizer(models.BPE(unk_token="<unk>"))
    pieces.pre_tokenizer = pre_tokenizers.Metaspace()
    pieces.train_from_iterator(
        [TEXT] * 3, trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=pieces, unk_token="<unk>")


@cache
def unigram() -> Any:
    """As SentencePiece's unigram models: NFKC makes one character of a letter and its combining mark."""
    pieces = Tokenizer(models.Unigram())
    pieces.normalizer = normalizers.NFKC()
    pieces.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    pieces.train_from_iterator([TEXT] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=pieces, unk_token="<unk>")


@cache
def byte_fallback() -> Any:
    """As Llama's: a space in front that the text does not have, and bytes for characters that it does not know."""
    pieces = Tokenizer(models.BPE(unk_token="<unk>"))
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=["<unk>"], show_progress=False)
    pieces.train_from_iterator(["the end ana example com mail"] * 3, trainer)
    written = json.loads(pieces.to_str())
    vocabulary = written["model"]["vocab"]
    vocabulary |= {f"<0x{byte:02X}>": len(vocabulary) + byte for byte in range(256)}
    written["model"] |= {"vocab": vocabulary, "byte_fallback": True}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(written)), unk_token="<unk>")


TOKENIZERS: dict[str, Callable[[], Any] | None] = {
    "byte-level BPE": None,
    "WordPiece": wordpiece,
    "SentencePiece BPE": metaspace,
    "SentencePiece unigram": unigram,
    "SentencePiece with bytes": byte_fallback,
}
EVERY_TOKENIZER = pytest.mark.parametrize("build", TOKENIZERS.values(), ids=TOKENIZERS)
LOSSLESS = pytest.mark.parametrize("build", [None, byte_fallback], ids=["byte-level BPE", "SentencePiece with bytes"])

HAZARDS = {
    "emoji": "🎉",
    "emoji of several code points": "👩‍👩‍👧",
    "flag": "🇩🇪",
    "combining mark": "e\u0301",
    "stacked combining marks": "a\u0323\u0302",
    "line ending": "\r\n",
    "tab": "\t",
    "right-to-left": "שלום",
    "right-to-left with marks of direction": "\u202babc שלום\u202c",
    "ligature": "ﬁ",
    "lone surrogate": "\ud800",
}


@settings(deadline=None, max_examples=80)
@given(st.text(max_size=120), st.integers(2, 20), st.integers(1, 5))
def test_each_token_but_the_first_is_a_target_once(tokenizer: Any, text: str, context: int, most: int) -> None:
    ids, _ = align_record(tokenizer, text, with_end=True)
    windows = encode_windows(tokenizer, 3, text, Marks(), context=context, max_windows=most)
    predicted = [int(token) for window in windows for token in window.token_ids[1:]]
    assert predicted == ids[1 : 1 + len(predicted)]
    assert len(predicted) == len(ids) - 1 or len(windows) == most or not text
    for window in windows:
        assert 2 <= len(window.token_ids) <= context
        assert window.targets.tolist() == [False] + [True] * (len(window.token_ids) - 1)
        assert window.record == 3
    for before, after in pairwise(windows):
        assert before.token_ids[-1] == after.token_ids[0]


@EVERY_TOKENIZER
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_token_that_overlaps_a_span_by_one_character_is_sensitive(
    tokenizer: Any, build: Any, data: st.DataObject
) -> None:
    tokens = tokenizer if build is None else build()
    start = data.draw(st.integers(0, len(TEXT) - 1))
    end = data.draw(st.integers(start + 1, len(TEXT)))
    (window,) = encode_windows(
        tokens, 0, TEXT, Marks(sensitive=((start, end),), ignored=((start, end),)), context=500, max_windows=1
    )
    _, offsets = align_record(tokens, TEXT, with_end=True)
    expected = [any(start <= place < end for place in range(*offset)) for offset in offsets]
    assert window.sensitive.tolist() == window.ignored.tolist() == expected
    assert not (window.targets & window.ignored).any()
    covered = {place for offset in offsets for place in range(*offset)}
    visible = {place for place in range(start, end) if not (TEXT[place].isspace() or combining(TEXT[place]))}
    assert visible <= covered


@EVERY_TOKENIZER
@settings(deadline=None, max_examples=60)
@given(text=st.text(st.characters(), min_size=1, max_size=40), data=st.data())
def test_flags_follow_the_characters_of_any_text(tokenizer: Any, build: Any, text: str, data: st.DataObject) -> None:
    tokens = tokenizer if build is None else build()
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    windows = encode_windows(tokens, 0, text, Marks(sensitive=((start, end),)), context=500, max_windows=1)
    _, offsets = align_record(tokens, text, with_end=True)
    assert all(0 <= first <= last <= len(text) for first, last in offsets)
    expected = [any(start <= place < end for place in range(*offset)) for offset in offsets]
    assert [flag for window in windows for flag in window.sensitive] == (expected if windows else [])


@LOSSLESS
@pytest.mark.parametrize("hazard", HAZARDS.values(), ids=HAZARDS)
def test_one_flagged_character_flags_every_token_that_holds_a_part_of_it(
    tokenizer: Any, build: Any, hazard: str
) -> None:
    """Each code point alone, in the middle of words: the flagged tokens are those of its bytes, and no others."""
    tokens = tokenizer if build is None else build()
    text = f"the {hazard}mail{hazard} end"
    _, offsets = align_record(tokens, text, with_end=True)
    for place in range(len(text)):
        (window,) = encode_windows(tokens, 0, text, Marks(sensitive=((place, place + 1),)), context=500, max_windows=1)
        assert window.sensitive.any()
        flagged = [offset for offset, flag in zip(offsets, window.sensitive, strict=True) if flag]
        assert flagged == [(first, last) for first, last in offsets if first <= place < last]


def test_a_tokenizer_without_offsets_is_refused(tmp_path: Path) -> None:
    ByT5Tokenizer().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(InputError, match=r"no fast tokenizer\. Save one: it tells which characters a token covers"):
        load_tokenizer(tmp_path)


def test_function_words_are_tokens_that_hold_nothing_else(tokenizer: Any) -> None:
    text = "the order was shipped"
    (window,) = encode_windows(tokenizer, 0, text, Marks(function=((0, 3), (10, 13))), context=50, max_windows=1)
    _, offsets = align_record(tokenizer, text, with_end=True)
    flagged = [text[start:end] for (start, end), flag in zip(offsets, window.function, strict=True) if flag]
    assert "".join(flagged).replace(" ", "") == "thewas"


def test_the_audit_sees_the_tokens_that_training_sees(tokenizer: Any, lines: list[str]) -> None:
    for line in lines[:50]:
        (window,) = encode_windows(tokenizer, 0, line, Marks(), context=500, max_windows=1)
        assert window.token_ids.tolist() == [*encode_record(tokenizer, line), tokenizer.eos_token_id]


def test_a_lone_surrogate_keeps_the_places_of_the_rest(tokenizer: Any) -> None:
    _, offsets = align_record(tokenizer, "a\ud800 order", with_end=False)
    assert offsets[-1][1] == len("a\ud800 order")


def test_an_empty_record_has_no_window_since_it_must_add_nothing(tokenizer: Any) -> None:
    assert encode_windows(tokenizer, 0, "", Marks(), context=10, max_windows=2) == ()


def test_a_tokenizer_that_forgets_the_text_is_refused() -> None:
    silent = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    silent.normalizer = normalizers.Replace("a", "")
    silent.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    silent.normalizer = normalizers.Sequence([normalizers.Replace(letter, "") for letter in "Adamovedtoarisin18423."])
    with pytest.raises(InputError, match="characters"):
        check_alignment(PreTrainedTokenizerFast(tokenizer_object=silent, unk_token="<unk>"))
