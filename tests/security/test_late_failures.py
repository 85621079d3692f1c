"""What the end of a run needs is tried before its first step: a checkpoint that cannot be saved is refused then."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.cli.app import run
from atdp_cli.reporting.card import inherited_card
from atdp_cli.reporting.document import CardEntry

Damage = Callable[[Path], object]


def changed(name: str, **settings: Any) -> Damage:
    """Puts settings into a JSON file of the folder, which is made where it is not there."""

    def change(folder: Path) -> None:
        known = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
        (folder / name).write_text(json.dumps(known | settings))

    return change


def templates(**named: Any) -> Damage:
    return changed("tokenizer_config.json", chat_template=[{"name": n, "template": t} for n, t in named.items()])


def extra_template(name: str) -> Damage:
    def write(folder: Path) -> None:
        (folder / "additional_chat_templates").mkdir()
        (folder / "additional_chat_templates" / name).write_text("{{ messages }}")

    return write


HALF = "\ud800"
"""Half of a pair: JSON can name it, and no UTF-8 file can hold it."""


def another_tokenizer(folder: Path) -> None:
    """The tokenizer that is loaded is not the one in tokenizer.json."""
    shutil.copy(folder / "tokenizer.json", folder / "tokenizer.4.0.0.json")
    changed("tokenizer_config.json", fast_tokenizer_files=["tokenizer.json", "tokenizer.4.0.0.json"])(folder)


CANNOT_END: dict[str, Damage] = {
    "template named ../x": templates(**{"default": "a", "../x": "b"}),
    "template named ../../x": templates(**{"../../x": "b"}),
    "template with an absolute name": templates(**{"/tmp/x": "b"}),  # noqa: S108 - is never written
    "template in a folder": templates(**{"a/b": "b"}),
    "template named ..": templates(**{"..": "b"}),
    "template with a NUL": templates(**{"a\0b": "b"}),
    "template with a line feed": templates(**{"a\nb": "b"}),
    "template with an escape": templates(**{"a\x1b[2Jb": "b"}),
    "template with a long name": templates(**{"a" * 300: "b"}),
    "template that is a number": templates(default=5),
    "template of half a pair": templates(default=HALF),
    "templates by name": changed("tokenizer_config.json", chat_template={"../x": "b"}),
    "templates without names": changed("tokenizer_config.json", chat_template=[{"template": "b"}]),
    "file of a template with an escape": extra_template("a\x1b[2Jb.jinja"),
    "half a pair for the tokenizer": changed("tokenizer_config.json", note=HALF),
    "beams that generation refuses": changed("generation_config.json", num_beams=1, num_return_sequences=7),
    "stopping that generation refuses": changed("generation_config.json", early_stopping="x"),
    "cache that generation refuses": changed("generation_config.json", cache_implementation="x"),
    "another file of the tokenizer": another_tokenizer,
}


def harden(model: Path, corpus: Path, out: Path, *options: str) -> int:
    """Harden with a recipe that takes two steps; the exit code."""
    quick = [
        "--recipe",
        "no-dp",
        "--epochs",
        "1",
        "--set",
        "run.max-records=40",
        "--set",
        "run.threads=1",
        "--set",
        "run.insecure-seed=1",
    ]
    return run(["harden", str(model), "--data", str(corpus), "-o", str(out), *quick, "-q", *options])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CANNOT_END)
def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_first_step(
    name: str, tmp_path: Path, checkpoint_folder: Path, corpus: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    CANNOT_END[name](tmp_path / "model")
    capfd.readouterr()
    assert harden(tmp_path / "model", corpus, tmp_path / "out", "--set", "run.checkpoint-every=0") == 2
    said = capfd.readouterr().err
    assert len(said.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


DEEP = 3_000
CARDS = {
    "nested flow": "a: " + "[" * DEEP + "]" * DEEP,
    "nested mapping": "a: " + "{a: " * DEEP + "1" + "}" * DEEP,
    "nested blocks": "\n".join(" " * at + "a:" for at in range(DEEP)),
    "nested sequence": "a:\n  " + "- " * DEEP + "1",
    "merged keys": "\n".join(
        ["a0: &a0 {x: 1}", *(f"a{at}: &a{at} {{<<: [{', '.join([f'*a{at - 1}'] * 9)}]}}" for at in range(1, 12))]
    ),
    "a number too large": f"a: {':'.join(['1'] * 400)}.0",
    "digits": f"a: {'9' * 50_000}",
    "line feeds": "\n" * 500_000,
    "an impossible date": "a: 2001-99-99",
    "a list as a key": "? [a]\n: 1",
    "a tag": "a: !!python/object/apply:os.system [true]",
    "a value that is none": "a: =",
    "an empty number": "a: !!int ''",
    "no truth": "a: !!bool maybe",
    "no time": "a: !!timestamp never",
    "no text": "a: \udcff",
}


@pytest.mark.parametrize("name", CARDS)
def test_front_matter_is_read_in_time_or_left_out(name: str, tmp_path: Path) -> None:
    content = f"---\nlicense: mit\n{CARDS[name]}\n---\n# A model\n"
    (tmp_path / "README.md").write_bytes(content.encode("utf-8", "surrogateescape"))
    began = time.process_time()
    card = inherited_card(tmp_path, encoder=False, adapter=False)
    assert card in (CardEntry(), CardEntry(license="mit"))
    assert time.process_time() - began < 1


@pytest.mark.ci
def test_a_run_from_a_checkpoint_with_deep_front_matter_ends(
    tmp_path: Path, checkpoint_folder: Path, corpus: Path
) -> None:
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text(f"---\n{CARDS['nested flow']}\n---\n")
    assert harden(tmp_path / "model", corpus, tmp_path / "out") == 0


def test_a_card_of_many_bytes_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "README.md").open("wb") as stream:
        stream.write(b"---\nlicense: mit\n---\n")
        stream.truncate(1 << 40)  # a hole: it takes no room
    assert inherited_card(tmp_path, encoder=False, adapter=False).license == "mit"
