"""The plan of the house, measured from its imports.

    python -m tests.house [FOLDER]

prints, for each room of the package in a checkout, how many files, lines, lines of code, floors and arrows it has, as
docs/design.md does. It also lists fragments, modules that may belong into the one module that imports them. An arrow
is an import of one module by another; a room's arrows begin in it. A module stands on the floor above all that it
imports from its own room, so floors are the longest chain of imports within a room.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path

PACKAGE = "atdp_cli"

_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def modules(root: Path) -> Mapping[str, ast.Module]:
    """Every module of the package in a checkout, parsed, by its dotted name."""
    return {_name(path, root): ast.parse(path.read_text(encoding="utf-8")) for path in files(root)}


def files(root: Path) -> list[Path]:
    """The package's source files, in order."""
    return sorted((root / PACKAGE).rglob("*.py"))


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """What each module imports of the others, at its top or within a function."""
    return {name: _imported(name, tree, set(trees)) for name, tree in trees.items()}


def _imported(name: str, tree: ast.Module, known: set[str]) -> set[str]:
    targets = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                targets.add(inner if inner in known else node.module)
    return (targets & known) - {name}


def room_of(name: str, trees: Mapping[str, ast.Module]) -> str:
    """`atdp_cli.corpus.csv` → `text`; the modules at the top are a room of their own."""
    parts = name.split(".")
    is_room = len(parts) > 2 or any(other.startswith(f"{name}.") for other in trees)
    return parts[1] if is_room and len(parts) > 1 else PACKAGE


def floors(names: set[str], arrows: Mapping[str, set[str]]) -> int:
    """The longest chain of imports among these modules; a circle counts once."""

    heights: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in heights:
            heights[name] = 0  # what a circle leads back to
            heights[name] = 1 + max((height(inner) for inner in arrows[name] & names), default=0)
        return heights[name]

    return max((height(name) for name in sorted(names)), default=0)


def code_lines(source: str) -> int:
    """Lines that hold code: no blank lines, comments or docstrings."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def plan(root: Path) -> list[tuple[str, int, int, int, int, int]]:
    """A row a room: name, files, lines, lines of code, floors, arrows; the last row is the whole house."""
    trees = modules(root)
    arrows = imports(trees)
    sources = {_name(path, root): path.read_text(encoding="utf-8") for path in files(root)}
    names = sorted({room_of(name, trees) for name in trees})
    rooms = {room: {name for name in trees if room_of(name, trees) == room} for room in names}
    return [_row(room, names, sources, arrows) for room, names in (*rooms.items(), ("all", set(trees)))]


def _row(
    room: str, names: set[str], sources: Mapping[str, str], arrows: Mapping[str, set[str]]
) -> tuple[str, int, int, int, int, int]:
    return (
        room,
        len(names),
        sum(len(sources[name].splitlines()) for name in names),
        sum(code_lines(sources[name]) for name in names),
        floors(names, arrows),
        sum(len(arrows[name]) for name in names),
    )


HEAD = "| room | files | lines | code | floors | arrows |\n|---|---|---|---|---|---|\n"


def table(root: Path) -> str:
    """The plan as Markdown."""
    return HEAD + "".join(
        f"| `{room}` | " + " | ".join(f"{figure:,}" for figure in figures) + " |\n" for room, *figures in plan(root)
    )


def read_table(text: str) -> dict[str, list[int]]:
    """The figures of each room that a table in a page has."""
    rows = text.partition(HEAD)[2].partition("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {room.strip("`"): [int(figure.replace(",", "")) for figure in figures] for room, *figures in cells}


FRAGMENT = 60
"""Lines of code under which a module that only one other imports is a fragment of that one."""


def fragments(root: Path) -> dict[str, str]:
    """Modules of less than `FRAGMENT` lines of code with one importer, which is given; data alone is no fragment."""
    trees = modules(root)
    importers: dict[str, list[str]] = {name: [] for name in trees}
    for name, inner in imports(trees).items():
        for target in inner:
            importers[target].append(name)
    return {
        _name(path, root): importers[_name(path, root)][0]
        for path in files(root)
        if path.name != "__init__.py"
        and len(importers[_name(path, root)]) == 1
        and not _is_data(trees[_name(path, root)])
        and code_lines(path.read_text(encoding="utf-8")) < FRAGMENT
    }


def _is_data(tree: ast.Module) -> bool:
    """Whether a module defines neither functions nor classes."""
    return not any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in ast.walk(tree))


def functions(trees: Mapping[str, ast.Module]) -> dict[str, int]:
    """The lines of every function without its docstring, by `module:function`."""
    return {
        f"{module}:{node.name}": (node.end_lineno or 0) - node.lineno + 1 - _docstring_lines(node)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    return (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) is not None else 0


def main() -> None:
    """Print the table and the fragments."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    print(table(root))
    print("\n".join(f"{name}, imported by {importer} alone" for name, importer in fragments(root).items()))


if __name__ == "__main__":
    main()
