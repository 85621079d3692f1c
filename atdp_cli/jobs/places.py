"""The names of the folders that a run writes. No torch here."""

from pathlib import Path

PRIVATE, PARTIAL, FAILED = ".private", ".partial", ".failed"
"""What is appended to OUT for the folder of private files, for that of an unfinished run, and for a model that missed
its limit."""


def beside(output: Path, suffix: str) -> Path:
    """`OUT` → `OUT.private`, whatever dots OUT has."""
    return output.with_name(output.name + suffix)
