"""Conversations through the commands: planted, detected, redacted, hardened, audited and mapped."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from atdp_cli.audit.attacks.membership import canary_records
from atdp_cli.audit.request import AuditRequest, load_targets
from atdp_cli.model.checkpoint import load_checkpoint
from tests.chats import CHATML, OWN, small_conversations, write_chat_checkpoint, write_conversations
from tests.cli.conftest import Atdp
from tests.small import small_lines

FIELD = ("--text-field", "messages")


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chat_checkpoint(tmp_path_factory.mktemp("chat") / "model", small_lines())


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    return write_conversations(tmp_path / "chats.jsonl", small_conversations(40))


def plant(atdp: Atdp, chats: Path, model: Path, *options: object) -> tuple[Path, Path]:
    planted, manifest = chats.with_name("planted.jsonl"), chats.with_name("canaries.json")
    files = ("-o", planted, "--manifest", manifest, "--tokenizer", model)
    ended = atdp("plant-canary", chats, *files, *FIELD, "--template", "My ID is {digits:4}", "-q", *options)
    assert ended.code == 0, ended.err
    return planted, manifest


@pytest.mark.ci
def test_canaries_are_said_trained_on_and_found(atdp: Atdp, chats: Path, chat_model: Path, tmp_path: Path) -> None:
    planted, manifest = plant(atdp, chats, chat_model, "--role", "assistant", "--count", 4, "--repeats", 10)
    written = json.loads(manifest.read_text())
    assert (written["schema_version"], written["conversation"]["role"]) == (1, "assistant")
    assert written["conversation"]["before"] == "<|im_start|>assistant\n"
    lines = planted.read_text().splitlines()
    kept = [line for line in lines if "My ID is" not in line]
    assert "\n".join(kept) + "\n" == chats.read_text()
    for canary in written["canaries"]:
        said = [{"role": "assistant", "content": f"My ID is {canary['secret'][0]}"}]
        assert all(json.loads(lines[place - 1]) == {"messages": said} for place in canary["positions"])
    again, same = tmp_path / "again.jsonl", tmp_path / "same.json"
    files = ("-o", again, "--manifest", same, "--tokenizer", chat_model, "--from", manifest)
    assert atdp("plant-canary", chats, *files, *FIELD, "-q").code == 0
    assert (again.read_bytes(), same.read_bytes()) == (planted.read_bytes(), manifest.read_bytes())
    hard = (
        "--recipe",
        "no-dp",
        "--epochs",
        8,
        "--learning-rate",
        0.01,
        "--set",
        "run.insecure-seed=1",
        "-q",
        "--set",
        "run.threads=1",
    )
    data = ("--data", planted, *FIELD, "--manifest", manifest)
    ended = atdp("harden", chat_model, *data, "-o", tmp_path / "out", *hard)
    assert ended.code == 0, ended.err
    report = json.loads((tmp_path / "out.private" / "privacy_report.json").read_text())
    assert sum(report["planted_canaries"]) >= 36
    audited = atdp("audit-canary", tmp_path / "out", "--manifest", manifest, "--reference", chat_model, "--json", "-q")
    [of_model] = audited.json["models"]
    assert (audited.code, of_model["verdict"]) == (1, "FAIL")
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "out", other)
    (other / "chat_template.jinja").write_text(OWN)
    refused = atdp("audit-canary", other, "--manifest", manifest, "--json", "-q").json["models"][0]
    assert refused["verdict"] == "INCONCLUSIVE"
    assert any("renders the canaries otherwise" in reason for reason in refused["reasons"])


def test_packed_canaries_are_scored_behind_an_end_token(atdp: Atdp, chats: Path, chat_model: Path) -> None:
    _, manifest = plant(atdp, chats, chat_model, "--role", "system", "--count", 3, "--repeats", 1)
    checkpoint = load_checkpoint(chat_model)
    for packed in (False, True):
        canaries = load_targets(AuditRequest(manifest=manifest, packed=packed))
        assert canaries.mismatch(checkpoint.tokenizer) is None
        actual = canary_records(checkpoint, canaries, canaries.targets, name="it").log_p
        template = canaries.template
        for target, score in zip(canaries.targets, actual, strict=True):
            messages = [{"role": "system", "content": template.record(template.secret(target.index))}]
            text = checkpoint.tokenizer.apply_chat_template(messages, tokenize=False).removesuffix("<|im_end|>\n")
            text = ("<|endoftext|>" if packed else "") + text
            ids = torch.tensor([checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"]])
            with torch.inference_mode():
                log_p = checkpoint.model(ids).logits.double().log_softmax(-1)[0, :-1]
            assert score == pytest.approx(float(log_p.gather(1, ids[0, 1:, None]).sum()), abs=1e-3)
    audited = atdp("audit-canary", chat_model, "--manifest", manifest, "--packed", "--json", "-q")
    assert audited.json["models"][0]["verdict"] == "INCONCLUSIVE"  # three canaries show little
    assert not any("planted" in reason for reason in audited.json["models"][0]["reasons"])
    refused = atdp("audit-canary", chat_model, "--canary", "My ID is 1234", "--packed", "-q")
    assert refused.code == 2
    assert "--packed is about the conversations of a manifest" in " ".join(refused.err.split())


@pytest.mark.ci
@pytest.mark.parametrize("recipe", ["atdp", "decoys"])
def test_conversations_are_hardened_on(atdp: Atdp, chats: Path, chat_model: Path, tmp_path: Path, recipe: str) -> None:
    run = ("--recipe", recipe, "--epochs", 1, "--set", "run.insecure-seed=1", "-q", "--set", "run.threads=1", "--json")
    ended = atdp("harden", chat_model, "--data", chats, *FIELD, "-o", tmp_path / "out", *run)
    assert ended.code == 0, ended.err
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == CHATML
    everything = atdp(
        "harden", chat_model, "--data", chats, *FIELD, "-o", tmp_path / "all", "--set", "run.loss-on=all", *run
    )
    assert everything.code == 0, everything.err
    before = [each.json["perplexity"]["before"]["all"] for each in (ended, everything)]
    assert before[0] != before[1]


@pytest.mark.ci
def test_what_the_user_says_is_not_learnt_unless_asked(atdp: Atdp, chats: Path, chat_model: Path) -> None:
    planted, manifest = plant(atdp, chats, chat_model, "--role", "user", "--count", 2, "--repeats", 10)
    run = ("harden", chat_model, "--data", planted, *FIELD, "--manifest", manifest, "-q", "--recipe", "base")
    refused = atdp(*run, "-o", chats.with_name("no"))
    assert refused.code == 2
    assert "run.loss-on=assistant learns none of them" in " ".join(refused.err.split())
    assert atdp(*run, "-o", chats.with_name("yes"), "--set", "run.loss-on=all").code == 0


def test_only_contents_are_redacted(atdp: Atdp, chats: Path, tmp_path: Path) -> None:
    spans, redacted = tmp_path / "spans.jsonl", tmp_path / "redacted.jsonl"
    assert atdp("detect", chats, *FIELD, "-o", spans, "-q", "--set", "run.store=none").code == 0
    assert atdp("redact", chats, *FIELD, "-o", redacted, "-q", "--spans", spans).code == 0
    before, after = (
        [json.loads(line)["messages"] for line in file.read_text().splitlines()] for file in (chats, redacted)
    )
    assert [[each["role"] for each in chat] for chat in before] == [[each["role"] for each in chat] for chat in after]
    assert "Emma Clarke" not in redacted.read_text()
    assert "[PERSON]" in redacted.read_text()
    empty = "".join(json.dumps({"id": str(n), "spans": []}) + "\n" for n in range(1, len(before) + 1))
    spans.write_text(empty)
    assert atdp("redact", chats, *FIELD, "-o", tmp_path / "same.jsonl", "-q", "--spans", spans).code == 0
    assert (tmp_path / "same.jsonl").read_bytes() == chats.read_bytes()


def test_users_are_held_out_whole(atdp: Atdp, chat_model: Path, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    lines = [{"user": f"u{n // 4}", "messages": chat} for n, chat in enumerate(small_conversations(80))]
    chats.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = ("harden", chat_model, "--data", chats, *FIELD, "--recipe", "base", "-q", "--set", "run.holdout-by=user")
    assert atdp(*run, "-o", tmp_path / "out").code == 0
    report = json.loads((tmp_path / "out" / "privacy_report.json").read_text())
    assert (report["records"], report["held_out"]) == (76, 4)


@pytest.mark.ci
def test_a_user_is_one_record_with_a_finite_epsilon(atdp: Atdp, chat_model: Path, tmp_path: Path) -> None:
    """Each copy of a canary is a user of its own, also where ids are whole numbers, and is trained token for token."""
    chats, unit = tmp_path / "chats.jsonl", ("--privacy-unit", "user")
    rows = [{"user": 7 + n % 30, "n": 0.5, "messages": chat} for n, chat in enumerate(small_conversations(90))]
    chats.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dry = ("harden", chat_model, "--data", chats, *FIELD, "-o", tmp_path / "no", "--dry-run")
    for options, told in (((), True), (unit, False)):
        ended = atdp(*dry, *options)
        assert ended.code == 0
        assert ("--privacy-unit user makes them one" in " ".join(ended.err.split())) == told
    planted, manifest = plant(atdp, chats, chat_model, "--role", "assistant", "--count", 3, "--repeats", 6)
    users = [json.loads(line)["user"] for line in planted.read_text().splitlines()]
    assert len(set(users)) == 30 + 18
    again = ("-o", tmp_path / "again.jsonl", "--manifest", tmp_path / "same.json", "--from", manifest)
    assert atdp("plant-canary", chats, *again, "--tokenizer", chat_model, *FIELD, "-q").code == 0
    assert (tmp_path / "again.jsonl").read_bytes() == planted.read_bytes()
    run = ("--recipe", "dp-sgd", "--checkpoint-history", "public", "--noise-multiplier", 2, "--epochs", 2, "-q")
    data = ("--data", planted, *FIELD, *unit, "--manifest", manifest)
    ended = atdp("harden", chat_model, *data, "-o", tmp_path / "out", *run, "--json")
    assert ended.code == 0, ended.err
    ledger = json.loads((tmp_path / "out" / "privacy_ledger.json").read_text())
    report = json.loads((tmp_path / "out.private" / "privacy_report.json").read_text())
    training = 48 - 2
    assert (ledger["unit"], ledger["records"], report["public"]["held_out"]) == ("user", training, 2)
    assert sum(report["planted_canaries"]) in range(16, 19)
    events = [event for event in ledger["events"] if "sampling_rate" in event]
    assert {event["sampling_rate"] for event in events} == {-(-training // 4) / training}
    said = ("--sampling-probability", events[0]["sampling_rate"], "--noise-multiplier", 2, "--delta", ledger["delta"])
    account = atdp("account", *said, "--steps", sum(event["steps"] for event in events), "--json")
    assert ended.json["guarantees"][0]["epsilon"] == pytest.approx(account.json["guarantees"][0]["epsilon"])
    decoys = ("--recipe", "decoys", "--epochs", 1, "--set", "run.max-windows=2", "-q")
    ended = atdp("harden", chat_model, *data, "-o", tmp_path / "decoys", *decoys, "--json")
    assert ended.code == 0, ended.err
    # Of no canary, and one of a user.
    assert ended.json["value_ranks"]["before"]["training_values"] in range(28, 31)
    assert "have more than 2 conversations" in " ".join(atdp(*dry, *unit, *decoys[:-1]).err.split())
    two = atdp("plant-canary", chats, *again, "--tokenizer", chat_model, "--text-field", "a+b", "--role", "user")
    assert two.code == 2


@pytest.mark.ci
def test_a_users_memorised_places_are_in_the_users_text(atdp: Atdp, chat_model: Path, tmp_path: Path) -> None:
    """Of several conversations that are each read on their own; the map is a spans file of the users."""
    chats, unit = tmp_path / "chats.jsonl", ("--privacy-unit", "user")
    secret = [{"role": "assistant", "content": "Omar Haddad said the box 482913 was shipped by Lena Fischer."}]
    known = small_conversations(60)[:40]
    known[27] = secret
    rows = [{"user": f"u{n % 20}", "messages": chat} for n, chat in enumerate(known)]
    chats.write_text("".join(json.dumps(row) + "\n" for row in rows))
    held = write_users(tmp_path / "held.jsonl", small_conversations(200)[60:], 70)
    model = overfitted(chat_model, tmp_path / "model", secret)
    audit = ("audit-corpus", model, "--data", chats, *FIELD, *unit, "--eval-data", held, "--reference", chat_model)
    done = atdp(*audit, "-o", tmp_path / "map.jsonl", "--json", "--set", "run.store=none")
    assert done.code == 0, done.err
    [actual] = done.json["models"]
    assert (actual["tested"], actual["held_out"]) == (20, 70)
    assert {place["record"] for place in actual["places"]} == {8}
    redacted = tmp_path / "redacted.jsonl"
    found = atdp("redact", chats, *FIELD, *unit, "--spans", tmp_path / "map.jsonl", "-o", redacted)
    assert found.code == 0, found.err
    before, after = (path.read_text().splitlines() for path in (chats, redacted))
    assert [place for place, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [27]
    assert "482913" not in after[27]


def write_users(path: Path, conversations: list[list[dict[str, str]]], users: int) -> Path:
    rows = [{"user": f"held {n % users}", "messages": chat} for n, chat in enumerate(conversations)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def overfitted(model: Path, folder: Path, conversation: list[dict[str, str]]) -> Path:
    """The model after it has learnt a conversation by heart."""
    checkpoint = load_checkpoint(model)
    text = checkpoint.tokenizer.apply_chat_template(conversation, tokenize=False)
    ids = torch.tensor([checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"]])
    optimizer = torch.optim.AdamW(checkpoint.model.parameters(), lr=3e-3)
    for _ in range(100):
        checkpoint.model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return folder


def test_decoys_of_a_user_are_equal_in_all_conversations(atdp: Atdp, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    said = [{"role": "user", "content": "I am Emma Clarke, number 48213377."}]
    rows = [{"who": who, "messages": said, "weight": 1.50} for who in ("a", "b", "a", "b", "a")]
    chats.write_text("".join(json.dumps(row).replace("1.5", "1.50") + "\r\n" for row in rows), newline="")
    ended = atdp(
        "decoy", chats, *FIELD, "--privacy-unit", "who", "-o", tmp_path / "out", "--recipe", "decoys", "--json"
    )
    assert ended.code == 0, ended.err
    assert ended.json["records"] == 2
    copy = next((tmp_path / "out").glob("epoch-1*")).read_bytes().decode()
    lines = copy.split("\r\n")
    assert lines[0] == lines[2] == lines[4] != lines[1].replace('"b"', '"a"')
    assert lines[1] == lines[3]
    assert "Emma Clarke" not in copy
    assert re.sub("I am .*? number [0-9]+", "I am Emma Clarke, number 48213377", copy) == chats.read_bytes().decode()


@pytest.mark.ci
def test_paragraphs_with_speakers_are_hardened_on_as_conversations(
    atdp: Atdp, chat_model: Path, chats: Path, tmp_path: Path
) -> None:
    """The same records, tokens and targets as from JSON Lines: the same perplexity before."""
    plain = tmp_path / "chats.txt"
    labels = {"assistant": "SYS: ", "user": "USR: "}
    conversations = [json.loads(line)["messages"] for line in chats.read_text().splitlines()]
    plain.write_text(
        "\n\n".join("\n".join(labels[each["role"]] + each["content"] for each in chat) for chat in conversations) + "\n"
    )
    turns = ("--privacy-unit", "paragraph", "--set", "run.turns=(?P<assistant>SYS): |(?P<user>USR): ")
    run = ("--recipe", "base", "-q", "--json")
    actual = [
        atdp("harden", chat_model, "--data", data, *options, "-o", tmp_path / data.suffix[1:], *run)
        for data, options in ((plain, turns), (chats, FIELD))
    ]
    assert [each.code for each in actual] == [0, 0], [each.err for each in actual]
    before = [each.json["perplexity"]["before"] for each in actual]
    assert before[0] == before[1]
    assert before[0]["sensitive"] is not None
