"""The canaries that say when a stage has done enough, and those that are left for the audit."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.manifest import Manifest, PlantedCanary, read_manifest
from atdp_cli.audit.ranking import all_scores, rank_targets
from atdp_cli.errors import UsageError
from atdp_cli.events import ignore
from atdp_cli.jobs.harden.until_exposure import (
    UNSEEN_FILE,
    Watch,
    below_exposure,
    halves,
    watch_canaries,
    write_unseen,
)
from tests.audit.conftest import gpt2


def manifest_of(planted: list[bool]) -> Manifest:
    """Canaries of three digits, one record each where they are planted."""
    template = parse_template("My ID is {digits:3}")
    canaries = tuple(
        PlantedCanary(
            secret=template.secret(7 * row), planted=inside, repeats=1, token_ids=(1, 2), positions=(row + 1,) * inside
        )
        for row, inside in enumerate(planted)
    )
    return Manifest(
        schema_version=2,
        kind="atdp-canaries",
        template="My ID is {digits:3}",
        choices={},
        canaries=canaries,
        tokenizer_sha256="0" * 64,
        records=max(1, len(planted)),
        coins=True,
        drawn="csprng",
    )


@given(st.lists(st.booleans(), max_size=40))
def test_halves_part_the_canaries_by_the_order_of_their_drawing_alone(coins: list[bool]) -> None:
    """No coin has a say in which half a canary is in, so the coins of either half are as fair as they were."""
    whole = manifest_of(coins)
    try:
        seen, unseen = halves(whole)
    except UsageError:
        assert not (any(coins[::2]) and any(coins[1::2]))
        return
    assert [canary.planted for canary in seen.canaries] == coins[::2]
    assert [canary.secret for canary in seen.canaries] == [canary.secret for canary in whole.canaries[::2]]
    assert sorted([*seen.canaries, *unseen.canaries], key=whole.canaries.index) == list(whole.canaries)
    for part in (seen, unseen):
        assert part.model_copy(update={"canaries": whole.canaries}) == whole
        assert Manifest.model_validate_json(part.model_dump_json()) == part


@pytest.mark.parametrize("coins", [[], [True], [False, True, False], [True, False, True]])
def test_either_half_needs_a_planted_canary(coins: list[bool]) -> None:
    with pytest.raises(UsageError, match="one of the halves has none that is planted"):
        halves(manifest_of(coins))


@pytest.fixture
def manifest() -> Manifest:
    return manifest_of([True] * 5 + [False] * 2)


def exposures(scores: Scores, watch: Watch) -> list[float]:
    return [rank.exposure for rank in rank_targets(scores, watch.pool, watch.targets)]


def test_enough_is_when_each_watched_canary_is_below_the_bar_by_both_scores(bpe: Any, manifest: Manifest) -> None:
    """The bar is put just above and just at the highest exposure; each score is the higher one now and then."""
    deciding = set()
    for seeds in itertools.permutations(range(3), 2):
        model, reference = (gpt2(len(bpe), seed=seed, bos_token_id=0, eos_token_id=1) for seed in seeds)
        watch = watch_canaries(manifest, 1.0, bpe, reference, ignore)
        scores = all_scores(model, watch.pool, "the model", ignore)
        actual = [max(exposures(score, watch)) for score in (scores, scores - watch.base)]
        deciding.add(actual[0] > actual[1])
        assert below_exposure(model, watch_canaries(manifest, max(actual) + 1e-6, bpe, reference, ignore), ignore)
        assert not below_exposure(model, watch_canaries(manifest, max(actual), bpe, reference, ignore), ignore)
        assert not below_exposure(model, watch_canaries(manifest, min(actual) / 2, bpe, reference, ignore), ignore)
    assert deciding == {True, False}


def test_only_planted_canaries_are_watched_and_the_others_are_written_down(
    bpe: Any, manifest: Manifest, tmp_path: Path
) -> None:
    watch = watch_canaries(manifest, math.inf, bpe, gpt2(len(bpe), bos_token_id=0, eos_token_id=1), ignore)
    assert [target.index for target in watch.targets] == [0, 14, 28]
    write_unseen(watch, tmp_path)
    assert read_manifest(tmp_path / UNSEEN_FILE) == halves(manifest)[1]
    assert (tmp_path / UNSEEN_FILE).stat().st_mode & 0o777 == 0o600
