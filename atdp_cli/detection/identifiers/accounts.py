"""User names, passwords, codes, and account or order numbers, which mostly their context gives away."""

import re
from collections.abc import Iterator

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.recogniser import either, listed, pattern, recogniser
from atdp_cli.detection.word_lists import all_names, common_words, function_words


def _names_someone(match: re.Match[str]) -> bool:
    value = match["value"].lower()
    return match["link"] in (":", "=") or value not in listed("predicates") | function_words()


username = pattern(
    "USERNAME",
    r"""(?i)(?<!\w)
    (?:user\s?[_-]?(?:name|id) | log-?in(?:\s(?:name|id))? | screen\s?name | gamer\s?tag | handle) (?!\w)
    (?:\s{1,2}(?:on\sfile|here|there))?
    (?: \s{0,2} (?P<link>[:=]|is(?!\w)|['’]s(?!\w)|-(?=\s)) \s{0,2} | (?<=name)\s{1,2}(?=[a-z._-]{1,30}\d) ) ["'“‘]?
    (?P<value> @?\w(?:[\w.-]{0,38}\w)? )""",
    check=_names_someone,
)

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

_CODED = re.compile(r"(?=[A-Z-]{0,30}\d)[A-Z0-9-]{5,31}")


def _identifies(match: re.Match[str]) -> bool:
    value, named, linked = match["value"], match["kind"] is not None, match["link"] is not None
    if (
        not named
        and (match["word"] is None or match["word"].lower() in listed("vague account kinds"))
        and _CODED.fullmatch(value) is None
    ):
        return False
    if not named and match["link"] is not None and "(" in match["link"] and _CODED.fullmatch(value) is None:
        return False
    if not any(character.isdigit() for character in value):
        return named and linked and len(value) >= 6 and value.isupper()
    return named or linked or (len(value) >= 5 and _YEAR.match(value) is None)


account = pattern(
    "ACCOUNT",
    rf"""(?i)(?<!\w) (?: (?P<word>{either("account kinds")}) (?:\s(?:tag|card|file|ref))? | sort\scode
        | service\stag | work\sorder | purchase\sorder | p\.?o\.? | file | job | request | device | group | plan
        )s? (?!\w) \.?
    (?P<kind> \s{{0,2}}(?:number|num|no|nr|id|code|reference|ref|confirmation)s?(?!\w)\.? )?
    (?P<link> \s{{0,2}}(?:[:=\#]|is|was)(?!\w) | \s{{0,2}}[:=\#(] )?
    \s{{0,2}} \#? (?P<value>[A-Za-z0-9][A-Za-z0-9-]{{3,30}}) (?!\w)""",
    check=_identifies,
)


# The last digits of a number, by which shops and banks ask for it.
ending = pattern(
    "ACCOUNT",
    r"""(?i)(?<!\w)
    (?: (?:account|acct|card|iban|number|passport|visa|mastercard|amex) [ ] (?:(?:that|which)[ ])?
        (?:end(?:s|ing)|finish(?:es|ing)) [ ] (?:in|with|on)
      | last [ ] (?:four|4|five|5|six|6|three|3) (?:[ ]digits)? (?:[ ]of[ ][^\d\n.:=]{1,32}?)? [ ]?(?:is|are|were|:|=) )
    [ ]{1,2} (?:the[ ](?:digits|numbers)[ ])? [*xX.-]{0,12} (?P<value> \d{3,6} ) (?! \w | [.,:/-]\d | [ ]?% )""",
)


# A name at a service named before it: with an @ or a digit in it, since other words may follow.
social_handle = pattern(
    "USERNAME",
    rf"""(?i)(?<!\w) (?:{either("services")}|cash\sapp)
    (?:\s(?:handle|id|account|user|tag|name))? (?!\w)
    (?: \s{{0,2}}[:=]\s{{0,2}} | \s{{1,2}}is\s{{1,2}} | \s{{1,2}}\(?(?=[@$]) )
    (?P<value>
      (?: [@$]\w[\w.-]{{1,38}} | (?=[a-z._-]{{1,30}}[\d\#])\w[\w.-]{{2,38}} ) (?<![.-]) (?:\#\d{{4}})? )
        (?![\w@:/\#])""",
)

