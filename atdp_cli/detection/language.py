"""Whether a corpus is in the language that a pipeline reads. A wrong pipeline misses most names and says nothing."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from runpy import run_path
from typing import NamedTuple

from atdp_cli.corpus.record import Record

SAMPLE = 20_000
"""Characters that are looked at."""

MIN_WORDS = 40
"""In a sample with fewer words no language is told."""

MIN_SHARE, LEAD = 0.2, 1.5
"""The share of words that are a language's function words, and how many times as many as of the pipeline's language."""

MIN_KINDS = 10
"""Of its function words, so that no single code or keyword makes a language."""

LATIN_SHARE = 0.5
"""A sample with fewer Latin letters among its letters is not in a Latin script."""

_WORD = re.compile(r"[^\W\d_]+")


class Language(NamedTuple):
    """A language, and a spaCy pipeline with tagger, parser and entities for it; None where spaCy has none."""

    name: str
    pipeline: str | None


LANGUAGES = {
    "ca": Language("Catalan", "ca_core_news_sm"),
    "da": Language("Danish", "da_core_news_sm"),
    "de": Language("German", "de_core_news_sm"),
    "en": Language("English", "en_core_web_sm"),
    "es": Language("Spanish", "es_core_news_sm"),
    "fi": Language("Finnish", "fi_core_news_sm"),
    "fr": Language("French", "fr_core_news_sm"),
    "hr": Language("Croatian", "hr_core_news_sm"),
    "hu": Language("Hungarian", None),
    "id": Language("Indonesian", None),
    "it": Language("Italian", "it_core_news_sm"),
    "lt": Language("Lithuanian", "lt_core_news_sm"),
    "nb": Language("Norwegian", "nb_core_news_sm"),
    "nl": Language("Dutch", "nl_core_news_sm"),
    "pl": Language("Polish", "pl_core_news_sm"),
    "pt": Language("Portuguese", "pt_core_news_sm"),
    "ro": Language("Romanian", "ro_core_news_sm"),
    "sl": Language("Slovenian", "sl_core_news_sm"),
    "sv": Language("Swedish", "sv_core_news_sm"),
    "tr": Language("Turkish", None),
    "vi": Language("Vietnamese", None),
}
"""Languages in Latin script, by spaCy's code."""

SCRIPTS = {
    "CYRILLIC": {"ru": Language("Russian", "ru_core_news_sm"), "uk": Language("Ukrainian", "uk_core_news_sm")},
    "GREEK": {"el": Language("Greek", "el_core_news_sm")},
    "HIRAGANA": {"ja": Language("Japanese", "ja_core_news_sm")},
    "KATAKANA": {"ja": Language("Japanese", "ja_core_news_sm")},
    "CJK": {"zh": Language("Chinese", "zh_core_web_sm")},
    "HANGUL": {"ko": Language("Korean", "ko_core_news_sm")},
    "ARABIC": {"ar": Language("Arabic script", None)},
    "HEBREW": {"he": Language("Hebrew", None)},
    "DEVANAGARI": {"hi": Language("Devanagari script", None)},
    "THAI": {"th": Language("Thai", None)},
}
"""By the first word of its letters' Unicode names: the languages of a script, the likeliest first."""


def other_language(sample: str, expected: str) -> Language | None:
    """Return the language of a sample if it is not the expected one. None if it is, or cannot be told.

    By the script of its letters, and by how many of its words are in spaCy's list of a language's function words.

    Args:
        sample: Some text of a corpus.
        expected: spaCy's code of the language that a pipeline reads, such as `en`; for `xx` any is right.
    """
    if expected == "xx":
        return None
    letters = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in sample if letter.isalpha())
    if letters.total() < MIN_WORDS:
        return None
    if letters["LATIN"] < LATIN_SHARE * letters.total():
        kana = letters["HIRAGANA"] + letters["KATAKANA"]
        letters["CJK"] -= 20 * kana  # a Japanese text is kanji and kana
        script, _ = max(((name, count) for name, count in letters.items() if name != "LATIN"), key=lambda pair: pair[1])
        of_script = SCRIPTS.get(script, {"": Language(f"{script.title()} script", None)})
        return None if expected in of_script else next(iter(of_script.values()))
    return _by_words(sample, expected)


def _by_words(sample: str, expected: str) -> Language | None:
    words = [word for word in _WORD.findall(sample.casefold()) if len(word) > 1]
    if len(words) < MIN_WORDS or expected not in LANGUAGES:
        return None
    shares = {code: sum(word in stop_words(code) for word in words) / len(words) for code in LANGUAGES}
    likeliest = max(shares, key=lambda code: shares[code])
    if shares[likeliest] < max(MIN_SHARE, LEAD * shares[expected]):
        return None
    if len(stop_words(likeliest).intersection(words)) < MIN_KINDS:
        return None
    return LANGUAGES[likeliest]


@cache
def stop_words(code: str) -> frozenset[str]:
    """spaCy's list of the commonest words of a language, casefolded.

    Its file is run by itself: importing the language, as a package, compiles its tokenizer's expressions, which takes
    seconds for French.
    """
    import spacy.lang

    path = Path(spacy.lang.__path__[0]) / code / "stop_words.py"
    return frozenset(word.casefold() for word in run_path(str(path))["STOP_WORDS"])


def watched_language(records: Iterable[Record], expected: str, warn: Callable[[Language], object]) -> Iterator[Record]:
    """Pass the records on, and call `warn` once if the first of them are in another language."""
    sample: list[str] | None = []
    size = 0
    for record in records:
        if sample is not None:
            sample.append(record.text[: SAMPLE - size])
            size += len(sample[-1]) + 1
            if size >= SAMPLE:
                _judge(sample, expected, warn)
                sample = None
        yield record
    if sample is not None:
        _judge(sample, expected, warn)


def _judge(sample: list[str], expected: str, warn: Callable[[Language], object]) -> None:
    language = other_language(" ".join(sample), expected)
    if language is not None:
        warn(language)


def names_missed(language: Language, expected: str) -> str:
    """That a pipeline reads another language than a text is in, as a sentence."""
    reads = LANGUAGES[expected].name if expected in LANGUAGES else expected
    return f"The text looks like {language.name}, and the pipeline reads {reads}: most names are missed."
