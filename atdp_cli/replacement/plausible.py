"""Values that could be: what may stand where dates, times, amounts, addresses and accounts have rules of their own.

Which rule holds follows from a label and a profile alone: a flagged text with each letter as `A` or `a` and each digit
as `0`.
"""

import calendar
import re
import string
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from typing import NamedTuple

CALENDAR = frozenset({"DATE", "DATE_OF_BIRTH", "TIME", "CARD_EXPIRY"})

AMOUNTS = frozenset({"CARDINAL", "QUANTITY", "PERCENT", "MONEY", "AGE"})

RULED = CALENDAR | {"CREDIT_CARD", "IBAN", "ORDINAL"}
"""Labels whose values have rules beyond their places: `is_plausible` and `with_endings` read them."""

MONTHS = tuple(calendar.month_name[1:])

_SHORT_MONTHS = tuple(calendar.month_abbr[1:])


class Rule(NamedTuple):
    """What may stand in place of the characters up to `end`: one of `choices`, whatever was there."""

    end: int
    choices: tuple[str, ...]


_DIGITS_OF = {
    "year": ("12", "90", string.digits, string.digits),
    "month": ("01", string.digits),
    "day": ("0123", string.digits),
    "alone": ("123", string.digits),
    "hour": ("012", string.digits),
    "minute": ("012345", string.digits),
}
"""The digits of a number, place by place; of a number of fewer digits none is 0."""

_CALENDAR = re.compile(
    r"(?<!0)(?P<year>0000)(?P<s>[-/.])(?P<month>00?)(?P=s)(?P<day>00?)(?!0)"
    r"|(?<!0)(?P<day2>00?)(?P<s2>[-/.])(?P<day3>00?)(?P=s2)(?P<year2>0000)?"
    r"|(?<!0)(?P<hour>00?):(?P<minute>00)(?::(?P<minute2>00))?"
    r"|(?<!0)(?P<month2>00)/(?P<year3>0000)?"
    r"|(?<!0)(?P<year4>0000)(?!0)"
    r"|(?<!0)(?P<alone>00?)(?!0)"
)

_MERIDIEM = re.compile(r"(?<=0) ?(?P<half>AA|aa)(?![Aa])")

_ORDINAL = re.compile(r"(?<=0)aa(?![Aa])")

_MONTH = re.compile(r"(?<![Aa])[A][Aa]{2,}(?=\.? 00?(?:aa)?(?![0:]))|(?<=0 )A[Aa]{2,}|(?<=0aa )A[Aa]{2,}")

_ISO = re.compile(r"(?<=0)A(?=0|$)")

_LEADING = re.compile(r"(?<![0.,])0(?=[0,])")

_STATE = re.compile(r"(?<![A0])AA(?=,? 00000(?![0]))")

_STATES = tuple(
    re.findall(
        "..", "AKALARAZCACOCTDEFLGAHIIAIDILINKSKYLAMAMDMEMIMNMOMSMTNCNDNENHNJNMNVNYOHOKORPARISCSDTNTXUTVAVTWAWIWVWY"
    )
)

_IPV4 = re.compile(r"00?0?(?:\.00?0?){3}(?![.0])")

_OCTETS = {
    digits: tuple(map(str, range(first, last))) for digits, first, last in ((1, 0, 10), (2, 10, 100), (3, 100, 256))
}

_ACCOUNTS = {
    "AT": "0{16}", "BE": "0{12}", "CZ": "0{20}", "DE": "0{18}", "DK": "0{14}", "EE": "0{16}", "ES": "0{20}",
    "FI": "0{14}", "GB": "A{4}0{14}", "HR": "0{17}", "HU": "0{24}", "IE": "A{4}0{14}", "LT": "0{16}", "NL": "A{4}0{10}",
    "NO": "0{11}", "PL": "0{24}", "PT": "0{21}", "SE": "0{20}", "SI": "0{15}", "SK": "0{20}",
}  # fmt: skip
"""What follows the check digits of an IBAN, by country: those with digits alone or a bank's name before (SWIFT)."""


@cache
def rules(label: str, profile: str) -> Mapping[int, Rule]:
    """The rules of a value, by where each begins; digits and letters without one may be any."""
    return {start: Rule(end, choices) for start, end, choices in _rules(label, profile)}


