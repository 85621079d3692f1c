"""No path in an index, a ledger or a manifest leads out of its folder."""

import json
import shutil
from pathlib import Path

import pytest

from atdp_cli.audit.manifest import read_manifest
from atdp_cli.errors import InputError
from atdp_cli.files.checkpoint_names import checkpoint_files
from atdp_cli.files.documents import file_sha256
from atdp_cli.model.folder import check_folder
from atdp_cli.privacy.ledger import LEDGER_FILE, read_verified, write_ledger
from tests.privacy.ledgers import ledger, steps

OUTSIDE = ("../{}", "./../{}", "model/../../{}", "..", "/{}", "//{}", "sub/{}", "./{}", "..\\{}", "{}\0.safetensors")


@pytest.fixture
def model(tmp_path: Path, checkpoint_folder: Path) -> Path:
    """A model's folder with the same weights outside of it."""
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    (tmp_path / "model" / "sub").mkdir()
    for folder in (tmp_path, tmp_path / "model" / "sub"):
        shutil.copy(tmp_path / "model" / "model.safetensors", folder / "outside.safetensors")
    return tmp_path / "model"


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_names_files_of_its_folder_alone(name: str, model: Path) -> None:
    named = name.format("outside.safetensors" if not name.startswith("/") else model.parent / "outside.safetensors")
    (model / "model.safetensors").unlink()
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": named}}))
    with pytest.raises(InputError, match="which is not in the folder"):
        check_folder(model)


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_ledgers_seal_is_of_its_folder_alone(name: str, model: Path) -> None:
    """Even where the hash is that of the file outside."""
    named = name.format("outside.safetensors" if not name.startswith("/") else model.parent / "outside.safetensors")
    inside = file_sha256(model / "model.safetensors")
    sealed = {file: file_sha256(path) for file, path in checkpoint_files(model).items()}
    write_ledger(model / LEDGER_FILE, ledger(steps(0.1, 1.0, 9)).model_copy(update={"seal": sealed}))
    assert read_verified(model).seal == sealed
    write_ledger(model / LEDGER_FILE, ledger(steps(0.1, 1.0, 9)).model_copy(update={"seal": sealed | {named: inside}}))
    with pytest.raises(InputError, match="is not what it sealed"):
        read_verified(model)


def test_a_manifest_names_no_file_that_is_opened(tmp_path: Path) -> None:
    """A template's choices stand in the manifest; the file that they came from is not looked for."""
    (tmp_path / "names.txt").write_text("Emma\nOmar\n")
    canary = {"secret": ["Emma"], "planted": True, "repeats": 1, "token_ids": [1], "positions": [1]}
    members = {
        "schema_version": 1,
        "kind": "atdp-canaries",
        "template": f"{{choice:{tmp_path / 'names.txt'}}}",
        "canaries": [canary],
        "tokenizer_sha256": "0" * 64,
        "records": 9,
        "coins": False,
        "drawn": "csprng",
    }
    (tmp_path / "m.json").write_text(json.dumps(members | {"choices": {}}))
    with pytest.raises(InputError, match="malformed"):
        read_manifest(tmp_path / "m.json")
