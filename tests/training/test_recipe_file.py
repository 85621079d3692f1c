"""Recipe files: what is written reads back, and what is wrong is named."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.settings import DetectorSettings
from atdp_cli.errors import InputError, UsageError
from atdp_cli.hardening.request import HardenRequest
from atdp_cli.privacy.schedule import Constant, RiseReset
from atdp_cli.settings import LARGEST_NOISE, MIN_DELTA, declared
from atdp_cli.training.objectives import (
    NPO,
    RMU,
    Anchored,
    Distilled,
    FlaggedOnly,
    GradientDifference,
    Interpolate,
    NoLoss,
    SimNPO,
    Uniform,
    Weighted,
)
from atdp_cli.training.options import MAX_RANK, RunOptions
from atdp_cli.training.recipe import (
    DPSGD,
    RECIPES,
    SGD,
    AdamW,
    NonPrivate,
    Recipe,
    TextVariant,
    Train,
    parse_recipe,
)
from atdp_cli.training.recipe_file import RecipeFile, load_recipe, read_recipe, recipe_text, write_recipe

POSITIVE = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
NOISE = st.floats(min_value=0, max_value=LARGEST_NOISE, exclude_min=True)
SHARES = st.floats(min_value=0, max_value=1) | st.sampled_from([0, 1])
FRACTIONS = st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True)
COUNTS = st.integers(min_value=1, max_value=10**9)
LABELS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,12}", fullmatch=True)


@st.composite
def rising(draw: st.DrawFn) -> RiseReset:
    """Any shape that rises and is reset."""
    start = draw(st.floats(min_value=1e-6, max_value=1e6))
    low = draw(st.floats(min_value=1e-6, max_value=1e6))
    return RiseReset(
        noise_multiplier=start,
        sigma_growth=draw(st.floats(min_value=1, max_value=1e6)),
        jitter=(low, draw(st.floats(min_value=low, max_value=1e6))),
        sigma_max=draw(st.none() | st.floats(min_value=start, max_value=1e9)),
    )


OBJECTIVES = st.one_of(
    st.just(Uniform()),
    st.just(FlaggedOnly()),
    st.builds(Weighted, unflagged_weight=SHARES | st.sampled_from(["record"]), target_share=FRACTIONS),
    st.just(Anchored()),
    st.builds(Distilled, share=st.floats(min_value=0, max_value=1, exclude_min=True)),
    st.builds(Interpolate, beta=SHARES | st.floats(-4, 0)),
    st.builds(GradientDifference, strength=POSITIVE),
    st.builds(NPO, strength=POSITIVE, beta=POSITIVE),
    st.builds(SimNPO, strength=POSITIVE, beta=POSITIVE, margin=SHARES),
    st.builds(RMU, strength=POSITIVE, layer=st.none() | COUNTS, steering=POSITIVE, retain=SHARES),
    st.just(NoLoss()),
)
NOISY = st.builds(
    DPSGD,
    clip_norm=POSITIVE,
    expected_batch=st.none() | COUNTS,
    schedule=rising() | st.builds(Constant, noise_multiplier=NOISE),
)
DECAY = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
SHARED = {"learning_rate": POSITIVE, "weight_decay": DECAY}
OPTIMIZERS = st.builds(AdamW, **SHARED) | st.builds(SGD, **SHARED)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Any recipe: every type of stage, objective, mechanism, schedule and optimizer, at any setting."""
    stages: list[Train] = []
    for name in draw(st.lists(LABELS, unique=True, max_size=4)):
        objective = draw(OBJECTIVES)
        demands, plain = objective.demands, st.builds(NonPrivate, batch_size=COUNTS)
        mechanism = draw(plain if demands.noise == "never" else NOISY if demands.noise == "always" else NOISY | plain)
        stages.append(
            Train(
                name=name,
                text=TextVariant.RAW if demands.raw else draw(st.sampled_from(TextVariant)),
                objective=objective,
                mechanism=mechanism,
                epochs=draw(st.integers(1, 10_000)),
                optimizer=draw(OPTIMIZERS),
            )
        )
    return tuple(stages)


RUNS = st.builds(
    RunOptions,
    tier=st.none() | st.sampled_from(Tier),
    privacy_unit=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    max_windows=st.none() | COUNTS,
    jitter_seed=st.none() | st.integers(),
    lora_rank=st.none() | st.integers(1, MAX_RANK),
    delta=st.none() | st.floats(min_value=MIN_DELTA, max_value=1, exclude_max=True),
)


@settings(deadline=None, max_examples=100)
@given(recipe=recipes(), run=RUNS, name=st.from_regex(r"[a-z][ a-zéσ+.-]{0,20}", fullmatch=True))
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, recipe: Recipe, run: RunOptions, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "law.toml"
    file = RecipeFile(name=name, recipe=recipe, run=run)
    write_recipe(path, file)
    assert read_recipe(path) == file


