"""Parts of a private step as they must not be: what the harnesses have to find."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from atdp_cli.privacy.rng import Floats, KeyStream
from atdp_cli.training.clip.engine import ClippedSum, ClippingEngine
from atdp_cli.training.examples import Example


def unclipped(engine: ClippingEngine) -> ClippingEngine:
    """No gradient reaches the clip norm."""

    def run(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
        return engine(model, records, 1e9)

    return run


def window_by_window(engine: ClippingEngine) -> ClippingEngine:
    """Each window is clipped, so a record adds up to its number of windows times C."""

    def run(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
        apart = [
            Example((window,), (weights,))
            for record in records
            for window, weights in zip(record.windows, record.weights, strict=True)
        ]
        # The norms are for the report, which nobody reads here.
        return ClippedSum(engine(model, apart, clip_norm).gradient, torch.zeros(len(records), dtype=torch.float64))

    return run


class Silent(KeyStream):
    """Box and Muller's radius of 1 is 0: the noise is nothing."""

    def __init__(self) -> None:
        super().__init__(bytes(32))

    def uniforms(self, count: int) -> Floats:
        return np.ones(count)


class Everyone(KeyStream):
    """Every record's coin says that it is in the sample."""

    def __init__(self) -> None:
        super().__init__(bytes(32))

    def uniforms(self, count: int) -> Floats:
        return np.zeros(count)


class Repeating(KeyStream):
    """Starts from the same key again whenever the engine runs, so that every step has the same noise."""

    def __init__(self, seed: int) -> None:
        self._key = np.random.default_rng(seed).bytes(32)
        super().__init__(self._key)

    def again(self, engine: ClippingEngine) -> ClippingEngine:
        """The engine, which rewinds this stream first."""

        def run(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
            super(Repeating, self).__init__(self._key)
            return engine(model, records, clip_norm)

        return run
