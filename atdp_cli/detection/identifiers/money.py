"""Payment cards, bank accounts, and what someone earns, owes, holds and pays for their home."""

import re
from collections.abc import Iterator

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.recogniser import either, listed, pattern, recogniser

# Major issuers' first digits: Maestro, Visa, Mastercard, Discover, UnionPay, Diners, JCB, American Express.
_ISSUER = re.compile(r"2[2-7]|[3-6]|1800|2131")

_CARD_STRETCH = re.compile(r"(?<!\d)(?<!\d\.)\d(?:[ \u00a0–-]?\d){11,}+")

_DIGITS = re.compile(r"\d+")

_FRACTION = re.compile(r"\.\d")


@recogniser("CREDIT_CARD")
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
    from stdnum import luhn as standard

    return bool(standard.is_valid("".join(str(int(digit)) for digit in digits)))


# A full stop parts decimals too, so all four groups have to be there.
payment_card_dotted = pattern(
    "CREDIT_CARD",
    r"(?<![\w.,-]) (?=[2-6]) [0-9]{4}\.[0-9]{4}\.[0-9]{4}\.[0-9]{4} (?! \w | [.,-]\d )",
    check=lambda match: luhn(match[0].replace(".", "")),
)

_IBAN_STRETCH = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,30}")


@recogniser("IBAN")
def iban(text: str) -> Iterator[Range]:
    """International bank account numbers, by length and structure of the country and check digits."""
    position = 0
    while stretch := _IBAN_STRETCH.search(text, position):
        end = _iban_end(text, stretch)
        position = stretch.start() + 4 if end is None else end
        if end is not None:
            yield stretch.start(), end


def _iban_end(text: str, stretch: re.Match[str]) -> int | None:
    from stdnum import iban as standard

    # The stretch may have run on into the words that follow the number.
    for end in range(stretch.end(), stretch.start() + 14, -1):
        if not text[end - 1].isalnum() or text[end : end + 1].isalnum():
            continue
        compact = re.sub("[ -]", "", text[stretch.start() : end])
        if standard.is_valid(compact):
            return end
    return None


# Where the text says what the number is, a wrong digit makes it no less someone's.
payment_card_in_context = pattern(
    "CREDIT_CARD",
    r"""(?i)(?<!\w) (?:(?:credit|debit|bank|gift)\s?card|card|visa|mastercard|amex|american\sexpress|discover)
    (?:\s(?:number|no|num|nr)\.?)? (?!\w) [^\d\n]{0,16}
    (?P<value> \d{4}(?:[ .\u00a0-]?\d){9,15} ) (?![\w-]|[ ]?\d)""",
)

iban_in_context = pattern(
    "IBAN",
    r"""(?i)(?<!\w) iban (?!\w) (?:\s(?:number|no|num)\.?)? \s{0,2}(?:[:=#]|is|was)? \s{0,2}
    (?P<value> (?-i:[A-Z]{2})[0-9]{2} (?: (?-i:[A-Z0-9]){11,30}
        | (?:[ -](?-i:[A-Z0-9]){4}){2,7} (?:[ -](?-i:[A-Z0-9]){1,3}(?!\w))? ) )
    (?!\w)""",
)

_MONTH_AND_YEAR = (
    r"(?: (?:0?[1-9]|1[0-2])\s?[/.-]\s?(?:20)?[2-4]\d | (?:0[1-9]|1[0-2])(?:20)?[2-4]\d"
    r"| (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?,?[ ](?:20|['’])[2-4]\d )"
)

card_expiry = pattern(
    "CARD_EXPIRY",
    rf"""(?i)(?<!\w) (?: exp(?:\.|iry|ires?|iration|iring)? (?:\s(?:date|dt|on|in|at|by|of))?
      | (?:valid|good)\s(?:thru|through|until|till|to)
      | (?:card|it)\sruns\sout )
    (?!\w) \s{{0,2}} (?:[:=(]|is|was|on|in)? \s{{0,2}} (?P<value>{_MONTH_AND_YEAR}) (?! \w | [/.-]\d )""",
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
    rf"""(?i)(?<!\w) {_VERIFICATION} (?!\w) (?:\s(?:code|number|no\.?|num))?
    (?:\s(?:on\sthe|on|at\sthe)\s(?:back|front|card))?
    (?:\sof\sthe\scard)? \s{{0,2}} (?:[:=\#(/]|is|was|['’]s)? \s{{0,2}} (?P<value> \d{{3,4}} ) (?! \w | [.,:/-]\d |
      [ ]?% )""",
)

card_verification_after_number = pattern(
    "CVV",
    rf"{_A_CARD} (?:0[1-9]|1[0-2])[/-](?:20)?[2-4]\d [\s,;|]{{1,3}} (?P<value> \d{{3,4}} ) (?! \w | [/.,:-]\d )",
)

_CONTEXT = re.compile(rf"(?<!\w)(?:{either('own money')}|take-home)(?!\w)", re.IGNORECASE)

