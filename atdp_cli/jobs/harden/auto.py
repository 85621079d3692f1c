"""What --auto chooses from what a user has, and when to say that it would serve better. Reasons: docs/choosing.md."""

from pathlib import Path

from atdp_cli.errors import UsageError
from atdp_cli.files.private import FAILED, PARTIAL, PRIVATE, beside
from atdp_cli.jobs.harden.recipes import strongest_scope
from atdp_cli.jobs.harden.request import HardenRequest, Planned, plan_request
from atdp_cli.model.folder import check_folder, hidden_width
from atdp_cli.privacy.ledger import LEDGER_FILE, read_ledger
from atdp_cli.runs.fingerprint import RECIPE as BEGUN
from atdp_cli.text.detection.spans import Tier
from atdp_cli.training.recipe import Recipe, Text, Train, last_private
from atdp_cli.training.recipe_file import parse_recipe_text
from atdp_cli.training.settings import apply_settings, stage_setting

RECIPE, EPSILON, TIER = "fitted-decoys", 3.0, Tier.LOW_ENTITY
"""As measured in examples/sweep."""

RATE, WIDTH = 4e-3, 144
"""The best of the rates that were tried for a model whose hidden states are so wide; at twice the width it was 1e-3."""

LEAST_RATE = 5e-6

BETTER = "Where a checkpoint has memorised secrets, decoys measured better than this recipe: --auto, docs/choosing.md."


def start_from_reference(request: HardenRequest) -> HardenRequest:
    """With a reference the run starts there: what the model memorised stays behind, and ε can be finite.

    It never saw the corpus, as whoever names it declares, unless a ledger beside it says that its past is unknown.

    Raises:
        InputError: That ledger cannot be read.
    """
    if request.reference is None:
        return request
    path = request.reference / LEDGER_FILE
    known = not path.exists() or read_ledger(path).prior == "public"
    return request.replace(model=request.reference, reference=None, prior="public" if known else request.prior)


def learning_rate(width: int) -> float:
    """η for hidden states of this width: it falls with the square, as between the two widths that were measured.

    At 768 that is 1.4e-4 and at 4096 5e-6, about what people fine-tune such models with; nothing wider than 288 was
    measured here.

    >>> learning_rate(144), learning_rate(288), learning_rate(768)
    (0.004, 0.001, 0.00014)
    """
    rate = RATE * (WIDTH / width) ** 2
    return float(f"{min(max(rate, LEAST_RATE), RATE):.2g}")


def with_learning_rate(request: HardenRequest) -> HardenRequest:
    """The request with the learning rate that suits its model's width, where the configuration tells it."""
    check_folder(request.model)
    width = hidden_width(request.model)
    if width is None:
        return request
    rate = stage_setting(request.recipe, "learning-rate", learning_rate(width))
    return request.replace(recipe=apply_settings(request.recipe, [rate]))


def start_notice(request: HardenRequest, model: Path) -> str:
    """Where the run starts and why, in a line or two.

    Args:
        model: What the user asked to harden.
    """
    if request.model != model:
        return f"Trains {request.model} on decoys, not {model}: what that one memorised stays behind."
    if request.prior == "public":
        return f"Trains {model} on decoys."
    return (
        f"Trains {model} on decoys, which hide what it memorised from the audits that we ran; no ε bounds that. With "
        "the public base that it comes from, --reference BASE, what is flagged can have one."
    )


def fit_epochs(planned: Planned, seconds: float, minutes: float) -> Planned:
    """The plan with as many epochs as fit.

    Args:
        seconds: What the plan takes.
        minutes: What it may take, above 0.

    Raises:
        UsageError: Not even one epoch fits.
    """
    epochs = sum(stage.stage.epochs for stage in planned.plan.training)
    fitting = int(min(minutes * 60 * epochs / seconds, epochs))
    if fitting < 1:
        raise UsageError(
            f"One epoch takes about {seconds / epochs / 60:.1f} minutes, more than --minutes {minutes:g}.",
            "Allow more, or train less: --max-records, --lora-rank.",
        )
    if fitting >= epochs:
        return planned
    recipe = apply_settings(planned.request.recipe, [stage_setting(planned.request.recipe, "epochs", fitting)])
    return plan_request(planned.request.replace(recipe=recipe))


def with_resumed_epochs(planned: Planned) -> Planned | None:
    """The plan with the epochs of the run that is resumed, whatever fits now; None where there is no such run.

    Raises:
        InputError: The record of that run cannot be read.
    """
    from atdp_cli.runs.workspace import read_record  # loads torch

    output, recipe = planned.request.output, planned.request.recipe
    records = [read_record(beside(output, suffix)) for suffix in (PARTIAL, PRIVATE, FAILED + PRIVATE)]
    begun = next((each.identity[BEGUN] for each in records if each is not None and BEGUN in each.identity), None)
    if not planned.request.resume or begun is None:
        return None
    was, is_now = (_epochs(stages) for stages in (parse_recipe_text(begun).recipe, recipe))
    if was is None or was == is_now:
        return planned
    return plan_request(planned.request.replace(recipe=apply_settings(recipe, [stage_setting(recipe, "epochs", was)])))


def _epochs(recipe: Recipe) -> int | None:
    """Of the stage that --epochs is about; None where it has none."""
    stage = recipe[last_private(recipe)]
    return stage.epochs if isinstance(stage, Train) else None


def better_recipe(planned: Planned) -> str | None:
    """A line for those who harden a checkpoint that may have memorised what a stage reads raw; None for others."""
    reads_decoys = any(
        isinstance(stage.stage, Train) and stage.stage.text is Text.DECOY for stage in planned.plan.stages
    )
    if reads_decoys or not planned.plan.stages:
        return None
    return BETTER if strongest_scope(planned.plan.ledger) in ("increment only", "nothing") else None
