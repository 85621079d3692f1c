"""Addresses on networks."""

import ipaddress
import re
from collections.abc import Iterator

from atdp_cli.text.detection.identifiers.recogniser import pattern, recogniser
from atdp_cli.text.detection.spans import Range

_BEFORE_A_VERSION = re.compile(
    r"(?<!\w)(?:version|ver|v|release|build|firmware|section|chapter|clause)\.?[ ]\Z", re.IGNORECASE
)


def _is_ipv4(match: re.Match[str]) -> bool:
    start = match.start("value")
    if _BEFORE_A_VERSION.search(match.string, max(0, start - 12), start) and "/" not in match["value"]:
        return False
    return all(int(part) < 256 for part in match["value"].split("/")[0].split("."))


ipv4 = pattern(
    "IP_ADDRESS",
    r"(?<![\w.]) (?P<value> [0-9]{1,3}(?:\.[0-9]{1,3}){3} (?:/[0-9]{1,2}(?!\d))? ) (?! \w | \.\d)",
    check=_is_ipv4,
    needs=".",
)

_IPV6_STRETCH = re.compile(r"[0-9A-Fa-f:.]{2,45}+(?![0-9A-Fa-f:.])")


# The interface that an address is on, or how much of it names the network.
_AFTER_IPV6 = re.compile(r"(?:%[\w.-]{0,15}\w)?(?:/\d{1,3}(?![\w.]))?")


@recogniser("IP_ADDRESS")
def ipv6(text: str) -> Iterator[Range]:
    """IPv6 addresses that hold a digit; without one, `add::bad` could be code."""
    if text.count(":") < 2:
        return
    for stretch in _IPV6_STRETCH.finditer(text):
        if stretch[0].count(":") < 2:
            continue
        for start, end in _trimmed(stretch):
            candidate = text[start:end]
            around = text[max(start - 1, 0) : start] + text[end : end + 1]
            if any(c.isalnum() or c == "_" for c in around) or not any(c.isdigit() for c in candidate):
                continue
            if _is_ipv6(candidate):
                yield start, _AFTER_IPV6.match(text, end).end()  # type: ignore[union-attr]
                break


def _trimmed(stretch: re.Match[str]) -> Iterator[Range]:
    """The stretch as it is, then without the punctuation of the sentence around it."""
    start, end = stretch.span()
    left = 1 if stretch[0][0] in ":." else 0
    right = 1 if stretch[0][-1] in ":." else 0
    yield start, end
    yield start, end - right
    yield start + left, end
    yield start + left, end - right


def _is_ipv6(candidate: str) -> bool:
    try:
        ipaddress.IPv6Address(candidate)
    except ValueError:
        return False
    return True


_PAIR = "[0-9A-Fa-f]{2}"

mac = pattern(
    "MAC_ADDRESS",
    rf"(?<![\w:.-]) (?: {_PAIR} (?P<mark>[:-]) (?:{_PAIR}(?P=mark)){{4}} (?:{_PAIR}(?P=mark){_PAIR}(?P=mark))? {_PAIR}"
    rf"| [0-9A-Fa-f]{{4}}\.[0-9A-Fa-f]{{4}}\.[0-9A-Fa-f]{{4}} ) (?! \w | [:-]\w )",
)

url_with_credentials = pattern(
    "URL_CREDENTIALS",
    r"""(?<![A-Za-z0-9+.-]) [A-Za-z][A-Za-z0-9+.-]{1,15}:// [^\s/:@]{0,256} : [^\s/]{1,256} @
    [^\s<>"'`]{1,2048}""",
    needs="://",
)

# The keys that a link carries after its question mark: whoever has the link has the access.
url_with_token = pattern(
    "URL_CREDENTIALS",
    r"""[?&;] (?:access_?token|id_token|refresh_token|auth(?:_?token)?|token|api_?key|apikey|client_secret|secret|sig
        |signature|x-amz-(?:signature|security-token)|x-goog-signature|password|passwd|pwd|session_?id|sid|jwt)
    = (?P<value> [^\s&#"'<>]{6,2048} )""",
    flags=re.IGNORECASE,
    needs="=",
)

mac_in_context = pattern(
    "MAC_ADDRESS",
    r"""(?<!\w) mac(?:\s(?:address|addr\.?|id))? (?!\w) [ ]{0,2} (?:[:=\#]|is|was)? [ ]{0,2}
    (?P<value> [0-9A-F]{12} | [0-9A-F]{6}-[0-9A-F]{6} | (?:[0-9A-F]{1,2}:){5}[0-9A-F]{1,2} ) (?![\w:-])""",
    flags=re.IGNORECASE,
    words=("mac",),
)
