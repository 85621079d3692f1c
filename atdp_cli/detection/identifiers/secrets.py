"""Keys and tokens of well-known services."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.recogniser import Recogniser, either, pattern, recogniser


def _is_varied(match: re.Match[str]) -> bool:
    """Not `aaaaaaaa` or the like, which stand for a key in a manual."""
    return len(set(match["value"])) >= 8


KEYS: dict[str, Recogniser] = {
    # AWS access key ids, then the secret that goes with one.
    "aws_id": pattern("API_KEY", r"(?<!\w) (?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA)[A-Z0-9]{16} (?!\w)"),
    "aws_secret": pattern(
        "API_KEY",
        r"""(?i)aws[ _-]?secret(?:[ _-]?access)?(?:[ _-]?key)? ["']? (?:\s{0,3}[:=]|\sis)? \s{0,3} ["']?
        (?P<value>[A-Za-z0-9/+=]{40}) (?![A-Za-z0-9/+=])""",
        check=_is_varied,
    ),
    "slack_webhook": pattern("API_KEY", r"hooks\.slack\.com/services/ (?P<value>[A-Za-z0-9/]{20,100})"),
    # Stripe, and the secret that signs its webhooks.
    "stripe": pattern("API_KEY", r"(?<!\w) (?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{10,247} (?!\w)"),
    "stripe_webhook": pattern("API_KEY", r"(?<!\w) whsec_[0-9A-Za-z+/=]{24,80} (?![\w+/=])"),
    # SendGrid, Twilio, Telegram.
    "sendgrid": pattern("API_KEY", r"(?<![\w.]) SG\.[\w-]{16,32}\.[\w-]{32,64} (?![\w-])"),
    "twilio": pattern("API_KEY", r"(?<!\w) (?:AC|SK)[0-9a-f]{32} (?!\w)"),
    "telegram": pattern("API_KEY", r"(?<![\w:]) [0-9]{8,10}:AA[\w-]{33} (?![\w-])"),
    # Azure's storage, in a connection string.
    "azure_storage": pattern("API_KEY", r"AccountKey=(?P<value>[A-Za-z0-9+/]{86}==)(?!=)"),
    # Services whose keys begin with a word of their own; a digit or a capital tells a key from words.
    "hosted": pattern(
        "API_KEY",
        rf"""(?<![\w-]) {either("key prefixes")} (?=[A-Za-z_.-]{{0,64}}[0-9]|[a-z_.-]{{0,64}}[A-Z])
        [\w.=-]{{10,255}} (?<![.]) (?![\w-])""",
    ),
    # Any other, by what stands before it: the header of a request, or the name of a setting.
    "authorization": pattern(
        "API_KEY",
        r"""(?i)(?<!\w) authorization ["']? \s{0,2} [:=] \s{0,2} ["']? (?:bearer|basic|token) [ ]{1,2}
        (?P<value> [\w.~+/-]{8,4096}={0,2} (?<!\.) )""",
    ),
    "setting": pattern(
        "API_KEY",
        rf"""(?i)(?<![A-Za-z0-9])
        {either("key kinds")}
        [ _-]? (?:key|token|secret)(?:[ _-]?(?:id|value|key))? ["']?
        \s{{0,3}} (?: [:=] | (?:is|was)(?!\w) ) \s{{0,3}} ["'`]?
        (?P<value> (?=[\w.+/~-]{{0,127}}?[0-9])
        (?=[\w.+/~-]{{0,127}}?[A-Za-z]) [\w.+/~-]{{16,512}}={{0,2}} (?<!\.) ) (?!\w)""",
        check=_is_varied,
    ),
    # JSON Web Tokens (RFC 7519): header and payload are JSON objects, so both begin with {" in base64.
    "jwt": pattern("JWT", r"(?<![\w-]) eyJ[\w-]{8,4096}+ \. eyJ[\w-]{4,8192}+ \. [\w-]{0,4096}+"),
}

_TOKEN = re.compile(r"(?<![\w+/=.-])[A-Za-z0-9][A-Za-z0-9_+/-]{22,511}+=*+(?![\w+/@(.-])")

BITS, CHANGES = 3.0, 0.25
"""A token is random if its characters have so much entropy each, in bits, and so many neighbours are of two classes."""


@recogniser("CODE")
def random_token(text: str) -> Iterator[Range]:
    """Long tokens of letters and digits that look drawn at random: `is_random`."""
    return (match.span() for match in _TOKEN.finditer(text) if is_random(match[0]))


def is_random(token: str) -> bool:
    """Whether the capitals, small letters and digits of a token are mixed as those of words are not.

    Of 2,000 random tokens of 24, 32 and 64 characters each it takes 93, 97 and 100 % in base 62, 98, 99 and 100 % in
    hex, 87, 93 and 98 % in base 64; of WikiText-2 test and ABCD (2.4 million characters) no word, and of 3.5 million
    characters of Python source 5.
    """
    classes = ["A" if each.isupper() else "a" if each.isalpha() else "0" if each.isdigit() else "-" for each in token]
    if classes.count("0") < 2 or ("-" in classes and classes.count("-") > len(token) / 8):
        return False
    changes = sum(one != other for one, other in itertools.pairwise(classes)) / (len(token) - 1)
    bits = -sum(count / len(token) * log2(count / len(token)) for count in Counter(token).values())
    return changes >= CHANGES and bits >= BITS


_KEY = r"(?:[A-Z0-9]{1,16}[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?"

_BEGIN = re.compile(rf"-----BEGIN[ ]{_KEY}-----|----[ ]BEGIN[ ]{_KEY}[ ]----")

_HEADER = r"(?:Proc-Type|DEK-Info|Comment|Subject|Version|Hash|Charset):[ ][^\n]{0,120}\n"

_BODY = re.compile(rf"(?:{_HEADER}|[A-Za-z0-9+/=\s]|\\[nr])*+")

_END = re.compile(rf"-----END[ ]{_KEY}-----|----[ ]END[ ]{_KEY}[ ]----")


@recogniser("PRIVATE_KEY")
def private_key(text: str) -> Iterator[Range]:
    """PEM blocks of private keys (RFC 7468) and those of SSH, also where the end is missing."""
    position = 0
    while begin := _BEGIN.search(text, position):
        body = _BODY.match(text, begin.end())
        position = body.end() if body else begin.end()
        if end := _END.match(text, position):
            position = end.end()
        yield begin.start(), begin.start() + len(text[begin.start() : position].rstrip())


# The part of a PuTTY key file that is secret.
putty_key = pattern(
    "PRIVATE_KEY",
    r"Private-Lines:[ ]\d{1,3}\r?\n"
    r"(?P<value> (?:[A-Za-z0-9+/=]{16,64}\r?\n){0,200} [A-Za-z0-9+/=]{4,64} (?![\w+/=:-]) )",
)
