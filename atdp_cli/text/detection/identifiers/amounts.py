"""Amounts of someone's money: what they earn, owe, hold and pay for their home."""

import re

from atdp_cli.text.detection.identifiers.recogniser import pattern

# What makes an amount someone's. A price alone is not.
_INCOME = (
    *(
        "salary",
        "salaries",
        "wage",
        "wages",
        "income",
        "earns",
        "earning",
        "earnings",
        "pension",
        "stipend",
        "bonus",
        "payslip",
    ),
    *(
        "paycheck",
        "paycheque",
        "payroll",
        "compensation",
        "allowance",
        "alimony",
        "severance",
        "takehome",
        "gross",
        "net",
    ),
    *(
        "balance",
        "overdraft",
        "savings",
        "debt",
        "debts",
        "owe",
        "owes",
        "owed",
        "owing",
        "arrears",
        "mortgage",
        "rent",
    ),
    *(
        "loan",
        "deposit",
        "deposited",
        "refund",
        "refunded",
        "refunds",
        "withdrew",
        "withdrawal",
        "transfer",
        "transferred",
    ),
    *("reimbursement", "reimbursed", "maintenance", "credited", "payout", "settlement", "inheritance", "inherited"),
    *(
        "pay",
        "base",
        "raise",
        "offer",
        "comp",
        "rate",
        "benefits",
        "fee",
        "fees",
        "bill",
        "worth",
        "limit",
        "billed",
        "charged",
        "overcharged",
        "amount",
        "quoted",
        "approved",
        "credit",
    ),
)
_CONTEXT = re.compile(rf"(?<!\w)(?:{'|'.join(_INCOME)}|take-home)(?!\w)", re.IGNORECASE)
# These say so only right before or after the amount.
_WEAK = frozenset(
    {
        "gross",
        "net",
        "transfer",
        "transferred",
        "maintenance",
        "settlement",
        "pay",
        "base",
        "raise",
        "offer",
    }
    | {"comp", "rate", "benefits", "fee", "fees", "bill", "worth", "limit", "compensation", "allowance", "maintenance"}
    | {"billed", "charged", "overcharged", "amount", "quoted", "approved", "credit"}
)
_PRIVATE_LARGE = frozenset(
    {"salary", "wage", "wages", "owe", "owes", "owed", "debt", "debts", "balance", "income", "bonus"}
)

_BEFORE, _AFTER = 40, 24  # characters
_CODE = r"(?:USD|EUR|GBP|CAD|AUD|NZD|CHF|JPY|CNY|INR|BRL|SEK|NOK|DKK|PLN|CZK|HUF|ZAR|MXN|SGD|HKD|AED|TRY|KRW|RMB)"
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
    rf"(?: {_SYMBOL}\s?(?:{_NUMBER}) {_SCALE} | (?:{_CODE})\s?(?:{_NUMBER}) {_SCALE} "
    rf"| (?:{_NUMBER}) {_SCALE} (?:\s?(?:{_CODE}|€|£|zł)(?!\w)|{_WORDS}(?!\w)) )"
)


def _is_someones(match: re.Match[str]) -> bool:
    text, (start, end) = match.string, match.span("value")
    if match["unit"] is not None and match["unit"].strip():
        return True
    large = re.search(r"(?:\d\s?(?:m|mn|mm|bn)|illion|crores?)\b", match["value"], re.IGNORECASE) is not None
    before = text[max(0, start - _BEFORE) : start].rpartition("\n")[2]
    after = text[end : end + _AFTER].partition("\n")[0]
    for near, adjacent in ((before, 14), (after, 10)):
        for word in _CONTEXT.finditer(near):
            name = word[0].lower()
            distance = len(near) - word.end() if near is before else word.start()
            if (name not in _WEAK or distance <= adjacent) and (not large or name in _PRIVATE_LARGE):
                return True
    return False


amount = pattern(
    "MONEY",
    rf"(?<![\w.,/-]) (?P<value>{_AMOUNT} (?P<unit>{_UNIT}) ) (?! [\w] | [.,]\d )",
    flags=re.IGNORECASE,
    check=_is_someones,
    words=(*_INCOME, "per", "h", "hr", "hour", "mo", "month", "yr", "year", "pa", "pcm", "annum", "monthly"),
)

_PLAIN = (
    "salary",
    "wage",
    "wages",
    "income",
    "rent",
    "balance",
    "mortgage",
    "pension",
    "bonus",
    "debt",
    "base",
    "rate",
    "pay",
    "loan",
    "ctc",
    "deposit",
    "refund",
    "comp",
    "stipend",
    "earn",
    "earns",
    "make",
    "makes",
    "making",
    "overdraft",
    "savings",
    "owe",
    "owes",
)


def _is_an_amount(match: re.Match[str]) -> bool:
    value = match["value"]
    if match["thousands"]:
        return True
    word = match["word"].lower()
    return (
        word not in ("make", "makes", "making", "base", "rate", "comp", "earn", "earns")
        and re.fullmatch(r"(?:19|20)\d\d", value) is None
        and (match["link"] is not None or "," in value or "." in value)
    )


# Without a currency: what the word says has to stand right beside it.
bare_amount = pattern(
    "MONEY",
    rf"""(?<!\w) (?P<word>{"|".join(_PLAIN)}) (?!\w) (?:\s(?:due|outstanding|remaining|amount|total|payment))?
    \s{{0,2}} (?P<link> [:=] | (?:is|was|of|at|to|will\sbe|would\sbe|now|about|around|like|currently
      |went\sup\sto)(?!\w) (?:\s(?:about|around|now|only))? )? \s{{0,2}}
    (?P<value> \d{{1,3}}(?:,\d{{3}}){{1,3}}(?:\.\d\d)?(?!\d) | \d{{1,4}}(?:\.\d)?(?P<thousands>[ ]?k(?!\w)) |
      \d{{3,7}}(?:\.\d\d)? ) {_UNIT}
    (?! \w | [.,:/-]\d | [ ]?% | [ ](?:days?|years?|months?|weeks?|hours?|points?|people|miles|km|kg|mg) )""",
    flags=re.IGNORECASE,
    check=_is_an_amount,
    words=_PLAIN,
)

# The amount first: 142k base, 95k a year.
amount_before_its_kind = pattern(
    "MONEY",
    r"""(?<![\w.,/-]) (?P<value> \d{2,3}(?:\.\d)?[ ]?k | \d{2,3},\d{3} )
    (?: \s(?:base|salary|gross|net|total\scomp|tc|comp|package|bonus|pension|before\stax|after\stax|p\.?a\.?)(?!\w)
      | \s?(?:/|an?\s|per\s)(?:yr|year|annum)(?!\w) )""",
    flags=re.IGNORECASE,
    words=(
        "base",
        "salary",
        "gross",
        "net",
        "comp",
        "tc",
        "package",
        "bonus",
        "pension",
        "tax",
        "pa",
        "p",
        "yr",
        "year",
        "annum",
    ),
)
