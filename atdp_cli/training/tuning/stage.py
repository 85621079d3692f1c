"""The settings of a tuned stage that nothing searches."""

from dataclasses import replace

from atdp_cli.training.objectives.kinds import Distilled, Uniform
from atdp_cli.training.recipe import Stage, Train
from atdp_cli.training.tuning.search import WARMUP


def tuned_stage(stage: Stage, *, memorised: bool, sharded: bool) -> Stage:
    """The stage with the settings that --tune does not search: a warm-up, and the best of its epochs.

    What was memorised is forgotten to the last step, so where that is the goal the last epoch stays. What the start
    has learnt of unflagged text need not be learnt again: it is kept.
    """
    if not isinstance(stage, Train):
        return stage
    stage = replace(stage, warmup=stage.warmup or WARMUP)
    if not memorised:
        return replace(stage, restore_best=stage.restore_best is not False)
    return stage if sharded or stage.objective != Uniform() else replace(stage, objective=Distilled())
