"""Running commands in this process, and hardened models that several tests look at."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w

from atdp_cli.cli.app import run

if TYPE_CHECKING:
    from atdp_cli.training.examples import Example
    from atdp_cli.training.trainer import StageRun


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)


Atdp = Callable[..., Ended]
Harden = Callable[..., Ended]


def detector(folder: Path, **settings: object) -> tuple[str, Path]:
    """--detector, and a file with these settings."""
    path = folder / "detector.toml"
    path.write_text(tomli_w.dumps(settings))
    return "--detector", path


@pytest.fixture
def atdp(capfd: pytest.CaptureFixture[str]) -> Atdp:
    """Run one command line."""

    def call(*arguments: object) -> Ended:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Ended(code=code, out=captured.out, err=captured.err)

    return call


@pytest.fixture
def harden(atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> Harden:
    """Harden the small checkpoint into a folder of `tmp_path`."""

    def run(*options: object, out: str = "out") -> Ended:
        data = ["--data", corpus, "-o", tmp_path / out, "--set", "run.threads=1", "--set", "run.insecure-seed=1"]
        return atdp("harden", checkpoint_folder, *data, *options)

    return run


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Sequence["Example"]]:
    """The examples that stages train on, an entry an epoch, as the loop over their steps is given them."""
    from atdp_cli.hardening import stages
    from atdp_cli.training.trainer import run_plain, run_private

    epochs: list[Sequence[Example]] = []

    def noting(refresh: Any) -> Any:
        def noted(epoch: int) -> Sequence["Example"]:
            epochs.append(refresh(epoch))
            return epochs[-1]

        return noted

    def plain(run: "StageRun", **options: Any) -> Any:
        return run_plain(replace(run, refresh=noting(run.refresh)), **options)

    def private(run: "StageRun", **options: Any) -> Any:
        return run_private(replace(run, refresh=noting(run.refresh)), **options)

    monkeypatch.setattr(stages, "run_plain", plain)
    monkeypatch.setattr(stages, "run_private", private)
    return epochs


@dataclass(frozen=True, kw_only=True)
class Leaky:
    """A corpus with planted canaries, and a model that was fine-tuned on it without protection."""

    corpus: Path
    manifest: Path
    model: Path


@pytest.fixture(scope="session")
def fixed_manifest(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path) -> Path:
    """Ten canaries of four digits, ten times each: the same secrets in every session, so that a verdict is too."""
    from atdp_cli.audit.canary import parse_template
    from atdp_cli.audit.manifest import make_manifest, write_manifest
    from atdp_cli.model.checkpoint import load_tokenizer

    draw = random.Random(11)
    template = parse_template("My ID is {digits:4}")
    secrets = [template.secret(draw.randrange(template.pool)) for _ in range(10)]
    places = draw.sample(range(1, 301), 100)
    positions = [sorted(places[10 * index : 10 * index + 10]) for index in range(10)]
    tokenizer = load_tokenizer(checkpoint_folder)
    path = tmp_path_factory.mktemp("manifest") / "fixed.json"
    made = make_manifest(
        tokenizer, template, secrets, positions, repeats=(10,) * 10, others=None, records=300, drawn="csprng"
    )
    write_manifest(path, made)
    return path


def make_leaky(folder: Path, corpus: Path, checkpoint_folder: Path, *planting: object) -> Leaky:
    """The small checkpoint, fine-tuned without protection on the corpus with the canaries that `planting` asks for."""
    leaky = Leaky(corpus=folder / "planted.txt", manifest=folder / "canaries.json", model=folder / "model")
    manifest = ["--manifest", leaky.manifest, "-q"]
    plant = ["plant-canary", corpus, "-o", leaky.corpus, "--tokenizer", checkpoint_folder, *planting]
    train = ["harden", checkpoint_folder, "--data", leaky.corpus, "-o", leaky.model, "--recipe", "no-dp"]
    train += ["--epochs", "12", "--learning-rate", "5e-3", "--tier", "low-entity", "--set", "run.insecure-seed=3"]
    for command in (plant, train):
        assert run([str(part) for part in [*command, *manifest]]) == 0
    return leaky


@pytest.fixture(scope="session")
def leaky(
    tmp_path_factory: pytest.TempPathFactory, corpus: Path, checkpoint_folder: Path, fixed_manifest: Path
) -> Leaky:
    """The canaries drilled into the small checkpoint."""
    return make_leaky(tmp_path_factory.mktemp("leaky"), corpus, checkpoint_folder, "--from", fixed_manifest)
