"""Inputs: files that block, that say one thing twice, that unpack without end, and names that stand for streams."""

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import FrameType

import pytest

from atdp_cli.audit.manifest import read_manifest
from atdp_cli.corpus.record import read_records
from atdp_cli.detection.span_file import read_spans
from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.atomic_write import atomic_write
from atdp_cli.files.corpus_file import read_lines
from atdp_cli.privacy.ledger import LEDGER_FILE, read_ledger, write_ledger
from atdp_cli.reporting.card import inherited_card
from tests.cli.badinput.case import line
from tests.cli.conftest import Atdp, atdp
from tests.privacy.ledgers import ledger, steps

__all__ = ["atdp"]

SECRET = "Quillfeather"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path: Path, checkpoint_folder: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, a corpus, its spans and a ledger."""
    (tmp_path / "model").symlink_to(checkpoint_folder)
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "c.txt").write_text("a\nb\n")
    (tmp_path / "c.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "s.jsonl").write_text('{"id": "1", "spans": []}\n{"id": "2", "spans": []}\n')
    write_ledger(tmp_path / LEDGER_FILE, ledger(steps(0.1, 1.0, 9)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class _Blocked(BaseException):
    """Nothing takes this for an error of a file, as it would a TimeoutError."""


@pytest.fixture
def bounded() -> Iterator[None]:
    """What blocks for ten seconds ends."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Blocked

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 10)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def fifo(path: Path) -> None:
    """A named pipe that nobody writes to."""
    os.mkfifo(path)


def linked_fifo(path: Path) -> None:
    """A symbolic link to one."""
    fifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def unix_socket(path: Path) -> None:
    """A socket's name."""
    here = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "fifo": fifo,
    "socket": unix_socket,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "null": lambda path: path.symlink_to("/dev/null"),
    "link to a fifo": linked_fifo,
}

READING = {
    "corpus": line("detect X.txt --set run.store=none"),
    "corpus of JSON Lines": line("detect X.jsonl --set run.store=none"),
    "corpus of Parquet": line("detect X.parquet --set run.store=none"),
    "packed corpus": line("detect X.txt.gz --set run.store=none"),
    "allow": line("detect corpus.txt --allow X --set run.store=none"),
    "deny": line("detect corpus.txt --deny X --set run.store=none"),
    "spans": line("redact c.txt --spans X -o out.txt --set run.store=none"),
    "key": line("redact c.txt --spans s.jsonl -o out.txt --style pseudonym --pseudonym-key X --set run.store=none"),
    "ledger": line("account X"),
    "manifest": line("audit-canary model --manifest X"),
    "baseline": line("audit-canary model --canary ID493021 --baseline X"),
    "planted again": line("plant-canary c.txt -o p.txt --manifest m.json --tokenizer model --from X"),
    "planted corpus": line("plant-canary X -o p.txt --manifest m.json --tokenizer model"),
    "choices": line("plant-canary c.txt -o p.txt --manifest m.json --tokenizer model --template {choice:X}"),
    "recipe": line("account --recipe X.toml --records 100"),
    "recipe of a run": line("harden model --data corpus.txt -o out --recipe X.toml"),
    "data": line("harden model --data X.txt -o out --tier low-entity"),
    "held-out text": line("harden model --data corpus.txt --eval-data X.txt -o out --tier low-entity"),
    "queue": line("review X"),
    "audit": line("report . --audit X"),
    "other text": line("audit-canary model --canary ID493021 --attacks relearning --set run.other-text=X"),
}


@pytest.mark.parametrize(("role", "what"), [*product(READING, ["fifo", "device"]), *product(["corpus"], IRREGULAR)])
def test_what_is_no_regular_file_is_refused_at_once(
    role: str, what: str, place: Path, atdp: Atdp, bounded: None
) -> None:
    [name] = [word for word in READING[role] if "X" in word]
    name = name.removeprefix("{choice:").removesuffix("}")
    IRREGULAR[what](place / name)
    ended = atdp(*READING[role])
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert "Traceback" not in ended.err


