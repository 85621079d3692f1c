"""Structured identifiers: patterns and checksums that need no language model.

To add one, write `pattern(…)`, a row of a table, or a function under `@recogniser` in one of these modules;
docs/identifiers.md shows how. Where several find the same characters, `spans.merge` chooses the label.
"""

from atdp_cli.detection.identifiers import (  # noqa: F401 - each registers its recognisers
    accounts,
    contact,
    crypto,
    dates,
    health,
    keyed,
    money,
    names,
    national,
    network,
    numbers,
    places,
    secrets,
)
from atdp_cli.detection.identifiers.recogniser import REGISTERED, Recogniser, pattern

RECOGNISERS: tuple[Recogniser, ...] = tuple(recognise for _, recognise in REGISTERED)
"""All recognisers of these modules."""

IDENTIFIER_LABELS = frozenset(label for label, _ in REGISTERED)
"""Every label that they give."""

__all__ = ["IDENTIFIER_LABELS", "RECOGNISERS", "Recogniser", "pattern"]
