"""Recipes of runs as files, and summaries of what the named recipes do and guarantee. Never imports torch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.request import options_of
from atdp_cli.privacy.ledger import CheckpointHistory, Ledger, private_events
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.schedule import Constant
from atdp_cli.privacy.scope import no_end_to_end, selective_void
from atdp_cli.privacy.wording import SCOPES
from atdp_cli.training.objectives import BASELINES
from atdp_cli.training.options import RunOptions
from atdp_cli.training.plan import CorpusFacts, Plan, Reference, StagePlan, make_plan, with_chosen_rate
from atdp_cli.training.recipe import (
    DPSGD,
    NonPrivate,
    Recipe,
    Train,
    parse_recipe,
    reads_records,
    reads_reference,
    takes_steps,
)
from atdp_cli.training.recipe_file import RecipeFile
from atdp_cli.training.search import Tuned

PAPER = (
    "base",
    "no-dp",
    "no-dp+atdp",
    "redacted",
    "redacted+atdp",
    "jft",
    "jft+atdp",
    "dp-sgd",
    "dp-sgd+atdp",
    "atdp",
)
"""The systems of the paper's table, `atdp` from the base, and the base itself."""

DECOY_SYSTEMS = ("decoys", "no-dp+decoys", "fitted-decoys", "no-dp+fitted-decoys")
"""The recipes on decoys, which are compared for tiers of entities."""


# What holds does not depend on the sizes; flags are those of an entity tier.
_HYPOTHETICAL = CorpusFacts(records=10_000, relation=hypothetical())


@dataclass(frozen=True, kw_only=True)
class RecipeSummary:
    """A recipe in words.

    Attributes:
        stages: In order, each as text, objective and mechanism.
        public: What holds for the records with `--checkpoint-history public`, as `strongest_scope` says it.
        unknown: What holds where the checkpoint's past is unknown.
    """

    recipe: str
    stages: tuple[str, ...]
    public: str
    unknown: str


def recipe_summaries(
    names: Sequence[str] = (*PAPER, *DECOY_SYSTEMS, *BASELINES),
) -> tuple[RecipeSummary, ...]:
    """What each of the recipes does and guarantees; references are taken as public."""
    return tuple(_row(name, parse_recipe(name)) for name in names)


def strongest_scope(ledger: Ledger) -> str:
    """The name of the strongest scope with a finite ε, or "nothing"."""
    if no_end_to_end(ledger) is None:
        return SCOPES["end_to_end"]
    if selective_void(ledger) is None:
        return SCOPES["selective"]
    return SCOPES["increment"] if private_events(ledger.events) else "nothing"


def resolved_recipe(planned: Planned) -> RecipeFile:
    """The recipe of a run with every value filled in: σ₀ as solved for, B as planned.

    It names no file and says nothing of the checkpoint's past, which is for the next run to state.
    """
    request, values = planned.request, options_of(planned.request)
    return RecipeFile(
        name=request.recipe_name,
        recipe=tuple(_sized(plan) for plan in planned.plan.stages),
        run=RunOptions(**{name: values[name] for name in RunOptions.model_fields}),
    )


def trained_recipe(planned: Planned, tuned: Sequence[Tuned | None]) -> RecipeFile:
    """The resolved recipe with the learning rates that trials chose, so that nothing is left to search."""
    file = resolved_recipe(planned)
    stages = tuple(
        stage if search is None else with_chosen_rate(plan, search.learning_rate).stage
        for plan, stage, search in zip(planned.plan.stages, file.recipe, tuned, strict=True)
    )
    return replace(file, recipe=stages, run=file.run.replace(tune=None))


def _sized(plan: StagePlan) -> Train:
    if isinstance(plan.stage.mechanism, DPSGD):
        return replace(plan.stage, mechanism=replace(plan.stage.mechanism, expected_batch=plan.batch))
    return plan.stage


def _row(name: str, recipe: Recipe) -> RecipeSummary:
    return RecipeSummary(
        recipe=name,
        stages=tuple(_words(stage) for stage in recipe),
        public=strongest_scope(hypothetical_ledger(recipe, "public")),
        unknown=strongest_scope(hypothetical_ledger(recipe, "unknown")),
    )


def hypothetical_ledger(recipe: Recipe, checkpoint_history: CheckpointHistory) -> Ledger:
    """The ledger that a recipe would leave with a public reference and a detector of an entity tier."""
    return hypothetical_plan(recipe, _HYPOTHETICAL, delta=1e-6, checkpoint_history=checkpoint_history).ledger


def hypothetical_plan(
    recipe: Recipe, corpus: CorpusFacts, *, delta: float, checkpoint_history: CheckpointHistory
) -> Plan:
    """The plan of a run that nobody has begun; a reference, where a stage reads one, is declared to be public."""
    reads = any(reads_reference(stage) for stage in recipe)
    reference = Reference(ledger=None, weights={}, past="declared") if reads else None
    return make_plan(recipe, corpus, delta=delta, checkpoint_history=checkpoint_history, reference=reference)


def _words(stage: Train) -> str:
    """Text, objective and mechanism of a stage, in a few words."""
    if not takes_steps(stage):
        return f"no text: {stage.objective.summary}"
    text = stage.text.value if reads_records(stage) else "no text"
    if stage.release_noise_multiplier is not None:
        text = f"fitted {text}"
    return f"{text}: {stage.objective.summary}, {_mechanism(stage)}"


def _mechanism(stage: Train) -> str:
    if isinstance(stage.mechanism, NonPrivate):
        return "plain"
    shape = "constant" if isinstance(stage.mechanism.schedule, Constant) else "rising"
    return f"DP-SGD {shape}" if reads_records(stage) else shape
