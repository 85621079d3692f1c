"""Dates and times in digits, which language models tend to read as numbers; dates of birth and ages."""

import re

from atdp_cli.detection.identifiers.recogniser import either, pattern


def _in_a_year(match: re.Match[str]) -> bool:
    first, second = int(match["first"]), int(match["second"])
    return 1 <= min(first, second) <= 12 and max(first, second) <= 31


_TIME = r"\d{1,2}:\d{2} (?: :\d{2} (?:[.,]\d{1,9})? )? (?:Z|[ ]?[ap]\.?m\.?|[+-]\d{2}:?\d{2})? (?!\w)"

numeric_date = pattern(
    "DATE",
    rf"""(?i)(?<![\w/.,:-])
    (?: (?:1[5-9]|20)\d{{2}} (?P<mark>[/.-]) (?P<first>\d{{1,2}}) (?P=mark) (?P<second>\d{{1,2}})
        (?: (?:T|,?[ ]) {_TIME} )?
    ) (?! \w | [/-]\w | \.\d )""",
    check=_in_a_year,
)

numeric_date_year_last = pattern(
    "DATE",
    rf"""(?i)(?<![\w/.,:-])
    (?P<first>\d{{1,2}}) (?P<mark>[/.-]) (?P<second>\d{{1,2}}) (?P=mark) (?: (?:1[5-9]|20)\d{{2}} | (?<=/)\d{{2}} )
    (?: ,?[ ] {_TIME} )? (?! \w | [/-]\w | \.\d )""",
    check=_in_a_year,
)

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)

_DAY = r"\d{1,2}(?:st|nd|rd|th)?"

_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s)"

_IN_DIGITS = r"\d{1,4}(?P<mark>[/.-])\d{1,2}(?P=mark)\d{1,4} | \d{1,2}\s\d{1,2}\s(?:19|20)\d\d | (?:19|20)\d{6}"


# The form may say between brackets how to write the date.
date_of_birth = pattern(
    "DATE_OF_BIRTH",
    r"(?i)(?<!\w) (?:d\.?o\.?b\.? | (?:date|day)\sof\sbirth | birth\s?-?(?:date|day)(?:['’]s)? | born | \(b\.) (?!\w)"
    rf"(?:\s?\([dmy/. -]{{5,12}}\))? \s{{0,2}} (?:[:=(-]|is|was|on|in)? \s{{0,2}} (?:on\s)?{_WEEKDAY}?(?:the\s)?"
    rf"(?P<value> {_IN_DIGITS} | {_DAY}[\s-](?:of\s)?{_MONTH},?[\s-]\d{{2,4}}"
    rf"| {_MONTH}\s{_DAY},?\s\d{{2,4}} | {_MONTH}\s{_DAY} | {_DAY}\s(?:of\s)?{_MONTH} | {_MONTH}\s(?:of\s)?\d{{4}}"
    r"| \d{1,2}/\d{1,2} | (?:19|20)\d{2} ) (?![\w/])",
)


# Forms and sentences in German, French, Spanish, Italian, Portuguese and Dutch.
date_of_birth_abroad = pattern(
    "DATE_OF_BIRTH",
    r"(?i)(?<!\w) (?: geburts(?:datum|tag) | geb\.(?:\sam)? | geboren(?:\s(?:am|op))? | geboortedatum | né(?:e)?\sle"
    r"| date\sde\snaissance | nacid[oa]\sel | fecha\sde\snacimiento | nat[oa]\sil | data\sdi\snascita | nascid[oa]\sem"
    r"| data\sde\snascimento ) (?!\w) \s?[:=]?\s{0,2}"
    rf"(?P<value> {_IN_DIGITS} | \d{{1,2}}(?:\.|er|º)?\s(?:de\s)?[^\W\d_]{{3,10}}\.?\s(?:de\s)?(?:19|20)\d\d )"
    r"(?![\w/])",
)

