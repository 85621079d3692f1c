"""Files with secrets are their owner's alone, whatever the process's mask."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from atdp_cli.files.atomic_write import atomic_write
from tests.cli.badinput.case import line
from tests.cli.conftest import Atdp, atdp

__all__ = ["atdp"]

COMMAND_LINES = (
    line("plant-canary corpus.txt -o planted.txt --manifest m.json --tokenizer model --template ID{digits:2}"),
    line("detect planted.txt -o spans.jsonl --review queue.jsonl"),
    line("redact planted.txt -o redacted.txt --style pseudonym --pseudonym-key key"),
    line("decoy planted.txt -o decoyed --epochs 1 --recipe decoys"),
    line("harden model --data planted.txt -o out --epochs 1 --review-each-epoch --tier low-entity"),
    line("audit-canary out --manifest m.json"),
)


@pytest.fixture
def place(tmp_path: Path, checkpoint_folder: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a model and a corpus; new files are everybody's unless somebody cares."""
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    mask = os.umask(0)
    yield tmp_path
    os.umask(mask)


def mode(path: Path) -> int:
    """A file's permissions."""
    return path.stat().st_mode & 0o777


@pytest.mark.ci
def test_files_with_secrets_are_their_owners_alone(place: Path, atdp: Atdp) -> None:
    for command in COMMAND_LINES:
        ended = atdp(*command)
        assert ended.code in ((0, 1, 4) if command[0] == "audit-canary" else (0,)), ended.err
    for name in ("m.json", "queue.jsonl", "key"):
        assert mode(place / name) == 0o600, name
    for folder in ("out.private", "out.private/review", "decoyed.private", "planted.txt.private"):
        assert mode(place / folder) == 0o700, folder
    kept = [*(place / "planted.txt.private").iterdir(), *(place / "out.private" / "review").iterdir()]
    kept.append(place / "out.private" / "journal.jsonl")
    kept.append(place / "decoyed.private" / "corpus.key")
    assert {mode(file) for file in kept if file.is_file()} == {0o600}
    assert mode(place / "decoyed") == 0o755
    assert mode(place / "out") == 0o755
    assert {mode(file) for file in (place / "out").iterdir()} == {0o644}


def test_a_file_with_secrets_is_its_owners_from_its_first_byte_on(place: Path) -> None:
    with atomic_write(place / "secret", mode=0o600) as stream:
        [unfinished] = place.glob(".*.tmp")
        stream.write(b"493021")
        assert mode(unfinished) == 0o600
    assert mode(place / "secret") == 0o600