def piped(place: Path, *command: str, given: str = "Anna met Omar.\n") -> "subprocess.CompletedProcess[str]":
    """A command with text on its standard input, which is a pipe."""
    return subprocess.run(
        [sys.executable, "-m", "atdp_cli", *command],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_standard_input_is_read_whatever_files_there_are(name: str, place: Path) -> None:
    """A file called - lies there, and nothing is written beside the stream."""
    (place / "-").write_text("of the file\nwith\nthree lines\n")
    (place / "s1.jsonl").write_text('{"id": "1", "spans": []}\n')
    before = set(place.iterdir())
    ended = piped(place, "redact", name, "--spans", "s1.jsonl", "-o", "out.txt")
    assert ended.returncode == 0, ended.stderr
    assert (place / "out.txt").read_text() == "Anna met Omar.\n"
    assert set(place.iterdir()) - before == {place / "out.txt"}
    assert not Path(f"{name}.private").exists()


TO_DASH = {
    "redact": (line("redact c.txt --spans s.jsonl -o - --set run.store=none -q"), 0),
    "redact JSON Lines": (line("redact c.jsonl --spans s1.jsonl -o - --set run.store=none -q"), 0),
    "redact with JSON": (line("redact c.txt --spans s.jsonl -o - --set run.store=none --json"), 2),
    "detect": (line("detect c.txt -o - --set run.store=none -q"), 0),
    "detect with JSON": (line("detect c.txt -o - --set run.store=none --json"), 2),
    "plant": (line("plant-canary c.txt -o - --manifest m.json --tokenizer model"), 2),
    "manifest": (line("plant-canary c.txt -o p.txt --manifest - --tokenizer model"), 2),
    "queue": (line("detect c.txt -o s --review - --set run.store=none"), 2),
    "harden": (line("harden model --data corpus.txt -o -"), 2),
    "key": (
        line("redact c.txt --spans s.jsonl -o out.txt --style pseudonym --pseudonym-key - --set run.store=none"),
        2,
    ),
    "junit": (line("audit-canary model --canary ID493021 --junit -"), 2),
}


@pytest.mark.parametrize("name", TO_DASH)
def test_a_dash_is_standard_output_or_refused(name: str, place: Path, atdp: Atdp, bounded: None) -> None:
    (place / "s1.jsonl").write_text('{"id": "1", "spans": []}\n')
    command, code = TO_DASH[name]
    ended = atdp(*command)
    assert ended.code == code, ended.err
    assert not (place / "-").exists()
    if name == "redact":
        assert ended.out == "a\nb\n"
    if name == "redact JSON Lines":
        assert ended.out == '{"text": "a"}\n'
    if name == "detect":
        assert len(ended.out.splitlines()) == 2
    if code:
        assert ended.err.count("\n") == 1
        assert not (place / "p.txt").exists()


TWICE = {
    "text": '{"text": "a", "text": "b"}',
    "another key": '{"text": "a", "id": 1, "id": 2}',
    "another key's spelling": '{"text": "a", "who": 1, "\\u0077ho": 2}',
    "nested": '{"text": "a", "about": {"who": 1, "who": 2}}',
    "in a list": '{"text": "a", "about": [{"x": {"who": 1, "who": 2}}]}',
    "empty": '{"text": "a", "": 1, "": 2}',
}


@pytest.mark.parametrize("name", TWICE)
def test_a_key_twice_in_a_corpus_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"text": "fine"}\n' + TWICE[name].replace('"a"', f'"{SECRET}"') + "\n")
    with pytest.raises(InputError, match="line 2 has") as refused:
        list(read_records(tmp_path / "c.jsonl"))
    assert "more than once" in refused.value.problem
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "1", "id": "1", "spans": []}',
        '{"id": "1", "spans": [{"start": 0, "end": 1, "label": "A"}], "spans": []}',
        '{"id": "1", "spans": [{"start": 0, "start": 1, "end": 2, "label": "A"}]}',
        '{"id": "1", "spans": [], "note": {"a": 1, "a": 2}}',
    ],
)
def test_a_key_twice_in_spans_is_refused(text: str, place: Path) -> None:
    (place / "s.jsonl").write_text(text + "\n")
    (place / "c.txt").write_text("abc\n")
    with pytest.raises(InputError, match="line 1 has a key more than once"):
        list(read_spans(place / "s.jsonl", read_records(place / "c.txt")))


def test_a_key_twice_in_a_ledger_is_refused(place: Path) -> None:
    path = place / LEDGER_FILE
    written = path.read_text()
    for old in ('"records": 100,', '"stage": "a",', '"digest":'):
        path.write_text(written.replace(old, f"{old} 1, {old}" if old.endswith(":") else f"{old}\n {old}", 1))
        with pytest.raises(InputError, match="a key stands more than once"):
            read_ledger(path)


def manifest_of(*secrets: str, repeats: int = 1, drawn: str = "csprng") -> dict[str, object]:
    """A manifest of these secrets; three digits each."""
    places = iter(range(1, 10_000))
    return {
        "schema_version": 1,
        "kind": "atdp-canaries",
        "template": f"ID{{digits:{len(secrets[0])}}}",
        "choices": {},
        "canaries": [
            {
                "secret": [secret],
                "planted": True,
                "repeats": repeats,
                "token_ids": [1],
                "positions": [next(places) for _ in range(repeats)],
            }
            for secret in secrets
        ],
        "tokenizer_sha256": "0" * 64,
        "records": 9_999,
        "coins": False,
        "drawn": drawn,
    }


