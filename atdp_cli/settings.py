"""Settings: how options are declared and checked by pydantic, and checks of single numbers.

What is wrong is one line that names the setting. The upper bounds lie far above what anybody needs: a number beyond one
is a slip, and would run for days, fill the memory or leave the range of floats.
"""

import inspect
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar, cast, dataclass_transform

import pydantic.dataclasses
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from atdp_cli.errors import UsageError
from atdp_cli.files.documents import NAME_BYTES, PATH_BYTES

Positive = Annotated[float, Field(gt=0)]

Share = Annotated[float, Field(ge=0, le=1)]

LARGEST_NOISE = 1e9
"""The largest noise multiplier that can be asked for."""

MIN_DELTA = 1e-12
"""The smallest δ: Gaussian noise of the Box–Muller transform in fp64 ends near 8.65 standard deviations."""

NO_TAIL = "noise in floating point ends near 8.65 standard deviations, so nothing smaller holds"

CONTRADICTION = "contradiction"
"""Pydantic's name of the error that `contradiction` makes."""

_RANGES = {
    "greater_than": "a number above {gt:,.15g}",
    "greater_than_equal": "a number of at least {ge:,.15g}",
    "less_than": "a number below {lt:,.15g}",
    "less_than_equal": "a number of at most {le:,.15g}",
    "finite_number": "a finite number",
}

_FORMS = _RANGES | {
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "literal_error": "{expected}",
    "tuple_type": "a list. A dataset becomes a file by its to_json",
    "path_type": "the path of a file or folder. A dataset becomes a file by its to_json",
}
"""The values to give instead, by pydantic's name of the error."""

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field,))
def validated(cls: type[_T]) -> type[_T]:
    """A frozen dataclass whose fields are checked by their annotations, and whose constructor raises `UsageError`.

    Types are strict: no text is read as a number, and no truth value is one. The docstring under a field is its help.
    `__post_init__` checks what concerns several fields, and raises `contradiction`.
    """
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
    made: Any = pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=config)(cls)
    construct = made.__init__

    @wraps(construct)
    def checked(self: _T, /, **values: object) -> None:
        try:
            construct(self, **values)
        except ValidationError as error:
            raise usage_error(error) from error

    made.__init__ = checked
    return cast("type[_T]", made)


def contradiction(problem: str, remedy: str) -> PydanticCustomError:
    """The error that `__post_init__` of a `validated` class raises where its fields do not go together."""
    return PydanticCustomError(CONTRADICTION, "{problem}", {"problem": problem, "remedy": remedy})


def usage_error(error: ValidationError, names: Mapping[str, str] = MappingProxyType({})) -> UsageError:
    """Our error for the first field that pydantic found wrong.

    Args:
        error: What pydantic raised.
        names: What a message calls the fields; others by their names with hyphens.
    """
    details = error.errors(include_url=False)
    place = details[0]["loc"][:1]
    name = "".join(names.get(str(field), str(field).replace("_", "-")) for field in place)
    if names and details[0]["type"] in _FORMS.keys() - _RANGES.keys():
        return UsageError(f"{name} has a value that it does not take.", f"Choose {allowed_values(details[:1])}.")
    return setting_error([detail for detail in details if detail["loc"][:1] == place], "", name)


def setting_error(details: Sequence[ErrorDetails], where: str, name: str) -> UsageError:
    """Our error for what pydantic found wrong with one value.

    Args:
        details: At least one, all at the same place.
        where: What the message begins with.
        name: What it calls the setting. The value is shown only where it is a number out of range.
    """
    first = details[0]
    if first["type"] == CONTRADICTION:
        return UsageError(f"{where}{first['ctx']['problem']}", first["ctx"]["remedy"])
    if first["type"] in _RANGES:
        return UsageError(f"{where}{name} is {_shown(first['input'])}.", f"Choose {allowed_values(details)}.")
    what = ", or: ".join(dict.fromkeys(detail["msg"] for detail in details))
    return UsageError(f"{where}{name}: {what}.", "Correct this key.")


def allowed_values(details: Sequence[ErrorDetails]) -> str:
    """Describe the values to give instead of one that pydantic refused."""
    forms = [_FORMS.get(each["type"], "{msg}").format(msg=each["msg"], **each.get("ctx", {})) for each in details]
    return ", or ".join(dict.fromkeys(forms))


def require_positive(name: str, value: float) -> None:
    """Refuse a number that is not finite and above 0."""
    if not (_finite(value) and value > 0):
        raise UsageError(f"{name} is {value}.", "Choose a number above 0.")


def require_at_least(name: str, value: float, least: int) -> None:
    """Refuse a number that is not finite and at least `least`."""
    if not (_finite(value) and value >= least):
        raise UsageError(f"{name} is {value}.", f"Choose a number of at least {least}.")


def require_at_most(name: str, value: float, most: float) -> None:
    """Refuse a number that is above `most`, or none."""
    if not value <= most:
        raise UsageError(f"{name} is {_shown(value)}.", f"Choose a number of at most {most:,}.")


def require_delta(value: float) -> None:
    """Refuse a δ that is not below 1 and at least `MIN_DELTA`."""
    if not 0 < value < 1:
        raise UsageError(f"delta is {value}.", "Choose a number between 0 and 1.")
    if value < MIN_DELTA:
        raise UsageError(f"delta is {value}.", f"Choose a number of at least {MIN_DELTA:g}: {NO_TAIL}.")


def _finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)  # an integer may be too large for a float


def _shown(value: float) -> str:
    """The number, short also where it has thousands of digits."""
    short = not isinstance(value, int) or abs(value) < 10**20
    return str(value) if short else f"a number of {len(str(abs(value)))} digits"


