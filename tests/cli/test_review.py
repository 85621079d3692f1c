"""`atdp detect --review` and `atdp review`."""

import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atdp_cli.cli.app import run
from atdp_cli.cli.review import printable
from tests.cli.conftest import Atdp, Ended, detector

TEXT = """Mail emma.clarke@example.org about the parcel.
Nothing here. The blue box is where it was.
The account is 48213377.
Ask Omar Haddad in Berlin.
"""
LOW = ["--tier", "low-entity"]

Answer = Callable[..., Ended]


@pytest.fixture
def answer(atdp: Atdp, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Run `atdp review` with these lines typed."""

    def call(*arguments: object, typed: str = "") -> Ended:
        monkeypatch.setattr(
            "sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode(errors="surrogateescape")), encoding="utf-8")
        )
        return atdp("review", *arguments)

    return call


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small corpus and a queue of all its sentences."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "mail.txt").write_text(TEXT)
    command = [
        "detect",
        folder / "mail.txt",
        *LOW,
        "--review",
        folder / "queue.jsonl",
        "--set",
        "run.review-share=1",
        "--json",
        "-q",
    ]
    assert run([str(part) for part in command]) == 0
    return folder


@pytest.fixture
def queue(place: Path, tmp_path: Path) -> Path:
    """A copy of them: sentences that are flagged, unflagged, unflagged, flagged and flagged."""
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "queue.jsonl"
    path.write_text(path.read_text().replace(str(place), str(tmp_path)))
    return path


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def decisions(path: Path) -> list[object]:
    return [row["decision"] for row in rows(path)]


KEPT = {"verdict": "reviewed", "drop": [], "mark": []}
SKIPPED = KEPT | {"verdict": "skipped"}


def test_detect_queues_sentences_with_their_spans_masked(queue: Path, tmp_path: Path) -> None:
    header = json.loads(queue.read_text().splitlines()[0])
    assert header["corpora"] == [str(tmp_path / "mail.txt")]
    assert (header["tier"], header["review_share"], header["unit"]) == ("low-entity", 1.0, "line")
    assert [row["stratum"] for row in rows(queue)] == ["flagged", "unflagged", "unflagged", "flagged", "flagged"]
    assert stat.S_IMODE(queue.stat().st_mode) == 0o600
    assert not re.search("emma|example|48213377|Omar|Haddad|Berlin", queue.read_text())


def test_detect_refuses_what_cannot_be_queued(atdp: Atdp, corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text("kept")
    for options, said in (
        (["--set", "run.review-share=0.5"], "run.review-share goes with --review"),
        (["--review", path], "--force"),
        (["--review", tmp_path / "no" / "q"], "is not a folder"),
        (["--review", tmp_path / "new", "--set", "run.review-share=0"], "review-share is 0"),
        (["--review", tmp_path / "new", "-o", tmp_path / "new"], "written twice"),
        (["--review", corpus, "--force"], "which is read"),
    ):
        ended = atdp("detect", corpus, *options)
        assert (ended.code, ended.out) == (2, "")
        assert said in ended.err
    assert [file.name for file in tmp_path.iterdir()] == ["q.jsonl"]
    assert path.read_text() == "kept"


def test_a_whole_review_writes_queue_and_lists(answer: Answer, atdp: Atdp, queue: Path, tmp_path: Path) -> None:
    ended = answer(queue, "--json", typed="d 1\nk\nk\nm BLUE box\nk\ns\nk\n")
    assert ended.code == 0
    actual = rows(queue)
    assert decisions(queue) == [
        KEPT | {"drop": [{"start": 5, "end": 28}]},
        KEPT,
        KEPT | {"mark": ["BLUE box"]},
        SKIPPED,
        KEPT,
    ]
    allow, deny = tmp_path / "queue.allow.txt", tmp_path / "queue.deny.txt"
    assert allow.read_text() == "emma.clarke@example.org\n"
    assert deny.read_text() == "BLUE box\n"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (allow, deny, queue)} == {0o600}
    summary = ended.json
    counts = {name: summary[name] for name in ("sentences", "reviewed", "skipped", "left", "dropped", "marked")}
    assert counts == {"sentences": 5, "reviewed": 4, "skipped": 1, "left": 0, "dropped": 1, "marked": 1}
    assert (summary["allow"], summary["deny"]) == (str(allow), str(deny))
    assert summary["wrongly_flagged"]["sampled"] == 2
    assert summary["missed_in_unflagged"]["share"] == 0.5
    assert summary["missed_in_flagged"]["share"] == 0
    # The command that it names does what was decided.
    [command] = [line.split() for line in ended.err.splitlines() if line.startswith("  atdp detect")]
    corrected = [json.loads(line) for line in atdp(*command[1:]).out.splitlines()]
    assert corrected[0]["spans"] == []
    assert [(span["label"], span["start"]) for span in corrected[1]["spans"]] == [("DENY", 18)]
    assert len(corrected[3]["spans"]) == len(actual[4]["spans"])  # type: ignore[arg-type]


def test_a_review_goes_on_where_it_was_left(answer: Answer, queue: Path) -> None:
    answer(queue, typed="k\nd 1\nq\n")
    assert decisions(queue) == [KEPT, None, None, None, None]
    ended = answer(queue, typed="s\nk")
    assert "2 of 5" in ended.err
    assert decisions(queue) == [KEPT, SKIPPED, KEPT, None, None]
    assert "4 of 5" in answer(queue).err
    assert "2 reviewed, 1 skipped, 2 left" in answer(queue, typed="q").err
    answer(queue, typed="k\nk\n")
    assert " of 5 ·" not in answer(queue).err


def test_undo_takes_back_this_sessions_terms_and_nothing_else(answer: Answer, queue: Path, tmp_path: Path) -> None:
    allow, deny = tmp_path / "a.txt", tmp_path / "d.txt"
    allow.write_text("# ours\nBerlin\n")
    deny.write_text("Quill")
    lists = ["--allow", allow, "--deny", deny]
    answer(queue, *lists, typed="k\nk\nm box\nk\nd 1\nm account\nk\nd 1 2\nk\nu\nu\nu\nu\nu\nq\n")
    # Undone: the last sentence, its drops, and the sentence before it.
    assert allow.read_text() == "# ours\nBerlin\n"
    assert deny.read_text() == "Quill\nbox\n"
    assert decisions(queue)[2:] == [KEPT | {"mark": ["box"]}, None, None]
    assert answer(queue, *lists, typed="u\n").err.count("nothing to undo in this session") == 1
    # A term that is there already is neither added nor taken back.
    answer(queue, *lists, typed="k\nd 1 2\nk\nu\nq\n")
    assert allow.read_text() == "# ours\nBerlin\n"
    answer(queue, *lists, typed="d 2 1\nk\n")
    assert allow.read_text() == "# ours\nBerlin\nOmar Haddad\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("m parc", "not in the sentence as whole words"),
        ("m EMAIL", "not in the sentence as whole words"),
        ("m ,", "not in the sentence as whole words"),
        ("d 2", "There is no mask 2 here"),
        ("r 0", "There is no mask 0 here"),
        ("u", "nothing to undo"),
        ("", "k  right as it stands"),
        ("keep", "k  right as it stands"),
        ("d", "k  right as it stands"),
        ("m", "k  right as it stands"),
        ("\udcff", "k  right as it stands"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(answer: Answer, queue: Path, typed: str, said: str) -> None:
    before, names = queue.read_bytes(), sorted(queue.parent.iterdir())
    ended = answer(queue, typed=typed + "\n")
    assert ended.code == 0
    assert said in ended.err.split("missed\n", 1)[1]
    assert queue.read_bytes() == before
    assert sorted(queue.parent.iterdir()) == names


def test_without_its_corpus_all_but_dropping_works(answer: Answer, queue: Path, tmp_path: Path) -> None:
    (tmp_path / "mail.txt").rename(tmp_path / "moved.txt")
    ended = answer(queue, typed="d 1\nr 1\nm parcel\nk\n")
    assert ended.err.count("does not exist") == 2
    assert decisions(queue)[0] == KEPT | {"mark": ["parcel"]}
    for changed in (TEXT.replace("48213377", "482133"), TEXT.replace("account", "Account"), "x\n", ""):
        (tmp_path / "other.txt").write_text(changed)
        ended = answer(queue, "--data", tmp_path / "other.txt", typed="k\nk\nd 1\nu\nu\n")
        assert ended.code == 0
        assert "has changed" in ended.err or "holds no records" in ended.err
    ended = answer(queue, "--data", tmp_path / "moved.txt", typed="k\nk\nd 1\nk\n")
    assert (tmp_path / "queue.allow.txt").read_text() == "48213377\n"
    assert "--allow" in ended.err
    assert answer(queue, "--data", tmp_path / "nowhere.txt").code == 2


def test_the_commands_that_a_review_names_have_the_settings_of_its_detector(
    atdp: Atdp, answer: Answer, tmp_path: Path
) -> None:
    corpus, path = tmp_path / "chat.txt", tmp_path / "q.jsonl"
    corpus.write_text("ZORG: Emma Clarke is here since 1956\nZORG: Maria lives in Berlin\n")
    options = ["--exclude", "DATE,GPE", *map(str, detector(tmp_path, speaker_labels=["ZORG"], min_confidence=0.5))]
    assert atdp("detect", corpus, *LOW, *options, "--review", path, "--set", "run.review-share=1").code == 0
    ended = answer(path, typed="m lives\nk\n" * 9)
    commands = [line.split() for line in ended.err.splitlines() if line.startswith(("  atdp detect", "  atdp harden"))]
    assert len(commands) == 2
    for command in commands:
        assert [command[command.index(option) + 1] for option in options[::2]] == options[1::2]
    before, after = (atdp(*command) for command in (["detect", corpus, *LOW, *options], commands[0][1:]))
    labels = [
        [s["label"] for line in out.out.splitlines() for s in json.loads(line)["spans"]] for out in (before, after)
    ]
    assert sorted(labels[1]) == sorted([*labels[0], "DENY"])


@pytest.mark.ci
def test_a_killed_review_loses_only_the_sentence_at_hand(queue: Path) -> None:
    # Whoever runs the tests in the background may have them ignore the interrupt.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from atdp_cli.cli.app import run; sys.exit(run(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "review", str(queue)]
    names = sorted(queue.parent.iterdir())
    for end, expected in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        running = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "80"}
        )
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write("k\nm box\n" if end == signal.SIGKILL else "m box\n")
        running.stdin.flush()
        said = ""
        while not said.endswith(("Then k.\n", "outside the masks.\n")):
            said += running.stderr.readline()
        running.send_signal(end)
        # Before its input ends, which would end the review too.
        running.wait(timeout=60)
        running.communicate()
        assert running.returncode == expected
    assert decisions(queue) == [KEPT, None, None, None, None]
    assert sorted(queue.parent.iterdir()) == names


def test_a_record_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\r\n\tc\u202ed\x07\ud800é漢") == "a\ufffd[2Jb   c\ufffdd\ufffd\ufffdé漢"
