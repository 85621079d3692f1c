"""How long a plan will take, from a few timed records of random tokens."""

import time
from collections.abc import Callable

import numpy as np

from atdp_cli.jobs.opening import Opened
from atdp_cli.jobs.request import Planned
from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.tokens import encode_record
from atdp_cli.model.windows import Window
from atdp_cli.privacy.csprng import secure_stream
from atdp_cli.training.noise import normals
from atdp_cli.training.objective import Example
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import reads_records, reads_reference
from atdp_cli.training.subset import selected

TIMED_RECORDS = 8
TIMED_NORMALS = 1 << 18


def estimate_seconds(planned: Planned, opened: Opened) -> float:
    """A rough time for the stages: records of typical lengths through the engine, and noise, times the plan."""
    model = opened.checkpoint.model
    records = planned.split.records
    typical = records[:: max(1, len(records) // TIMED_RECORDS)][:TIMED_RECORDS]
    tokenizer, limit = opened.checkpoint.tokenizer, context_length(model)
    lengths = [max(2, min(len(encode_record(tokenizer, record.text)), limit)) for record in typical]
    examples = [_random_example(length, model.get_input_embeddings().weight.shape[0], planned) for length in lengths]
    for_records = _seconds(lambda: opened.engine.run(model, examples, 1.0)) / len(examples)
    stream = secure_stream()
    for_a_normal = _seconds(lambda: normals(stream, TIMED_NORMALS)) / TIMED_NORMALS
    seconds = 0.0
    for stage in planned.plan.training:
        parameters = sum(parameter.numel() for parameter in selected(model, stage.stage.layers))
        seconds += _stage_seconds(stage, for_records, parameters * for_a_normal)
    return seconds


def _stage_seconds(stage: StagePlan, for_a_record: float, for_noise: float) -> float:
    records = stage.batch * for_a_record if reads_records(stage.stage) else 0.0
    # A reference runs forwards only, which is a third of a step.
    read = 4 / 3 if reads_reference(stage.stage) else 1.0
    return stage.steps * (records * read + (for_noise if stage.noise_multipliers else 0.0))


def _random_example(length: int, vocabulary: int, planned: Planned) -> Example:
    draw = np.random.default_rng(length)
    ids, nothing = draw.integers(0, vocabulary, length), np.zeros(length, dtype=np.bool_)
    source = ids if planned.split.sources is not None else None
    weights = np.ones(length, dtype=np.float32)
    weights[0] = 0
    return Example((Window(0, ids, nothing, nothing, nothing, source),), (weights,))


def _seconds(work: Callable[[], object]) -> float:
    took = []
    for _ in range(2):
        started = time.monotonic()
        work()
        took.append(time.monotonic() - started)
    return min(took)
