"""Tokenised candidates: equal to `encode_record`."""

import random
from typing import Any

import numpy as np
import pytest

from atdp_cli.audit.canary import Template, parse_template
from atdp_cli.audit.pool import PADDING, Candidates, tokenise
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
