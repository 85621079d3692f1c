"""What is chosen where no recipe is given, and what a run says first. Reasons: docs/choosing.md."""

from pathlib import Path

from atdp_cli.jobs.harden.request import HardenRequest, Planned
from atdp_cli.model.folder import check_folder, hidden_width
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.ledger import LEDGER_FILE, private_events, read_ledger, unprotected_past
from atdp_cli.privacy.wording import advice
from atdp_cli.text.detection.spans import Tier
from atdp_cli.training.recipe import NonPrivate, TextVariant, parse_recipe, reads_records
from atdp_cli.training.settings import apply_settings, has_option, stage_options, stage_setting
from atdp_cli.training.tuning.search import Effort

RECIPE, EPSILON, TIER = "fitted-decoys", 3.0, Tier.LOW_ENTITY
"""As measured in examples/sweep."""

TUNE: Effort = "quick"

RATE, WIDTH = 4e-3, 144
"""The best of the rates that were tried for a model whose hidden states are so wide; at twice the width it was 1e-3."""

LEAST_RATE = 5e-6

BETTER = "Where secrets were memorised, decoys measured better: leave --recipe out (docs/choosing.md)."
WITH_BASE = "With the public base that the model comes from, --reference BASE, what is flagged can have an ε."


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


def with_tune(request: HardenRequest) -> HardenRequest:
    """The request with --tune as it is by default.

    Where people review before each epoch there are no trials, which would read spans that nobody has reviewed.
    """
    if request.tune is not None:
        return request
    return request.replace(tune=TUNE if request.review is None else "none")


def with_budget(request: HardenRequest) -> HardenRequest:
    """The request with its default budget: `EPSILON`, beside what the ledger of its start has spent.

    Otherwise a model whose ledger has spent that much already could not be hardened again without --target-epsilon.

    Raises:
        InputError: That ledger cannot be read.
    """
    path, spent = request.model / LEDGER_FILE, 0.0
    if path.exists() and (earlier := private_events((ledger := read_ledger(path)).events)):
        # As the selective guarantee counts, which is never less.
        spent = epsilon_pld(earlier, request.delta, grid=ledger.grid, adjacency="replace-one")
    return request.replace(target_epsilon=EPSILON + spent)


def missing_options() -> tuple[str, ...]:
    """The options of stages, without `--`, that no stage of the default recipe has: those of DP stages."""
    return tuple(name for name in stage_options() if not any(has_option(stage, name) for stage in parse_recipe(RECIPE)))


def first_line(planned: Planned, model: Path, *, default: bool) -> str:
    """Which recipe is taken and why, what the run does, and what it does not.

    Args:
        model: What the user asked to harden; the run may start from its reference.
        default: Whether no recipe was given.
    """
    name = planned.request.recipe_name
    if not default:
        return f"Recipe: {name}, as asked. {_removes(planned)}"
    start, unknown = planned.request.model, _unprotected_start(planned)
    if start != model:
        why = "with a public base"
        done = f"trains {start} on decoys, not {model}: what that one memorised stays behind."
        if unknown:
            done += f" By its ledger the past of {start} is not public either, so no ε bounds what it memorised."
    elif unknown:
        why = "without a public base"
        done = f"trains {model} itself on decoys, which hid what it memorised in most of our audits; no ε bounds that."
    else:
        why = "from a public checkpoint"
        done = f"trains {model} on decoys in place of what the detector flags, and learns what that misses."
    return f"Recipe: {name}, which measured best {why}. It {done}"


def plan_hints(planned: Planned, *, default: bool) -> tuple[str, ...]:
    """What the user could do better, a sentence each, before anything is trained."""
    said = advice(planned.plan.ledger)
    hints = () if said is None else (said,)
    if not default:
        return (*((BETTER,) if _left_in(planned) else ()), *hints)
    return (*((WITH_BASE,) if _unprotected_start(planned) else ()), *hints)


def _removes(planned: Planned) -> str:
    """Whether memorised text goes, as a sentence."""
    if left := _left_in(planned):
        return left
    if not planned.request.recipe:
        return "It trains nothing."
    if _unprotected_start(planned):
        return (
            f"It trains {planned.request.model} on decoys, which hid what it memorised in most of our audits; "
            "no ε bounds that."
        )
    return "There is nothing memorised to remove, as its start never saw the corpus."


def _left_in(planned: Planned) -> str | None:
    """That memorised text stays, where a stage reads raw text after an unprotected past, or none reads decoys."""
    unprotected = "" if not _unprotected_start(planned) else f"{planned.request.model} may have memorised"
    read_again, decoys = False, False
    for stage in planned.request.recipe:
        text = stage.text if reads_records(stage) else None
        decoys |= text is TextVariant.DECOY
        read_again |= text is TextVariant.RAW and bool(unprotected)
        if text is TextVariant.RAW and isinstance(stage.mechanism, NonPrivate) and not unprotected:
            unprotected = f"its stage {stage.name} memorises"
    if not (planned.request.recipe and unprotected) or (decoys and not read_again):
        return None
    return f"It does not remove what {unprotected}{', since it reads raw text' if read_again else ''}."


def _unprotected_start(planned: Planned) -> bool:
    """Whether the starting checkpoint may have memorised raw text: its past is unknown, or its ledger says so."""
    return unprotected_past(planned.plan.ledger.prior, planned.inherited)
