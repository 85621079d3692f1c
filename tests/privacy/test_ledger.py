"""Ledger, journal and guarantees: what was spent, and what may be said of it."""

import doctest
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.errors import InputError
from atdp_cli.files.documents import file_sha256
from atdp_cli.privacy import wording
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.journal import open_journal, read_journal, spend
from atdp_cli.privacy.ledger import (
    LEDGER_FILE,
    CheckpointHistory,
    GaussianRelease,
    Ledger,
    LedgerEvent,
    PlainTraining,
    compact,
    read_beside,
    read_ledger,
    read_verified,
    write_ledger,
)
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.privacy.wording import advice, guarantee_sentences, rounded_up
from tests.privacy.relations import noisy, plain


def step(count: int = 1, sigma: float = 1.0) -> LedgerEvent:
    return noisy(sigma, count)


RAW = plain("none", stage="no-dp")
STABLE = plain("bytes", stage="redacted")
MOVABLE = plain("bytes", stage="redacted", tier="high-contextual")


def ledger(
    *events: LedgerEvent, checkpoint_history: CheckpointHistory = "unknown", seal: dict[str, str] | None = None
) -> Ledger:
    return Ledger(
        unit="line",
        checkpoint_history=checkpoint_history,
        records=100,
        delta=1e-6,
        grid=1e-3,
        events=events,
        seal=seal or {},
    )


def by_scope(actual: Ledger) -> dict[str, Guarantee]:
    return {guarantee.scope: guarantee for guarantee in guarantees(actual)}


def test_a_ledger_survives_its_file(tmp_path: Path) -> None:
    release = GaussianRelease(
        stage="atdp", statistic="alpha", sensitivity=1.0, noise_multiplier=20.0, relation=hypothetical()
    )
    kept = ledger(RAW, release, step(5, sigma=1.2345678901234567), seal={"model.safetensors": "ab"})
    write_ledger(tmp_path / "ledger.json", kept)
    assert read_ledger(tmp_path / "ledger.json") == kept


def test_events_get_the_name_of_their_run_once(tmp_path: Path) -> None:
    earlier = step().model_copy(update={"run": "first"})
    write_ledger(tmp_path / "ledger.json", ledger(earlier, step()).model_copy(update={"run": "second"}))
    assert [event.run for event in read_ledger(tmp_path / "ledger.json").events] == ["first", "second"]


