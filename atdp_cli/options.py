"""How a setting is declared: once, as a field of a pydantic model.

    class TrainingOptions(Options):
        epochs: Annotated[int, Field(ge=1, description="Passes over the corpus."), Option(panel="Training")] = 3

Type, bounds, default and help are the field's own; `Option` adds what only a setting has. The command line, the recipe
file, the fingerprint of a run and the help page are made from such fields.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.fields import FieldInfo

from atdp_cli.errors import UsageError


@dataclass(frozen=True)
class Option:
    """What a field says of itself beside its type, bounds, default and description.

    Attributes:
        panel: The heading under which `--help` shows it; None for none.
        flags: Its names on the command line; none for `--` and the field's name with hyphens.
        metavar: What `--help` shows for its value; None for what the type says.
        shown: The default that `--help` shows, where the field's own is none that could be typed.
        fingerprint: Whether two runs that differ in it are different runs, so that neither resumes the other. A part of
            the fingerprint, such as `recipe`, if that part shows the difference.
        public: Whether its value may be written to OUT/.
    """

    panel: str | None = None
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    shown: str | None = None
    fingerprint: bool | str = True
    public: bool = False


class Options(BaseModel):
    """A group of settings. `model_fields_set` are those that were given, be it with the default's value.

    Raises:
        UsageError: A value is not in range, or a name is not known. It does not quote the value.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _raise_usage_error(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(values)
        except ValidationError as error:
            raise usage_error(error, cls.model_fields) from None

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


_PROBLEMS = {
    "greater_than": ("is too small", "Choose a number above {gt:,g}."),
    "greater_than_equal": ("is too small", "Choose a number of at least {ge:,g}."),
    "less_than": ("is too large", "Choose a number below {lt:,g}."),
    "less_than_equal": ("is too large", "Choose a number of at most {le:,g}."),
    "finite_number": ("is not a finite number", "Choose one."),
    "literal_error": ("is not one of its values", "Choose {expected}."),
    "enum": ("is not one of its values", "Choose {expected}."),
    "missing": ("is missing", "Add it."),
    "extra_forbidden": ("is not known", "Leave it out."),
    "value_error": ("is not understood", "{error}"),
}
"""What is wrong and what to do, by pydantic's name of the error, with the values that pydantic gives for it."""


def usage_error(error: ValidationError, fields: Mapping[str, FieldInfo]) -> UsageError:
    """The first thing that pydantic found wrong, in our words; the value itself is not quoted.

    A validator of our own raises a ValueError whose text says what to do.
    """
    found = error.errors(include_url=False, include_input=False)[0]
    name = str(found["loc"][0]) if found["loc"] else "a combination of options"
    options = [option for option in fields[name].metadata if isinstance(option, Option)] if name in fields else []
    label = flags(name, options[0])[0].removeprefix("--") if options else name
    is_wrong, remedy = _PROBLEMS.get(
        found["type"], ("is not valid", found["msg"].replace("Input should", "It should") + ".")
    )
    return UsageError(f"{label} {is_wrong}.", remedy.format(**found.get("ctx", {})))
