"""The neighbour relation as data: between which corpora an event of the ledger is stable, and how relations intersect.

Two corpora are neighbours where they differ in one record. Training without noise tells nothing about the difference
if it reads the same text from both: redacted text whose placeholders are the same bytes, or decoys drawn from the same
shapes, and where equal values have equal decoys from the same equality pattern. Such an event is stable between fewer
neighbours than one with noise, which bounds any change of a record. What a ledger guarantees holds between the corpora
that are neighbours under the relation of each of its events.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Shape = Literal["none", "bytes", "shape", "pattern", "votes"]
"""What an event reads of flagged characters: `none`, nothing in their place, so they are read as they are; `bytes`,
their placeholders by label; `shape`, the shapes that decoys are drawn from; `pattern`, these, and which values of a
record are equal or made of one another; `votes`, how often words and digits stand there."""

HumanInput = Literal["allow", "deny", "spans", "extra-spans", "review-each-epoch"]
"""The options by which people have a say in what is flagged."""

STABLE_TIERS = ("low-entity", "high-entity")
"""Tiers whose flags follow entities; those of contextual tiers move with the sentence."""

Label = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,39}$")]

Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Flags(_Frozen):
    """Everything that decides which characters of a record are flagged.

    Attributes:
        detector: SHA-256 over the recognisers, the spaCy pipeline, and the code that makes placeholders and decoys;
            None where a file of spans takes the detector's place.
        tier: What counts as sensitive.
        human: The options by which people have a say. They may have read the corpus, so by them one record can change
            what is flagged in another.
        labels: The labels that alone count; none for all.
        without: Labels that do not count.
        least_confidence: The least confidence of a flag that counts.
        public_lists: Why lists of terms are public and part of the detector, as the user declares; empty without such.
        crosscheck: Whether a language model has a say, by which one record can change another's flags as well.
    """

    detector: Hexadecimal | None
    tier: str
    human: tuple[HumanInput, ...] = ()
    crosscheck: bool = False
    public_lists: Annotated[str, Field(max_length=200)] = ""
    labels: tuple[Label, ...] = ()
    without: tuple[Label, ...] = ()
    least_confidence: float = Field(default=0.0, ge=0, le=1)

    @property
    def by_record(self) -> bool:
        """Whether the flags of a record depend on that record alone."""
        return not (self.human or self.crosscheck)

    @property
    def others(self) -> str:
        """What else than the record has a say in its flags, in words; empty where nothing has."""
        return _listed([f"--{option}" for option in self.human] + ["the cross-check"] * self.crosscheck)

    @property
    def kept(self) -> str:
        """Which of the detector's flags count, in words; empty for all."""
        only = f"labels {_listed(self.labels)} only" if self.labels else ""
        without = f"without {_listed(self.without)}" if self.without else ""
        least = f"confidence of at least {self.least_confidence:g}" if self.least_confidence else ""
        return ", ".join(filter(None, (only, without, least)))


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


class Relation(_Frozen):
    """Between which corpora an event is stable.

    Attributes:
        unit: What one record is.
        corpus: A commitment to the training records (`commitment`) that only their owner can open; None for a corpus
            that does not exist.
        shape: What the event reads of flagged characters.
        flags: What flags them; None where the event takes no notice of flags.
    """

    unit: str
    corpus: Hexadecimal | None
    shape: Shape
    flags: Flags | None


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The corpora between which all of several events are stable. They differ in one record, or in some.

    Attributes:
        unit: What a record is.
        shapes: What the corpora have in common in the flagged places; nothing where a record may change in any way.
        flags: What flags them; None where a record may change in any way.
    """

    unit: str
    shapes: frozenset[Shape] = frozenset()
    flags: Flags | None = None


def intersect(relations: Sequence[tuple[str, Relation]]) -> Neighbours | str:
    """The neighbours that are so under every relation, or why none are known to be, as a clause.

    Args:
        relations: Each with the name of the stage whose event has it; at least one.
    """
    (first_stage, first), *others = relations
    for stage, relation in relations:
        if reason := _moves(stage, relation):
            return reason
    for stage, other in others:
        if reason := _disagreement(first_stage, first, stage, other):
            return reason
    return Neighbours(unit=first.unit, shapes=frozenset(relation.shape for _, relation in relations), flags=first.flags)


def _moves(stage: str, relation: Relation) -> str | None:
    """The reason why the replacement of flagged characters can change with them, as a clause; None if it cannot."""
    flags = relation.flags
    if flags is None or relation.shape == "none":
        return f"stage {stage} read flagged characters as they are"
    if flags.tier not in STABLE_TIERS or not flags.by_record or flags.detector is None:
        return "masks of a contextual tier, of lists taken from the data or of a cross-check can move with the secret"
    return None


def _disagreement(first: str, relation: Relation, second: str, other: Relation) -> str | None:
    """What keeps two relations from intersecting, as a clause; None where they do."""
    if relation.unit != other.unit:
        return f"stage {first} protects each {relation.unit} and stage {second} each {other.unit}"
    if relation.flags is None or other.flags is None or relation.flags == other.flags:
        return None
    stages = f"stages {first} and {second} do" if first != second else f"two runs of stage {first} do"
    if relation.flags.tier != other.flags.tier:
        return f"{stages} not flag the same: one has tier {relation.flags.tier}, the other {other.flags.tier}"
    if relation.flags.kept != other.flags.kept:
        one, another = (flags.kept or "all labels" for flags in (relation.flags, other.flags))
        return f"{stages} not flag the same: one takes {one}, the other {another}"
    detectors = " and ".join((flags.detector or "none")[:8] for flags in (relation.flags, other.flags))
    return f"{stages} not flag the same: their detectors are not the same ({detectors})"


def detectors_disagree(relations: Sequence[tuple[str, Relation]]) -> str | None:
    """Which two stages flag by different detectors, as a clause; None where all flag by one.

    Then a sentence about what "the detector" flags speaks of more than one.
    """
    flagging = [
        (stage, relation) for stage, relation in relations if relation.flags is not None and relation.flags.detector
    ]
    for stage, relation in flagging[1:]:
        first_stage, first = flagging[0]
        if first.flags is None or relation.flags is None or first.flags.detector == relation.flags.detector:
            continue
        same_tier = relation.flags.model_copy(update={"tier": first.flags.tier})
        return _disagreement(first_stage, first, stage, relation.model_copy(update={"flags": same_tier}))
    return None


def commitment(key: bytes, records: Iterable[str]) -> str:
    """HMAC-SHA256 over the texts of the training records, in order.

    Without the key nobody can test a guess of the corpus against it; with it the owner can show that it is the same.
    """
    digest = hmac.new(key, digestmod=hashlib.sha256)
    for record in records:
        content = record.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


def hypothetical(unit: str = "record", tier: str = STABLE_TIERS[0]) -> Relation:
    """The relation of an event of a run that nobody has begun, with the detector alone."""
    return Relation(unit=unit, corpus=None, shape="none", flags=Flags(detector="0" * 64, tier=tier))
