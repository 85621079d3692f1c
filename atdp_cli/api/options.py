"""Keywords of the API's functions as the options of the commands: one declaration, one check."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from atdp_cli.errors import UsageError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from atdp_cli.options import Options

COMMAND_LINE = frozenset({"json", "quiet", "progress", "dry_run", "list_recipes", "shard_model", "exit_zero"})
"""Options that are about a terminal, an exit code or several processes, and are no keywords."""

NUMBERS_AS_TEXT = frozenset({"weight"})
"""Options of stages that the commands read as text, since a number is one of several forms."""


def groups_of(command: Callable[..., None]) -> "Iterator[tuple[str, type[Options]]]":
    """A command's parameters that are groups of options."""
    from atdp_cli.options import Options

    for parameter in inspect.signature(command).parameters.values():
        if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, Options):
            yield parameter.name, parameter.annotation


def keywords_of(command: Callable[..., None]) -> "Iterator[tuple[str, str, FieldInfo]]":
    """Each keyword with its field: an option is called as on the command line, with _ for -."""
    from atdp_cli.options import declared, flags

    for _, group in groups_of(command):
        for field_name, field, option in declared(group):
            keyword = flags(field_name, option)[0].removeprefix("--").replace("-", "_")
            if keyword not in COMMAND_LINE:
                yield keyword, field_name, field


def check_keywords(function: str, command: Callable[..., None], given: Iterable[str]) -> None:
    """Refuse a keyword that is no option of the command.

    Args:
        function: What messages call the function.

    Raises:
        UsageError: As said.
    """
    known = {keyword for keyword, _, _ in keywords_of(command)}
    for keyword in given:
        if keyword not in known:
            close = difflib.get_close_matches(keyword, sorted(known), n=1)
            remedy = f"Did you mean {close[0]}?" if close else "Its keywords are the options of the command."
            raise UsageError(f"{function} has no keyword {keyword!r}.", remedy)


def parse_keywords(command: Callable[..., None], given: Mapping[str, Any]) -> dict[str, Any]:
    """The command's groups of options by the names of its parameters, checked as those of the command line.

    Args:
        given: Values by keyword, all of them known; those that are None are not given.

    Raises:
        UsageError: A value is out of range.
    """
    values = {field: given[keyword] for keyword, field, _ in keywords_of(command) if given.get(keyword) is not None}
    values |= {name: str(values[name]) for name in NUMBERS_AS_TEXT & values.keys()}
    return {
        name: group(**{field: values[field] for field in group.model_fields if field in values})
        for name, group in groups_of(command)
    }
