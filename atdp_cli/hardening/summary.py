"""What `plan` and `harden` return: a plan and a finished run as documents."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from atdp_cli.hardening.defaults import notice, plan_hints
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.report import stage_entry
from atdp_cli.hardening.results import HardenPlan, HardenSummary
from atdp_cli.privacy.wording import guarantee_sentences
from atdp_cli.reporting.entries import guarantee_entries
from atdp_cli.training.objectives.kinds import Distilled
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.tune.range_test import RangeTest

if TYPE_CHECKING:
    from atdp_cli.hardening.results import HardenResult


def plan_summary(planned: Planned) -> HardenPlan:
    """The plan, before a model is loaded: what it needs is not known."""
    request, plan = planned.request, planned.plan
    return HardenPlan(
        output=str(request.output),
        recipe=request.recipe_name,
        notice=notice(planned),
        statements=guarantee_sentences(plan.ledger, planned.guarantees),
        advice=plan_hints(planned),
        tier=request.detector.tier.value,
        records=planned.split.training,
        held_out=len(planned.split.held_out),
        unit=plan.ledger.unit,
        steps=plan.steps,
        stages=tuple(map(stage_entry, plan.stages)),
        searches=tuple(sentence for stage in plan.training for sentence in _searched(stage)),
        trial_steps=sum(stage.search.most_steps for stage in plan.training if stage.search is not None),
        guarantees=guarantee_entries(planned.guarantees),
        insecure_seed=plan.ledger.insecure_seed,
    )


def _searched(plan: StagePlan) -> Iterator[str]:
    """What is searched before a stage, and what was chosen for it, a sentence each."""
    name, search, objective = plan.stage.name, plan.search, plan.stage.objective
    if isinstance(objective, Distilled):
        yield (
            f"The loss of {name} on unflagged text is to {objective.share:.0%} the divergence from what the model "
            "predicts there now, so that it keeps it."
        )
    if search is None:
        return
    if not search.most_trials:
        yield f"Stage {name} has too few steps for trials: η = {plan.stage.optimizer.learning_rate:g}."
        return
    goal = "at which it forgets" if isinstance(search, RangeTest) else "with the least loss on decoyed text"
    yield (
        f"The learning rate of {name} {goal} is searched first, from {min(search.rates):g} to {max(search.rates):g}: "
        f"at most {search.most_trials} trials of {search.steps_per_trial:,} steps."
    )


def result_summary(recipe_name: str, finished: "HardenResult") -> HardenSummary:
    """A finished run."""
    return HardenSummary(
        output=str(finished.output),
        recipe=recipe_name,
        steps=finished.steps,
        stages=finished.stages,
        guarantees=guarantee_entries(finished.guarantees),
        insecure_seed=finished.ledger.insecure_seed,
        perplexity=finished.perplexity,
        decoyed_perplexity=finished.decoyed,
        value_ranks=finished.ranks,
        seconds=finished.seconds,
        failed=finished.failed,
        ended_early=finished.ended_early,
    )