@dataclass(frozen=True, eq=False)
class Option:
    """The properties of an option beside its type, bounds, default and description.

    Each is equal to itself alone, so that a field that is made from another can be told from a second declaration.

    Attributes:
        panel: The heading under which help shows it; None for none.
        main: Whether `--help` shows it, of a command with so many options that only `--help-all` shows all; or the
            names of the commands whose `--help` does.
        argument: Whether it has no name on the command line: it is what the command is about.
        flag: Whether it has a name of its own on the command line; else it is given by `--set run.KEY=VALUE`.
        flags: Its names on the command line; none for `--` and the field's name with hyphens.
        metavar: What `--help` shows for its value; None for what the type says.
        shown: The default that `--help` shows, where the field's own is none that could be typed.
        words: What its value may be made of, which a shell completes; None for what the type says.
        joined: What stands between such words where a value may have several; None where it is one.
        fingerprint: Whether two runs that differ in it are different runs, so that neither resumes the other. A part of
            the fingerprint, such as `recipe`, if that part shows the difference.
        public: Whether its value may be written to OUT/.
        writes: Whether it names a file or folder that the command writes; every other path is one that it reads.
    """

    panel: str | None = None
    main: bool | tuple[str, ...] = False
    argument: bool = False
    flag: bool = True
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    shown: str | None = None
    words: Callable[[], Iterable[str]] | None = None
    joined: str | None = None
    fingerprint: bool | str = True
    public: bool = False
    writes: bool = False


class Options(BaseModel):
    """A group of settings. `model_fields_set` are those that were given, be it with the default's value.

    Raises:
        UsageError: A value is not one that the field takes. It quotes no text.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=True,
        use_attribute_docstrings=True,
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            names = {name: flags(name, option)[0].removeprefix("--") for name, _, option in declared(type(self))}
            raise usage_error(error, names) from error
        for name in type(self).model_fields:
            given = getattr(self, name)
            for path in given if isinstance(given, tuple) else (given,):
                if isinstance(path, Path):
                    path_of(path, name)

    # Otherwise pydantic calls it for a model in a model too, whose error is then that of the whole.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def replace(self, **changes: Any) -> Self:
        """Copy with other values, checked like the first ones."""
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | changes)

    def fill(self, values: Mapping[str, Any]) -> Self:
        """Copy with the values for fields that were not given; values of other groups are ignored."""
        missing = type(self).model_fields.keys() - self.model_fields_set
        return self.replace(**{name: values[name] for name in missing if name in values})


def path_of(given: object, name: str) -> Path:
    """The path that was given for `name`.

    Raises:
        UsageError: It is something else, such as a dataset, or a text that no file could be called. It is not quoted.
    """
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"{name} is no path, but of type {type(given).__name__}.", f"Give {_FORMS['path_type']}.")
    path = Path(given)
    sizes = [len(part.encode("utf-8", "replace")) for part in path.parts]
    if "\0" in str(path) or max(sizes, default=0) > NAME_BYTES or sum(sizes) + len(sizes) > PATH_BYTES:
        raise UsageError(f"{name} is no path, but {len(str(path)):,} characters of text.", "Give the path of a file.")
    return path


def declared(*groups: type[BaseModel]) -> Iterator[tuple[str, FieldInfo, Option]]:
    """The settings that the groups declare: base classes first, in the order in which they are listed."""
    names = dict.fromkeys(name for group in groups for name in _names(group))
    for name in names:
        field = next(group.model_fields[name] for group in groups if name in group.model_fields)
        for option in field.metadata:
            if isinstance(option, Option):
                yield name, field, option


def _names(group: type[Any]) -> Iterator[str]:
    for base in group.__bases__:
        if issubclass(base, BaseModel):
            yield from _names(base)
    yield from (name for name in inspect.get_annotations(group) if name in group.model_fields)


def named_paths(*groups: BaseModel) -> tuple[list[Path], list[Path]]:
    """The files and folders that settings name: those that are read, and those that are written (`Option.writes`)."""
    read: list[Path] = []
    written: list[Path] = []
    for group in groups:
        for name, field in type(group).model_fields.items():
            value = getattr(group, name)
            writes = any(isinstance(each, Option) and each.writes for each in field.metadata)
            paths = value if isinstance(value, tuple) else (value,)
            (written if writes else read).extend(path for path in paths if isinstance(path, Path))
    return read, written


def flags(name: str, option: Option) -> tuple[str, ...]:
    """The names on the command line of the setting in this field; `run.KEY` where it has no flag."""
    return option.flags or (("--" if option.flag else RUN) + name.replace("_", "-"),)


RUN = "run."
"""The prefix of a setting without a flag after `--set`."""


class RunSettings(Options):
    """The option of a command that has settings without a flag, and no stages."""

    set_: Annotated[
        tuple[str, ...], Option("Running", flags=("--set",), metavar="run.KEY=VALUE", fingerprint=False, public=True)
    ] = ()
    """A setting that few need and that has no flag; docs/commands.md lists them. Repeatable."""


DATA, DETECTION, OUTPUT, RUNNING = "Data", "Detection", "Output", "Running"


class DeviceOptions(Options):
    """The device that computes."""

    device: Annotated[Literal["auto", "cpu", "cuda"], Option(RUNNING, fingerprint=False)] = "auto"
    """auto takes the GPU where there is one."""


class ThreadOptions(Options):
    """The number of threads that compute."""

    threads: Annotated[PositiveInt | None, Option(flag=False, fingerprint=False)] = None
    """Threads for the arithmetic. Default: as torch chooses; one to harden under 10 million parameters."""


class ComputeOptions(ThreadOptions, DeviceOptions):
    """The device and the threads that compute."""
