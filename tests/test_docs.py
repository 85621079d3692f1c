"""The pages: they name nothing that is not there, their commands are commands, and they stay short. The site builds."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from atdp_cli.cli.app import make_command
from tests.generated import DESIGN, RECIPE_TABLE, generated
from tests.house import HEAD

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = (
    *(ROOT / "README.md", ROOT / "SECURITY.md", *DOCS),
    *(*sorted((ROOT / "examples").glob("*/README.md")), *sorted((ROOT / "tests" / "benchmarks").rglob("*.md"))),
)

READERS = """I base OUT OUT.private OUT.partial OUT.maps.private
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


def test_the_site_lists_every_page_once() -> None:
    listed = re.findall(r"[\w-]+\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [page.name for page in DOCS]


def test_the_site_builds_and_asks_no_other_host(tmp_path: Path) -> None:
    """mkdocs with --strict also follows every link and anchor between pages, by its own names of anchors."""
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: pip install -c constraints.txt -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    pages = [page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")]
    loaded = [
        name
        for page in pages
        for name in re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"?([^\"\s>]+)", page)
    ]
    assert len(pages) > len(DOCS)
    assert len(loaded) > len(pages)
    assert [name for name in loaded if re.match(r"(https?:)?//", name)] == []


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_a_page_opens_with_the_question_that_it_answers(page: Path) -> None:
    assert re.match(r"# [^\n]+\n\n\*[^*\n]+\?\*\n\n", page.read_text("utf-8"))


def test_the_readme_fits_two_screens() -> None:
    assert len(PAGES[0].read_text("utf-8").splitlines()) <= 80


MOST_WORDS, MOST_WORDS_TO_CONTRIBUTE = 30_000, 800


def words(page: Path) -> int:
    """The words of a page that people wrote and have to read: no generated tables, and none of what was measured."""
    text = page.read_text("utf-8")
    if page in generated().keys() - {ROOT / "docs" / "choosing.md"}:
        return 0
    for head in (RECIPE_TABLE, HEAD):
        before, mark, after = text.partition(head)
        text = before + (after.partition("\n\n")[2] if mark else "")
    lines = text.splitlines()
    return len(" ".join(line for line in lines if not (page.name == "measured.md" and line.startswith("|"))).split())


def test_the_pages_are_no_book() -> None:
    counts = {page.name: words(page) for page in (ROOT / "README.md", *DOCS)}
    assert DESIGN.name in counts
    assert sum(counts.values()) <= MOST_WORDS, counts


def test_contributing_is_read_in_minutes() -> None:
    """Without its blocks of code, which are examples to copy."""
    assert (
        len(_FENCE.sub("", (ROOT / "docs" / "CONTRIBUTING.md").read_text("utf-8")).split()) <= MOST_WORDS_TO_CONTRIBUTE
    )


def commands(page: Path) -> Iterator[list[str]]:
    """The arguments of every `atdp` in a page's shell scripts; variables are words like any other."""
    for opening, block in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        script = block.replace("\\\n", " ") if opening == "sh" else ""
        for called in re.findall(r"(?:^|[\s(])atdp ([a-z-]+ [^\n]*)", re.sub(r"\s#.*", "", script)):
            yield shlex.split(re.split(r" \|\| | > |\) |\)$", called)[0])


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=lambda page: page.name)
def test_the_commands_of_a_page_are_commands(page: Path) -> None:
    for name, *rest in commands(page):
        if not {"--help", "--help-all", "--write-detector"} & set(rest):  # these act, and stop
            make_command(name).make_context(name, rest)


_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_security_cites_tests_that_are_there() -> None:
    cited = _TEST.findall((ROOT / "docs" / "security.md").read_text(encoding="utf-8"))
    assert len(cited) >= 20
    for file, name in cited:
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)


def test_every_promise_of_security_has_a_test() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    promised = page.split("## What is promised")[1].split("\n## ")[0]
    promises = re.split(r"^\d+\. ", promised, flags=re.MULTILINE)[1:]
    assert len(promises) >= 8
    assert [promise for promise in promises if not _TEST.search(promise) and "(#exit-codes" not in promise] == []
