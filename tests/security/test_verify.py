"""`atdp report OUT --verify`: a folder that says something else than its ledger, files and audits exits with 1."""

import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from atdp_cli.errors import InputError
from atdp_cli.privacy.ledger import GaussianRelease, Ledger, LedgerEvent, SubsampledGaussian, read_ledger, write_ledger
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.reporting.card import render_card
from atdp_cli.reporting.document import PublicReport, public_of
from atdp_cli.reporting.html import render_html
from atdp_cli.reporting.verify import UNVERIFIED, verify
from atdp_cli.reporting.write import as_json, read_report
from tests.cli.conftest import Atdp, atdp, fixed_manifest

__all__ = ["atdp", "fixed_manifest"]

LEDGER, JSON, HTML, CARD = "privacy_ledger.json", "privacy_report.json", "privacy_report.html", "README.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path, corpus: Path, fixed_manifest: Path) -> Path:
    """Two hardened models and the audits of the first, which are in its report."""
    from atdp_cli.cli.app import run

    def call(*line: object) -> str:
        with redirect_stdout(StringIO()) as printed:
            run([str(part) for part in line])
        return printed.getvalue()

    folder = tmp_path_factory.mktemp("verified")
    planted, manifest = folder / "planted.txt", folder / "canaries.json"
    call("plant-canary", corpus, "-o", planted, "--manifest", manifest, "--from", fixed_manifest, "-q",
         "--tokenizer", checkpoint_folder)  # fmt: skip
    settings = [
        "--checkpoint-history",
        "public",
        "--tier",
        "low-entity",
        "--set",
        "run.max-records=60",
        "--epochs",
        2,
        "--set",
        "run.store=none",
        "-q",
    ]
    for name, recipe in (("out", "redacted+dp-sgd"), ("other", "fitted-decoys")):
        call("harden", checkpoint_folder, "--data", planted, "-o", folder / name, "--recipe", recipe, *settings)
    audited = call("audit-canary", folder / "out", "--manifest", manifest, "--json", "-q")
    (folder / "audit.json").write_text(audited, encoding="utf-8")
    call("report", folder / "out", "--audit", folder / "audit.json")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of one's own."""
    return shutil.copytree(made, tmp_path / "made")


def forged(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a model's public report, and render page, card and private report anew from it."""
    document = json.loads((out / JSON).read_text())
    change(document)
    public = PublicReport.model_validate_json(json.dumps(document))
    (out / JSON).write_text(as_json(public))
    (out / HTML).write_text(render_html(public))
    (out / CARD).write_text(render_card(public))
    private_folder = out.with_name("out.private")
    private = read_report(private_folder)
    assert not isinstance(private, PublicReport)
    private = private.model_copy(update={"public": public})
    (private_folder / JSON).write_text(as_json(private))
    (private_folder / HTML).write_text(render_html(private))


def in_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "out" / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))

    return change


