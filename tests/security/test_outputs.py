"""A command never overwrites or removes what it reads, whatever the path to it looks like."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atdp_cli.cli.app import run
from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.atomic_write import check_apart

CANARIES = "plant-canary corpus.txt -o planted.txt --manifest canaries.json --tokenizer model --count 4 --repeats 3"

COMMANDS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "detect": (
        "detect corpus.txt --allow allow.txt --deny deny.txt --detector d.toml {} --force",
        ("-o", "--review"),
        ("corpus.txt", "allow.txt", "deny.txt", "d.toml"),
    ),
    "redact": (
        "redact corpus.txt --style pseudonym --pseudonym-key key --allow allow.txt --deny deny.txt {} --force",
        ("-o",),
        ("corpus.txt", "allow.txt", "deny.txt", "key"),
    ),
    "redact by spans": ("redact corpus.txt --spans spans.jsonl {} --force", ("-o",), ("corpus.txt", "spans.jsonl")),
    "plant-canary": (
        "plant-canary corpus.txt --tokenizer model --template {{choice:names.txt}} -o new.txt --manifest new.json "
        "--count 2 --repeats 1 {} --force",
        ("-o", "--manifest"),
        ("corpus.txt", "names.txt", "model/tokenizer.json", "model/config.json"),
    ),
    "plant-canary again": (
        "plant-canary corpus.txt --tokenizer model --from canaries.json -o new.txt --manifest new.json {} --force",
        ("-o", "--manifest"),
        ("canaries.json",),
    ),
    "audit-canary": (
        "audit-canary model --manifest canaries.json --reference base --set run.other-text=corpus.txt {} --force",
        ("--junit", "--sarif", "--write-baseline"),
        ("canaries.json", "model/model.safetensors", "base/config.json", "corpus.txt"),
    ),
    "audit-canary of an adapter": (
        "audit-canary adapter --manifest canaries.json {} --force",
        ("--junit", "--write-baseline"),
        ("model/model.safetensors", "adapter/adapter_config.json"),
    ),
    "audit-corpus": (
        "audit-corpus model --data corpus.txt --eval-data unread.txt --reference base --allow allow.txt {} --force",
        ("-o", "--junit", "--sarif", "--write-baseline"),
        ("corpus.txt", "unread.txt", "model/model.safetensors", "base/tokenizer.json", "allow.txt"),
    ),
    "report": ("report out {} --force", ("--html",), ("out/privacy_report.json", "out/privacy_ledger.json")),
    "review": ("review queue.jsonl --data corpus.txt {}", ("--allow", "--deny"), ("corpus.txt",)),
}
"""By name: a command line, the options by which it writes a file, and files that it reads."""

FOLDERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "harden": (
        "harden model --data corpus.txt --eval-data unread.txt --recipe redacted --set redacted.epochs=1 "
        "--detector d.toml --allow allow.txt --deny deny.txt --extra-spans spans.jsonl -o out --force",
        ("model", "corpus.txt", "unread.txt", "d.toml", "allow.txt", "deny.txt", "spans.jsonl"),
    ),
    "harden an adapter": ("harden adapter --data corpus.txt --recipe redacted -o out --force", ("model",)),
    "harden by a file": ("harden model --data corpus.txt --recipe r.toml -o out --force", ("r.toml",)),
    "harden with a reference": (
        "harden model --data corpus.txt --reference base --manifest canaries.json -o out --force",
        ("base", "canaries.json"),
    ),
    "decoy": (
        "decoy corpus.txt --recipe decoys --allow allow.txt --detector d.toml -o out --force",
        ("corpus.txt", "allow.txt", "d.toml"),
    ),
    "decoy by spans": ("decoy corpus.txt --recipe decoys --spans spans.jsonl -o out --force", ("spans.jsonl",)),
}
"""By name: a command line that replaces the folder out/ and those beside it, and what it reads."""


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path) -> Path:
    """Everything that the commands read, as their own commands wrote it."""
    folder = tmp_path_factory.mktemp("material")
    for name in ("model", "base"):
        shutil.copytree(checkpoint_folder, folder / name)
    (folder / "corpus.txt").write_text("".join(f"Emma Clarke called from {n:06d}.\n" for n in range(60)))
    (folder / "unread.txt").write_text("".join(f"Omar Haddad wrote to {n:06d}.\n" for n in range(60)))
    (folder / "names.txt").write_text("Lena\nOmar\nEmma\n")
    (folder / "allow.txt").write_text("Berlin\n")
    (folder / "deny.txt").write_text("blue box\n")
    (folder / "d.toml").write_text("min_confidence = 0.1\n")
    (folder / "key").write_bytes(bytes(32))
    (folder / "r.toml").write_text("".join(["[[stage]]\n", 'kind = "train"\n', 'name = "a"\n']))
    (folder / "adapter").mkdir()
    settings = {"peft_type": "LORA", "base_model_name_or_path": "model", "r": 1, "target_modules": ["c_attn"]}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    before = Path.cwd()
    os.chdir(folder)
    try:
        for command in (CANARIES, "detect corpus.txt -o spans.jsonl --review queue.jsonl --set run.review-share=1"):
            assert run(command.split()) == 0
        made = "harden model --data corpus.txt --recipe redacted --set redacted.epochs=1 --set run.threads=1 -o out"
        assert run(made.split()) == 0
        shutil.copy("out/recipe.toml", "r.toml")
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as the working folder."""
    folder = tmp_path / "here"
    shutil.copytree(material, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Each file that is read, by its path."""
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return {str(path): (folder / path).read_bytes() for path in files if ".private" not in path.parts[0]}


def linked(name: str) -> str:
    """A symbolic link to a file."""
    Path("link").symlink_to(Path(name).absolute())
    return "link"


def hard_linked(name: str) -> str:
    """A second name of a file."""
    os.link(name, "second")
    return "second"


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "absolute": lambda name: str(Path(name).absolute()),
    "by a detour": lambda name: f"model/../{name}",
    "by a link": linked,
    "by a hard link": hard_linked,
}

FILES = [
    (command, option, name, spelling)
    for command, (_, options, names) in COMMANDS.items()
    for option in options
    for at, name in enumerate(names)
    for spelling in (SPELLINGS if at == 0 else ("as it is", "by a link"))
]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", FILES, ids=" ".join)
def test_what_is_read_is_not_overwritten(
    case: tuple[str, str, str, str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, option, name, spelling = case
    before = contents(here)
    line, written = COMMANDS[command][0], SPELLINGS[spelling](name)
    code = run(line.format(f"{option} {written}").split())
    after = contents(here)
    assert {path: after.get(path) for path in before} == before
    assert code == 2
    assert "which is read" in capsys.readouterr().err


PLACES = [(command, name) for command, (_, names) in FOLDERS.items() for name in names]
"""The commands of `FOLDERS` with each thing that they read."""


def moved(name: str, folder: Path) -> None:
    """The file lies in the folder, and a link leads to it from where it was."""
    shutil.move(name, folder / name)
    Path(name).symlink_to((folder / name).absolute())


def through(name: str, folder: Path) -> None:
    """The way to the file is a link in the folder, and it lies elsewhere."""
    Path("kept").mkdir()
    shutil.move(name, Path("kept") / name)
    (folder / "way").symlink_to(Path("kept").absolute())
    Path(name).symlink_to((folder / "way" / name).absolute())


def leaves(name: str, folder: Path) -> None:
    """The files of a folder are links into the other one, as in a hub's cache."""
    files = [path for path in Path(name).iterdir() if path.is_file()] if Path(name).is_dir() else [Path(name)]
    for file in files:
        shutil.move(file, folder / f"blob-{file.name}")
        file.symlink_to((folder / f"blob-{file.name}").absolute())


@pytest.mark.one_in(7)
@pytest.mark.parametrize("case", PLACES, ids=" ".join)
@pytest.mark.parametrize("lying", [moved, through, leaves])
@pytest.mark.parametrize("folder", ["out", "out.private"])
def test_what_is_read_is_not_removed_with_a_folder(
    case: tuple[str, str],
    folder: str,
    lying: Callable[[str, Path], None],
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command, name = case
    if command.startswith("decoy"):
        shutil.rmtree("out")
        shutil.rmtree("out.private")
        assert run(["decoy", "corpus.txt", "--recipe", "decoys", "-o", "out", "--epochs", "1"]) == 0
    lying(name, Path(folder))
    capsys.readouterr()
    code = run(FOLDERS[command][0].split())
    there = Path(name) / "model.safetensors" if Path(name).is_dir() else Path(name)
    assert there.exists()
    assert code == 2
    assert "which is read" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["", ".private", ".partial"])
@pytest.mark.parametrize("command", ["harden model --data corpus.txt", "decoy corpus.txt"])
def test_a_link_that_leads_nowhere_is_no_output(
    command: str, suffix: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is trained."""
    Path(f"new{suffix}").symlink_to(here / "nothing")
    assert run([*command.split(), "-o", "new", "--force"]) == 2
    assert "leads nowhere" in capsys.readouterr().err
    assert Path(f"new{suffix}").is_symlink()


def test_a_model_is_adopted_by_other_ledgers_than_its_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("out/privacy_ledger.json").read_bytes()
    assert run(["account", "--adopt", "out", "--ledger", "out/privacy_ledger.json", "--force"]) == 2
    assert Path("out/privacy_ledger.json").read_bytes() == before
    assert "which is read" in capsys.readouterr().err


@pytest.mark.parametrize("corpus", ["-", "/dev/stdin"])
def test_standard_input_may_be_a_file(corpus: str, here: Path) -> None:
    before = Path("corpus.txt").read_bytes()
    command = [sys.executable, "-m", "atdp_cli", "redact", corpus, "-o", "corpus.txt", "--force"]
    with Path("corpus.txt").open("rb") as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, check=False)
    assert done.returncode == 2, done.stderr
    assert Path("corpus.txt").read_bytes() == before


def test_what_lies_apart_is_written(tmp_path: Path) -> None:
    """A neighbour, a folder in a folder that is read, a name that begins alike, and standard output."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").touch()
    written = [tmp_path / "model2", tmp_path / "model" / "new", tmp_path / "mode", Path("-")]
    check_apart([tmp_path / "model", tmp_path / "missing"], written)
    with pytest.raises(UsageError, match="twice"):
        check_apart([], [tmp_path / "a", tmp_path / "model" / ".." / "a"])


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b" / "x")
    (tmp_path / "b").symlink_to(tmp_path / "a" / "x")
    check_apart([tmp_path / "a"], [tmp_path / "c"])
    with pytest.raises(InputError, match="leads nowhere"):
        check_apart([], [tmp_path / "a"])
