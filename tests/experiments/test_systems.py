"""Systems as chains of steps, and the runs that a table of them needs."""

import pytest

from atdp_cli.corpus.spans import Tier
from atdp_cli.errors import UsageError
from atdp_cli.hardening.recipes import PAPER
from atdp_cli.training.recipe import parse_recipe
from examples.experiments.experiment import nodes_of
from examples.experiments.systems import ABLATIONS, CONTROLS, Step, slug_of, system_of

ALL = tuple(system_of(recipe) for recipe in (*PAPER, *CONTROLS))


@pytest.mark.parametrize("recipe", [*PAPER, *CONTROLS])
def test_the_steps_of_a_system_are_the_stages_of_its_recipe(recipe: str) -> None:
    chained = [stage for step in system_of(recipe).steps for stage in step.recipe]
    assert chained == list(parse_recipe(recipe))


def test_each_run_is_made_once_and_after_what_it_goes_on_from() -> None:
    nodes = nodes_of(ALL, 3)
    assert len(set(nodes)) == len(nodes) == 3 * len(ALL), "every beginning of a system is a system too"
    for place, node in enumerate(nodes):
        assert node.parent is None or node.parent in nodes[:place]
    assert {(node.seed, node.steps) for node in nodes} == {(seed, system.steps) for seed in (1, 2, 3) for system in ALL}


def test_a_setting_reaches_its_stage_in_every_system_and_no_other() -> None:
    reported = ("no-dp.epochs=5", "atdp.learning-rate=0.001")
    alone, chained, other = (system_of(recipe, reported) for recipe in ("no-dp", "no-dp+atdp", "redacted"))
    assert chained.steps[0] == alone.steps[0] != system_of("no-dp").steps[0]
    assert chained.steps[1].settings == ("atdp.learning-rate=0.001",)
    assert other == system_of("redacted")


@pytest.mark.parametrize("text", ["no-such.epochs=3", "atdp.no-such=3", "atdp.epochs=many", "epochs=3"])
def test_a_setting_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        system_of("atdp", [text])


def test_folders_of_different_runs_have_different_names() -> None:
    steps = [
        Step(part="atdp"),
        Step(part="atdp", tier=Tier.HIGH_ENTITY),
        *(Step(part="atdp", settings=(f"atdp.epochs={count}",)) for count in range(1, 50)),
    ]
    slugs = [slug_of([step]) for step in steps]
    assert len(set(slugs)) == len(slugs)
    assert slugs[0] == "atdp"


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_varies_one_thing_under_names_of_its_own(name: str) -> None:
    systems = ABLATIONS[name](("no-dp.epochs=2",))
    assert len({system.name for system in systems}) == len(systems) > 2
    assert len({slug_of(system.steps) for system in systems}) >= len(systems) - 1
    for system in systems:
        assert all(step.recipe for step in system.steps)
        if system.steps[0].part == "no-dp":
            assert system.steps[0].settings == ("no-dp.epochs=2",)
