"""Whether one person is likely to have several records: by ids, speakers and numbers that come again. No detector."""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice, pairwise
from pathlib import Path

from atdp_cli.corpus.csv import column_names
from atdp_cli.corpus.parquet import parquet_names
from atdp_cli.corpus.record import Record, read_records
from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import kind_of, read_lines

MOST_READ = 100_000
"""Records that are looked at."""

_PERSON = re.compile(
    "user|username|customer|client|patient|person|member|subscriber|employee|student|account|subject|participant|"
    "respondent|author|sender|speaker|caller|contact|owner|email|phone|login|uid"
)

_TALK = re.compile("conversation|dialog|dialogue|thread|session|chat|call|case|ticket")

_BESIDE = re.compile("ids?|name|no|num|number|key|uuid|guid|hash|email|phone|address")
"""Other words in the names of such fields."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_SPEAKER = re.compile(r"(?:<\|\w+\|>)?[\W\d_]*([^\W\d_][\w .'’-]{0,30}?)\s?:\s*\S")

_NO_SPEAKER = re.compile("q|a|question|answer|info|warn|warning|error|debug|trace|fatal|critical|notice|note")

_MAYBE_CONTACT = re.compile(r"@[A-Za-z0-9]|[0-9][0-9 ().-]{5}")
"""In every text with a contact; ten times as fast."""

_CONTACT = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|\+[0-9][0-9 ().-]{7,16}[0-9]"
    r"|(?<![\w.,+-])(?:\([0-9]{3}\) ?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}(?![\w-])"
    r"|(?<![\w.,+-])(?!(?:19|20)[0-9]{2}(?:[0-9]{2}){1,2}\b)[0-9]{6,19}(?![\w,-])"
)
"""An e-mail address, a phone number, or a number of six digits that is no date."""


def several_records(paths: Sequence[Path], records: Sequence[Record], unit: str, text_field: str) -> str | None:
    """A warning that one person has several records, as a sentence; None where nothing tells.

    It has no text of the records. Their first `MOST_READ` are looked at. It is told by a field with the name of an id
    whose values come again, by speakers who take turns, or by contacts and numbers that come again in other words.

    Args:
        records: Of the files, in order.
    """
    if unit not in ("line", "paragraph"):
        return None
    fields, seen = kind_of(paths[0]) != "text", records[:MOST_READ]
    texts = [record.text for record in seen]
    field = _repeated_field(paths, len(texts), text_field) if fields else None
    if field is not None:
        why = f"values of the field {field} come again"
    elif unit == "line" and _take_turns(texts):
        why = "speakers take turns"
    elif _come_again(texts):
        why = "e-mail addresses, phone or account numbers come again"
    else:
        return None
    near = unit == "line" and not fields and any(int(b.id) - int(a.id) == 1 for a, b in pairwise(seen))
    by = field or ("paragraph" if near else "FIELD, with a field that names the person,")
    return (
        f"In these {unit}s {why}, so one person may have several, and ε holds for one {unit}, not for the person: "
        f"--privacy-unit {by} makes them one."
    )


def _repeated_field(paths: Sequence[Path], count: int, text_field: str) -> str | None:
    """A field that names a person, or else a conversation, and has a value in several records; the one with the fewest.

    Few values, one of which most records have, are roles or kinds. A field that a record lacks is none.
    """
    found = list[tuple[int, int, str]]()
    for name in _names(paths[0], text_field):
        words = [word.lower() for word in _WORDS.findall(name)]
        ranks = [rank for rank, names in enumerate((_PERSON, _TALK)) if any(map(names.fullmatch, words))]
        other = [word for word in words if not any(names.fullmatch(word) for names in (_PERSON, _TALK, _BESIDE))]
        if other or not (ranks or words == ["id"]) or not re.fullmatch("[A-Za-z_. -]+", name):
            continue
        again = (read_records(path, text_field=text_field, id_field=name, on_error=lambda _: None) for path in paths)
        values = Counter[str]()
        with contextlib.suppress(InputError):  # of a column without strings or whole numbers
            values.update(record.id for record in islice(chain.from_iterable(again), count))
        kinds = len(values) < 20 and max(values.values(), default=0) > 0.35 * count
        if values.total() == count >= 1.1 * len(values) and not kinds:
            found.append((min(ranks, default=2), len(values), name))
    return min(found)[-1] if found else None


def _names(path: Path, text_field: str) -> list[str]:
    if (kind := kind_of(path)) == "parquet":
        return parquet_names(path)
    if kind != "jsonl":
        return column_names(path, text_field)
    for _, line, _ in read_lines(path, lambda _: None):
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(row := json.loads(line.removeprefix("\ufeff")), dict):
                return list(row)
    return []


def _take_turns(texts: Sequence[str]) -> bool:
    """Whether half of the texts begin with a label, and a fifth of these are the label before the last one again."""
    said = [match[1].casefold() for match in map(_SPEAKER.match, texts) if match]
    turns = [each for each in zip(said, said[1:], said[2:], strict=False) if not any(map(_NO_SPEAKER.fullmatch, each))]
    back = sum(first == third != second for first, second, third in turns)
    return len(turns) + 2 >= max(4, len(texts) / 2) and back >= len(turns) / 5


def _come_again(texts: Sequence[str]) -> bool:
    """Whether five contacts or numbers, and a tenth of all, are in several different texts."""
    likely = filter(_MAYBE_CONTACT.search, dict.fromkeys(texts))
    contacts = ({re.sub(r"[^\w@]", "", each[0]).lower() for each in _CONTACT.finditer(text)} for text in likely)
    counts = Counter(chain.from_iterable(contacts))
    again = sum(count > 1 for count in counts.values())
    return again >= max(5, len(counts) / 10)
