"""The map: how often chance is called memory, and that memory is found where it is."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from atdp_cli.corpus.spans import MEMORISED, Span, Tier
from atdp_cli.events import ignore
from atdp_cli.memorisation.map import MappedCorpus, MappedRecord, find_memorised, rank_places
from atdp_cli.memorisation.scores import TokenScores, score_tokens
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.replacement.decoys import uniformly
from tests.small import WORDS, write_checkpoint

RELABELINGS = 200


@pytest.fixture
def checkpoint(checkpoint_folder: Path) -> Checkpoint:
    loaded = load_checkpoint(checkpoint_folder)
    loaded.model.eval()
    return loaded


def sentences(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(4, 12))) for _ in range(count)]


def mapped(texts: Sequence[str], first: int = 1, groups: Sequence[int] | None = None) -> tuple[MappedRecord, ...]:
    return tuple(
        MappedRecord(
            number=number, text=text, spans=(), group=number - first if groups is None else groups[number - first]
        )
        for number, text in enumerate(texts, start=first)
    )


def scored(checkpoint: Checkpoint, texts: Sequence[str]) -> list[TokenScores]:
    return score_tokens(checkpoint, texts, name="model", notify=ignore)


@pytest.mark.ci
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("with_reference", [False, True])
def test_a_model_that_never_read_them_has_findings_no_more_often_than_the_rate(
    checkpoint: Checkpoint, tmp_path: Path, lines: list[str], with_reference: bool, grouped: bool
) -> None:
    """All records are alike to the model, so any finding is false: the rate is the chance of at least one."""
    texts = sentences(420, 3)
    scores = scored(checkpoint, texts)
    base = scored(load_checkpoint(write_checkpoint(tmp_path / "base", lines, seed=8)), texts)
    order = np.random.default_rng(5)
    size, false = (3 if grouped else 1), 0
    for _ in range(RELABELINGS):
        places = order.permutation(420)
        training, held_out = ([texts[place] for place in part] for part in (places[:60], places[60:]))
        corpus = MappedCorpus(
            training=mapped(training, 1, [number // size for number in range(60)]),
            held_out=mapped(held_out, 61, [number // size for number in range(360)]),
        )
        own, reference = ([given[place] for place in places] for given in (scores, base))
        actual = find_memorised(corpus, own, reference if with_reference else None, fdr=0.2)
        assert (actual.tested, actual.held_out) == (60 // size, 360 // size)
        false += actual.calibrated
    assert false <= binom.ppf(0.9999, RELABELINGS, 0.2)


def learn(checkpoint: Checkpoint, texts: Sequence[str]) -> None:
    """By heart."""
    optimizer = torch.optim.AdamW(checkpoint.model.parameters(), lr=3e-3)
    for _ in range(60):
        for text in texts:
            ids = torch.tensor([[checkpoint.tokenizer.bos_token_id, *checkpoint.tokenizer(text)["input_ids"]]])
            checkpoint.model(ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()


@pytest.fixture
def learnt(checkpoint: Checkpoint) -> tuple[Checkpoint, MappedCorpus]:
    """A model that knows records 1 to 8 of 48 by heart, each with a number in it."""
    dice = random.Random(2)
    texts = [f"{text} {dice.randrange(10**6):06} again" for text in sentences(348, 11)]
    learn(checkpoint, texts[:8])

    def spans(text: str) -> tuple[Span, ...]:
        start = next(place for place, character in enumerate(text) if character.isdigit())
        return (Span(start, start + 6, "NUMBER", "pattern", Tier.LOW_ENTITY),)

    records = [
        MappedRecord(number=number, text=text, spans=spans(text), group=(number - 1) if number <= 48 else number - 49)
        for number, text in enumerate(texts, start=1)
    ]
    return checkpoint, MappedCorpus(training=tuple(records[:48]), held_out=tuple(records[48:]))


@pytest.mark.ci
def test_most_of_what_is_known_by_heart_is_found_where_it_is(
    learnt: tuple[Checkpoint, MappedCorpus], tmp_path: Path, lines: list[str]
) -> None:
    checkpoint, corpus = learnt
    base = load_checkpoint(write_checkpoint(tmp_path / "base", lines))
    texts = [record.text for record in corpus.records]
    own = scored(checkpoint, texts)
    for reference in (None, scored(base, texts)):
        actual = find_memorised(corpus, own, reference, fdr=0.05)
        assert actual.calibrated
        # Records of which every pair of tokens is held out as well have little to stand out by.
        assert len(actual.groups & set(range(8))) >= 5
        assert len(actual.groups - set(range(8))) <= 2
        assert {place.record - 1 for place in actual.places} == actual.groups
        for place in actual.places:
            text = texts[place.record - 1]
            assert not text[place.start : place.end][0].isspace()
            assert not text[place.start : place.end][-1].isspace()
            assert place.start == 0 or text[place.start - 1].isspace()
            assert place.end == len(text) or text[place.end].isspace()
        covered = [
            any(
                place.start <= span.start and span.end <= place.end for place in actual.places if place.record == number
            )
            for number, span in ((record.number, record.spans[0]) for record in corpus.training[:8])
        ]
        assert sum(covered) >= 5


def test_a_number_known_by_heart_is_likelier_than_all_its_decoys(learnt: tuple[Checkpoint, MappedCorpus]) -> None:
    checkpoint, corpus = learnt
    texts = [record.text for record in corpus.records]
    actual = find_memorised(corpus, scored(checkpoint, texts), None, fdr=0.05)
    numbers = [
        place.model_copy(update={"start": span.start, "end": span.end, "label": "NUMBER", "value": value})
        for value, place in enumerate(actual.places, start=1)
        for span in corpus.training[place.record - 1].spans
        if place.record <= 8
    ]
    choose = uniformly(random.Random(1).randrange)
    ranked = rank_places(checkpoint, None, corpus, numbers, decoys=99, choose=choose)
    ranks = [place.rank for place in ranked if place.rank is not None]
    assert len(ranks) == len(numbers)
    assert all(rank.decoys == 99 and rank.elsewhere is not None for rank in ranks)
    assert np.mean([rank.likelier for rank in ranks]) < 0.02


@pytest.mark.ci
def test_too_few_held_out_records_give_an_uncalibrated_list(learnt: tuple[Checkpoint, MappedCorpus]) -> None:
    checkpoint, corpus = learnt
    few = MappedCorpus(training=corpus.training, held_out=corpus.held_out[:10])
    actual = find_memorised(few, scored(checkpoint, [record.text for record in few.records]), None, fdr=0.05)
    assert actual.fewest == 88  # 48 / (0.05 · 11), of 48
    assert not actual.calibrated
    assert actual.groups >= set(range(8))
    assert actual.places


def test_places_of_equal_text_have_one_number_and_one_rank(checkpoint: Checkpoint) -> None:
    texts = ["the blue box was opened by 482913 again", "she asked for 482913 before noon"]
    learn(checkpoint, texts)
    held_out = [f"{text} {number:06}" for number, text in enumerate(sentences(300, 6))]
    corpus = MappedCorpus(training=mapped(texts), held_out=mapped(held_out, 3))
    actual = find_memorised(corpus, scored(checkpoint, [*texts, *held_out]), None, fdr=0.05)
    by_text: dict[str, set[int]] = {}
    for place in actual.places:
        by_text.setdefault(texts[place.record - 1][place.start : place.end], set()).add(place.value)
    assert all(len(values) == 1 for values in by_text.values())
    assert len({place.value for place in actual.places}) == len(by_text)
    assert {place.label for place in actual.places} == {MEMORISED}


@given(st.lists(st.sampled_from(["ab", " ", "\n", "  ", "c d", " e", ""]), min_size=1, max_size=8), st.data())
def test_every_place_has_a_character_that_is_seen(pieces: list[str], data: st.DataObject) -> None:
    """Whatever stands out, also white space at a record's end."""
    ends = np.cumsum([len(piece) for piece in pieces])
    offsets = np.stack([ends - [len(piece) for piece in pieces], ends], axis=1)
    surprises = data.draw(st.lists(st.floats(-9, 0), min_size=len(pieces), max_size=len(pieces)))

    def scores(log_p: Sequence[float]) -> TokenScores:
        return TokenScores(
            ids=np.arange(len(log_p)),
            offsets=offsets[: len(log_p)],
            log_p=np.array(log_p, dtype=np.float32),
            greedy=np.zeros(len(log_p), dtype=np.bool_),
        )

    text = "".join(pieces)
    corpus = MappedCorpus(training=mapped([text]), held_out=mapped(["".join(pieces[:1])], first=2))
    findings = find_memorised(corpus, [scores(surprises), scores([-9.0])], None, fdr=0.6)
    for place in findings.places:
        assert place.start < place.end <= len(text)
        assert text[place.start : place.end].strip()
