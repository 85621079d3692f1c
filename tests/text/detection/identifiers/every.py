"""The cases of all recognisers together. A recogniser without cases fails `test_each`."""

from atdp_cli.text.detection.identifiers import Recogniser
from tests.text.detection.identifiers import (
    accounts,
    contact,
    crypto,
    dates,
    health,
    hosts,
    money,
    names,
    national,
    national_europe,
    network,
    numbers,
    people,
    places,
    secrets,
    vehicles,
)

_MODULES = (
    accounts,
    contact,
    crypto,
    dates,
    health,
    hosts,
    money,
    names,
    national,
    national_europe,
    network,
    numbers,
    people,
    places,
    secrets,
    vehicles,
)
POSITIVES: dict[Recogniser, list[str]] = {key: texts for each in _MODULES for key, texts in each.POSITIVES.items()}
NEAR_MISSES: dict[Recogniser, list[str]] = {key: texts for each in _MODULES for key, texts in each.NEAR_MISSES.items()}


def unmarked(marked: str) -> tuple[str, list[str]]:
    """A text without its marks, and what they enclosed."""
    return marked.replace("⟦", "").replace("⟧", ""), [part.split("⟧")[0] for part in marked.split("⟦")[1:]]
