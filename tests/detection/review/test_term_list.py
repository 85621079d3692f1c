"""Lists that reviews write."""

import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atdp_cli.detection.term_lists import add_line, line_at, literal, read_terms, take_back, term_line

texts = st.text(st.characters(), max_size=12)
terms = texts.filter(str.strip)


@pytest.mark.ci
@given(terms, texts)
@example("# 12", "# 12")
@example("/a/", "/a/ a")
@example("/a(/", "/A(/")
@example("\ufeffa", "\ufeffa")
@example("\ud800#", "\ud800#")
@example("0\x1f\ud800", "")
@example("New\n York", "new york")
@example("//", "//")
@example("\\", "\\")
def test_a_written_term_is_read_as_that_term(term: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "terms.txt"
        added = add_line(path, term_line(term))
        assert path.read_bytes() == added
        [pattern] = read_terms(path)
    assert (0, len(term.strip())) in [match.span() for match in pattern.finditer(term.strip())]
    for where in (text, f"{text} {term} {text}", text + term):
        assert [match.span() for match in pattern.finditer(where)] == [
            match.span() for match in literal(term).finditer(where)
        ]


@given(texts, st.data())
def test_the_line_of_a_place_matches_there(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    line = line_at(text, start, end)
    if line is None:
        assert not text[start:end].strip()
        return
    with tempfile.TemporaryDirectory() as folder:
        add_line(Path(folder) / "terms.txt", line)
        [pattern] = read_terms(Path(folder) / "terms.txt")
    covered = {at for match in pattern.finditer(text) for at in range(*match.span())}
    first = text[start:end].strip()
    at = text.index(first, start)
    # An overlapping match of the same term further left may come first.
    assert covered & set(range(at, at + len(first)))


def test_lines_at_places() -> None:
    assert line_at("see Emma  Clarke.", 4, 16) == "Emma Clarke"
    assert line_at("order no48213377", 8, 16) == "/(?i)48213377/"
    assert line_at("a  b", 1, 3) is None


@pytest.mark.parametrize("before", [b"", b"# ours\nOrder\n", b"\xef\xbb\xbfOrder\r\n/a+/\r\n", b"Order"])
def test_what_people_wrote_stays_and_undo_leaves_no_trace(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "terms.txt"
    path.write_bytes(before)
    path.chmod(0o640)
    first, second = add_line(path, "Emma"), add_line(path, "Box")
    assert path.read_bytes().startswith(before)
    assert [pattern.pattern for pattern in read_terms(path)][-2:] == [literal("Emma").pattern, literal("Box").pattern]
    assert add_line(path, "emma") == b""
    take_back(path, second)
    take_back(path, first)
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_undo_finds_its_line_among_those_of_others(tmp_path: Path) -> None:
    path = tmp_path / "terms.txt"
    added = add_line(path, "Emma")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("Emma Clarke\nEmma\nBox\n")
    take_back(path, added)
    assert path.read_text() == "Emma Clarke\nBox\n"
    take_back(path, added)
    assert path.read_text() == "Emma Clarke\nBox\n"


def test_a_link_goes_on_leading_to_its_list(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("Box\n")
    link.symlink_to(real)
    add_line(link, "Emma")
    assert link.is_symlink()
    assert real.read_text() == "Box\nEmma\n"
