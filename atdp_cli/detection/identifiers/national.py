"""Identity, tax and social insurance numbers: of many countries by their check digits, of two by their shape."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from atdp_cli.detection.identifiers.recogniser import Recogniser, pattern
from atdp_cli.files.word_lists import read_lists

_BEFORE, _AFTER = 64, 20  # how far from the number the word that names it may stand, that word included


class NationalId(NamedTuple):
    """One kind of number.

    Attributes:
        module: Of python-stdnum; its `is_valid` holds the check digits and, where there is one, the date.
        shape: What the number looks like, as a verbose regular expression.
        words: What people call the number, one of which must stand near it on its line. Empty where shape and
            check digits together are rare enough among other numbers.
        telling: The spellings, among those of `shape`, that need no word.
    """

    module: str
    shape: str
    words: str = ""
    telling: str = ""


_TABLE = Path(__file__).with_suffix(".txt")


def _read_rows() -> Iterator[NationalId]:
    """The sections of national.txt."""
    for module, lines in read_lists(_TABLE, "\n").items():
        fields = dict(line.split(": ", 1) for line in lines)
        if module:
            yield NationalId(module, **fields)


ROWS: tuple[NationalId, ...] = tuple(_read_rows())


def identity_number(row: NationalId) -> Recogniser:
    """A recogniser for the numbers of one row."""
    module, shape, words, telling = row
    before = re.compile(rf"(?<!\w)(?:{words})(?!\w)[^\d\n]{{0,24}}\Z", re.IGNORECASE)
    after = re.compile(
        rf"[\s,;(-]{{0,3}}(?:(?:is|as)\s)?(?:(?:my|his|her|their|the)\s)?(?:{words})(?!\w)", re.IGNORECASE
    )
    alone = re.compile(telling or shape, re.VERBOSE | re.IGNORECASE)

    def named(match: re.Match[str]) -> bool:
        start, end = match.span("value")
        return (
            before.search(match.string, max(0, start - _BEFORE), start) is not None
            or after.match(match.string, end, end + _AFTER) is not None
        )

    def holds(match: re.Match[str]) -> bool:
        telling_shape = (telling or not words) and alone.fullmatch(match["value"]) is not None
        return (telling_shape or named(match)) and bool(import_module(f"stdnum.{module}").is_valid(match["value"]))

    expression = rf"(?i)(?<![\w.,/$€£-]) (?P<value>{shape}) (?![\w/-] | [.,:]\w)"
    return pattern("NATIONAL_ID", expression, check=holds)


NUMBERS: dict[str, Recogniser] = {row.module: identity_number(row) for row in ROWS}


# United Kingdom, national insurance: no check digit, but few pairs of letters begin one.
insurance_number = pattern(
    "NATIONAL_ID",
    r"""(?<![\w-]) (?!BG|GB|KN|NK|NT|TN|ZZ) [A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]
    (?P<mark>[ ]?)\d\d(?P=mark)\d\d(?P=mark)\d\d(?P=mark)[A-D] (?![\w-])""",
)


def _issued(match: re.Match[str]) -> bool:
    """Whether a social security number could have been issued (or, from 9, a taxpayer number)."""
    area, group, serial = match["area"], match["group"], match["serial"]
    return area not in ("000", "666") and group != "00" and serial != "0000"


social_security_number = pattern(
    "SSN",
    r"(?<![\w-]) (?P<area>[0-9]{3}) (?P<mark>[ .–-]) (?P<group>[0-9]{2}) (?P=mark) (?P<serial>[0-9]{4})"
    r"(?! \w | [ .–-]\d)",
    check=_issued,
)

social_security_number_in_context = pattern(
    "SSN",
    r"(?i)(?<!\w) (?:ssn|s\.s\.n\.|social\ssecurity(?:\s(?:number|num|no\.?|\#))? | [x*]{3}[ -]?[x*]{2}) (?!\w)"
    r"[^\d\n]{0,24}"
    r"(?P<value> [0-9]{3}[ .–-]?[0-9]{2}[ .–-]?[0-9]{4} | (?<![$€£])(?!(?:1[5-9]|20)[0-9]{2}(?!\d))[0-9]{4} )"
    r"(?! \w | [.,–-]\d )",
)
