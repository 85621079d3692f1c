"""Makes the lists of words and of names that ship with the detector, from SCOWL and from Faker's name providers.

    python -m tests.detection.make_word_lists --scowl FOLDER --faker WHEEL

FOLDER is that of Debian's package scowl 2020.12.07-2 with `english-words.10`; WHEEL is faker-40.54.0-py3-none-any.whl,
of which only the tables of names are read. Both licences are in `words/NOTICE`, beside what is written.
"""

import argparse
import importlib
import re
import sys
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from atdp_cli.detection.word_lists import function_words

WORDS = Path(__file__).parents[2] / "atdp_cli" / "detection" / "words"

COMMON_HEADER = """\
# Common English words in lower case: the levels 10, 20 and 35 of SCOWL 2020.12.07, English and American spelling,
# without names; see NOTICE. Made by tests/detection/make_word_lists.py. Public and fixed: never derived from a
# corpus. "account -ed -s" stands for account, accounted and accounts. [commonest] has the level 10.
"""

NAMES_HEADER = """\
# Names in Latin script, casefolded: the given names and surnames of Faker 40.54.0, all locales, word for word; see
# NOTICE. Made by tests/detection/make_word_lists.py. Public and fixed: never derived from a corpus. [both] are
# given names and surnames; [other] has what SCOWL 2020.12.07 spells with a capital (places, peoples, brands, months)
# and is also a common word.
"""

PARTICLES = frozenset(
    {"al", "da", "das", "de", "dei", "del", "della", "den", "der", "di", "do", "dos", "du", "el", "la", "las", "le"}
    | {"los", "mac", "mc", "nic", "ní", "san", "st", "te", "ten", "ter", "van", "vande", "vander", "ver", "vom", "von"}
    | {"y", "zu", "zum", "zur", "ó", "ui", "uí", "and", "of", "the"}
)

# Faker's tables of names have "my", "ever" and "she" too.
NO_NAMES = function_words() - {"may", "will"}

LONGEST = 11
"""The most letters of a name; longer ones are few, and mostly transliterated."""

LATIN = re.compile(r"[a-zß-öø-ɏḀ-ỿ]+(?:'[a-zß-öø-ɏḀ-ỿ]+)*")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scowl", type=Path, required=True, help="folder with english-words.10")
    parser.add_argument("--faker", type=Path, required=True, help="Faker's wheel")
    arguments = parser.parse_args()
    commonest, common = scowl_words(arguments.scowl)
    (WORDS / "common_words.txt").write_text(
        COMMON_HEADER + section("commonest", stems(commonest)) + section("common", stems(common - commonest)),
        encoding="utf-8",
    )
    given, surnames = faker_names(arguments.faker)
    other = (scowl_names(arguments.scowl) & common) - given - surnames
    (WORDS / "names.txt").write_text(
        NAMES_HEADER
        + section("given", given - surnames)
        + section("surnames", surnames - given)
        + section("both", given & surnames)
        + section("other", other),
        encoding="utf-8",
    )


def scowl_words(folder: Path) -> tuple[set[str], set[str]]:
    """The words of level 10, and those of the levels 10 to 35, in lower case and without possessives."""
    levels = [
        {word for spelling in ("english", "american") for word in scowl(folder / f"{spelling}-words.{level}")}
        for level in (10, 20, 35)
    ]
    return levels[0], set.union(*levels)


def scowl_names(folder: Path) -> set[str]:
    """What SCOWL spells with a capital, casefolded."""
    kinds = ("proper-names", "upper")
    paths = [folder / f"english-{kind}.{level}" for kind in kinds for level in (10, 35, 40, 50)]
    return {name for path in paths if path.is_file() for name in scowl(path)}


def scowl(path: Path) -> Iterator[str]:
    for word in unicodedata.normalize("NFC", path.read_text(encoding="utf-8")).split():
        if "'" not in word and LATIN.fullmatch(word.casefold()):
            yield word.casefold()


def faker_names(wheel: Path) -> tuple[set[str], set[str]]:
    """Given names and surnames of all locales, word for word, casefolded."""
    # A wheel can be imported from as it is.
    sys.path.insert(0, str(wheel))
    with zipfile.ZipFile(wheel) as archive:
        members = (re.fullmatch(r"faker/providers/person/(\w+)/__init__\.py", name) for name in archive.namelist())
        locales = sorted(member[1] for member in members if member)
    given: set[str] = set()
    surnames: set[str] = set()
    for locale in locales:
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        for attribute in dir(provider):
            values = getattr(provider, attribute)
            if not isinstance(values, (tuple, list, dict, set)):
                continue
            if re.match(r"first_(?:romanized_)?names?", attribute):
                given.update(words(values))
            elif re.search(r"(?:last|middle)_(?:romanized_)?names?", attribute):
                surnames.update(words(values))
    return given, surnames


def words(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if not isinstance(value, str):
            continue
        for word in unicodedata.normalize("NFC", value).casefold().replace("’", "'").replace("-", " ").split():
            if 1 < len(word) <= LONGEST and LATIN.fullmatch(word) and word not in PARTICLES | NO_NAMES:
                yield word


def stems(listed: set[str]) -> list[str]:
    """The words, sorted; those that begin with another one of at least three letters follow it as its endings."""
    groups: list[str] = []
    stem = ""
    for word in sorted(listed):
        if len(stem) >= 3 and word.startswith(stem):
            groups[-1] += f" -{word.removeprefix(stem)}"
        else:
            stem = word
            groups.append(word)
    return groups


def section(name: str, lines: Iterable[str]) -> str:
    """A heading, and the lines side by side, a new line for each first letter."""
    text = f"[{name}]"
    first = ""
    for line in sorted(lines):
        text += (" " if line[0] == first else "\n") + line
        first = line[0]
    return text + "\n"


if __name__ == "__main__":
    main()
