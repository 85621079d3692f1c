"""`atdp account`."""

import subprocess
import sys
from pathlib import Path

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

from atdp_cli.privacy.ledger import PlainTraining, write_ledger
from atdp_cli.privacy.relation import hypothetical
from tests.cli.conftest import Atdp
from tests.privacy.ledgers import ledger, release, steps


def test_hypothetical_parameters(atdp: Atdp) -> None:
    ended = atdp("account", "--sampling-probability", "0.05", "--noise-multiplier", "1.5", "--steps", "200", "--json")
    assert ended.code == 0
    answer = ended.json
    accountant = PLDAccountant(value_discretization_interval=answer["grid"])
    gaussian = dp_accounting.GaussianDpEvent(1.5)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(0.05, gaussian), 200)
    assert answer["epsilon"]["pld"] == pytest.approx(accountant.get_epsilon(1e-6), abs=1e-6)
    assert answer["epsilon"]["pld"] < answer["epsilon"]["rdp"] < answer["epsilon"]["paper"]
    assert answer["delta"] == 1e-6
    assert [entry["scope"] for entry in answer["guarantees"]] == ["increment"]


@pytest.mark.ci
def test_a_folder_a_ledger_and_the_run_say_the_same(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    options = [
        "--data",
        corpus,
        "-o",
        tmp_path / "o",
        "--set",
        "run.max-records=60",
        "--epochs",
        "1",
        "--checkpoint-history",
        "public",
    ]
    run = atdp("harden", checkpoint_folder, *options, "--recipe", "atdp", "--json").json
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


def test_each_scope_has_a_block_in_its_own_adjacency(atdp: Atdp, tmp_path: Path) -> None:
    """For fitted decoys the one finite guarantee of a record is selective: a replaced record moves the votes by √2."""
    fitted = ["--recipe", "fitted-decoys", "--records", "2000", "--checkpoint-history", "public"]
    answer = atdp("account", *fitted, "--json").json
    blocks = {block["scope"]: block for block in answer["scopes"]}
    assert list(blocks) == ["selective", "uncounted", "increment"]
    assert (answer["scope"], answer["epsilon"]) == ("selective", blocks["selective"]["epsilon"])
    selective, increment = blocks["selective"], blocks["increment"]
    assert (selective["adjacency"], increment["adjacency"]) == ("replace-one", "zero-out")
    assert selective["epsilon"]["pld"] == pytest.approx(2.59, abs=0.01)
    assert increment["epsilon"]["pld"] == pytest.approx(1.77, abs=0.01)
    ten = {
        scope: {group["records"]: group["epsilon"] for group in block["person"]}[10] for scope, block in blocks.items()
    }
    assert ten == pytest.approx({"selective": 42.2, "uncounted": 0, "increment": 26.4}, abs=0.1)
    assert blocks["uncounted"]["delta"] == 0
    assert selective["epsilon"]["pld"] <= selective["epsilon"]["rdp"] <= selective["epsilon"]["paper"]
    reported = atdp("account", *fitted).out
    quoted = next(line for line in reported.splitlines() if "quote this" in line)
    assert "2.59" in quoted
    assert reported.index("Flagged values") < reported.index("quote this") < reported.index("Noisy stages")


def test_a_recipe_that_nobody_has_run(atdp: Atdp) -> None:
    options = ["--records", "2000", "--epochs", "2", "--batch-size", "100", "--set", "atdp.sigma-max=3"]
    answer = atdp("account", "--recipe", "redacted+atdp", *options, "--delta", "1e-5", "--json").json
    redacted, atdp_stage = answer["stages"]
    assert redacted["noise_multipliers"] == []
    assert (atdp_stage["steps"], atdp_stage["sampling_rate"]) == (40, 0.05)
    assert [entry["scope"] for entry in answer["guarantees"]] == ["end_to_end", "increment"]
    assert answer["guarantees"][0]["epsilon"] == "inf"
    assert answer["guarantees"][1]["epsilon"] == answer["epsilon"]["pld"]


def test_the_noise_of_a_release_is_solved_for(atdp: Atdp) -> None:
    options = ["--recipe", "fitted-decoys", "--records", "2000", "--solve", "noise", "--target-epsilon", "2"]
    answer = atdp("account", *options, "--checkpoint-history", "public", "--json").json
    assert answer["guarantees"][1]["scope"] == answer["scope"] == "selective"
    assert answer["epsilon"]["pld"] == answer["guarantees"][1]["epsilon"]
    assert 1.998 <= answer["guarantees"][1]["epsilon"] <= 2
    sigma = answer["stages"][0]["release_noise_multiplier"]
    assert f"noise multiplier {sigma!r} for its one release" in " ".join(
        atdp("account", *options, "--checkpoint-history", "public").out.split()
    )


def test_several_ledgers_compose_and_share_their_ancestor(atdp: Atdp, tmp_path: Path) -> None:
    parent = ledger(steps(0.1, 1.0, 30), run="parent")
    for name, sigma in (("one", 2.0), ("two", 3.0)):
        (inherited,) = (event.model_copy(update={"run": "parent"}) for event in parent.events)
        write_ledger(tmp_path / f"{name}.json", ledger(inherited, steps(0.1, sigma, 10), run=name))
    alone = [atdp("account", tmp_path / f"{name}.json", "--json").json for name in ("one", "two")]
    both = atdp("account", tmp_path / "one.json", tmp_path / "two.json", "--json").json
    assert [part["epsilon"] for part in both["ledgers"]] == [answer["epsilon"]["pld"] for answer in alone]
    assert max(part["epsilon"] for part in both["ledgers"]) < both["epsilon"]["pld"]
    assert both["epsilon"]["pld"] < sum(part["epsilon"] for part in both["ledgers"])
    write_ledger(
        tmp_path / "plain.json", ledger(PlainTraining(stage="no-dp", text="raw", relation=hypothetical()), run="three")
    )
    parts = atdp("account", tmp_path / "one.json", tmp_path / "plain.json", "--json").json["ledgers"]
    assert [part["epsilon"] for part in parts] == [alone[0]["epsilon"]["pld"], None]
    assert any("these 2 models" in text for text in both["guarantees"][0]["assumptions"])
    other = ledger(steps(0.1, 1.0, 5)).model_copy(update={"unit": "document"})
    write_ledger(tmp_path / "other.json", other)
    refused = atdp("account", tmp_path / "one.json", tmp_path / "other.json")
    assert refused.code == 2
    assert "unit" in refused.err


@pytest.mark.ci
def test_the_lines_that_check_an_epsilon_by_hand(atdp: Atdp, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "accounting.md").read_text(encoding="utf-8")
    snippet = page.split("```python\n")[1].split("```")[0]
    write_ledger(tmp_path / "privacy_ledger.json", ledger(release(20.0), steps(0.1, 1.0, 30), steps(0.1, 2.0, 30)))
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, check=True, capture_output=True, text=True, encoding="utf-8"
    )
    answer = atdp("account", tmp_path, "--json").json
    assert float(done.stdout) == pytest.approx(answer["epsilon"]["pld"], abs=1e-6)
