"""The flagged values by whose ranks among decoys a model shows what it remembers, and their ranks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.manifest import Manifest
from atdp_cli.audit.memory.value_ranks import (
    ComparedRanks,
    FlaggedValue,
    compare_ranks,
    pick_alike,
    pick_values,
    value_ranks,
)
from atdp_cli.jobs.harden.encoding import FlaggedRecord, as_read
from atdp_cli.jobs.harden.request import Planned
from atdp_cli.model.chat import ChatTemplate
from atdp_cli.privacy.ledger import unprotected_past
from atdp_cli.runs.streams import public_draws
from atdp_cli.text.redaction.decoys import uniformly
from atdp_cli.training.tuning.range_test import RANKED_VALUES, RangeTest

SEARCHED_SAMPLES = 2
"""Of so many other training records each: one by which a learning rate is chosen, and one that confirms it."""


@dataclass(frozen=True, kw_only=True)
class RankedValues:
    """Flagged values by which a model shows what it remembers, one a record.

    Attributes:
        training: Of training records.
        searched: Samples of other training records, by which a learning rate is chosen and then confirmed; none where
            nothing is searched by them.
        held_out: Of held-out records, with the same labels as far as there are.
    """

    training: Sequence[FlaggedValue]
    held_out: Sequence[FlaggedValue]
    searched: tuple[Sequence[FlaggedValue], ...] = ()


def pick_ranked(
    planned: Planned, trained: Sequence[FlaggedRecord], held_out: Sequence[FlaggedRecord], chat: ChatTemplate | None
) -> RankedValues | None:
    """The values of a run; None where its start has a public past, or no training or no held-out record has a value.

    The samples of training records take turns, so that no record is in two of them.
    """
    if not unprotected_past(planned.plan.ledger.prior, planned.inherited):
        return None
    searched = any(isinstance(stage.search, RangeTest) for stage in planned.plan.training)
    training, control = (
        [as_read(flagged, chat) for flagged in records] for records in (_unplanted(trained, planned.manifest), held_out)
    )
    samples = 1 + SEARCHED_SAMPLES * searched
    values = pick_values(training, most=samples * RANKED_VALUES)
    if not values or not (alike := pick_alike(control, values, most=RANKED_VALUES)):
        return None
    own, *others = (values[sample::samples] for sample in range(samples))
    return RankedValues(training=own, held_out=alike, searched=tuple(each for each in others if each))


def _unplanted(records: Sequence[FlaggedRecord], manifest: Manifest | None) -> Sequence[FlaggedRecord]:
    """The records without those of canaries, which an audit is to judge by: no learning rate is chosen by them."""
    places = set() if manifest is None else {str(line) for each in manifest.canaries for line in each.positions}
    return [flagged for flagged in records if flagged.record.id not in places]


def reported_ranks(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, ranked: RankedValues
) -> ComparedRanks | None:
    """The ranks that the report has; None where no value has one. The model must be in eval mode."""
    training, held_out = (_ranks(model, tokenizer, each) for each in (ranked.training, ranked.held_out))
    return compare_ranks(training, held_out) if training and held_out else None


def rank_tests(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, ranked: RankedValues) -> Iterator[float]:
    """The p-value of each sample that a search looks at, as `ComparedRanks` has it; the model must be in eval mode."""
    held_out = _ranks(model, tokenizer, ranked.held_out)
    for values in ranked.searched:
        ranks = _ranks(model, tokenizer, values)
        yield compare_ranks(ranks, held_out).p_value if ranks and held_out else 1.0


def _ranks(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, values: Sequence[FlaggedValue]
) -> tuple[float, ...]:
    """With the same decoys whenever it is called."""
    return value_ranks(model, tokenizer, values, uniformly(public_draws("ranked decoys")))
