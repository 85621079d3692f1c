"""Health: conditions, symptoms and medicines by a list, and the numbers of patients."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.recogniser import pattern, recogniser
from atdp_cli.files.word_lists import read_lists

_WORD = re.compile(r"[^\W_]+")


def _by_first_word(terms: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """The terms, and their plurals, that begin with a word; the longest first."""
    index: dict[str, set[str]] = {}
    for term in terms:
        plurals = (term, term + "s", term + "es") if term[-1].isalpha() and term[-1] != "s" else (term,)
        for spelling in plurals:
            index.setdefault(_WORD.findall(spelling)[0], set()).add(spelling)
    return {word: tuple(sorted(spellings, key=len, reverse=True)) for word, spellings in index.items()}


_LISTED = read_lists(Path(__file__).with_name("health_terms.txt"), ",")

_MEDICINES = frozenset(_LISTED["medicines"])

_TERMS = _by_first_word((*_LISTED["conditions"], *_LISTED["medicines"]))

_SAME_LENGTH = str.maketrans({"-": " ", "‐": " ", "‑": " ", "\n": " ", "\u00a0": " ", "’": "'", "İ": "i"})


# How much of it, and how often.
_DOSE = re.compile(
    r"""(?: ,?\s?(?:[a-z]{2,9}\s)?\d{1,5}(?:[.,]\d{1,3})?\s?(?:mg|mcg|µg|μg|ug|g|ml|units?|iu|u|%|milligrams?
      |micrograms?)(?!\w)
    (?:/(?:\d{1,3}\s?)?[a-z]{1,4}(?!\w))? )
    (?: ,?\s(?:od|bd|tds|qds|qd|bid|tid|qid|prn|nocte|mane|po|iv|im|once|twice|daily|weekly|nightly|a\sday
      |at\snight)(?!\w) ){0,3}""",
    re.VERBOSE | re.IGNORECASE,
)


def _listed_terms(text: str, index: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[int, int, str]]:
    """Whole terms of an index, from the left."""
    plain = text.translate(_SAME_LENGTH).lower()
    if len(plain) != len(text):
        plain = "".join(each if len(each.lower()) != 1 else each.lower() for each in text.translate(_SAME_LENGTH))
    end = 0
    for word in _WORD.finditer(plain):
        start = word.start()
        if start < end:
            continue
        for term in index.get(word[0], ()):
            stop = start + len(term)
            if plain.startswith(term, start) and not plain[stop : stop + 1].isalnum():
                yield start, stop, term
                end = stop
                break


@recogniser("HEALTH")
def health_term(text: str) -> Iterator[Range]:
    """Conditions and medicines of the list, medicines with their dose."""
    for start, end, term in _listed_terms(text, _TERMS):
        dose = _DOSE.match(text, end) if term in _MEDICINES else None
        yield start, dose.end() if dose else end


# What stands in notes after an abbreviation that says so, listed or not.
clinical_note = pattern(
    "HEALTH",
    r"""(?i)(?<!\w) (?: (?:dx|diagnosis|pmhx?|rx|meds|allergies|indication|presenting\scomplaint)\s?:\s{0,2} | (?:hx
      |h/o|dx|c/o)\s(?:of\s|with\s)?
      | diagnosed\swith\s(?:an?\s)? | allergic\sto\s )
    (?P<value> (?!(?:an?|the|none|nil|nkda|unknown|it|most|any|all|some|you|this|that)(?!\w))
      [a-z][a-z0-9'’-]{2,24} (?:[ ](?!and|but|in|on|at|since|for|who|when|with|by|is|was|which|because|last|this
        |after|the|a)[a-z][a-z0-9'’-]{1,24}){0,2} )
    (?= \s*+(?:$|[.,;:()\n]|\Z) | \s(?:and|but|in|on|at|since|for|who|when|with|by|is|was|which|because|last|this
      |after)(?!\w) )""",
)


# The numbers of hospitals, surgeries and insurers.
medical_record = pattern(
    "MEDICAL_RECORD",
    r"""(?i)(?<!\w)
    (?: (?:mrn|m\.r\.n\.|nhs|emrn|hicn|mbi|medicare|medicaid|emr|ehr) (?:\s(?:number|num|no|nr|id|\#)\.?)?
      | (?:medical\srecords?|health\s(?:record|card|insurance|plan)|patient|hospital|chart|encounter|admission
      |specimen|accession|prescription|rx|chi|radiology|lab)
        \s{0,2}(?:number|num|no|nr|id|identifier|file|ref(?:erence)?|\#)\.?
      | patient(?=\s{0,2}[:\#]?\s?[A-Z]{0,4}\d{5}) ) (?!\w)
    \s{0,2} (?:[:=\#]|is|was)? \s{0,2} \#?
    (?P<value> [A-Z]{0,5}-?\d[A-Z0-9]{1,13}(?:[ -][A-Z]{0,2}\d[A-Z0-9]{0,6}){0,4} ) (?![\w-])""",
    check=lambda match: sum(map(str.isdigit, match["value"])) >= 4,
)
