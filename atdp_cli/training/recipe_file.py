"""Recipe files: a recipe and other training settings as TOML. Never imports torch.

A sum type is a table whose `kind` says which of its types it is; the other keys are that type's fields. A key that is
left out takes the field's default. The table `run` holds options beside the recipe, for where the command line is
silent.
"""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, to_jsonable_python

from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.documents import read_whole
from atdp_cli.settings import CONTRADICTION, RUN, contradiction, setting_error, validated
from atdp_cli.training.options import NO_OPTIONS, RunOptions
from atdp_cli.training.recipe import SUMS, Recipe, Train, parse_recipe

RECIPE_FILE = "recipe.toml"

SUFFIX = ".toml"
"""The suffix by which `--recipe` tells a file from a name."""

HEADER = f"""\
# The recipe of a run of atdp with all of its settings. The same training again, or of another model:
# atdp harden MODEL --data CORPUS --recipe {RECIPE_FILE}
# Options on the command line go before what stands here.

"""


@validated
class RecipeFile:
    """The content of a recipe file.

    Attributes:
        name: What reports call the recipe.
        recipe: Its stages; none for the recipe `base`.
    """

    name: str
    recipe: Recipe
    run: RunOptions = NO_OPTIONS


@validated
class _Document:
    """A recipe file as its tables lie."""

    name: str
    stage: Recipe
    run: RunOptions = NO_OPTIONS

    def __post_init__(self) -> None:
        if not (self.name.strip() and self.name.isprintable()):
            raise contradiction(f"name is {self.name!r}.", "Give one line to call the recipe by in reports.")
        names = [stage.name for stage in self.stage]
        for number, name in enumerate(names, 1):
            letters = name.replace("-", "").replace("_", "")
            if not (letters.isascii() and letters.isalnum()):  # --set STAGE.option=value must find its end
                raise contradiction(f"{_stage_words(number, name)}: name is {name!r}.", "Use letters, digits, - and _.")
            if name == RUN.rstrip("."):  # --set run.KEY=VALUE is about the table
                raise contradiction(f"stage {number}: no stage can be called '{name}'.", "Give it another name.")
            if name in names[: number - 1]:
                raise contradiction(
                    f"stage {number}: the name '{name}' is taken by an earlier stage.", "Give it another."
                )


def load_recipe(text: str) -> RecipeFile:
    """Load what `--recipe` asks for: the file where `text` ends in .toml, else the sum of named recipes.

    Raises:
        InputError: The file cannot be used.
        UsageError: A part is not the name of a recipe.
    """
    if text.lower().endswith(SUFFIX):
        return read_recipe(Path(text))
    return RecipeFile(name=text, recipe=parse_recipe(text))


def write_recipe(path: Path, file: RecipeFile) -> None:
    """Write a recipe file, every field spelled out but for those that are None."""
    path.write_text(recipe_text(file), encoding="utf-8")


def recipe_text(file: RecipeFile) -> str:
    """The text of a recipe file."""
    import tomli_w

    tables = {"name": file.name, "stage": file.recipe} | ({"run": file.run} if file.run.given() else {})
    return HEADER + tomli_w.dumps(to_jsonable_python(tables, exclude_none=True))


def read_recipe(path: Path) -> RecipeFile:
    """Read a recipe file.

    Raises:
        InputError: It cannot be read, is no TOML, or a key is missing, unknown, of the wrong type or out of range.
    """
    try:
        document = _loaded(read_whole(path).decode("utf-8"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read as a recipe.", "Check the path; a recipe file is given alone, not joined by +."
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, nested or a number without end
        what = str(error) if isinstance(error, tomllib.TOMLDecodeError) else type(error).__name__
        raise InputError(f"{path} is not TOML: {what}.", "Correct the file, or let harden write one.") from error
    try:
        return _file(document)
    except UsageError as error:
        raise InputError(f"{path}: {error.problem}", error.remedy) from error


def _loaded(text: str) -> Any:
    """The content of a TOML file, in the types of JSON: a date is an empty table, since no key of a recipe takes
    either.
    """
    return json.loads(json.dumps(tomllib.loads(text), default=lambda _: {}))


def _file(document: Any) -> RecipeFile:
    try:
        # As JSON, which has neither tuples nor enums: strict validation takes a list and a string for them.
        read = _DOCUMENT.validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        raise _refusal(document, error.errors(include_url=False)) from error
    return RecipeFile(name=read.name, recipe=read.stage, run=read.run)


_DOCUMENT = TypeAdapter(_Document)

_KINDS = {kind: part for kinds in SUMS.values() for kind, part in kinds.items()}


def _refusal(document: Any, errors: Sequence[ErrorDetails]) -> UsageError:
    """Our error for the first thing that is wrong: the stage by number and name, the key, and what to do."""
    error = errors[0]
    place, table = _place(document, error["loc"])
    where, around = (": ".join(words) or "the file" for words in (place, place[:-1]))
    key = place[-1] if place else ""
    kinds = SUMS.get(key, {})
    remedy = f"Choose one of {', '.join(kinds)}."
    match error["type"]:
        case "missing" if error["loc"][-1] == key:
            problem, remedy = f"{around}: the key '{key}' is missing.", "Add it."
        case "unexpected_keyword_argument" | "extra_forbidden":
            problem = f"{around}: the key {key!r} is not known."
            owner: Any = _owner(place, table)
            known = [name for name in owner.__pydantic_fields__ if name != "kind"]
            remedy = f"Its keys are {', '.join(known)}." if known else "It has no keys but kind."
        case "union_tag_not_found":
            problem = f"{where}: the key 'kind' is missing."
        case "union_tag_invalid":
            kind = error["input"]["kind"]
            problem = f"{where}: kind is {repr(kind) if isinstance(kind, str) else 'no string'}."
        case "dataclass_type" | "model_type" | "dict_type":
            problem = f"{where} is no table."
            remedy = f"Give a table with a kind: {', '.join(kinds)}." if kinds else "Give a table of keys and values."
        case "tuple_type" if key == "stage":
            problem, remedy = "stage is no list of tables.", "Start each stage with [[stage]]."
        case "json_invalid":
            problem, remedy = "the file is nested too deep.", "Correct the file, or let harden write one."
        case kind:
            prefix = "".join(f"{word}: " for word in (place if kind == CONTRADICTION else place[:-1]))
            same = [other for other in errors if _place(document, other["loc"])[0] == place]
            return setting_error(same, prefix, key)
    return UsageError(problem, remedy)


def _owner(place: Sequence[str], table: Any) -> Any:
    """The part that has the keys of a table."""
    if len(place) == 1:
        return _Document
    if place[0] == "run":
        return RunOptions
    return Train if len(place) == 2 else _KINDS[table["kind"]]


def _place(document: Any, loc: Sequence[str | int]) -> tuple[list[str], Any]:
    """The place of an error as a message names it, a word a table and one for the key; and the table around it.

    Pydantic also names the kind that it took a table for, the type that it tried on a value, and members of pairs.
    """
    words: list[str] = []
    around, value, entered = document, document, False
    for part in loc:
        if entered and isinstance(value, dict) and value.get("kind") == part:
            entered = False
        elif isinstance(value, dict):
            words.append(str(part))
            around, value, entered = value, value.get(str(part)), True
        elif isinstance(value, list) and words == ["stage"]:
            value, entered = value[int(part)], True
            name = value.get("name") if isinstance(value, dict) else None
            words = [_stage_words(int(part) + 1, name)]
    return words, around


def _stage_words(number: int, name: object) -> str:
    return f"stage {number} ({name})" if isinstance(name, str) and name.isprintable() else f"stage {number}"
