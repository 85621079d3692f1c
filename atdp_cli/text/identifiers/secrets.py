"""Keys and tokens of well-known services."""

import re
from collections.abc import Iterator

from atdp_cli.text.identifiers.found import Found, Recogniser, pattern

KEYS: tuple[Recogniser, ...] = (
    # AWS access key ids, then the secret that goes with one.
    pattern("API_KEY", r"(?<!\w) (?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA)[A-Z0-9]{16} (?!\w)"),
    pattern(
        "API_KEY",
        r"""aws_?secret(?:_?access)?_?key ["']? \s{0,3} [:=] \s{0,3} ["']? (?P<value>[A-Za-z0-9/+=]{40})
        (?![A-Za-z0-9/+=])""",
        flags=re.IGNORECASE,
    ),
    # GitHub.
    pattern("API_KEY", r"(?<!\w) gh[pousr]_[A-Za-z0-9]{36,255} (?!\w)", needs="gh"),
    pattern("API_KEY", r"(?<!\w) github_pat_\w{22,255} (?!\w)", needs="github_pat_"),
    # Slack.
    pattern("API_KEY", r"(?<!\w) xox[abeoprs]-[A-Za-z0-9-]{10,250} (?!\w)", needs="xox"),
    pattern("API_KEY", r"hooks\.slack\.com/services/ (?P<value>[A-Za-z0-9/]{20,100})", needs="hooks.slack.com"),
    # Google.
    pattern("API_KEY", r"(?<!\w) AIza[0-9A-Za-z_-]{35} (?![\w-])", needs="AIza"),
    # Stripe.
    pattern("API_KEY", r"(?<!\w) (?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{10,247} (?!\w)", needs="k_"),
    # JSON Web Tokens (RFC 7519): header and payload are JSON objects, so both begin with {" in base64.
    pattern("JWT", r"(?<![\w-]) eyJ[\w-]{8,4096}+ \. eyJ[\w-]{4,8192}+ \. [\w-]{0,4096}+", needs="eyJ"),
)

_BEGIN = re.compile(r"-----BEGIN[ ](?:[A-Z0-9]{1,16}[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----")
_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s]|\\[nr]|[A-Za-z-]{3,10}:[ ][^\n]{0,80}\n)*+")
_END = re.compile(r"-----END[ ](?:[A-Z0-9]{1,16}[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----")


def private_key(text: str) -> Iterator[Found]:
    """PEM blocks of private keys (RFC 7468), also where the end is missing."""
    position = 0
    while begin := _BEGIN.search(text, position):
        body = _BODY.match(text, begin.end())
        position = body.end() if body else begin.end()
        if end := _END.match(text, position):
            position = end.end()
        yield begin.start(), begin.start() + len(text[begin.start() : position].rstrip()), "PRIVATE_KEY"
