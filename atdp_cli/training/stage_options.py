"""Options of a stage by name: `--learning-rate 1e-3` and `--set atdp.learning-rate=1e-3` do the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from atdp_cli.errors import UsageError, did_you_mean
from atdp_cli.settings import allowed_values
from atdp_cli.training.recipe import SUMS, Recipe, Train, last_private, takes_steps

FIRST = ("noise-multiplier", "optimizer")
"""The options that others of the same stage build on."""

_NAMES = {"expected_batch": "batch-size", "release_noise_multiplier": "release-noise"}
"""Options that have another name than their field."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """`option` of stage number `position` becomes `value`: as text where `--set` gives it, else checked already."""

    position: int
    option: str
    value: object


def apply_settings(recipe: Recipe, settings: Sequence[Setting]) -> Recipe:
    """The recipe with every setting applied.

    The noise multiplier and the optimizer go first: the ceiling depends on one, and the other starts from defaults.

    Raises:
        UsageError: The stage has no such option, or the value is out of range.
    """
    stages = list(recipe)
    for setting in sorted(settings, key=lambda setting: setting.option not in FIRST):
        stages[setting.position] = _apply(stages[setting.position], setting.option, setting.value)
    return tuple(stages)


def stage_setting(recipe: Recipe, option: str, value: object) -> Setting:
    """An option given without a stage: it acts on the last DP stage, or on the last stage where none is."""
    return Setting(position=last_private(recipe), option=option, value=value)


def has_option(part: Any, option: str) -> bool:
    """Whether a stage, or a part of one, has an option of this name."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return any(
        _is_field_of(part, name, option) or (is_dataclass(current) and has_option(current, option))
        for name, current in values.items()
    )


def parse_setting(recipe: Recipe, text: str) -> Setting:
    """`STAGE.option=value` → a setting.

    Raises:
        UsageError: The text has another form, or no stage has that name.
    """
    target, equals, value = text.partition("=")
    name, dot, option = target.partition(".")
    if not (equals and dot and name and option):
        raise UsageError(f"--set {text} is not understood.", "Write --set STAGE.option=value.")
    names = [stage.name for stage in recipe]
    if name not in names:
        raise UsageError(f"--set {text}: no stage is called {name}.", _stages_named(name, names))
    return Setting(position=names.index(name), option=option.replace("_", "-"), value=value)


def _stages_named(name: str, names: Sequence[str]) -> str:
    """The names to write in place of a stage's name that the recipe does not have."""
    if not names:
        return "The recipe has no stage."
    there = f"The recipe's stages are {', '.join(names)}." if len(names) > 1 else f"Its only stage is {names[0]}."
    near = did_you_mean(name, names)
    return f"{near} {there}" if near and len(names) > 1 else there


def _fields() -> Iterator[tuple[str, FieldInfo]]:
    """Each field of each type of stage, objective, mechanism, schedule and optimizer that a setting may change."""
    parts: list[Any] = [Train, *(part for kinds in SUMS.values() for part in kinds.values())]
    for part in parts:
        for name, field in part.__pydantic_fields__.items():
            if name == "optimizer" or name not in {"kind", "name", "text", *SUMS}:
                yield name, field


def _apply(stage: Train, option: str, value: object) -> Train:
    if option not in SETTINGS:
        own = [name for name in SETTINGS if has_option(stage, name)]
        near = did_you_mean(option, own) or f"Choose one of {', '.join(own)}."
        raise UsageError(f"{stage.name}.{option} is not an option.", near)
    # A stage without steps has the settings of its objective alone.
    part = stage if takes_steps(stage) else stage.objective
    changed = _changed(part, option, value, f"{stage.name}.{option}")
    if changed is None:
        raise UsageError(f"Stage {stage.name} has no {option}.", "Leave it out, or set it on another stage with --set.")
    return changed if isinstance(changed, Train) else replace(stage, objective=changed)


def _changed(part: Any, option: str, value: object, where: str) -> Any:
    """The part with one of its fields changed, or one of a part in it; None where neither has that option."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    for name in values:
        if _is_field_of(part, name, option):
            return replace(part, **{name: _parsed(part, name, value, where)})
    for name, current in values.items():
        if is_dataclass(current) and (changed := _changed(current, option, value, where)) is not None:
            return replace(part, **{name: changed})
    return None


def _is_field_of(part: Any, name: str, option: str) -> bool:
    # A stage that releases nothing has no noise to set.
    releases_nothing = name == "release_noise_multiplier" and getattr(part, name) is None
    return _option_name(name) == option and not releases_nothing


def _parsed(part: Any, name: str, text: object, where: str) -> Any:
    """The text as a value of a field; what is no text is one already."""
    if not isinstance(text, str):
        return text
    if name in SUMS:
        if (kind := SUMS[name].get(text.lower())) is None:
            raise UsageError(f"{where} is '{text}'.", f"Choose one of {', '.join(SUMS[name])}.")
        return kind(learning_rate=part.optimizer.learning_rate)
    field: FieldInfo = part.__pydantic_fields__[name]
    pair = get_origin(field.annotation) is tuple
    try:
        return _adapter(field).validate_python(text.split(",") if pair else text)
    except ValidationError as error:
        form = "two numbers, LOW,HIGH" if pair else allowed_values(error.errors(include_url=False))
        raise UsageError(f"{where} is '{text}'.", f"Choose {form}.") from error


@cache
def _adapter(field: FieldInfo) -> TypeAdapter[Any]:
    return TypeAdapter(field.rebuild_annotation(), config=ConfigDict(allow_inf_nan=False))


def _option_name(field: str) -> str:
    return _NAMES.get(field, field.replace("_", "-"))


SETTINGS = tuple(dict.fromkeys(_option_name(name) for name, _ in _fields()))
"""The names of all options of stages."""
