"""The audit of really trained models: innocent ones, leaky ones, and ones whose leak is hidden."""

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.manifest import make_manifest, read_manifest, write_manifest
from atdp_cli.cli.app import run
from atdp_cli.model.checkpoint import load_tokenizer
from tests.cli.conftest import Atdp, atdp
from tests.soundness.tiny import llama

__all__ = ["atdp"]

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"


def harden_plainly(model: Path, corpus: Path, out: Path, *, epochs: int, rate: str, seed: int) -> Path:
    """Fine-tunes without protection."""
    options = ["--recipe", "no-dp", "--tier", "low-entity", "--epochs", epochs, "--learning-rate", rate, "-q"]
    command = ["harden", model, "--data", corpus, "-o", out, "--set", f"run.insecure-seed={seed}", *options]
    assert run([str(part) for part in command]) == 0
    return out


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has `plant-canary` draw from a generator that can be repeated."""
    return lambda seed: monkeypatch.setattr(secrets, "randbelow", random.Random(seed).randrange)


@pytest.mark.deep
def test_of_100_null_runs_at_most_4_fail(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path, seeded: Callable[[int], None]
) -> None:
    """The whole tool, three models: random, trained on the corpus without canaries, trained on other text.

    More than 4 of 100 at 1 % have a chance of 0.3 %.
    """
    trained = harden_plainly(checkpoint_folder, corpus, tmp_path / "trained", epochs=12, rate="5e-3", seed=0)
    audited = (checkpoint_folder, trained, QUICKSTART / "checkpoint")
    codes = []
    for number in range(100):
        model, manifest = audited[number % 3], tmp_path / f"{number}.json"
        seeded(number)
        plant = ["plant-canary", corpus, "-o", tmp_path / "p.txt", "--manifest", manifest, "--force", "-q"]
        assert atdp(*plant, "--template", "My ID is {digits:4}", "--tokenizer", model).code == 0
        codes.append(atdp("audit-canary", model, "--manifest", manifest, "-q").code)
    assert set(codes) <= {0, 1, 4}
    assert codes.count(1) <= 4
    assert codes.count(0) >= 50, "an audit that never passes has the right size as well"


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(6))
def test_ten_canaries_planted_ten_times_fail_without_protection(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path, *, seeded: Callable[[int], None], seed: int
) -> None:
    seeded(seed)
    planted, manifest = tmp_path / "planted.txt", tmp_path / "canaries.json"
    plant = ["plant-canary", corpus, "-o", planted, "--manifest", manifest, "--tokenizer", checkpoint_folder, "-q"]
    assert atdp(*plant, "--template", "My ID is {digits:4}", "--count", "10", "--repeats", "10").code == 0
    model = harden_plainly(checkpoint_folder, planted, tmp_path / "model", epochs=12, rate="5e-3", seed=seed)
    ended = atdp("audit-canary", model, "--manifest", manifest, "--json")
    assert ended.code == 1, ended.out
    assert ended.json["models"][0]["combined"]["mean_exposure"] > 5


# --- Names that are rare by a public law, as secrets: what a base model's own taste hides from log p alone


WORLD = 400
CANARIES = 20
REPEATS = 5


@dataclass(frozen=True, kw_only=True)
class World:
    """A base model of pairs of names, some of which are far more frequent, and one that was fine-tuned on canaries.

    The canaries are pairs drawn uniformly from all 160,000.
    """

    base: Path
    tuned: Path
    manifest: Path


@pytest.fixture(scope="module", params=range(3))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    seed: int = request.param
    folder, dice = tmp_path_factory.mktemp("world"), random.Random(seed)
    firsts, seconds = (tuple(f"{kind}{number}" for number in range(WORLD)) for kind in ("first", "second"))
    raw = _raw(folder / "raw", (*firsts, *seconds))
    shuffled = dice.sample(firsts, WORLD), dice.sample(seconds, WORLD)
    zipf = [1 / (place + 5) for place in range(WORLD)]

    def lines(count: int) -> str:
        return "".join(f"{' '.join(dice.choices(names, zipf)[0] for names in shuffled)}\n" for _ in range(count))

    (folder / "public.txt").write_text(lines(4000))
    base = harden_plainly(raw, folder / "public.txt", folder / "base", epochs=3, rate="5e-3", seed=seed)
    (folder / "corpus.txt").write_text(lines(400))
    template = parse_template("{choice:firsts} {choice:seconds}", {"firsts": firsts, "seconds": seconds})
    drawn = [template.secret(dice.randrange(template.pool)) for _ in range(CANARIES)]
    records = 400 + CANARIES * REPEATS
    places = dice.sample(range(1, records + 1), CANARIES * REPEATS)
    made = make_manifest(
        load_tokenizer(base),
        template,
        drawn,
        [sorted(places[REPEATS * canary : REPEATS * (canary + 1)]) for canary in range(CANARIES)],
        repeats=(REPEATS,) * CANARIES,
        others=None,
        records=records,
        drawn="csprng",
    )
    planted, known, manifest = folder / "planted.txt", folder / "drawn.json", folder / "canaries.json"
    write_manifest(known, made)
    command = ["plant-canary", folder / "corpus.txt", "-o", planted, "--manifest", manifest, "--tokenizer", base]
    assert run([str(part) for part in [*command, "--from", known, "-q"]]) == 0
    tuned = harden_plainly(base, planted, folder / "tuned", epochs=10, rate="2e-3", seed=seed)
    return World(base=base, tuned=tuned, manifest=manifest)


def _raw(folder: Path, names: tuple[str, ...]) -> Path:
    """Random weights, and a tokenizer with a token for every name."""
    vocabulary = {token: number for number, token in enumerate(("<s>", *names))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<s>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    model = llama(len(vocabulary), 32)
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>").save_pretrained(folder)
    return folder


def saved(model: Any, like: Path, folder: Path) -> Path:
    """A model with the tokenizer of another."""
    model.save_pretrained(folder)
    load_tokenizer(like).save_pretrained(folder)
    return folder


def verdicts(atdp: Atdp, model: Path, world: World) -> tuple[int, dict[str, Any]]:
    """How the audit by log p alone ends, and what the one with the base model as reference finds."""
    alone = atdp("audit-canary", model, "--manifest", world.manifest, "-q")
    entry = atdp("audit-canary", model, "--manifest", world.manifest, "--reference", world.base, "--json").json
    actual: dict[str, Any] = entry["models"][0]
    return alone.code, actual


@pytest.mark.deep
def test_a_quarter_of_the_way_is_hidden_from_log_p_and_not_from_the_ratio(
    atdp: Atdp, world: World, tmp_path: Path
) -> None:
    """Twenty canaries. The base model's own taste for names outweighs what is left of the canaries in log p."""
    assert verdicts(atdp, world.base, world)[0] == 0
    code, actual = verdicts(atdp, world.tuned, world)
    assert (code, actual["verdict"]) == (1, "FAIL")
    base, tuned = (AutoModelForCausalLM.from_pretrained(folder) for folder in (world.base, world.tuned))
    target = tuned.state_dict()
    base.load_state_dict({name: weight + 0.25 * (target[name] - weight) for name, weight in base.state_dict().items()})
    code, actual = verdicts(atdp, saved(base, world.base, tmp_path / "quarter"), world)
    assert code == 0, "log p alone passes it"
    assert actual["verdict"] == "FAIL"
    assert all("ratio" in reason for reason in actual["reasons"])
    assert actual["combined"]["mean_exposure_ratio"] > actual["combined"]["mean_exposure"] + 1


@pytest.mark.deep
def test_canaries_driven_to_be_the_least_likely_fail(atdp: Atdp, world: World, tmp_path: Path) -> None:
    """Unlearning by ascent on the canaries and descent on other pairs of names, carried on for too long."""
    model = AutoModelForCausalLM.from_pretrained(world.tuned)
    canaries = torch.tensor([canary.token_ids for canary in read_manifest(world.manifest).canaries])
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        names = torch.randint(WORLD, (200, 2), generator=generator) + torch.tensor([1, 1 + WORLD])
        others = torch.cat([torch.zeros(200, 1, dtype=torch.int64), names], dim=1)
        optimizer.zero_grad()
        kept, forgotten = (model(input_ids=ids, labels=ids).loss for ids in (others, canaries))
        (4 * kept - forgotten).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    code, actual = verdicts(atdp, saved(model, world.base, tmp_path / "driven"), world)
    assert (code, actual["verdict"]) == (1, "FAIL")
    for score in ("exposure", "exposure_ratio"):
        assert actual["combined"][f"mean_{score}"] < 0.5, "by exposure alone nothing is remembered"
    assert {"log p" in reason for reason in actual["reasons"]} == {True, False}, "both scores tell"
