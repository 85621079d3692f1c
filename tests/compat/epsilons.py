"""Which guarantees of random ledgers changed since an earlier commit, and why.

    python -m tests.compat.epsilons CHECKOUT

CHECKOUT is a work tree of the earlier commit, whose ledgers have no relation. Each of 200 random ledgers is written as
both know it, with the same events, and each program says what it guarantees. A scope that changed is listed with the
reason that the later program gives; without one, the script fails.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from atdp_cli.privacy.guarantee import guarantees, selective_void
from atdp_cli.privacy.ledger import Ledger, LedgerEvent, PlainTraining, Prior, ReadModel, read_ledger, write_ledger
from atdp_cli.privacy.relation import STABLE_TIERS, Shape
from tests.privacy.relations import OTHER_DETECTOR, noisy, plain, votes

LEDGERS, TOLERANCE = 200, 1e-9

SHAPES: tuple[Shape, ...] = ("none", "bytes", "bytes", "equality", "corpus equality", "shape", "shape")

SCRIPT = """
import json, math, sys
from pathlib import Path
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import Ledger
for path in sorted(Path(sys.argv[1]).glob("*.json")):
    ledger = Ledger.model_validate_json(path.read_text())
    print(json.dumps({each.scope: each.epsilon for each in guarantees(ledger)}))
"""


def random_ledger(draw: random.Random) -> Ledger:
    """One to five events, mostly of one tier and detector."""
    flags: dict[str, Any] = {"tier": draw.choice((*STABLE_TIERS, "low-entity", "high-contextual"))}
    events: list[LedgerEvent] = []
    for _ in range(draw.randint(1, 5)):
        if draw.random() < 0.3:
            flags |= draw.choice(({"detector": OTHER_DETECTOR}, {"tier": "high-entity"}, {"human": ("allow",)}))
        kind = draw.choice(("plain", "plain", "noisy", "votes"))
        if kind == "plain":
            events.append(
                plain(draw.choice(("none", "bytes", "bytes", "equality", "corpus equality", "shape")), **flags)
            )
        elif kind == "noisy":
            rate, sigma = draw.uniform(0.01, 0.3), draw.uniform(0.8, 6)
            events.append(noisy(sigma, draw.randint(1, 40), rate, draw.choice(("none", "shape")), **flags))
        else:
            events.append(votes(draw.uniform(0.8, 10), **flags))
    if draw.random() < 0.1:
        events.insert(0, ReadModel(stage="a", past=draw.choice(("public", "declared", "unknown")), weights={}))
    prior: Prior = "public" if draw.random() < 0.8 else "unknown"
    return Ledger(unit="line", prior=prior, records=100, delta=1e-6, grid=1e-3, events=tuple(events))


def as_version_1(ledger: Ledger) -> dict[str, Any]:
    """The ledger as the earlier program has it."""
    events = []
    for event in ledger.events:
        fields = event.model_dump(mode="json")
        relation = fields.pop("relation", None)
        if isinstance(event, PlainTraining) and event.relation and relation["shape"] != "none":
            flags = event.relation.flags
            stable = flags is not None and flags.tier in STABLE_TIERS and flags.by_record
            linked = "equality" in event.relation.shape
            fields["masks"] = "movable" if not stable else "linked" if linked else "stable"
        events.append(fields)
    return ledger.model_dump(mode="json") | {"schema_version": 1, "events": events}


def main(checkout: Path) -> int:
    draw = random.Random(22)
    ledgers = [random_ledger(draw) for _ in range(LEDGERS)]
    with tempfile.TemporaryDirectory() as folder:
        for number, ledger in enumerate(ledgers):
            (Path(folder) / f"{number:03}.json").write_text(json.dumps(as_version_1(ledger)))
        answer = subprocess.run(
            [sys.executable, "-c", SCRIPT, folder],
            cwd=checkout,
            env={"PYTHONPATH": str(checkout)},
            check=True,
            capture_output=True,
            text=True,
        )
        path = Path(folder) / "now"
        now = []
        for ledger in ledgers:
            write_ledger(path, ledger)
            now.append(read_ledger(path))
    then = [json.loads(line) for line in answer.stdout.splitlines()]
    changed, same, unexplained = Counter[str](), 0, 0
    for ledger, earlier in zip(now, then, strict=True):
        later: dict[str, float | None] = {each.scope: each.epsilon for each in guarantees(ledger)}
        for scope in sorted({*earlier, *later}):
            if scope in earlier and scope in later and _equal(earlier[scope], later[scope]):
                same += 1
            elif reason := _reason(ledger, scope, earlier, later):
                changed[reason] += 1
            else:
                unexplained += 1
                print("unexplained:", scope, earlier.get(scope), later.get(scope), ledger.events)
    print(f"{LEDGERS} ledgers: {same} guarantees the same to {TOLERANCE:g}")
    for reason, count in changed.most_common():
        print(f"{count:4}  {reason}")
    return 1 if unexplained else 0


def _equal(epsilon: float | None, other: float | None) -> bool:
    return epsilon == other or (epsilon is not None and other is not None and abs(epsilon - other) <= TOLERANCE)


def _reason(ledger: Ledger, scope: str, earlier: dict[str, Any], later: dict[str, Any]) -> str | None:
    """Why a scope came or went; None where its ε changed, which nothing explains."""
    if scope == "uncounted":
        return "new: what no release counts has ε = 0 and δ = 0"
    if scope != "selective" or (scope in earlier and scope in later):
        return None
    if scope in later:
        return "new: numbered placeholders are the same bytes where equal flagged texts are equal"
    return f"gone, as it was unsound: {selective_void(ledger)}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
