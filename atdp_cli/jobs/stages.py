"""The fold over a plan's stages: one model, one journal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

from transformers import PreTrainedModel

from atdp_cli.events import FellBack, Notify
from atdp_cli.jobs.encoding import Windows
from atdp_cli.jobs.material import Material
from atdp_cli.jobs.randomness import stream
from atdp_cli.jobs.request import HardenRequest, Planned
from atdp_cli.jobs.workplace import Workplace
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.privacy.journal import JOURNAL_FILE, open_journal, spend
from atdp_cli.privacy.weights import released_share
from atdp_cli.training.clipping.engine import ClippingEngine
from atdp_cli.training.noise import normals
from atdp_cli.training.objective import Example, Weighing, make_example, sensitive_share, weigh
from atdp_cli.training.plan import StagePlan, release_event
from atdp_cli.training.recipe import Weighted
from atdp_cli.training.stage import Randomness, StageResult, run_plain, run_private

ALL_ALIKE = (
    "sensitive tokens already carry the target share, so w is 1 and all tokens weigh the same; "
    "a narrower --tier or a larger --target-share changes that"
)

Reread = Callable[[StagePlan, int], Sequence[Windows]]
"""(stage, epoch) → the training records' windows as the lists of that moment flag them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """What every stage works with.

    Attributes:
        reread: None where the detector's lists are read once.
    """

    request: HardenRequest
    model: PreTrainedModel
    material: Material
    engine: ClippingEngine
    reread: Reread | None
    notify: Notify


def fold(planned: Planned, bench: Bench, work: Workplace) -> tuple[tuple[StageResult, Weighing], ...]:
    """Run the stages in order on one model, the journal ahead of each step."""
    with open_journal(work.private / JOURNAL_FILE) as journal:
        return tuple(
            _run_stage(position, stage, bench, journal=journal) for position, stage in enumerate(planned.plan.stages)
        )


def _run_stage(position: int, plan: StagePlan, bench: Bench, *, journal: TextIO) -> tuple[StageResult, Weighing]:
    request, model, notify, reread = bench.request, bench.model, bench.notify, bench.reread
    records, objective = bench.material.training[plan.stage.text], plan.stage.objective
    weighing = weigh(records, objective, _release(position, plan, request, records, journal))
    if weighing.weight == 1 or (weighing.clamped or 0) > 0.5:
        notify(FellBack(what=f"stage {plan.stage.name}", reason=ALL_ALIKE))

    def weighed(windows: Sequence[Windows]) -> list[Example]:
        return [make_example(record, objective, released_weight=weighing.weight) for record in windows]

    def held_out() -> Perplexity:
        return perplexity(model, bench.material.held_out)

    refresh = None if reread is None else lambda epoch: weighed(reread(plan, epoch))
    if plan.sampling_rate is None:
        spend(journal, plan.events[0])
        seed = request.insecure_seed
        result = run_plain(model, weighed(records), plan, held_out=held_out, notify=notify, seed=seed, refresh=refresh)
        return result, weighing
    result = run_private(
        model,
        weighed(records),
        plan,
        engine=bench.engine,
        randomness=Randomness(sample=stream(request, position, "sample"), noise=stream(request, position, "noise")),
        journal=journal,
        held_out=held_out,
        notify=notify,
        refresh=refresh,
    )
    return result, weighing


def _release(
    position: int, plan: StagePlan, request: HardenRequest, records: Sequence[Windows], journal: TextIO
) -> float | None:
    """The corpus' share of sensitive tokens with noise, if the stage's weight asks for it; paid for first."""
    objective = plan.stage.objective
    if not (isinstance(objective, Weighted) and objective.weight == "released"):
        return None
    event = release_event(plan.stage.name, objective)
    spend(journal, event)
    draw = float(normals(stream(request, position, "release"), 1)[0])
    return released_share([sensitive_share(record) for record in records], event.noise_multiplier * draw)
