"""With what an interrupted run is not resumed, and with what it is."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from atdp_cli.errors import AtdpError, InputError, UsageError
from atdp_cli.hardening.resume import steps_of
from atdp_cli.training.recipe import DPSGD, Train
from tests.hardening.resumption import Place, finished, ledger_of, report, run, weights
from tests.small import write_checkpoint


@pytest.mark.ci
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"checkpoint_history": "public"}, "--checkpoint-history was unknown, now it is public"),
        ({"delta": 1e-7}, "`delta = 1e-06`, this one `delta = 1e-07`"),
        ({"max_records": 50}, "records are not the same"),
        ({"insecure_seed": 2}, "run.insecure-seed was 1, now it is 2"),
        ({"target_epsilon": 3.0}, "recipe"),
        ({"spans": None}, "--spans"),
    ],
)
def test_another_run_is_refused_and_says_what_differs(place: Place, change: dict[str, Any], said: str) -> None:
    request = place.request()
    assert run(request, stop=2) is None
    with pytest.raises(UsageError) as refused:
        run(request.replace(resume=True, **change))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert finished(request.replace(resume=True)).steps == 6


@pytest.mark.ci
def test_other_steps_are_another_run(place: Place) -> None:
    request = place.request()
    assert run(request, stop=2) is None
    [stage] = request.recipe
    assert isinstance(stage, Train)
    assert isinstance(stage.mechanism, DPSGD)
    with pytest.raises(UsageError, match="`epochs = 2`, this one `epochs = 3`"):
        run(request.replace(resume=True, recipe=(replace(stage, epochs=3),)))


@pytest.mark.ci
def test_what_only_changes_how_a_run_goes_may_change(place: Place) -> None:
    request = place.request()
    assert run(request, stop=2) is None
    done = finished(request.replace(resume=True, max_batch_tokens=64, save_dtype="bfloat16", checkpoint_every=5.0))
    assert {tensor.dtype for tensor in weights(done).values()} == {torch.bfloat16}


@pytest.mark.ci
def test_a_corpus_that_has_changed_is_refused_and_not_quoted(place: Place, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(place.corpus.read_bytes())
    request = place.request().replace(data=(corpus,))
    assert run(request, stop=2) is None
    content = corpus.read_bytes()
    corpus.write_bytes(content.replace(b"Emma", b"Anna", 1))
    with pytest.raises(AtdpError) as refused:
        run(request.replace(resume=True))
    assert "Anna" not in str(refused.value)
    assert "Emma" not in str(refused.value)
    corpus.write_bytes(content)
    assert finished(request.replace(resume=True)).steps == 6


@pytest.mark.ci
def test_another_checkpoint_is_refused(place: Place, tmp_path: Path, lines: Sequence[str]) -> None:
    request = place.request()
    assert run(request, stop=2) is None
    other = write_checkpoint(tmp_path / "other", list(lines), seed=8)
    with pytest.raises(UsageError, match="starting checkpoint's files are not the same"):
        run(request.replace(resume=True, model=other))


@pytest.mark.ci
@pytest.mark.parametrize("changed", ["start", pytest.param("reference", marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    ("file", "more"),
    [
        ("config.json", {"layer_norm_epsilon": 1e-3}),
        ("tokenizer_config.json", {"clean_up_tokenization_spaces": True}),
        ("generation_config.json", {"max_length": 9}),
        ("special_tokens_map.json", {"unk_token": "<|endoftext|>"}),
    ],
)
def test_other_settings_of_a_model_are_another_run(
    place: Place, tmp_path: Path, changed: str, file: str, more: dict[str, Any]
) -> None:
    folders = {name: tmp_path / name for name in ("start", "reference")}
    for folder in folders.values():
        shutil.copytree(place.model, folder)
    request = place.request("anchored", model=folders["start"], reference=folders["reference"])
    assert run(request, stop=2) is None
    path = folders[changed] / file
    before = path.read_text() if path.exists() else None
    path.write_text(json.dumps((json.loads(before) if before else {}) | more))
    with pytest.raises(UsageError, match="a configuration, a tokenizer or the settings of an adapter are not the same"):
        run(request.replace(resume=True))
    path.unlink() if before is None else path.write_text(before)
    assert finished(request.replace(resume=True)).steps == 6


@pytest.mark.ci
def test_other_settings_of_an_adapter_or_its_base_are_another_run(place: Place, tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(place.model, base)
    adapter = Path(finished(place.request(out="adapter", model=base, lora_rank=2)).output)
    request = place.request(model=adapter)
    assert run(request, stop=2) is None
    for path, more in ((adapter / "adapter_config.json", {"lora_alpha": 9}), (base / "config.json", {"n_head": 1})):
        before = path.read_text()
        path.write_text(json.dumps(json.loads(before) | more))
        with pytest.raises(AtdpError):
            run(request.replace(resume=True))
        path.write_text(before)
    assert finished(request.replace(resume=True)).steps == 6


@pytest.mark.ci
def test_a_journal_that_lost_lines_is_refused(place: Place) -> None:
    request = place.request()
    assert run(request, stop=3) is None
    journal = place.folder / "out.partial" / "journal.jsonl"
    journal.write_bytes(b"\n".join(journal.read_bytes().splitlines()[:1]) + b"\n")
    with pytest.raises(InputError, match="not known what was spent"):
        run(request.replace(resume=True))
    journal.unlink()
    with pytest.raises(InputError, match="not known what was spent"):
        run(request.replace(resume=True))


@pytest.mark.ci
def test_without_resume_or_force_nothing_is_touched(place: Place) -> None:
    request = place.request()
    assert run(request, stop=2) is None
    before = {path: path.read_bytes() for path in (place.folder / "out.partial").rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="--resume"):
        run(request)
    after = {path: path.read_bytes() for path in (place.folder / "out.partial").rglob("*") if path.is_file()}
    assert after == before
    done = finished(request.replace(force=True))
    assert steps_of(ledger_of(done).events) == 6
    assert report(done)["interruptions"] == 0


@pytest.mark.ci
def test_resume_without_a_run_begins_one_and_after_one_says_that_it_is_over(place: Place) -> None:
    request = place.request().replace(resume=True)
    done = finished(request)
    before = {path: path.read_bytes() for path in place.folder.rglob("*") if path.is_file()}
    again = finished(request)
    assert again == done
    assert {path: path.read_bytes() for path in place.folder.rglob("*") if path.is_file()} == before
    with pytest.raises(UsageError, match="exists"):
        run(request.replace(checkpoint_history="public"))
