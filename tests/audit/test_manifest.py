"""The manifest: its file, its errors, and the tokens it expects."""

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, pre_tokenizers

from atdp_cli.audit.canary import Target, parse_template
from atdp_cli.audit.draw import draw_secrets, plant
from atdp_cli.audit.manifest import Manifest, make_manifest, read_manifest, token_mismatch, write_manifest
from atdp_cli.errors import InputError
from atdp_cli.model.windows import encode_record, tokenizer_fingerprint

ID = parse_template("My ID is {digits:6}")
CORPUS = [f"line {number}" for number in range(20)]


@pytest.fixture
def manifest(bpe: Any) -> Manifest:
    secrets = draw_secrets(ID, 3)
    _planted, positions = plant(CORPUS, ID, secrets, 4)
    return make_manifest(bpe, ID, secrets, positions, repeats=(4,) * 3, others=None, records=32, drawn="csprng")


def test_a_manifest_survives_its_file(manifest: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "canaries.json"
    path.write_text("an older file, open to all")
    path.chmod(0o644)
    write_manifest(path, manifest)
    assert read_manifest(path) == manifest
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["canaries.json"]
    written = json.loads(path.read_text())
    assert (written["schema_version"], written["kind"], written["drawn"]) == (1, "atdp-canaries", "csprng")
    assert set(written["canaries"][0]) == {"secret", "planted", "repeats", "token_ids", "positions"}


def test_a_manifest_plants_again(manifest: Manifest) -> None:
    secrets = [canary.secret for canary in manifest.canaries]
    positions = [canary.positions for canary in manifest.canaries]
    planted, places = plant(CORPUS, ID, secrets, [canary.repeats for canary in manifest.canaries], positions=positions)
    assert list(places) == positions
    assert sum(line.startswith("My ID is ") for line in planted) == 12


def test_targets_are_places_in_the_pool(manifest: Manifest) -> None:
    assert manifest.calibrated
    assert manifest.targets() == tuple(Target(index=int(canary.secret[0]), repeats=4) for canary in manifest.canaries)


def test_a_manifest_shown_by_accident_keeps_its_secrets(manifest: Manifest) -> None:
    for canary in manifest.canaries:
        assert canary.secret[0] not in repr(manifest)
        assert str(canary.token_ids[-1]) not in repr(canary)


SECRET = "341752"
GOOD: dict[str, Any] = {
    "schema_version": 1,
    "kind": "atdp-canaries",
    "template": "My ID is {digits:6}",
    "choices": {},
    "canaries": [{"secret": [SECRET], "planted": True, "repeats": 2, "token_ids": [1, 2], "positions": [3, 5]}],
    "tokenizer_sha256": "0" * 64,
    "records": 7,
    "coins": False,
    "drawn": "csprng",
}


def _canary(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "canaries": [{**GOOD["canaries"][0], **changes}]}


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


MALFORMED: list[bytes] = [
    b"",
    b"not json",
    b"\xff\xfe",
    b"[]",
    b"null",
    b"1",
    b"[" * 5000,
    json.dumps(GOOD).encode()[:-1],
    *(
        json.dumps(value).encode()
        for value in (
            *(_without(key) for key in GOOD),
            {**GOOD, "schema_version": 2},
            {**GOOD, "schema_version": "1"},
            {**GOOD, "kind": "atdp-ledger"},
            {**GOOD, "template": "My ID is " + SECRET},
            {**GOOD, "template": "{digits:9}"},
            {**GOOD, "template": "{choice:f}{digits:6}"},
            {**GOOD, "choices": {"f": SECRET}},
            {**GOOD, "coins": None},
            {**GOOD, SECRET: 1},
            {**GOOD, "canaries": {}},
            {**GOOD, "canaries": [SECRET]},
            {**GOOD, "tokenizer_sha256": "abc"},
            {**GOOD, "records": 0},
            {**GOOD, "records": 1},
            {**GOOD, "drawn": "dice"},
            _canary(secret=[SECRET[:5]]),
            _canary(secret=[SECRET + "a"]),
            _canary(secret=SECRET),
            _canary(secret=[341752]),
            _canary(secret=[]),
            _canary(secret=[SECRET, SECRET]),
            _canary(planted=False),
            _canary(planted=False, positions=[]),
            _canary(other=["493021"]),
            _canary(planted=False, other=["12"]),
            _canary(planted=1),
            _canary(repeats=3),
            _canary(repeats=0, positions=[]),
            _canary(repeats="2"),
            _canary(positions=[3, 3]),
            _canary(positions=[0, 3]),
            _canary(positions=["a", SECRET]),
            _canary(token_ids=[]),
            _canary(token_ids=[-1]),
            _canary(token_ids=[1.5]),
            _canary(extra=SECRET),
            {**GOOD, "canaries": [GOOD["canaries"][0], GOOD["canaries"][0]]},
        )
    ),
]


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_manifest_is_one_line_that_quotes_no_secret(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "canaries.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_manifest(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert str(path) in message
    assert "34175" not in message


def test_the_good_manifest_of_these_tests_is_good(tmp_path: Path) -> None:
    path = tmp_path / "canaries.json"
    path.write_text(json.dumps(GOOD))
    assert read_manifest(path).canaries[0].secret == (SECRET,)


def test_a_missing_manifest_or_folder_is_an_input_error(manifest: Manifest, tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError):
            read_manifest(path)
    for path in (tmp_path / "no" / "folder.json", tmp_path):
        with pytest.raises(InputError) as caught:
            write_manifest(path, manifest)
        assert len(str(caught.value).splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_tokens_agree_with_the_tokenizer_they_were_planted_for(manifest: Manifest, bpe: Any, characters: Any) -> None:
    assert token_mismatch(manifest, bpe) is None
    assert "other tokens" in str(token_mismatch(manifest, characters))


def test_a_tokenizer_that_splits_other_candidates_otherwise_is_noticed(manifest: Manifest, bpe: Any) -> None:
    changed = _copy(bpe)
    changed.add_tokens([AddedToken("QQ", normalized=False)])
    assert "another tokenizer" in str(token_mismatch(manifest, changed))


def test_the_fingerprint_outlives_saving_padding_and_special_tokens(bpe: Any, tmp_path: Path) -> None:
    before = tokenizer_fingerprint(bpe)
    saved = _copy(bpe, tmp_path)
    assert tokenizer_fingerprint(saved) == before
    saved.add_special_tokens({"pad_token": "[PAD]"})
    saved(["a", "b c"], padding=True, truncation=True, max_length=5)
    assert tokenizer_fingerprint(saved) == before
    saved.backend_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    assert tokenizer_fingerprint(saved) != before


def test_a_record_starts_with_the_beginning_token_where_there_is_one(bpe: Any, characters: Any) -> None:
    text = "My ID is 12"
    assert encode_record(bpe, text) == [bpe.bos_token_id, *bpe(text, add_special_tokens=False).input_ids]
    assert bpe.decode(encode_record(bpe, text)[1:]) == text
    assert encode_record(characters, "01") == characters("01", add_special_tokens=False).input_ids


def test_the_manifest_needs_no_torch() -> None:
    code = "import sys, atdp_cli.audit.manifest, atdp_cli.audit.verdict; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _copy(tokenizer: Any, folder: Path | None = None) -> Any:
    if folder is None:
        return type(tokenizer)(
            tokenizer_object=type(tokenizer.backend_tokenizer).from_str(tokenizer.backend_tokenizer.to_str()),
            bos_token=tokenizer.bos_token,
        )
    tokenizer.save_pretrained(folder)
    return type(tokenizer).from_pretrained(folder)
