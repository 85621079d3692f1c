"""Bad input: one clear line on standard error, the right exit code, nothing written, nothing secret said."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atdp_cli.cli.app import run
from tests.cli.conftest import Atdp

SECRET = "Quillfeather"


@pytest.fixture
def place(tmp_path: Path, checkpoint_folder: Path, lines: list[str]) -> Path:
    """A folder with a model and a corpus whose text holds the secret."""
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("\n".join(f"{SECRET} {line}" for line in lines[:40]) + "\n")
    return tmp_path


def write(name: str, content: bytes | str) -> Callable[[Path], object]:
    data = content.encode() if isinstance(content, str) else content
    return lambda place: (place / name).write_bytes(data)


def nothing(place: Path) -> None:
    """The damage is on the command line."""


HARDEN = ["harden", "model", "--data", "corpus.txt", "-o", "out"]
ATDP = [*HARDEN, "--recipe", "atdp"]
AUDIT = ["audit-canary", "model"]
MANIFEST = json.dumps({"schema_version": 1, "kind": "atdp-canaries", "template": "My ID is {digits:6}"})
SPANS = json.dumps({"id": "1", "spans": [{"start": 0, "end": 10**6, "label": "X", "source": "ner"}]})

CASES: dict[str, tuple[Callable[[Path], object], list[str], str]] = {
    "model missing": (nothing, ["harden", "nowhere", "--data", "corpus.txt", "-o", "out"], "nowhere is no folder"),
    "model pickled": (
        lambda place: (place / "model" / "model.safetensors").rename(place / "model" / "pytorch_model.bin"),
        HARDEN,
        "never loaded",
    ),
    "model corrupt": (write("model/model.safetensors", b"\x08" * 64), HARDEN, "not a whole safetensors file"),
    "no tokenizer": (lambda place: (place / "model" / "tokenizer.json").unlink(), HARDEN, "no tokenizer.json"),
    "corpus missing": (nothing, ["harden", "model", "--data", "nowhere.txt", "-o", "out"], "nowhere.txt"),
    "corpus empty": (write("corpus.txt", ""), HARDEN, "corpus.txt"),
    "corpus blank": (write("corpus.txt", "\n \n\n"), HARDEN, "corpus.txt"),
    "corpus not UTF-8": (write("corpus.txt", b"one\ntwo\nth\xffree\n"), HARDEN, "line 3 is not UTF-8"),
    "corpus of one record": (write("corpus.txt", SECRET), HARDEN, "single record"),
    "bad JSON Lines": (
        write("c.jsonl", '{"text": "a"}\n{"text": \n'),
        ["harden", "model", "--data", "c.jsonl", "-o", "out"],
        "line 2",
    ),
    "spans of another corpus": (write("s.jsonl", SPANS + "\n"), [*HARDEN, "--spans", "s.jsonl", "-q"], "line 1"),
    "manifest malformed": (write("m.json", MANIFEST), [*HARDEN, "--manifest", "m.json"], "m.json"),
    "output folder missing": (nothing, ["harden", "model", "--data", "corpus.txt", "-o", "a/b/out"], "a/b"),
    "output is the model": (
        write("model/privacy_ledger.json", "{}"),
        ["harden", "model", "--data", "corpus.txt", "-o", "model", "--force", "--recipe", "atdp"],
        "itself",
    ),
    "recipe unknown": (nothing, [*HARDEN, "--recipe", "magic"], "magic"),
    "epochs zero": (nothing, [*HARDEN, "--epochs", "0"], "epochs"),
    "learning rate NaN": (nothing, [*HARDEN, "--learning-rate", "nan"], "learning-rate"),
    "noise negative": (nothing, [*ATDP, "--noise-multiplier", "-1"], "noise-multiplier"),
    "clip norm zero": (nothing, [*ATDP, "--clip-norm", "0"], "clip-norm"),
    "weight above one": (nothing, [*ATDP, "--weight", "1.5"], "weight"),
    "weight a word": (nothing, [*ATDP, "--weight", "heavy"], "weight"),
    "jitter backwards": (nothing, [*ATDP, "--jitter", "1.1,0.9"], "jitter"),
    "escalation below one": (nothing, [*ATDP, "--escalation", "0.5"], "escalation"),
    "ceiling below the noise": (nothing, [*ATDP, "--sigma-max", "0.5"], "sigma-max"),
    "batch too large": (nothing, [*ATDP, "--batch-size", "1000"], "batch-size"),
    "delta too large": (nothing, [*HARDEN, "--delta", "0.1"], "delta"),
    "delta NaN": (nothing, [*HARDEN, "--delta", "nan"], "delta"),
    "target out of reach": (nothing, [*HARDEN, "--target-epsilon", "1e-9"], "cannot be reached"),
    "target negative": (nothing, [*HARDEN, "--target-epsilon", "-2"], "target-epsilon"),
    "target without a DP stage": (nothing, [*HARDEN, "--recipe", "no-dp", "--target-epsilon", "2"], "no DP stage"),
    "target and noise": (nothing, [*ATDP, "--target-epsilon", "2", "--noise-multiplier", "1"], "--target-epsilon"),
    "target and ceiling": (nothing, [*ATDP, "--target-epsilon", "2", "--sigma-max", "9"], "contradict"),
    "more than the budget": (nothing, [*ATDP, "--max-epsilon", "0.1"], "--max-epsilon"),
    "max-records one": (nothing, [*HARDEN, "--max-records", "1"], "max-records"),
    "windows zero": (nothing, [*HARDEN, "--max-windows-per-unit", "0"], "max-windows-per-unit"),
    "budget without noise": (nothing, [*HARDEN, "--recipe", "no-dp+atdp", "--max-epsilon", "50"], "without noise"),
    "corpus twice": (nothing, [*HARDEN, "--data", "./corpus.txt"], "twice"),
    "users over two files": (
        lambda place: [write(name, '{"text": "a", "user": "u"}\n')(place) for name in ("a.jsonl", "b.jsonl")],
        ["harden", "model", "--data", "a.jsonl", "--data", "b.jsonl", "--unit", "user", "-o", "out"],
        "one --data file",
    ),
    "users on both sides": (
        lambda place: [write(name, '{"text": "a", "user": "u"}\n' * 2)(place) for name in ("a.jsonl", "b.jsonl")],
        ["harden", "model", "--data", "a.jsonl", "--valid", "b.jsonl", "--unit", "user", "-o", "out"],
        "have values of user in common",
    ),
    "standard input": (nothing, ["harden", "model", "--data", "-", "-o", "out"], "read more than once"),
    "a folder of terms": (lambda place: (place / "terms").mkdir(), [*HARDEN, "--allow", "terms"], "terms is no file"),
    "noise that protects nothing": (nothing, [*ATDP, "--noise-multiplier", "0.0001"], "thousands"),
    "markup in a name": (nothing, ["audit-canary", "[/x]", "--canary", "ID 123"], "[/x] is no folder"),
    "dtype unknown": (nothing, [*HARDEN, "--dtype", "int4"], "dtype"),
    "threads zero": (nothing, [*HARDEN, "--threads", "0"], "threads"),
    "jobs zero": (nothing, [*HARDEN, "--jobs", "0"], "jobs"),
    "set without a stage": (nothing, [*HARDEN, "--set", "epochs=1"], "--set"),
    "reference that nothing reads": (nothing, [*ATDP, "--reference", "model"], "--reference"),
    "noise that the default has not": (nothing, [*HARDEN, "--noise-multiplier", "2"], "Add --recipe atdp"),
    "budget of the default": (nothing, [*HARDEN, "--max-epsilon", "9"], "as --recipe atdp"),
    "unit without a field": (nothing, [*HARDEN, "--unit", "user"], "unit"),
    "unknown option": (nothing, [*HARDEN, "--frobnicate"], "--frobnicate"),
    "audit without canaries": (nothing, AUDIT, "plant-canary"),
    "audit of nothing": (nothing, ["audit-canary", "nowhere", "--canary", "ID 123"], "nowhere is no folder"),
    "canary without digits": (nothing, [*AUDIT, "--canary", "hello"], "digits"),
    "manifest and canary": (nothing, [*AUDIT, "--canary", "ID 123", "--manifest", "corpus.txt"], "exclude"),
    "manifest missing": (nothing, [*AUDIT, "--manifest", "nowhere.json"], "nowhere.json"),
    "alpha zero": (nothing, [*AUDIT, "--canary", "ID 123", "--alpha", "0"], "alpha"),
    "exposure negative": (nothing, [*AUDIT, "--canary", "ID 123", "--max-exposure", "-1"], "exposure"),
    "template without a slot": (
        nothing,
        ["plant-canary", "corpus.txt", "-o", "out", "--manifest", "m.json", "--tokenizer", "model", "--template", "hi"],
        "slot",
    ),
    "manifest over the corpus": (
        nothing,
        ["plant-canary", "corpus.txt", "-o", "p.txt", "--manifest", "p.txt", "--tokenizer", "model"],
        "one file",
    ),
    "manifest into nowhere": (
        nothing,
        ["plant-canary", "corpus.txt", "-o", "p.txt", "--manifest", "no/m.json", "--tokenizer", "model"],
        "no is not a folder",
    ),
    "corpus into nowhere": (
        nothing,
        ["plant-canary", "corpus.txt", "-o", "no/p.txt", "--manifest", "m.json", "--tokenizer", "model"],
        "no is not a folder",
    ),
    "planted into another format": (
        nothing,
        ["plant-canary", "corpus.txt", "-o", "p.jsonl", "--manifest", "m.json", "--tokenizer", "model"],
        "p.jsonl",
    ),
    "no repeats": (
        nothing,
        ["plant-canary", "corpus.txt", "-o", "out", "--manifest", "m.json", "--tokenizer", "model", "--repeats", "0"],
        "repeats",
    ),
    "account of nothing": (nothing, ["account"], "--sample-rate"),
    "account of a folder without a ledger": (nothing, ["account", "model"], "ledger"),
    "account of a corpus": (nothing, ["account", "corpus.txt"], "not a ledger"),
    "rate above one": (
        nothing,
        ["account", "--sample-rate", "2", "--noise-multiplier", "1", "--steps", "1"],
        "sample-rate",
    ),
    "steps zero": (nothing, ["account", "--sample-rate", "0.1", "--noise-multiplier", "1", "--steps", "0"], "steps"),
    "ledger and parameters": (nothing, ["account", "model", "--steps", "3"], "exclude"),
    "detect nothing": (nothing, ["detect", "nowhere.txt"], "nowhere.txt"),
    "detect what is not UTF-8": (write("corpus.txt", b"\xff\n"), ["detect", "corpus.txt"], "line 1 is not UTF-8"),
    "pipeline missing": (nothing, ["detect", "corpus.txt", "--spacy-pipeline", "xx_none"], "xx_none"),
    "regular expression broken": (write("deny.txt", "/(/\n"), ["detect", "corpus.txt", "--deny", "deny.txt"], "line 1"),
    "CSV without the column": (
        write("c.csv", "id,body\n1,a\n"),
        ["detect", "c.csv"],
        "no column text; it has id, body",
    ),
    "CSV row too short": (
        write("c.csv", f"id,text\n1,{SECRET}\n{SECRET}\n"),
        ["redact", "c.csv", "-o", "out.csv"],
        "line 3: the row has 1 fields, the header 2",
    ),
    "CSV for hardening": (
        write("c.csv", f'text\n"{SECRET}\n'),
        ["harden", "model", "--data", "c.csv", "-o", "out"],
        "begins on line 2 is never closed",
    ),
    "Parquet damaged": (write("c.parquet", SECRET), ["redact", "c.parquet", "-o", "o.parquet"], "not Parquet"),
    "Parquet compressed again": (write("c.parquet.gz", SECRET), ["detect", "c.parquet.gz"], "compressed inside"),
    "nothing left to skip to": (write("c.txt", b"\xff\n"), ["detect", "c.txt", "--skip-bad"], "holds no records"),
    "redact into another format": (nothing, ["redact", "corpus.txt", "-o", "out.jsonl"], "out.jsonl"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(place: Path, name: str, atdp: Atdp, monkeypatch: pytest.MonkeyPatch) -> None:
    damage, command, said = CASES[name]
    damage(place)
    monkeypatch.chdir(place)
    before = {path.name for path in place.iterdir()}
    ended = atdp(*command)
    assert ended.code == 2, ended.err
    assert said in ended.err
    if name != "unknown option":
        assert ended.err.splitlines()[-1].startswith("atdp: ")
        assert ended.err.count("atdp: ") == 1
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert SECRET not in ended.err
    assert {path.name for path in place.iterdir()} == before


def test_nan_weights_are_refused(place: Path, atdp: Atdp, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(place / "model" / "model.safetensors")
    tensors["transformer.wpe.weight"][0, 0] = torch.nan
    save_file(tensors, place / "model" / "model.safetensors", metadata={"format": "pt"})
    monkeypatch.chdir(place)
    ended = atdp(*HARDEN)
    assert ended.code == 2
    assert "not finite" in ended.err
    assert not (place / "out").exists()


def test_a_manifest_for_another_corpus_is_refused(
    place: Path, atdp: Atdp, fixed_manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    ended = atdp(*HARDEN, "--manifest", fixed_manifest)
    assert ended.code == 2
    assert "10 of 10 canaries" in ended.err
    assert not list(place.glob("out*"))


def test_a_defect_of_ours_never_looks_like_a_failed_audit(
    atdp: Atdp, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong inside, the exit code is 3 and no library's message, which may quote a record, is shown."""
    from atdp_cli.jobs import detect as text

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(text, "detect_corpus", broken)
    ended = atdp("detect", place / "corpus.txt")
    assert ended.code == 3
    assert "ZeroDivisionError" in ended.err
    assert SECRET not in ended.err


