"""Whether a run that is resumed is the same run: its fingerprint compared, part by part."""

from collections.abc import Mapping
from pathlib import Path

from atdp_cli.errors import UsageError

RECORDS, START, RECIPE, PLAN = "records", "starting checkpoint", "recipe", "plan"

SETTINGS = "settings of models"
"""Configuration and tokenizer of all models that are read."""

NOT_GIVEN = "not given"

Fingerprint = Mapping[str, str]
"""Parts of a run by name: hashes of what is large or private, and settings as they are."""


def check_same_fingerprint(folder: Path, before: Fingerprint, now: Fingerprint) -> None:
    """Refuse to resume another run than the one that was interrupted.

    Raises:
        UsageError: Names the first thing in which they differ.
    """
    if difference := first_difference(before, now):
        raise UsageError(
            f"{folder} is from another run: {difference}.",
            "Give it what it was started with, or start again with --force; nothing of it was released.",
        )


def first_difference(before: Fingerprint, now: Fingerprint) -> str | None:
    """The first thing in which two runs differ; None where they are the same."""
    for name in {**before, **now}:
        was, is_now = before.get(name, NOT_GIVEN), now.get(name, NOT_GIVEN)
        if was != is_now:
            return _describe(name, was, is_now)
    return None


DIFFERENCES = {
    RECORDS: "the records are not the same, so a corpus has changed, or what of it is held out",
    START: "the starting checkpoint's files are not the same",
    SETTINGS: "a configuration, a tokenizer or the settings of an adapter are not the same",
    PLAN: "its plan was another, as another version of atdp may make it",
}
"""What is said where the hashes of a part differ."""


def _describe(name: str, was: str, is_now: str) -> str:
    if name in DIFFERENCES:
        return DIFFERENCES[name]
    if name == RECIPE:
        first, second = _differing_lines(was, is_now)
        return f"its recipe has {first}, this one {second}"
    if max(len(was), len(is_now)) > 40:
        return f"what {name} names is not the same"
    return f"{name} was {was}, now it is {is_now}"


def _differing_lines(was: str, is_now: str) -> tuple[str, str]:
    """The first lines that are not in both texts."""
    before, after = was.splitlines(), is_now.splitlines()
    return (
        next((f"`{line}`" for line in before if line not in after), "other stages"),
        next((f"`{line}`" for line in after if line not in before), "other stages"),
    )
