"""What other ways to draw the words of decoys would gain: nats by which true words become likelier, without training.

    python -m tests.benchmarks.decoy_words --json

A model that has seen only decoys can at best predict a flagged word as often as decoys have it. So each corpus' flagged
words that stand in the public lists are scored by the frequencies that decoys would have: `exact` ones, those of the
`separate` tables of one release at --noise, which is what `fitted-decoys` does, and those of one table that is `pooled`
over all labels; the release is drawn ten times. `by_reference` is the gain if, of candidates drawn by the release, one
were taken in proportion to how likely a public base finds it in its context over how likely anywhere. `unlisted` is the
share of flagged words beyond the lists, and `often` of those the share that stands in as many records as a release of
unknown words at this noise needs to keep one in a million others out.
"""

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import norm

from atdp_cli.events import ignore
from atdp_cli.jobs.detector import Detector, detector_pipeline, run_detector
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.model.forward import pad
from atdp_cli.model.perplexity import token_losses
from atdp_cli.model.windows import Marks, encode_windows
from atdp_cli.privacy.release import shrink_counts
from atdp_cli.text.corpus.records import Record
from atdp_cli.text.detection.scan import load_pipeline
from atdp_cli.text.detection.spans import at_tier, merge
from atdp_cli.text.redaction.decoys import lists, places
from atdp_cli.text.redaction.frequencies import UNIFORM_SHARE, choices_of, tables
from tests.benchmarks.stages import QUICKSTART, SHARED, STORIES
from tests.benchmarks.tuning import texts

DRAWS, CANDIDATES, OTHERS = 10, 24, 6
BEFORE = 120
"""Characters that the base reads."""

ESCAPE = 0.01
"""Share that is uniform over the whole list, so that no word is impossible."""

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


class Word(NamedTuple):
    """A flagged word, casefolded, at a place that decoys draw from a list."""

    record: int
    table: str
    word: str
    before: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--noise", type=float, default=3.09, help="of a record's votes: sigma times the sensitivity")
    parser.add_argument("--words", type=int, default=60, help="that the base scores")
    arguments = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit("The checkpoints and corpora of ../shared are absent.")
    lines = QUICKSTART[1].read_text(encoding="utf-8").splitlines()
    corpora = {"quickstart": (lines, QUICKSTART[0]), "abcd": (texts()["abcd"], STORIES[0])}
    measured = [
        measure(name, list(islice(of, arguments.records)), base, arguments) for name, (of, base) in corpora.items()
    ]
    if arguments.json:
        sys.stdout.write(json.dumps({"noise": arguments.noise, "load": os.getloadavg()[0], "corpora": measured}) + "\n")


