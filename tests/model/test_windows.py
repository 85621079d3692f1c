"""Windows: every token predicted once, every flag on the tokens that overlap it."""

from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import combining

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from atdp_cli.errors import InputError
from atdp_cli.model.tokens import align_record, encode_record
from atdp_cli.model.windows import Marks, check_alignment, encode_windows

TEXT = "Zoë’s e-mail: 🎉 ana@example.com\tשלום e\u0301 naïve,\r\nthe   end"


@pytest.fixture(scope="session")
def tokenizer(checkpoint_folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(checkpoint_folder)


def wordpiece() -> Any:
    words = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer(lowercase=True)
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.train_from_iterator(
        [TEXT] * 3, trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")


def metaspace() -> Any:
    pieces = Tokenizer(models.BPE(unk_token="<unk>"))
    pieces.pre_tokenizer = pre_tokenizers.Metaspace()
    pieces.train_from_iterator(
        [TEXT] * 3, trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=pieces, unk_token="<unk>")


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


@pytest.mark.parametrize("build", [None, wordpiece, metaspace], ids=["byte-level BPE", "WordPiece", "SentencePiece"])
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
