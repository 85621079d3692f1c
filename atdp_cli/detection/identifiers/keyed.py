"""Values by their keys: JSON, YAML, settings, query strings, elements of XML, forms."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from atdp_cli.detection.identifiers.recogniser import REGISTERED, IdentifierMatch, listed
from atdp_cli.detection.word_lists import common_words, function_words, given_names, surnames

_KEY = re.compile(
    r"""(?<![A-Za-z0-9]) (?P<key> [A-Za-z][A-Za-z0-9]{0,24}+ (?:[_. -][A-Za-z0-9]{1,24}+){0,4}+ )
    (?P<quote>["'])? [ \t]{0,3} (?: :(?!//) | (?P<sets>=>?(?!=)) ) \s{0,3}""",
    re.VERBOSE,
)

_VALUE = re.compile(
    r"""(?P<open>["'`]) (?P<quoted> (?:(?!(?P=open))[^\n]){1,200} ) (?P=open)
    | (?P<bare> [^\s"'`&;,<>{}()\[\]|=\#]{1,200} (?:={1,2}(?![\w=]))?
        (?: [ ][^\s"'`&;,<>{}()\[\]|=\#:]{1,64}(?![\w.-]{0,40}[:=]) ){0,7} )""",
    re.VERBOSE,
)

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_LABELS = (
    *("PERSON", "USERNAME", "PHONE", "ADDRESS", "GPE", "ZIP", "DATE_OF_BIRTH", "SSN", "NATIONAL_ID", "ACCOUNT", "ORG"),
    *("CREDIT_CARD", "PASSWORD", "API_KEY"),
)

_DIGITS = {"PHONE": 7, "ZIP": 3, "DATE_OF_BIRTH": 2, "SSN": 4, "NATIONAL_ID": 4, "ACCOUNT": 3, "CREDIT_CARD": 12}
"""How many digits a value has at least."""

_NAME = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*\.?")

_MAX_WORDS = 5
"""Of a person's name."""

_ATTRIBUTE = re.compile(r"(?<!\w)[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)++")


@cache
def _label_of() -> Mapping[str, str]:
    return {key.replace(" ", ""): label for label in _LABELS for key in listed(f"keys of {label}")}


def keyed_value(text: str) -> Iterator[IdentifierMatch]:
    """What a key says it is: "first_name": "Anneke", customerPhone=…, last-name: Quispe."""
    end = 0
    if ":" not in text and "=" not in text:
        return
    for key in _KEY.finditer(text):
        label, parts = named_by(key["key"])
        if label is None or key.start() < end or (value := _VALUE.match(text, key.end())) is None:
            continue
        start, stop = value.span("quoted" if value["open"] else "bare")
        # Before a colon something may stand in a sentence too.
        coded = bool(key["quote"] or value["open"] or key["sets"] or (len(parts) > 1 and " " not in key["key"]))
        of_anything = key["key"].casefold() == "name"
        length = _length(text[start:stop], label, coded=coded, quoted=bool(value["open"]), of_anything=of_anything)
        if length:
            end = start + length
            yield start, end, label


REGISTERED.append((_LABELS[0], keyed_value))


def named_by(key: str) -> tuple[str | None, list[str]]:
    """The label of a key's values by its last words, and its words. A name alone may be anything's."""
    parts = [part.casefold() for part in _PART.findall(key)]
    while parts and parts[-1].isdigit():
        parts.pop()
    for count in (3, 2, 1):
        last = "".join(parts[-count:])
        if last in _label_of() and (last != "name" or len(parts) == 1):
            return _label_of()[last], parts
    return None, parts


def _length(value: str, label: str, *, coded: bool, quoted: bool, of_anything: bool) -> int:
    """How much of a value is what its key says, from its beginning; 0 where none is."""
    if value.casefold() in listed("no values") or "${" in value or "<" in value or "://" in value:
        return 0
    if label == "PERSON":
        return _length_of_name(value, certain=coded and not of_anything, whole=quoted, listed_only=of_anything)
    if not coded:
        return 0
    several = quoted or label in ("PHONE", "ADDRESS", "GPE", "ORG") or (label in _DIGITS and len(value) <= 10)
    said = value if several else value.split(" ", maxsplit=1)[0]
    return len(said) if _is_value(said, label, quoted=quoted) else 0


def _is_value(value: str, label: str, *, quoted: bool) -> bool:
    """Whether a value may be one of its label's."""
    digits, has_letter = sum(map(str.isdigit, value)), any(map(str.isalpha, value))
    words = [word.casefold() for word in _NAME.findall(value)]
    told = digits > 0 or not all(word in common_words() or word in function_words() for word in words)
    if label in _DIGITS:
        return digits >= _DIGITS[label]
    if label in ("ADDRESS", "GPE", "ORG"):
        return has_letter and told and (label != "ADDRESS" or value[0].isupper() or not {" ", "+"}.isdisjoint(value))
    if label == "PASSWORD" or " " in value or "(" in value or _ATTRIBUTE.fullmatch(value):
        return label == "PASSWORD" and quoted and len(value) >= 3
    if label == "USERNAME":
        return len(value) >= 2 and has_letter and told and value[0] not in "-/."
    if quoted:
        return len(value) >= 6 and len(set(value)) >= 4 and told
    return len(value) >= 8 and len(set(value)) >= 5 and digits > 0 and has_letter


def _length_of_name(value: str, *, certain: bool, whole: bool, listed_only: bool) -> int:
    """Where a name ends that begins a value.

    Args:
        certain: Whether the key says that it is somebody's, also where its words are in no list.
        whole: Whether nothing may follow it.
        listed_only: Whether one of its words has to be in the lists of names.
    """
    names, end = list[str](), 0
    for match in _NAME.finditer(value):
        word = match[0].casefold().rstrip(".")
        is_common = word in function_words() or (word in common_words() and not _is_listed(word))
        apart = value[end : match.start()] not in (" ", "+", ", ", "-", "_") if names else match.start() > 0
        if apart or len(names) == _MAX_WORDS or (is_common and not (certain and (whole or not names))):
            break
        names.append(word)
        end = match.end()
    if not names or (whole and end < len(value)) or value[end : end + 1].isdigit() or value[end : end + 1] == "_":
        return 0
    if listed_only or not (certain or len(names) > 1):
        return end if any(map(_is_listed, names)) else 0
    return end


def _is_listed(word: str) -> bool:
    return word in given_names() or word in surnames()
