"""An option is declared once: as a field of a model, with its type, bounds, default and help."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
import typer
from typer.models import OptionInfo

from atdp_cli.cli.app import COMMANDS, load_command
from atdp_cli.cli.generate import command_groups, generate_options
from atdp_cli.detection.settings import DetectorSettings
from atdp_cli.hardening.fingerprint import PLAN, RECIPE, RECORDS, START
from atdp_cli.hardening.request import HardenRequest
from atdp_cli.settings import Option, Options, declared, flags
from atdp_cli.training.options import RunOptions, StageOptions


def groups(command: Callable[..., None]) -> Iterator[type[Options]]:
    """The models from which a command's options are made."""
    for parameter in inspect.signature(command).parameters.values():
        if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, Options):
            yield parameter.annotation


def twice_in_a_command(*models: type[Options]) -> set[str]:
    """Options that more than one field of a command's models has."""
    actual = [each for model in models for name, _, option in declared(model) for each in flags(name, option)]
    return {each for each, times in Counter(actual).items() if times > 1}


def copied(*models: type[Options]) -> set[str]:
    """Help texts with more than one declaration. What is made from a field carries that field's own `Option`."""
    declarations: dict[str, set[int]] = {}
    for model in models:
        for _, field, option in declared(model):
            declarations.setdefault(" ".join((field.description or "").split()), set()).add(id(option))
    return {text for text, options in declarations.items() if len(options) > 1}


ALL = tuple(dict.fromkeys(group for name in COMMANDS for group in groups(load_command(name))))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_one_field(name: str) -> None:
    models = command_groups(load_command(name))
    assert not twice_in_a_command(*models)
    fields = {field for model in models for field, _, option in declared(model) if option.flag and not option.argument}
    made = {
        parameter.name
        for parameter in inspect.signature(generate_options(load_command(name))).parameters.values()
        for part in getattr(parameter.annotation, "__metadata__", ())
        if isinstance(part, OptionInfo)
    }
    assert made == fields


def test_no_help_is_written_twice_and_none_is_missing() -> None:
    assert not copied(*ALL)
    assert all(field.description for model in ALL for _, field, _ in declared(model))


def test_only_public_options_reach_a_recipe_file() -> None:
    options = {name: option for name, _, option in declared(HardenRequest, DetectorSettings)}
    assert all(options[name].public for name in RunOptions.model_fields)
    assert all(option.public for _, _, option in declared(StageOptions))


def test_a_part_of_the_fingerprint_that_shows_an_option_exists() -> None:
    parts = {RECORDS, START, RECIPE, PLAN}
    parts |= {flags(name, option)[0] for name, _, option in declared(HardenRequest) if option.fingerprint is True}
    assert {option.fingerprint for _, _, option in declared(HardenRequest)} <= parts | {True, False}


def test_not_given_differs_from_given_the_default() -> None:
    seen: list[set[str]] = []

    class Small(Options):
        tier: Annotated[str, Option(None)] = "low"
        """A tier."""

    def command(options: Small) -> None:
        seen.append(options.model_fields_set)

    command.__annotations__["options"] = Small
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("options", inspect.Parameter.KEYWORD_ONLY, annotation=Small)]
    )
    app: Any = typer.Typer()
    app.command()(generate_options(command))
    for arguments in ([], ["--tier", "low"]):
        app(args=arguments, standalone_mode=False)
    assert seen == [set(), {"tier"}]
    assert Small().fill({"tier": "high"}).tier == "high"
    assert Small(tier="low").fill({"tier": "high"}).tier == "low"