uuid = pattern("CODE", r"(?i)(?<![\w-]) [0-9a-f]{8} (?:-[0-9a-f]{4}){3} -[0-9a-f]{12} (?![\w-])")

code = pattern("CODE", r"(?<![\w-]) (?=[A-Z]{0,31}[0-9]) (?=[0-9]{0,31}[A-Z]) [A-Z0-9]{8,32} (?![\w-])")

_LOGIN = re.compile(r"(?<!\w)login\s{1,8}(?P<value>\S{1,64})\s{1,8}\Z")


def _before(match: re.Match[str]) -> Range:
    return max(0, match.start() - 96), match.start()


password = pattern(
    "PASSWORD",
    r"""(?i)(?<![A-Za-z0-9]) (?:pass(?:word|code|phrase)|passwd|pwd) (?!\w) ["']?
    (?: \s{0,2}[:=]\s{0,2} | (?:\s{1,2}(?:is|was)|['’]s)\s{1,2} (?=[^\s\d]{0,64}\d) | (?P<netrc>\s{1,8}) )
    ["'“‘]? (?P<value>[^\s"'”’]{3,64})""",
    check=lambda match: match["netrc"] is None or _LOGIN.search(match.string, *_before(match)) is not None,
)


# What is typed at a bank's machine or a door. Years and amounts do not follow these words so closely.
pin = pattern(
    "PASSWORD",
    r"""(?i)(?<!\w)
    (?: (?-i:PIN|Pin) | (?:my|your|his|her|their|the|atm|card|door|alarm|sim)\spin | pin\s(?:code|number)
        | (?:otp|(?:verification|security|access|door|alarm|gate|one-time)\scode) | cvv2? | cvc2? )
    (?:\s(?:code|number|no\.?))? (?!\w) \s{0,2} (?:[:=\#]|is|was|['’]s)? \s{0,2}
    (?P<value> \d{3,8} ) (?! \w | [.,:/-]\d )""",
)

_FURTHER = 120
"""Characters of its line in which a second secret may follow a first."""

_PASSWORD_SAID = re.compile(
    r"(?<![A-Za-z0-9])(?:pass(?:words?|code|phrase|wd)?|pwd?|wi-?fi|creds|login|psk|try)(?![A-Za-z0-9])", re.IGNORECASE
)


# Letters and digits with a sign among them, as a word or a date or an address has none.
_LOOKS_SECRET = re.compile(
    r"""(?<![^\s"'“‘(:=`]) (?=[^\s\d]{0,30}\d) (?=[^\sA-Za-z]{0,30}[A-Za-z])
    (?: (?=[^\s!#$%^&*_+~?]{1,30}[!#$%^&*_+~?]) |
      (?=[^\sA-Z]{0,30}[A-Z])(?=[^\sa-z]{0,30}[a-z])(?=\S{0,30}(?:\d\d\d|\d[A-Za-z])) )
    [\w!#$%^&*+~?@-]{7,40} (?<![?]) (?= [\s"'”’,;.):`] | \Z )""",
    re.VERBOSE,
)


@recogniser("PASSWORD")
def further_password(text: str) -> Iterator[Range]:
    """What looks like a password on a line that speaks of one, at most `_FURTHER` characters from the word."""
    end = 0
    for said in _PASSWORD_SAID.finditer(text):
        line = text.find("\n", said.end(), said.end() + _FURTHER)
        stop = said.end() + _FURTHER if line < 0 else line
        far = max(0, said.start() - _FURTHER)
        before = max(far, text.rfind("\n", far, said.start()) + 1)
        for first, last in ((before, said.start()), (said.end(), stop)):
            for match in _LOOKS_SECRET.finditer(text, max(end, first), max(end, last)):
                end = match.end()
                yield match.span()