_BEFORE, _AFTER = 40, 24  # characters

_CURRENCY = either("currencies")

_SYMBOL = r"(?:(?:US|C|A|NZ|HK|S|R)?\$|€|£|¥|₹|₩|₺|zł|Rs\.?|kr\.?)"

_NUMBER = (
    r"\d{1,3}(?:[,.'’\u00a0][0-9]{3}){1,4}(?:[.,]\d{1,2})?(?!\d) | \d{1,3}(?:[ ][0-9]{3}){1,3}(?![\d]) "
    r"| \d{1,9}(?:[.,]\d{1,2})?(?!\d)"
)

_SCALE = r"(?:[ ]?(?:k|thousand|grand|lakhs?|lpa|m|mn|mm|million|bn|billion|crores?)(?!\w))?"

_UNIT = (
    r"(?: \s?/\s?(?:h|hr|hour|d|day|wk|week|mo|mth|month|yr|year|annum)(?!\w) | \s(?:an?|per|each|every)\s(?:hour"
    r"|day|week|fortnight|month|year|annum)"
    r"| \s?(?:p\.?a\.?|p\.?c\.?m\.?|p\.?h\.?|monthly|annually|yearly|weekly|hourly)(?!\w) )?"
)

_WORDS = r"(?:[ ]?(?:dollars?|bucks|euros?|pounds?|quid|rupees|francs|yen|kronor|kroner|crowns|zloty|rand|reais|pesos))"

_AMOUNT = (
    rf"(?: {_SYMBOL}\s?(?:{_NUMBER}) {_SCALE} | (?:{_CURRENCY})\s?(?:{_NUMBER}) {_SCALE} "
    rf"| (?:{_NUMBER}) {_SCALE} (?:\s?(?:{_CURRENCY}|€|£|zł)(?!\w)|{_WORDS}(?!\w)) )"
)


def _is_someones(match: re.Match[str]) -> bool:
    text, (start, end) = match.string, match.span("value")
    large = re.search(r"(?:\d\s?(?:m|mn|mm|bn)|illion|crores?)\b", match["value"], re.IGNORECASE) is not None
    unit = (match["unit"] or "").strip()
    if unit and not (large and unit.endswith("ly")):  # millions annually are a firm's
        return True
    before = text[max(0, start - _BEFORE) : start].rpartition("\n")[2]
    after = text[end : end + _AFTER].partition("\n")[0]
    for near, adjacent in ((before, 14), (after, 10)):
        for word in _CONTEXT.finditer(near):
            name = word[0].lower()
            distance = len(near) - word.end() if near is before else word.start()
            if (name not in listed("weak") or distance <= adjacent) and (not large or name in listed("large")):
                return True
    return False


amount = pattern(
    "MONEY",
    rf"(?i)(?<![\w.,/-]) (?P<value>{_AMOUNT} (?P<unit>{_UNIT}) ) (?! [\w] | [.,]\d )",
    check=_is_someones,
)


def _is_an_amount(match: re.Match[str]) -> bool:
    value = match["value"]
    if match["thousands"]:
        return True
    word = match["word"].lower()
    return (
        word not in listed("bare money in thousands")
        and re.fullmatch(r"(?:19|20)\d\d", value) is None
        and (match["link"] is not None or "," in value or "." in value)
    )


# Without a currency: what the word says has to stand right beside it.
bare_amount = pattern(
    "MONEY",
    rf"""(?i)(?<!\w) (?P<word>{either("bare money")}) (?!\w) (?:\s(?:due|outstanding|remaining|amount|total|payment))?
    \s{{0,2}} (?P<link> [:=] | (?:is|was|of|at|to|will\sbe|would\sbe|now|about|around|like|currently
      |went\sup\sto)(?!\w) (?:\s(?:about|around|now|only))? )? \s{{0,2}}
    (?P<value> \d{{1,3}}(?:,\d{{3}}){{1,3}}(?:\.\d\d)?(?!\d) | \d{{1,4}}(?:\.\d)?(?P<thousands>[ ]?k(?!\w)) |
      \d{{3,7}}(?:\.\d\d)? ) {_UNIT}
    (?! \w | [.,:/-]\d | [ ]?% | [ ](?:days?|years?|months?|weeks?|hours?|points?|people|miles|km|kg|mg) )""",
    check=_is_an_amount,
)


# The amount first: 142k base, 95k a year.
amount_before_its_kind = pattern(
    "MONEY",
    r"""(?i)(?<![\w.,/-]) (?P<value> \d{2,3}(?:\.\d)?[ ]?k | \d{2,3},\d{3} )
    (?: \s(?:base|salary|gross|net|total\scomp|tc|comp|package|bonus|pension|before\stax|after\stax|p\.?a\.?)(?!\w)
      | \s?(?:/|an?\s|per\s)(?:yr|year|annum)(?!\w) )""",
)
