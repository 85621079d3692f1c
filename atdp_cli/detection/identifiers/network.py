"""Addresses on networks, machines by name, and the pages that lead to someone or let someone in."""

import ipaddress
import re
from collections.abc import Iterator

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.recogniser import either, listed, pattern, recogniser

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
)


# The keys that a link carries after its question mark: whoever has the link has the access.
url_with_token = pattern(
    "URL_CREDENTIALS",
    r"""(?i)[?&;]
    (?:access_?token|id_token|refresh_token|auth(?:_?token)?|token|api_?key|apikey|client_secret|secret|sig
        |signature|x-amz-(?:signature|security-token)|x-goog-signature|password|passwd|pwd|session_?id|sid|jwt)
    = (?P<value> [^\s&#"'<>]{6,2048} )""",
)

mac_in_context = pattern(
    "MAC_ADDRESS",
    r"""(?i)(?<!\w) mac(?:\s(?:address|addr\.?|id))? (?!\w) [ ]{0,2} (?:[:=\#]|is|was)? [ ]{0,2}
    (?P<value> [0-9A-F]{12} | [0-9A-F]{6}-[0-9A-F]{6} | (?:[0-9A-F]{1,2}:){5}[0-9A-F]{1,2} ) (?![\w:-])""",
)

host = pattern(
    "HOST",
    rf"""(?i)(?<![\w.@-]) (?:(?<!/)|(?<=//)) (?P<first>[a-z0-9][\w-]{{0,62}}+) \.
    (?:[a-z0-9][\w-]{{0,62}}+\.){{0,6}}(?:{either("inside")}|home\.arpa)
    (?![\w(-]|\.\w)""",
    check=lambda match: match["first"].lower() not in listed("not a host"),
)


# A role, then where or for what, then a number: srv-fin-01, db-prod-03; what Windows and a cloud call a machine.
host_by_role = pattern(
    "HOST",
    rf"""(?i)(?<![\w.@/-])
    (?: {either("host roles")} (?:-[a-z][a-z0-9]{{1,11}}){{1,3}} -? \d{{2,4}} | ip(?:-\d{{1,3}}){{4}}
      | (?-i:DESKTOP|LAPTOP|WIN)-(?=[A-Z]{{0,10}}\d)(?-i:[A-Z0-9]{{7,11}}) ) (?![\w-]|\.\w)""",
)

host_in_context = pattern(
    "HOST",
    rf"""(?i)(?<!\w) {either("machines")} (?!\w) (?:\s(?:name|id|tag|into|to))? (?!\w)
    (?: \s{{0,2}}(?:[:=]|is|was|called|named)\s{{1,2}} | [:=] | \s{{1,2}} )
    (?P<value> (?=[a-z-]{{0,30}}[0-9]) [a-z][a-z0-9]{{1,14}} (?: -[a-z0-9]{{1,15}} ){{1,5}}
      (?:\.[a-z][a-z0-9-]{{1,30}}){{0,5}} )
    (?![\w-]|\.\w)""",
    check=lambda match: match["value"].isupper() or ("-" in match["value"] and match["value"][-1].isdigit()),
)

_LINK = re.compile(
    r"(?<![\w@./-])(?:[a-z][a-z0-9+.-]{1,15}://)?(?:[\w-]{1,63}+\.){0,8}[\w-]{1,63}+(?::\d{2,5})?/[^\s<>\"'`\\|{}]{0,2048}+",
    re.IGNORECASE,
)


# A last part that only a program would make up.
_MADE_UP = r"(?=[\w~.%-]{0,40}[0-9])(?=[\w~.%-]{0,40}[A-Za-z])[\w~.%-]{8,512}"

