"""Pools as products of tokens: that a product is recognised, and that it lists what the tokenizer gives."""

import math
import string
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.canary import Target, parse_template
from atdp_cli.audit.hypothesis_tests import SampleRule
from atdp_cli.audit.pool import tokenise
from atdp_cli.audit.product_pool import list_candidates, product_pool
from atdp_cli.audit.rank import pool_of, sample_length_groups
from atdp_cli.audit.trie import build_trie
from atdp_cli.events import ignore
from atdp_cli.model.windows import encode_record


@pytest.fixture(scope="module")
def by_character() -> Any:
    """A tokenizer that makes a token of every character."""
    tokens = ["<unk>", "<s>", *string.ascii_letters, *" 0123456789.-"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", unk_token="<unk>")


@pytest.mark.parametrize("text", ["My ID is {digits:9}", "{hex:4}-{digits:8} it is.", "x{letters:7}"])
def test_a_product_says_how_every_secret_is_split(by_character: Any, text: str) -> None:
    template = parse_template(text)
    product = product_pool(by_character, template)
    assert product is not None
    dice = np.random.default_rng(1)
    for _ in range(50):
        secret = template.secret(int(dice.integers(template.pool)))
        chosen = [int(step[at]) for step, at in zip(product.steps, product.path(secret), strict=True)]
        assert [*product.prefix.tolist(), *chosen] == encode_record(by_character, template.record(secret))
    assert math.prod(step.size for step in product.steps) == template.pool


@pytest.mark.parametrize("text", ["My ID is {digits:3}", "{digits:2}-{letters:1}.", "{hex:1}{digits:2} it is"])
def test_it_lists_the_candidates_that_the_tokenizer_gives(by_character: Any, text: str) -> None:
    template = parse_template(text)
    product, expected = product_pool(by_character, template), tokenise(by_character, template)
    assert product is not None
    listed = list_candidates(product, template)
    for part in ("prefix", "tails", "lengths"):
        assert np.array_equal(getattr(listed, part), getattr(expected, part))
        assert getattr(listed, part).dtype == getattr(expected, part).dtype


@pytest.mark.parametrize("text", ["My ID is {digits:3}", "{digits:2}-{letters:1}.", "{hex:1}{digits:2} it is"])
def test_its_levels_are_the_inner_nodes_of_the_trie(by_character: Any, text: str) -> None:
    template = parse_template(text)
    product, candidates = product_pool(by_character, template), tokenise(by_character, template)
    assert product is not None
    assert sum(product.levels) == build_trie(candidates.tails, candidates.lengths).inner_nodes


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("text", "size", "only_where_expensive", "drawn"),
    [
        ("My ID is {digits:6}", 5000, True, True),
        ("My ID is {digits:6}", 60_000, True, False),  # it would cost more than half
        ("My ID is {digits:5}", 500, True, False),  # 11,111 nodes are cheap
        ("My ID is {digits:5}", 500, False, True),
        ("My ID is {digits:3}", 600, False, False),  # more than half of all
    ],
)
def test_a_pool_is_sampled_where_that_is_much_cheaper(
    by_character: Any, *, text: str, size: int, only_where_expensive: bool, drawn: bool
) -> None:
    template, targets = parse_template(text), [Target(index=7, repeats=1), Target(index=0, repeats=1)]
    rule = SampleRule(size=size, only_where_expensive=only_where_expensive)
    pool = pool_of(by_character, template, targets, ignore, sample=rule)
    assert pool.sampled is drawn
    assert pool.candidates.lengths.size == (size + len(targets) if drawn else template.pool)
    length_groups = sample_length_groups(pool, targets)
    assert length_groups == (((length_groups or [None])[0],) * 2 if drawn else None)
    again = pool_of(by_character, template, targets, ignore, sample=rule)
    assert np.array_equal(again.candidates.tails, pool.candidates.tails)


def test_merges_lost_letters_and_choices_are_no_product(by_character: Any, bpe: Any, characters: Any) -> None:
    assert product_pool(bpe, parse_template("My ID is {digits:9}")) is None, "it has tokens of two and three digits"
    assert product_pool(characters, parse_template("My {digits:9}")) is None, "it does not know all digits"
    names = {"f": ("ann", "bob")}
    assert product_pool(by_character, parse_template("{choice:f} {digits:9}", names)) is None


def test_a_merge_of_two_characters_in_the_midst_is_noticed() -> None:
    """One pair in a hundred is a token of its own, which no single change from 0000… shows."""
    pieces = ["<s>", *"My ID0123456789", "37"]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(pieces)}, [("3", "7")]))
    merging = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")
    assert len(encode_record(merging, "ID 137")) < len(encode_record(merging, "ID 173"))
    assert product_pool(merging, parse_template("My ID {digits:9}")) is None
