"""Perplexity of DP-SGD at equal ε: as it is, with random allocation, and with layers chosen by a noisy vote.

    pip install --target ALLOCATION --no-deps PLD_accounting numba llvmlite
    PYTHONPATH=ALLOCATION python -m tests.benchmarks.dp_sampling --json

`dp-sgd` of the recipes, from a checkpoint that never saw the corpus, with its own batch and epochs. *Allocation*: in
each epoch a record is in one step, drawn uniformly, in place of each step with probability B/N (Feldman and Shenfeld
2026, arXiv 2602.17284, whose package accounts for it). *Vote*: each record votes for the half of the blocks where its
gradient is longest, the votes have Gaussian noise, and the half with most votes is trained, after DP-SAPF (arXiv
2605.30312). All three spend the same ε by PLD. Each takes the learning rate that was best for it with seed 0 alone;
reported are the other seeds, as ratios to `dp-sgd` with the same seed.
"""

import argparse
import copy
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any
from unittest.mock import patch

import dp_accounting
import numpy as np
import torch
from dp_accounting.pld import PLDAccountant

from atdp_cli.events import ignore
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.model.perplexity import perplexity
from atdp_cli.model.windows import Marks, Window, encode_windows
from atdp_cli.privacy.calibrate import calibrate_noise
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.privacy.trace import Sampled
from atdp_cli.text.corpus.records import read_records
from atdp_cli.training.clipping.select import select_engine
from atdp_cli.training.loop import Randomness, run_private
from atdp_cli.training.objective import make_example
from atdp_cli.training.plan import Corpus, make_plan
from examples.experiments.systems import system_of
from tests.benchmarks.stages import QUICKSTART, STORIES
from tests.training.stages import stage_run, trained

