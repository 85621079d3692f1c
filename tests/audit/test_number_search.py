"""A corpus's own numbers are found where they stand, and chosen uniformly."""

import json
from pathlib import Path

import numpy as np
import pytest

from atdp_cli.audit.number_search import find_numbers
from atdp_cli.errors import InputError
from atdp_cli.text.corpus.records import read_records
from atdp_cli.text.detection.span_file import spans_line
from atdp_cli.text.detection.spans import Span, Tier
from tests.audit.numbers import LINES, OWN, located, spotted
from tests.text.corpus.corpora import written


@pytest.mark.parametrize("kind", ["txt", "jsonl", "csv"])
def test_offsets_lead_back_to_the_number_in_every_format(tmp_path: Path, kind: str) -> None:
    texts = [line + ("\nand more" if kind == "jsonl" else "") for line in LINES]
    content = {
        "txt": "\ufeff\n" + "\r\n".join(texts),
        "jsonl": "".join(json.dumps({"a": 1, "text": text}) + "\n\n" for text in texts),
        "csv": "a,text\n" + "".join(f'1,"{text}"\n' for text in texts),
    }[kind]
    corpus = written(tmp_path, f"corpus.{kind}", content)
    actual = find_numbers(corpus, spotted(tmp_path, corpus, [[own] for own in OWN]))
    records = list(read_records(corpus))
    assert [secret.record for secret in actual.secrets] == [1, 2, 3, 4]
    assert [str(secret.line) for secret in actual.secrets] == [record.id for record in records]
    assert [records[s.record - 1].text[s.start : s.end] for s in actual.secrets] == OWN
    assert {secret.label for secret in actual.secrets} == {"NUMBER"}


def test_the_line_is_reported_only_where_the_corpus_has_one(tmp_path: Path) -> None:
    corpus = written(tmp_path, "c.jsonl", '{"who": "Ana", "text": "PIN 4711"}\n{"who": "Ben", "text": "PIN 4712"}\n')
    for options, expected in (({}, [1, 2]), ({"id_field": "who"}, [None, None]), ({"unit": "who"}, [None, None])):
        spans = spotted(tmp_path, corpus, [["4711"], ["4712"]], **options)
        actual = find_numbers(corpus, spans, **options)  # type: ignore[arg-type]
        assert [secret.line for secret in actual.secrets] == expected
        assert "Ana" not in repr(actual)


def test_what_is_no_number_or_no_secret_is_counted_or_passed_over(tmp_path: Path) -> None:
    line = "Ana has 123 and 1-2-3-4 and ٤٧١١ and 1234 or 1-2-3-4 again: " + "9" * 65
    corpus = written(tmp_path, "corpus.txt", line)
    again = line.rindex("1-2-3-4")
    places = [line.index(word) for word in ("Ana", "123", "1-2-3-4", "٤٧١١", "1234", "9")] + [again, line.index("1234")]
    ends = [3, 3, 7, 4, 4, 65, 7, 2]
    spans = [Span(a, a + n, "NUMBER", "ner", Tier.LOW_ENTITY) for a, n in zip(places, ends, strict=True)]
    actual = find_numbers(corpus, written(tmp_path, "spans.jsonl", spans_line("1", spans)))
    assert [line[secret.start : secret.end] for secret in actual.secrets] == ["1-2-3-4", "1234"]
    assert (actual.eligible, actual.skipped_short, actual.skipped_long, actual.skipped_repeated) == (2, 1, 1, 1)


def test_the_choice_is_uniform_over_the_corpus_and_the_same_in_every_run(tmp_path: Path) -> None:
    lines, numbers = [f"PIN {n}" for n in range(10000, 12000)], [f"{n}" for n in range(10000, 12000)]
    actual = located(tmp_path, lines, numbers, most=200)
    assert (len(actual.secrets), actual.eligible) == (200, 2000)
    records = [secret.record for secret in actual.secrets]
    assert records == sorted(set(records))
    again = located(tmp_path, lines, numbers, most=200)
    assert [secret.record for secret in again.secrets] == records
    # Hypergeometric, expectation 50 and standard deviation 5.8 a quarter of the corpus.
    quarters = np.bincount([(record - 1) // 500 for record in records], minlength=4)
    assert np.abs(quarters - 50).max() < 4.5 * 5.8
    assert len(located(tmp_path, lines, numbers).secrets) == 50


def test_spans_of_another_corpus_are_refused_without_a_word_of_it(tmp_path: Path) -> None:
    corpus = written(tmp_path, "corpus.txt", "PIN 4711\nshort 4712\n")
    right = spotted(tmp_path, corpus, [["4711"], ["4712"]]).read_text()
    first, second = right.splitlines(keepends=True)
    far = first.replace('"end": 8', '"end": 9')
    for content in (first, right + second.replace('"2"', '"3"'), second + first, far + second, "PIN 4711\n" + second):
        assert content != right
        with pytest.raises(InputError) as caught:
            find_numbers(corpus, written(tmp_path, "spans.jsonl", content))
        assert not any(word in f"{caught.value}{caught.value!r}" for word in ("PIN", "471", "short"))
