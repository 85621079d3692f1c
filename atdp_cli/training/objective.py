"""What a stage asks of each token: its weight in its record's loss."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atdp_cli.model.windows import Window
from atdp_cli.privacy.weights import balancing_weight, record_weight
from atdp_cli.training.recipe import Objective, Uniform

Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A record ready for training: its loss is Σ weight·(negative log-likelihood) over its windows' tokens.

    Attributes:
        windows: The record's windows; none for an empty record, which adds nothing.
        weights: One array a window, shape [T]; 0 at tokens that are no targets.
    """

    windows: tuple[Window, ...]
    weights: tuple[Weights, ...]


def sensitive_share(windows: Sequence[Window]) -> float:
    """α of one record: the sensitive share of its targets, in [0, 1]; 0 for an empty record."""
    targets = sum(int(window.targets.sum()) for window in windows)
    flagged = sum(int((window.targets & window.sensitive).sum()) for window in windows)
    return flagged / targets if targets else 0.0


def make_example(windows: tuple[Window, ...], objective: Objective, *, released_alpha: float | None = None) -> Example:
    """Weigh a record's tokens; nothing but this record and public numbers enter.

    Args:
        released_alpha: The corpus' share of sensitive tokens, as released with noise; for weight `released`.
    """
    other = _other_weight(windows, objective, released_alpha)
    return Example(windows, tuple(_weights(window, other) for window in windows))


def _weights(window: Window, other: float) -> Weights:
    weights = np.where(window.sensitive | window.function, 1.0, other)
    return (weights * window.targets).astype(np.float32)


def _other_weight(windows: Sequence[Window], objective: Objective, released_alpha: float | None) -> float:
    if isinstance(objective, Uniform):
        return 1.0
    if objective.weight == "record":
        return record_weight(sensitive_share(windows), objective.target_share)
    if objective.weight == "released":
        if released_alpha is None:
            raise ValueError("weight released needs released_alpha")
        return balancing_weight(released_alpha, objective.target_share)
    return float(objective.weight)
