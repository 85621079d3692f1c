"""The cases of all recognisers: a JSON file for each of their modules.

A text with marks ⟦…⟧ is a positive: what they enclose is found in it, and nothing else. One without is a near miss.
"""

import json
from pathlib import Path

from atdp_cli.detection.identifiers import (
    Recogniser,
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

_MODULES = (accounts, contact, crypto, dates, health, keyed, money, names, national, network, numbers, places, secrets)

CASES: dict[Recogniser, list[str]] = {}
NAMES: dict[Recogniser, str] = {}
for _module in _MODULES:
    _cases = Path(__file__).with_name(_module.__name__.rpartition(".")[2]).with_suffix(".json")
    _recognisers = vars(_module) | getattr(_module, "NUMBERS", {}) | getattr(_module, "KEYS", {})
    for _name, _texts in json.loads(_cases.read_text(encoding="utf-8")).items():
        CASES[_recognisers[_name]], NAMES[_recognisers[_name]] = _texts, _name

POSITIVES = {recogniser: [text for text in texts if "⟦" in text] for recogniser, texts in CASES.items()}
NEAR_MISSES = {recogniser: [text for text in texts if "⟦" not in text] for recogniser, texts in CASES.items()}


def unmarked(marked: str) -> tuple[str, list[str]]:
    """A text without its marks, and what they enclosed."""
    return marked.replace("⟦", "").replace("⟧", ""), [part.split("⟧")[0] for part in marked.split("⟦")[1:]]
