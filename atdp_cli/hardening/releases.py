"""The work before a stage's first step: noisy releases, the decoys drawn from them, and the search for the learning
rate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from atdp_cli.corpus.spans import FlaggedRecord
from atdp_cli.events import ChoiceWarning
from atdp_cli.hardening.context import StageContext, StageLogs, Streams
from atdp_cli.hardening.measure import rank_tests
from atdp_cli.hardening.progress import Progress
from atdp_cli.model.windows import Window
from atdp_cli.privacy.journal import spend
from atdp_cli.privacy.noisy_statistic import add_release_noise, clipped_votes, grid_bits, released_items, shrink_counts
from atdp_cli.privacy.rng import Floats, KeyStream
from atdp_cli.privacy.trace import Released, ReleaseTrace
from atdp_cli.replacement.decoys import Choose, integer_draws, public_draws
from atdp_cli.replacement.frequencies import (
    Frequencies,
    Item,
    Unlisted,
    by_frequency,
    draw_unlisted,
    frequencies,
    is_listed,
    items,
    tables,
    unlisted_share,
    votes,
)
from atdp_cli.training.examples import make_example
from atdp_cli.training.plan import StagePlan, frequencies_event
from atdp_cli.training.recipe import reads_reference
from atdp_cli.training.search import Search, Tuned
from atdp_cli.training.trials import SCORED_RECORDS, TrialRun, range_test_stage, search_stage


def fit_frequencies(records: Iterable[FlaggedRecord], sigma: float, noise: KeyStream) -> tuple[Frequencies, Released]:
    """Release how often items occur in flagged spans: all public items, and unlisted words above a threshold.

    Args:
        sigma: σ > 0, the noise's standard deviation.
        noise: The source of all randomness.
    """
    numbers: dict[Unlisted, int] = {}

    def numbered(by_item: Mapping[Item, float]) -> dict[int, float]:
        return {
            item if isinstance(item, int) else numbers.setdefault(item, items() + len(numbers)): count
            for item, count in by_item.items()
        }

    noisy, used = add_release_noise(
        clipped_votes(map(numbered, map(_votes, records)), items(), grid_bits(sigma)), sigma, noise
    )
    of_words = dict(zip(numbers, noisy[items() :].tolist(), strict=True))
    draw = integer_draws(noise)
    words = released_items(
        of_words, sigma, unlisted_share, lambda: None if is_listed(word := draw_unlisted(draw)) else word, noise
    )
    counts = _estimated(noisy[: items()], sigma)
    by_table = {name: counts[table.start : table.start + table.size].tolist() for name, table in tables().items()}
    return frequencies(by_table, words), used


def _estimated(noisy: Floats, sigma: float) -> Floats:
    """The estimated counts of all items. Common words and the rest have separate priors: far fewer of these occur."""
    by_size: dict[int, list[range]] = {}
    for start, size, common in tables().values():
        for group in (range(start, start + common), range(start + common, start + size)):
            by_size.setdefault(len(group), []).append(group)
    counts = np.empty_like(noisy)
    for size, groups in by_size.items():
        if size:
            places = np.array(groups)
            counts[places] = shrink_counts(noisy[places], sigma)
    return counts


NOTHING_TO_RANK = "no flagged values to rank; η is that of the plan"


def release_frequencies(
    plan: StagePlan, records: Sequence[FlaggedRecord], streams: Streams, position: int, logs: StageLogs
) -> Frequencies | None:
    """The frequencies of a stage with fitted decoys. The release is paid for before it is made."""
    if plan.stage.release_noise_multiplier is None:
        return None
    event = frequencies_event(plan.stage, plan.relation)
    spend(logs.journal, event)
    noise = streams.fresh_stream(position, "frequencies")
    fitted, used = fit_frequencies(records, event.noise_multiplier * event.sensitivity, noise)
    logs.trace(ReleaseTrace(stage=event.stage, statistic=event.statistic, uses=(used,)))
    return fitted


def decoy_choice(streams: Streams, position: int, of: str, released: Frequencies | None) -> Choose:
    """Choose how a stage draws decoys: by the released frequencies if there are any.

    Args:
        of: What they are drawn for, as `epoch 1`; each has a stream of its own.
    """
    return by_frequency(integer_draws(streams.stream(position, f"decoys of {of}")), released or {})


def _votes(flagged: FlaggedRecord) -> dict[Item, float]:
    """The votes of a record together with its source."""
    counts = votes(flagged.record.text, flagged.spans)
    if flagged.source is not None:
        for item, count in _votes(flagged.source).items():
            counts[item] = counts.get(item, 0.0) + count
    return counts


def tuned(plan: StagePlan, context: StageContext, progress: Progress) -> Progress:
    """The progress with the learning rate from a search. It is searched once, and saved before the first step.

    All that is read here has decoys: of the training records one copy, and of the held-out records. Only a range test
    also looks at true values.
    """
    if plan.search is None or progress.tuned is not None or progress.cursor.step:
        return progress
    data, streams = context.data, context.streams
    objective, equality = plan.stage.objective, plan.stage.decoy_equality
    choose = decoy_choice(streams, progress.stage, "trials", progress.frequencies)
    reference = context.reference if reads_reference(plan.stage) else None
    run = TrialRun(
        model=context.model,
        plan=plan,
        examples=[make_example(record, objective, reference=reference) for record in data.decoys(choose, equality)],
        held_out=held_out_decoys(plan, context, progress),
        seed=streams.order_seed(),
        ranks=streams.ranks,
        engine=context.engine if streams.ranks.sharded else None,
        precision=context.precision,
        notify=context.notify,
        after_trial=lambda: context.checkpointer(partial(replace, progress), between=False),
    )
    chosen = replace(progress, tuned=_search(run, context))
    context.checkpointer(partial(replace, chosen), between=True)
    return chosen


def _search(run: TrialRun, context: StageContext) -> Tuned | None:
    search = run.plan.search
    if search is None:
        return None
    if isinstance(search, Search):
        return search_stage(run, search)
    ranked = context.data.yardstick.ranked
    if ranked is None or not ranked.searched:
        run.notify(ChoiceWarning(what=f"stage {run.plan.stage.name}", reason=NOTHING_TO_RANK))
        return None
    return range_test_stage(run, search, lambda: rank_tests(context.model, ranked))


def held_out_decoys(plan: StagePlan, context: StageContext, progress: Progress) -> Sequence[Window]:
    """The held-out records that judge trials and epochs: with decoys from the stage's release, always the same."""
    choose = by_frequency(public_draws("held-out decoys"), progress.frequencies or {})
    return context.data.held_out_decoys(choose, plan.stage.decoy_equality, most=SCORED_RECORDS)
