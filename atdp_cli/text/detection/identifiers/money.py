"""Payment cards and bank accounts."""

import re
from collections.abc import Iterator

from atdp_cli.text.detection.identifiers.recogniser import pattern, recogniser
from atdp_cli.text.detection.spans import Range

# Major issuers' first digits: Maestro, Visa, Mastercard, Discover, UnionPay, Diners, JCB, American Express.
_ISSUER = re.compile(r"2[2-7]|[3-6]|1800|2131")
_CARD_STRETCH = re.compile(r"(?<!\d)(?<!\d\.)\d(?:[ \u00a0–-]?\d){11,}+")
_DIGITS = re.compile(r"\d+")
_FRACTION = re.compile(r"\.\d")


@recogniser("CREDIT_CARD", within=_CARD_STRETCH)
def payment_card(text: str) -> Iterator[Range]:
    """12 to 19 digits that pass Luhn's check, in one run or in groups of at most six that begin with four."""
    for stretch in _CARD_STRETCH.finditer(text):
        groups = list(_DIGITS.finditer(text, *stretch.span()))
        first = 0
        while first < len(groups):
            last = _card_end(groups, first)
            if last is None or _FRACTION.match(text, groups[last].end()):
                first += 1
                continue
            yield groups[first].start(), groups[last].end()
            first = last + 1


def _card_end(groups: list[re.Match[str]], first: int) -> int | None:
    """The last of the groups that make a card number from `first` on, the longest such number."""
    digits, last = "", None
    for number, group in enumerate(groups[first : first + 6]):
        digits += group[0]
        if len(digits) > 19 or (number > 0 and not _grouped(groups[first], group)):
            break
        if len(digits) >= _shortest(digits) and _ISSUER.match(digits) and luhn(digits):
            last = first + number
    return last


def _shortest(digits: str) -> int:
    """Only Maestro, from 5 or 6 on, issues numbers of 12 digits."""
    return 12 if digits[0] in "56" else 13


def _grouped(head: re.Match[str], group: re.Match[str]) -> bool:
    return len(head[0]) == 4 and len(group[0]) <= 6


def luhn(digits: str) -> bool:
    """Luhn's check (ISO/IEC 7812-1) over decimal digits of any script."""
    values = [int(digit) for digit in reversed(digits)]
    return sum(values[::2] + [sum(divmod(2 * value, 10)) for value in values[1::2]]) % 10 == 0


# A full stop parts decimals too, so all four groups have to be there.
payment_card_dotted = pattern(
    "CREDIT_CARD",
    r"(?<![\w.,-]) (?=[2-6]) [0-9]{4}\.[0-9]{4}\.[0-9]{4}\.[0-9]{4} (?! \w | [.,-]\d )",
    check=lambda match: luhn(match[0].replace(".", "")),
)

_IBAN_STRETCH = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,30}")


@recogniser("IBAN", within=_IBAN_STRETCH)
def iban(text: str) -> Iterator[Range]:
    """International bank account numbers, by length and structure of the country and check digits."""
    position = 0
    while stretch := _IBAN_STRETCH.search(text, position):
        end = _iban_end(text, stretch)
        position = stretch.start() + 4 if end is None else end
        if end is not None:
            yield stretch.start(), end


def _iban_end(text: str, stretch: re.Match[str]) -> int | None:
    # The stretch may have run on into the words that follow the number.
    for end in range(stretch.end(), stretch.start() + 14, -1):
        if not text[end - 1].isalnum() or text[end : end + 1].isalnum():
            continue
        compact = re.sub("[ -]", "", text[stretch.start() : end])
        if int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97 == 1:
            from stdnum import iban as standard

            if standard.is_valid(compact):
                return end
    return None


# Where the text says what the number is, a wrong digit makes it no less someone's.
payment_card_in_context = pattern(
    "CREDIT_CARD",
    r"""(?<!\w) (?:(?:credit|debit|bank|gift)\s?card|card|visa|mastercard|amex|american\sexpress|discover)
    (?:\s(?:number|no|num|nr)\.?)? (?!\w) [^\d\n]{0,16}
    (?P<value> \d{4}(?:[ .\u00a0-]?\d){9,15} ) (?![\w-]|[ ]?\d)""",
    flags=re.IGNORECASE,
)

iban_in_context = pattern(
    "IBAN",
    r"""(?<!\w) iban (?!\w) (?:\s(?:number|no|num)\.?)? \s{0,2}(?:[:=#]|is|was)? \s{0,2}
    (?P<value> (?-i:[A-Z]{2})[0-9]{2} (?: (?-i:[A-Z0-9]){11,30}
        | (?:[ -](?-i:[A-Z0-9]){4}){2,7} (?:[ -](?-i:[A-Z0-9]){1,3}(?!\w))? ) )
    (?!\w)""",
    flags=re.IGNORECASE,
)

_MONTH_AND_YEAR = (
    r"(?: (?:0?[1-9]|1[0-2])\s?[/.-]\s?(?:20)?[2-4]\d | (?:0[1-9]|1[0-2])(?:20)?[2-4]\d"
    r"| (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?,?[ ](?:20|['’])[2-4]\d )"
)

card_expiry = pattern(
    "CARD_EXPIRY",
    rf"""(?<!\w) (?: exp(?:\.|iry|ires?|iration|iring)? (?:\s(?:date|dt|on|in|at|by|of))?
      | (?:valid|good)\s(?:thru|through|until|till|to)
      | (?:card|it)\sruns\sout )
    (?!\w) \s{{0,2}} (?:[:=(]|is|was|on|in)? \s{{0,2}} (?P<value>{_MONTH_AND_YEAR}) (?! \w | [/.-]\d )""",
    flags=re.IGNORECASE,
    words=("exp", "expiry", "expires", "expire", "expiration", "expiring", "valid", "good", "runs"),
)

_A_CARD = r"(?<![\w.]) \d{4} (?:[ -]?\d){8,15} [\s,;|/-]{1,3}"

card_expiry_after_number = pattern(
    "CARD_EXPIRY", rf"{_A_CARD} (?P<value> (?:0[1-9]|1[0-2])\s?[/-]\s?(?:20)?[2-4]\d ) (?! \w | [/.-]\d )"
)

_VERIFICATION = (
    r"(?: cvv2? | cvc2? | csc | cvn | cav2? | (?:card\s)?(?:security|verification)\s(?:code|value|number|digits)"
    r"| (?:3|three|4|four)[ -]digit\s(?:security\s)?(?:code|number) | (?:code|number|digits)\s(?:on\sthe|on)\sback )"
)

card_verification = pattern(
    "CVV",
    rf"""(?<!\w) {_VERIFICATION} (?!\w) (?:\s(?:code|number|no\.?|num))?
    (?:\s(?:on\sthe|on|at\sthe)\s(?:back|front|card))?
    (?:\sof\sthe\scard)? \s{{0,2}} (?:[:=\#(/]|is|was|['’]s)? \s{{0,2}} (?P<value> \d{{3,4}} ) (?! \w | [.,:/-]\d |
      [ ]?% )""",
    flags=re.IGNORECASE,
    words=("cvv", "cvc", "csc", "cvn", "cav", "security", "verification", "digit", "back"),
)

card_verification_after_number = pattern(
    "CVV",
    rf"{_A_CARD} (?:0[1-9]|1[0-2])[/-](?:20)?[2-4]\d [\s,;|]{{1,3}} (?P<value> \d{{3,4}} ) (?! \w | [/.,:-]\d )",
)
