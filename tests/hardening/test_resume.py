"""A run that is broken up is the run that never was in all that is not random, and its ledger has every step."""

import json
import math
import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from atdp_cli.detection.review.run import lists_beside
from atdp_cli.errors import BudgetError
from atdp_cli.events import Event, Resumed, StepDone
from atdp_cli.hardening.checkpoint import latest_state
from atdp_cli.hardening.corpus_key import CORPUS_KEY_FILE
from atdp_cli.hardening.plan import plan_request
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.hardening.resume import steps_of
from atdp_cli.hardening.summary import HardenSummary
from atdp_cli.hardening.workspace import checkpoint_numbers
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.journal import open_journal, read_journal, spend
from atdp_cli.privacy.ledger import read_beside
from atdp_cli.reporting.verify import verify
from atdp_cli.training.recipe import AdamW, Recipe, Train, parse_recipe
from atdp_cli.training.solve import strongest_epsilon
from tests.hardening.resumption import Place, broken_up, equal, finished, ledger_of, report, run, weights

PLAIN = "no-dp+redacted+decoys"


def plain_recipe() -> Recipe:
    """Three stages without noise, the last two with weight decay towards where each began."""
    first, *others = parse_recipe(PLAIN)
    pulled = AdamW(learning_rate=1e-2, weight_decay=0.5)
    return (
        first,
        *(replace(other, optimizer=pulled, annealing="linear") for other in others if isinstance(other, Train)),
    )


@pytest.mark.deep
def test_without_noise_a_run_that_is_broken_up_is_the_uninterrupted_one(place: Place) -> None:
    """At every step but few: each session takes another one or two. Its order, dropout and decoys are the same."""
    whole = finished(place.request(plain_recipe(), out="whole"))
    parts, sessions = broken_up(place.request(plain_recipe(), out="parts"), lambda session: 1 + session % 2)
    assert sessions > 9
    assert equal(weights(whole), weights(parts))
    assert parts.model_copy(update={"output": whole.output, "seconds": whole.seconds}) == whole
    for mine, theirs in zip(report(parts)["stages"], report(whole)["stages"], strict=True):
        for field in ("perplexities", "mean_norms", "not_finite", "tokens", "clamped", "sensitive_weight"):
            assert mine[field] == theirs[field], field
    assert ledger_of(parts).events == ledger_of(whole).events
    assert report(parts)["interruptions"] == sessions
    assert {path.name for path in place.folder.iterdir()} == {"whole", "whole.private", "parts", "parts.private"}


@pytest.mark.ci
@pytest.mark.parametrize("recipe", ["atdp", "no-dp+dp-sgd", "dp-sgd+noise"])
def test_with_noise_a_clean_stop_costs_nothing_and_noise_and_sample_are_new(place: Place, recipe: str) -> None:
    whole = finished(place.request(recipe, out="whole"))
    parts, sessions = broken_up(place.request(recipe, out="parts"), lambda session: 2)
    assert sessions >= 3
    assert ledger_of(parts).events == ledger_of(whole).events
    assert parts.guarantees == whole.guarantees
    assert parts.steps == whole.steps
    assert report(parts)["public"]["repeated_steps"] == 0
    assert not equal(weights(whole), weights(parts))
    norms = [[stage["mean_norms"] for stage in report(hardened)["stages"]] for hardened in (whole, parts)]
    assert [[len(norm) for norm in stages] for stages in norms] == [[len(norm) for norm in norms[0]]] * 2
    # Up to the first stop nothing differs; the steps behind it have other samples.
    assert norms[0] != norms[1]


