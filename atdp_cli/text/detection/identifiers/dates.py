"""Dates and times written in digits, which language models tend to read as numbers."""

import re

from atdp_cli.text.detection.identifiers.recogniser import pattern


def _in_a_year(match: re.Match[str]) -> bool:
    first, second = int(match["first"]), int(match["second"])
    return 1 <= min(first, second) <= 12 and max(first, second) <= 31


_TIME = r"\d{1,2}:\d{2} (?: :\d{2} (?:[.,]\d{1,9})? )? (?:Z|[ ]?[ap]\.?m\.?|[+-]\d{2}:?\d{2})? (?!\w)"

numeric_date = pattern(
    "DATE",
    rf"""(?<![\w/.,:-])
    (?: (?:1[5-9]|20)\d{{2}} (?P<mark>[/.-]) (?P<first>\d{{1,2}}) (?P=mark) (?P<second>\d{{1,2}})
        (?: (?:T|,?[ ]) {_TIME} )?
    ) (?! \w | [/-]\w | \.\d )""",
    flags=re.IGNORECASE,
    check=_in_a_year,
)

numeric_date_year_last = pattern(
    "DATE",
    rf"""(?<![\w/.,:-])
    (?P<first>\d{{1,2}}) (?P<mark>[/.-]) (?P<second>\d{{1,2}}) (?P=mark) (?: (?:1[5-9]|20)\d{{2}} | (?<=/)\d{{2}} )
    (?: ,?[ ] {_TIME} )? (?! \w | [/-]\w | \.\d )""",
    flags=re.IGNORECASE,
    check=_in_a_year,
)
