"""Audits on a GPU find what they find on the processor."""

from pathlib import Path

import pytest
import torch

from tests.cli.conftest import Atdp, Leaky
from tests.cli.test_audit_corpus import arguments, trained  # noqa: F401 - fixtures

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="torch sees a GPU here")


@gpu
def test_an_audit_ranks_alike(atdp: Atdp, leaky: Leaky) -> None:
    given = ("--manifest", leaky.manifest, "--attacks", "extraction", "--json")
    here, there = (atdp("audit-canary", leaky.model, *given, "--device", name) for name in ("cpu", "cuda"))
    assert here.code == there.code == 1
    [entry], [other] = here.json["models"], there.json["models"]
    for canary, same in zip(entry["canaries"], other["canaries"], strict=True):
        assert canary["exposure"] == pytest.approx(same["exposure"], abs=0.05)


@gpu
def test_a_map_has_the_same_places(atdp: Atdp, arguments: tuple[object, ...]) -> None:  # noqa: F811
    here, there = (atdp(*arguments, "--device", name, "--json") for name in ("cpu", "cuda"))
    [entry], [other] = here.json["models"], there.json["models"]
    assert [place["record"] for place in entry["places"]] == [place["record"] for place in other["places"]]


@without_gpu
def test_nothing_is_hardened_on_a_gpu_that_is_not_there(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    ended = atdp("harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "out", "--device", "cuda", "-q")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "atdp: torch sees no GPU here. Leave --device out.\n"
    assert list(tmp_path.iterdir()) == []


@without_gpu
def test_a_gpu_that_is_not_there_is_refused_before_anything_is_read(
    atdp: Atdp,
    leaky: Leaky,
    arguments: tuple[object, ...],  # noqa: F811
) -> None:
    for command in (("audit-canary", leaky.model, "--manifest", leaky.manifest), arguments):
        ended = atdp(*command, "--device", "cuda")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.splitlines()[1:] == ["atdp: torch sees no GPU here. Leave --device out."]
