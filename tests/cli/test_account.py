"""`atdp account`."""

import json
from pathlib import Path

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

from tests.cli.conftest import Atdp, Leaky


def test_hypothetical_parameters(atdp: Atdp) -> None:
    ended = atdp("account", "--sample-rate", "0.05", "--noise-multiplier", "1.5", "--steps", "200", "--json")
    assert ended.code == 0
    answer = ended.json
    accountant = PLDAccountant(value_discretization_interval=answer["grid"])
    gaussian = dp_accounting.GaussianDpEvent(1.5)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(0.05, gaussian), 200)
    assert answer["epsilon"]["pld"] == pytest.approx(accountant.get_epsilon(1e-6), abs=1e-6)
    assert answer["epsilon"]["pld"] < answer["epsilon"]["rdp"] < answer["epsilon"]["paper"]
    assert answer["delta"] == 1e-6
    assert [entry["scope"] for entry in answer["guarantees"]] == ["increment"]


def test_a_folder_a_ledger_and_the_run_say_the_same(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    options = ["--data", corpus, "-o", tmp_path / "o", "--max-records", "60", "--epochs", "1", "--prior", "public"]
    run = atdp("harden", checkpoint_folder, *options, "--json").json
    for source in (tmp_path / "o", tmp_path / "o" / "privacy_ledger.json"):
        answer = atdp("account", source, "--json").json
        assert answer["guarantees"] == run["guarantees"]
        assert answer["epsilon"]["pld"] == run["guarantees"][0]["epsilon"]
    looser = atdp("account", tmp_path / "o", "--delta", "1e-4", "--json").json
    assert looser["epsilon"]["pld"] < answer["epsilon"]["pld"]
    assert looser["delta"] == 1e-4
    refused = atdp("account", tmp_path / "o", "--delta", "0.1")
    assert refused.code == 2
    assert "1/N" in refused.err


def test_the_table_names_the_scope(atdp: Atdp, leaky: Leaky) -> None:
    ended = atdp("account", leaky.model)
    assert ended.code == 0
    assert "no finite ε, because the model was trained on the corpus without" in " ".join(ended.out.split())
    assert json.loads(atdp("account", leaky.model, "--json").out)["epsilon"] is None