def _rules(label: str, profile: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    if label in CALENDAR:
        yield from _calendar_rules(label, profile)
    elif label in AMOUNTS:
        for match in _LEADING.finditer(profile):
            yield match.end() - 1, match.end(), tuple(string.digits[1:])
    elif label == "ORDINAL":
        yield from _ordinals(profile)
    elif label == "IBAN":
        compact = profile.replace(" ", "")
        countries = tuple(country for country, rest in _ACCOUNTS.items() if re.fullmatch(f"AA00{rest}", compact))
        if countries and profile.startswith("AA"):
            yield 0, 2, countries
    elif label in ("ADDRESS", "ZIP"):
        for match in _STATE.finditer(profile):
            yield *match.span(), _STATES
    elif label == "IP_ADDRESS" and (address := _IPV4.match(profile)):
        for octet in re.finditer("0+", address.group()):
            yield *octet.span(), _OCTETS[len(octet.group())]
    elif label in ("IP_ADDRESS", "MAC_ADDRESS"):
        for match in re.finditer("[Aa]", profile):
            yield *match.span(), tuple("abcdef" if match.group() == "a" else "ABCDEF")


def _calendar_rules(label: str, profile: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    for match in _CALENDAR.finditer(profile):
        for role, digits in match.groupdict().items():
            if digits and not role.startswith("s"):
                yield from _number_rules(role.rstrip("234"), match.start(role), digits)
    halves = list(_MERIDIEM.finditer(profile)) if label == "TIME" or ":" in profile else []
    for match in halves:
        yield *match.span("half"), ("AM", "PM") if match["half"] == "AA" else ("am", "pm")
    if not halves:
        yield from _ordinals(profile)
    for match in re.finditer(r"(?<=0000)a(?!a)", profile):
        yield *match.span(), ("s",)
    for match in _ISO.finditer(profile):
        yield *match.span(), ("T",) if match.end() < len(profile) else ("Z",)
    if label != "TIME":
        for match in _MONTH.finditer(profile):
            upper = match.group().isupper()
            yield *match.span(), tuple(month.upper() if upper else month for month in MONTHS)


def _number_rules(role: str, start: int, digits: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    places = _DIGITS_OF[role]
    if len(digits) == len(places):
        for at, choices in enumerate(places):
            if choices != string.digits:
                yield start + at, start + at + 1, tuple(choices)
    elif role in ("month", "day", "alone"):
        yield start, start + 1, tuple(string.digits[1:])


def _ordinals(profile: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    for match in _ORDINAL.finditer(profile):
        yield *match.span(), ("th",)


def is_plausible(label: str, text: str) -> bool:
    """Whether a decoy could be: its dates and times exist, and the check digits of cards and accounts are right."""
    if label == "CREDIT_CARD":
        from stdnum import luhn

        return bool(luhn.is_valid("".join(filter(str.isdigit, text))))
    if label == "IBAN" and text[:2] in _ACCOUNTS:
        from stdnum import iban

        return bool(iban.is_valid(text, check_country=False))
    return label not in CALENDAR or _is_in_calendar(label, text)


def _is_in_calendar(label: str, text: str) -> bool:
    if label == "CARD_EXPIRY" and (month := re.match(r"\d\d(?=/)", text)):
        return 1 <= int(month.group()) <= 12
    numeric, named = _NUMERIC.search(text), _NAMED.search(text)
    if numeric and not any(_exists(*read) for read in _orders(numeric)):
        return False
    if named and (read := _named(named)) and not _exists(*read):
        return False
    days, years, times = _DAY.findall(text), _YEAR.findall(text), _TIME.finditer(text)
    return (
        all(1 <= int(day) <= 31 for day in days)
        and all(year[:2] in ("19", "20") for year in years)
        and all(map(_is_time, times))
    )


def with_endings(label: str, text: str) -> str:
    """A decoy whose ordinal endings fit the numbers before them."""
    return _ENDING.sub(_ended, text) if label in CALENDAR or label == "ORDINAL" else text


def _ended(match: re.Match[str]) -> str:
    return match["number"] + _ending(int(match["number"][-2:]))


_ENDING = re.compile(r"(?<![0-9])(?P<number>[0-9]+)(?:st|nd|rd|th)(?![a-z])")


def _ending(number: int) -> str:
    return "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")

_DAY = re.compile(r"(?<!\d)(\d\d?)(?:st|nd|rd|th)\b")

_TIME = re.compile(
    r"(?<!\d)(?P<hour>\d\d?):\d\d(?::\d\d)?(?: ?(?P<half>[ap]m)\b)?|(?<!\d)(?P<hour2>\d\d?) ?[ap]m\b", re.I
)


def _is_time(match: re.Match[str]) -> bool:
    hour = int(match["hour"] or match["hour2"])
    return 1 <= hour <= 12 if match["half"] or match["hour2"] else hour <= 23


_NUMERIC = re.compile(r"(?<!\d)(?P<a>\d{4}|\d\d?)(?P<s>[-/.])(?P<b>\d\d?)(?P=s)(?P<c>\d{4}|\d\d?)(?!\d)")

_NAMED = re.compile(
    rf"(?:(?P<before>\d\d?)(?P<ending>st|nd|rd|th)?(?: of)? )?(?P<month>{'|'.join((*MONTHS, *_SHORT_MONTHS))})\b\.?"
    r"(?: (?P<after>\d\d?)(?P<ending2>st|nd|rd|th)?(?!\d))?(?:,? (?P<year>\d{4}))?",
    re.I,
)


Date = tuple[int | None, int, int]
"""Year, month and day; a year may be left out."""


def date_readings(text: str) -> dict[Date, str]:
    """The dates that a whole text may mean, each with the form in which the text writes it, for `written_date`."""
    if match := _NUMERIC.fullmatch(text):
        padded = ":02" if min(len(match[part]) for part in "abc") == 2 else ""
        year = "{year}" if "4" in map(str, map(len, match.groups())) else "{short_year}"
        day, month = f"{{day{padded}}}", f"{{month{padded}}}"
        orders = ((year, month, day),) if len(match["a"]) == 4 else ((month, day, year), (day, month, year))
        forms = (match["s"].join(order) for order in orders)
        return {read: form for read, form in zip(_orders(match), forms, strict=True) if _exists(*read)}
    match = _NAMED.fullmatch(text)
    if match is None or (named := _named(match)) is None or not _exists(*named):
        return {}
    return {named: _named_form(match)}


def _named_form(match: re.Match[str]) -> str:
    name = "name" if match["month"].capitalize() in MONTHS else "short_name"
    name = name.upper() if match["month"].isupper() else name
    parts = {"before": "{day}", "ending": "{ending}", "ending2": "{ending}", "month": f"{{{name}}}"}
    parts |= {"after": "{day}", "year": "{year}"}
    spans = sorted((*match.span(part), field) for part, field in parts.items() if match[part])
    form, end = "", 0
    for start, stop, field in spans:
        form, end = form + match.string[end:start] + field, stop
    return form + match.string[end:]


def written_date(form: str, day: Date) -> str | None:
    """A date in a form; None where the form has a year and the date has none."""
    year, month, number = day
    if year is None and "year" in form:
        return None
    name, short = MONTHS[month - 1], _SHORT_MONTHS[month - 1]
    return form.format(
        year=f"{year or 0:04}",
        short_year=f"{(year or 0) % 100:02}",
        month=month,
        day=number,
        ending=_ending(number),
        name=name,
        NAME=name.upper(),
        short_name=short,
        SHORT_NAME=short.upper(),
    )


def _orders(match: re.Match[str]) -> Iterator[Date]:
    a, b, c = match["a"], match["b"], match["c"]
    for order in ((a, b, c),) if len(a) == 4 else ((c, a, b), (c, b, a)):
        yield _date(*order)


def _date(year: str, month: str, day: str) -> Date:
    return int(year) if len(year) == 4 else 2000 + int(year), int(month), int(day)


def _named(match: re.Match[str]) -> Date | None:
    day = match["before"] or match["after"]
    if day is None:
        return None
    short = match["month"].capitalize()[:3]
    return int(match["year"]) if match["year"] else None, _SHORT_MONTHS.index(short) + 1, int(day)


def _exists(year: int | None, month: int, day: int) -> bool:
    try:
        date(2000 if year is None else year, month, day)
    except ValueError:
        return False
    return True
