"""Runs that are stopped after so many steps, and resumed."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.detector import Detector
from atdp_cli.errors import InterruptedRunError
from atdp_cli.events import Notify, ignore
from atdp_cli.hardening.checkpoint import StopRequested
from atdp_cli.hardening.model import load_model
from atdp_cli.hardening.plan import plan_request
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.hardening.run import open_run
from atdp_cli.hardening.summary import HardenSummary
from atdp_cli.hardening.train import run_plan
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, read_ledger
from atdp_cli.training.recipe import DPSGD, NonPrivate, Recipe, Train, parse_recipe


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where runs of the small checkpoint are made.

    Attributes:
        spans: Of the corpus, so that no run looks for them.
    """

    model: Path
    corpus: Path
    spans: Path
    folder: Path

    def request(self, recipe: str | Recipe = "dp-sgd", out: str = "out", **settings: Any) -> SettledRequest:
        """A run of two epochs of three steps a stage."""
        stages = parse_recipe(recipe) if isinstance(recipe, str) else recipe
        asked: dict[str, Any] = {
            "model": self.model,
            "data": (self.corpus,),
            "spans": self.spans,
            "output": self.folder / out,
            "recipe_name": recipe if isinstance(recipe, str) else "own",
            "recipe": tuple(small(stage) for stage in stages),
            "detector": Detector(tier=Tier.LOW_ENTITY),
            "max_records": 60,
            "insecure_seed": 1,
            "checkpoint_every": 0,
            "device": "cpu",
        }
        return SettledRequest(**asked | settings)


def small(stage: Train) -> Train:
    """Two epochs of three steps of 57 training records."""
    mechanism = stage.mechanism
    sized = replace(mechanism, batch_size=19) if isinstance(mechanism, NonPrivate) else sized_privately(mechanism)
    return replace(stage, epochs=2, mechanism=sized)


def sized_privately(mechanism: DPSGD) -> DPSGD:
    """With 19 records a step."""
    return replace(mechanism, expected_batch=19)


def run(request: SettledRequest, *, stop: int | None = None, notify: Notify = ignore) -> HardenSummary | None:
    """The run; None where it was stopped, after so many steps and other occasions to ask."""
    planned = plan_request(request)
    opened = open_run(planned)
    if opened is None or isinstance(opened, HardenSummary):
        return opened
    try:
        return run_plan(planned, opened, load_model(planned.request, ignore), notify, lambda: asking(stop))
    except InterruptedRunError:
        assert stop is not None
        return None


@contextmanager
def asking(stop: int | None) -> Iterator[StopRequested]:
    """Asks for a stop when it is asked for the `stop`th time, from 1."""
    asked = 0

    def ask() -> bool:
        nonlocal asked
        asked += 1
        return asked == stop

    yield ask


def broken_up(request: SettledRequest, stops: Callable[[int], int | None]) -> tuple[HardenSummary, int]:
    """The run resumed after each stop, and how often it was; `stops` returns when each session is to stop."""
    session = 0
    while (done := run(request.replace(resume=True), stop=stops(session))) is None:
        session += 1
    return done, session


def weights(hardened: HardenSummary) -> dict[str, torch.Tensor]:
    """As they were written."""
    return load_file(Path(hardened.output, "model.safetensors"))


def equal(tensors: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether both are the same, bit by bit."""
    return tensors.keys() == other.keys() and all(torch.equal(tensors[name], other[name]) for name in tensors)


def report(hardened: HardenSummary) -> Any:
    """The whole report."""
    return json.loads(Path(f"{hardened.output}.private", "privacy_report.json").read_text())


def ledger_of(hardened: HardenSummary) -> Ledger:
    """As it was written, without the name of the run."""
    ledger = read_ledger(Path(hardened.output, LEDGER_FILE))
    events = tuple(event.model_copy(update={"run": None}) for event in ledger.events)
    return ledger.model_copy(update={"events": events})


def finished(request: SettledRequest) -> HardenSummary:
    """A run that goes to its end."""
    done = run(request)
    assert done is not None
    return done
