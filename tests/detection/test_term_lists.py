"""Lists of allowed and denied terms."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.term_lists import allowed, denied, literal, read_terms
from atdp_cli.errors import InputError
from tests.strategies import flagged_texts


def terms(folder: Path, content: str) -> list[str]:
    (folder / "terms.txt").write_text(content, "utf-8")
    return [pattern.pattern for pattern in read_terms(folder / "terms.txt")]


def test_comments_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    assert terms(tmp_path, "\ufeff# people\n\n  Emma \r\n/^x#?$/\n#/a/\n") == [literal("Emma").pattern, "^x#?$"]
    assert terms(tmp_path, "") == []


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("Emma", "emma, EMMA; Emmas Gemma Emma_", ["emma", "EMMA"]),
        ("New York", "new  york New\nYork NewYork", ["new  york", "New\nYork"]),
        ("a.b", "a.b axb", ["a.b"]),
        ("C++", "C++ and C+", ["C++"]),
        ("Ärger", "ärger", ["ärger"]),
        ("/", "a / b", ["/"]),
        ("//", "a // b", ["//"]),
    ],
)
def test_literal_terms(tmp_path: Path, term: str, text: str, expected: list[str]) -> None:
    (tmp_path / "t").write_text(term, "utf-8")
    [pattern] = read_terms(tmp_path / "t")
    assert [text[span.start : span.end] for span in denied(text, [pattern])] == expected


def test_a_bad_expression_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2 is not a valid regular expression") as caught:
        terms(tmp_path, "fine\n/secret(/\n")
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="does not exist"):
        read_terms(tmp_path / "none")


def test_denied_matches_are_sensitive_at_every_tier() -> None:
    [span] = denied("call Emma", [literal("emma")])
    assert span == Span(5, 9, "DENY", "deny", Tier.LOW_ENTITY)


def test_allowed_matches_cut_pieces_out_of_spans() -> None:
    text = "Dr George Washington Carver Jr"
    span = Span(0, len(text), "PERSON", "ner", Tier.LOW_ENTITY)
    pieces = allowed(text, [span], [literal("washington"), literal("Dr"), literal("jr")])
    assert [text[piece.start : piece.end] for piece in pieces] == ["George", "Carver"]
    assert {(p.label, p.source, p.tier) for p in pieces} == {("PERSON", "ner", Tier.LOW_ENTITY)}
    assert allowed(text, [span], [literal(text)]) == []
    assert allowed(text, [span], [literal("Paris")]) == [span]


@given(flagged_texts(), st.sets(st.integers(0, 29), max_size=6))
def test_allowing_removes_exactly_the_matched_characters_and_outer_space(
    case: tuple[str, list[Span]], places: set[int]
) -> None:
    text, spans = case
    marked = "".join("#" if at in places else character for at, character in enumerate(text))
    pieces = allowed(marked, spans, [literal("#"), re.compile("#+")])
    flagged = {at for span in spans for at in range(span.start, span.end)}
    kept = {at for piece in pieces for at in range(piece.start, piece.end)}
    assert kept <= flagged
    assert all(marked[at] != "#" for at in kept)
    assert all(marked[at].isspace() or marked[at] == "#" for at in flagged - kept)