COPIES = {
    "one canary twenty times": (["493021"] * 20, "csprng"),
    "one canary three times": (["493021"] * 3 + ["100000", "200000", "300001"], "csprng"),
    "every canary twice": ([f"{number:06}" for number in range(10)] * 2, "csprng"),
    "one of small pool twenty times": (["49"] * 20, "csprng"),
    "typed twice": (["493021"] * 2, "by-hand"),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_a_canary_are_no_canaries(name: str, tmp_path: Path) -> None:
    secrets, drawn = COPIES[name]
    (tmp_path / "m.json").write_text(json.dumps(manifest_of(*secrets, drawn=drawn)))
    with pytest.raises(InputError, match="same secret") as refused:
        read_manifest(tmp_path / "m.json")
    assert secrets[0] not in str(refused.value).replace(str(tmp_path), "")


def test_canaries_that_chance_drew_alike_are_read(tmp_path: Path) -> None:
    """Secrets are drawn with replacement; two of ten alike from a hundred are nothing rare."""
    (tmp_path / "m.json").write_text(json.dumps(manifest_of("49", "49", *map(str, range(10, 18)))))
    assert len(read_manifest(tmp_path / "m.json").canaries) == 10


def test_a_key_twice_in_a_manifest_is_refused_without_the_secret(tmp_path: Path) -> None:
    text = json.dumps(manifest_of("493021"), indent=1)
    (tmp_path / "m.json").write_text(text.replace('"planted": true', '"planted": true,\n"planted": true'))
    with pytest.raises(InputError, match="a key stands more than once") as refused:
        read_manifest(tmp_path / "m.json")
    assert "493021" not in str(refused.value)


BOMB = b"a\n" * (1 << 23)


def zstd_of(content: bytes, **settings: int) -> bytes:
    import zstandard

    parameters = zstandard.ZstdCompressionParameters(**settings)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(content)


PACKED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gz": ("gz", lambda: gzip.compress(BOMB)),
    "gz in gz": ("gz", lambda: gzip.compress(gzip.compress(BOMB * 4))),
    "gz members": ("gz", lambda: gzip.compress(b"a\n") + gzip.compress(BOMB)),
    "many gz members": ("gz", lambda: gzip.compress(BOMB[: 1 << 20]) * 30),
    "gz of a long line": ("gz", lambda: gzip.compress(b"a" * (1 << 27))),
    "zst": ("zst", lambda: zstd_of(BOMB)),
    "many zst frames": ("zst", lambda: zstd_of(BOMB[: 1 << 20]) * 30),
    "zst of a long line": ("zst", lambda: zstd_of(b"a" * (1 << 27))),
    "zst with a huge window": ("zst", lambda: zstd_of(BOMB * 8, window_log=30)),
}


@pytest.mark.ci
@pytest.mark.parametrize(
    "name",
    [*PACKED][::4] + [pytest.param(name, marks=pytest.mark.deep) for place, name in enumerate(PACKED) if place % 4],
)
def test_what_unpacks_without_end_is_refused(name: str, tmp_path: Path) -> None:
    suffix, packed = PACKED[name]
    path = tmp_path / f"c.txt.{suffix}"
    path.write_bytes(packed())
    began = time.process_time()
    with pytest.raises(InputError, match=r"unpacks to more than|is longer than|is not UTF-8|damaged"):
        list(read_lines(path))
    assert time.process_time() - began < 20


def test_two_writers_of_one_file_leave_one_of_them(place: Path, atdp: Atdp) -> None:
    """The second finds the file there; without --force it is not replaced, however the two fall in time."""

    def write_ours_after_theirs() -> None:
        with atomic_write(place / "out", replace=False) as first:
            first.write(b"ours")
            (place / "out").write_bytes(b"theirs")

    with pytest.raises(UsageError, match="exists"):
        write_ours_after_theirs()
    assert (place / "out").read_bytes() == b"theirs"
    assert not list(place.glob(".*.tmp"))
    ended = atdp("redact", "c.txt", "--spans", "s.jsonl", "-o", "out", "--set", "run.store=none")
    assert ended.code == 2
    assert "exists" in ended.err


@pytest.mark.parametrize("what", ["fifo", "socket", "device"])
def test_a_checkpoints_card_that_is_no_file_stops_no_run(what: str, tmp_path: Path, bounded: None) -> None:
    IRREGULAR[what](tmp_path / "README.md")
    assert inherited_card(tmp_path, encoder=False, adapter=False).license is None
    shutil.rmtree(tmp_path)