@pytest.mark.ci
def test_the_state_is_the_models_and_the_keys_are_nowhere(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of a stream is in any file that a broken-off run leaves, and no two sessions share one."""
    drawn: list[bytes] = []
    original = secrets.token_bytes

    def watched(count: int | None = None) -> bytes:
        actual = original(count)
        if count == 32:
            drawn.append(actual)
        return actual

    monkeypatch.setattr(secrets, "token_bytes", watched)
    request = place.request("atdp", insecure_seed=None, checkpoint_every=1e-9)
    for stop in (4, 2):
        assert run(request.replace(resume=True), stop=stop) is None
        files = [path for path in (place.folder / "out.partial").rglob("*") if path.is_file()]
        # The key of the commitment to the corpus is kept, and is of no stream.
        left = [path.read_bytes() for path in files if path.name != CORPUS_KEY_FILE]
        assert len(left) > 4
        assert not any(key in content or key.hex().encode() in content for key in drawn for content in left)
    assert len(set(drawn)) == len(drawn) >= 7
    for path in (place.folder / "out.partial").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.ci
def test_a_release_is_paid_once_and_never_made_again(place: Place) -> None:
    recipe = "fitted-decoys"
    request = place.request(recipe, checkpoint_every=1e-9)
    assert run(request, stop=3) is None
    state = latest_state(place.folder / "out.partial", lambda _: None)
    assert state is not None
    kept = state.document.progress.frequencies
    assert kept
    assert run(request.replace(resume=True), stop=3) is None
    again = latest_state(place.folder / "out.partial", lambda _: None)
    assert again is not None
    assert again.document.progress.frequencies == kept
    done = finished(request.replace(resume=True))
    planned = plan_request(request).plan.ledger
    assert ledger_of(done).events == planned.events


@pytest.mark.ci
def test_lists_that_people_wrote_before_an_interruption_act_behind_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = place.request(spans=None, review_each_epoch=True, review_share=0.9)
    # The end of the first epoch, whose queue somebody goes through while nothing runs.
    assert run(request, stop=3) is None
    folder = place.folder / "out.partial" / "review"
    [queue] = folder.iterdir()
    assert any("ready" in line for line in masked(queue))
    lists_beside(queue).deny.write_text("ready\n")
    (folder / ".2-dp-sgd-epoch-2.jsonl.0123456789ab.tmp").touch()
    done = finished(request.replace(resume=True))
    kept = Path(done.output).with_name("out.private") / "review"
    names = ["1-dp-sgd-epoch-1.deny.txt", "1-dp-sgd-epoch-1.jsonl", "2-dp-sgd-epoch-2.jsonl"]
    assert sorted(path.name for path in kept.iterdir()) == names
    assert not any("ready" in line for line in masked(kept / "2-dp-sgd-epoch-2.jsonl"))


def masked(queue: Path) -> list[list[str]]:
    """The words of the sentences of a queue, as people see them."""
    return [json.loads(line)["masked"].split() for line in queue.read_text().splitlines()[1:]]


# --- What is lost is spent again


def lose(root: Path, events: int, *, torn: bool = False) -> None:
    """What a crash leaves after so many steps behind the last state, of which nothing is left but their lines."""
    [last] = {event.model_copy(update={"steps": 1}) for event in read_journal(root / "journal.jsonl")[-1:]}
    with open_journal(root / "journal.jsonl") as journal:
        for _ in range(events):
            spend(journal, last)
        if torn:
            journal.write(last.model_dump_json()[:60])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("torn", [False, True])
def test_steps_that_are_taken_again_are_counted_again(place: Place, torn: bool) -> None:
    request = place.request(checkpoint_every=60.0)
    assert run(request, stop=3) is None
    lose(place.folder / "out.partial", 2, torn=torn)
    heard: list[Event] = []
    done = run(request.replace(resume=True), notify=heard.append)
    assert done is not None
    assert [event for event in heard if isinstance(event, Resumed)] == [
        Resumed(stage=1, stages=1, step=3, again=2 + torn)
    ]
    assert [event.step for event in heard if isinstance(event, StepDone)] == [4, 5, 6]
    assert steps_of(ledger_of(done).events) == 6 + 2 + torn
    assert done.steps == 6
    assert report(done)["public"]["repeated_steps"] == 2 + torn
    [increment] = [guarantee for guarantee in done.guarantees if guarantee.scope == "increment"]
    events = ledger_of(done).events
    assert increment.epsilon == epsilon_pld(events, ledger_of(done).delta, grid=ledger_of(done).grid)  # type: ignore[arg-type]
    assert read_beside(Path(done.output)) is not None


def epsilon(hardened: HardenSummary) -> float:
    return next(guarantee.epsilon for guarantee in hardened.guarantees if guarantee.scope == "increment") or 0.0


@pytest.mark.ci
@pytest.mark.parametrize("option", ["target_epsilon", "max_epsilon"])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_run_ends_before_the_step_that_would_pass_its_epsilon(place: Place, option: str, lost: int) -> None:
    request = place.request()
    # A plan's own ε is a limit that leaves no room.
    limit = 3.0 if option == "target_epsilon" else planned_increment(request)
    limited = (
        request.replace(target_epsilon=limit) if option == "target_epsilon" else request.replace(max_epsilon=limit)
    )
    assert run(limited, stop=3) is None
    lose(place.folder / "out.partial", lost)
    done = finished(limited.replace(resume=True))
    assert done.steps == 6 - lost
    assert epsilon(done) <= limit
    assert steps_of(ledger_of(done).events) == 6
    assert done.ended_early is not None
    assert f"after step {6 - lost} of 6 of stage dp-sgd" in done.ended_early
    public = report(done)["public"]
    assert public["ended_early"] == done.ended_early
    assert public["stages"][0]["ended_after"] == done.stages[0].ended_after == 6 - lost
    assert public["passes"] == pytest.approx((6 - lost) * 19 / 57)
    assert done.ended_early in (Path(done.output) / "README.md").read_text()
    assert verify(Path(done.output)) == ()


@pytest.mark.ci
@pytest.mark.parametrize("lost", [1, 2])
def test_a_stage_without_noise_still_to_come_does_not_loosen_the_target(place: Place, lost: int) -> None:
    """With it the target is the selective ε, of replacing a record; before it the ledger has that of removing one."""
    request = place.request("dp-sgd+redacted", checkpoint_history="public", target_epsilon=3.0, spans=None)
    assert run(request, stop=3) is None
    lose(place.folder / "out.partial", lost)
    done = finished(request.replace(resume=True))
    assert (
        max(guarantee.epsilon or 0.0 for guarantee in done.guarantees if math.isfinite(guarantee.epsilon or 0.0)) <= 3.0
    )
    assert strongest_epsilon(ledger_of(done)) <= 3.0
    assert done.steps == 6 - lost
    assert done.ended_early is not None
    assert "It took no step of redacted" in done.ended_early
    assert verify(Path(done.output)) == ()


def planned_increment(request: SettledRequest) -> float:
    return (
        next(guarantee.epsilon for guarantee in plan_request(request).guarantees if guarantee.scope == "increment")
        or 0.0
    )


@pytest.mark.ci
def test_a_budget_that_is_used_up_without_a_state_is_refused_and_force_begins_anew(place: Place) -> None:
    request = place.request().replace(max_epsilon=planned_increment(place.request()))
    assert run(request, stop=1) is None
    root = place.folder / "out.partial"
    for number in checkpoint_numbers(root):
        for path in (root / f"state-{number}").iterdir():
            path.unlink()
        (root / f"state-{number}").rmdir()
    lose(root, 5)
    with pytest.raises(BudgetError, match="--force"):
        run(request.replace(resume=True))
    done = finished(request.replace(force=True))
    assert (done.steps, epsilon(done)) == (6, request.max_epsilon)


@pytest.mark.ci
def test_stages_behind_the_end_do_not_run_and_an_end_is_remembered(place: Place) -> None:
    """Also where the run is broken off once more after it."""
    request = place.request("dp-sgd+dp-sgd")
    limited = request.replace(target_epsilon=9.0)
    planned = plan_request(limited).plan
    assert run(limited, stop=2) is None
    # All of the first stage, and a step of the second, which is the first to cost enough.
    lose(place.folder / "out.partial", 4)
    # Two asks a step and one between the stages: the last is asked when all that may be is done.
    done, sessions = broken_up(limited, lambda session: 4 + session)
    assert sessions >= 1
    assert done.ended_early is not None
    assert epsilon(done) <= 9.0
    assert done.steps < planned.steps
    assert steps_of(ledger_of(done).events) == done.steps + 4
    assert verify(Path(done.output)) == ()
