"""Frequent English function words: a fixed public list, so weighing them reads nothing from the corpus."""

import re
from functools import cache
from importlib.resources import files

_WORD = re.compile(r"\w+(?:['’]\w+)*")


@cache
def function_words() -> frozenset[str]:
    """The list, in lower case, with straight apostrophes."""
    lines = files("atdp_cli.text.detection").joinpath("function_words.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def function_word_characters(text: str) -> list[tuple[int, int]]:
    """Where whole words of the list stand in `text`, in any case: (start, end), sorted and disjoint."""
    words = function_words()
    return [match.span() for match in _WORD.finditer(text) if match.group().lower().replace("’", "'") in words]