_PRIVATE = re.compile(
    rf"""
    # On a network of one's own: an internal domain, a name without one, a private address.
    (?:https?|ftp|smb|ssh|ldap)://(?: (?:[\w-]{{1,63}}\.){{1,7}}{either("inside")} |
      (?!localhost)[a-z][\w-]{{1,62}}
      | (?:intranet|wiki|jira|confluence|grafana|kibana|jenkins|sharepoint|vpn|admin|staging|internal)\.[\w.-]{{1,253}}
      | 10(?:\.\d{{1,3}}){{3}} | 192\.168(?:\.\d{{1,3}}){{2}} | 172\.(?:1[6-9]|2\d|3[01])(?:\.\d{{1,3}}){{2}} )
      (?::\d{{2,5}})?/
    # Whoever has the link is let in: tokens, shared documents, meetings.
  | \S{{1,512}}? /(?:reset|reset[_-]?password|password[_-]?reset|verify|confirm|activate|invite|invitation|magic
    |magic-link|login
      |auth|token|share|shared|session|sso|unsubscribe|track|claim|join|signup|onboarding
      |download)(?:/[\w-]{{1,40}}){{0,2}}?/
      {_MADE_UP}
  | (?:https?://)?(?: docs\.google\.com/\w{{4,20}}/(?:u/\d/)?d/ | drive\.google\.com/(?:file/d|drive/folders)/
      | (?:www\.)?dropbox\.com/(?:s|scl|sh)/ | [\w-]{{1,63}}\.sharepoint\.com/ | [\w-]{{1,63}}\.slack\.com/archives/
      | [\w-]{{1,63}}\.atlassian\.net/ | [\w.-]{{1,63}}zoom\.us/(?:j|my)/ | zoom\.us/(?:j|my)/ |
      meet\.google\.com/[a-z]{{3}}-
      | teams\.microsoft\.com/l/ | (?:www\.)?notion\.so/ | trello\.com/(?:b|c)/ | 1drv\.ms/ | we\.tl/ |
      discord\.gg/ | chat\.whatsapp\.com/
      ) [^\s/]{{3}}
    # It says whose it is.
  | \S{{1,512}}? /(?:users?|u|profiles?|members?|accounts?|customers?|patients?|employees?|people|orders?
    |invoices?)/ (?=\w{{0,30}}[\d@_])[\w.@%-]{{3,64}}
  | \S{{1,512}}? /~[a-z][\w.-]{{1,32}}
  | \S{{1,512}}? [?&](?:user(?:name|_?id)?|uid|login|e?mail|email_?address|customer(?:_?id)?|account(?:_?id)?
    |member(?:_?id)?|patient(?:_?id)?
      |phone|token|session|ssn|first_?name|last_?name|full_?name|name|dob|order(?:_?id)?|code|otp|invite|key)=
      [^\s&]{{3}}
    """,
    re.VERBOSE | re.IGNORECASE,
)

_PEOPLES = re.compile(
    r"""(?:https?://)? (?:[a-z]{1,6}\.)? (?:
      linkedin\.com/(?:in|pub)/ | (?:twitter|x|instagram|facebook|fb|github|gitlab|keybase|about|venmo|calendly
        |linktr|behance|dribbble)
        \.(?:com|io|me|ee|net)/
      | (?:paypal|wa|t)\.me/ | (?:tiktok|medium|youtube|threads)\.(?:com|net)/@ | reddit\.com/(?:u|user)/ |
      bsky\.app/profile/
      | (?:strava\.com/athletes|steamcommunity\.com/(?:id|profiles)|soundcloud\.com|researchgate\.net/profile
      |orcid\.org)/
      | cash\.app/\$ | mastodon\.(?:social|online)/@ )
    (?P<name> [\w.@%-]{2,64} ) (?P<more> /? (?: [/?\#] [^\s]{1,256} )? )""",
    re.VERBOSE | re.IGNORECASE,
)

_REPOSITORIES = re.compile(r"(?:github|gitlab)\.(?:com|io)/", re.IGNORECASE)


def _is_a_persons(page: re.Match[str]) -> bool:
    """Whoever owns a repository is mostly a firm or a project."""
    repository = page["more"].strip("/") and _REPOSITORIES.search(page[0])
    return not repository and page["name"].lower() not in listed("pages")


@recogniser("URL")
def private_url(text: str) -> Iterator[Range]:
    """Addresses of pages inside a network, of someone, or with a token, a user or an account in them."""
    if "/" not in text:
        return
    for link in _LINK.finditer(text):
        address = link[0].rstrip(".,;:!?)]}*_")
        if "." not in address and "://" not in address:
            continue
        person = _PEOPLES.fullmatch(address)
        if (person is not None and _is_a_persons(person)) or _PRIVATE.match(address):
            yield link.start(), link.start() + len(address)
