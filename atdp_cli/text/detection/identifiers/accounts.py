"""User names, passwords, and account or order numbers, which only their context gives away."""

import re

from atdp_cli.text.detection.function_words import function_words
from atdp_cli.text.detection.identifiers.recogniser import pattern

# Words that follow "username is" in a sentence that names none.
_PREDICATES = frozenset(
    {"already", "always", "available", "blank", "case", "correct", "different", "empty", "hidden", "incorrect"}
    | {"invalid", "known", "missing", "needed", "never", "optional", "please", "required", "right", "sensitive"}
    | {"taken", "unique", "unknown", "valid", "visible", "wrong"}
)


def _names_someone(match: re.Match[str]) -> bool:
    value = match["value"].lower()
    return match["link"] in (":", "=") or value not in _PREDICATES | function_words()


username = pattern(
    "USERNAME",
    r"""(?<!\w) (?:user\s?[_-]?(?:name|id) | log-?in(?:\s(?:name|id))? | screen\s?name | gamer\s?tag | handle) (?!\w)
    (?:\s{1,2}(?:on\sfile|here|there))?
    (?: \s{0,2} (?P<link>[:=]|is(?!\w)|['’]s(?!\w)|-(?=\s)) \s{0,2} | (?<=name)\s{1,2}(?=[a-z._-]{1,30}\d) ) ["'“‘]?
    (?P<value> @?\w(?:[\w.-]{0,38}\w)? )""",
    flags=re.IGNORECASE,
    check=_names_someone,
)

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


def _identifies(match: re.Match[str]) -> bool:
    value, named, linked = match["value"], match["kind"] is not None, match["link"] is not None
    if not any(character.isdigit() for character in value):
        return named and linked and len(value) >= 6 and value.isupper()
    return named or linked or (len(value) >= 5 and _YEAR.match(value) is None)


account = pattern(
    "ACCOUNT",
    r"""(?<!\w) (?:account|acct|order|customer|client|member|membership|policy|invoice|case|ticket|reference|ref
        |sort\scode|confirmation|tracking|booking|reservation|passport|licen[cs]e(?:\splate)?|number\splate|employee|patient|student|claim
        |routing|subscription|transaction|shipment|loan|(?:medical|health)\srecord|mrn|vin|npi|imei|badge|serial|docket
        |voucher|payroll|enrol?lment|registration)s? (?!\w) \.?
    (?P<kind> \s{0,2}(?:number|num|no|nr|id|code|reference|ref|confirmation)s?(?!\w)\.? )?
    (?P<link> \s{0,2}(?:[:=\#]|is|was)(?!\w) | \s{0,2}[:=\#] )?
    \s{0,2} \#? (?P<value>[A-Za-z0-9][A-Za-z0-9-]{3,30}) (?!\w)""",
    flags=re.IGNORECASE,
    check=_identifies,
)

# The last digits of a number, by which shops and banks ask for it.
ending = pattern(
    "ACCOUNT",
    r"""(?<!\w)
    (?: (?:account|acct|card|iban|number|passport|visa|mastercard|amex) [ ] (?:(?:that|which)[ ])?
        (?:end(?:s|ing)|finish(?:es|ing)) [ ] (?:in|with|on)
      | last [ ] (?:four|4|five|5|six|6|three|3) (?:[ ]digits)? (?:[ ]of[ ][^\d\n.:=]{1,32}?)? [ ]?(?:is|are|were|:|=) )
    [ ]{1,2} (?:the[ ](?:digits|numbers)[ ])? [*xX.-]{0,12} (?P<value> \d{3,6} ) (?! \w | [.,:/-]\d | [ ]?% )""",
    flags=re.IGNORECASE,
)

# A name at a service named before it: with an @ or a digit in it, since other words may follow.
social_handle = pattern(
    "USERNAME",
    r"""(?<!\w) (?:twitter|instagram|insta|discord|snapchat|telegram|tiktok|skype|mastodon|bluesky|reddit|twitch
        |github|gitlab|steam|psn|xbox|linkedin|facebook|wechat|venmo|cash\s?app|kik|signal)
    (?:\s(?:handle|id|account|user|tag|name))? (?!\w)
    (?: \s{0,2}[:=]\s{0,2} | \s{1,2}is\s{1,2} | \s{1,2}\(?(?=[@$]) )
    (?P<value>
      (?: [@$]\w[\w.-]{1,38} | (?=[a-z._-]{1,30}[\d\#])\w[\w.-]{2,38} ) (?<![.-]) (?:\#\d{4})? ) (?![\w@:/\#])""",
    flags=re.IGNORECASE,
)

code = pattern("CODE", r"(?<![\w-]) (?=[A-Z]{0,31}[0-9]) (?=[0-9]{0,31}[A-Z]) [A-Z0-9]{8,32} (?![\w-])")

password = pattern(
    "PASSWORD",
    r"""(?<![A-Za-z0-9]) (?:pass(?:word|code|phrase)|passwd|pwd) (?!\w) ["']?
    (?: \s{0,2}[:=]\s{0,2} | (?:\s{1,2}(?:is|was)|['’]s)\s{1,2} (?=[^\s\d]{0,64}\d) )
    ["'“‘]? (?P<value>[^\s"'”’]{3,64})""",
    flags=re.IGNORECASE,
)

# What is typed at a bank's machine or a door. Years and amounts do not follow these words so closely.
pin = pattern(
    "PASSWORD",
    r"""(?<!\w) (?: (?-i:PIN|Pin) | (?:my|your|his|her|their|the|atm|card|door|alarm|sim)\spin | pin\s(?:code|number)
        | (?:otp|(?:verification|security|access|door|alarm|gate|one-time)\scode) | cvv2? | cvc2? )
    (?:\s(?:code|number|no\.?))? (?!\w) \s{0,2} (?:[:=\#]|is|was|['’]s)? \s{0,2}
    (?P<value> \d{3,8} ) (?! \w | [.,:/-]\d )""",
    flags=re.IGNORECASE,
)
