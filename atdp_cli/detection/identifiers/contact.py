"""E-mail addresses and telephone numbers."""

import re
from collections.abc import Iterator

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.recogniser import listed, pattern, recogniser
from atdp_cli.detection.word_lists import function_words

email = pattern(
    "EMAIL",
    r"(?<![\w.%+-]) [\w%+] [\w.%+'-]{0,63}+ @[ ]? (?:[\w-]{1,63}+\.){1,8} (?:xn--[A-Za-z0-9-]{2,59}|[^\W\d_]{2,24})",
)


def _names_a_mailbox(match: re.Match[str]) -> bool:
    name = match["name"].lower()
    return match["word"] is None or name not in listed("not a mailbox") | function_words()


# Written so that a program does not see it: jo [at] example [dot] com, jo dot smith 88 at example dot org.
email_spelled_out = pattern(
    "EMAIL",
    r"""(?i)(?<![\w.%+@-]) (?P<name> [\w%+][\w.%+'-]{0,63}+ (?:[ ](?:dot|underscore|dash|hyphen|plus)[ ][\w%+-]{1,63}+
      | [ ]\d{1,4}+){0,5}+ )
    (?: \s?[\[({<]\s?at\s?[\])}>]\s? (?:[\w-]{1,63}+ (?:\.|\s?[\[({<]\s?(?:dot|\.)\s?[\])}>]\s?|\sdot\s)){1,4}
      | [ ](?P<word>at)[ ] (?: (?:[\w-]{1,63}+ [ ]dot[ ]){1,4}
        | (?:gmail|googlemail|yahoo|hotmail|outlook|icloud|proton|protonmail|aol|gmx)\. ) )
    (?: com|org|net|edu|gov|mil|info|io|me|app|dev|email|example|online|(?!at|dot)[a-z]{2} )
    (?: \sdot\s[a-z]{2}(?!\w) )? (?![\w-])""",
    check=_names_a_mailbox,
)


# With spaces, or an @ in brackets: anna . lopez @ gmail . com, jo [@] example.com.
email_spaced = pattern(
    "EMAIL",
    r"""(?i)(?<![\w.%+@-]) [\w%+][\w%+'-]{0,63}+ (?:[ ]?\.[ ]?[\w%+'-]{1,63}+){0,3}+
    (?: [ ]?[\[({<][ ]?@[ ]?[\])}>][ ]? (?:[\w-]{1,63}+[ ]?(?:\.|[\[({<][ ]?(?:dot|\.)[ ]?[\])}>]|dot(?=[ ]))[ ]?){1,4}
      | [ ]?@[ ]? (?:gmail|googlemail|yahoo|hotmail|outlook|icloud|proton|protonmail|aol|gmx)[ ]?(?:\.|dot(?=[ ]))[ ]?
      | @(?=[^\s@]{1,63}[ ]) (?:[\w-]{1,63}+[ ](?:\.|dot)[ ]){1,3} )
    (?: com|org|net|edu|gov|mil|info|io|me|[a-z]{2} ) (?![\w-]|\.\w)""",
    check=lambda match: not set(match[0]).isdisjoint(" [({<"),
)

_SEPARATOR = r"[ .\-‐‑–/()\u00a0]"

_EXTENSION = r"(?:\s?(?:x|ext\.?|extension)\s?\d{1,6})?"


# Any stretch that could hold a number, so that the slow library sees only those.
_STRETCH = re.compile(rf"(?<!\w)[+(]{{0,2}}\d(?:{_SEPARATOR}|[+\d]){{5,58}}\d{_EXTENSION}", re.IGNORECASE)

_DECIMALS = re.compile(r"\d[.,]\Z")


@recogniser("PHONE")
def phone(text: str) -> Iterator[Range]:
    """Numbers that are valid in the United States or, with a country code, anywhere."""
    for stretch in _STRETCH.finditer(text):
        if sum(character.isdigit() for character in stretch[0]) < 7:
            continue
        import phonenumbers

        for match in phonenumbers.PhoneNumberMatcher(stretch[0], "US"):
            if not _DECIMALS.search(stretch[0], 0, match.start):
                yield stretch.start() + match.start, stretch.start() + match.end


# Area codes that were never assigned still look like a phone number to a reader, and stand for one.
phone_shape = pattern(
    "PHONE",
    rf"(?i)(?<![\w.-]) (?:(?:\+|00)?1[ .‑-]?)? (?:\(\d{{3}}\)[ .‑-]? | \d{{3}}[ .‑-]) \d{{3}} [ .‑-] \d{{4}} "
    rf"{_EXTENSION} (?!\d)",
)

