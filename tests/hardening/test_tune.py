"""A learning rate found by trials: what it may depend on, what it leaves as it was, what is said of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.errors import ConformanceError, UsageError
from atdp_cli.events import Event, TrialDone, ignore
from atdp_cli.hardening.checkpoint import latest_state
from atdp_cli.hardening.data import prepare_data
from atdp_cli.hardening.model import load_model
from atdp_cli.hardening.plan import plan_request
from atdp_cli.hardening.request import HardenRequest, SettledRequest
from atdp_cli.hardening.run import harden
from atdp_cli.hardening.summary import HardenSummary
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import GaussianRelease, PlainTraining, SubsampledGaussian
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.privacy.wording import CHOSEN_ON_RAW, guarantee_sentences
from atdp_cli.reporting.verify import verify
from atdp_cli.training.plan import CorpusFacts, make_plan
from atdp_cli.training.recipe import NonPrivate, Recipe, Train, parse_recipe
from atdp_cli.training.recipe_file import RECIPE_FILE, read_recipe
from atdp_cli.training.search import AT_CHANCE, SHARE, WARMUP, RangeTest
from tests.hardening.resumption import Place, asking, equal, finished, ledger_of, report, run, weights

EPOCHS, BATCH = 8, 4


def recipe(name: str = "fitted-decoys", epochs: int = EPOCHS) -> Recipe:
    """With enough epochs of 15 small steps that there is room for trials."""
    return tuple(
        replace(stage, epochs=epochs, mechanism=NonPrivate(batch_size=BATCH))
        for stage in parse_recipe(name)
        if isinstance(stage, Train)
    )


def tuned(place: Place, name: str = "fitted-decoys", **settings: Any) -> SettledRequest:
    asked = {"tune": "full", "checkpoint_history": "public", **settings}
    return place.request(recipe(name), **asked).replace(recipe=recipe(name))


def public_entry(hardened: HardenSummary) -> Any:
    """What the public report says of the search of the last stage."""
    return json.loads((Path(hardened.output) / "privacy_report.json").read_text())["stages"][-1]["tuned"]


def losses(hardened: HardenSummary) -> list[float]:
    """Of all trials, from the private report."""
    return list(report(hardened)["stages"][-1]["trial_losses"])


@pytest.mark.ci
def test_trials_leave_no_other_trace_than_the_rate_that_they_chose(place: Place) -> None:
    """The recipe that is written searches nothing, and trains the same model, bit by bit."""
    whole = finished(tuned(place, out="whole"))
    written = read_recipe(Path(whole.output) / RECIPE_FILE)
    [stage] = written.recipe
    assert isinstance(stage, Train)
    entry = public_entry(whole)
    assert stage.optimizer.learning_rate == entry["learning_rate"]
    assert (stage.warmup, stage.restore_best) == (WARMUP, True)
    assert written.run.tune is None
    again = finished(tuned(place, out="again", tune=None).replace(recipe=written.recipe))
    assert public_entry(again) is None
    assert equal(weights(whole), weights(again))


@pytest.mark.ci
def test_they_are_no_more_than_planned_and_take_no_more_than_their_share(place: Place) -> None:
    request, heard = tuned(place), list[Event]()
    [stage] = plan_request(request).plan.training
    done = run(request, notify=heard.append)
    assert done is not None
    assert stage.search is not None
    reported = [event for event in heard if isinstance(event, TrialDone)]
    assert [event.done for event in reported] == list(range(1, len(reported) + 1))
    entry = public_entry(done)
    assert entry["trials"] == len(reported) == len(losses(done)) <= stage.search.most_trials
    assert 0 < entry["steps"] == len(reported) * stage.search.steps_per_trial <= SHARE * stage.steps
    # The steps of the stage itself are those that were planned.
    assert done.steps == stage.steps


def test_the_loss_of_no_trial_is_public(place: Place) -> None:
    done = finished(tuned(place))
    assert set(public_entry(done)) == {"learning_rate", "chosen_on", "trials", "steps"}
    private = [repr(loss)[:9] for loss in losses(done)]
    for path in (path for path in Path(done.output).rglob("*") if path.suffix in (".json", ".html", ".md", ".toml")):
        text = path.read_text(encoding="utf-8")
        assert not any(loss in text for loss in private), path
    assert verify(Path(done.output)) == ()


@pytest.mark.ci
def test_the_ledger_says_on_what_the_rate_was_chosen_and_pays_for_one_release(place: Place) -> None:
    done = finished(tuned(place))
    events = ledger_of(done).events
    assert [event.chosen_on for event in events if isinstance(event, PlainTraining)] == ["decoy"]
    assert sum(isinstance(event, GaussianRelease) for event in events) == 1
    assert not any(isinstance(event, SubsampledGaussian) for event in events)
    assert events == plan_request(tuned(place, out="other")).plan.ledger.events
    without = finished(tuned(place, out="without", tune=None))
    assert [event.chosen_on for event in ledger_of(without).events if isinstance(event, PlainTraining)] == [None]
    assert [each.epsilon for each in done.guarantees] == [each.epsilon for each in without.guarantees]


@pytest.mark.deep
def test_a_run_that_is_resumed_does_not_search_again_and_chooses_the_same(place: Place) -> None:
    whole = finished(tuned(place, out="whole"))
    request, heard = tuned(place, out="parts", checkpoint_every=1e-9), list[Event]()
    # After the release and a trial, and after the search.
    assert run(request, stop=2) is None
    assert kept(place) == (True, False)
    assert run(request.replace(resume=True), stop=9) is None
    assert kept(place) == (True, True)
    done = run(request.replace(resume=True), notify=heard.append)
    assert done is not None
    assert not any(isinstance(event, TrialDone) for event in heard)
    assert public_entry(done) == public_entry(whole)
    assert equal(weights(done), weights(whole))
    assert ledger_of(done).events == ledger_of(whole).events


def kept(place: Place) -> tuple[bool, bool]:
    """Whether the newest state has the release, and the settings that were chosen."""
    state = latest_state(place.folder / "parts.partial", lambda _: None)
    assert state is not None
    return state.document.progress.frequencies is not None, state.document.progress.tuned is not None


@pytest.mark.ci
def test_a_search_that_the_ledger_does_not_tell_ends_the_run(place: Place) -> None:
    from atdp_cli.hardening.fingerprint import fingerprint
    from atdp_cli.hardening.train import run_plan

    planned = plan_request(tuned(place))
    [stage] = planned.plan.training
    silent = tuple(
        event.model_copy(update={"chosen_on": None}) if isinstance(event, PlainTraining) else event
        for event in stage.events
    )
    planned = replace(planned, plan=replace(planned.plan, stages=(replace(stage, events=silent),)))
    own = fingerprint(planned)
    with pytest.raises(ConformanceError, match="chosen on decoyed text"):
        run_plan(planned, own, load_model(planned.request, ignore), ignore, lambda: asking(None))


def test_a_run_with_another_search_is_another_run(place: Place) -> None:
    assert run(tuned(place, checkpoint_every=1e-9), stop=2) is None
    others: tuple[dict[str, Any], ...] = ({"tune": "quick"}, {"tune": None}, {"fixed_rate": True})
    for other in others:
        with pytest.raises(UsageError, match="is from another run"):
            run(tuned(place, resume=True, **other))


@pytest.mark.ci
@pytest.mark.parametrize("epochs", [1, 3])
def test_the_default_on_few_records_leaves_a_model_that_reads_better(shared: Path, tmp_path: Path, epochs: int) -> None:
    """A model of other text, and sixty lines of chats: four steps, and twelve."""
    text = (shared / "data" / "abcd" / "valid.txt").read_text(encoding="utf-8")
    corpus = tmp_path / "chats.txt"
    lines = [line for line in text.splitlines() if line.strip()][:60]
    corpus.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    start = shared / "models" / "stories15M"
    done = harden(HardenRequest(model=start, data=(corpus,), output=tmp_path / "out", epochs=epochs))
    after, before = done.usefulness
    assert before.perplexity.all is not None
    assert after.perplexity.all is not None
    assert after.perplexity.all < before.perplexity.all / 2


@pytest.mark.ci
def test_a_rate_that_is_given_is_not_searched(place: Place) -> None:
    request, heard = tuned(place, fixed_rate=True), list[Event]()
    done = run(request, notify=heard.append)
    assert done is not None
    assert not any(isinstance(event, TrialDone) for event in heard)
    [stage] = read_recipe(Path(done.output) / RECIPE_FILE).recipe
    assert isinstance(stage, Train)
    [asked] = request.recipe
    assert isinstance(asked, Train)
    assert stage.optimizer == asked.optimizer
    assert (stage.warmup, stage.restore_best) == (WARMUP, True)
    assert [event.chosen_on for event in ledger_of(done).events if isinstance(event, PlainTraining)] == ["decoy"]


@pytest.fixture
def leaky(place: Place) -> Path:
    """A model whose ledger says that it read the records without protection."""
    return Path(finished(place.request("no-dp", out="leaky", checkpoint_history="public")).output)


def p_values(hardened: HardenSummary) -> list[list[float]]:
    """Of all levels, from the private report."""
    return list(report(hardened)["stages"][-1]["trial_p_values"])


@pytest.mark.deep
def test_from_a_start_that_may_remember_a_rate_is_searched_at_which_it_forgets(place: Place, leaky: Path) -> None:
    """By ranks of true values, as the ledger says; and only the rate goes on into the stage."""
    request = tuned(place, model=leaky, out="whole")
    [stage] = plan_request(request).plan.training
    assert isinstance(stage.search, RangeTest)
    done = finished(request)
    entry, tests = public_entry(done), p_values(done)
    assert entry["learning_rate"] == stage.search.rates[len(tests) - 1]
    assert (entry["chosen_on"], entry["trials"]) == ("raw", len(tests))
    assert all(min(level) < AT_CHANCE for level in tests[:-1])
    chosen = [event.chosen_on for event in ledger_of(done).events if isinstance(event, PlainTraining)]
    assert chosen == [None, "raw"]
    [increment] = [each for each in done.guarantees if each.scope == "increment"]
    assert CHOSEN_ON_RAW in increment.assumptions
    assert CHOSEN_ON_RAW in " ".join(guarantee_sentences(ledger_of(done), guarantees(ledger_of(done))))
    assert CHOSEN_ON_RAW in (Path(done.output) / "privacy_report.json").read_text()
    written = read_recipe(Path(done.output) / RECIPE_FILE)
    again = finished(tuned(place, model=leaky, out="again", tune=None).replace(recipe=written.recipe))
    assert equal(weights(done), weights(again))


def test_a_rate_that_was_chosen_by_raw_values_voids_the_selective_scope() -> None:
    """Even where the start is public after all."""
    corpus = CorpusFacts(records=1000, relation=hypothetical())
    ledger = make_plan(parse_recipe("fitted-decoys"), corpus, delta=1e-6, checkpoint_history="public").ledger
    assert "selective" in {each.scope for each in guarantees(ledger)}
    events = tuple(
        event.model_copy(update={"chosen_on": "raw"}) if isinstance(event, PlainTraining) else event
        for event in ledger.events
    )
    assert {each.scope for each in guarantees(ledger.model_copy(update={"events": events}))} == {
        "end_to_end",
        "increment",
    }


def test_no_record_is_in_two_samples_and_canaries_are_in_none(place: Place, leaky: Path) -> None:
    """What a range test looks at, what confirms it and what the report measures; canaries are for audits."""
    planned = plan_request(tuned(place, model=leaky))
    data = prepare_data(planned, load_model(planned.request, ignore), insecure_stream(1, "decoys"), ignore)
    ranked = data.yardstick.ranked
    assert ranked is not None
    assert len(ranked.searched) == 2
    samples = [
        {id(each.value.text) for each in sample} for sample in (ranked.training, *ranked.searched, ranked.held_out)
    ]
    assert all(samples)
    assert sum(map(len, samples)) == len(set.union(*samples))
    texts = [flagged.record.text for flagged in data.held_out_records]
    assert {each.value.text for each in ranked.held_out} <= set(texts)


@pytest.mark.ci
def test_a_recipe_that_memorises_first_is_searched_for_a_rate_that_forgets(place: Place) -> None:
    """Though its start is public."""
    request = tuned(place).replace(recipe=(*parse_recipe("no-dp"), *recipe()))
    [_, last] = plan_request(request).plan.training
    assert isinstance(last.search, RangeTest)
    assert (last.stage.warmup, last.stage.restore_best) == (WARMUP, None)
    done = finished(request)
    assert public_entry(done)["chosen_on"] == "raw"
    assert len(p_values(done)) == public_entry(done)["trials"] >= 1
    assert report(done)["value_ranks"] is not None


@pytest.mark.ci
def test_a_range_test_that_is_interrupted_leaves_the_start_as_it_was(place: Place, leaky: Path) -> None:
    whole = finished(tuned(place, model=leaky, out="whole"))
    request = tuned(place, model=leaky, out="parts", checkpoint_every=1e-9)
    # After the release and the first level, and after the test.
    assert run(request, stop=2) is None
    assert kept(place) == (True, False)
    assert run(request.replace(resume=True), stop=9) is None
    assert kept(place) == (True, True)
    done = finished(request.replace(resume=True))
    assert p_values(done) == p_values(whole)
    assert equal(weights(done), weights(whole))


def test_a_recipe_with_noise_is_not_tuned(place: Place) -> None:
    with pytest.raises(UsageError, match="--tune needs a last stage on decoys and no DP stage"):
        plan_request(place.request("fitted-decoys+dp-sgd", tune="quick", checkpoint_history="public"))


def test_people_and_trials_do_not_go_together(place: Place) -> None:
    with pytest.raises(UsageError, match="before people review"):
        plan_request(tuned(place, spans=None, review_each_epoch=True))
