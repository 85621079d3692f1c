"""Whether a stage of training fits a model."""

from transformers import PreTrainedModel

from atdp_cli.training.objectives.unlearn import Unlearn
from atdp_cli.training.objectives.unlearning import check_unlearning
from atdp_cli.training.recipe import Train
from atdp_cli.training.trainable import selected


def check_stage(model: PreTrainedModel, stage: Train) -> None:
    """Refuse a stage that does not fit the model.

    Raises:
        UsageError: Its layers are none of the model's, or its objective is not for such a model.
    """
    selected(model, stage.layers)
    if isinstance(stage.objective, Unlearn):
        check_unlearning(model, stage.objective)
