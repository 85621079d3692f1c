"""200 random ledgers, always the same, and what each scope of them guarantees."""

import random
from typing import Any

from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import DeclaredTraining, Ledger, LedgerEvent, ReadModel
from tests.privacy.relations import noisy, plain, uniform, votes

COUNT = 200

KINDS = ("bytes", "bytes", "shape", "shape", "pattern", "none", "noisy", "noisy", "noisy", "uniform", "votes", "other")

Figures = dict[str, list[float | str | None]]
"""ε, which is `inf` where none is finite, and δ by scope."""


def random_ledgers() -> list[Ledger]:
    """Ledgers of one to four events of every kind, under all that may have a say in what is flagged."""
    draw = random.Random(57)
    return [_ledger(draw) for _ in range(COUNT)]


def _ledger(draw: random.Random) -> Ledger:
    flags: dict[str, Any] = {
        "tier": draw.choice(("low-entity", "low-entity", "high-entity", "high-entity", "high-contextual")),
        "human": draw.choice(((), (), (), (), ("allow",), ("deny", "extra-spans"), ("review-each-epoch",))),
        "crosscheck": draw.random() < 0.1,
    }
    events = [_event(draw, flags) for _ in range(draw.randint(1, 4))]
    return Ledger(
        unit="line",
        checkpoint_history=draw.choice(("public", "public", "public", "unknown")),
        records=1000,
        delta=draw.choice((1e-6, 1e-5, 1e-9)),
        grid=1e-2,
        events=tuple(events),
    )


def _event(draw: random.Random, flags: dict[str, Any]) -> LedgerEvent:
    kind: Any = draw.choice(KINDS)
    stage = draw.choice("abc")
    if kind in ("bytes", "shape", "pattern", "none"):
        chosen_on = draw.choice((None, None, "decoy", "decoy", "raw"))
        return plain(kind, stage=stage, **flags).model_copy(update={"chosen_on": chosen_on})
    if kind == "votes":
        return votes(draw.choice((1.0, 2.5, 8.0)), **flags)
    if kind == "other":
        weights = {"model.safetensors": "ab12"}
        read = ReadModel(stage=stage, past=draw.choice(("public", "declared", "declared", "unknown")), weights=weights)
        return draw.choice((read, DeclaredTraining(stage=stage, corpora=("c1",), weights=weights)))
    steps = noisy(draw.choice((0.8, 1.2, 3.0)), draw.choice((1, 20, 200)), draw.choice((0.01, 0.1, 1.0)), **flags)
    return steps.model_copy(update={"relation": uniform()}) if kind == "uniform" else steps


def figures(ledger: Ledger) -> Figures:
    """What `guarantees` gives."""
    return {
        each.scope: [str(each.epsilon) if each.epsilon == float("inf") else each.epsilon, each.delta]
        for each in guarantees(ledger)
    }