def in_report(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    return lambda folder: forged(folder / "out", change)


def in_ledger(change: Callable[[Ledger], dict[str, Any]]) -> Callable[[Path], None]:
    """A forgery whose digest fits."""

    def write(folder: Path) -> None:
        ledger = read_ledger(folder / "out" / LEDGER)
        write_ledger(folder / "out" / LEDGER, ledger.model_copy(update=change(ledger)))

    return write


def in_audit(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        document = json.loads((folder / "audit.json").read_text())
        change(document["models"][0])
        (folder / "audit.json").write_text(json.dumps(document))

    return write


def copied(name: str) -> Callable[[Path], None]:
    """The file of another run."""

    def change(folder: Path) -> None:
        shutil.copy(folder / "other" / name, folder / "out" / name)

    return change


def all_reports(folder: Path) -> None:
    """The reports of another run, public and private, in all forms."""
    for name in (JSON, HTML, CARD):
        shutil.copy(folder / "other" / name, folder / "out" / name)
    for name in (JSON, HTML):
        shutil.copy(folder / "other.private" / name, folder / "out.private" / name)


def private_report(folder: Path) -> None:
    shutil.copy(folder / "other.private" / JSON, folder / "out.private" / JSON)


def other_weights(folder: Path) -> None:
    path = folder / "out" / "model.safetensors"
    tensors = load_file(path)
    tensors[next(iter(tensors))].add_(1e-3)
    save_file(tensors, path, metadata={"format": "pt"})


def set_at(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        part: Any = document
        for key in path[:-1]:
            part = part[key]
        assert part[path[-1]] != value
        part[path[-1]] = value

    return change


def other_verdict(audit: dict[str, Any]) -> None:
    audit["verdict"] = "FAIL" if audit["verdict"] == "PASS" else "PASS"


def epsilon_of_the_first(value: object) -> Callable[[dict[str, Any]], None]:
    return set_at("guarantees", 0, "epsilon", value=value)


ATTACKS: dict[str, tuple[Callable[[Path], None], str]] = {
    "ε in the JSON": (in_text(JSON, '"epsilon": "inf"', '"epsilon": 1.0'), JSON),
    "ε in the JSON, all pages made anew": (in_report(epsilon_of_the_first(1.0)), "guarantees.0.epsilon"),
    "ε by PLD": (in_report(set_at("epsilon", "pld", value=0.5)), "epsilon.pld"),
    "ε of a step": (in_report(set_at("epsilon_over_steps", -1, "pld", value=0.5)), "epsilon_over_steps"),
    "an assumption": (in_report(set_at("guarantees", 0, "assumptions", value=[])), "assumptions"),
    "the verdict": (in_report(set_at("verdict", 0, value="Whole records, for each line: ε = 1.")), "verdict.0"),
    "what is protected": (in_report(set_at("summary", "protects", value="All of it.")), "summary.protects"),
    "the badge": (in_report(set_at("release", "verdict", value="releasable")), "release.verdict"),
    "the reason of the badge": (in_report(set_at("release", "reason", value="It is.")), "release.reason"),
    "no badge": (in_report(set_at("release", value=None)), "release"),
    "a question answered": (in_report(set_at("annex", 5, "status", value="tested")), "annex.5.status"),
    "a question left out": (in_report(lambda report: report["annex"].pop()), "annex"),
    "what is not": (in_report(set_at("summary", "leaves_open", value="Nothing.")), "summary.leaves_open"),
    "what the audit is said to have found": (in_report(set_at("summary", "audit", value="PASS")), "summary.audit"),
    "what is not covered": (in_report(set_at("not_covered", value=[])), "not_covered"),
    "δ": (in_report(set_at("delta", value=1e-12)), "delta"),
    "the unit": (in_report(set_at("unit", value="user")), "unit"),
    "the number of records": (in_report(set_at("records", value=1_000_000)), "records"),
    "the past": (in_report(set_at("checkpoint_history", value="unknown")), "checkpoint_history"),
    "the hashes": (in_report(set_at("weights", "model.safetensors", value="ab")), "weights"),
    "σ": (in_report(set_at("stages", 1, "noise_multipliers", value=[9.0, 9.0])), "stages.1"),
    "q": (in_report(set_at("stages", 1, "sampling_rate", value=0.001)), "stages.1"),
    "the clip norm": (in_report(set_at("stages", 1, "clip_norm", value=0.001)), "stages.1"),
    "fewer steps": (in_report(set_at("stages", 1, "ended_after", value=1)), "repeated_steps"),
    "more steps": (in_report(set_at("stages", 1, "steps", value=900)), "stages.1"),
    "the text of a stage": (in_report(set_at("stages", 0, "text", value="decoy")), "stages.0"),
    "a stage left out": (in_report(lambda report: report["stages"].pop(0)), "stages"),
    "repeated steps": (in_report(set_at("repeated_steps", value=7)), "repeated_steps"),
    "the tier": (in_report(set_at("detector", "tier", value="high-contextual")), "detector.tier"),
    "term lists": (in_report(set_at("detector", "lists", value=True)), "detector.lists"),
    "the seed": (in_report(set_at("insecure_seed", value=True)), "insecure_seed"),
    "the source of noise": (in_report(set_at("noise_source", value="dice")), "noise_source"),
    "the draws": (in_report(set_at("sampling", "run", value="by lot")), "sampling.run"),
    "versions": (in_report(set_at("software", value={})), "software"),
    "ε in the page": (in_text(HTML, "<data value=", "<data  value="), HTML),
    "a script in the page": (in_text(HTML, "</body>", "<script>alert(1)</script></body>"), HTML),
    "a script behind the page": (lambda folder: _append(folder / "out" / HTML, "<script></script>"), HTML),
    "the card": (lambda folder: _append(folder / "out" / CARD, "ε = 0.1\n"), CARD),
    "the page removed": (lambda folder: (folder / "out" / HTML).unlink(), HTML),
    "the private page": (lambda folder: _append(folder / "out.private" / HTML, "x"), f"out.private/{HTML}"),
    "the public part of the private report": (
        private_report,
        f"out.private/{JSON}, public",
    ),
    "an audit's verdict": (in_report(lambda report: other_verdict(report["audits"][0])), "audits.0.verdict"),
    "an audit's exposure": (in_report(set_at("audits", 0, "mean", value=0.1)), "audits.0.mean"),
    "an audit left out": (in_report(set_at("audits", value=[])), "audits"),
    "another verdict in the audit's file": (in_audit(other_verdict), "audits.0.verdict"),
    "the ledger's digest": (in_text(LEDGER, '"delta": ', '"delta": 1'), "its digest does not fit"),
    "the ledger of another run": (copied(LEDGER), LEDGER),
    "the report of another run": (all_reports, "weights"),
    "other weights": (other_weights, "model.safetensors is not what it sealed"),
    "another configuration": (in_text("config.json", "{", '{"atdp": 1,'), "config.json is not what it sealed"),
    "events removed": (in_ledger(lambda ledger: {"events": ledger.events[1:]}), "stages.0"),
    "noisy events removed": (in_ledger(lambda ledger: {"events": ledger.events[:1]}), "stages.1"),
    "steps removed": (in_ledger(lambda ledger: {"events": _with_steps(ledger, -1)}), "stages.1"),
    "steps added": (in_ledger(lambda ledger: {"events": _with_steps(ledger, 1)}), "repeated_steps"),
    "a release added": (in_ledger(lambda ledger: {"events": (*ledger.events, _release(ledger))}), "stages.1"),
    "a stage added": (
        in_ledger(lambda ledger: {"events": (*ledger.events, ledger.events[0].model_copy(update={"stage": "x"}))}),
        "the ledger has a stage x",
    ),
    "a ledger with a public past": (in_ledger(lambda _: {"checkpoint_history": "unknown"}), "checkpoint_history"),
}  # fmt: skip


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def _with_steps(ledger: Ledger, more: int) -> tuple[LedgerEvent, ...]:
    *before, last = ledger.events
    assert isinstance(last, SubsampledGaussian)
    return (*before, last.model_copy(update={"steps": last.steps + more}))


def _release(ledger: Ledger) -> GaussianRelease:
    return GaussianRelease(
        stage=ledger.events[-1].stage,
        run=ledger.run,
        statistic="x",
        sensitivity=1.0,
        noise_multiplier=2.0,
        relation=hypothetical(),
    )


def test_a_folder_as_it_was_written_is_verified(atdp: Atdp, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for line in ((folder / "out", "--audit", folder / "audit.json"), (folder / "other",)):
        ended = atdp("report", *line, "--verify")
        assert (ended.code, ended.err) == (0, ""), ended.out
        assert "The report is what the ledger gives." in ended.out
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.one_in(6)
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_was_changed_is_named(atdp: Atdp, folder: Path, attack: str) -> None:
    change, named = ATTACKS[attack]
    change(folder)
    ended = atdp("report", folder / "out", "--verify", "--audit", folder / "audit.json")
    assert ended.code == 1, (ended.out, ended.err)
    assert named in ended.out
    assert "Differences: " in ended.out


def another(value: Any) -> Any:
    """Another value of the same kind; empty where it holds parts."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case _:
            return type(value)()


@pytest.mark.ci
def test_every_public_field_is_compared_or_listed_as_unverified(folder: Path) -> None:
    out = folder / "out"
    document = json.loads((out / JSON).read_text())
    unnoticed = []
    for name, value in document.items():
        if (not value and not isinstance(value, bool)) or name in UNVERIFIED:
            continue
        (out / JSON).write_text(json.dumps(document | {name: another(value)}))
        try:
            noticed = {difference.path.partition(".")[0] for difference in verify(out, folder / "audit.json")}
        except InputError:
            continue
        if name not in noticed:
            unnoticed.append(name)
    assert {"release", "annex"} <= document.keys()
    assert unnoticed == []


def test_audits_without_their_file_are_not_believed(atdp: Atdp, folder: Path) -> None:
    ended = atdp("report", folder / "out", "--verify")
    assert ended.code == 4
    assert "Audits not checked." in ended.out


def test_what_cannot_be_compared_is_refused(atdp: Atdp, folder: Path) -> None:
    for line, problem in (
        ((folder / "out.private",), "is not the folder of a model"),
        ((folder / "out" / JSON,), "is not the folder of a model"),
        ((folder / "out", "--html", "-"), "--verify shows and changes no report"),
    ):
        ended = atdp("report", *line, "--verify")
        assert (ended.code, ended.out) == (2, "")
        assert problem in ended.err
    (folder / "out" / LEDGER).unlink()
    assert atdp("report", folder / "out", "--verify").code == 2


def test_the_public_part_alone_can_be_verified(atdp: Atdp, folder: Path) -> None:
    """Whoever downloads a model has no private folder."""
    shutil.rmtree(folder / "other.private")
    assert atdp("report", folder / "other", "--verify").code == 0
    assert public_of(read_report(folder / "other")).recipe == "fitted-decoys"