phone_international = pattern(
    "PHONE", rf"(?: (?<!\w)\+ | (?<![\w.,:/-])00 )[1-9] (?:{_SEPARATOR}{{0,3}}\d){{6,14}} {_EXTENSION} (?!\d)"
)

_DATE = re.compile(r"(?:19|20)\d\d[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)\d\d")

_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?: 000)+")


def _may_be_dialled(match: re.Match[str]) -> bool:
    return _DATE.match(match["value"]) is None and _THOUSANDS.fullmatch(match["value"]) is None


phone_in_context = pattern(
    "PHONE",
    rf"(?i)(?<!\w) (?:tele)? (?:phone|tel|mobile|cell|cellphone|fax|call|called|dial|whatsapp|sms|messages?|texted"
    rf"|answering|reach(?:ed)?|ring|landline|handy|telefon|tlf|téléphone|teléfono|telefone|celular|móvil"
    rf"|contact\sno|contact\snumber"
    rf"|(?:my|his|her|their|our|your)\s(?:new\s)?(?:number|no)|(?:get|text|try|ping)\s(?:me|him|her|us|them)\s(?:on"
    rf"|at)) (?!\w) (?: [^\d\n+(]{{0,24}} | \s?:\s{{1,3}} )"
    rf"(?P<value> [+(]{{0,2}}\d (?:{_SEPARATOR}{{0,2}}\d){{6,14}} {_EXTENSION}) (?!\d)",
    check=_may_be_dialled,
)

phone_before_its_kind = pattern(
    "PHONE",
    rf"(?i)(?<![\w.,:/-]) (?P<value> [+(]{{0,2}}\d (?:{_SEPARATOR}{{0,2}}\d){{6,14}} ) [ ]{{0,2}} \n? [(,-]? "
    "[ ]{0,2} "
    r"(?:office|fax|mobile|cell|phone|landline) (?!\w)",
    check=_may_be_dialled,
)


def _as_long_as_a_number(match: re.Match[str]) -> bool:
    return 9 <= sum(character.isdigit() for character in match[0]) <= 12


# Outside North America a number for use at home begins with 0, and people group its digits as they like.
phone_trunk = pattern(
    "PHONE",
    r"(?<![\w.,:/-]) (?: \(0\d{1,4}\) | 0\d{1,4} ) (?: (?:[ -]\d{2,4}){2,4} | [ /-]\d{2,8} )"
    r"(?! \w | [-/:]\w | [.,]\d )",
    check=_as_long_as_a_number,
)

_YEAR_GROUP = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")


def _has_no_year(match: re.Match[str]) -> bool:
    return _YEAR_GROUP.search(match[0]) is None


# Brazil, Argentina, India, Russia: an area code in brackets without the 0.
phone_area = pattern(
    "PHONE",
    r"(?<![\w)]) (?:[18][ -]?)? \(\d{2,4}\) [ ]? \d{3,5} (?:[ -]\d{2,5}){1,2} (?! \w | [-/:]\w | [.,]\d | [ ]\d)",
    check=lambda match: _has_no_year(match) and _as_long_as_a_number(match),
)


# China, Mexico, Singapore and others at home: a short block, then one of four or five digits, then one of four.
phone_blocks = pattern(
    "PHONE",
    r"(?<![\w.,:/-]) (?<!\d[ ]) \d{2,3} [ -] \d{4,5} [ -] \d{4} (?! \w | [-/:]\w | [.,]\d | [ ]\d )",
    check=_has_no_year,
)

phone_pairs = pattern("PHONE", r"(?<![\w.,:/-]) \d\d (?P<mark>[.-])\d\d (?:(?P=mark)\d\d){2,3} (?! \w | [.,:/-]\w )")


# At home without a 0: mobile numbers of India, Italy, Poland and Russia; and a German one with a stroke.
phone_mobile = pattern(
    "PHONE",
    r"""(?<![\w.,:/$€£-]) (?<!\d[ ])
    (?: [6-9]\d{4}[ -]\d{5} | 3\d\d[ -]\d{6,7} | [4-9]\d\d-\d{3}-\d{3} | [78]-9\d\d-\d{3}-\d\d-\d\d
      | 0\d{1,4}[ ]?/[ ]?\d{2,8} (?:[ -]\d{2,4}){0,3} )
    (?! \w | [-/:]\w | [.,]\d | [ ]\d )""",
    check=_as_long_as_a_number,
)
