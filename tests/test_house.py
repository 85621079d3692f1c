"""The house itself: names with one meaning, folders and files that a reader can hold, few imports."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house import files, imports, modules, plan

ROOT = Path(__file__).parent.parent

PROTOCOL = {"clipped_sum"}
"""Implementations of one declared Protocol, `ClippingEngine`."""

MOST_FILES, MOST_IMPORTS, MOST_LINES = 21, 20, 400


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


def test_a_second_meaning_is_noticed() -> None:
    trees = {"a": ast.parse("class Rank: ..."), "b": ast.parse("def Rank(): ...\ndef _private(): ...")}
    assert homonyms(trees) == {"Rank": ["a", "b"]}


def test_no_folder_holds_more_files_than_a_reader_can() -> None:
    counts = Counter(path.parent for path in files(ROOT))
    assert {str(folder): count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_no_module_imports_more_than_twenty_others() -> None:
    arrows = imports(modules(ROOT))
    assert {module: len(names) for module, names in arrows.items() if len(names) > MOST_IMPORTS} == {}


def test_no_file_is_longer_than_its_subject() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files(ROOT)}
    assert {str(path): count for path, count in lines.items() if count > MOST_LINES} == {}


def test_the_plan_counts_what_is_there(tmp_path: Path) -> None:
    """Three modules, one above another, and a second room."""
    texts = {
        "__init__": "",
        "low/__init__": "",
        "low/ground": '"""Prose."""\n\n# A comment.\nx = (\n    1\n)\n',
        "low/first": "from atdp_cli.low.ground import x\n",
        "low/second": "from atdp_cli.low import first\nfrom atdp_cli.low.ground import x\n",
        "high/__init__": "",
        "high/roof": "def f():\n    from atdp_cli.low.second import x\n",
    }
    for name, text in texts.items():
        path = tmp_path / "atdp_cli" / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    assert plan(tmp_path) == [
        ("atdp_cli", 1, 0, 0, 1, 0),
        ("high", 2, 2, 2, 1, 1),
        ("low", 4, 9, 6, 3, 3),
        ("all", 7, 11, 8, 4, 4),
    ]


STEP = re.compile(r"`(\w+)`(?:, `(\w+)`)? \(`([\w/]+\.py)`\)")
"""A function of a walk and its file, as the page of the design names them."""


def test_the_walks_lead_through_functions_that_are_there() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    walks = page.partition("## Three walks")[2].partition("\n## ")[0]
    steps = [(name, path) for *names, path in STEP.findall(walks) for name in names if name]
    defined = {path: set(public_names(ast.parse((ROOT / "atdp_cli" / path).read_text()))) for _, path in steps}
    assert len(steps) > 25
    assert [(name, path) for name, path in steps if name not in defined[path]] == []
