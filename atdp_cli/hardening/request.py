"""Completing a request so that it can be planned: the recipe with its settings, and defaults for what was not given."""

import os
from pathlib import Path
from typing import Annotated, Any

from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.detector import Detector, detector_files, make_detector
from atdp_cli.detection.options import DetectionOptions
from atdp_cli.detection.settings import read_detector
from atdp_cli.errors import UsageError
from atdp_cli.files.atomic_write import check_apart
from atdp_cli.files.private import folders_of
from atdp_cli.model.folder import check_folder, hidden_width, with_bases
from atdp_cli.model.same_weights import same_weights
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.ledger import LEDGER_FILE, private_events, read_ledger
from atdp_cli.settings import Option, declared, flags, named_paths
from atdp_cli.training.options import STAGE_OPTIONS, RecipeOptions, StageOptions, TrainingRunOptions
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks
from atdp_cli.training.recipe import Recipe, parse_recipe, tunable
from atdp_cli.training.recipe_file import SUFFIX, load_recipe
from atdp_cli.training.search import Effort
from atdp_cli.training.stage_options import apply_settings, has_option, parse_setting, stage_setting


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
        target_asked: Whether --target-epsilon was given, so that the target is not the default one.
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
    target_asked: bool = False
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
        "public_lists": detector.public_lists or None,
        "entities": ",".join(detector.label_filter.entities) or None,
        "exclude": ",".join(detector.label_filter.exclude) or None,
        "min_confidence": detector.label_filter.min_confidence or None,
        "allow": detector.allow,
        "deny": detector.deny,
        "spacy_pipeline": detector.pipeline,
        "ner": None if detector.ner is None else detector.ner.identity(),
        "crosscheck": detector.crosscheck,
    }


RECIPE, EPSILON, TIER = "fitted-decoys", 3.0, Tier.LOW_ENTITY
"""The defaults, as measured in examples/sweep."""

TUNE: Effort = "quick"

RATE, WIDTH = 4e-3, 144
"""The best of the rates that were tried for a model whose hidden states are so wide; at twice the width it was 1e-3."""

MIN_RATE = 5e-6


def settle(
    asked: HardenRequest,
    ranks: Ranks = SINGLE_PROCESS,
    command: tuple[str, ...] = (),
    command_without_paths: tuple[str, ...] = (),
) -> SettledRequest:
    """The request with every choice made. Given options win; docs/choosing.md has the reasons for the rest.

    Raises:
        UsageError: Options do not go together.
        InputError: A file cannot be read.
    """
    default = asked.recipe is None
    if default:
        _check_default(asked)
        asked = asked.fill({"tier": TIER})
    file = load_recipe(asked.recipe or RECIPE)
    settings = read_detector(asked.detector).fill(file.run.given())
    asked = asked.fill(file.run.given())
    recipe = _with_settings(file.recipe, asked)
    request = SettledRequest(
        **{name: getattr(asked, name) for name in asked.model_fields_set & SettledRequest.model_fields.keys()}
        | {
            "default": default,
            "output": asked.output or default_output(asked.model),
            "recipe_name": file.name,
            "recipe": recipe,
            "detector": make_detector(asked, asked.data[0], recipe=file.name, settings=settings),
            "target_asked": asked.target_epsilon is not None,
            "fixed_rate": bool(recipe) and sets_learning_rate(asked, recipe[-1].name),
            "ranks": ranks,
            "command": command,
            "command_without_paths": command_without_paths,
        }
    )
    _check_apart(asked, request)
    if default:
        request = with_tune(start_from_reference(request))
        sets_noise = any(".release-noise=" in text.replace("_", "-") for text in asked.set_)
        if asked.target_epsilon is None and not sets_noise:
            request = with_budget(request)
    tuned = request.tune is not None and tunable(request.recipe)
    return with_learning_rate(request) if (default or tuned) and not request.fixed_rate else request


def _check_apart(asked: HardenRequest, request: SettledRequest) -> None:
    """Refuse to replace a folder in which something lies that the run reads."""
    read, _ = named_paths(asked)
    recipe = [Path(asked.recipe)] if asked.recipe is not None and asked.recipe.lower().endswith(SUFFIX) else []
    check_apart((*with_bases(read), *recipe, *detector_files(request.detector)), folders_of(request.output))


def _check_default(asked: HardenRequest) -> None:
    missing = missing_options()
    for name, _, option in declared(StageOptions):
        if name.replace("_", "-") in missing and getattr(asked, name) is not None:
            raise UsageError(
                f"{flags(name, option)[0]} needs a DP stage, and {RECIPE}, the default recipe, has none.",
                "Add --recipe atdp, or another with a DP stage.",
            )


