"""Recipe files: a recipe, and what else shapes the training, as TOML. Never imports torch.

A sum type is a table whose `kind` says which of its types it is; the other keys are that type's fields. A key that is
left out takes the field's default. The table `run` holds options beside the recipe, for where the command line is
silent.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.bounded_read import read_whole
from atdp_cli.privacy.schedule import Constant, RiseReset
from atdp_cli.training.options import NO_OPTIONS, RunOptions
from atdp_cli.training.recipe import (
    DPSGD,
    SGD,
    AdamBC,
    AdamW,
    Anchored,
    Interpolate,
    Nothing,
    Plain,
    Recipe,
    Stage,
    Train,
    Uniform,
    Weighted,
    parse_recipe,
)

RECIPE_FILE = "recipe.toml"
SUFFIX = ".toml"
"""How `--recipe` tells a file from the name of a recipe."""

HEADER = f"""\
# The recipe of a run of atdp with all of its settings. The same training again, or of another model:
# atdp harden MODEL --data CORPUS --recipe {RECIPE_FILE}
# Options on the command line go before what stands here.

"""

SUMS: Mapping[str, Mapping[str, type[Any]]] = {
    "stage": {"train": Train, "interpolate": Interpolate},
    "objective": {"uniform": Uniform, "weighted": Weighted, "anchored": Anchored, "nothing": Nothing},
    "mechanism": {"plain": Plain, "dp-sgd": DPSGD},
    "schedule": {"constant": Constant, "rise-reset": RiseReset},
    "optimizer": {"adamw": AdamW, "adambc": AdamBC, "sgd": SGD},
}
"""The types of each key that holds one of several, by `kind`."""

_KINDS = {one: kind for sum_ in SUMS.values() for kind, one in sum_.items()}

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class RecipeFile:
    """What a recipe file holds.

    Attributes:
        name: What reports call the recipe.
        recipe: Its stages; none for the recipe `base`.
    """

    name: str
    recipe: Recipe
    run: RunOptions = NO_OPTIONS


def load_recipe(text: str) -> RecipeFile:
    """What `--recipe` asks for: the file where `text` ends in .toml, else the sum of named recipes.

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

    run = {name: _plain(value) for name, value in file.run.given().items()}
    document = {"name": file.name, "stage": [_table(stage) for stage in file.recipe]}
    return HEADER + tomli_w.dumps(document | ({"run": run} if run else {}))