# Doors, gates, safes; also with the signs that are pressed.
entry_code = pattern(
    "PASSWORD",
    r"""(?i)(?<!\w) (?: (?:lock\s?box|safe|entry|entrance|front\sdoor|back\sdoor|door|gate|garage|building|keypad
      |key\s?pad|key\s?safe|locker|lock|alarm|gym|unlock|buzzer|lobby|voicemail|keybox|airbnb
          |parking|elevator|lift|screen|phone|tablet|disarm|access|verification|security|login|sms|2fa
          |authentication|one-time)\s(?:pass)?code
        | (?:safe|lock|locker|padlock|bike\slock)\scomb(?:o|ination) | comb(?:o|ination)(?=\s(?:is|to)|:) |
        passcode | gate\spin | pins | codes(?=:|\sare) ) (?!\w)
    (?:\s(?:to|for|of|on|at)\s(?:the|my|our|his|her)\s[a-z]{3,12})? \s{0,2} (?:[:=]|is|was|are|['’]s)? \s{0,2}
      (?:now\s|just\s)?
    (?P<value> [*\#]?[A-Z]?\d{3,8}[*\#]? | \d{1,2}(?:-\d{1,2}){2,3} ) (?! \w | [.,:/-]\d )""",
)

security_answer = pattern(
    "PASSWORD",
    r"""(?i)(?<!\w) (?: answer\sto\s(?:the|my|your|his|her|their|our)?\s?(?:security|secret|recovery
      |challenge)\squestion [^\n:=]{0,60}? (?:\sis|\swas|\s?[:=])
      | (?:security|secret|challenge)\s(?:question\s)?answer (?:\s?[:=]|\sis|\swas)
      | (?:first\spet|first\scar|first\sschool|favou?rite\s(?:teacher|pet)|childhood\s(?:friend|street|pet
      |nickname)|memorable\s(?:word|name|place))
        (?:['’]s\sname)? (?:\s?[:=]|\sis|\swas(?:\scalled|\snamed)?) | (?:safe|security|code)\sword (?:\s?[:=]|\sis
          |\swas) )
    \s{1,2} ["'“‘]? (?P<value> (?!not\b|an?\b|the\b|wrong\b|incorrect\b|required\b|case\b)
      [^\W_][^.,;!?"”\n]{1,39} )""",
)

_DOMAIN = re.compile(r"\.(?:com|org|net|edu|gov|io|de|fr|uk|co)\Z", re.IGNORECASE)


# Not a decorator, which stands alone on its line, nor a package's scope, which a slash follows.
handle = pattern(
    "USERNAME",
    r"(?<![^\s(\[\"'“:,>-]) @ (?P<name>[A-Za-z_](?:[\w.]{0,30}\w)) (?![\w@/(\\-]|\.\w|:\w)",
    check=lambda match: (
        match["name"].lower() not in listed("not a handle")
        and _DOMAIN.search(match["name"]) is None
        and not _is_decorator(match)
    ),
)


def _is_decorator(match: re.Match[str]) -> bool:
    text, start, end = match.string, match.start(), match.end("name")
    before = text[text.rfind("\n", max(0, start - 80), start) + 1 : start]
    after = text[end : end + 1]
    return not before.strip(" *\t") and after in ("", "\n", ".") and start > 0


# Before what someone says, on a line of its own: maria_k: hello. Words with an underscore are also the names of
# settings.
_SETTING = re.compile(rf"(?:^|_){either('parts of settings')}(?:$|_|\d)", re.IGNORECASE)

speaker = pattern(
    "USERNAME",
    r"(?m)^[ ]{0,4}[<\[(]? (?P<value> [A-Za-z](?=[A-Za-z.-]{0,24}[\d_])[\w.-]{2,30}(?<![.-]) ) [>\])]? : "
    r"(?=[ ]\w) (?=[^\n]{0,80}[ ]\w+[ ]\w)",
    check=lambda match: _SETTING.search(match["value"]) is None and any(map(str.isalpha, match["value"][1:])),
)

_MAILBOX = re.compile(r"(?<![\w.%+-])(?P<name>(?=[\w.]*[\d._])[A-Za-z][\w.]{2,30}\w)@(?=[\w-])")


