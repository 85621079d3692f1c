"""The page of a memory map: its numbers are the JSON's, it shows where the places are, and text only where wanted."""

import re

from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.memorisation.results import MemorisedPlace, MemoryDocument, MemoryMap, ValueRank
from atdp_cli.reporting.memorisation_page import densest_records, render_map_page
from tests.reporting.test_html import at, close, page_of

CORPUS = [("1", "nothing here"), ("7", "<b>call Omar</b> at 5551234 & tell him"), ("9", "tell him 5551234 twice")]
RANK = ValueRank(decoys=200, likelier=0.015, elsewhere=0.125)


def place(
    record: int, start: int, end: int, gain: float, value: int, *, rank: ValueRank | None = None
) -> MemorisedPlace:
    return MemorisedPlace(
        record=record,
        start=start,
        end=end,
        value=value,
        label="PHONE" if rank else "MEMORISED",
        gain=gain,
        p_value=0.00125,
        adjusted_p=0.03125,
        greedy=rank is None,
        queries_half=None,
        rank=rank,
    )


PLACES = (place(2, 8, 12, 12.5, 1), place(2, 20, 27, 9.25, 2, rank=RANK), place(3, 9, 16, 7.125, 2, rank=RANK))


def memory(*places: MemorisedPlace, model: str = "runs/a", baseline: str | None = None) -> MemoryMap:
    return MemoryMap.model_validate(
        {
            "model": model,
            "reference": None,
            "tested": 3,
            "held_out": 1003,
            "fdr": 0.05,
            "fewest_findings": 1,
            "calibrated": True,
            "memorised": len({each.record for each in places}),
            "places": places,
            "max_memorised": 0,
            "verdict": "FAIL",
            "weights": {},
            "baseline": baseline,
        }
    )


def test_every_number_is_that_of_the_json() -> None:
    maps = [memory(*PLACES), memory(model="runs/<b>")]
    document = MemoryDocument(models=tuple(maps)).model_dump(mode="json")
    html = render_map_page(maps, [CORPUS, CORPUS], show_text=False)
    page = page_of(html)
    assert {path.rpartition(".")[2] for path, _, _ in page.numbers} == {
        "record", "start", "end", "gain", "adjusted_p", "likelier", "elsewhere"
    }  # fmt: skip
    for path, value, shown in page.numbers:
        assert value == str(at(document, path))
        assert close(shown, float(value))
    assert "runs/&lt;b&gt;" in html
    assert not [tag for tag, _ in page.tags if tag in ("script", "link", "img", "iframe", "b")]


def test_without_secrets_it_holds_no_text_and_says_where_the_places_are() -> None:
    page = page_of(render_map_page([memory(*PLACES)], [CORPUS], show_text=False))
    shown = " ".join(page.text)
    assert not re.search("Omar|5551234|nothing here|twice", shown)
    bars = [attributes["aria-label"] for tag, attributes in page.tags if attributes.get("class") == "bar"]
    assert bars == ["Memorised: characters 8 to 12, 20 to 27", "Memorised: characters 9 to 16"]


def test_with_secrets_the_places_are_marked_in_the_text() -> None:
    html = render_map_page([memory(*PLACES)], [CORPUS], show_text=True)
    page_of(html)
    assert re.findall("<mark>(.*?)</mark>", html) == ["Omar", "5551234", "5551234"]
    assert "&lt;b&gt;call <mark>Omar</mark>&lt;/b&gt; at" in html
    assert "This page holds text of the corpus." in html
    assert "nothing here" not in html


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=6))
def test_segments_are_the_record_and_the_marked_ones_its_places(ranges: list[tuple[int, int]]) -> None:
    text = "".join(chr(ord("A") + number) for number in range(43))
    places = [place(1, start, start + length, 1.0, 1) for start, length in ranges]
    [record] = densest_records(memory(*places), [("1", text)], show_text=True)
    assert "".join(segment.text or "" for segment in record.segments) == text
    assert all(segment.end > segment.start for segment in record.segments)
    marked = {at for segment in record.segments if segment.memorised for at in range(segment.start, segment.end)}
    assert marked == {at for start, length in ranges for at in range(start, start + length)}
    assert record.share == len(marked) / len(text)
    assert record.gain == len(places)


def test_the_densest_record_comes_first() -> None:
    records = densest_records(memory(place(3, 0, 4, 8.0, 1), *PLACES), CORPUS, show_text=False)
    assert [(record.number, record.id, record.gain) for record in records] == [(2, "7", 21.75), (3, "9", 15.125)]
    assert all(segment.text is None for record in records for segment in record.segments)