DELTA, CONTEXT = 1e-6, 128
VOTE_NOISE = 20.0
"""σ of the sum of votes; a record's votes have length 1."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """How a run samples and what it trains.

    Attributes:
        allocated: Whether each record is in one step of an epoch.
        voted: Whether half of the blocks are trained, by a vote.
    """

    name: str
    noise_multiplier: float
    allocated: bool = False
    voted: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """What all runs have in common."""

    arguments: argparse.Namespace
    checkpoint: Checkpoint
    training: Sequence[Window]
    held_out: Sequence[Window]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--model", choices=("quickstart", "stories"), default="quickstart")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--held-out", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--rates", nargs="+", default=["5e-4", "2e-3", "8e-3"])
    parser.add_argument("--seeds", type=int, default=3, help="beside seed 0")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    answer = measure(arguments)
    sys.stdout.write(json.dumps(answer) + "\n" if arguments.json else f"{answer}\n")


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    folder, corpus, _ = QUICKSTART if arguments.model == "quickstart" else STORIES
    if not corpus.is_file():
        sys.exit(f"There is no file {corpus}.")
    checkpoint = load_checkpoint(folder)
    texts = [record.text for record in islice(read_records(corpus), arguments.records + arguments.held_out)]
    windows = [
        window
        for place, text in enumerate(texts)
        for window in encode_windows(checkpoint.tokenizer, place, text, Marks(), context=CONTEXT, max_windows=1)
    ]
    work = Work(
        arguments=arguments,
        checkpoint=checkpoint,
        training=[window for window in windows if window.record < arguments.records],
        held_out=[window for window in windows if window.record >= arguments.records],
    )
    steps = round(arguments.records / arguments.batch)
    methods = methods_for(steps, arguments.epochs, arguments.epsilon)
    start = copy.deepcopy(checkpoint.model.state_dict())

    def after(method: Method, rate: str, seed: int) -> float:
        checkpoint.model.load_state_dict(start)
        train(work, method, rate, seed)
        return float(perplexity(checkpoint.model, work.held_out).all or math.nan)

    found: dict[str, dict[str, Any]] = {}
    for method in methods:
        tried = {rate: after(method, rate, 0) for rate in arguments.rates}
        best = min(tried, key=tried.__getitem__)
        reported = [after(method, best, seed) for seed in range(1, arguments.seeds + 1)]
        found[method.name] = {"noise_multiplier": method.noise_multiplier, "tried": tried, "perplexity": reported}
        sys.stderr.write(f"{method.name} {found[method.name]}\n")
    today = found[methods[0].name]["perplexity"]
    for entry in found.values():
        shares = np.log(np.array(entry["perplexity"]) / np.array(today))
        entry["over_dp_sgd"] = [round(float(np.exp(value)), 4) for value in (shares.mean(), shares.min(), shares.max())]
    checkpoint.model.load_state_dict(start)
    names = ("model", "records", "held_out", "epochs", "batch", "epsilon", "seeds")
    settings = {name: getattr(arguments, name) for name in names}
    before = perplexity(checkpoint.model, work.held_out).all
    return {**settings, "steps_an_epoch": steps, "perplexity_before": before, "methods": found}


def methods_for(steps: int, epochs: int, epsilon: float) -> tuple[Method, ...]:
    """Each with the noise that spends ε."""

    def poisson(sigma: float, vote: bool = False) -> float:
        accountant = PLDAccountant(value_discretization_interval=1e-3)
        step = dp_accounting.PoissonSampledDpEvent(1 / steps, dp_accounting.GaussianDpEvent(sigma))
        accountant.compose(step, steps * epochs)
        if vote:
            accountant.compose(dp_accounting.GaussianDpEvent(VOTE_NOISE))
        return float(accountant.get_epsilon(DELTA))

    return (
        Method(name="dp-sgd", noise_multiplier=least_noise(poisson, epsilon)),
        Method(
            name="allocation",
            noise_multiplier=least_noise(lambda sigma: allocated_epsilon(sigma, steps, epochs), epsilon),
            allocated=True,
        ),
        Method(name="vote", noise_multiplier=least_noise(lambda sigma: poisson(sigma, True), epsilon), voted=True),
    )


def allocated_epsilon(sigma: float, steps: int, epochs: int) -> float:
    try:
        from PLD_accounting import gaussian_allocation_epsilon_range
    except ImportError:
        sys.exit("PLD_accounting is not installed; this script's docstring has the command.")
    upper, _ = gaussian_allocation_epsilon_range(
        delta=DELTA, sigma=sigma, num_steps=steps, num_selected=1, num_epochs=epochs, epsilon_accuracy=0.02
    )
    return float(upper)


def least_noise(spent: Callable[[float], float], epsilon: float) -> float:
    """The least σ that spends at most ε, to 0.3 % of ε."""
    found = calibrate_noise(spent, epsilon, start=1.0, cheapest=20.0, dearest=0.3, tolerance=0.003)
    if found is None:
        sys.exit(f"No noise spends less than {epsilon:g}.")
    return found


def train(work: Work, method: Method, rate: str, seed: int) -> None:
    """One run of `dp-sgd` on the model in place."""
    given = work.arguments
    options = [f"noise-multiplier={method.noise_multiplier}", f"learning-rate={rate}"]
    options += [f"epochs={given.epochs}", f"batch-size={given.batch}"]
    if method.voted:
        options.append(f"layers={voted_blocks(work, seed)}")
    recipe = trained(system_of("dp-sgd", [f"dp-sgd.{option}" for option in options]).steps[0].recipe)
    corpus = Corpus(records=given.records, relation=hypothetical("line", "high-contextual"))
    plan = make_plan(recipe, corpus, delta=DELTA, prior="public").training[0]
    examples = [make_example((window,), recipe[0].objective) for window in work.training]
    allocation = patch("atdp_cli.training.loop.poisson_sample", Allocation(plan.steps_per_epoch))
    with tempfile.TemporaryFile("w") as journal, allocation if method.allocated else nullcontext():
        run_private(
            stage_run(work.checkpoint.model, plan, examples=examples),
            engine=select_engine(work.checkpoint.model, "auto", ignore).run,
            randomness=Randomness(sample=insecure_stream(seed, "sample"), noise=insecure_stream(seed, "noise")),
            journal=journal,
        )


class Allocation:
    """In place of `poisson_sample`: each epoch begins by drawing one step for every record."""

    def __init__(self, steps: int) -> None:
        self.steps, self.taken = steps, 0
        self.step_of = np.zeros(0, dtype=np.int64)

    def __call__(self, records: int, sampling_rate: float, stream: Any, observe: Any) -> Any:
        start, step = stream.position, self.taken % self.steps
        if step == 0:
            self.step_of = np.floor(stream.uniforms(records) * self.steps).astype(np.int64)
        self.taken += 1
        rows = np.flatnonzero(self.step_of == step)
        end = stream.position
        observe(Sampled(records=records, sampling_rate=sampling_rate, drawn=len(rows), start=start, end=end))
        return rows


def voted_blocks(work: Work, seed: int) -> str:
    """A regular expression of the half of the blocks with most votes."""
    model = work.checkpoint.model
    blocks: dict[str, list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if block := re.search(r"\.(h|layers)\.\d+\.", name):
            blocks.setdefault(block[0], []).append(parameter)
    votes = torch.zeros(len(blocks), dtype=torch.float64)
    kept = len(blocks) // 2
    for window in work.training:
        model.zero_grad()
        ids = torch.from_numpy(np.asarray(window.token_ids))[None]
        if ids.shape[1] < 2:
            continue
        model(input_ids=ids, labels=ids).loss.backward()
        lengths = [squared_length(parts) for parts in blocks.values()]
        votes[torch.tensor(lengths).topk(kept).indices] += 1 / math.sqrt(kept)
    model.zero_grad(set_to_none=True)
    noise = torch.from_numpy(insecure_stream(seed, "vote").uniforms(2 * len(blocks))).view(2, -1)
    normal = (-2 * noise[0].log()).sqrt() * (2 * math.pi * noise[1]).cos()
    best = (votes + VOTE_NOISE * normal).topk(kept).indices.tolist()
    return "|".join(re.escape(list(blocks)[place]) for place in sorted(best))


def squared_length(parameters: Sequence[torch.nn.Parameter]) -> float:
    return sum(float(parameter.grad.square().sum()) for parameter in parameters if parameter.grad is not None)


if __name__ == "__main__":
    main()