_ALONE = re.compile(r"(?<![\w.@-])[A-Za-z][\w.]{2,30}\w(?![\w@-]|\.\w)")


@recogniser("USERNAME")
def mailbox_name(text: str) -> Iterator[Range]:
    """What stands before the @ of an address, where it stands alone: people use it as their user name."""
    names = {match["name"].lower() for match in _MAILBOX.finditer(text)}
    for match in _ALONE.finditer(text) if names else ():
        if match[0].lower() in names:
            yield match.span()


_NOT_A_USER = re.compile(r".{0,40}(?:ing|ed|ly|able|ible|ive|al|ous|ful|less|ent|ant|en|gry|py|n['’]t)", re.IGNORECASE)


def _is_a_user(match: re.Match[str]) -> bool:
    value = match["value"].lower()
    if any(character.isdigit() or character in "_@" for character in value):
        return True
    return match["sign"] != ":" and value not in function_words() and _NOT_A_USER.fullmatch(value) is None


user = pattern(
    "USERNAME",
    r"""(?i)(?<![\w/]) (?: (?:my|his|her|their|your|the|windows|ssh|admin|db|database|service)?\s?user | log-?in |
      account\sname | nick(?:name)? | alias | uid | sam\s?account(?:name)? ) (?!\w)
    \s{0,2} (?: (?P<sign>[:=])\s{0,2} | (?:is|as|was)\s{1,2} ) ["'“‘]?
    (?P<value> @?[a-z][a-z0-9]{0,20}[._]?[a-z0-9_]{3,20}@? ) (?<!@) (?= ["'”’]?(?: [,;.)!]?(?:\s|$) ) ) (?![ ](?:to
      |the|a|an|of|with|for|from|in|on|by|that)(?!\w))""",
    check=_is_a_user,
)

_USER = r"(?P<value>[A-Za-z_][\w.-]{0,30}\w)(?![\w@$])"

_OF_A_SYSTEM = (
    # A home folder.
    rf"(?<![\w.])/(?:export/|data/|mnt/\w{{1,16}}/)?(?:home|Users)/{_USER}(?!\.\w)",
    rf"(?i)(?<![a-z])[a-z]:(?:\\{{1,2}}|/)(?:users|documents\ and\ settings)(?:\\{{1,2}}|/){_USER}",
    # A web server's log, /etc/passwd, `id`, `ls -l`, a login, .netrc, a shell's prompt.
    rf"(?<!\S)\S{{1,64}}\ {_USER}\ \[\d{{1,2}}/[A-Z][a-z]{{2}}/\d{{4}}:",
    rf"(?m)^{_USER}:[x*!]?:\d{{1,10}}:\d{{1,10}}:",
    rf"(?<!\w)[ug]id=\d{{1,10}}\({_USER}\)",
    rf"(?m)^[-dlps](?:[r-][w-][xsStT-]){{3}}[.+@]?\ {{1,4}}\d{{1,6}}\ {{1,4}}{_USER}\ ",
    rf"(?<!\w)(?:(?:password|publickey)\ for(?:\ invalid\ user)?|for\ user|[Ii]nvalid\ user|sudo:)\ {{1,4}}{_USER}",
    rf"(?<!\w)login\s{{1,8}}{_USER}\s{{1,8}}password(?!\w)",
    rf"(?<![\w.@/:-]){_USER}@[A-Za-z][\w.-]{{0,62}}:[~/]".replace("(?![\\w@$])", ""),
)

_FILE = re.compile(r"\.(?:html?|php|txt|json|md|css|js|py|sh|xml|log)\Z")

_SYSTEM_USERS = tuple(map(re.compile, _OF_A_SYSTEM))


@recogniser("USERNAME")
def system_user(text: str) -> Iterator[Range]:
    """Whose home folder, file, request, shell or login it is."""
    for match in (match for expression in _SYSTEM_USERS for match in expression.finditer(text)):
        name = match["value"].casefold()
        if (
            not _FILE.search(name)
            and name not in listed("users of systems")
            and (name not in common_words() or name in all_names())
        ):
            yield match.span("value")
