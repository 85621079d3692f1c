"""Machines by name, and the pages that lead to someone or let someone in."""

import re
from collections.abc import Iterator

from atdp_cli.text.detection.identifiers.recogniser import pattern, recogniser
from atdp_cli.text.detection.spans import Range

_INSIDE = ("local", "lan", "corp", "internal", "intranet", "intra", "localdomain", "localnet")
_NOT_A_HOST = frozenset(
    {"self", "this", "cls", "config", "settings", "env", "super", "conf", "module", "options", "args", "app", "package"}
)

host = pattern(
    "HOST",
    rf"""(?<![\w.@-]) (?:(?<!/)|(?<=//)) (?P<first>[a-z0-9][\w-]{{0,62}}+) \.
    (?:[a-z0-9][\w-]{{0,62}}+\.){{0,6}}(?:{"|".join(_INSIDE)}|home\.arpa)
    (?![\w(-]|\.\w)""",
    flags=re.IGNORECASE,
    check=lambda match: match["first"].lower() not in _NOT_A_HOST,
    words=(*_INSIDE, "arpa"),
)

_ROLES = (
    *(
        "srv",
        "svr",
        "server",
        "db",
        "web",
        "app",
        "api",
        "prod",
        "dev",
        "stg",
        "staging",
        "uat",
        "vm",
        "dc",
        "fs",
        "nas",
        "san",
    ),
    *("sql", "mail", "mx", "gw", "fw", "vpn", "rtr", "proxy", "redis", "kafka", "mongo", "pg", "postgres", "mysql"),
    *("elastic", "node", "host", "jump", "bastion", "ws", "wks", "nb", "lt", "lap", "pc", "esx", "esxi", "hv", "cache"),
    *("worker", "build", "runner", "jenkins", "backup", "dns", "ldap", "prn", "printer"),
)

# A role, then where or for what, then a number: srv-fin-01, db-prod-03; what Windows and a cloud call a machine.
host_by_role = pattern(
    "HOST",
    rf"""(?<![\w.@/-]) (?: (?:{"|".join(_ROLES)}) (?:-[a-z][a-z0-9]{{1,11}}){{1,3}} -? \d{{2,4}} | ip(?:-\d{{1,3}}){{4}}
      | (?-i:DESKTOP|LAPTOP|WIN)-(?=[A-Z]{{0,10}}\d)(?-i:[A-Z0-9]{{7,11}}) ) (?![\w-]|\.\w)""",
    flags=re.IGNORECASE,
    words=(*_ROLES, "ip", "desktop", "laptop", "win"),
)

_MACHINES = (
    *("host", "hostname", "server", "machine", "laptop", "workstation", "desktop", "pc", "node", "computer"),
    *("vm", "instance", "printer", "notebook", "ssh", "rdp", "ping", "box", "asset"),
)

host_in_context = pattern(
    "HOST",
    rf"""(?<!\w) (?:{"|".join(_MACHINES)}) (?!\w) (?:\s(?:name|id|tag|into|to))? (?!\w)
    (?: \s{{0,2}}(?:[:=]|is|was|called|named)\s{{1,2}} | [:=] | \s{{1,2}} )
    (?P<value> (?=[a-z-]{{0,30}}[0-9]) [a-z][a-z0-9]{{1,14}} (?: -[a-z0-9]{{1,15}} ){{1,5}}
      (?:\.[a-z][a-z0-9-]{{1,30}}){{0,5}} )
    (?![\w-]|\.\w)""",
    flags=re.IGNORECASE,
    check=lambda match: match["value"].isupper() or ("-" in match["value"] and match["value"][-1].isdigit()),
    words=_MACHINES,
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
    (?:https?|ftp|smb|ssh|ldap)://(?: (?:[\w-]{{1,63}}\.){{1,7}}(?:{"|".join(_INSIDE)}) |
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

# Parts of these sites that are nobody's.
_PAGES = frozenset(
    {"about", "explore", "features", "hashtag", "help", "home", "i", "intent", "jobs", "legal", "login", "marketplace"}
    | {"orgs", "p", "pages", "pricing", "privacy", "reel", "search", "settings", "share", "sharer", "sharer.php"}
    | {"signup", "sponsors", "stories", "terms", "topics", "trending", "watch", "groups", "events", "apps", "business"}
)


def _is_a_persons(page: re.Match[str]) -> bool:
    """Whoever owns a repository is mostly a firm or a project."""
    repository = page["more"].strip("/") and _REPOSITORIES.search(page[0])
    return not repository and page["name"].lower() not in _PAGES


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
