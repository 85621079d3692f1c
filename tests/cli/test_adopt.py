"""`atdp account --adopt`: a model that atdp did not train has what its user declares, and never more."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.files.documents import file_sha256
from atdp_cli.privacy.ledger import LEDGER_FILE, DeclaredTraining, DecoyedText, GaussianRelease, read_ledger
from atdp_cli.privacy.wording import DECLARED, DECLARED_TRAINING
from tests.cli.conftest import Atdp


@pytest.fixture(scope="module")
def decoyed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus with decoys."""
    from atdp_cli.cli.app import run

    folder = tmp_path_factory.mktemp("decoyed") / "copies"
    assert run(["decoy", str(corpus), "-o", str(folder), "--epochs", "1", "--set", "run.store=none", "-q"]) == 0
    return folder


@pytest.fixture
def model(checkpoint_folder: Path, tmp_path: Path) -> Path:
    """A model that came from elsewhere."""
    return Path(shutil.copytree(checkpoint_folder, tmp_path / "model"))


@pytest.fixture
def adopted(atdp: Atdp, model: Path, decoyed: Path) -> Path:
    """The same, adopted from a public start."""
    ended = atdp("account", "--adopt", model, "--ledger", decoyed, "--checkpoint-history", "public")
    assert ended.code == 0, ended.err
    return model


def epsilons(document: Any) -> dict[str, Any]:
    return {guarantee["scope"]: guarantee["epsilon"] for guarantee in document["guarantees"]}


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: file_sha256(path) for path in folder.iterdir() if path.name != LEDGER_FILE}


def test_the_claim_is_declared_and_the_weights_stay(atdp: Atdp, model: Path, decoyed: Path) -> None:
    before = hashes(model)
    ended = atdp("account", "--adopt", model, "--ledger", decoyed, "--checkpoint-history", "public", "--json")
    assert ended.code == 0, ended.err
    actual = epsilons(ended.json)
    assert actual.keys() == {"end_to_end", "declared", "increment"}
    assert actual["end_to_end"] == "inf"
    assert 2.9 < actual["declared"] <= 3
    [declared] = [guarantee for guarantee in ended.json["guarantees"] if guarantee["scope"] == "declared"]
    assert DECLARED_TRAINING in declared["assumptions"]
    assert ended.json["scope"] == "declared"
    assert hashes(model) == before
    ledger = read_ledger(model / LEDGER_FILE)
    release, text, training = ledger.events
    assert isinstance(release, GaussianRelease)
    assert isinstance(text, DecoyedText)
    assert isinstance(training, DeclaredTraining)
    assert training.corpora == (text.run,)
    assert training.weights == {"model.safetensors": before["model.safetensors"]}
    assert before.items() >= {name: ledger.seal[name] for name in ("model.safetensors", "config.json")}.items()
    assert DECLARED in " ".join(atdp("account", model).out.split())


def test_without_a_public_start_nothing_is_claimed(atdp: Atdp, model: Path, decoyed: Path) -> None:
    ended = atdp("account", "--adopt", model, "--ledger", decoyed)
    assert ended.code == 0
    assert "the starting model's past is unknown" in " ".join(ended.out.split())
    assert epsilons(atdp("account", model, "--json").json).keys() == {"end_to_end", "increment"}


def test_a_limit_fails_on_it_unless_what_is_declared_is_accepted(atdp: Atdp, adopted: Path) -> None:
    refused = atdp("account", adopted, "--max-epsilon", 5)
    assert refused.code == 2
    assert "Add --set run.accept-declared=true" in refused.err
    assert len(refused.err.splitlines()) == 1
    assert atdp("account", adopted, "--max-epsilon", 5, "--set", "run.accept-declared=true").code == 0
    above = atdp("account", adopted, "--max-epsilon", 2, "--set", "run.accept-declared=true")
    assert above.code == 2
    assert "above --max-epsilon 2" in above.err


def test_a_limit_of_what_atdp_saw_needs_no_acceptance(atdp: Atdp, decoyed: Path) -> None:
    assert atdp("account", decoyed, "--max-epsilon", 3).code == 0
    assert atdp("account", decoyed, "--max-epsilon", 2).code == 2
    run = ("--sampling-probability", 0.01, "--noise-multiplier", 1, "--steps", 10)
    assert atdp("account", *run, "--max-epsilon", 5).code == 0
    assert atdp("account", *run, "--max-epsilon", 0.01).code == 2


