"""The house itself: names with one meaning, files and functions that a reader can hold, and no more code than that."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house import code_lines, files, fragments, functions, modules, plan, read_table

ROOT = Path(__file__).parent.parent

PROTOCOL = {"clipped_sum"}
"""Implementations of one declared Protocol, `ClippingEngine`."""

MOST_LINES, MOST_LINES_OF_A_FUNCTION = 400, 60

MOST_CODE = 29_126
"""Lines of code of the package, without docstrings and comments. A commit that raises it says why, and what went: the
148 lines of corpus/people.py and of several conversations a record are for the person as the unit of privacy, and 80
for the plan's counts by label and its preview."""

FRAGMENTS = {"atdp_cli.training.chacha_kernel": "atdp_cli.training.chacha"}
"""Modules that stay although they are fragments, each with its importer: the kernel imports Triton, which only GPUs'
builds of torch bring."""


def public_names(tree: ast.Module) -> Iterator[str]:
    """The public classes and functions that a module defines; a function's overloads are the function."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield from () if "overload" in map(ast.unparse, node.decorator_list) else (node.name,)


def homonyms(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Public names that more than one module defines, each with its modules."""
    homes = defaultdict(list)
    for module, tree in trees.items():
        for name in public_names(tree):
            homes[name].append(module)
    return {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1 and name not in PROTOCOL}


def test_a_public_name_means_one_thing() -> None:
    assert homonyms(modules(ROOT)) == {}


def test_no_module_is_a_fragment_of_its_only_importer() -> None:
    assert fragments(ROOT) == FRAGMENTS


def test_no_file_is_longer_than_its_subject() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files(ROOT)}
    assert {str(path): count for path, count in lines.items() if count > MOST_LINES} == {}


def test_a_function_fits_a_screen() -> None:
    long = {name: lines for name, lines in functions(modules(ROOT)).items() if lines > MOST_LINES_OF_A_FUNCTION}
    assert long == {}


def test_the_package_stays_small() -> None:
    assert sum(code_lines(path.read_text(encoding="utf-8")) for path in files(ROOT)) <= MOST_CODE


def test_the_table_of_rooms_is_true() -> None:
    """Within a fifth, so that not every change has to write it anew."""
    written = read_table((ROOT / "docs" / "design.md").read_text(encoding="utf-8"))
    actual = {room: figures for room, *figures in plan(ROOT)}
    assert written.keys() == actual.keys(), "run `make generated`"
    far = {
        room: (figures, written[room])
        for room, figures in actual.items()
        if any(abs(new - old) > max(1, new / 5) for new, old in zip(figures, written[room], strict=True))
    }
    assert far == {}, "run `make generated`"


STEP = re.compile(r"`(\w+)`(?:, `(\w+)`)?\s+\(`([\w/]+\.py)`\)")
"""A function of a walk and its file, as the page of the design names them."""


def test_the_walks_lead_through_functions_that_are_there() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    walks = page.partition("## Three walks")[2].partition("\n## ")[0]
    steps = [(name, path) for *names, path in STEP.findall(walks) for name in names if name]
    defined = {path: set(public_names(ast.parse((ROOT / "atdp_cli" / path).read_text()))) for _, path in steps}
    assert len(steps) > 25
    assert [(name, path) for name, path in steps if name not in defined[path]] == []
