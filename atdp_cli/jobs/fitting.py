"""Decoys that are drawn as often as the corpus has their words: one noisy release, then only what it told."""

from collections.abc import Sequence
from itertools import pairwise

from atdp_cli.jobs.encoding import Flagged
from atdp_cli.privacy.csprng import KeyStream
from atdp_cli.privacy.histogram import Floats, clipped_votes, shrunk
from atdp_cli.text.frequencies import Frequencies, Table, frequencies, items, tables, votes
from atdp_cli.training.noise import normals


def fit(records: Sequence[Flagged], sigma: float, source: KeyStream) -> Frequencies:
    """How often each public item stands in the flagged spans of the records, from one release with noise σ > 0."""
    total = clipped_votes((_votes(one) for one in records), items())
    noisy = total + sigma * normals(source, len(total)).numpy()
    return frequencies({name: _estimated(noisy, table, sigma) for name, table in tables().items()})


def _estimated(noisy: Floats, table: Table, sigma: float) -> list[float]:
    """Common words and the rest each have a prior of their own: far fewer of the rest occur."""
    ends = (table.start, table.start + table.common, table.start + table.size)
    groups = [noisy[start:end] for start, end in pairwise(ends) if end > start]
    return [float(count) for group in groups for count in shrunk(group, sigma)]


def _votes(one: Flagged) -> dict[int, float]:
    """Of the record, together with what its encoder reads."""
    found = votes(one.record.text, one.spans)
    if one.source is not None:
        for item, count in _votes(one.source).items():
            found[item] = found.get(item, 0.0) + count
    return found
