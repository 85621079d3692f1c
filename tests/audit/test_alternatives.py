"""What could have stood in a number's place, token for token as training would see it."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from atdp_cli.audit.alternatives import SAMPLE, alternatives, format_of, tokenise_after
from atdp_cli.model.tokens import encode_record
from atdp_cli.model.windows import Marks, encode_windows
from tests.audit.conftest import SHARED
from tests.audit.numbers import BPE, CONTEXT, NO_START


def test_a_sample_is_uniform_over_the_format_and_the_same_in_every_run() -> None:
    formatted = format_of("(030) 12.3-9")
    assert formatted is not None
    template, secret = formatted
    assert "".join(map(str, template.slots)) == "{digits:3}{digits:2}{digits:1}{digits:1}"
    texts, place = alternatives(template, secret, (4, 9), SAMPLE)
    assert texts == alternatives(template, secret, (4, 9), SAMPLE)[0]
    assert texts[:place] != alternatives(template, secret, (4, 10), SAMPLE)[0][:place]
    assert all(text[0] + text[4:6] + text[8] + text[10] == "() .-" for text in texts)
    drawn = np.array([[int(letter) for letter in text if letter.isdigit()] for text in texts[:place]])
    assert drawn.shape == (SAMPLE, 7)
    # Chi-squared of each place's digits, 9 degrees of freedom: above 40 once in some 130,000.
    for digits in drawn.T:
        counts = np.bincount(digits, minlength=10)
        assert ((counts - SAMPLE / 10) ** 2 / (SAMPLE / 10)).sum() < 40


def window_of(tokenizer: Any, text: str, end: int, context: int) -> list[int]:
    """The tokens up to `end` of the last training window that sees any of them as a target, by the trainer itself."""
    through = len(encode_record(tokenizer, text[:end]))
    windows = encode_windows(tokenizer, 0, text, Marks(), context=context, max_windows=10**6)
    at = 0
    for window in windows:
        if through <= at + len(window.token_ids):
            return [int(token_id) for token_id in window.token_ids[: through - at]]
        at += len(window.token_ids) - 1
    raise AssertionError("the text has no such window")


@pytest.mark.ci
@pytest.mark.parametrize("tokenizer", [BPE, NO_START], ids=["start", "no start"])
@pytest.mark.parametrize("word", [" a", " é🙂."])
def test_a_number_is_scored_in_the_window_that_training_sees_it_in(word: str, tokenizer: Any) -> None:
    """At every place of a window; or not at all, where it or an alternative runs over the end of the window."""
    texts = [f" {n // 100:03d}-{n % 100:02d}" for n in range(0, 10**5, 7001)]
    skipped = []
    for length in range(70 if len(word) > 2 else 150):
        before = word * length
        actual = tokenise_after(tokenizer, before, texts, place=3, context=CONTEXT)
        whole = [encode_record(tokenizer, before + text) for text in texts]
        shared = max(n for n in range(min(map(len, whole))) if len({tuple(ids[:n]) for ids in whole}) == 1)
        # A token at place i, from 0, is a target in window (i - 1) // (context - 1).
        fits = shared > 0 and (shared - 1) // (CONTEXT - 1) == (max(map(len, whole)) - 2) // (CONTEXT - 1)
        assert (actual is not None) == fits
        skipped.append(not fits)
        if actual is None:
            continue
        own = [*actual.prefix.tolist(), *actual.tails[3, : actual.lengths[3]].tolist()]
        assert own == window_of(tokenizer, before + texts[3] + ", and more", len(before + texts[3]), CONTEXT)
        for row, size, ids in zip(actual.tails, actual.lengths, whole, strict=True):
            assert [*actual.prefix.tolist(), *row[:size].tolist()] == ids[-size - actual.prefix.size :]
    assert 0 < sum(skipped) < len(skipped) / 3


def test_a_first_token_that_nothing_predicts_is_not_scored() -> None:
    assert tokenise_after(NO_START, "", ["1", "2"], place=0, context=CONTEXT) is None
    assert tokenise_after(BPE, "", ["1", "2"], place=0, context=CONTEXT) is not None


def metaspace() -> PreTrainedTokenizerFast:
    """It puts a space in front of whatever it is given, as SentencePiece does, and splits nowhere."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))],
        initial_alphabet=list("0123456789▁"),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["".join(random.Random(i).choices("abcde é0123", k=30)) for i in range(100)], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", unk_token="<unk>")


METASPACE = metaspace()


@pytest.mark.ci
@settings(max_examples=40, deadline=None)
@given(data=st.data(), tokenizer=st.sampled_from([BPE, METASPACE]))
def test_long_text_before_a_number_changes_no_token(data: st.DataObject, tokenizer: Any) -> None:
    alphabet = data.draw(st.sampled_from(["ab c.", "abé 天气🙂", "abcde", "天气好", "🙂 \n12"]))
    before = data.draw(st.text(alphabet, min_size=60, max_size=300))
    formatted = format_of("77-608")
    assert formatted is not None
    texts, place = alternatives(*formatted, (0, 0), SAMPLE)
    texts = [*texts[:100], texts[place]]
    actual = tokenise_after(tokenizer, before, texts, place=100, context=10**6)
    assert actual is not None
    for i, text in enumerate(texts):
        whole = [*actual.prefix.tolist(), *actual.tails[i, : actual.lengths[i]].tolist()]
        assert whole == encode_record(tokenizer, before + text)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["gpt2-tokenizer", "stories15M"])
@pytest.mark.parametrize(
    "before", ["今天天气很好，我们去公园散步" * 20, "The order was sent to him. " * 20, "abc" * 90]
)
def test_real_tokenizers_keep_every_token(name: str, before: str) -> None:
    if not (SHARED / name).is_dir():
        pytest.skip(f"needs {name}, which is not part of the repository")
    tokenizer = AutoTokenizer.from_pretrained(SHARED / name)
    texts = [f" ({n:03d}) 555-{n * 7 % 10000:04d}" for n in range(500)]
    actual = tokenise_after(tokenizer, before, texts, place=3, context=10**6)
    assert actual is not None
    for i, text in enumerate(texts):
        whole = [*actual.prefix.tolist(), *actual.tails[i, : actual.lengths[i]].tolist()]
        assert whole == encode_record(tokenizer, before + text)
