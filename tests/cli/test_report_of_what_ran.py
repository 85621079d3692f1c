"""What a run publishes names clipping, noise, sampling and an accountant only where it had them."""

import json
import re
from pathlib import Path

import pytest

from atdp_cli.privacy.ledger import SubsampledGaussian, private_events, read_ledger
from atdp_cli.reporting.html import VERDICTS
from atdp_cli.reporting.verify import verify
from tests.cli.conftest import Atdp, Harden
from tests.reporting.test_html import page_of

WORDS = {
    "clipping": r"clipped record by record|ghost|agreed with clipping",
    "noise": r"AES-256|floating|Noise:|insecure seed: nothing",
    "accountant": r"PLD \(|privacy loss distributions",
    "sampling": r"Poisson|which records each step drew|the sample of every step",
    "increment": r"increment",
}
"""What a public file may say only of a run that had it."""

HAD = {
    "base": set[str](),
    "no-dp": set[str](),
    "redacted": set[str](),
    "decoys": set[str](),
    "fitted-decoys": {"noise", "accountant", "increment"},
    "noise": {"noise"},
    "dp-sgd": set(WORDS),
    "redacted+dp-sgd": set(WORDS),
}


def prose(html: str) -> str:
    """A page's words without its table heads and captions, which name columns and not what happened."""
    return re.sub(r"<(thead|caption|style)\b.*?</\1>", " ", html, flags=re.DOTALL)


def reported(text: str) -> set[str]:
    """What a text speaks of."""
    return {name for name, words in WORDS.items() if re.search(words, text)}


@pytest.mark.ci
@pytest.mark.parametrize("recipe", HAD)
def test_a_run_publishes_what_it_had_and_nothing_else(
    atdp: Atdp, harden: Harden, checkpoint_folder: Path, tmp_path: Path, recipe: str
) -> None:
    epochs = () if recipe == "base" else ("--epochs", 1)
    asked = (
        "--recipe",
        recipe,
        "--checkpoint-history",
        "public",
        "--tier",
        "low-entity",
        "--set",
        "run.max-records=60",
        *epochs,
    )
    ended = harden(*asked)
    assert ended.code == 0, ended.err
    out, had = tmp_path / "out", HAD[recipe]
    assert verify(out) == ()
    report = json.loads((out / "privacy_report.json").read_text())
    spent = private_events(read_ledger(out / "privacy_ledger.json").events)
    assert bool(spent) is ("accountant" in had)
    assert any(isinstance(event, SubsampledGaussian) for event in spent) is ("sampling" in had)

    assert ("ghost" in ended.err) is ("clipping" in had)
    renderings = {
        "html": prose((out / "privacy_report.html").read_text()),
        "card": (out / "README.md").read_text(),
        "terminal": atdp("report", out).out,
    }
    for name, text in renderings.items():
        assert reported(text) <= had, (name, reported(text) - had)
    verdict = f"{VERDICTS[report['release']['verdict']]}. {report['release']['reason']}"
    for text in (ended.out + ended.err, renderings["terminal"]):
        assert verdict in " ".join(text.split())
    assert reported(renderings["html"]) >= had - {"increment"}
    assert page_of((out / "privacy_report.html").read_text()).numbers

    assert (report["engine"] is not None) is (report["engine_check"] is not None) is ("clipping" in had)
    assert (report["noise_source"] is not None) is (report["verified"] is not None) is ("noise" in had)
    assert (report["floating_point"] is not None) is ("noise" in had and recipe != "fitted-decoys")
    assert (report["sampling"] is not None) is ("sampling" in had)
    for guarantee in report["guarantees"]:
        exact = guarantee["epsilon"] == guarantee["delta"] == 0
        computed = isinstance(guarantee["epsilon"], float) and "accountant" in had and not exact
        assert ("PLD" in (guarantee["accountant"] or "")) is computed
        assert any("Poisson" in assumption for assumption in guarantee["assumptions"]) <= ("sampling" in had)


@pytest.mark.ci
def test_the_json_lists_each_stage_as_it_was_trained_and_again_when_the_run_is_over(
    harden: Harden, tmp_path: Path
) -> None:
    """Not as it was planned: trials change its learning rate."""
    settings = ("--epochs", 8, "--set", "fitted-decoys.batch-size=4", "--tune", "full")
    asked = ("--checkpoint-history", "public", "--tier", "low-entity", "--set", "run.max-records=60", *settings)
    first = harden(*asked, "--json")
    assert first.code == 0, first.err
    published = json.loads((tmp_path / "out" / "privacy_report.json").read_text())["stages"]
    assert published[0]["tuned"]["trials"] > 0
    assert first.json["stages"] == published
    again = harden(*asked, "--json", "--resume")
    assert again.code == 0, again.err
    assert again.json["stages"] == published