@pytest.mark.ci
def test_a_run_from_there_inherits_what_was_declared(atdp: Atdp, adopted: Path, corpus: Path, tmp_path: Path) -> None:
    run = ("harden", adopted, "--data", corpus, "-o", tmp_path / "out", "--set", "run.store=none", "--epochs", 1)
    private = (*run, "--recipe", "dp-sgd", "--dry-run", "--max-epsilon", 50)
    refused = atdp(*private)
    assert refused.code == 2
    assert "run.accept-declared=true" in refused.err
    assert atdp(*private, "--set", "run.accept-declared=true").code == 0

    ended = atdp(
        *run, "--recipe", "fitted-decoys", "--checkpoint-history", "public", "--set", "run.threads=1", "--quiet"
    )
    assert ended.code == 0, ended.err
    report = json.loads((tmp_path / "out" / "privacy_report.json").read_text())
    actual = epsilons(report)
    assert actual.keys() == {"end_to_end", "declared", "increment"}
    assert actual["end_to_end"] == "inf"
    assert math.isfinite(actual["declared"])
    assert actual["declared"] > 3, "both releases"
    assert DECLARED_TRAINING in report["summary"]["protects"]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "**Not releasable.**" in card
    assert "declared by the user" in card
    assert atdp("report", tmp_path / "out", "--verify").code == 0


def test_what_atdp_wrote_is_not_declared_away(atdp: Atdp, model: Path, decoyed: Path) -> None:
    from atdp_cli.model.hashes import seal_of
    from atdp_cli.privacy.ledger import write_ledger
    from tests.privacy.ledgers import ledger
    from tests.privacy.relations import plain

    raw = ledger(plain("none"), run="r").model_copy(update={"seal": seal_of(model)})
    write_ledger(model / LEDGER_FILE, raw)
    adopt = ("account", "--adopt", model, "--ledger", decoyed, "--checkpoint-history", "public")
    assert "exists. Use --force" in atdp(*adopt).err
    assert "fits the model: atdp wrote both" in atdp(*adopt, "--force").err
    assert [event.kind for event in read_ledger(model / LEDGER_FILE).events] == ["plain"]
    write_ledger(model / LEDGER_FILE, raw.model_copy(update={"seal": raw.seal | {"model.safetensors": "0" * 64}}))
    assert atdp(*adopt, "--force").code == 0
    assert atdp(*adopt, "--force").code == 0, "what was declared can be declared anew"


def test_the_ledger_of_the_start_is_composed_in(atdp: Atdp, model: Path, decoyed: Path, tmp_path: Path) -> None:
    from atdp_cli.privacy.ledger import write_ledger
    from tests.privacy.ledgers import ledger
    from tests.privacy.relations import noisy

    start = tmp_path / "start.json"
    write_ledger(start, ledger(noisy(1.0, 5), run="s").model_copy(update={"checkpoint_history": "unknown"}))
    adopt = ("account", "--adopt", model, "--ledger", decoyed, "--ledger", start)
    assert "contradicts a --ledger" in atdp(*adopt, "--checkpoint-history", "public").err
    assert not (model / LEDGER_FILE).exists()
    write_ledger(start, ledger(noisy(1.0, 5), run="s"))
    assert atdp(*adopt, "--checkpoint-history", "public").code == 0
    assert [event.run for event in read_ledger(model / LEDGER_FILE).events][2] == "s"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--adopt", "{model}"), "Add --ledger DECOYED"),
        (("--ledger", "{decoyed}"), "--ledger goes with --adopt"),
        (
            ("--adopt", "{model}", "--ledger", "{decoyed}", "--steps", 3),
            "--adopt goes with --ledger and --checkpoint-history alone",
        ),
        (
            ("--adopt", "{model}", "--ledger", "{decoyed}", "{decoyed}"),
            "--adopt goes with --ledger and --checkpoint-history alone",
        ),
        (("--adopt", "{model}", "--ledger", "{steps}"), "No --ledger is of decoyed text"),
        (("--adopt", "{model}/absent", "--ledger", "{decoyed}"), "absent"),
        (("--adopt", "{model}", "--ledger", "{model}"), "cannot be read as a ledger"),
        (("--adopt", "{model}", "--ledger", "{decoyed}", "--delta", 0.5), "not below 1/N"),
    ],
)
def test_what_describes_no_model_is_refused(
    atdp: Atdp, model: Path, decoyed: Path, options: tuple[object, ...], message: str
) -> None:
    from atdp_cli.privacy.ledger import write_ledger
    from tests.privacy.ledgers import ledger, steps

    places = {"model": model, "decoyed": decoyed, "steps": model.parent / "steps.json"}
    write_ledger(places["steps"], ledger(steps(0.1, 1.0, 5), run="1"))
    ended = atdp("account", *(str(word).format(**places) for word in options))
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not (model / LEDGER_FILE).exists()
