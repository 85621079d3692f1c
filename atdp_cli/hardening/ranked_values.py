"""The flagged values that are ranked among decoys, and their ranks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transformers import PreTrainedModel

from atdp_cli.audit.manifest import Manifest
from atdp_cli.corpus.spans import FlaggedRecord
from atdp_cli.hardening.encode import Encoding
from atdp_cli.hardening.plan import Planned
from atdp_cli.memorisation.ranks import (
    ComparedRanks,
    FlaggedValue,
    TokenisedValue,
    compare_ranks,
    pick_alike,
    pick_values,
    tokenise_values,
    value_ranks,
)
from atdp_cli.model.chat import as_read
from atdp_cli.privacy.ledger import unprotected_past
from atdp_cli.replacement.decoys import public_draws, uniformly
from atdp_cli.training.tune.range_test import RANKED_VALUES, RangeTest

SEARCHED_SAMPLES = 2
"""Of so many other training records each: one by which a learning rate is chosen, and one that confirms it."""


@dataclass(frozen=True, kw_only=True)
class RankedValues:
    """Flagged values with their decoys, one a record, whose ranks show what a model remembers.

    Attributes:
        training: Of training records; at least one.
        held_out: Of held-out records, with the same labels as far as there are; at least one.
        searched: Samples of other training records, by which a learning rate is chosen and then confirmed; none where
            nothing is searched by them. None of them is empty.
    """

    training: Sequence[TokenisedValue]
    held_out: Sequence[TokenisedValue]
    searched: tuple[Sequence[TokenisedValue], ...] = ()


def pick_ranked(
    planned: Planned, trained: Sequence[FlaggedRecord], held_out: Sequence[FlaggedRecord], encoding: Encoding
) -> RankedValues | None:
    """The values to rank; None if nothing can be memorised, or training or held-out records have no value.

    The samples of training records take turns, so that no record is in two of them.
    """
    ledger = planned.plan.ledger
    if not unprotected_past(ledger.checkpoint_history, ledger):  # the stages of this run are in it
        return None
    searched = any(isinstance(stage.search, RangeTest) for stage in planned.plan.training)
    training, control = (
        [as_read(flagged, encoding.chat) for flagged in records]
        for records in (_unplanted(trained, planned.manifest), held_out)
    )
    samples = 1 + SEARCHED_SAMPLES * searched
    values = _tokenised(pick_values(training, most=samples * RANKED_VALUES), encoding)
    if not values:
        return None
    alike = _tokenised(pick_alike(control, [each.value for each in values], most=RANKED_VALUES), encoding)
    own, *others = (values[sample::samples] for sample in range(samples))
    if not alike:
        return None
    return RankedValues(training=own, held_out=alike, searched=tuple(each for each in others if each))


def _unplanted(records: Sequence[FlaggedRecord], manifest: Manifest | None) -> Sequence[FlaggedRecord]:
    """The records without those of canaries, which an audit is to judge by: no learning rate is chosen by them."""
    places = set() if manifest is None else {str(line) for each in manifest.canaries for line in each.positions}
    return [flagged for flagged in records if flagged.record.id not in places]


def _tokenised(values: Sequence[FlaggedValue], encoding: Encoding) -> tuple[TokenisedValue, ...]:
    """With the same decoys in every run."""
    return tokenise_values(encoding.tokenizer, values, uniformly(public_draws("ranked decoys")))


def reported_ranks(model: PreTrainedModel, ranked: RankedValues) -> ComparedRanks:
    """The ranks for the report. The model must be in eval mode."""
    return compare_ranks(value_ranks(model, ranked.training), value_ranks(model, ranked.held_out))


def rank_tests(model: PreTrainedModel, ranked: RankedValues) -> Iterator[float]:
    """The p-value of each sample that a search looks at, as in `ComparedRanks`. The model must be in eval mode."""
    held_out = value_ranks(model, ranked.held_out)
    for values in ranked.searched:
        yield compare_ranks(value_ranks(model, values), held_out).p_value
