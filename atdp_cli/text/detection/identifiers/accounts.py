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
    words=("user", "username", "userid", "log", "login", "screen", "screenname", "gamer", "gamertag", "handle"),
)

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_CODED = re.compile(r"(?=[A-Z-]{0,30}\d)[A-Z0-9-]{5,31}")


def _identifies(match: re.Match[str]) -> bool:
    value, named, linked = match["value"], match["kind"] is not None, match["link"] is not None
    if not named and (match["word"] is None or match["word"].lower() in _VAGUE) and _CODED.fullmatch(value) is None:
        return False
    if not named and match["link"] is not None and "(" in match["link"] and _CODED.fullmatch(value) is None:
        return False
    if not any(character.isdigit() for character in value):
        return named and linked and len(value) >= 6 and value.isupper()
    return named or linked or (len(value) >= 5 and _YEAR.match(value) is None)


_KINDS = (
    *("account", "acct", "order", "customer", "client", "member", "membership", "policy", "invoice", "case", "ticket"),
    *("reference", "ref", "confirmation", "tracking", "booking", "reservation", "passport", "license", "licence"),
    *(
        "employee",
        "patient",
        "student",
        "claim",
        "routing",
        "subscription",
        "transaction",
        "shipment",
        "loan",
        "mrn",
        "vin",
    ),
    *("npi", "imei", "badge", "serial", "docket", "voucher", "payroll", "enrolment", "enrollment", "registration"),
    *(
        "incident",
        "complaint",
        "enquiry",
        "parcel",
        "consignment",
        "waybill",
        "awb",
        "rma",
        "pnr",
        "warranty",
        "contract",
    ),
    *(
        "lease",
        "permit",
        "certificate",
        "visa",
        "staff",
        "personnel",
        "crew",
        "loyalty",
        "flyer",
        "asset",
        "meter",
        "mpan",
    ),
    *("mprn", "iccid", "matter", "quote", "payment", "receipt", "refund", "prescription", "library", "locker", "donor"),
    *(
        "beneficiary",
        "taxpayer",
        "vat",
        "ein",
        "siret",
        "iata",
        "bic",
        "swift",
        "requisition",
        "application",
        "referral",
    ),
)
# What stands for a number only where "number" or a sign follows.
_VAGUE = (
    *(
        "visa",
        "staff",
        "personnel",
        "crew",
        "loyalty",
        "flyer",
        "asset",
        "meter",
        "matter",
        "quote",
        "payment",
        "receipt",
    ),
    *(
        "library",
        "locker",
        "donor",
        "contract",
        "lease",
        "permit",
        "certificate",
        "warranty",
        "crew",
        "application",
        "refund",
    ),
    *("complaint", "vat", "beneficiary", "taxpayer", "enquiry", "parcel", "bic", "swift", "iata", "referral"),
)

account = pattern(
    "ACCOUNT",
    rf"""(?<!\w) (?: (?P<word>{"|".join(_KINDS)}) (?:\s(?:tag|card|file|ref))? | sort\scode
        | service\stag | work\sorder | purchase\sorder | p\.?o\.? | file | job | request | device | group | plan
        )s? (?!\w) \.?
    (?P<kind> \s{{0,2}}(?:number|num|no|nr|id|code|reference|ref|confirmation)s?(?!\w)\.? )?
    (?P<link> \s{{0,2}}(?:[:=\#]|is|was)(?!\w) | \s{{0,2}}[:=\#(] )?
    \s{{0,2}} \#? (?P<value>[A-Za-z0-9][A-Za-z0-9-]{{3,30}}) (?!\w)""",
    flags=re.IGNORECASE,
    check=_identifies,
    words=(
        *_KINDS,
        *(f"{kind}s" for kind in _KINDS),
        "licenses",
        "licences",
        "code",
        "codes",
        "tag",
        "tags",
        "po",
        "p",
        "file",
        "files",
        "job",
        "jobs",
        "request",
        "requests",
        "device",
        "group",
        "plan",
        "policies",
    ),
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
    words=("ends", "ending", "finishes", "finishing", "last"),
)

_SERVICES = (
    *(
        "twitter",
        "instagram",
        "insta",
        "discord",
        "snapchat",
        "telegram",
        "tiktok",
        "skype",
        "mastodon",
        "bluesky",
        "reddit",
    ),
    *(
        "twitch",
        "github",
        "gitlab",
        "steam",
        "psn",
        "xbox",
        "linkedin",
        "facebook",
        "wechat",
        "venmo",
        "cashapp",
        "kik",
        "signal",
    ),
)

# A name at a service named before it: with an @ or a digit in it, since other words may follow.
social_handle = pattern(
    "USERNAME",
    rf"""(?<!\w) (?:{"|".join(_SERVICES)}|cash\sapp)
    (?:\s(?:handle|id|account|user|tag|name))? (?!\w)
    (?: \s{{0,2}}[:=]\s{{0,2}} | \s{{1,2}}is\s{{1,2}} | \s{{1,2}}\(?(?=[@$]) )
    (?P<value>
      (?: [@$]\w[\w.-]{{1,38}} | (?=[a-z._-]{{1,30}}[\d\#])\w[\w.-]{{2,38}} ) (?<![.-]) (?:\#\d{{4}})? )
        (?![\w@:/\#])""",
    flags=re.IGNORECASE,
    words=(*_SERVICES, "app"),
)

code = pattern("CODE", r"(?<![\w-]) (?=[A-Z]{0,31}[0-9]) (?=[0-9]{0,31}[A-Z]) [A-Z0-9]{8,32} (?![\w-])")

password = pattern(
    "PASSWORD",
    r"""(?<![A-Za-z0-9]) (?:pass(?:word|code|phrase)|passwd|pwd) (?!\w) ["']?
    (?: \s{0,2}[:=]\s{0,2} | (?:\s{1,2}(?:is|was)|['’]s)\s{1,2} (?=[^\s\d]{0,64}\d) )
    ["'“‘]? (?P<value>[^\s"'”’]{3,64})""",
    flags=re.IGNORECASE,
    words=("password", "passcode", "passphrase", "passwd", "pwd"),
)

# What is typed at a bank's machine or a door. Years and amounts do not follow these words so closely.
pin = pattern(
    "PASSWORD",
    r"""(?<!\w) (?: (?-i:PIN|Pin) | (?:my|your|his|her|their|the|atm|card|door|alarm|sim)\spin | pin\s(?:code|number)
        | (?:otp|(?:verification|security|access|door|alarm|gate|one-time)\scode) | cvv2? | cvc2? )
    (?:\s(?:code|number|no\.?))? (?!\w) \s{0,2} (?:[:=\#]|is|was|['’]s)? \s{0,2}
    (?P<value> \d{3,8} ) (?! \w | [.,:/-]\d )""",
    flags=re.IGNORECASE,
    words=("pin", "otp", "code", "cvv", "cvc"),
)
