"""A run whose filter flags nothing says so: in its plan, and to the owner of the records."""

import json
from pathlib import Path

from tests.cli.conftest import Atdp


def test_a_filter_that_flags_nothing_protects_nothing(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    """In a recipe file of somebody else, as on the command line."""
    first = ["--data", corpus, "--recipe", "decoys", "--epochs", "1", "--tune", "none", "--json", "-q"]
    first += ["--checkpoint-history", "public", "--entities", "CRYPTO", "--set", "run.store=none"]
    out = tmp_path / "out"
    ended = atdp("harden", checkpoint_folder, *first, "-o", out)
    assert ended.code == 0, ended.err
    private = json.loads((tmp_path / "out.private" / "privacy_report.json").read_text())
    assert (private["flagged_spans"], private["flagged_share"]) == (0, 0)
    assert private["release"]["verdict"] == "not-releasable"
    assert private["public"]["release"]["verdict"] == "not-audited"
    assert "(labels CRYPTO only)" in private["public"]["release"]["reason"]
    assert "(labels CRYPTO only)" in (out / "README.md").read_text()
    again = ["--data", corpus, "--recipe", out / "recipe.toml", "--checkpoint-history", "public", "--dry-run"]
    planned = atdp("harden", checkpoint_folder, *again, "--set", "run.store=none", "--json")
    assert planned.json["kept"] == "labels CRYPTO only"
    assert planned.json["advice"][0] == "0.0% of the text is flagged: hardly anything is protected."


ARABIC = "مرحبا، طلبت طردا قبل ثلاثة أسابيع ولم يصل حتى الآن. هل يمكنكم أن تخبروني أين هو ومتى يصل؟ رقم الطلب"


def test_a_corpus_that_the_detector_cannot_read_is_in_the_verdict(
    atdp: Atdp, checkpoint_folder: Path, tmp_path: Path
) -> None:
    """A number is flagged here and there, and no name is."""
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out"
    corpus.write_text("".join(f"{ARABIC} {100 + number}\n" for number in range(40)) + f"{ARABIC} 7310558204\n")
    first = ["--data", corpus, "--recipe", "decoys", "--epochs", "1", "--tune", "none", "--json", "-q"]
    ended = atdp("harden", checkpoint_folder, *first, "--checkpoint-history", "public", "-o", out)
    assert ended.code == 0, ended.err
    private = json.loads((tmp_path / "out.private" / "privacy_report.json").read_text())
    said = "The text looks like Arabic script, and the pipeline reads English: most names are missed."
    assert private["missed_names"] == said
    assert private["release"]["reason"].startswith(said)
    assert f"{private['flagged_share']:.1%} of the text is flagged" in private["release"]["reason"]
    assert "Arabic" not in (out / "README.md").read_text() + (out / "privacy_report.json").read_text()
