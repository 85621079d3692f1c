"""What --auto chooses from what a user has, and when to say that it would serve better. Reasons: docs/choosing.md."""

from dataclasses import replace
from pathlib import Path

from atdp_cli.errors import UsageError
from atdp_cli.jobs.recipes import holding
from atdp_cli.jobs.request import HardenRequest, Planned, plan_request
from atdp_cli.privacy.ledger import LEDGER_FILE
from atdp_cli.text.spans import Tier
from atdp_cli.training.recipe import Text, Train
from atdp_cli.training.settings import apply_settings, bare

RECIPE, EPSILON, TIER = "fitted-decoys", 3.0, Tier.LOW_ENTITY
"""As measured in examples/sweep."""

BETTER = "Where a checkpoint has memorised secrets, decoys measured better than this recipe: --auto, docs/choosing.md."


def from_public_start(request: HardenRequest) -> HardenRequest:
    """With a reference the run starts there: what the model memorised stays behind, and ε can be finite.

    A reference without a ledger never saw the corpus, as whoever names it declares.
    """
    if request.reference is None:
        return request
    known = (request.reference / LEDGER_FILE).exists()
    return replace(request, model=request.reference, reference=None, prior=request.prior if known else "public")


def started(request: HardenRequest, model: Path) -> str:
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


def within(planned: Planned, seconds: float, minutes: float) -> Planned:
    """The plan with as many epochs as fit.

    Args:
        seconds: What the plan takes.
        minutes: What it may take, above 0.

    Raises:
        UsageError: Not even one epoch fits.
    """
    epochs = sum(stage.stage.epochs for stage in planned.plan.training)
    fitting = int(minutes * 60 * epochs / seconds)
    if fitting < 1:
        raise UsageError(
            f"One epoch takes about {seconds / epochs / 60:.1f} minutes, more than --minutes {minutes:g}.",
            "Allow more, or train less: --max-records, --lora-rank.",
        )
    if fitting >= epochs:
        return planned
    recipe = apply_settings(planned.request.recipe, [bare(planned.request.recipe, "epochs", fitting)])
    return plan_request(replace(planned.request, recipe=recipe))


def better(planned: Planned) -> str | None:
    """A line for those who harden a checkpoint that may have memorised what a stage reads raw; None for others."""
    reads_decoys = any(
        isinstance(stage.stage, Train) and stage.stage.text is Text.DECOY for stage in planned.plan.stages
    )
    if reads_decoys or not planned.plan.stages:
        return None
    return BETTER if holding(planned.plan.ledger) in ("increment only", "nothing") else None
