"""The sensitivity that the accountant assumes: one record moves the sum before noise by at most C.

Same parameters, same coins, same released share in both worlds; one of them has an empty record in a record's place.
Differences are taken in fp64 and compared with C itself: the engines' own margin has to hold their rounding.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atdp_cli.hardening.encode import Encoding, encode
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.privacy.noisy_statistic import balancing_weight
from atdp_cli.training.examples import Example, make_example, sensitive_share
from atdp_cli.training.objectives import Weighted
from atdp_cli.training.recipe import TextVariant, Train, reads_records
from tests.soundness import worlds
from tests.soundness.broken import window_by_window
from tests.soundness.worlds import (
    ABSENT,
    ALL_SENSITIVE,
    CORPUS,
    WINDOWS,
    Case,
    Rule,
    all_cases,
    check,
    engine_of,
    examples_of,
    private_recipes,
    recipe_of,
    rules_of,
    visit,
    without,
)
from tests.training.stages import trained

RULED = [(name, rule) for name in private_recipes() for rule in rules_of(name)]
CASES = [case for case in all_cases() if "+" not in case.recipe]
"""`tests/deep` has sums of two as well."""


@pytest.fixture(scope="module")
def tokenizer(checkpoint_folder: Path) -> Any:
    return load_tokenizer(checkpoint_folder)


@pytest.mark.one_in(20)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_record_moves_the_sum_by_at_most_c(case: Case, tokenizer: Any, tmp_path: Path) -> None:
    check(case, tokenizer, tmp_path)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "rule"), RULED, ids=str)
def test_emptying_a_record_changes_no_other(name: str, rule: Rule, tokenizer: Any) -> None:
    for stage in recipe_of(name, rule):
        if not isinstance(stage, Train) or not reads_records(stage):
            continue
        whole = examples_of(CORPUS, stage, tokenizer)
        for target in range(len(CORPUS)):
            less = examples_of(without(target), stage, tokenizer)
            assert less[target].windows == ()
            assert all(same(whole[row], less[row]) for row in range(len(CORPUS)) if row != target)


def same(first: Example, second: Example) -> bool:
    if len(first.windows) != len(second.windows):
        return False
    windows = [
        getattr(a, field).tolist() == getattr(b, field).tolist()
        for a, b in zip(first.windows, second.windows, strict=True)
        for field in ("token_ids", "sensitive", "function", "ignored")
    ]
    pulled = [
        example.distilled is not None and [mask.tolist() for mask in example.distilled] for example in (first, second)
    ]
    weighed = all(np.array_equal(a, b) for a, b in zip(first.weights, second.weights, strict=True))
    return all(windows) and weighed and pulled[0] == pulled[1] and first.teacher is second.teacher


def test_the_corpus_has_what_it_should(tokenizer: Any) -> None:
    examples = examples_of(CORPUS, trained(recipe_of("atdp", "record"))[0], tokenizer)
    assert len(examples[WINDOWS].windows) >= 3
    assert examples[ABSENT].windows == ()
    shares = [sensitive_share(example.windows) for example in examples]
    assert min(shares) == 0
    assert max(shares) > 0.5


def test_clipping_window_by_window_is_found(tokenizer: Any, tmp_path: Path) -> None:
    current = worlds.model(len(tokenizer), adapter=False)
    engine = window_by_window(engine_of("ghost", len(tokenizer), False))
    actual = visit(recipe_of("atdp", 0.2), current, tokenizer, engine, tmp_path)
    assert min(compared.among for compared in actual if compared.target == WINDOWS) > 1


def test_a_weight_measured_on_the_corpus_is_found(tokenizer: Any) -> None:
    """The paper's w, from the corpus' share without noise: every record depends on every other."""

    def examples(corpus: Any) -> list[Example]:
        windows = encode(corpus, TextVariant.RAW, Encoding(tokenizer=tokenizer, context=worlds.CONTEXT, windows=8))
        share = float(np.mean([sensitive_share(window) for window in windows]))
        return [make_example(window, Weighted(unflagged_weight=balancing_weight(share, 0.5))) for window in windows]

    whole, less = examples(CORPUS), examples(without(ALL_SENSITIVE))
    assert not all(same(whole[row], less[row]) for row in range(len(CORPUS)) if row != ALL_SENSITIVE)