DAMAGE = {
    "a lost event": lambda document: document["events"].pop(1),
    "a lost first event": lambda document: document["events"].pop(0),
    "another order": lambda document: document["events"].reverse(),
    "fewer steps": lambda document: document["events"][1].update(steps=1),
    "more noise": lambda document: document["events"][1].update(noise_multiplier=9.0),
    "a better past": lambda document: document.update(checkpoint_history="public"),
    "another seal": lambda document: document["seal"].update({"model.safetensors": "cd"}),
    "no digest": lambda document: document.pop("digest"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_ledger_that_is_not_whole_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / LEDGER_FILE
    write_ledger(path, ledger(RAW, step(3), step(2, sigma=2.0), seal={"model.safetensors": "ab"}))
    document = json.loads(path.read_text())
    DAMAGE[damage](document)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="an event may be missing or a figure changed"):
        read_ledger(path)


def test_how_the_json_is_laid_out_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / LEDGER_FILE
    write_ledger(path, ledger(step(3)))
    kept = read_ledger(path)
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert read_ledger(path) == kept


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('"schema_version": 1', '"schema_version": 4'), "schema_version"),
        (('"noise_multiplier": 1.0', '"noise_multiplier": 0.0'), "noise_multiplier"),
        (('"noise_multiplier": 1.0', '"noise_multiplier": NaN'), "the file"),
        (('"sampling_rate": 0.1', '"sampling_rate": 1.5'), "sampling_rate"),
        (('"steps": 3', '"steps": -3'), "steps"),
        (('"kind": "subsampled_gaussian"', '"kind": "magic"'), "events.0"),
        (('"checkpoint_history"', '"priors"'), "checkpoint_history"),
        (("{", "["), "the file"),
    ],
)
def test_a_malformed_ledger_is_refused_in_one_line(tmp_path: Path, change: tuple[str, str], named: str) -> None:
    path = tmp_path / LEDGER_FILE
    write_ledger(path, ledger(step(3)))
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(InputError) as caught:
        read_ledger(path)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_seal_tells_when_the_weights_changed(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    write_ledger(tmp_path / LEDGER_FILE, ledger(step(), seal={weights.name: file_sha256(weights)}))
    assert read_beside(tmp_path) == read_verified(tmp_path / LEDGER_FILE)
    weights.write_bytes(b"other weights")
    for read in (read_beside, read_verified):
        with pytest.raises(InputError, match=r"model\.safetensors"):
            read(tmp_path)
    assert read_beside(tmp_path.parent) is None


def test_equal_neighbours_become_one_event() -> None:
    assert compact([step(), step(), step(2, sigma=2.0), RAW, step()]) == (step(2), step(2, sigma=2.0), RAW, step())


def test_the_journal_gives_back_what_was_spent(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with open_journal(path) as journal:
        for event in (RAW, step(), step(), step(sigma=2.0)):
            spend(journal, event)
            assert path.read_text().splitlines()[-1] == event.model_dump_json()
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_journal(path) == (RAW, step(2), step(sigma=2.0))


@pytest.mark.parametrize(
    ("events", "checkpoint_history", "finite"),
    [
        ((step(),), "public", True),
        ((step(),), "unknown", False),
        ((RAW, step()), "public", False),
        ((STABLE, step()), "public", False),
    ],
)
def test_end_to_end_is_finite_only_without_plain_stages_and_with_a_public_past(
    events: tuple[LedgerEvent, ...], checkpoint_history: CheckpointHistory, finite: bool
) -> None:
    actual = by_scope(ledger(*events, checkpoint_history=checkpoint_history))
    assert math.isfinite(actual["end_to_end"].epsilon or 0) is finite
    assert actual["increment"].epsilon == by_scope(ledger(step(), checkpoint_history="public"))["end_to_end"].epsilon


@pytest.mark.parametrize(
    ("events", "checkpoint_history", "holds"),
    [
        ((STABLE, step()), "public", True),
        ((STABLE,), "public", True),
        ((STABLE, step()), "unknown", False),
        ((MOVABLE, step()), "public", False),
        ((RAW, STABLE, step()), "public", False),
        ((step(),), "public", False),
    ],
)
def test_selective_holds_only_for_redacted_text_with_masks_that_stay(
    events: tuple[LedgerEvent, ...], checkpoint_history: CheckpointHistory, holds: bool
) -> None:
    actual = by_scope(ledger(*events, checkpoint_history=checkpoint_history))
    assert ("selective" in actual) is holds
    if holds:
        selective, increment = actual["selective"], actual["increment"]
        assert selective.adjacency == "replace-one"
        assert (selective.epsilon or 0) >= (increment.epsilon or 0)


@pytest.mark.parametrize(
    ("events", "checkpoint_history", "why"),
    [
        ((STABLE, step()), "public", None),
        ((RAW, step()), "public", None),
        ((step(),), "unknown", None),
        ((STABLE, step()), "unknown", "the starting model's past is unknown"),
        ((RAW, STABLE), "public", "a stage without protection read the raw text"),
        ((MOVABLE, step()), "public", "masks of a contextual tier"),
    ],
)
def test_who_trains_on_redacted_text_hears_why_it_guarantees_nothing(
    events: tuple[LedgerEvent, ...], checkpoint_history: CheckpointHistory, why: str | None
) -> None:
    actual = ledger(*events, checkpoint_history=checkpoint_history)
    said = " ".join(guarantee_sentences(actual, guarantees(actual)))
    assert ("Flagged values: no guarantee" in said) is (why is not None)
    assert f"no guarantee, because {why}" in said or why is None


def test_without_a_private_stage_there_is_no_increment() -> None:
    actual = by_scope(ledger(RAW))
    assert actual["increment"].epsilon is None
    assert actual["end_to_end"].epsilon == math.inf


def test_a_first_time_user_reads_what_infinity_means() -> None:
    actual = ledger(step())
    said = " ".join(guarantee_sentences(actual, guarantees(actual)))
    assert said.startswith("Whole records: not protected (ε = ∞), because the starting model's past is unknown.")
    assert "Stages and releases with noise add at most ε = " in said
    assert "is not a guarantee for any record" in said
    assert advice(actual) == "If the model never saw private data: --checkpoint-history public."
    assert advice(ledger(RAW)) is None


def test_epsilon_is_rounded_up() -> None:
    assert doctest.testmod(wording) == doctest.TestResults(failed=0, attempted=3)


@given(st.floats(1e-6, 1e6))
def test_the_rounded_epsilon_is_close_and_never_below(epsilon: float) -> None:
    assert epsilon <= float(rounded_up(epsilon)) <= epsilon * 1.0101


@given(st.lists(st.sampled_from([RAW, STABLE, MOVABLE, step(), step(3, sigma=2.0)]), max_size=5))
def test_a_plain_stage_anywhere_makes_end_to_end_infinite(events: list[LedgerEvent]) -> None:
    actual = by_scope(ledger(*events, checkpoint_history="public"))["end_to_end"]
    plain = any(isinstance(event, PlainTraining) for event in events)
    assert (actual.epsilon == math.inf) is plain
    assert all(guarantee.assumptions for guarantee in guarantees(ledger(*events)))


def test_several_models_are_said_to_be_several() -> None:
    actual = guarantees(ledger(step(), checkpoint_history="public"), models=3)[0]
    assert any("release of these 3 models" in text for text in actual.assumptions)
    assert not any("this one model" in text for text in actual.assumptions)


def test_an_insecure_seed_is_called_out() -> None:
    actual = ledger(step(), checkpoint_history="public").model_copy(update={"insecure_seed": True})
    assert "run.insecure-seed" in guarantee_sentences(actual, guarantees(actual))[-1]
    assert all("run.insecure-seed" in guarantee.assumptions[0] for guarantee in guarantees(actual))
