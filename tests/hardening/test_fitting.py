"""Fitted decoys: the release is paid for, has the noise that it says, and gives back what a large corpus has."""

import random
from typing import Any

import numpy as np
import pytest

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import FlaggedRecord, Span, Tier
from atdp_cli.hardening.releases import fit_frequencies
from atdp_cli.privacy.noisy_statistic import threshold
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.replacement.decoys import lists
from atdp_cli.replacement.draw import decoy_text
from atdp_cli.replacement.frequencies import Unlisted, by_frequency, items, tables, unlisted_share

NAMES = ("Emma", "Omar", "Ruth")


def flagged(name: str) -> FlaggedRecord:
    text = f"This is {name} calling"
    return FlaggedRecord(Record("1", text), (Span(8, 8 + len(name), "PERSON", "ner", Tier.LOW_ENTITY),))


def drawn(actual: Any, count: int = 4000) -> list[str]:
    record = flagged("Aaron")
    choose = by_frequency(random.Random(1).randrange, actual)
    return [decoy_text(record.record.text, record.spans, choose).text.split()[2] for _ in range(count)]


def known() -> list[str]:
    words = lists()["given"]
    return [name for name in (*words.common, *words.more) if name in NAMES]


def test_a_large_corpus_is_drawn_as_often_as_it_has_its_names() -> None:
    names = known()
    corpus = [flagged(name) for place, name in enumerate(names) for _ in range(300 * (place + 1))]
    actual = drawn(fit_frequencies(corpus, 2.5, insecure_stream(1, "test"))[0])
    total = sum(range(1, len(names) + 1))
    for place, name in enumerate(names):
        assert actual.count(name) / len(actual) == pytest.approx((place + 1) / total, abs=0.06)


def test_a_word_that_no_list_has_is_drawn_where_many_records_have_it_and_never_where_few_do() -> None:
    assert (
        drawn(fit_frequencies([flagged("Zubrowka")] * 400, 2.5, insecure_stream(1, "test"))[0]).count("Zubrowka") > 3000
    )
    least = threshold(unlisted_share(Unlisted("given", "Zubrowka")), 2.5)
    assert 20 < least < 24
    for seed in range(3):
        few = [flagged("Zubrowka")] * int(least - 4 * 2.5)
        released = fit_frequencies(few, 2.5, insecure_stream(seed, "test"))[0]
        assert [word for shares in released.values() for word in shares.unlisted] == []


@pytest.mark.parametrize("releases", [pytest.param(3, marks=pytest.mark.ci), pytest.param(12, marks=pytest.mark.deep)])
def test_a_single_record_has_no_visible_part(releases: int) -> None:
    """Its vote of 1 drowns in noise of 2.5: over many releases its name is not drawn much more than any other."""
    name = known()[0]
    with_it, without = (
        np.mean(
            [
                drawn(fit_frequencies(corpus, 2.5, insecure_stream(seed, "test"))[0], 50).count(name) / 50
                for seed in range(releases)
            ]
        )
        for corpus in ([flagged(name)], [flagged("Nobodyatall")])
    )
    assert with_it - without < 0.05


def test_the_noise_is_that_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reaches the estimate is the clipped sum and N(0, σ²) on every item, also on those that nobody has."""
    from atdp_cli.hardening import releases as fitting
    from atdp_cli.privacy import noisy_statistic as histogram

    seen: dict[str, Any] = {}
    real = histogram.shrink_counts

    def watched(noisy: Any, sigma: float) -> Any:
        seen.setdefault("noisy", []).append(noisy.ravel())
        seen["sigma"] = sigma
        return real(noisy, sigma)

    monkeypatch.setattr(fitting, "shrink_counts", watched)
    fit_frequencies([flagged("Nobodyatall")], 4.0, insecure_stream(3, "test"))
    noise = np.concatenate(seen["noisy"])
    assert seen["sigma"] == 4.0
    assert len(noise) == items() == sum(table.size for table in tables().values())
    assert np.std(noise) == pytest.approx(4.0, rel=0.03)
    assert abs(np.mean(noise)) < 5 * 4.0 / np.sqrt(len(noise))


def test_source_and_target_of_a_pair_are_one_record() -> None:
    from atdp_cli.hardening.releases import _votes

    record = flagged(known()[0])
    pair = FlaggedRecord(record.record, record.spans, source=record)
    assert _votes(pair) == {item: 2 * count for item, count in _votes(record).items()}
