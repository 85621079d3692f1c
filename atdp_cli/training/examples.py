"""The examples that a stage trains on, and the weight of each token in its record's loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from atdp_cli.model.windows import Mask, Window
from atdp_cli.privacy.noisy_statistic import record_weight
from atdp_cli.training.objectives import Distilled, Objective, Weighted

if TYPE_CHECKING:
    from transformers import PreTrainedModel


Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A record ready for training: its loss is Σ weight·(the token's loss) over its windows' tokens.

    A token's loss is its negative log-likelihood; where it is distilled, λ·KL(teacher ‖ model) + (1 − λ)·that, of the
    distributions over the whole vocabulary at that token.

    Attributes:
        windows: The record's windows; none for an empty record, whose gradient is 0.
        weights: One array a window, shape [T]; 0 at tokens that are no targets.
        distilled: One mask a window, shape [T]; None where no token is distilled.
        teacher: The model, in eval mode, from which tokens are distilled; None for the one that trains, as it was at
            the start of the stage.
        share: λ in (0, 1].
    """

    windows: tuple[Window, ...]
    weights: tuple[Weights, ...]
    distilled: tuple[Mask, ...] | None = None
    teacher: "PreTrainedModel | None" = None
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.distilled is None and self.teacher is not None:
            raise ValueError("A teacher goes with distilled tokens.")
        if len({window.record for window in self.windows}) > 1:
            raise ValueError("An example holds windows of several records: packed rows cannot be clipped by record.")


def count_tokens(examples: Sequence[Example]) -> int:
    """The tokens of all windows of these records."""
    return sum(len(window.token_ids) for example in examples for window in example.windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """The setting of a stage's weight w; a field is None where it does not apply.

    Attributes:
        clamped: For w from the record: the share of records with α ≥ r, whose w is 1. Private.
        share: The resulting r(w) of the paper: the share of all weight that sensitive tokens carry, in [0, 1]; None
            where no token has weight. Private.
    """

    clamped: float | None = None
    share: float | None = None


def sensitive_share(windows: Sequence[Window]) -> float:
    """α of one record: the sensitive share of its targets, in [0, 1]; 0 for an empty record."""
    targets = sum(int(window.targets.sum()) for window in windows)
    flagged = sum(int((window.targets & window.sensitive).sum()) for window in windows)
    return flagged / targets if targets else 0.0


def weigh(records: Sequence[tuple[Window, ...]], objective: Objective) -> Weighing:
    """Summarise the weights that the objective gives these records."""
    clamped = None
    if isinstance(objective, Weighted) and objective.unflagged_weight == "record":
        at_most = sum(sensitive_share(record) >= objective.target_share for record in records)
        clamped = at_most / len(records)
    return Weighing(clamped=clamped, share=weight_share(records, objective))


def weight_share(records: Sequence[tuple[Window, ...]], objective: Objective) -> float | None:
    """r(w) over these records: the weight of sensitive tokens over that of all tokens; None where the latter is 0.

    For w on all other tokens it is α/(α + w(1−α)), the paper's definition; function words, at weight 1, lower it.
    """
    sensitive = total = 0.0
    for record in records:
        for window, weights in zip(record, token_weights(record, objective), strict=True):
            total += float(weights.sum())
            sensitive += float(weights[window.sensitive].sum())
    return sensitive / total if total else None


def make_example(
    windows: tuple[Window, ...],
    objective: Objective,
    *,
    reference: "PreTrainedModel | None" = None,
) -> Example:
    """Weigh a record's tokens, by this record and public numbers alone.

    Args:
        reference: The public model, where the objective reads one.
    """
    weights, distilled = token_weights(windows, objective), objective.demands.distilled
    if distilled is None:
        return Example(windows, weights)
    if objective.demands.reference and reference is None:
        raise ValueError("this objective needs a reference")
    of_flagged = distilled == "flagged"
    masks = tuple((window.sensitive == of_flagged) & window.targets for window in windows)
    share = objective.share if isinstance(objective, Distilled) else 1.0
    return Example(windows, weights, masks, reference, share)


def token_weights(windows: Sequence[Window], objective: Objective) -> tuple[Weights, ...]:
    """Each token's weight in its record's loss, one array a window, shape [T]."""
    other, function = _other_weight(windows, objective), objective.demands.function_weight
    return tuple(
        (np.where(window.sensitive, 1.0, np.where(window.function, function, other)) * window.targets).astype(
            np.float32
        )
        for window in windows
    )


def _other_weight(windows: Sequence[Window], objective: Objective) -> float:
    if not isinstance(objective, Weighted):
        return objective.demands.unflagged_weight
    if isinstance(objective.unflagged_weight, str):
        return record_weight(sensitive_share(windows), objective.target_share)
    return float(objective.unflagged_weight)
