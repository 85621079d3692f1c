"""`atdp audit-canary` beyond ranks: coins, bounds on ε, attacks, the whole distribution, and templates of all kinds."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from atdp_cli.audit.hypothesis_tests import fisher, holm
from atdp_cli.cli.app import run
from atdp_cli.privacy.ledger import read_ledger
from atdp_cli.privacy.scope import group_epsilon
from tests.cli.badinput.case import line
from tests.cli.conftest import Atdp, Leaky, make_leaky

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "atdp_cli" / "reporting" / "schemas" / "audit.schema.json").read_text(encoding="utf-8")
)
POOL = 10_000
ALL = "extraction,membership,relearning"


@pytest.fixture(scope="session")
def tossed(tmp_path_factory: pytest.TempPathFactory, corpus: Path, checkpoint_folder: Path) -> Leaky:
    """Thirty canaries, planted where a coin said so, in a model that was fine-tuned on them without protection.

    The coins are the system's, so their fall, and by how much the model fails, differ from session to session. Of
    ten thousand secrets two can be equal: such canaries are drawn again, since one left out could be planted then.
    """
    folder = tmp_path_factory.mktemp("tossed")
    drawn, planting = folder / "drawn.json", ["--in-out", "--count", "30", "--template", "My ID is {digits:4}", "-q"]
    secrets = list[str]()
    while len(set(secrets)) < 60:
        options = ["-o", folder / "drawn.txt", "--manifest", drawn, "--tokenizer", checkpoint_folder, "--force"]
        assert run([str(part) for part in ["plant-canary", corpus, *options, *planting]]) == 0
        known = canaries_of(drawn)
        secrets = [str(canary["secret"]) for canary in known]
        secrets += [str(canary.get("other") or canary["positions"]) for canary in known]
    return make_leaky(folder, corpus, checkpoint_folder, "--from", drawn)


def canaries_of(manifest: Path) -> list[dict[str, Any]]:
    actual: list[dict[str, Any]] = json.loads(manifest.read_text())["canaries"]
    return actual


@pytest.mark.ci
def test_coins_decide_who_is_planted(
    atdp: Atdp, tossed: Leaky, corpus: Path, checkpoint_folder: Path, tmp_path: Path
) -> None:
    lines = tossed.corpus.read_text().split("\n")
    known = canaries_of(tossed.manifest)
    assert 0 < sum(canary["planted"] for canary in known) < 30, "one chance in 5·10⁸"
    for canary in known:
        [said] = canary["secret"] if canary["planted"] else canary["other"]
        assert {lines[place - 1] for place in canary["positions"]} == {f"My ID is {said}"}
        assert len(canary["positions"]) == canary["repeats"]
    assert sum(text.startswith("My ID is ") for text in lines) == sum(canary["repeats"] for canary in known)
    again, manifest = tmp_path / "again.txt", tmp_path / "again.json"
    options = ["-o", again, "--manifest", manifest, "--tokenizer", checkpoint_folder, "--from", tossed.manifest]
    assert atdp("plant-canary", corpus, *options).code == 0
    assert (again.read_bytes(), manifest.read_bytes()) == (tossed.corpus.read_bytes(), tossed.manifest.read_bytes())


@pytest.mark.ci
def test_a_manifest_whose_coins_fell_otherwise_does_not_fit_the_corpus(
    atdp: Atdp, tossed: Leaky, checkpoint_folder: Path, tmp_path: Path
) -> None:
    wrong = json.loads(tossed.manifest.read_text())
    planted = next(canary for canary in wrong["canaries"] if canary["planted"])
    planted["planted"], planted["other"] = False, ["0000"]
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    options = ["--manifest", tmp_path / "wrong.json", "-o", tmp_path / "out", "--recipe", "no-dp"]
    ended = atdp("harden", checkpoint_folder, "--data", tossed.corpus, *options)
    assert ended.code == 2
    assert "coin" in ended.err
    assert planted["secret"][0] not in ended.err
    assert not (tmp_path / "out").exists()


def test_only_planted_canaries_are_judged(atdp: Atdp, tossed: Leaky) -> None:
    ended = atdp("audit-canary", tossed.model, "--manifest", tossed.manifest, "--json")
    assert ended.code == 1
    (entry,) = ended.json["models"]
    inside = [canary for canary in entry["canaries"] if canary["planted"]]
    assert [canary["planted"] for canary in entry["canaries"]] == [
        canary["planted"] for canary in canaries_of(tossed.manifest)
    ]
    assert entry["combined"]["fisher_p"] == pytest.approx(fisher([canary["p_value"] for canary in inside]))
    assert entry["combined"]["mean_exposure"] == pytest.approx(
        sum(canary["exposure"] for canary in inside) / len(inside)
    )
    assert all((canary["holm_p"] is None) != canary["planted"] for canary in entry["canaries"])
    outside = [canary["exposure"] for canary in entry["canaries"] if not canary["planted"]]
    # Exponential with mean 1.44 bits: above 8 on average with probability below 1e-5, even if one coin alone fell so.
    assert sum(outside) / len(outside) < 24 / math.sqrt(len(outside))


@pytest.mark.ci
def test_every_attack_and_bound_has_its_place_in_the_schema_and_names_no_secret(
    atdp: Atdp, tossed: Leaky, corpus: Path, checkpoint_folder: Path
) -> None:
    options = [
        "--manifest",
        tossed.manifest,
        "--attacks",
        ALL,
        "--set",
        f"run.other-text={corpus}",
        "--set",
        "run.relearning-steps=5",
    ]
    command = [
        "audit-canary",
        tossed.model,
        *options,
        *line("--set run.continuations=200 --set run.describe-candidates=true --reference"),
        checkpoint_folder,
    ]
    ended = atdp(*command, "--json")
    assert ended.code == 1
    assert list(Draft202012Validator(SCHEMA).iter_errors(ended.json)) == []
    (entry,) = ended.json["models"]
    assert [bound["method"] for bound in entry["epsilon"]] == ["in-out", "rank"]
    assert len(entry["extraction"]) == len(entry["canaries"]) == len(entry["relearning"]["exposures_ratio"]) == 30
    assert [attack["attack"] for attack in entry["membership"]] == ["loss", "reference", "min-k++"]
    assert all(attack["tpr_at_1_fpr"] is None for attack in entry["membership"]), "30 canaries resolve no 1 %"
    actual = entry["distribution"]
    assert sum(actual["counts"]) == POOL
    assert 0 < actual["total"] <= 1 + 1e-6
    assert [candidate["rank"] for candidate in actual["top"]] == list(range(1, 21))
    assert all(candidate["secret"] is None for candidate in actual["top"])
    first = [candidate["canary"] for candidate in actual["top"] if candidate["canary"] is not None]
    for number in first:
        assert entry["canaries"][number - 1]["rank_min"] <= 20
    table = " ".join(atdp(*command).out.split())
    for said in ("Extraction", "Membership inference by reference", "Relearning", "likeliest", "No claim to test"):
        assert said in table
    shown = atdp(*command, "--show-secrets", "--json").json["models"][0]["distribution"]["top"]
    known = canaries_of(tossed.manifest)
    for candidate in shown:
        assert len(candidate["secret"]) == 1
        assert candidate["canary"] is None or known[candidate["canary"] - 1]["secret"] == candidate["secret"]


def test_a_limit_on_the_bound_fails_is_passed_or_cannot_be_tested(
    atdp: Atdp, tossed: Leaky, checkpoint_folder: Path
) -> None:
    def judged(model: Path, limit: float, *more: str) -> tuple[int, dict[str, Any]]:
        options = ["--manifest", tossed.manifest, "--max-epsilon-lower-bound", limit, *more]
        ended = atdp("audit-canary", model, *options, "--json")
        return ended.code, ended.json["models"][0]

    code, entry = judged(tossed.model, 0.1)
    assert code == 1
    assert any("the limit is 0.1" in reason for reason in entry["reasons"])
    code, entry = judged(checkpoint_folder, 50)
    assert code == 4
    assert any("cannot be tested" in reason for reason in entry["reasons"])
    # Each bound is at its share of alpha; all of them are 0 for a model that saw nothing, but once in 1,000 sessions.
    code, entry = judged(checkpoint_folder, 1, "--alpha", "0.001")
    assert all(bound["epsilon"] <= 1 for bound in entry["epsilon"])
    assert code in {0, 4}
    assert not any("limit" in reason for reason in entry["reasons"])


@pytest.mark.ci
def test_the_ledger_makes_the_claim_that_is_tested(
    atdp: Atdp, tossed: Leaky, checkpoint_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "private"
    options = [*line("--recipe dp-sgd --checkpoint-history public --epochs 1 --noise-multiplier 4 -o"), out, "-q"]
    assert (
        atdp("harden", checkpoint_folder, "--data", tossed.corpus, *options, "--set", "run.insecure-seed=1").code == 0
    )
    entry = atdp("audit-canary", out, "--manifest", tossed.manifest, "--json").json["models"][0]
    repeats = canaries_of(tossed.manifest)[0]["repeats"]
    ledger = read_ledger(out / "privacy_ledger.json")
    together = group_epsilon(ledger, "end_to_end", repeats)
    assert together is not None
    in_out, rank = entry["epsilon"]
    assert in_out["claim"] == rank["claim"]
    assert rank["claim"] > together, "to replace records moves a model further than to empty them"
    assert {bound["finding"] for bound in entry["epsilon"]} <= {"inconclusive", "not-refuted"}
    assert all(bound["delta"] == ledger.delta for bound in entry["epsilon"])
    [group] = entry["group_epsilon"]
    assert (group["records"], group["delta"], group["missing"]) == (repeats, ledger.delta, None)
    assert group["epsilon"] == pytest.approx(together)
    said = " ".join(atdp("audit-canary", out, "--manifest", tossed.manifest).out.split())
    assert f"For the {repeats} records of a canary together the ledger claims ε = " in said
    # A ledger that seals other weights claims nothing about these.
    weights = out / "model.safetensors"
    changed = bytearray(weights.read_bytes())
    changed[-1] ^= 1
    weights.write_bytes(changed)
    entry = atdp("audit-canary", out, "--manifest", tossed.manifest, "--json").json["models"][0]
    assert {bound["finding"] for bound in entry["epsilon"]} == {"no-claim"}
    assert [(claim["records"], claim["epsilon"]) for claim in entry["group_epsilon"]] == [(repeats, None)]


@pytest.mark.parametrize("drawn", [(2, 5), (3, 6), (4, 6), (4, 20), (6, 5), (6, 10)])
def test_planting_says_whether_an_audit_can_decide_and_by_which_rank_one_canary_fails(
    atdp: Atdp, corpus: Path, checkpoint_folder: Path, tmp_path: Path, drawn: tuple[int, int]
) -> None:
    (digits, count), planted, manifest = drawn, tmp_path / "p.txt", tmp_path / "m.json"
    plant = ["plant-canary", corpus, "-o", planted, "--manifest", manifest, "--tokenizer", checkpoint_folder, "--json"]
    ended = atdp(*plant, "--template", f"My PIN is {{digits:{digits}}}", "--count", count, "--repeats", 2)
    decides, rank, pool = (ended.json[name] for name in ("decides", "rank", "pool"))
    assert pool == 10**digits
    assert decides is ("Every audit of them will be INCONCLUSIVE" not in " ".join(ended.err.split()))
    entry = atdp("audit-canary", checkpoint_folder, "--manifest", manifest, "--json").json["models"][0]
    assert decides or entry["verdict"] != "PASS"
    level = entry["combined"]["level"]
    others = [1.0] * (count - 1)
    assert rank == 0 or holm([2 * rank / pool, *others])[0] <= level
    assert holm([min(1.0, 2 * (rank + 1) / pool), *others])[0] > level


@pytest.mark.ci
def test_canaries_of_one_shape_test_the_selective_claim(
    atdp: Atdp, corpus: Path, checkpoint_folder: Path, tmp_path: Path
) -> None:
    """Fitted decoys from a public start, the recipe that we advise: no ε end to end, and 0 for digits without votes."""
    codes = tmp_path / "codes.txt"
    codes.write_text("".join(f"{code:05d}\n" for code in range(317, 90_000, 463)))
    planted, manifest, out = tmp_path / "p.txt", tmp_path / "m.json", tmp_path / "out"
    plant = ["plant-canary", corpus, "-o", planted, "--manifest", manifest, "--tokenizer", checkpoint_folder]
    template = f"Your order number is {{choice:{codes}}}"
    ended = atdp(*plant, "--template", template, "--count", "30", "--repeats", "3", "--json")
    assert ended.json["provable_epsilon"]["pair"] > 1
    assert "prove ε ≥" in ended.err
    recipe = [*line("--recipe fitted-decoys --tier low-entity --checkpoint-history public --epochs 1 -q")]
    assert (
        atdp("harden", checkpoint_folder, "--data", planted, *recipe, "-o", out, "--set", "run.insecure-seed=1").code
        == 0
    )
    audit = ["audit-canary", "--manifest", manifest, "--json"]
    entry = atdp(*audit, out).json["models"][0]
    assert {bound["method"] for bound in entry["epsilon"]} == {"rank", "pair"}
    for bound in entry["epsilon"]:
        assert (bound["scope"], bound["claim"], bound["delta"], bound["missing"]) == ("selective", 0, 0, None)
        assert bound["finding"] == ("refuted" if bound["epsilon"] > 0 else "not-refuted")
        assert bound["attainable"] == pytest.approx(ended.json["provable_epsilon"][bound["method"]])
    [group] = entry["group_epsilon"]
    assert (group["records"], group["epsilon"]) == (3, None)
    assert "without protection" in group["missing"]
    (out / "privacy_ledger.json").unlink()
    [bound] = atdp(*audit, out).json["models"][0]["epsilon"]
    assert (bound["method"], bound["finding"], bound["claim"]) == ("rank", "no-claim", None)
    assert "no ledger" in bound["missing"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--attacks", "membership"], "--in-out"),
        (["--set", "run.coin-guesses=4"], "coins"),
        (["--set", "run.coin-guesses=3"], "even"),
        (["--set", "run.rank-guesses=10000"], "run.rank-guesses"),
    ],
)
def test_what_the_canaries_cannot_answer_is_refused(atdp: Atdp, leaky: Leaky, options: list[str], said: str) -> None:
    ended = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, *options)
    assert ended.code == 2
    *first_word, last = ended.err.strip().splitlines()
    assert said in last
    assert len(first_word) <= 1
    assert ended.out == ""


def test_several_slots_and_lines_of_a_file(atdp: Atdp, corpus: Path, checkpoint_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("Ann\n\nBob\nAnn-Lee\n")
    planted, manifest = tmp_path / "p.txt", tmp_path / "m.json"
    template = f"{{choice:{tmp_path / 'names.txt'}}} has {{digits:2}}-{{hex:1}}"
    plant = ["plant-canary", corpus, "-o", planted, "--manifest", manifest, "--tokenizer", checkpoint_folder]
    assert atdp(*plant, "--template", template, "--count", "3", "--repeats", "2").code == 0
    (tmp_path / "names.txt").unlink()
    lines = planted.read_text().split("\n")
    for canary in canaries_of(manifest):
        name, digits, letter = canary["secret"]
        assert lines.count(f"{name} has {digits}-{letter}") >= 2
        assert name in {"Ann", "Bob", "Ann-Lee"}
    entry = atdp("audit-canary", checkpoint_folder, "--manifest", manifest, "--json").json["models"][0]
    assert {audited["pool"] for audited in entry["canaries"]} == {3 * 100 * 16}


@pytest.mark.ci
def test_a_pool_too_large_to_list_is_sampled_and_says_so(
    atdp: Atdp, corpus: Path, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atdp_cli.audit.pool.SAMPLE", 3000)
    planted, manifest = tmp_path / "p.txt", tmp_path / "m.json"
    plant = ["plant-canary", corpus, "-o", planted, "--manifest", manifest, "--tokenizer", checkpoint_folder]
    assert atdp(*plant, "--template", "The key is {hex:16}", "--count", "10", "--in-out").code == 0
    command = ["audit-canary", checkpoint_folder, "--manifest", manifest]
    entry = atdp(*command, "--json").json["models"][0]
    assert list(Draft202012Validator(SCHEMA).iter_errors({"schema_version": 1, "models": [entry]})) == []
    for canary in entry["canaries"]:
        assert (canary["pool"], canary["compared"]) == (16**16, 3001)
        assert canary["exposure_plain"] <= math.log2(3001)
        assert canary["p_value"] >= 2 / 3001
    assert [bound["method"] for bound in entry["epsilon"]] == ["in-out"], "a rank within a sample bounds nothing"
    assert "among 3,000 of them" in " ".join(atdp(*command).out.split())
    assert atdp(*command, "--set", "run.describe-candidates=true").code == 2
