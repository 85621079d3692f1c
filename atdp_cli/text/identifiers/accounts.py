"""User names, passwords, and account or order numbers, which only their context gives away."""

import re

from atdp_cli.text.functionwords import function_words
from atdp_cli.text.identifiers.found import pattern

# What a sentence goes on with after "username is" where it names none.
_PREDICATES = frozenset(
    {
        "already",
        "always",
        "available",
        "blank",
        "case",
        "correct",
        "different",
        "empty",
        "hidden",
        "incorrect",
        "invalid",
        "known",
    }
    | {"missing", "needed", "optional", "required", "right", "sensitive", "taken", "unique", "unknown", "valid"}
    | {"never", "please", "visible", "wrong"}
)


def _names_someone(match: re.Match[str]) -> bool:
    value = match["value"].lower()
    return match["link"] in (":", "=") or value not in _PREDICATES | function_words()


username = pattern(
    "USERNAME",
    r"""(?<!\w) (?:user\s?[_-]?(?:name|id) | log-?in(?:\s(?:name|id))? | screen\s?name | gamer\s?tag | handle) (?!\w)
    (?:\s{1,2}(?:on\sfile|here|there))? \s{0,2} (?P<link>[:=]|is(?!\w)) \s{0,2} ["'“‘]?
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
        |confirmation|tracking|booking|reservation|passport|licen[cs]e|employee|patient|student|claim|routing
        |subscription|transaction|shipment|loan)s? (?!\w) \.?
    (?P<kind> \s{0,2}(?:number|num|no|nr|id|code)s?(?!\w)\.? )?
    (?P<link> \s{0,2}(?:[:=\#]|is|was)(?!\w) | \s{0,2}[:=\#] )?
    \s{0,2} \#? (?P<value>[A-Za-z0-9][A-Za-z0-9-]{3,30}) (?!\w)""",
    flags=re.IGNORECASE,
    check=_identifies,
)

code = pattern("CODE", r"(?<![\w-]) (?=[A-Z]{0,31}[0-9]) (?=[0-9]{0,31}[A-Z]) [A-Z0-9]{8,32} (?![\w-])")

password = pattern(
    "PASSWORD",
    r"""(?<!\w) (?:pass(?:word|code|phrase)|passwd|pwd) (?!\w)
    (?: \s{0,2}[:=]\s{0,2} | \s{1,2}is\s{1,2} (?=[^\s\d]{0,64}\d) )
    ["'“‘]? (?P<value>[^\s"'”’]{3,64})""",
    flags=re.IGNORECASE,
)
