"""How long a plan will take, from a few timed batches of random tokens."""

import math
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice

import numpy as np
import torch

from atdp_cli.jobs.opening import Opened
from atdp_cli.jobs.request import Planned
from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.tokens import encode_record
from atdp_cli.model.windows import Window
from atdp_cli.privacy.csprng import secure_stream
from atdp_cli.training.clipping.batches import default_tokens
from atdp_cli.training.noise import normals
from atdp_cli.training.objective import Example
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.precision import computing_in
from atdp_cli.training.ranks import share
from atdp_cli.training.recipe import reads_records, reads_reference
from atdp_cli.training.stage import summed_up
from atdp_cli.training.subset import selected, training_only

LOOKED_AT = 64
"""Records of the corpus whose length is looked at, spread over it."""

FILLS = 2
"""Physical batches that are timed, where a step has so many."""

TIMED_NORMALS = 1 << 18
TIMED_PARAMETERS = 1 << 20


def estimate_seconds(planned: Planned, opened: Opened) -> float:
    """About how long the stages take: a part of a step of each is timed, and multiplied.

    Detection, measuring and writing are not in it.
    """
    examples = random_corpus(planned, opened)
    return sum(_stage_seconds(stage, planned, opened, examples) for stage in planned.plan.training)


def random_corpus(planned: Planned, opened: Opened) -> tuple[Example, ...]:
    """Records of random tokens, as long as some of the corpus are, in random order."""
    records = planned.split.records
    some = records[:: max(1, len(records) // LOOKED_AT)][:LOOKED_AT]
    tokenizer, limit = opened.checkpoint.tokenizer, context_length(opened.checkpoint.model)
    draw = np.random.default_rng(0)
    vocabulary = opened.checkpoint.model.get_input_embeddings().weight.shape[0]
    found = []
    for record in some:
        length = max(2, min(len(encode_record(tokenizer, record.text)), limit * planned.request.max_windows))
        found.append(_random_example(length, limit, vocabulary, draw, source=planned.split.sources is not None))
    return tuple(found[place] for place in draw.permutation(len(found)))


def a_step(examples: Sequence[Example], batch: int, tokens: int) -> tuple[Example, ...]:
    """Records of a step, no more than fill `FILLS` physical batches of so many tokens."""
    chosen: list[Example] = []
    left = FILLS * tokens
    for example in islice(cycle(examples), batch):
        left -= sum(len(window.token_ids) for window in example.windows)
        if chosen and left < 0:
            break
        chosen.append(example)
    return tuple(chosen)


def _stage_seconds(stage: StagePlan, planned: Planned, opened: Opened, examples: Sequence[Example]) -> float:
    model, ranks = opened.checkpoint.model, planned.request.ranks
    with training_only(model, stage.stage.layers):
        parameters = sum(parameter.numel() for parameter in selected(model, stage.stage.layers))
        step = parameters * _seconds_a_parameter()
        if stage.noise_multipliers:
            step += parameters * _seconds_a_normal() / ranks.size
        if reads_records(stage.stage):
            sample = a_step(examples, stage.batch, planned.request.microbatch or default_tokens(model))
            # A reference runs forwards only, which is a third of a step.
            read = 4 / 3 if reads_reference(stage.stage) else 1.0
            own = share(ranks, sample)
            step += read * _seconds(lambda: _gradient(stage, planned, opened, own)) * stage.batch / len(sample)
    return stage.steps * step


def _gradient(stage: StagePlan, planned: Planned, opened: Opened, sample: Sequence[Example]) -> object:
    model = opened.checkpoint.model
    if stage.noise_multipliers:
        return opened.engine.run(model, sample, 1.0)
    if planned.request.ranks.sharded:
        return opened.engine.run(model, sample, math.inf)
    with computing_in(model, planned.request.precision):
        return summed_up(model, sample, tokens=default_tokens(model))


def _seconds_a_normal() -> float:
    stream = secure_stream()
    return _seconds(lambda: normals(stream, TIMED_NORMALS)) / TIMED_NORMALS


def _seconds_a_parameter() -> float:
    """What goes over the parameters in a step: Adam's four passes, and the look for numbers that are not finite."""
    parameter, gradient, first, second = (torch.ones(TIMED_PARAMETERS) for _ in range(4))

    def step() -> None:
        first.lerp_(gradient, 0.1)
        second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        parameter.addcdiv_(first, second.sqrt().add_(1e-8), value=-1e-6)
        bool(torch.isfinite(parameter).all())

    return _seconds(step) / TIMED_PARAMETERS


def _random_example(length: int, limit: int, vocabulary: int, draw: np.random.Generator, *, source: bool) -> Example:
    windows, weights = [], []
    for start in range(0, length, limit):
        size = min(limit, length - start)
        ids, nothing = draw.integers(0, vocabulary, size), np.zeros(size, dtype=np.bool_)
        windows.append(Window(0, ids, nothing, nothing, nothing, ids if source else None))
        values = np.ones(size, dtype=np.float32)
        values[0] = 0
        weights.append(values)
    return Example(tuple(windows), tuple(weights))


def _seconds(work: Callable[[], object]) -> float:
    took = []
    for _ in range(2):
        started = time.monotonic()
        work()
        took.append(time.monotonic() - started)
    return min(took)
