"""The cross-check through the commands, against a server on loopback."""

import json
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

from atdp_cli.detection.crosscheck import client as llm
from tests.cli.conftest import Atdp, detector
from tests.llmserver import NO, YES, Reply, chat_server

TEXT = """Mail emma.clarke@example.org today.
The weather is nice. My cat answers to fluffy.
Nothing here.
"""
LOW = ("--tier", "low-entity")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses, and no key or server of whoever runs the tests."""
    monkeypatch.setattr(llm, "RETRIES", 1)
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    path = tmp_path / "mail.txt"
    path.write_text(TEXT)
    return path


def finds(word: str) -> Any:
    """A model that finds sentences with this word sensitive."""
    return lambda number, request: YES if word in request.text else NO


def test_a_disagreement_hides_the_whole_sentence(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with chat_server(finds("fluffy")) as server:
        ended = atdp(
            "redact",
            mail,
            "-o",
            out,
            *LOW,
            *detector(mail.parent, crosscheck={"model": "m", "url": server.url}),
            "--json",
        )
    assert ended.code == 0, ended.err
    assert out.read_text().splitlines()[1:] == ["The weather is nice. [CROSSCHECK]", "Nothing here."]
    assert ended.json["crosscheck"] == {"asked": 4, "known": 0, "disagreements": 1, "unusable": 0}
    assert "4 sentences asked about" in ended.err
    assert {request.json["model"] for request in server.requests} == {"m"}


def test_a_flagged_span_is_in_no_request(atdp: Atdp, mail: Path) -> None:
    with chat_server(finds("nobody")) as server:
        ended = atdp("detect", mail, *LOW, *detector(mail.parent, crosscheck={"model": "m", "url": server.url}))
    assert ended.code == 0
    assert len(server.requests) == 4
    sent = b"".join(request.body for request in server.requests)
    assert b"emma" not in sent
    assert b"example.org" not in sent
    assert "Mail [EMAIL] today." in server.texts


def test_the_key_comes_from_a_file_or_the_environment(
    atdp: Atdp, mail: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key.txt"
    key.write_text("sk-from-file\nnot this\n")
    with chat_server(lambda number, request: Reply(status=401)) as server:
        command = ["detect", mail, *detector(mail.parent, crosscheck={"model": "m", "url": server.url})]
        ended = atdp(*command)
        assert ended.code == 3
        assert "refuses the key" in ended.err
        assert server.requests[-1].headers["authorization"] == "Bearer none"
        monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
        assert "sk-from-environment" not in atdp(*command).err
        assert server.requests[-1].headers["authorization"] == "Bearer sk-from-environment"
        check = {"model": "m", "url": server.url, "key_file": str(key)}
        assert "sk-from-file" not in atdp("detect", mail, *detector(tmp_path, crosscheck=check)).err
        assert server.requests[-1].headers["authorization"] == "Bearer sk-from-file"
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        before = len(server.requests)
        assert atdp("detect", mail, *detector(tmp_path, crosscheck={"model": "m"})).code == 3
        assert len(server.requests) > before
    assert not any(b"sk-from" in request.body for request in server.requests)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({}, "neither a server nor a key"),
        ({"url": "http://sk-user:sk-key@127.0.0.1/v1"}, "has credentials"),
        ({"url": "http://127.0.0.1:1/v1", "on_disagreement": "review"}, "atdp detect --review"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    atdp: Atdp, mail: Path, monkeypatch: pytest.MonkeyPatch, check: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(mail.parent)
    ended = atdp("redact", mail, "-o", "out.txt", *detector(mail.parent, crosscheck={"model": "m"} | check))
    assert ended.code == 2
    assert said in ended.err
    assert "sk-key" not in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not Path("out.txt").exists()


def test_the_client_is_an_extra(atdp: Atdp, mail: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    ended = atdp("detect", mail, *detector(mail.parent, crosscheck={"model": "m", "url": "http://127.0.0.1:1/v1"}))
    assert ended.code == 2
    assert "pip install 'atdp[crosscheck]'" in ended.err


@pytest.mark.ci
def test_harden_asks_and_says_that_epsilon_does_not_cover_it(
    atdp: Atdp, checkpoint_folder: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"my cat number {word} sleeps.\n" for word in ("one", "two", "three", "four") * 6))
    out = tmp_path / "out"
    options = [
        "--recipe",
        "redacted+atdp",
        "--epochs",
        "1",
        "--checkpoint-history",
        "public",
        "--set",
        "run.insecure-seed=1",
        *LOW,
    ]
    with chat_server(finds("three")) as server:
        ended = atdp(
            *("harden", checkpoint_folder, "--data", corpus, "-o", out, *options, "-q"),
            *detector(tmp_path, crosscheck={"model": "/models/tiny", "url": server.url}),
        )
    assert ended.code == 0, ended.err
    assert 1 <= len(server.requests) <= 4
    report = json.loads((out / "privacy_report.json").read_text())
    assert report["detector"]["crosscheck"] == {"model": "tiny", "masked": True}
    assert any("cross-check" in line for line in report["not_covered"])
    assert "selective" not in [guarantee["scope"] for guarantee in report["guarantees"]]
    assert "cross-check" in (out / "README.md").read_text()
    spans = [json.loads(line)["spans"] for line in (tmp_path / "out.private" / "spans.jsonl").read_text().splitlines()]
    assert [any(span["label"] == "CROSSCHECK" for span in found) for found in spans] == [False, False, True, False] * 6
