"""Every sentence about a guarantee is true of sampled pairs of corpora, by a checker written apart from it."""

import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.spans import Tier
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import CheckpointHistory, Ledger
from atdp_cli.privacy.relation import Flags, Relation
from atdp_cli.privacy.wording import guarantee_sentences
from atdp_cli.reporting.wording import lay_summary
from atdp_cli.training.plan import CorpusFacts, Plan, make_plan
from atdp_cli.training.recipe import ATDP, Recipe, TextVariant, Train, parse_recipe
from tests.hardening.neighbours import Claim, Corpus, claims_in, covers, true_epsilon

DELTA, RECORDS = 1e-6, 400
RECIPES = (
    *("redacted", "decoys", "fitted-decoys", "atdp", "dp-sgd", "no-dp", "jft", "redacted+atdp", "decoys+dp-sgd"),
    *("fitted-decoys+dp-sgd", "no-dp+decoys", "redacted+fitted-decoys", "noisy decoys", "fitted-decoys+noisy decoys"),
    *("equal decoys", "equal fitted-decoys", "equal fitted-decoys+atdp", "redacted+equal decoys"),
)
SLOTS = {
    "person": ("Emma", "Emma O'Brien", "Robert", "Robert Lindqvist", "Zyxwa", "Qwerto", "BOB"),
    "money": ("$5", "$500", "$9", "$742"),
    "date": (
        "3 May 2021",
        "May 3, 2021",
        "June 9, 1987",
        "9 June 1987",
        "yesterday",
        "last week",
        "2021-05-03",
        "2019-11-28",
    ),
    "id": ("482915", "731604", "48291", "AB-4821", "XY-9034"),
    "phone": ("+1 202 555 0143", "+1 303 555 0178"),
    "email": ("emma.carter@example.com", "bob@firm.org", "zyx.wvu@site.net"),
    "place": ("Berlin", "Paris", "Ulanqab", "New York"),
    "plain": ("when", "after", "because"),
    "user": ("emmac7", "bobo31", "robertl8", "zyxwa55"),
    "ending": ("2915", "1604", "4821", "0143"),
}
TEMPLATES = (
    "{person} paid {money} on {date}.",
    "Write to {email} or call {phone} {plain} it is late.",
    "My ID is {id} and my name is {person}.",
    "{person} met {person} in {place} {plain} the order {id} arrived.",
    "My ID is {id}, I say {id}, and call {person} by {phone}.",
    "{person} signs as {person}, the account ending in {ending} is {id}.",
    "I am {person}, my username is {user} and my email is {user}@example.com.",
    "Due on {date}, that is {date}, says {person}'s mother.",
)


def recipe_of(name: str) -> Recipe:
    """A named recipe with one epoch a stage; `noisy decoys` is atdp on decoys, `equal` ones keep the pattern."""
    stages: list[Train] = []
    for part in name.split("+"):
        known = ATDP if part == "noisy decoys" else parse_recipe(part.removeprefix("equal "))
        named = [stage for stage in known if isinstance(stage, Train)]
        if part == "noisy decoys":
            named = [replace(stage, name="noisy-decoys", text=TextVariant.DECOY) for stage in named]
        if part.startswith("equal "):
            named = [replace(stage, name=f"equal-{stage.name}", decoy_equality="record") for stage in named]
        stages += [replace(stage, epochs=1) for stage in named]
    return tuple(stages)


def planned(recipe: Recipe, tier: Tier, checkpoint_history: CheckpointHistory, inherited: Ledger | None) -> Plan:
    flags = Flags(detector="a" * 64, tier=tier.value)
    relation = Relation(unit="line", corpus="b" * 64, shape="none", flags=flags)
    corpus = CorpusFacts(records=RECORDS, relation=relation)
    return make_plan(recipe, corpus, delta=DELTA, checkpoint_history=checkpoint_history, inherited=inherited)


def pair_of(draw: random.Random) -> tuple[Corpus, Corpus]:
    """A few records, and the same where one or two are emptied or have other values in some places."""
    chosen = [
        (template, [draw.choice(SLOTS[name]) for name in _names(template)]) for template in draw.sample(TEMPLATES, 3)
    ]
    before = [_filled(*each) for each in chosen]
    after = list(before)
    for place in draw.sample(range(3), draw.choice((1, 1, 1, 2))):
        template, values = chosen[place]
        changing = draw.choice((0.25, 0.5))
        others = {value: _other(draw, name, value) for name, value in zip(_names(template), values, strict=True)}
        together = draw.random() < 0.5
        swapped = [
            (others[value] if together else _other(draw, name, value))
            if draw.random() < changing or together
            else value
            for name, value in zip(_names(template), values, strict=True)
        ]
        after[place] = "" if draw.random() < 0.2 else _filled(template, swapped)
    return tuple(before), tuple(after)


