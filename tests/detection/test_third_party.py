"""The third party's upload of the pipeline: only files that were looked at are loaded, and none of its code runs."""

import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest

from atdp_cli.detection.scan import (
    OFFICIAL_COMMAND,
    THIRD_PARTY,
    VERSION,
    installed_pipeline,
    load_pipeline,
    pipeline_name,
    third_party_folder,
)
from atdp_cli.errors import InputError

DATA = f"{THIRD_PARTY}/{THIRD_PARTY}-{VERSION}"
INFO = f"{THIRD_PARTY}-{VERSION}.dist-info"
CODE = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"


def installed_here(folder: Path) -> None:
    place = Path(str(distribution(THIRD_PARTY).locate_file("")))
    for name in (THIRD_PARTY, INFO):
        shutil.copytree(place / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, found before the installed one."""
    installed_here(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, THIRD_PARTY, raising=False)
    return tmp_path


def byte_flipped(name: str) -> Callable[[Path], object]:
    def flip(site: Path) -> None:
        content = bytearray((site / name).read_bytes())
        content[len(content) // 2] ^= 1
        (site / name).write_bytes(content)

    return flip


CHANGES: dict[str, Callable[[Path], object]] = {
    "code": lambda site: (site / THIRD_PARTY / "__init__.py").write_text(CODE),
    "weights": byte_flipped(f"{DATA}/ner/model"),
    "configuration": byte_flipped(f"{DATA}/config.cfg"),
    "a rule of the tokenizer": byte_flipped(f"{DATA}/tokenizer"),
    "a new file": lambda site: (site / THIRD_PARTY / "more.py").write_text(CODE),
    "a file less": lambda site: (site / DATA / "tagger" / "model").unlink(),
    "no files": lambda site: shutil.rmtree(site / THIRD_PARTY),
    "a file elsewhere": lambda site: (site / DATA / "ner" / "cfg").rename(site / DATA / "ner" / "cfg2"),
    "an entry point": lambda site: (site / INFO / "entry_points.txt").write_text("[spacy_factories]\nner = more:run\n"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", [None, THIRD_PARTY])
def test_other_files_are_refused(change: str, name: str | None, site: Path) -> None:
    CHANGES[change](site)
    with pytest.raises(InputError, match="are not those of its version") as caught:
        load_pipeline(name)
    assert OFFICIAL_COMMAND in caught.value.remedy
    assert THIRD_PARTY not in sys.modules
    assert not list(site.rglob("ran"))


def test_compiled_code_is_not_run(site: Path) -> None:
    """Python believes such a file whatever the source beside it says; files of that kind are not compared."""
    source = site / "evil.py"
    source.write_text(CODE)
    compiled = importlib.util.cache_from_source(str(site / THIRD_PARTY / "__init__.py"))
    compile_it = f"import py_compile as p; p.compile({str(source)!r}, {compiled!r}, invalidation_mode=MODE)"
    mode = "p.PycInvalidationMode.UNCHECKED_HASH"
    subprocess.run([sys.executable, "-c", compile_it.replace("MODE", mode)], check=True)
    assert pipeline_name(load_pipeline()) == f"{THIRD_PARTY} {VERSION}"
    assert THIRD_PARTY not in sys.modules
    assert not list(site.parent.rglob("ran"))


def test_the_official_pipeline_goes_first(site: Path) -> None:
    (site / "en_core_web_sm-3.8.0.dist-info").mkdir()
    (site / "en_core_web_sm-3.8.0.dist-info" / "METADATA").write_text("Name: en_core_web_sm\nVersion: 3.8.0\n")
    CHANGES["weights"](site)
    assert installed_pipeline() == "en_core_web_sm"


def test_the_comparison_is_cheap() -> None:
    """15 ms; the bound leaves room for a machine that does other things."""
    began = time.process_time()
    third_party_folder()
    assert time.process_time() - began < 0.2
