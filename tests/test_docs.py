"""The pages name nothing that is not there: links, their anchors, and files and folders in backticks."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*/README.md")))

READERS = """I OUT OUT.private OUT.partial OUT.maps.private
model-hardened model-hardened.private CORPUS.private corpus.txt.private DIR runs sweep
decoyed decoyed.private DECOYED DECOYED.private trained""".split()  # noqa: SIM905 - a list of words
"""First parts of names that stand for files of the reader's own, or that a run writes."""

OURS = ("atdp_cli", "docs", "examples", "tests", "completions", ".ci")
"""Folders whose names in blocks of code are of this repository."""

_FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_NAME = re.compile(r"[\w.*-]+/[\w./*-]*")


def missing(page: Path) -> Iterator[str]:
    """What a Markdown page names that is not there: beside it, in the repository or in its package."""
    text = page.read_text(encoding="utf-8")
    blocks, prose = [block for _, block in _FENCE.findall(text)], _FENCE.sub("", text)
    for name in _names(" ".join(code for _, code in _CODE.findall(prose))):
        if name.split("/")[0] not in READERS and not _there(name, page.parent, ROOT, ROOT / "atdp_cli"):
            yield name
    for name in _names(" ".join(blocks)):
        if name.split("/")[0] in OURS and not _there(name, ROOT):
            yield name
    for link in (inline or other for inline, other in _LINK.findall(_CODE.sub("`", prose))):
        if not re.match(r"[a-z]+:", link) and not _linked(page, link):
            yield link


def _names(code: str) -> Iterator[str]:
    """The words that look like a file or a folder; one that begins with ./ or / is the reader's."""
    for word in code.split():
        actual = word.strip("\"',;:()[]").rstrip(".")
        if _NAME.fullmatch(actual) and not actual.startswith("./"):
            yield actual


def _there(name: str, *folders: Path) -> bool:
    if "*" in name:
        return any(any(folder.glob(name.rstrip("/"))) for folder in folders)
    return any((folder / name).is_dir() if name.endswith("/") else (folder / name).exists() for folder in folders)


def _linked(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or (target.suffix == ".md" and anchor in _anchors(target)))


def _anchors(page: Path) -> set[str]:
    """What links to a page's headings end with, as GitHub makes it."""
    seen: Counter[str] = Counter()
    anchors = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return anchors


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    assert not list(missing(page))


def test_the_readme_links_every_page() -> None:
    linked = {
        (ROOT / inline.partition("#")[0]).resolve()
        for inline, _ in _LINK.findall(PAGES[0].read_text("utf-8"))
        if inline
    }
    assert not [page.name for page in PAGES if page.parent.name == "docs" and page not in linked]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_opens_with_the_question_that_it_answers(page: Path) -> None:
    assert re.match(r"# [^\n]+\n\n\*[^*\n]+\?\*\n\n", page.read_text("utf-8"))


def test_the_readme_is_short() -> None:
    assert len(PAGES[0].read_text("utf-8").splitlines()) <= 150


_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_security_cites_tests_that_are_there() -> None:
    cited = _TEST.findall((ROOT / "docs" / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(cited) >= 20
    for file, name in cited:
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)


def test_every_promise_of_security_has_a_test() -> None:
    page = (ROOT / "docs" / "SECURITY.md").read_text(encoding="utf-8")
    promised = page.split("## What is promised")[1].split("\n## ")[0]
    promises = re.split(r"^\d+\. ", promised, flags=re.MULTILINE)[1:]
    assert len(promises) >= 8
    assert [promise for promise in promises if not _TEST.search(promise) and "(#exit-codes" not in promise] == []
