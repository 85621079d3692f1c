"""The release that decoys are fitted by: votes of records, one noise for all items, and the frequencies it leaves."""

from collections.abc import Iterable, Mapping

import numpy as np

from atdp_cli.privacy.noisy_statistic import add_release_noise, clipped_votes, grid_bits, shrink_counts
from atdp_cli.privacy.rng import Floats, KeyStream
from atdp_cli.privacy.sparse_release import released_items
from atdp_cli.privacy.trace import Released
from atdp_cli.runs.streams import integer_draws
from atdp_cli.text.redaction.frequencies import Frequencies, Item, frequencies, is_listed, items, tables
from atdp_cli.text.redaction.unlisted import Unlisted, draw_unlisted, unlisted_share


def noisy_frequencies(
    votes: Iterable[Mapping[Item, float]], sigma: float, noise: KeyStream
) -> tuple[Frequencies, Released]:
    """How often each item stands in flagged spans: of public items all, of unlisted words those above a threshold.

    Args:
        votes: Those of each record.
        sigma: σ > 0, the noise's standard deviation.
        noise: The source of all randomness.
    """
    numbers: dict[Unlisted, int] = {}

    def numbered(by_item: Mapping[Item, float]) -> dict[int, float]:
        return {
            item if isinstance(item, int) else numbers.setdefault(item, items() + len(numbers)): count
            for item, count in by_item.items()
        }

    noisy, used = add_release_noise(clipped_votes(map(numbered, votes), items(), grid_bits(sigma)), sigma, noise)
    of_words = dict(zip(numbers, noisy[items() :].tolist(), strict=True))
    draw = integer_draws(noise)
    words = released_items(
        of_words, sigma, unlisted_share, lambda: None if is_listed(word := draw_unlisted(draw)) else word, noise
    )
    counts = _estimated(noisy[: items()], sigma)
    by_table = {name: counts[table.start : table.start + table.size].tolist() for name, table in tables().items()}
    return frequencies(by_table, words), used


def _estimated(noisy: Floats, sigma: float) -> Floats:
    """The counts of all items. Of a table common words and the rest each have a prior: far fewer of the rest occur."""
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
