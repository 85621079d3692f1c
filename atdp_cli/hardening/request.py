"""The request of `harden` and `plan`, and the same with every choice made."""

from pathlib import Path
from typing import Annotated, Any

from atdp_cli.detection.detector import Detector
from atdp_cli.detection.options import DetectionOptions
from atdp_cli.settings import Option
from atdp_cli.training.options import RecipeOptions, StageOptions, TrainingRunOptions
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks
from atdp_cli.training.recipe import Recipe


class HardenRequest(TrainingRunOptions, RecipeOptions, StageOptions, DetectionOptions):
    """A run of `atdp harden`, one field an option.

        harden(HardenRequest(model="model", data=["corpus.txt"], output="hardened"))

    Raises:
        UsageError: A value is out of range, or an option has no such name.
    """

    model: Annotated[Path, Option(main=True, argument=True, metavar="MODEL")]
    """Folder of a causal language model, as save_pretrained writes it."""


class SettledRequest(TrainingRunOptions):
    """A request with every choice made: the recipe and the detector that will be used.

    Attributes:
        asked: The model that was named, where the run starts from another; else None.
        default: Whether no recipe was named.
        recipe: The stages with their settings applied.
        fixed_rate: The learning rate was given, so that --tune leaves it as it is.
        ranks: Which of several processes of the run this one is.
        command: The command line as it was given, for the private report.
        command_without_paths: The same with nothing in it that names a file or is text of the user's own.
    """

    model: Path
    asked: Path | None = None
    default: bool = False
    output: Path  # no longer None: the default depends on the model
    recipe_name: str
    recipe: Recipe
    detector: Detector
    fixed_rate: bool = False
    ranks: Ranks = SINGLE_PROCESS
    command: tuple[str, ...] = ()
    command_without_paths: tuple[str, ...] = ()

    @property
    def review(self) -> float | None:
        """The share of sentences that people review before each epoch; None for no review."""
        return self.review_share if self.review_each_epoch else None


def options_of(request: SettledRequest) -> dict[str, Any]:
    """The value of every option that steps depend on, by field name."""
    detector = request.detector
    return dict(request) | {
        "review_each_epoch": request.review,
        "tier": detector.tier,
        "speaker_labels": detector.speaker_labels or None,
        "entities": ",".join(detector.label_filter.entities) or None,
        "exclude": ",".join(detector.label_filter.exclude) or None,
        "min_confidence": detector.label_filter.min_confidence or None,
        "allow": detector.allow,
        "deny": detector.deny,
        "spacy_pipeline": detector.pipeline,
        "ner": None if detector.ner is None else detector.ner.identity(),
        "crosscheck": detector.crosscheck,
    }
