"""Relations for tests."""

from typing import Any

from atdp_cli.privacy.ledger import GaussianRelease, LedgerEvent, PlainTraining, SubsampledGaussian
from atdp_cli.privacy.relation import Flags, Relation, Shape

DETECTOR, OTHER_DETECTOR = "a1" * 32, "b2" * 32
CORPUS, OTHER_CORPUS = "c3" * 32, "d4" * 32
TEXTS: dict[Shape, str] = {
    "none": "raw",
    "bytes": "redacted",
    "shape": "decoy",
    "pattern": "decoy",
}
"""What a stage without noise reads, by the shape of its relation."""


def relation(shape: Shape = "none", *, unit: str = "line", corpus: str = CORPUS, **flags: Any) -> Relation:
    """A relation under an entity tier, unless `flags` say otherwise."""
    return Relation(
        unit=unit, corpus=corpus, shape=shape, flags=Flags(**{"detector": DETECTOR, "tier": "low-entity", **flags})
    )


def uniform(**fields: Any) -> Relation:
    """The relation of raw text whose tokens all weigh the same."""
    return relation(**fields).model_copy(update={"flags": None})


def plain(shape: Shape, *, stage: str = "plain", **flags: Any) -> PlainTraining:
    """Training without noise on the text that has this shape."""
    return PlainTraining.model_validate({"stage": stage, "text": TEXTS[shape], "relation": relation(shape, **flags)})


def noisy(sigma: float = 1.0, steps: int = 1, q: float = 0.1, shape: Shape = "none", **flags: Any) -> LedgerEvent:
    """Steps with noise."""
    return SubsampledGaussian(
        stage="atdp",
        sampling_rate=q,
        noise_multiplier=sigma,
        clip_norm=0.1,
        steps=steps,
        relation=relation(shape, **flags),
    )


def votes(sigma: float = 2.0, **flags: Any) -> LedgerEvent:
    """A release of word frequencies."""
    return GaussianRelease(
        stage="fitted-decoys",
        statistic="how often words and digits stand in flagged spans",
        sensitivity=1.0,
        noise_multiplier=sigma,
        replaced=2**0.5,
        relation=relation("votes", **flags),
    )