def measure(name: str, records: Sequence[str], base: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """One corpus."""
    words = list(flagged_words(records))
    listed = [word for word in words if word.word in index(word.table)]
    unlisted = [word for word in words if word.word not in index(word.table)]
    dice, sigma = np.random.default_rng(0), arguments.noise
    separate, pooled = (
        [likelihood(listed, release(listed, dice, sigma, pool=pool)) for _ in range(DRAWS)] for pool in (False, True)
    )
    gains = np.array(separate) - np.array(pooled)
    holding = Counter(word for word, _ in {(word.word, word.record) for word in unlisted})
    often = {word for word, count in holding.items() if count >= 1 + sigma * float(norm.isf(1e-6))}
    return {
        "corpus": name,
        "words": len(words),
        "exact": round(likelihood(listed, release(listed, dice, 0.0, pool=False)), 3),
        "separate": round(float(np.mean(separate)), 3),
        "pooled_gain": interval(gains),
        "by_reference": by_reference(listed, release(listed, dice, sigma, pool=False), base, arguments.words, dice),
        "unlisted": round(len(unlisted) / len(words), 3),
        "often": round(sum(word.word in often for word in unlisted) / max(1, len(unlisted)), 3),
    }


def flagged_words(records: Sequence[str]) -> Iterator[Word]:
    detector = Detector()
    pipeline = detector_pipeline(detector, load_pipeline(detector.pipeline))
    read = [Record(id=str(number), text=text) for number, text in enumerate(records)]
    for number, found in enumerate(run_detector(read, detector, pipeline, ignore, total=len(read))):
        text = records[number]
        for span in merge(at_tier(found.spans, detector.tier)):
            at = span.start
            for place, stands in places(span.label, text[span.start : span.end]):
                if place.table in lists():
                    yield Word(number, place.table, stands.casefold(), text[max(0, at - BEFORE) : at])
                at += len(stands)


@cache
def index(table: str) -> Mapping[str, int]:
    return {word.casefold(): at for at, word in enumerate(choices_of(table))}


def release(words: Sequence[Word], dice: np.random.Generator, sigma: float, *, pool: bool) -> dict[str, Floats]:
    """Each table's probabilities: votes clipped to norm 1 a record, with noise, shrunk as the product does."""
    ballots: dict[int, Counter[tuple[str, str]]] = {}
    for word in words:
        ballots.setdefault(word.record, Counter())["" if pool else word.table, word.word] += 1
    votes: defaultdict[tuple[str, str], float] = defaultdict(float)
    for ballot in ballots.values():
        length = max(1.0, sum(count**2 for count in ballot.values()) ** 0.5)
        for item, count in ballot.items():
            votes[item] += count / length
    items = sorted({("" if pool else table, word) for table in lists() for word in index(table)})
    noisy = np.array([votes[item] for item in items]) + dice.normal(0, sigma or 1e-12, size=len(items))
    common = {("" if pool else table, word.casefold()) for table in lists() for word in lists()[table].common}
    estimated = noisy
    if sigma:
        estimated = np.zeros_like(noisy)
        for part in np.array([item in common for item in items]), np.array([item not in common for item in items]):
            groups = {item[0] for item, chosen in zip(items, part, strict=True) if chosen}
            for group in groups:
                of_group = part & np.array([item[0] == group for item in items])
                estimated[of_group] = shrink_counts(noisy[of_group], sigma)
    counts = dict(zip(items, np.maximum(estimated, 0.0).tolist(), strict=True))
    return {table: _shares(table, counts, pool=pool) for table in lists()}


def _shares(table: str, counts: Mapping[tuple[str, str], float], *, pool: bool) -> Floats:
    own = np.array([counts["" if pool else table, word] for word in index(table)])
    common = tables()[table].common
    drawn = (1 - UNIFORM_SHARE) * own / own.sum() if own.sum() else np.zeros(own.size)
    drawn[:common] += (UNIFORM_SHARE if own.sum() else 1.0) / common
    return (1 - ESCAPE) * drawn + ESCAPE / own.size


def likelihood(words: Sequence[Word], shares: Mapping[str, Floats]) -> float:
    """Mean nats a true word costs."""
    return -float(np.mean([np.log(shares[word.table][index(word.table)[word.word]]) for word in words]))


def by_reference(
    words: Sequence[Word], shares: Mapping[str, Floats], base: Path, most: int, dice: np.random.Generator
) -> list[float]:
    """Mean gain in nats of a choice by the base, with the half width of its 95 % interval."""
    model = load_checkpoint(base)
    model.model.eval()
    able = [word for word in words if word.before.strip()]
    chosen = [able[int(at)] for at in dice.choice(len(able), size=min(most, len(able)), replace=False)]
    gains = []
    for word in chosen:
        choices, drawn = choices_of(word.table), shares[word.table]
        tried = [
            choices[index(word.table)[word.word]],
            *(choices[at] for at in dice.choice(drawn.size, size=CANDIDATES, p=drawn / drawn.sum())),
        ]
        here = scores(model, word.before, tried)
        contexts = [chosen[int(at)].before for at in dice.choice(len(chosen), size=OTHERS)]
        anywhere = np.logaddexp.reduce([scores(model, context, tried) for context in contexts], axis=0) - np.log(OTHERS)
        ratio = here - anywhere
        gains.append(float(ratio[0] - np.logaddexp.reduce(ratio[1:]) + np.log(CANDIDATES)))
    return interval(np.array(gains))


@torch.inference_mode()
def scores(model: Checkpoint, before: str, words: Sequence[str]) -> Floats:
    """log p of each word after a text."""
    context = int(model.model.config.max_position_embeddings)
    texts_of = [before, *(before + word for word in words)]
    windows = [
        encode_windows(model.tokenizer, 0, text, Marks(), context=context, max_windows=1)[0] for text in texts_of
    ]
    losses = token_losses(model.model, pad(windows)).double()
    sums = np.array(
        [-float(row[: len(window.token_ids) - 1].sum()) for row, window in zip(losses, windows, strict=True)]
    )
    return np.asarray(sums[1:] - sums[0])


def interval(values: Floats) -> list[float]:
    """Their mean, and the half width of its 95 % interval."""
    return [round(float(values.mean()), 3), round(float(1.96 * values.std(ddof=1) / values.size**0.5), 3)]


if __name__ == "__main__":
    main()
