"""`atdp plant-canary` and `atdp audit-canary`: what they write, what they say, and how they end."""

import json
import shutil
from pathlib import Path

from tests.cli.conftest import Atdp, Leaky

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
CANARY_KEYS = {"rank_min", "rank_max", "pool", "stratum_size", "exposure", "exposure_ratio", "p_value"}


def test_planting(atdp: Atdp, corpus: Path, checkpoint_folder: Path, tmp_path: Path) -> None:
    planted, manifest = tmp_path / "planted.txt", tmp_path / "canaries.json"
    options = [
        "-o",
        planted,
        "--manifest",
        manifest,
        "--tokenizer",
        checkpoint_folder,
        "--count",
        "3",
        "--repeats",
        "4",
    ]
    ended = atdp("plant-canary", corpus, *options, "--json")
    assert ended.code == 0
    assert ended.json["planted"] == 12
    assert manifest.stat().st_mode & 0o777 == 0o600
    known = json.loads(manifest.read_text())
    lines = planted.read_text().split("\n")
    for canary in known["canaries"]:
        assert {lines[position - 1] for position in canary["positions"]} == {f"My ID is {canary['secret'][0]}"}
        assert canary["secret"][0] not in ended.out + ended.err
    assert [line for line in lines if not line.startswith("My ID is ")] == corpus.read_text().split("\n")


def test_planting_again_gives_the_same_bytes(
    atdp: Atdp, leaky: Leaky, corpus: Path, checkpoint_folder: Path, tmp_path: Path
) -> None:
    again, manifest = tmp_path / "again.txt", tmp_path / "again.json"
    options = ["-o", again, "--manifest", manifest, "--tokenizer", checkpoint_folder, "--from", leaky.manifest]
    assert atdp("plant-canary", corpus, *options).code == 0
    assert again.read_bytes() == leaky.corpus.read_bytes()
    assert manifest.read_bytes() == leaky.manifest.read_bytes()


def test_secrets_that_nobody_drew_stay_uncalibrated(
    atdp: Atdp, corpus: Path, checkpoint_folder: Path, fixed_manifest: Path, tmp_path: Path
) -> None:
    typed = json.loads(fixed_manifest.read_text()) | {"drawn": "by-hand"}
    (tmp_path / "typed.json").write_text(json.dumps(typed))
    options = ["-o", tmp_path / "p.txt", "--manifest", tmp_path / "m.json", "--from", tmp_path / "typed.json"]
    assert atdp("plant-canary", corpus, *options, "--tokenizer", checkpoint_folder).code == 0
    assert json.loads((tmp_path / "m.json").read_text())["drawn"] == "by-hand"


def test_a_leaky_model_fails_and_an_innocent_one_passes(atdp: Atdp, leaky: Leaky, checkpoint_folder: Path) -> None:
    options = ["--manifest", leaky.manifest, "--json"]
    failed = atdp("audit-canary", leaky.model, *options, "--reference", checkpoint_folder)
    assert failed.code == 1, failed.err
    (entry,) = failed.json["models"]
    assert entry["verdict"] == "FAIL"
    assert entry["alpha"] == 0.01
    assert len(entry["canaries"]) == 10
    for canary in entry["canaries"]:
        assert canary.keys() >= CANARY_KEYS
        assert canary["pool"] == 10_000
    assert entry["combined"]["mean_exposure"] > 5
    known = json.loads(leaky.manifest.read_text())
    assert not any(f"My ID is {canary['secret'][0]}" in failed.out + failed.err for canary in known["canaries"])

    innocent = atdp("audit-canary", checkpoint_folder, *options, "--alpha", "0.05")
    assert innocent.json["models"][0]["verdict"] == "PASS", innocent.out
    assert innocent.code == 0


def test_over_several_models_the_gravest_exit_code_wins(
    atdp: Atdp, leaky: Leaky, checkpoint_folder: Path, tmp_path: Path
) -> None:
    broken = Path(shutil.copytree(checkpoint_folder, tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes(b"no")
    options = ["--manifest", leaky.manifest, "--alpha", "0.05", "--json"]
    ended = atdp("audit-canary", checkpoint_folder, leaky.model, *options)
    assert ended.code == 1
    assert [entry["verdict"] for entry in ended.json["models"]] == ["PASS", "FAIL"]
    ended = atdp("audit-canary", leaky.model, broken, checkpoint_folder, *options)
    assert ended.code == 3
    assert [entry["verdict"] for entry in ended.json["models"]] == ["FAIL", "ERROR", "PASS"]
    assert atdp("audit-canary", broken, *options).code == 2


def test_folders_that_the_tool_keeps_beside_models_are_skipped(atdp: Atdp, leaky: Leaky) -> None:
    private = leaky.model.with_name("model.private")
    assert private.is_dir()
    ended = atdp("audit-canary", leaky.model, private, "--manifest", leaky.manifest, "--json")
    assert len(ended.json["models"]) == 1
    assert "were skipped: 1." in ended.err


def test_a_typed_canary_has_a_rank_and_no_p_value(atdp: Atdp, leaky: Leaky) -> None:
    secret = json.loads(leaky.manifest.read_text())["canaries"][0]["secret"][0]
    ended = atdp("audit-canary", leaky.model, "--canary", f"My ID is {secret}", "--json")
    (entry,) = ended.json["models"]
    assert entry["canaries"][0]["p_value"] is None
    assert (entry["verdict"], ended.code) == ("INCONCLUSIVE", 4)
    limited = atdp("audit-canary", leaky.model, "--canary", f"My ID is {secret}", "--max-exposure", "1")
    assert limited.code == 1


def test_a_manifest_for_another_tokenizer_is_never_a_pass_or_a_fail(atdp: Atdp, leaky: Leaky, tmp_path: Path) -> None:
    ended = atdp("audit-canary", QUICKSTART / "checkpoint", "--manifest", leaky.manifest, "--json")
    assert ended.code == 4
    other = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, "--reference", QUICKSTART / "checkpoint")
    assert other.code == 2
    assert "different tokenizers" in other.err