_ROMAN = r"(?:X[I]{0,2}|I[XV]|VI{0,3}|I{1,3})"

roman_date = pattern(
    "DATE",
    rf"(?<![\w/.,:-]) (?:0?[1-9]|[12]\d|3[01]) (?P<mark>\.[ ]?|[ /-]) {_ROMAN} (?P=mark) (?:1[5-9]|20)\d\d"
    r"(?! \w | [/-]\w )",
)


# Chinese, Japanese and Korean, also by era and with numbers in words.
_COUNT = r"[\d〇零一二三四五六七八九十]"

_CJK_YEAR = rf"(?:(?:明治|大正|昭和|平成|令和|民國|民国)[ ]?)?(?:{_COUNT}{{1,4}}|元)[ ]?[年년][ ]?"

cjk_date = pattern(
    "DATE",
    rf"(?<![\d.,]) (?: (?:{_CJK_YEAR})? {_COUNT}{{1,3}}[ ]?[月월][ ]?{_COUNT}{{1,3}}[ ]?[日号號일]"
    rf"| {_CJK_YEAR} {_COUNT}{{1,3}}[ ]?[月월] )",
)


# Without a year a day is one where the words before it say so.
day_without_year = pattern(
    "DATE",
    rf"""(?i)(?<!\w) (?: {either("of days")} | on(?=\s\d{{1,2}}/) ) (?!\w)
    (?:\s(?:is|was|date|by|on|at|the|for|in)){{0,3}} \s?[:,]?\s{{0,2}}
    (?P<value> (?!24/7) (?P<first>\d{{1,2}}) (?:/|\.|-) (?P<second>\d{{1,2}}) )
    (?! \w | / | [.,:-]\d | \s?(?:%|[ap]\.?m|{either("no days")})(?!\w) )""",
    check=_in_a_year,
)

_IN_WORDS = (
    r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[ -](?:one|two|three|four|five|six|seven|eight"
    r"|nine))?"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
)

_AGE = r"1[01]\d|[1-9]?\d"

_OF_MANY = re.compile(
    r"(?<!\w)(?:under|over|above|below|adults|children|people|those|audiences?|viewers)[ ]\Z", re.IGNORECASE
)

age = pattern(
    "AGE",
    rf"""(?i)(?<![\w.,$€£/:-]) (?:{_AGE}|{_IN_WORDS}) (?: [ -]?(?:years?|yrs?)[ -](?:old|of[ ]age)
      | [ -]?y[./]?o\.?(?:ld)? )
    (?!\w)
    (?! [ ]{either("things")}(?!\w) )""",
)


# Anna Lopez, 26 yrs, nurse; Pt: A.L.; 56 F; known asthma.
age_in_note = pattern(
    "AGE",
    rf"""(?<=[,;][ ]) (?P<value> (?:{_AGE})[ ]?(?:yrs?|y) (?=[ ]?[,;])
      | (?:{_AGE})(?=[ ]?(?:F|M|female|male)[ ]?[,;]) )""",
)

age_after_word = pattern(
    "AGE",
    rf"""(?i)(?<!\w) (?: ages?[ ]?[:=] | aged | (?:my|his|her|their)[ ]age[ ](?:is|was) | at[ ]age | the[ ]age[ ]of
      | (?<=,[ ])age | (?:just[ ]|has[ ]|i[ ]|he[ ]|she[ ])turned | turn(?:s|ing) |
      i['’]?m(?=[ ]\d\d[,.!]?(?:[ ](?:and|but|now|male|female)|$|\n)) ) [ ]{{0,2}}
    (?P<value>{_AGE}) (?! \w | [.:/$-]\d | [ ]?(?:%|days|weeks|minutes|hours|degrees|percent|points|pages|miles) )""",
    check=lambda match: _OF_MANY.search(match.string, max(0, match.start() - 16), match.start()) is None,
)
