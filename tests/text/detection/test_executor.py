"""Reading in several processes, and not asking recognisers in vain."""

import multiprocessing
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.errors import RunError
from atdp_cli.text.corpus.records import Record
from atdp_cli.text.detection import detect
from atdp_cli.text.detection.detect import detect_records
from atdp_cli.text.detection.executor import processes
from atdp_cli.text.detection.identifiers import RECOGNISERS, Recognisers, pattern
from atdp_cli.text.detection.identifiers.density import density
from atdp_cli.text.detection.identifiers.recogniser import IdentifierMatch
from atdp_cli.text.detection.scan import BATCH, scan

RECORDS = [Record(str(n), f"Maria {n} met Tom Jones on May {n % 28 + 1}; jo{n}@x.com.") for n in range(3 * BATCH)]


def ends_its_process(text: str) -> Iterator[IdentifierMatch]:
    os._exit(1)


def names_maria(text: str) -> Iterator[IdentifierMatch]:
    """A recogniser that can be sent to any process."""
    return ((*match.span(), "PERSON") for match in re.finditer("Maria", text))


def test_a_process_that_ends_is_an_error_and_no_hang(pipeline: Any) -> None:
    with pytest.raises(RunError, match=r"ended before its work was done\. It may have run out of memory"):
        list(detect_records(RECORDS, pipeline=pipeline, engine=processes(2), recognisers=[ends_its_process]))


@pytest.mark.ci
@pytest.mark.parametrize("recognisers", [RECOGNISERS, (names_maria,)])
def test_processes_that_start_afresh_give_the_same(
    pipeline: Any, recognisers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(detect_records(RECORDS[:4], pipeline=pipeline, recognisers=recognisers))
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", None)
    multiprocessing.set_start_method("spawn")
    assert list(detect_records(RECORDS[:4], pipeline=pipeline, recognisers=recognisers, engine=processes(2))) == alone


def test_processes_end_with_the_reading(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where something still refers to the generator within."""
    scans = []

    def kept(*records: Any, **settings: Any) -> Iterator[Any]:
        scans.append(scan(*records, **settings))
        return scans[-1]

    monkeypatch.setattr(detect, "scan", kept)
    before = set(multiprocessing.active_children())
    reading = detect_records(RECORDS, pipeline=pipeline, engine=processes(2))
    next(reading)
    assert len(set(multiprocessing.active_children()) - before) == 2
    reading.close()  # type: ignore[attr-defined]
    assert set(multiprocessing.active_children()) == before


@pytest.mark.parametrize(
    ("expression", "fewest"),
    [
        (r"\d", 1),
        (r"[0-9]{3}-\d{2,4}", 5),
        (r"7(?:56|\d[.])", 2),
        (r"a|\d\d", 0),
        (r"\d*x\d+", 1),
        (r"[0-9a]\w\D[^0-9]", 0),
        (r"(?=\d\d)(?<!\d)x?", 0),
        (r"(?>\d{3})(?P<mark>[ -]?)\d(?P=mark)", 4),
        (r"(?P<twice>\d)(?P=twice)", 1),
        (r"(?:[1-9]\d?){2}", 2),
        (r"\d++[٣]", 2),
    ],
)
def test_the_fewest_digits_of_a_match(expression: str, fewest: int) -> None:
    assert density(re.compile(expression)).digits == fewest


@given(data=st.data())
def test_what_matches_is_as_dense_in_digits(data: st.DataObject) -> None:
    expression = data.draw(
        st.recursive(
            st.sampled_from([r"\d", "a", "[0-9]", "[0-9a]", "7", r"\w", r"\D", "", "[^5]"]),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3).map("".join),
                st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
                st.builds(lambda part, times: f"(?:{part}){times}", inner, st.sampled_from(["*", "+", "{2}", "{1,3}"])),
            ),
            max_leaves=6,
        )
    )
    compiled = re.compile(expression)
    text = data.draw(st.from_regex(compiled, fullmatch=True))
    digits, width = density(compiled)
    assert len(re.findall(r"\d", text)) >= digits
    assert len(text) <= width


@given(text=st.lists(st.sampled_from([r"+1 212 456 7890 ", "jo@x.com ", "4", "12-", "ssn ", " ", "$", "Mr. Smith "])))
def test_all_as_one_find_what_each_finds(text: list[str]) -> None:
    whole = "".join(text)
    assert sorted(Recognisers(RECOGNISERS)(whole)) == sorted(
        actual for recognise in RECOGNISERS for actual in recognise(whole)
    )


def test_a_recogniser_is_not_asked_about_too_few_digits() -> None:
    asked: list[str] = []

    def close(match: re.Match[str]) -> bool:
        asked.append(match[0])
        return True

    every = Recognisers([pattern("A", r"\d{3}", check=close), pattern("B", r"[a-z]+", check=close)])
    assert list(every("ab 12")) == [(0, 2, "B")]
    assert sorted(every("ab 123")) == [(0, 2, "B"), (3, 6, "A")]
    assert sorted(asked) == ["123", "ab", "ab"]


@given(text=st.text("0123 -a", max_size=20))
def test_digits_must_stand_close_together(text: str) -> None:
    expressions = [r"\d{3}", r"\d[ -]?\d", r"(?<!0)\d{2}-\d{2}(?!1)", r"[a3]\d{0,2}1", r"\d{2}[^-]{3,5}\d"]
    recognisers = [pattern(expression, expression.replace(" ", r"\ ")) for expression in expressions]
    assert sorted(Recognisers(recognisers)(text)) == sorted(
        actual for recognise in recognisers for actual in recognise(text)
    )