def missing_options() -> tuple[str, ...]:
    """The options of stages, without `--`, that no stage of the default recipe has: those of DP stages."""
    return tuple(name for name in STAGE_OPTIONS if not any(has_option(stage, name) for stage in parse_recipe(RECIPE)))


def _with_settings(recipe: Recipe, asked: HardenRequest) -> Recipe:
    """The recipe with the options of its stages applied."""
    values = {name: getattr(asked, name.replace("-", "_")) for name in STAGE_OPTIONS}
    if asked.target_epsilon is not None and values["noise-multiplier"] is not None:
        raise UsageError("--target-epsilon chooses the noise that --noise-multiplier sets.", "Leave one of them out.")
    settings = [stage_setting(recipe, name, value) for name, value in values.items() if value is not None]
    return apply_settings(recipe, [*settings, *(parse_setting(recipe, text) for text in asked.set_)])


def sets_learning_rate(asked: HardenRequest, stage: str) -> bool:
    """Whether the learning rate is set for the stage that bare options apply to."""
    setting = f"{stage}.learning-rate=".replace("_", "-")
    given: float | None = asked.learning_rate
    return given is not None or any(text.replace("_", "-").startswith(setting) for text in asked.set_)


def default_output(model: Path) -> Path:
    """MODEL-hardened, beside the model; also for `.` and for a link, which keeps its own name."""
    # resolve() would follow the link
    named = Path(os.path.abspath(model)) if model.name in ("", "..") else model  # noqa: PTH100
    return named.with_name(f"{named.name}-hardened")


def start_from_reference(request: SettledRequest) -> SettledRequest:
    """With a reference the run starts from it: nothing of the model is in the result, and ε can be finite.

    Naming a reference declares that it never saw the corpus, unless a ledger beside it says that its past is unknown.

    Raises:
        UsageError: It is the model itself, so its past is the model's.
        InputError: That ledger or a model cannot be read.
    """
    if request.reference is None:
        return request
    for folder in (request.model, request.reference):
        check_folder(folder)
    if same_weights(request.model, request.reference):
        raise UsageError(
            f"{request.reference} has the weights of {request.model} but for rounding, so it is no public base of it.",
            "Give the base that it was trained from, or leave --reference out.",
        )
    path = request.reference / LEDGER_FILE
    known = not path.exists() or read_ledger(path).checkpoint_history == "public"
    return request.replace(
        asked=request.model,
        model=request.reference,
        reference=None,
        checkpoint_history="public" if known else request.checkpoint_history,
    )


def learning_rate(width: int) -> float:
    """η for hidden states of this width. It falls with the square, as between the two widths that were measured.

    At 768 that is 1.4e-4 and at 4096 5e-6, about what people fine-tune such models with; nothing wider than 288 was
    measured here.

    >>> learning_rate(144), learning_rate(288), learning_rate(768)
    (0.004, 0.001, 0.00014)
    """
    rate = RATE * (WIDTH / width) ** 2
    return float(f"{min(max(rate, MIN_RATE), RATE):.2g}")


def with_learning_rate(request: SettledRequest) -> SettledRequest:
    """The request with the learning rate for its model's width, if the configuration states the width."""
    check_folder(request.model)
    width = hidden_width(request.model)
    if width is None:
        return request
    rate = stage_setting(request.recipe, "learning-rate", learning_rate(width))
    return request.replace(recipe=apply_settings(request.recipe, [rate]))


def with_tune(request: SettledRequest) -> SettledRequest:
    """The request with the default of --tune.

    Where people review before each epoch there are no trials, which would read spans that nobody has reviewed.
    """
    if request.tune is not None:
        return request
    return request.replace(tune=TUNE if request.review is None else "none")


def with_budget(request: SettledRequest) -> SettledRequest:
    """The request with its default budget `EPSILON`, on top of what its start's ledger has spent.

    Otherwise a model whose ledger has spent that much already could not be hardened again without --target-epsilon.

    Raises:
        InputError: That ledger cannot be read.
    """
    path, spent = request.model / LEDGER_FILE, 0.0
    if path.exists() and (earlier := private_events((ledger := read_ledger(path)).events)):
        # As the selective guarantee counts, which is never less.
        spent = epsilon_pld(earlier, request.delta, grid=ledger.grid, adjacency="replace-one")
    return request.replace(target_epsilon=EPSILON + spent)
