"""The house itself: names with one meaning, folders and files of a size that a reader can hold, imports that are few."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "atdp_cli"

PROTOCOL = {"clipped_sum"}
"""Implementations of one declared Protocol, `ClippingEngine`."""

MOST_FILES, MOST_IMPORTS, MOST_LINES = 21, 20, 400


def modules() -> Mapping[str, ast.Module]:
    """Every module of the package, parsed, by its path from the package's folder."""
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")
    }


def public_names(tree: ast.Module) -> Iterator[str]:
    """The public classes and functions that a module defines."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name


def homonyms(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Public names that more than one module defines, each with its modules."""
    homes = defaultdict(list)
    for path, tree in trees.items():
        for name in public_names(tree):
            homes[name].append(path)
    return {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1 and name not in PROTOCOL}


def own_imports(tree: ast.Module) -> int:
    """How many modules of the package a module imports, at its top or within a function."""
    return len(
        {
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("atdp_cli")
        }
    )


def test_a_public_name_means_one_thing() -> None:
    assert homonyms(modules()) == {}


def test_a_second_meaning_is_noticed() -> None:
    trees = {"a.py": ast.parse("class Rank: ..."), "b.py": ast.parse("def Rank(): ...\ndef _private(): ...")}
    assert homonyms(trees) == {"Rank": ["a.py", "b.py"]}


def test_no_folder_holds_more_than_a_reader_can() -> None:
    files = Counter(path.parent for path in PACKAGE.rglob("*.py"))
    assert {str(folder): count for folder, count in files.items() if count > MOST_FILES} == {}


def test_no_module_leans_on_more_than_twenty_others() -> None:
    assert {path: count for path, tree in modules().items() if (count := own_imports(tree)) > MOST_IMPORTS} == {}


def test_no_file_is_longer_than_its_subject() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {str(path): count for path, count in lines.items() if count > MOST_LINES} == {}
