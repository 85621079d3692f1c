"""Regular expressions: ours are quick on any text, and those of users are stopped."""

import importlib
import pkgutil
import re
import time
from functools import partial
from pathlib import Path

import pytest

import atdp_cli
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.crosscheck.client import parsed
from atdp_cli.detection.identifiers import RECOGNISERS, Recogniser
from atdp_cli.detection.term_lists import allowed, denied, literal, read_terms
from atdp_cli.errors import InputError
from atdp_cli.files.regexes import SECONDS, Expression
from tests.growth import Work, drained, repeated, too_slow

END = "!\0a"
"""After what is repeated, so that a search that came so far fails."""

REPEATED = (
    *("a", "A", "1", " ", ".", "-", "_", "@", "/", ":", '"', "'", "\\", "(", "[", "{", "<", "\n", "é", "日", "\ud800"),
    *("a ", "1 ", "1-", "a.", "a@", "a-", "A1", "a1", "Aa", "1.", "1,000 ", "0x", "+1 ", "(1)", "12:", "ab:", "::"),
    *("a@a.", "www.", "http://", "eyJa.", "AKIA", "sk-", "ghp_a", "GB82 ", "DE1 ", "AA00", "{a", "{}", '""', '"",'),
    *("[PERSON_1", "<PERSON", "[A_", "<think>", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "key=", "password: "),
    *("Mr. A ", "1 Main St ", "P.O. Box 1", "12/12/", "2020-", "1°", "passport no ", "SSN 1", "d1,", "h.4."),
)


def slow(work: Work, times: int = 1) -> list[str]:
    """The parts whose repetition makes a search try again and again."""
    return [part for part in REPEATED if too_slow(work, repeated(part, END), times)]


def ours() -> dict[str, re.Pattern[str]]:
    """Every expression that a module of the package keeps."""
    actual = {}
    for module in pkgutil.walk_packages(atdp_cli.__path__, "atdp_cli."):
        if module.name.endswith(("__main__", "chacha_kernel")):  # the kernel imports Triton, which GPUs' torch brings
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                actual[f"{module.name.removeprefix('atdp_cli.')}.{name}"] = value
    return actual


OURS = ours()


@pytest.mark.one_in(10)
@pytest.mark.parametrize("name", OURS)
def test_our_expressions_are_quick_on_any_text(name: str) -> None:
    expression = OURS[name]
    assert slow(expression.match) == []
    assert slow(drained(expression.finditer)) == []


@pytest.mark.one_in(8)
@pytest.mark.parametrize("recogniser", RECOGNISERS, ids=map(str, range(len(RECOGNISERS))))
def test_recognisers_are_quick_on_any_text(recogniser: Recogniser) -> None:
    assert slow(drained(recogniser)) == []


def test_a_servers_reply_is_read_quickly() -> None:
    assert slow(parsed, times=20) == []


def test_literal_terms_are_quick_on_any_text() -> None:
    for term in ("a", "a a", "a  a a a", "1 1", "a.", " ".join("a" * 50)):
        for text in (repeated("a"), repeated("a "), lambda length: "a" + " " * length, repeated("1 ")):
            assert not too_slow(partial(denied, deny=[literal(term)]), text)


HANGING = (
    (r"(a|aa)+$", "a" * 80 + "b"),
    (r"(\w|\w\w|\s)+\d$", "the order was shipped to an old address " * 9),
    (r"(\w+\s?)*\d$", "word " * 3000),
    (r"(x+x+)+y|(\w|\w\w)+!", "x" * 80),
)
"""Expressions with repeats inside repeats, each with a text on which Python's own engine would not end."""


@pytest.mark.ci
@pytest.mark.parametrize(("expression", "text"), HANGING)
def test_a_users_expression_is_stopped(expression: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text(f"# mine\n/{expression}/\n")
    terms = read_terms(tmp_path / "terms.txt")
    span = Span(0, 9, "PERSON", "ner", Tier.LOW_ENTITY)
    for spans in (partial(denied, text, terms), partial(allowed, text, [span], terms)):
        began = time.process_time()
        with pytest.raises(InputError, match=r"terms\.txt: line 2 takes more than 1 s on"):
            spans()
        assert time.process_time() - began < SECONDS + 1


def test_a_users_expression_means_what_it_means_to_python() -> None:
    text = "Emma (12) wrote Omar; emma@example.org, Ärger 3.5"
    for source in (r"[A-Z]\w+", r"(?i)emma", r"\d+(?:\.\d)?", r"(?<=\()\d+(?=\))", r"(\w)\1", r"^E|5$", r"\bÄ\w*"):
        actual = [match.span() for match in Expression(source, "it").finditer(text)]
        assert actual == [match.span() for match in re.finditer(source, text)]
