"""National identifiers, dates of birth, and names that their context gives away."""

import re

from atdp_cli.text.detection.function_words import function_words
from atdp_cli.text.detection.identifiers.recogniser import pattern


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
    r"(?<!\w) (?:ssn|s\.s\.n\.|social\ssecurity(?:\s(?:number|num|no\.?|\#))? | [x*]{3}[ -]?[x*]{2}) (?!\w)"
    r"[^\d\n]{0,24}"
    r"(?P<value> [0-9]{3}[ .–-]?[0-9]{2}[ .–-]?[0-9]{4} | (?<![$€£])(?!(?:1[5-9]|20)[0-9]{2}(?!\d))[0-9]{4} )"
    r"(?! \w | [.,–-]\d )",
    flags=re.IGNORECASE,
)


def _could_be_a_name(match: re.Match[str]) -> bool:
    return match["value"].split()[0].lower() not in function_words()


_NAME = r"[^\W\d_][\w'’-]{1,24}"

name_after_title = pattern(
    "PERSON",
    rf"(?<![\w.]) (?i:mr|mrs|ms|dr|prof)\.? [ ] (?P<value> (?:[A-Z]\.[ ]?){{0,3}} {_NAME} )",
    check=_could_be_a_name,
    words=("mr", "mrs", "ms", "dr", "prof"),
)

name_introduced = pattern(
    "PERSON",
    r"(?<!\w) (?i: (?:my|his|her|their) [ ] (?:(?:first|last|full|maiden|middle|sur)[ ]?)? name (?:[ ]is|['’]s) )"
    rf"[ ] (?P<value> {_NAME} (?:[ ][A-Z][\w'’-]{{1,24}}){{0,2}} ) (?!\w)",
    check=_could_be_a_name,
    words=("name", "firstname", "lastname", "fullname", "surname"),
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
    r"(?<!\w) (?:d\.?o\.?b\.? | (?:date|day)\sof\sbirth | birth\s?-?(?:date|day)(?:['’]s)? | born | \(b\.) (?!\w)"
    rf"(?:\s?\([dmy/. -]{{5,12}}\))? \s{{0,2}} (?:[:=(-]|is|was|on|in)? \s{{0,2}} (?:on\s)?{_WEEKDAY}?(?:the\s)?"
    rf"(?P<value> {_IN_DIGITS} | {_DAY}[\s-](?:of\s)?{_MONTH},?[\s-]\d{{2,4}}"
    rf"| {_MONTH}\s{_DAY},?\s\d{{2,4}} | {_MONTH}\s{_DAY} | {_DAY}\s(?:of\s)?{_MONTH} | {_MONTH}\s(?:of\s)?\d{{4}}"
    r"| \d{1,2}/\d{1,2} | (?:19|20)\d{2} ) (?![\w/])",
    flags=re.IGNORECASE,
    words=("dob", "ob", "b", "birth", "birthdate", "birthday", "born"),
)

# Forms and sentences in German, French, Spanish, Italian, Portuguese and Dutch.
date_of_birth_abroad = pattern(
    "DATE_OF_BIRTH",
    r"(?<!\w) (?: geburts(?:datum|tag) | geb\.(?:\sam)? | geboren(?:\s(?:am|op))? | geboortedatum | né(?:e)?\sle"
    r"| date\sde\snaissance | nacid[oa]\sel | fecha\sde\snacimiento | nat[oa]\sil | data\sdi\snascita | nascid[oa]\sem"
    r"| data\sde\snascimento ) (?!\w) \s?[:=]?\s{0,2}"
    rf"(?P<value> {_IN_DIGITS} | \d{{1,2}}(?:\.|er|º)?\s(?:de\s)?[^\W\d_]{{3,10}}\.?\s(?:de\s)?(?:19|20)\d\d )"
    r"(?![\w/])",
    flags=re.IGNORECASE,
)

_THINGS = (
    r"(?:car|cars|truck|van|bike|house|home|building|church|bridge|castle|ship|boat|plane|company|firm|business"
    r"|club|school|laptop"
    r"|computer|phone|software|code|bug|machine|book|film|movie|song|album|record|records|law|tradition|tree|trees"
    r"|wine|whisky|whiskey"
    r"|cheese|fossil|fossils|rock|rocks|painting|account|policy|dog|cat|horse|filly|colt|mare|stallion|tower"
    r"|stadium|hotel|battery"
    r"|feud|dispute|case|problem|issue|theory|study|data|news|sandwich|milk|bread|universe|engine|ruins|temple|system)"
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
    rf"""(?<![\w.,$€£/:-]) (?:{_AGE}|{_IN_WORDS}) (?: [ -]?(?:years?|yrs?)[ -](?:old|of[ ]age)
      | [ -]?y[./]?o\.?(?:ld)? )
    (?!\w)
    (?! [ ]{_THINGS}(?!\w) )""",
    flags=re.IGNORECASE,
    words=("old", "age", "yo", "o", "yold"),
)

# Anna Lopez, 26 yrs, nurse; Pt: A.L.; 56 F; known asthma.
age_in_note = pattern(
    "AGE",
    rf"""(?<=[,;][ ]) (?P<value> (?:{_AGE})[ ]?(?:yrs?|y) (?=[ ]?[,;])
      | (?:{_AGE})(?=[ ]?(?:F|M|female|male)[ ]?[,;]) )""",
    words=("yr", "yrs", "y", "f", "m", "female", "male"),
)

age_after_word = pattern(
    "AGE",
    rf"""(?<!\w) (?: ages?[ ]?[:=] | aged | (?:my|his|her|their)[ ]age[ ](?:is|was) | at[ ]age | the[ ]age[ ]of
      | (?<=,[ ])age | (?:just[ ]|has[ ]|i[ ]|he[ ]|she[ ])turned | turn(?:s|ing) |
      i['’]?m(?=[ ]\d\d[,.!]?(?:[ ](?:and|but|now|male|female)|$|\n)) ) [ ]{{0,2}}
    (?P<value>{_AGE}) (?! \w | [.:/$-]\d | [ ]?(?:%|days|weeks|minutes|hours|degrees|percent|points|pages|miles) )""",
    flags=re.IGNORECASE,
    check=lambda match: _OF_MANY.search(match.string, max(0, match.start() - 16), match.start()) is None,
    words=("age", "ages", "aged", "turned", "turns", "turning", "i", "im"),
)
