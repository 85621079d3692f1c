"""The detector as a run asks for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atdp_cli.events import Notify
from atdp_cli.text.corrections import read_terms
from atdp_cli.text.detector import Detection, detect
from atdp_cli.text.records import Record
from atdp_cli.text.spans import Tier


@dataclass(frozen=True, kw_only=True)
class Detector:
    """How to look for what is sensitive.

    Attributes:
        tier: What counts as sensitive.
        pipeline: A spaCy pipeline; None for the default one.
        allow: A list of terms that are not sensitive.
        deny: A list of terms that always are.
        jobs: Processes for spaCy, at least 1.
    """

    tier: Tier = Tier.HIGH_CONTEXTUAL
    pipeline: str | None = None
    allow: Path | None = None
    deny: Path | None = None
    jobs: int = 1


def find(records: Iterable[Record], detector: Detector, pipeline: Any, notify: Notify) -> Iterator[Detection]:
    """What is sensitive in each record, at every tier, in the order of the records.

    Args:
        records: The records.
        detector: How to look.
        pipeline: `load_pipeline(detector.pipeline)`.
        notify: Told how many records are done.
    """
    return detect(
        records,
        pipeline=pipeline,
        jobs=detector.jobs,
        allow=read_terms(detector.allow) if detector.allow else (),
        deny=read_terms(detector.deny) if detector.deny else (),
        notify=notify,
    )
