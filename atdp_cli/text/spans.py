"""Sensitive spans of a record and the four nested tiers that flag them."""

from dataclasses import dataclass
from enum import StrEnum


class Tier(StrEnum):
    """How much counts as sensitive. Each tier contains the one before it."""

    LOW_ENTITY = "low-entity"
    HIGH_ENTITY = "high-entity"
    LOW_CONTEXTUAL = "low-contextual"
    HIGH_CONTEXTUAL = "high-contextual"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` to `end` (code points, end exclusive) of a record's text.

    Attributes:
        label: What was found: PERSON, EMAIL, PRON, SUBJ, OBJ, VERB, …
        source: Who found it: ner, pos, dep, pattern, deny.
        tier: The first tier that flags it; every later one does too.
    """

    start: int
    end: int
    label: str
    source: str
    tier: Tier
