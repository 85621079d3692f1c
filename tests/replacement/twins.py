"""Pairs of flagged texts that have the same shapes and the same equality pattern, made without what is tested."""

import string
from dataclasses import dataclass

from hypothesis import strategies as st

from atdp_cli.corpus.spans import Span, Tier

Case = tuple[str, list[Span]]

LABELS = ("PERSON", "GPE", "ORG", "DATE", "MONEY", "EMAIL", "PROPN", "NUMBER", "PHONE", "USERNAME")
LETTERWISE = ("NUMBER", "PHONE", "USERNAME")
CASES = ("lower", "upper", "capitalised")


@dataclass(frozen=True)
class Twins:
    """Two texts with their spans.

    Attributes:
        equal: Whether a value comes twice.
    """

    ours: Case
    theirs: Case
    equal: bool


@st.composite
def twins(draw: st.DrawFn) -> Twins:
    """Values are words and numbers of a pool; the twin replaces each, all over the text, by one of the other pool.

    All words have six letters, so that they have one shape under every label, and each number has its twin's length.
    """
    words = draw(_pools(st.text("abcdexyzéж", min_size=6, max_size=6)))
    numbers = draw(st.integers(1, 4).flatmap(lambda n: _pools(st.text(string.digits, min_size=n, max_size=n))))
    chosen: list[str] = []
    ours, theirs = "", ""
    our_spans: list[Span] = []
    their_spans: list[Span] = []
    for _ in range(draw(st.integers(1, 6))):
        label = draw(st.sampled_from(LABELS))
        our_value, their_value = "", ""
        for _ in range(draw(st.integers(1, 3))):
            a, b = draw(st.sampled_from([*words, *numbers]))
            chosen.append(a)
            case = draw(st.sampled_from(CASES))
            between = draw(st.sampled_from((" ", "-", ". ", "/")))
            our_value, their_value = our_value + _spelled(a, case) + between, their_value + _spelled(b, case) + between
        if label == "EMAIL":
            a, b = draw(st.sampled_from(words))
            chosen.append(f"{a}.org")
            our_value, their_value = f"{our_value}@{a}.org", f"{their_value}@{b}.org"
        ours, theirs = f"{ours}, so ", f"{theirs}, so "
        our_spans.append(Span(len(ours), len(ours) + len(our_value), label, "ner", Tier.LOW_ENTITY))
        their_spans.append(Span(len(theirs), len(theirs) + len(their_value), label, "ner", Tier.LOW_ENTITY))
        ours, theirs = ours + our_value, theirs + their_value
    return Twins((ours, our_spans), (theirs, their_spans), len(set(chosen)) < len(chosen))


def _pools(values: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Up to three values, each with its twin; all values differ, and all twins."""
    lists = st.lists(values, min_size=3, max_size=3, unique=True)
    return st.builds(lambda ours, theirs: list(zip(ours, theirs, strict=True)), lists, lists)


def _spelled(value: str, case: str) -> str:
    return value.upper() if case == "upper" else value.capitalize() if case == "capitalised" else value