def _names(template: str) -> list[str]:
    return [part.split("}")[0] for part in template.split("{")[1:]]


def _filled(template: str, values: list[str]) -> str:
    for name, value in zip(_names(template), values, strict=True):
        template = template.replace(f"{{{name}}}", value, 1)
    return template


def _other(draw: random.Random, name: str, value: str) -> str:
    """Another value, mostly one whose digits and letters alone are others."""
    if name == "plain" or draw.random() < 0.3:
        return draw.choice(SLOTS[name])
    return "".join(str(draw.randrange(10)) if each.isdigit() else each for each in value)


def runs_of(draw: random.Random) -> list[tuple[Recipe, Tier]]:
    """One run, or two with tiers of their own; none that harden refuses."""
    tiers = [*Tier, *[Tier.LOW_ENTITY] * 4]
    runs = [(recipe_of(draw.choice(RECIPES)), draw.choice(tiers))]
    if draw.random() < 0.25:
        runs.append((recipe_of(draw.choice(RECIPES)), draw.choice((runs[0][1], runs[0][1], *tiers))))
    entities = (Tier.LOW_ENTITY, Tier.HIGH_ENTITY)
    return [
        (recipe, Tier.LOW_ENTITY if tier not in entities and _has_decoys(recipe) else tier) for recipe, tier in runs
    ]


def _has_decoys(recipe: Recipe) -> bool:
    return any(isinstance(stage, Train) and stage.text is TextVariant.DECOY for stage in recipe)


def _check(seed: int, said: Counter[str]) -> None:
    draw = random.Random(seed)
    runs = runs_of(draw)
    checkpoint_history: CheckpointHistory = draw.choice(("public",) * 7 + ("unknown",))
    ledger, plans = None, []
    for recipe, tier in runs:
        plan = planned(recipe, tier, checkpoint_history, ledger)
        ledger = plan.ledger
        plans.append((plan.training, tier))
    assert ledger is not None
    supported = guarantees(ledger)
    sentences = (*guarantee_sentences(ledger, supported), lay_summary(ledger, supported).protects)
    claims = [claim for sentence in sentences for claim in claims_in(sentence)]
    for before, after in (pair_of(draw) for _ in range(4)):
        for claim in claims:
            if covers(claim, before, after):
                said[claim.scope] += before != after
                true = math.inf if checkpoint_history == "unknown" else true_epsilon(plans, before, after, DELTA)
                assert true <= claim.epsilon + 2e-3, (runs, claim, before, after)


def _sampled(examples: int) -> Counter[str]:
    said: Counter[str] = Counter()

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        _check(seed, said)

    check()
    return said


@pytest.mark.ci
def test_sentences_are_true_of_sampled_pairs() -> None:
    assert _sampled(40)["flagged"] > 0


def test_the_check_has_teeth() -> None:
    """What used to be said of decoys, "other values in the flagged places", is false: $500 is no decoy of $5."""
    tier = Tier.HIGH_ENTITY
    plans = [(planned(recipe_of("decoys"), tier, "public", None).training, tier)]
    said = Claim(scope="flagged", epsilon=0.0, tier=tier)
    pairs = [("Emma Carter paid me $5 in Berlin.", "Emma Carter paid me $500 in Berlin.")]
    pairs += [("Robert met Emma in Berlin.", "Robert met Emma O'Brien in Berlin.")]
    for old, new in pairs:
        assert covers(said, (old,), (new,))
        assert not covers(replace(said, same_shapes=True), (old,), (new,))
        assert true_epsilon(plans, (old,), (new,), DELTA) == math.inf


def test_the_check_sees_which_values_are_equal() -> None:
    """Of equal decoys it is false that they hide which values are equal, and true that they hide all else."""
    tier = Tier.HIGH_ENTITY
    plans = [(planned(recipe_of("equal decoys"), tier, "public", None).training, tier)]
    said = Claim(scope="flagged", epsilon=0.0, tier=tier, same_shapes=True)
    before = "My ID is 482915, I say 482915."
    apart, alike = "My ID is 482915, I say 731604.", "My ID is 731604, I say 731604."
    assert covers(said, (before,), (apart,))
    assert not covers(replace(said, same_pattern=True), (before,), (apart,))
    assert true_epsilon(plans, (before,), (apart,), DELTA) == math.inf
    assert covers(replace(said, same_pattern=True), (before,), (alike,))
    assert true_epsilon(plans, (before,), (alike,), DELTA) == 0


@pytest.mark.ci
def test_sentences_are_true_of_many_sampled_pairs() -> None:
    said = _sampled(500)
    assert min(said["end to end"], said["flagged"], said["uncounted"]) >= 10, said
