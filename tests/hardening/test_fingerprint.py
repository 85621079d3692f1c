"""The fingerprint of a run: what has to be the same for it to be resumed."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.detector import Detector
from atdp_cli.detection.scan import installed_pipeline
from atdp_cli.detection.settings import CrosscheckSettings
from atdp_cli.files.documents import file_sha256
from atdp_cli.hardening.fingerprint import fingerprint
from atdp_cli.hardening.plan import plan_request
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.training.recipe import parse_recipe

RUN_TABLE = """
[run]
tier = "low-entity"
privacy_unit = "line"
max_windows = 8
delta = 1e-06
jitter_seed = 0
"""


def digest(parts: Iterable[str]) -> str:
    """SHA-256 of texts, each with its length before it."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part.encode()).to_bytes(8, "big") + part.encode())
    return whole.hexdigest()


def request(folder: Path, model: Path, detector: Detector, **settings: Any) -> SettledRequest:
    """A run on forty lines."""
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(f"Emma wrote line {number}.\n" for number in range(40)))
    known: dict[str, Any] = {"model": model, "data": (corpus,), "output": folder / "out", "recipe_name": "dp-sgd"}
    return SettledRequest(**known | {"recipe": parse_recipe("dp-sgd"), "detector": detector} | settings)


def test_a_run_with_no_option(tmp_path: Path, checkpoint_folder: Path) -> None:
    actual = fingerprint(plan_request(request(tmp_path, checkpoint_folder, Detector(tier=Tier.LOW_ENTITY))))
    hashes = {
        name: actual.pop(name) for name in ("records", "starting checkpoint", "settings of models", "recipe", "plan")
    }
    assert actual == {
        "--checkpoint-history": "unknown",
        "--target-epsilon": "not given",
        "--max-epsilon": "not given",
        "--reference": "not given",
        "--manifest": "not given",
        "--spans": "not given",
        "--extra-spans": "not given",
        "--allow": "not given",
        "--deny": "not given",
        "spacy_pipeline of --detector": "not given",
        "ner of --detector": "not given",
        "crosscheck of --detector": "not given",
        "--review-each-epoch": "not given",
        "run.insecure-seed": "not given",
    }
    assert hashes["recipe"].endswith(RUN_TABLE)
    files = (checkpoint_folder / "model.safetensors", checkpoint_folder / "tokenizer.json")
    assert hashes["starting checkpoint"] == digest(map(file_sha256, files))
    assert len(hashes["records"]) == len(hashes["plan"]) == 64


def test_a_run_with_options(tmp_path: Path, checkpoint_folder: Path) -> None:
    allow, deny = tmp_path / "allow.txt", tmp_path / "deny.txt"
    allow.write_text("Emma\n")
    deny.write_text("wrote\n")
    detector = Detector(
        tier=Tier.LOW_ENTITY,
        pipeline=installed_pipeline(),
        allow=(allow,),
        deny=(deny, allow),
        crosscheck=CrosscheckSettings(model="m", url="http://127.0.0.1:1/v1", send_unmasked=True),
    )
    asked = request(
        tmp_path,
        checkpoint_folder,
        detector,
        checkpoint_history="public",
        target_epsilon=3.0,
        max_epsilon=4.5,
        review_each_epoch=True,
        review_share=0.9,
        insecure_seed=1,
    )
    actual = fingerprint(plan_request(asked))
    expected = {
        "--checkpoint-history": "public",
        "--target-epsilon": "3.0",
        "--max-epsilon": "4.5",
        "--allow": digest([file_sha256(allow)]),
        "--deny": digest([file_sha256(deny), file_sha256(allow)]),
        "spacy_pipeline of --detector": installed_pipeline(),
        "crosscheck of --detector": "m, unmasked",
        "--review-each-epoch": "0.9",
        "run.insecure-seed": "1",
    }
    assert {name: actual[name] for name in expected} == expected


def test_what_may_change_between_two_attempts_is_not_in_it(tmp_path: Path, checkpoint_folder: Path) -> None:
    first = request(tmp_path, checkpoint_folder, Detector(tier=Tier.LOW_ENTITY))
    other = first.replace(
        max_batch_tokens=64, save_dtype="bfloat16", checkpoint_every=5, compute_dtype="bfloat16", output=tmp_path
    )
    assert fingerprint(plan_request(first)) == fingerprint(plan_request(other.replace(output=tmp_path / "other")))
