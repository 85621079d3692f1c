"""Options of a stage, by name: what `--learning-rate 1e-3` and `--set atdp.learning-rate=1e-3` both do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any

from atdp_cli.errors import UsageError
from atdp_cli.privacy.schedule import RiseReset
from atdp_cli.training.recipe import (
    DPSGD,
    SGD,
    AdamBC,
    AdamW,
    Anchored,
    Interpolate,
    Recipe,
    Stage,
    Train,
    Weighted,
    last_private,
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """`option` of stage number `position` becomes `value`, still as text."""

    position: int
    option: str
    value: str


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
    return Setting(position=last_private(recipe), option=option, value=str(value))


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
        raise UsageError(f"--set {text}: no stage is called {name}.", f"The recipe's stages are {', '.join(names)}.")
    return Setting(position=names.index(name), option=option.replace("_", "-"), value=value)


def _apply(stage: Stage, option: str, value: str) -> Stage:
    if isinstance(stage, Interpolate):
        if option != "beta":
            raise _lacks(stage, option)
        return replace(stage, beta=_parsed(float, stage, option, value))
    setter = SETTERS.get(option)
    if setter is None:
        raise UsageError(f"{stage.name}.{option} is not an option.", f"Choose one of {', '.join(SETTERS)}.")
    return setter(stage, option, value)


def _stage(parse: Callable[[str], Any]) -> Callable[[Train, str, str], Train]:
    def apply(stage: Train, option: str, value: str) -> Train:
        return replace(stage, **{_field(option): _parsed(parse, stage, option, value)})

    return apply


def _part(part: str, kind: type | UnionType, parse: Callable[[str], Any]) -> Callable[[Train, str, str], Train]:
    """A setter for a field of the stage's objective, mechanism or optimizer."""

    def apply(stage: Train, option: str, value: str) -> Train:
        if not isinstance(getattr(stage, part), kind):
            raise _lacks(stage, option)
        current: Any = getattr(stage, part)
        return replace(stage, **{part: replace(current, **{_field(option): _parsed(parse, stage, option, value)})})

    return apply


def _schedule(kind: type, parse: Callable[[str], Any]) -> Callable[[Train, str, str], Train]:
    def apply(stage: Train, option: str, value: str) -> Train:
        mechanism = stage.mechanism
        if not (isinstance(mechanism, DPSGD) and isinstance(mechanism.schedule, kind)):
            raise _lacks(stage, option)
        changed = replace(mechanism.schedule, **{_field(option): _parsed(parse, stage, option, value)})
        return replace(stage, mechanism=replace(mechanism, schedule=changed))

    return apply


def _weight_of(stage: Train, option: str, value: str) -> Train:
    parse = _weight if isinstance(stage.objective, Weighted) else float
    return _part("objective", Weighted | Anchored, parse)(stage, option, value)


def _release_noise(stage: Train, option: str, value: str) -> Train:
    setter = _part("objective", Weighted, float) if stage.release_noise_multiplier is None else _stage(float)
    return setter(stage, option, value)


def _batch_size(stage: Train, option: str, value: str) -> Train:
    field = "expected_batch" if isinstance(stage.mechanism, DPSGD) else "batch_size"
    return replace(stage, mechanism=replace(stage.mechanism, **{field: _parsed(int, stage, option, value)}))


def _optimizer(stage: Train, option: str, value: str) -> Train:
    kinds: dict[str, type[AdamW | AdamBC | SGD]] = {"adamw": AdamW, "adambc": AdamBC, "sgd": SGD}
    if value.lower() not in kinds:
        raise UsageError(f"{stage.name}.{option} is {value}.", f"Choose one of {', '.join(kinds)}.")
    return replace(stage, optimizer=kinds[value.lower()](learning_rate=stage.optimizer.learning_rate))


def _weight(text: str) -> object:
    return text if text in ("record", "released") else float(text)


def _jitter(text: str) -> tuple[float, float]:
    low, high = text.split(",")
    return float(low), float(high)


def _parsed(parse: Callable[[str], Any], stage: Stage, option: str, value: str) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise UsageError(f"{stage.name}.{option} is '{value}'.", f"Give {FORMS.get(parse, 'a number')}.") from error


def _field(option: str) -> str:
    return {"release-noise": "release_noise_multiplier"}.get(option, option.replace("-", "_"))


def _lacks(stage: Stage, option: str) -> UsageError:
    return UsageError(f"Stage {stage.name} has no {option}.", "Leave it out, or set it on another stage with --set.")


FIRST = ("noise-multiplier", "optimizer")
"""The options that others of the same stage build on."""

FORMS: dict[Callable[[str], Any], str] = {
    int: "a whole number",
    _jitter: "two numbers, LOW,HIGH",
    _weight: "a number from 0 to 1, record, or released",
}
"""What a parser wants, for the message that says so."""

SETTERS: dict[str, Callable[[Train, str, str], Train]] = {
    "epochs": _stage(int),
    "batch-size": _batch_size,
    "optimizer": _optimizer,
    "learning-rate": _part("optimizer", object, float),
    "weight-decay": _part("optimizer", object, float),
    "towards": _part("optimizer", object, str),
    "floor": _part("optimizer", AdamBC, float),
    "layers": _stage(str),
    "annealing": _stage(str),
    "noise-multiplier": _schedule(object, float),
    "escalation": _schedule(RiseReset, float),
    "jitter": _schedule(RiseReset, _jitter),
    "sigma-max": _schedule(RiseReset, float),
    "clip-norm": _part("mechanism", DPSGD, float),
    "weight": _weight_of,
    "target-share": _part("objective", Weighted, float),
    "release-noise": _release_noise,
    "strength": _part("objective", Anchored, float),
    "temperature": _part("objective", Anchored, float),
    "target": _part("objective", Anchored, str),
}
