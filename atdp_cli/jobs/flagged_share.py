"""How much of a text is flagged, by a small part of the records, before anything is trained."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from atdp_cli.audit.memory.value_ranks import spread
from atdp_cli.events import Event, FellBack, Notify
from atdp_cli.jobs.backend import THIS_PROCESS
from atdp_cli.jobs.detector import Detector, run_detector
from atdp_cli.text.corpus.records import Record
from atdp_cli.text.detection.spans import at_tier, merge

SCANNED = 200
"""Records, evenly apart by position."""

MOST_CHARACTERS = 2000
"""Of a record, from its beginning, so that long ones take no minutes."""


@dataclass(frozen=True, kw_only=True)
class FlaggedShare:
    """The share of the characters that are flagged in so many records, in [0, 1]. It says something about the text."""

    records: int
    share: float


def flagged_share(records: Sequence[Record], detector: Detector, pipeline: Any, notify: Notify) -> FlaggedShare:
    """The share in `SCANNED` of the records. Nothing is kept, and no language model asked.

    Args:
        detector: How to look.
        pipeline: From `detector_pipeline`.
        notify: Hears only what a user might not expect, as that the text is of another language.
    """
    chosen = [records[place] for place in spread(len(records), SCANNED)]
    begun = [replace(record, text=record.text[:MOST_CHARACTERS]) for record in chosen]
    alone = replace(detector, crosscheck=None, engine=THIS_PROCESS, store=None)
    characters, flagged = 0, 0
    for found in run_detector(begun, alone, pipeline, _only_warnings(notify)):
        characters += len(found.record.text)
        flagged += sum(span.end - span.start for span in merge(at_tier(found.spans, alone.tier)))
    return FlaggedShare(records=len(chosen), share=flagged / max(1, characters))


def _only_warnings(notify: Notify) -> Notify:
    def hear(event: Event) -> None:
        if isinstance(event, FellBack):
            notify(event)

    return hear