def read_recipe(path: Path) -> RecipeFile:
    """Read a recipe file.

    Raises:
        InputError: It cannot be read, is no TOML, or a key is missing, unknown, of the wrong type or out of range.
    """
    try:
        document = tomllib.loads(read_whole(path).decode("utf-8"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read as a recipe.", "Check the path; a recipe file is given alone, not joined by +."
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or nested without end
        what = str(error) if isinstance(error, tomllib.TOMLDecodeError) else type(error).__name__
        raise InputError(f"{path} is not TOML: {what}.", "Correct the file, or let harden write one.") from error
    try:
        return _file(document)
    except UsageError as error:
        raise InputError(f"{path}: {error.problem}", error.remedy) from error


def parse_recipe_text(text: str) -> RecipeFile:
    """What a recipe file's text holds, as `recipe_text` wrote it.

    Raises:
        UsageError: A key is missing, unknown, of the wrong type or out of range.
    """
    return _file(tomllib.loads(text))


def _file(document: Mapping[str, Any]) -> RecipeFile:
    _check_keys("the file", document, required=("name", "stage"), optional=("run",))
    name = _value("name", str, document["name"])
    if not (name.strip() and name.isprintable()):
        raise UsageError(f"name is {name!r}.", "Give one line to call the recipe by in reports.")
    if not isinstance(document["stage"], list):
        raise UsageError("stage is no list of tables.", "Start each stage with [[stage]].")
    recipe = tuple(_stage(number, table) for number, table in enumerate(document["stage"], 1))
    names = [stage.name for stage in recipe]
    for number, one in enumerate(names, 1):
        if one in names[: number - 1]:
            raise UsageError(f"stage {number}: the name '{one}' is taken by an earlier stage.", "Give it another.")
    return RecipeFile(name=name, recipe=recipe, run=_run_options(document.get("run", {})))


def _run_options(table: object) -> RunOptions:
    if not isinstance(table, dict):
        raise UsageError("run is no table.", "Give a table of keys and values.")
    _check_keys("run", table, required=(), optional=tuple(RunOptions.model_fields))
    try:
        options: RunOptions = RunOptions.model_validate_json(json.dumps(table), strict=True)
        return options
    except UsageError as error:
        raise UsageError(f"run: {error.problem}", error.remedy) from error
    except (TypeError, ValueError, RecursionError):  # a date, or a number without end
        raise UsageError("run: a value has no type that an option takes.", "Correct it.") from None


def _stage(number: int, table: object) -> Stage:
    name = table.get("name") if isinstance(table, dict) else None
    where = f"stage {number}" + (f" ({name})" if isinstance(name, str) and name.isprintable() else "")
    stage: Stage = _one_of("stage", where, table)
    letters = stage.name.replace("-", "").replace("_", "")
    if not (letters.isascii() and letters.isalnum()):  # --set STAGE.option=value must find its end
        raise UsageError(f"{where}: name is {stage.name!r}.", "Use letters, digits, - and _.")
    return stage


def _one_of(key: str, where: str, table: object) -> Any:
    """A value of the sum type at `key`."""
    kinds = SUMS[key]
    if not isinstance(table, dict):
        raise UsageError(f"{where} is no table.", f"Give a table with a kind: {', '.join(kinds)}.")
    kind = table.get("kind")
    if "kind" not in table:
        raise UsageError(f"{where}: the key 'kind' is missing.", f"Choose one of {', '.join(kinds)}.")
    if not isinstance(kind, str) or kind not in kinds:
        given = repr(kind) if isinstance(kind, str) else "no string"
        raise UsageError(f"{where}: kind is {given}.", f"Choose one of {', '.join(kinds)}.")
    return _object(kinds[kind], where, {name: value for name, value in table.items() if name != "kind"})


def _object(cls: type[_T], where: str, table: object) -> _T:
    """A value of a dataclass, each field checked by its annotation."""
    if not isinstance(table, dict):
        raise UsageError(f"{where} is no table.", "Give a table of keys and values.")
    found: tuple[Field[Any], ...] = fields(cls)  # type: ignore[arg-type]
    required = [field.name for field in found if field.default is MISSING]
    _check_keys(where, table, required=required, optional=[field.name for field in found])
    hints = get_type_hints(cls)
    values = {
        name: _one_of(name, f"{where}: {name}", value)
        if name in SUMS
        else _value(f"{where}: {name}", hints[name], value)
        for name, value in table.items()
    }
    try:
        return cls(**values)
    except UsageError as error:
        raise UsageError(f"{where}: {error.problem}", error.remedy) from error


def _value(where: str, hint: Any, value: object) -> Any:
    """A value of a type that is no table."""
    try:
        # JSON has neither tuples nor enums, so that strict validation takes a list and a string for them.
        return _adapter(hint).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        what = ", or: ".join(dict.fromkeys(one["msg"] for one in error.errors()))
    except (TypeError, ValueError, RecursionError):  # a date, or a number without end
        what = f"{type(value).__name__} is no type for it"
    raise UsageError(f"{where}: {what}.", "Correct this key.")


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def _check_keys(where: str, table: Mapping[str, Any], *, required: Sequence[str], optional: Sequence[str]) -> None:
    missing = [key for key in required if key not in table]
    if missing:
        raise UsageError(f"{where}: the key '{missing[0]}' is missing.", "Add it.")
    known = list(dict.fromkeys((*required, *optional)))
    unknown = [key for key in table if key not in known]
    if unknown:
        remedy = f"Its keys are {', '.join(known)}." if known else "It has no keys but kind."
        raise UsageError(f"{where}: the key {unknown[0]!r} is not known.", remedy)


def _table(value: Any) -> dict[str, Any]:
    """A dataclass as a table, with the kind where it is one of several."""
    kind = {"kind": _KINDS[type(value)]} if type(value) in _KINDS else {}
    given = {field.name: getattr(value, field.name) for field in fields(value)}
    return kind | {name: _plain(one) for name, one in given.items() if one is not None}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _table(value)
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, tuple) else value