@pytest.mark.parametrize("name", [*RECIPES, "redacted+jft+atdp+noise+interpolate+anchored+atdp"])
def test_named_recipes_read_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / "r.toml"
    file = RecipeFile(name=name, recipe=parse_recipe(name))
    write_recipe(path, file)
    assert load_recipe(str(path)) == file
    assert load_recipe(name) == file


def test_every_option_of_a_file_is_one_of_the_command_or_of_the_detector() -> None:
    options = [name for name, _, _ in declared(HardenRequest, DetectorSettings)]
    assert all(options.count(name) == 1 for name in RunOptions.model_fields)


def test_what_is_left_out_takes_its_default(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(
        'name = "short"\n[[stage]]\nname = "a"\ntext = "raw"\nobjective = {kind = "weighted"}\n'
        'mechanism = {kind = "dp-sgd", schedule = {kind = "rise-reset", noise_multiplier = 2}}\n'
    )
    actual = read_recipe(path)
    assert actual.recipe == (
        Train(
            name="a",
            text=TextVariant.RAW,
            objective=Weighted(),
            mechanism=DPSGD(schedule=RiseReset(noise_multiplier=2.0)),
        ),
    )
    assert actual.run.given() == {}


GOOD = recipe_text(
    RecipeFile(
        name="redacted+atdp+interpolate",
        recipe=parse_recipe("redacted+atdp+interpolate"),
        run=RunOptions(tier=Tier.LOW_ENTITY, max_windows=8, delta=1e-6),
    )
)

WRONG = {
    "no TOML": ('kind = "plain"', "kind = plain", "is not TOML: Invalid value (at line"),
    "empty": (GOOD, "", "the file: the key 'name' is missing"),
    "no stages": (GOOD, 'name = "x"', "the file: the key 'stage' is missing"),
    "a stage that is no table": (GOOD, 'name = "x"\nstage = [3]', "stage 1 is no table"),
    "unknown key of the file": (
        "name = ",
        "checkpoint_history = 'public'\nname = ",
        "the file: the key 'checkpoint_history' is not known",
    ),
    "blank name": ('name = "redacted+atdp+interpolate"', 'name = " "', "name is ' '"),
    "no stage name": ('name = "atdp"\n', "", "stage 2: the key 'name' is missing"),
    "the same stage name twice": ('name = "atdp"', 'name = "redacted"', "stage 2: the name 'redacted' is taken"),
    "no kind": ('kind = "weighted"\n', "", "stage 2 (atdp): objective: the key 'kind' is missing"),
    "unknown kind": ('kind = "weighted"', 'kind = "heavy"', "stage 2 (atdp): objective: kind is 'heavy'"),
    "unknown key": ("clip_norm", "clip-norm", "stage 2 (atdp): mechanism: the key 'clip-norm' is not known"),
    "missing key": ("noise_multiplier = 1.0\n", "", "mechanism: schedule: the key 'noise_multiplier' is missing"),
    "a fraction of an epoch": ("epochs = 3", "epochs = 2.5", "epochs: Input should be a valid int"),
    "no such text": ('text = "raw"', 'text = "rew"', "(atdp): text: Input should be 'raw', 'redacted' or 'decoy'"),
    "out of range": ("clip_norm = 0.1", "clip_norm = -1", "stage 2 (atdp): mechanism: clip_norm is -1. Choose a num"),
    "a stage without protection": (
        'kind = "uniform"',
        'kind = "no-loss"',
        "stage redacted has neither a loss nor noise",
    ),
    "run of another type": (GOOD, 'name = "x"\nstage = []\nrun = 3', "run is no table"),
    "unknown key of run": (
        "tier = ",
        "data = 3\ntier = ",
        "run: the key 'data' is not known. Its keys are tier, entities",
    ),
    "half a pair": ("    1.1,\n", "", "stage 2 (atdp): mechanism: schedule: jitter: Field required"),
    "deep in a run": (GOOD, 'name = "x"\nstage = []\nrun.' + ".".join("a" * 300) + " = 1", "nested too deep"),
    "run out of range": ("max_windows = 8", "max_windows = 0", "run: max_windows is 0"),
    "nested without end": ('name = "redacted+atdp+interpolate"', "name = " + "[" * 9999, "is not TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_file_is_refused_in_one_line_that_names_the_key(tmp_path: Path, case: str) -> None:
    old, new, said = WRONG[case]
    assert old in GOOD
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_recipe(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InputError, match="cannot be read as a recipe"):
            read_recipe(path)
    with pytest.raises(UsageError, match=r"recipe 'none\.tom' is not known"):
        load_recipe("none.tom")


def test_the_example_of_the_docs_is_a_recipe(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
    example = tmp_path / "example.toml"
    example.write_text(page.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    [stage] = read_recipe(example).recipe
    assert stage.objective == Weighted(unflagged_weight=0.2)
