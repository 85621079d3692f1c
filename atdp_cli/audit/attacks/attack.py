"""What else is tried on a model: to make it say the canaries, to tell which were planted, to bring them back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel

from atdp_cli.audit.attacks.extraction import Extraction, extract
from atdp_cli.audit.attacks.membership import Membership, RecordScores, attack, score_records
from atdp_cli.audit.attacks.relearning import resurface
from atdp_cli.audit.canary import Target, Template
from atdp_cli.audit.exposure import Rank, Scores
from atdp_cli.audit.ranking import Pool, all_scores, pool_position, rank_targets
from atdp_cli.audit.result import Audit, Resurfaced
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import Notify
from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.tokens import encode_record
from atdp_cli.model.windows import Marks, Window, encode_windows
from atdp_cli.ranges import require_at_least, require_at_most
from atdp_cli.text.corpus.records import read_records

MOST_RECORDS = 10_000
MOST_SAMPLES = 10_000_000
MOST_STEPS = 100_000


class Attack(StrEnum):
    """What can be tried."""

    EXTRACTION = "extraction"
    MEMBERSHIP = "membership"
    RESURFACING = "resurfacing"


@dataclass(frozen=True, kw_only=True)
class Attacks:
    """What is tried on every model, and how hard.

    Attributes:
        samples: Continuations that extraction draws.
        other_text: What a copy of the model is fine-tuned on before it is audited again.
        steps: Of that fine-tuning.

    Raises:
        UsageError: A number is out of range, or a file is missing.
    """

    wanted: frozenset[Attack] = frozenset()
    samples: int = 1000
    other_text: Path | None = None
    steps: int = 50

    def __post_init__(self) -> None:
        for name, value, most in (
            ("samples", self.samples, MOST_SAMPLES),
            ("resurfacing-steps", self.steps, MOST_STEPS),
        ):
            require_at_least(name, value, 1)
            require_at_most(name, value, most)
        if Attack.RESURFACING in self.wanted and self.other_text is None:
            raise UsageError(
                "--attacks resurfacing fine-tunes a copy of the model on other text, and none was given.",
                "Give a text without the canaries by --other-text.",
            )


NONE = Attacks()


def parse_attacks(text: str) -> frozenset[Attack]:
    """Reads `extraction,membership,resurfacing`, or some of them.

    Raises:
        UsageError: One is none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in set(Attack)]:
        raise UsageError(f"There is no attack '{unknown[0]}'.", f"Choose from {','.join(Attack)}.")
    return frozenset(Attack(name) for name in names)


def extraction_of(
    model: PreTrainedModel, pool: Pool, targets: Sequence[Target], scores: Scores, *, samples: int, name: str
) -> tuple[Extraction, ...]:
    """How each canary is extracted, in the manifest's order."""
    places = [pool_position(pool, targets, i) for i in range(len(targets))]
    return extract(model, pool.candidates, places, scores[places], samples=samples, name=name)


def canary_records(checkpoint: Checkpoint, template: Template, targets: Sequence[Target], *, name: str) -> RecordScores:
    """What a model says of each canary's record, for membership."""
    texts = [template.record(template.secret(target.index)) for target in targets]
    records = [np.array(encode_record(checkpoint.tokenizer, text), dtype=np.int64) for text in texts]
    return score_records(checkpoint.model, records, name=name)


def membership_of(
    scores: RecordScores, reference: RecordScores | None, targets: Sequence[Target]
) -> tuple[Membership, ...]:
    """How well planted canaries are told from those that a coin left out."""
    return attack(scores, np.array([target.planted for target in targets]), reference=reference)


def relearn(
    checkpoint: Checkpoint,
    other_text: Path,
    pool: Pool,
    targets: Sequence[Target],
    base: Scores | None,
    *,
    steps: int,
    judged: Callable[[Sequence[Rank], Sequence[Rank] | None], Audit],
    name: str,
    notify: Notify,
) -> Resurfaced:
    """The audit of a copy that was fine-tuned on other text.

    Args:
        base: The reference's score of every candidate, if there is one.
        judged: What the standings by log p and by the ratio are judged by.

    Raises:
        InputError: The text cannot be read, or has no token to predict.
    """
    windows = _windows(other_text, checkpoint)
    tuned = resurface(checkpoint.model, windows, steps=steps, name=name, notify=notify)
    scores = all_scores(tuned, pool, name, notify)
    plain = rank_targets(scores, pool, targets)
    ratio = rank_targets(scores - base, pool, targets) if base is not None else None
    found = judged(plain, ratio)
    return Resurfaced(
        steps=steps,
        verdict=found.verdict,
        exposures=tuple(one.exposure for one in plain),
        exposures_ratio=None if ratio is None else tuple(one.exposure for one in ratio),
        combined=found.combined,
    )


def _windows(path: Path, checkpoint: Checkpoint) -> tuple[Window, ...]:
    """The first records of a text as windows, one each."""
    found: list[Window] = []
    context = context_length(checkpoint.model)
    for index, record in enumerate(islice(read_records(path), MOST_RECORDS)):
        found += encode_windows(checkpoint.tokenizer, index, record.text, Marks(), context=context, max_windows=1)
    if not found:
        raise InputError(f"{path} has no record with a token to predict.", "Give another text.")
    return tuple(found)
