"""Nothing that is given to atdp is run: no pickle is loaded, no code of a checkpoint is imported."""

import ast
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.errors import InputError
from atdp_cli.model.checkpoint import load_checkpoint
from tests.cli.badinput.case import line
from tests.cli.conftest import Atdp, atdp

__all__ = ["atdp"]

PACKAGE = Path(__file__).parent.parent.parent / "atdp_cli"

OWN_WORKERS = "detection/run_on.py"
"""Its pickles are made here, for workers that Ray starts; workers answer in pickles as well."""

CLIENT = "detection/crosscheck/client.py"
"""Asks the server that a user named."""

LOADERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
CONNECTING = {"socket", "ssl", "http", "urllib.request", "urllib3", "requests", "httpx", "aiohttp", "openai"}

KNOWN = (
    *("pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt", "model.pth", "model.ckpt", "model.pkl"),
    *("model.pickle", "weights.pkl", "training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt"),
    *("scaler.pt", "rng_state.pth", "rng_state_0.pth", "adapter_model.bin", "adapter_model.pt", "tokenizer.pkl"),
    *("tokenizer.pickle", "tokenizer.model", "vocab.pkl", "vocab.bin", "sentencepiece.bpe.model", "spm.model"),
    *("tf_model.h5", "flax_model.msgpack", "data.pkl", "generation_config.pkl", "custom_generate.pkl"),
)
"""Names under which trainers and hubs keep pickles, and those of which loaders take what they find."""


class Bait:
    """What creates a file when it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return Path.touch, (self.trace,)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The file that is there once something was run."""
    return tmp_path / "was-run"


@pytest.fixture
def place(tmp_path: Path, checkpoint_folder: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and a corpus."""
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("\n".join(lines[:40]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sources() -> list[tuple[str, ast.Module]]:
    """Each module of the package as a tree."""
    return [
        (file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text(encoding="utf-8")))
        for file in sorted(PACKAGE.rglob("*.py"))
    ]


def imported(tree: ast.Module) -> set[str]:
    """The modules that are imported anywhere in a module."""
    actual = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return actual | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


def called(tree: ast.Module) -> list[tuple[str, dict[str, str]]]:
    """Each call as the source has it: the function, and its keywords' values."""
    return [
        (ast.unparse(node.func), {word.arg or "**": ast.unparse(word.value) for word in node.keywords})
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    ]


@pytest.mark.ci
def test_no_module_runs_what_it_reads() -> None:
    for name, tree in sources():
        roots = {module.split(".")[0] for module in imported(tree)}
        assert not roots & LOADERS or name == OWN_WORKERS, name
        for function, keywords in called(tree):
            where = f"{name}: {function}"
            assert function not in {"eval", "exec", "torch.load", "torch.hub.load"}, where
            assert function not in {"np.load", "numpy.load"} or keywords.get("allow_pickle") == "False", where
            assert keywords.get("trust_remote_code", "False") == "False", where
            if function.endswith(".from_pretrained") and not function.startswith("PeftModel"):
                assert keywords.get("trust_remote_code") == "False", where
                assert keywords.get("local_files_only") == "True", where
        if name not in (CLIENT, OWN_WORKERS):
            assert not (roots | imported(tree)) & CONNECTING, name


@pytest.mark.ci
def test_a_pickle_under_any_known_name_is_not_loaded(place: Path, trace: Path, atdp: Atdp) -> None:
    bait = pickle.dumps(Bait(trace))
    pickle.loads(bait)  # noqa: S301 - the bait works
    trace.unlink()
    for name in KNOWN:
        (place / "model" / name).write_bytes(bait)
    shutil.copytree(place / "model", place / "reference")
    load_checkpoint(Path("model"))
    for command, code in (
        (line("harden model --data corpus.txt -o out --epochs 1 --set run.store=none"), 0),
        (("audit-canary", "model", "--reference", "reference", "--canary", "My ID is 49"), 4),
        (line("plant-canary corpus.txt -o planted.txt --manifest m.json --tokenizer model --count 1"), 0),
    ):
        assert atdp(*command).code == code
    assert not trace.exists()


@pytest.mark.parametrize("name", KNOWN)
def test_a_pickle_in_the_weights_place_is_refused(name: str, place: Path, trace: Path) -> None:
    (place / "model" / "model.safetensors").unlink()
    (place / "model" / name).write_bytes(pickle.dumps(Bait(trace)))
    with pytest.raises(InputError, match=r"never loaded|has no model\.safetensors"):
        load_checkpoint(place / "model")
    assert not trace.exists()


def test_a_pickle_called_safetensors_is_refused(place: Path, trace: Path) -> None:
    (place / "model" / "model.safetensors").write_bytes(pickle.dumps(Bait(trace)))
    with pytest.raises(InputError, match="not a whole safetensors file"):
        load_checkpoint(place / "model")
    assert not trace.exists()


def test_a_checkpoints_code_is_not_run(place: Path, trace: Path) -> None:
    evil = f"from pathlib import Path\nPath({str(trace)!r}).touch()\n"
    for name in ("evil", "modeling_evil", "configuration_evil", "tokenization_evil", "custom_generate"):
        (place / "model" / f"{name}.py").write_text(evil)
    load_checkpoint(place / "model")
    for file, auto_map in (
        ("config.json", {"AutoConfig": "evil.A", "AutoModelForCausalLM": "evil.B"}),
        ("tokenizer_config.json", {"AutoTokenizer": ["evil.C", "evil.D"]}),
    ):
        whole = (place / "model" / file).read_text()
        (place / "model" / file).write_text(json.dumps(json.loads(whole) | {"auto_map": auto_map}))
        with pytest.raises(InputError, match="code of its own"):
            load_checkpoint(place / "model")
        (place / "model" / file).write_text(whole)
    assert not trace.exists()
