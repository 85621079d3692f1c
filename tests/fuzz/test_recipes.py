"""Recipe files, sums of recipes and canary templates with something wrong in them."""

from pathlib import Path

import pytest

from atdp_cli.audit.canary import choice_files, find_template, parse_template
from atdp_cli.corpus.spans import Tier
from atdp_cli.privacy.schedule import RiseReset
from atdp_cli.training.objectives import NPO, Anchored
from atdp_cli.training.options import RunOptions
from atdp_cli.training.recipe import DPSGD, RECIPES, SGD, AdamW, NonPrivate, TextVariant, Train, parse_recipe
from atdp_cli.training.recipe_file import RecipeFile, read_recipe, recipe_text
from tests.fuzz.damage import VALUES, damaged, noise
from tests.fuzz.survival import INPUTS, NUMBER, SECRET, Choices, Make, survive

STAGES = (
    *parse_recipe("redacted+atdp+fitted-decoys"),
    Train(
        name="anchored",
        text=TextVariant.RAW,
        objective=Anchored(),
        mechanism=DPSGD(schedule=RiseReset(noise_multiplier=1.5, sigma_max=8.0), expected_batch=64),
        optimizer=AdamW(weight_decay=0.5),
    ),
    Train(
        name="sgd",
        text=TextVariant.RAW,
        objective=Anchored(),
        mechanism=DPSGD(schedule=RiseReset(noise_multiplier=1)),
        optimizer=SGD(learning_rate=0.1),
    ),
    *parse_recipe("interpolate"),
    Train(name="npo", text=TextVariant.RAW, objective=NPO(beta=0.5), mechanism=NonPrivate()),
)
RUN = RunOptions(tier=Tier.LOW_ENTITY, privacy_unit="line", max_windows=3, jitter_seed=1, lora_rank=8, delta=1e-6)
WRITTEN = recipe_text(RecipeFile(name="all of them", recipe=STAGES, run=RUN))

LINES = (
    *(
        "[[stage]]",
        "[stage]",
        "[run]",
        "[[run]]",
        "[stage.mechanism]",
        "[stage.optimizer]",
        "[[stage.optimizer]]",
        "[]",
    ),
    *('name = "two\\nlines"', "stage = []", "a.b.c = 1", "a = {b = 1, b = 2}", '"\\u001b[2J" = 1', "="),
    *('layers = "[[a]"', 'layers = "(?i)a|(?i)b"', 'layers = "(a{1,9999}){1,9999}"', 'layers = "' + "(" * 2000 + '"'),
    *('layers = "a{99999999999}"', "x = 0o777777777777777777777777", "d = 1979-05-27T07:32:00Z", "# é \U0001f600"),
)


def toml(choices: Choices) -> bytes:
    """The recipe file with up to four of its lines changed."""
    lines = WRITTEN.splitlines()
    for _ in range(1 + choices.below(4)):
        at = choices.below(len(lines))
        key, sign, value = lines[at].partition(" = ")
        match choices.below(6):
            case 0:
                lines[at : at + 1] = []
            case 1:
                lines[at:at] = [choices.of(lines)]
            case 2:
                lines[at:at] = [choices.of(LINES)]
            case 3:
                lines[at] = f"{key}x{sign}{value}"
            case _:
                lines[at] = f"{key}{sign}{choices.of(VALUES)}"
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_recipe_files(inputs: int, tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        recipe_text(read_recipe(path))

    survive(inputs, [toml, toml, toml, damaged(WRITTEN.encode()), noise], read, valid=[WRITTEN.encode()])


NAMES = (*RECIPES, "+", "+", "+", "++", " ", "", "-2", "=", "\n", "\x1b[2J", "\ud800", "x" * 3000)
SLOTS = (
    *("{digits:6}", "{hex:4}", "{letters:64}", "{letters:65}", "{digits:0}", "{digits:}", "{digits:٣}", "{x:1}", "{:}"),
    *(
        "{choice:names.txt}",
        "{choice:none}",
        "{choice:two\nlines}",
        "{choice:}",
        "{choice:\x1b[2J}",
        "{",
        "}",
        "{{",
        "}}",
    ),
    *(
        "My ID is ",
        "\n",
        "\r",
        "\x85",
        "\u2028",
        "\0",
        "\ud800",
        "é",
        "٣٤",
        "{digits:64}" * 16,
        "{digits:1}" * 17,
        "9" * 70,
    ),
    *(SECRET, "$", "\\", "%s", " "),
)


def joined(*pieces: str) -> Make[str]:
    """Up to eleven of the pieces."""
    return lambda choices: "".join(choices.of(pieces) for _ in range(choices.below(12)))


def random_text(choices: Choices) -> str:
    """Characters of every kind."""
    return "".join(chr(choices.below(0x110000)) for _ in range(choices.below(10)))


@pytest.mark.parametrize("inputs", INPUTS)
def test_sums_of_recipes(inputs: int) -> None:
    survive(inputs, [joined(*NAMES), joined(*NAMES), random_text], parse_recipe, valid=["redacted+atdp+redacted"])


@pytest.mark.parametrize("inputs", INPUTS)
def test_templates(inputs: int) -> None:
    options = (SECRET, "Another one")

    def read(text: str) -> None:
        template = parse_template(text, {name: options for name in choice_files(text) if name != "none"})
        for index in (0, template.pool // 2, template.pool - 1):
            assert template.index_of(template.secret(index)) == index
        assert template.record(template.secret(0)).splitlines() == [template.record(template.secret(0))]

    ways = [joined(*SLOTS), joined(*SLOTS), random_text]
    survive(inputs, ways, read, valid=["My ID is {digits:6} or {choice:names.txt}"])


@pytest.mark.parametrize("inputs", INPUTS)
def test_typed_canaries(inputs: int) -> None:
    def read(text: str) -> None:
        template, secret = find_template(text)
        assert template.record(secret) == text

    survive(inputs, [joined(*SLOTS[9:]), joined(*SLOTS[9:]), random_text], read, valid=[f"My ID is {NUMBER}."])
