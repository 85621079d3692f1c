"""National identifiers and dates of birth."""

import re

from atdp_cli.text.identifiers.found import pattern


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

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"

date_of_birth = pattern(
    "DATE_OF_BIRTH",
    r"(?<!\w) (?:d\.?o\.?b\.? | (?:date|day)\sof\sbirth | birth\s?-?(?:date|day) | born) (?!\w)"
    r"\s{0,2} (?:[:=(-]|is|was|on|in)? \s{0,2} (?:on\s|the\s)?"
    rf"(?P<value> \d{{1,4}}[/.-]\d{{1,2}}[/.-]\d{{1,4}} | {_DAY}\s(?:of\s)?{_MONTH},?\s\d{{2,4}}"
    rf"| {_MONTH}\s{_DAY},?\s\d{{2,4}} | {_MONTH}\s{_DAY} | {_DAY}\s(?:of\s)?{_MONTH} | {_MONTH}\s\d{{4}}"
    r"| (?:19|20)\d{2} ) (?!\w)",
    flags=re.IGNORECASE,
)
