"""The settings of a tuned stage that nothing searches."""

from dataclasses import replace

from atdp_cli.training.objectives.kinds import Distilled, Uniform
from atdp_cli.training.recipe import Train
from atdp_cli.training.tuning.search import WARMUP

FORGETTING = 2.0
"""η where the start may have memorised, over η from a public start. Chosen on the quickstart: docs/measured.md."""


def tuned_stage(stage: Train, *, memorised: bool, sharded: bool, fixed_rate: bool) -> Train:
    """The stage with the settings that no trial searches: a warm-up, and the best of its epochs.

    Where the start may have memorised, η is higher, and the last epoch stays: what was memorised is forgotten to the
    last step. What the start has learnt of unflagged text need not be learnt again: it is kept.

    Args:
        fixed_rate: Whether η was given, and stays.
    """
    stage = replace(stage, warmup=stage.warmup or WARMUP)
    if not memorised:
        return replace(stage, restore_best=stage.restore_best is not False)
    if not fixed_rate:
        rate = stage.optimizer.learning_rate * FORGETTING
        stage = replace(stage, optimizer=replace(stage.optimizer, learning_rate=rate))
    return stage if sharded or stage.objective != Uniform() else replace(stage, objective=Distilled())
