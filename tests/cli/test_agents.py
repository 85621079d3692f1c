"""Agents' conversations through the commands: no true value is left, JSON stays JSON, and a refusal comes at once."""

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.agents import AGENT, ALTERNATING, agent_conversations, write_rows
from tests.chats import small_conversations, write_chat_checkpoint, write_conversations
from tests.cli.conftest import Atdp
from tests.corpus.test_agents import types
from tests.small import small_lines

FIELD = ("--text-field", "messages")
RUN = ("--epochs", 1, "--set", "run.insecure-seed=1", "--set", "run.threads=1", "-q", "--json")


def normalised(text: str) -> str:
    """A text without case, accents, white space and punctuation."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    return re.sub(r"[\W_]", "", "".join(each for each in folded if not unicodedata.combining(each)))


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[str]]]:
    rows, values = zip(*agent_conversations(200), strict=True)
    return write_rows(tmp_path_factory.mktemp("agents") / "agents.jsonl", iter(rows)), list(values)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chat_checkpoint(tmp_path_factory.mktemp("model") / "model", small_lines(), AGENT)


def rows_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def left(row: Any, values: list[str]) -> list[str]:
    """The true values that a row still holds, exactly or normalised."""
    text = json.dumps(row, ensure_ascii=False)
    return [value for value in values if value in text or normalised(value) in normalised(text)]


@pytest.mark.ci
def test_no_true_value_is_left_in_decoys(atdp: Atdp, agents: tuple[Path, list[list[str]]], tmp_path: Path) -> None:
    source, values = agents
    copies = tmp_path / "copies"
    ended = atdp("decoy", source, *FIELD, "-o", copies, "--recipe", "decoys", "--epochs", 2, "-q")
    assert ended.code == 0, ended.err
    before = rows_of(source)
    for path in sorted(copies.glob("epoch-*")):
        after = rows_of(path)
        assert list(map(types, after)) == list(map(types, before))
        assert [left(row, of_row) for row, of_row in zip(after, values, strict=True)] == [[] for _ in before]
        for row in after:
            user, call, answer, last = row["messages"]
            given = call["tool_calls"][0]["function"]["arguments"]
            arguments = json.loads(given) if isinstance(given, str) else given
            answered = json.loads(answer["content"])
            assert (arguments["order"], arguments["customer"]) == (answered["order_number"], answered["name"])
            assert all(arguments[name] in user["content"] for name in ("order", "customer"))
            assert all(answered[name] in last["content"] for name in ("order_number", "name", "address"))


def test_redacted_answers_are_still_json(atdp: Atdp, agents: tuple[Path, list[list[str]]], tmp_path: Path) -> None:
    source, values = agents
    redacted = tmp_path / "redacted.jsonl"
    assert atdp("redact", source, *FIELD, "-o", redacted, "-q").code == 0
    after = rows_of(redacted)
    assert list(map(types, after)) == list(map(types, rows_of(source)))
    assert [left(row, of_row) for row, of_row in zip(after, values, strict=True)] == [[] for _ in after]
    assert all(json.loads(row["messages"][2]["content"])["phone"] == 0 for row in after)


@pytest.mark.ci
@pytest.mark.parametrize("recipe", ["decoys", "redacted"])
def test_agents_are_hardened_on(
    atdp: Atdp, agents: tuple[Path, list[list[str]]], model: Path, tmp_path: Path, recipe: str
) -> None:
    ended = atdp("harden", model, "--data", agents[0], *FIELD, "-o", tmp_path / "out", "--recipe", recipe, *RUN)
    assert ended.code == 0, ended.err
    assert ended.json["perplexity"]["before"]["all"] > 1


def test_a_template_that_refuses_says_so_before_anything_is_read(
    atdp: Atdp, chats: Path, alternating: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("atdp_cli.hardening.preflight.load_model", lambda *_: opened.append("model"))
    for more in ((), ("--dry-run",)):
        ended = atdp("harden", alternating, "--data", chats, *FIELD, "-o", tmp_path / "out", "-q", *more)
        assert ended.code == 2
        said = " ".join(ended.err.split())
        assert "Record 1: the chat template refuses the conversation at message 1:" in said
    assert not opened


@pytest.fixture(scope="module")
def alternating(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chat_checkpoint(tmp_path_factory.mktemp("alternating") / "model", small_lines(), ALTERNATING)


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """Conversations that the assistant begins."""
    return write_conversations(tmp_path / "chats.jsonl", [chat[1:] + chat[:1] for chat in small_conversations(40)])


def test_canaries_are_planted_where_the_user_begins(atdp: Atdp, alternating: Path, tmp_path: Path) -> None:
    chats = write_conversations(tmp_path / "chats.jsonl", small_conversations(40))
    planted, manifest = tmp_path / "planted.jsonl", tmp_path / "canaries.json"
    files = ("-o", planted, "--manifest", manifest, "--tokenizer", alternating, "--role", "assistant")
    counts = ("--template", "My ID is {digits:4}", "--count", 2, "--repeats", 10)
    ended = atdp("plant-canary", chats, *FIELD, *files, *counts, "-q")
    assert ended.code == 0, ended.err
    written = json.loads(manifest.read_text())
    rows = rows_of(planted)
    for canary in written["canaries"]:
        turns = [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": f"My ID is {canary['secret'][0]}"},
        ]
        assert all(rows[place - 1] == {"messages": turns} for place in canary["positions"])
    data = ("--data", planted, *FIELD, "--manifest", manifest, "--recipe", "base", "-o", tmp_path / "out")
    ended = atdp("harden", alternating, *data, "-q")
    assert ended.code == 0, ended.err
    audited = atdp("audit-canary", alternating, "--manifest", manifest, "--json", "-q").json["models"][0]
    assert not any("planted" in reason for reason in audited["reasons"])
    system = atdp("plant-canary", chats, *FIELD, *files[:-1], "system", *counts, "--force", "-q")
    assert system.code == 2
    assert "at message 1:" in " ".join(system.err.split())


def test_bad_lines_are_skipped_by_harden(atdp: Atdp, model: Path, tmp_path: Path) -> None:
    chats = write_conversations(tmp_path / "chats.jsonl", small_conversations(40))
    lines = chats.read_text().splitlines()
    lines[3:3] = ['{"messages": [{"role": "user", "content": 5}]}', "{"]
    chats.write_text("\n".join(lines) + "\n")
    run = ("harden", model, "--data", chats, *FIELD, "--recipe", "base", "-o", tmp_path / "out", "--dry-run")
    assert atdp(*run, "-q").code == 2
    ended = atdp(*run, "--skip-bad", "--json", "-q")
    assert ended.code == 0, ended.err
    assert (ended.json["records"], ended.json["held_out"]) == (38, 2)
    assert "Lines or rows skipped as unreadable: 2." in ended.json["advice"]
    refused = atdp(*run, "--skip-bad", "--set", "run.holdout-by=user", "-q")
    assert refused.code == 2
    assert "--skip-bad does not go with run.holdout-by" in " ".join(refused.err.split())


def test_a_corpus_without_assistants_says_who_speaks(atdp: Atdp, model: Path, tmp_path: Path) -> None:
    roles = {"user": "customer", "assistant": "agent"}
    chats = [[each | {"role": roles[each["role"]]} for each in chat] for chat in small_conversations(40)]
    data = ("--data", write_conversations(tmp_path / "chats.jsonl", chats), *FIELD, "--recipe", "base")
    ended = atdp("harden", model, *data, "-o", tmp_path / "out", "-q")
    assert ended.code == 2
    said = " ".join(ended.err.split())
    assert "Found are the roles agent, customer." in said
    assert "run.loss-on=all" in said
