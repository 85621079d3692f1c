"""How a setting is declared: once, as a field of a pydantic model.

    class TrainingOptions(Options):
        epochs: Annotated[int, Field(ge=1), Option("Training")] = 3
        \"""Passes over the corpus.\"""

Type, bounds and default are the field's own, the docstring under it is its help, and `Option` adds what only a setting
has. The command line, the recipe file, the fingerprint of a run and the help page are made from such fields.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from atdp_cli.ranges import usage_error


@dataclass(frozen=True, eq=False)
class Option:
    """What a field says of itself beside its type, bounds, default and description.

    Each is equal to itself alone, so that a field that is made from another can be told from a second declaration.

    Attributes:
        panel: The heading under which help shows it; None for none.
        main: Whether `--help` shows it, of a command with so many options that only `--help-all` shows all; or the
            names of the commands whose `--help` does.
        argument: Whether it has no name on the command line: it is what the command is about.
        flags: Its names on the command line; none for `--` and the field's name with hyphens.
        metavar: What `--help` shows for its value; None for what the type says.
        shown: The default that `--help` shows, where the field's own is none that could be typed.
        words: What its value may be made of, which a shell completes; None for what the type says.
        joined: What stands between such words where a value may have several; None where it is one.
        fingerprint: Whether two runs that differ in it are different runs, so that neither resumes the other. A part of
            the fingerprint, such as `recipe`, if that part shows the difference.
        public: Whether its value may be written to OUT/.
    """

    panel: str | None = None
    main: bool | tuple[str, ...] = False
    argument: bool = False
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    shown: str | None = None
    words: Callable[[], Iterable[str]] | None = None
    joined: str | None = None
    fingerprint: bool | str = True
    public: bool = False


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

    # Otherwise pydantic calls it for a model in a model too, whose error is then that of the whole.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def replace(self, **changes: Any) -> Self:
        """The same with other values, checked like the first ones."""
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | changes)

    def fill(self, values: Mapping[str, Any]) -> Self:
        """The same with those of the values that belong to it and were not given."""
        missing = type(self).model_fields.keys() - self.model_fields_set
        return self.replace(**{name: values[name] for name in missing if name in values})


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


def flags(name: str, option: Option) -> tuple[str, ...]:
    """The names on the command line of the setting in this field."""
    return option.flags or ("--" + name.replace("_", "-"),)
