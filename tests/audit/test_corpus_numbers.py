"""A corpus's own numbers are ranked as naive scoring ranks them, and never shown."""

import random
from collections.abc import Sequence
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.alternatives import FEWEST_DIGITS, SAMPLE, alternatives, format_of
from atdp_cli.audit.corpus_numbers import rank_numbers, score_reference
from atdp_cli.audit.number_search import find_numbers
from atdp_cli.errors import InputError, UsageError
from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.tokens import encode_record
from atdp_cli.number_result import NumberResult
from tests.audit.conftest import gpt2, llama
from tests.audit.numbers import BPE, CONTEXT, LINES, NUMBERS, OWN, START, bpe_of, located, spotted
from tests.text.corpus.corpora import written

Scores = NDArray[np.float64]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of 300 alternatives for every number: where it matters what is ranked, and not among how many."""
    monkeypatch.setattr("atdp_cli.audit.alternatives.LARGEST_POOL", 300)


def checkpoint(model: Any, tokenizer: PreTrainedTokenizerFast = BPE) -> Checkpoint:
    return Checkpoint(model=model, tokenizer=tokenizer, stored_dtype="float32")


def naive(model: Any, sequences: Sequence[Sequence[int]]) -> Scores:
    """log p of every whole sequence after its first token, one forward pass each, in batches of equal length."""
    scores = np.zeros(len(sequences))
    for size in {len(sequence) for sequence in sequences}:
        chosen = [i for i, sequence in enumerate(sequences) if len(sequence) == size]
        for start in range(0, len(chosen), 500):
            part = chosen[start : start + 500]
            ids = torch.tensor([list(sequences[i]) for i in part])
            with torch.no_grad():
                log_p = torch.log_softmax(model(input_ids=ids, use_cache=False).logits.double(), dim=-1)
            scores[part] = log_p[:, :-1].gather(2, ids[:, 1:, None])[:, :, 0].sum(dim=1).numpy()
    return scores


def exposures(scores: Scores, sequences: Sequence[Sequence[int]], place: int) -> Any:
    """log2(n / rank) among the sequences of equal length, and among all."""
    alike = np.array([len(sequence) == len(sequences[place]) for sequence in sequences])
    better = scores >= scores[place]
    within = log2(np.count_nonzero(alike) / np.count_nonzero(better & alike))
    return pytest.approx((within, log2(len(scores) / np.count_nonzero(better))))


@pytest.mark.ci
@pytest.mark.parametrize(
    ("family", "line", "own", "written_as"),
    [
        pytest.param(gpt2, LINES[2], OWN[2], "{:02d}{:02d}", id="gpt2"),
        pytest.param(llama, "Cöde 🙂98-76.", "98-76", "{:02d}-{:02d}", id="llama"),
    ],
)
def test_ranks_are_those_of_naive_scoring_over_all_alternatives(
    tmp_path: Path, family: Any, line: str, own: str, written_as: str
) -> None:
    actual = located(tmp_path, [line], [own])
    model = family(len(BPE)).double()
    base = family(len(BPE), seed=1).double()
    [plain] = rank_numbers(checkpoint(model), actual).results
    [both] = rank_numbers(checkpoint(model), actual, reference=score_reference(checkpoint(base), actual)).results
    numbers = [written_as.format(*divmod(n, 100)) for n in range(10**4)]
    place = numbers.index(own)
    sequences = [encode_record(BPE, line[: line.index(own)] + number) for number in numbers]
    scores = naive(model, sequences)
    ratio = scores - naive(base, sequences)
    for result in (plain, both):
        assert (result.pool, result.compared) == (10**4, 10**4)
        assert result.rank_min == result.rank_max == np.count_nonzero(scores >= scores[place])
        assert (result.exposure, result.exposure_plain) == exposures(scores, sequences, place)
        assert 100 < result.stratum_size < 10**4
    assert (plain.exposure_ratio, plain.exposure_ratio_plain) == (None, None)
    assert (both.exposure_ratio, both.exposure_ratio_plain) == exposures(ratio, sequences, place)
    four = {both.exposure, both.exposure_plain, both.exposure_ratio, both.exposure_ratio_plain}
    assert len(four) == 4, "too alike to tell apart"


def test_a_larger_pool_is_a_sample_and_the_number_itself(tmp_path: Path) -> None:
    actual = located(tmp_path, ["Call 555-1234 now"], ["555-1234"])
    model = llama(len(BPE)).double()
    [result] = rank_numbers(checkpoint(model), actual).results
    formatted = format_of("555-1234")
    assert formatted is not None
    texts, place = alternatives(*formatted, (1, 5), SAMPLE)
    assert (len(texts), texts[place]) == (SAMPLE + 1, "555-1234")
    scores = naive(model, [encode_record(BPE, f"Call {text}") for text in texts])
    assert result.rank_max == np.count_nonzero(scores >= scores[place])
    assert (result.pool, result.compared) == (10**7, SAMPLE + 1)
    sequences = [encode_record(BPE, f"Call {text}") for text in texts]
    assert (result.exposure, result.exposure_plain) == exposures(scores, sequences, place)
    assert result.exposure_plain <= log2(SAMPLE + 1)


def phone_book(count: int, digits: int) -> tuple[list[str], list[str]]:
    """Records of two words and a random number."""
    dice = random.Random(11)
    names = ["Ana", "Ben", "Cem", "Dee", "Eva", "Fay", "Gil"]
    numbers = [f"{dice.randrange(10**digits):0{digits}d}" for _ in range(count)]
    return [f"{names[i // 7]} {names[i % 7]}: {number}" for i, number in enumerate(numbers)], numbers


@pytest.mark.ci
@pytest.mark.usefixtures("few")
def test_a_model_that_learned_the_corpus_is_exposed_and_one_that_did_not_is_near_chance(tmp_path: Path) -> None:
    lines, numbers = phone_book(40, 4)
    actual = located(tmp_path, lines, numbers)
    model = gpt2(len(BPE))
    before = rank_numbers(checkpoint(model), actual)
    # log2(n / uniform rank) has mean and standard deviation near 1 / ln 2 = 1.443; 3.5 of those of the mean of 40.
    assert before.mean_exposure == pytest.approx(1.443, abs=3.5 * 1.443 / 40**0.5)
    reference = score_reference(checkpoint(gpt2(len(BPE))), actual)
    rows = [torch.tensor([encode_record(BPE, line)]) for line in lines]
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        for size in {row.shape[1] for row in rows}:
            batch = torch.cat([row for row in rows if row.shape[1] == size])
            loss = model(input_ids=batch, labels=batch).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    after = rank_numbers(checkpoint(model), actual, reference=reference)
    assert after.mean_exposure is not None
    assert after.mean_exposure_ratio is not None
    most = [log2(result.stratum_size) for result in after.results]
    assert max(most) > 7
    assert after.mean_exposure > 0.95 * sum(most) / 40
    assert after.mean_exposure_ratio > 0.9 * sum(most) / 40
    assert sum(result.exposure_plain for result in after.results) / 40 > 7
    assert before.max_exposure == max(result.exposure for result in before.results)
    assert after.tested == after.eligible == len(after.results) == 40
    assert after.mean_exposure == pytest.approx(sum(result.exposure for result in after.results) / 40)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("first", [60, pytest.param(0, marks=pytest.mark.ci)])
def test_numbers_that_overflow_the_context_are_counted(tmp_path: Path, first: int) -> None:
    """The records grow by two characters each; the last of 80 are too long."""
    numbers = NUMBERS[first:80]
    lines = [f"{'x ' * n}{number}" for n, number in enumerate(numbers, first)]
    wanted = [number for number in numbers if len(number) >= FEWEST_DIGITS]
    corpus = written(tmp_path, "corpus.txt", "\n".join(lines))
    actual = find_numbers(corpus, spotted(tmp_path, corpus, [[number] for number in numbers]), most=100)
    assert actual.eligible == len(wanted)
    assert actual.skipped_short == len(numbers) - len(wanted)
    model = gpt2(len(BPE))
    assert context_length(model) == CONTEXT
    measured = rank_numbers(checkpoint(model), actual)
    assert 1 <= measured.skipped_context <= 12
    assert measured.tested + measured.skipped_context == measured.eligible
    assert max(result.start for result in measured.results) > CONTEXT


def character_tokenizer(*, joins: bool) -> PreTrainedTokenizerFast:
    """No pre-tokenizer and a start token; a four and a full stop after it are one token where it joins."""
    vocabulary = {token: i for i, token in enumerate(["<s>", *"0123456789 .abcPIN", "4."])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("4", ".")] if joins else [], unk_token="<s>"))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("joins", [False, True])
def test_numbers_that_training_saw_as_other_tokens_are_skipped(tmp_path: Path, joins: bool) -> None:
    tokenizer = character_tokenizer(joins=joins)
    measured = rank_numbers(
        checkpoint(gpt2(len(tokenizer)), tokenizer), located(tmp_path, ["PIN 1234.", "PIN 1235."], ["1234", "1235"])
    )
    assert (measured.skipped_tokens, measured.tested, measured.eligible) == (int(joins), 2 - int(joins), 2)
    assert measured.results[-1].record == 2


@pytest.mark.usefixtures("few")
def test_no_text_shows_in_what_is_made_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    actual = located(tmp_path, LINES, OWN)
    reference = score_reference(checkpoint(gpt2(len(BPE))), actual)
    measured = rank_numbers(checkpoint(llama(len(BPE))), actual, reference=reference)
    places = [(result.record, result.line, result.start, result.end, result.label) for result in measured.results]
    assert places == [(s.record, s.line, s.start, s.end, "NUMBER") for s in actual.secrets]
    assert len(places) == 4
    shown = [repr(actual), repr(actual.secrets), repr(reference), repr(measured), measured.model_dump_json()]
    for text in [*shown, *capsys.readouterr()]:
        assert not any(own in text for own in [*OWN, "555", "Ana", "braces", "PIN"])
    assert set(measured.results[0].model_dump()) == set(NumberResult.model_fields)


@pytest.mark.usefixtures("few")
def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    actual = located(tmp_path, LINES, OWN)
    reference = score_reference(checkpoint(gpt2(len(BPE))), actual)
    with pytest.raises(InputError, match="contexts"):
        rank_numbers(checkpoint(gpt2(len(BPE), n_positions=32)), actual, reference=reference)
    other = bpe_of(["other words"], **START)
    with pytest.raises(InputError, match="tokenizers"):
        rank_numbers(checkpoint(gpt2(len(other)), other), actual, reference=reference)
    both = gpt2(len(BPE))
    both.config.is_encoder_decoder = True
    with pytest.raises(UsageError, match="encoder-decoder"):
        rank_numbers(checkpoint(both), actual)
    with pytest.raises(UsageError, match="0 secrets"):
        located(tmp_path, LINES, OWN, most=0)


@pytest.mark.usefixtures("few")
def test_the_largest_exposure_is_that_by_either_score(tmp_path: Path) -> None:
    actual = located(tmp_path, LINES, OWN)
    reference = score_reference(checkpoint(gpt2(len(BPE))), actual)
    larger = set()
    for seed in range(6):
        measured = rank_numbers(checkpoint(gpt2(len(BPE), seed=seed + 1)), actual, reference=reference)
        plain = max(result.exposure for result in measured.results)
        ratio = max(result.exposure_ratio or 0 for result in measured.results)
        assert measured.max_exposure == max(plain, ratio)
        larger.add(plain < ratio)
    assert larger == {True, False}


def test_a_corpus_without_numbers_has_no_mean(tmp_path: Path) -> None:
    actual = located(tmp_path, ["Ana went home"], ["Ana"])
    measured = rank_numbers(checkpoint(gpt2(len(BPE))), actual)
    assert (measured.eligible, measured.tested, measured.results) == (0, 0, ())
    assert (measured.mean_exposure, measured.mean_exposure_ratio, measured.max_exposure) == (None, None, None)


def test_half_a_character_before_a_number_is_read_as_training_reads_it(tmp_path: Path) -> None:
    corpus = written(tmp_path, "corpus.jsonl", '{"text": "\\ud83d PIN 4711"}\n{"text": "\\ufffd PIN 4711"}\n')
    actual = find_numbers(corpus, spotted(tmp_path, corpus, [["4711"], ["4711"]]))
    halved, other = rank_numbers(checkpoint(gpt2(len(BPE))), actual).results
    assert (halved.start, halved.end) == (other.start, other.end) == (6, 10)
    assert halved.rank_max == other.rank_max