def test_an_interruption_ends_with_130(atdp: Atdp, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from atdp_cli.jobs import detect as text

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(text, "detect_corpus", interrupted)
    assert atdp("detect", place / "corpus.txt").code == 130


@pytest.mark.parametrize(
    ("command", "unloaded"),
    [
        (["--help"], ("torch", "spacy", "transformers", "dp_accounting", "numpy")),  # options are models of pydantic
        (["harden", "--help"], ("torch", "spacy", "transformers")),
        (["account", "--sample-rate", "0.1", "--noise-multiplier", "1", "--steps", "2"], ("torch", "spacy", "opacus")),
    ],
)
def test_heavy_libraries_stay_unloaded(command: list[str], unloaded: tuple[str, ...]) -> None:
    code = (
        "import sys; from atdp_cli.cli.app import run\n"
        "if run(sys.argv[2:]): sys.exit('failed')\n"
        "sys.exit(' '.join(name for name in sys.argv[1].split() if name in sys.modules) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, " ".join(unloaded), *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.ci
def test_what_is_refused_at_once_loads_no_torch(place: Path) -> None:
    code = "import sys; from atdp_cli.cli.app import run; sys.exit(run(sys.argv[1:]) != 2 or 'torch' in sys.modules)"
    command = ["harden", "model", "--data", "corpus.txt", "--store", "not-called-private"]
    assert subprocess.run([sys.executable, "-c", code, *command], cwd=place, check=False).returncode == 0


@pytest.mark.deep
def test_a_closed_pipe_is_not_a_failed_audit(place: Path) -> None:
    code = "import sys; from atdp_cli.cli.app import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "audit-canary", "model", "--canary", "My ID is 341", "--max-exposure", "9.9"]
    read, write_end = os.pipe()
    os.close(read)
    try:
        closed = subprocess.run(command, cwd=place, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write_end)
    open_pipe = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert (open_pipe.returncode, closed.returncode) == (0, 3), open_pipe.stderr + closed.stderr
    assert "Traceback" not in closed.stderr


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    from atdp_cli import __version__

    assert run(["--version"]) == 0
    assert capfd.readouterr().out == f"atdp {__version__}\n"
