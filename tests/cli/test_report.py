"""`atdp report`: what it renders, what it puts in, what it refuses, and that nothing secret is in any of it."""

import io
import json
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from jsonschema import Draft202012Validator

from atdp_cli.model.hashes import seal_of
from tests.cli.conftest import Atdp, Leaky
from tests.generated import schemas
from tests.reporting.test_html import at, close, page_of


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path, leaky: Leaky) -> Path:
    """The leaky model hardened for a step or two, its folders beside `audit.json`."""
    from atdp_cli.cli.app import run

    out = tmp_path_factory.mktemp("audited") / "out"
    options = [
        "--data",
        leaky.corpus,
        "--manifest",
        leaky.manifest,
        "--epochs",
        "1",
        "--set",
        "run.insecure-seed=1",
        "-q",
    ]
    assert run([str(part) for part in ["harden", leaky.model, *options, "-o", out]]) == 0
    arguments = ["audit-canary", out, leaky.model, checkpoint_folder, "--manifest", leaky.manifest]
    options = ["--reference", checkpoint_folder, "--attacks", "extraction", "--json", "-q"]
    with redirect_stdout(io.StringIO()) as printed:
        run([str(part) for part in [*arguments, *options]])
    (out.parent / "audit.json").write_text(printed.getvalue(), encoding="utf-8")
    return out


@pytest.fixture
def out(audited: Path, tmp_path: Path) -> Path:
    """A copy of it of one's own."""
    shutil.copytree(audited.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out"


def schema(name: str) -> Draft202012Validator:
    [text] = [made() for path, made in schemas().items() if path.name == name]
    return Draft202012Validator(json.loads(text))


def test_harden_writes_all_renderings(atdp: Atdp, out: Path) -> None:
    private = out.with_name("out.private")
    for folder, name in ((out, "privacy_report.schema.json"), (private, "private_report.schema.json")):
        document = json.loads((folder / "privacy_report.json").read_text())
        schema(name).validate(document)
        page = page_of((folder / "privacy_report.html").read_text())
        assert len(page.numbers) > 20
        for path, _, reported in page.numbers:
            meant = at(document, path)
            assert (
                close(reported, meant)
                if isinstance(meant, int | float)
                else reported == ("–" if meant is None else "∞")
            )
        for option, file in ((("--html", "-"), "privacy_report.html"), (("--json",), "privacy_report.json")):
            assert atdp("report", folder, *option).out == (folder / file).read_text()
    assert (private.stat().st_mode & 0o777, (private / "privacy_report.html").exists()) == (0o700, True)


def test_the_card_is_one_that_the_hub_reads(out: Path) -> None:
    card = ModelCard((out / "README.md").read_text(), ignore_metadata_errors=False)
    reported = card.data.to_dict()  # type: ignore[no-untyped-call]
    assert reported["library_name"] == "transformers"
    assert reported["pipeline_tag"] == "text-generation"
    assert reported["tags"] == ["atdp"], "no guarantee holds, so the card claims none"
    assert "AutoModelForCausalLM" in card.text


def test_the_command_line_is_reported_with_and_without_paths(out: Path, leaky: Leaky) -> None:
    public = json.loads((out / "privacy_report.json").read_text())["command"]
    expected = (
        "atdp harden MODEL --data DATA --manifest MANIFEST --epochs 1 --output OUTPUT --set run.insecure-seed=1 --quiet"
    )
    assert sorted(public) == sorted(expected.split())
    whole = json.loads((out.with_name("out.private") / "privacy_report.json").read_text())["command"]
    assert len(whole) == len(public)
    assert {str(leaky.model), str(leaky.corpus), str(leaky.manifest)} <= set(whole)


def test_audits_go_into_both_reports(atdp: Atdp, out: Path) -> None:
    audits = json.loads((out.parent / "audit.json").read_text())["models"]
    ended = atdp("report", out, "--audit", out.parent / "audit.json")
    assert ended.code == 0, ended.err
    public = json.loads((out / "privacy_report.json").read_text())
    private = json.loads((out.with_name("out.private") / "privacy_report.json").read_text())
    assert private["public"] == public
    schema("privacy_report.schema.json").validate(public)
    assert [audit["of"] for audit in public["audits"]] == ["after", "before"]
    assert [audit["of"] for audit in private["audits"]] == ["other"], "of other models nothing is published"
    for entry, actual in zip(audits, [*public["audits"], *private["audits"]], strict=True):
        assert entry["verdict"] == actual["verdict"]
        assert entry["combined"]["mean_exposure"] == actual["mean"]
        low, high = actual["mean_interval"]
        assert low <= actual["mean"] <= high
        assert actual["extraction"]["greedy"] == sum(canary["greedy"] for canary in entry["extraction"])
    assert private["audits"][0]["mean_ratio"] is None, "the base's ratio to itself says nothing"
    assert "audit" in public["summary"]["audit"]
    assert public["summary"]["audit"] in (out / "README.md").read_text()
    assert " ".join(public["summary"]["audit"].split()) in " ".join(ended.out.split())
    assert not list(out.glob("*.partial"))


def test_audits_of_other_models_are_published_on_request_alone(atdp: Atdp, out: Path) -> None:
    file, folders = out.parent / "audit.json", (out, out.with_name("out.private"))
    [other] = json.loads(file.read_text())["models"][2:]
    digest = other["weights"]["model.safetensors"]

    def named(folder: Path) -> set[str]:
        return {
            path.name
            for path in folder.iterdir()
            if path.suffix in {".json", ".html", ".md"} and (digest[:12] in path.read_text())
        }

    assert atdp("report", out, "--audit", file).code == 0
    assert list(map(named, folders)) == [set(), {"privacy_report.json", "privacy_report.html"}]
    assert atdp("report", out, "--name", "Mine").code == 0
    assert list(map(named, folders)) == [set(), {"privacy_report.json", "privacy_report.html"}], "and they stay"
    assert atdp("report", out, "--verify", "--audit", file).code == 0
    assert atdp("report", out, "--audit", file, "--publish-audits").code == 0
    assert named(out) == {"privacy_report.json", "privacy_report.html", "README.md"}
    assert atdp("report", out, "--verify", "--audit", file).code == 0
    refused = atdp("report", out, "--publish-audits")
    assert (refused.code, refused.out) == (2, "")


@pytest.mark.ci
def test_the_model_that_people_have_stands_beside_the_result_in_the_private_report(
    atdp: Atdp, leaky: Leaky, checkpoint_folder: Path, tmp_path: Path
) -> None:
    out, private, file = tmp_path / "out", tmp_path / "out.private", tmp_path / "audit.json"
    options = ["--reference", checkpoint_folder, "--epochs", 1, "--tune", "none", "-o", out]
    assert atdp("harden", leaky.model, "--data", leaky.corpus, *options, "--set", "run.store=none").code == 0
    document = json.loads((private / "privacy_report.json").read_text())
    assert document["given"] == seal_of(leaky.model)
    assert [each["of"] for each in document["usefulness"]] == ["after", "before", "given"]
    audited = atdp("audit-canary", out, leaky.model, "--manifest", leaky.manifest, "--json", "-q")
    file.write_text(audited.out, encoding="utf-8")
    assert atdp("report", out, "--audit", file).code == 0
    document = json.loads((private / "privacy_report.json").read_text())
    assert [each["of"] for each in document["public"]["audits"]] == ["after"]
    assert [each["of"] for each in document["audits"]] == ["given"]
    pages = [(folder / "privacy_report.html").read_text() for folder in (out, private)]
    assert [">MODEL</text>" in page for page in pages] == [False, True]


def test_any_model_has_a_report_of_its_audits_alone(
    atdp: Atdp, out: Path, leaky: Leaky, checkpoint_folder: Path
) -> None:
    file, page = out.parent / "audit.json", out.parent / "page.html"
    model = shutil.copytree(leaky.model, out.parent / "elsewhere", ignore=shutil.ignore_patterns("privacy_*"))
    before = {path: path.read_bytes() for path in model.iterdir()}
    ended = atdp("report", model, "--audit", file)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("Not releasable. The audit of this model failed")
    passed = atdp("report", checkpoint_folder, "--audit", file).out
    assert passed.startswith("Not releasable. This report knows no ε of the model, and the audit could"), passed
    document = json.loads(atdp("report", model, "--audit", file, "--json").out)
    schema("audit_report.schema.json").validate(document)
    assert [audit["of"] for audit in document["audits"]] == ["after", "other", "other"]
    assert atdp("report", model, "--audit", file, "--html", page).code == 0
    shown = page_of(page.read_text())
    assert len(shown.numbers) > 20
    assert all(close(reported, at(document, path)) for path, _, reported in shown.numbers if reported not in "–∞")
    assert {path: path.read_bytes() for path in model.iterdir()} == before, "nothing is written beside the model"
    for refused in (["--audit", file, "--name", "Mine"], [], ["--verify"]):
        assert atdp("report", model, *refused).code == 2


def test_audits_of_other_weights_are_refused(atdp: Atdp, out: Path) -> None:
    file = out.parent / "audit.json"
    document = json.loads(file.read_text())
    before = {path: path.read_bytes() for path in out.iterdir()}
    for broken, says in (
        ({"models": document["models"][1:]}, "None of these audits is of the weights"),
        ({"models": []}, "holds no completed audit"),
        ([], "is malformed at the file"),
        ({"models": [{**document["models"][0], "combined": {}}]}, "combined.level: Field required"),
    ):
        file.write_text(json.dumps(broken))
        ended = atdp("report", out, "--audit", file)
        assert (ended.code, ended.out) == (2, "")
        assert says in ended.err
    assert {path: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.ci
def test_nothing_planted_is_in_what_may_be_published(
    atdp: Atdp, checkpoint_folder: Path, lines: list[str], tmp_path: Path
) -> None:
    """Words of the corpus and of lists, names of files and folders, canaries: in no file of OUT/, on no stderr."""
    home = tmp_path / "Quuxfolder"
    home.mkdir()
    model = shutil.copytree(checkpoint_folder, home / "Zyzzymodel")
    corpus, planted, manifest = (home / name for name in ("Frobcorpus.txt", "Planted.txt", "Canarymanifest.json"))
    corpus.write_text("\n".join(f"Zaphodbeeble {line}" for line in lines[:100]) + "\n")
    plant = ["plant-canary", corpus, "-o", planted, "--manifest", manifest, "--tokenizer", model, "--count", 4]
    said = atdp(*plant, "--repeats", 3, "--template", "My code is {digits:4}").err
    (home / "Listofterms.txt").write_text("Gribblewort\n")
    out = home / "Outname"
    options = ["--data", planted, "--manifest", manifest, "--epochs", 1, "--deny", home / "Listofterms.txt"]
    said += atdp("harden", model, *options, "--eval-data", _valid(home, lines), "-o", out).err
    audit = atdp("audit-canary", out, model, "--manifest", manifest, "--reference", model, "--json", "-q")
    (home / "audit.json").write_text(audit.out)
    ended = atdp("report", out, "--audit", home / "audit.json")
    assert ended.code == 0, ended.err
    names = ("Zyzzymodel", "Frobcorpus", "Planted", "Canarymanifest", "Listofterms", "Quuxfolder", "Outname")
    drawn = json.loads(manifest.read_text())["canaries"]
    secrets = [re.escape(part) for canary in drawn for part in canary["secret"]]
    assert len(secrets) == 4
    # Four digits may stand in a longer number by chance, as in a hash.
    secret = re.compile(rf"(?<![\w.])(?:{'|'.join(secrets)})(?![\w.])")
    for path in out.iterdir():
        if path.suffix != ".safetensors" and not path.name.startswith("tokenizer"):
            text = path.read_text(encoding="utf-8")
            for name in (*names, "Zaphodbeeble", "Gribblewort", "Valuables"):
                assert name not in text, (path.name, name)
            assert not secret.search(text), path.name
    for text in (said, ended.err, audit.err):
        assert "Zaphodbeeble" not in text
        assert not secret.search(text)
    whole = (out.with_name("Outname.private") / "privacy_report.html").read_text()
    assert "Zyzzymodel" in whole


def _valid(home: Path, lines: list[str]) -> Path:
    path = home / "Valuables.txt"
    path.write_text("\n".join(f"Zaphodbeeble {line}" for line in lines[100:130]) + "\n")
    return path


def test_it_needs_no_torch(out: Path) -> None:
    code = (
        "import sys; from atdp_cli.cli.app import run; "
        f"assert run(['report', {str(out)!r}, '--html', '-']) == 0; "
        "heavy = {'torch', 'transformers', 'spacy'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_is_put_into_both_reports_and_the_card(atdp: Atdp, out: Path) -> None:
    assert atdp("report", out, "--name", "Helper <b> 3").code == 0
    private = json.loads((out.with_name("out.private") / "privacy_report.json").read_text())
    public = json.loads((out / "privacy_report.json").read_text())
    assert (public["name"], private["public"]) == ("Helper <b> 3", public)
    assert "<h1>Helper &lt;b&gt; 3</h1>" in (out / "privacy_report.html").read_text()
    assert "# Helper \\<b\\> 3\n" in (out / "README.md").read_text()
    assert atdp("report", out).out.startswith("Helper <b> 3\n")
    assert atdp("report", out, "--verify").code == 0
    for name in ("", "  ", "x" * 81, "two\nlines", "\x1b[31mred"):
        refused = atdp("report", out, "--name", name)
        assert (refused.code, "has 1 to 80 characters" in refused.err) == (2, True), name


@pytest.mark.ci
def test_a_map_is_put_into_the_private_report_alone(
    atdp: Atdp, out: Path, leaky: Leaky, checkpoint_folder: Path
) -> None:
    file, private = out.parent / "map.json", out.with_name("out.private")
    mapped = atdp(
        "audit-corpus", out, leaky.model, "--data", leaky.corpus, "--harden-split", "--set", "run.store=none", "--json"
    )
    assert mapped.code == 0, mapped.err
    file.write_text(mapped.out, encoding="utf-8")
    before = {path: path.read_bytes() for path in out.iterdir()}
    shown = atdp("report", out, "--findings", file)
    assert shown.code == 0, shown.err
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    document = json.loads((private / "privacy_report.json").read_text(encoding="utf-8"))
    schema("private_report.schema.json").validate(document)
    assert [each["of"] for each in document["maps"]] == ["after", "before"]
    first = mapped.json["models"][0]
    assert {name: document["maps"][0][name] for name in ("tested", "held_out", "memorised")} == {
        name: first[name] for name in ("tested", "held_out", "memorised")
    }
    assert "Memory map of this model" in (private / "privacy_report.html").read_text(encoding="utf-8")
    assert "memory map of this model: " in atdp("report", private).out.replace("\n", " ")
    assert atdp("report", out, "--verify", "--findings", file).code == 2
    alone = {"schema_version": 1, "models": [mapped.json["models"][1]]}
    file.write_text(json.dumps(alone), encoding="utf-8")
    refused = atdp("report", out, "--findings", file)
    assert (refused.code, "None of these maps" in refused.err) == (2, True)
    audits = atdp("report", out, "--findings", out.parent / "audit.json")
    assert (audits.code, "malformed" in audits.err) == (2, True)


def test_what_a_review_found_is_put_into_the_private_report_alone(
    atdp: Atdp, out: Path, leaky: Leaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, file, private = out.parent / "queue.jsonl", out.parent / "review.json", out.with_name("out.private")
    for tier in ("low-entity", "high-entity"):
        options = ["--tier", tier, "--review", queue, "--force", "--set", "run.review-share=0.2"]
        assert atdp("detect", leaky.corpus, *options, "-o", out.parent / "spans", "--set", "run.store=none").code == 0
        typed = io.TextIOWrapper(io.BytesIO(b"m my\nm the\nm I\nk\n" * 200), encoding="utf-8")
        monkeypatch.setattr("sys.stdin", typed)
        reviewed = atdp("review", queue, "--json")
        assert reviewed.code == 0, reviewed.err
        file.write_text(reviewed.out, encoding="utf-8")
        before = {path: path.read_bytes() for path in out.iterdir()}
        ended = atdp("report", out, "--findings", file)
        assert {path: path.read_bytes() for path in out.iterdir()} == before
        if tier == "high-entity":
            assert (ended.code, "The review is of tier high-entity" in ended.err) == (2, True), ended.err
            break
        assert ended.code == 0, ended.err
        document = json.loads((private / "privacy_report.json").read_text(encoding="utf-8"))
        schema("private_report.schema.json").validate(document)
        assert document["review"][0] == f"{reviewed.json['reviewed']} sentences were reviewed."
        missed = [rate for name, rate in reviewed.json.items() if name.startswith("missed") and rate["share"]]
        assert missed, "the term that was typed is a miss"
        for rate in missed:
            says = f"{rate['share']:.1%} (95% interval {rate['low']:.1%} to {rate['high']:.1%})"
            assert says in " ".join(document["review"])
            assert says in (private / "privacy_report.html").read_text(encoding="utf-8")
        counts = dict(document["flagged_labels"])
        assert sum(counts.values()) == document["flagged_spans"]


def test_several_are_one_table_and_equal_rows_are_one(atdp: Atdp, out: Path, tmp_path: Path) -> None:
    private = out.with_name("out.private")
    shutil.copytree(out, tmp_path / "audited")
    assert atdp("report", tmp_path / "audited", "--audit", tmp_path / "audit.json").code == 0
    shown = atdp("report", out, private, tmp_path / "audited")
    assert shown.code == 0, shown.err
    verdicts = [line.split("│")[2].strip() for line in shown.out.splitlines() if line.startswith("│")]
    assert [verdict for verdict in verdicts if verdict.startswith("Not")] == ["Not", "Not"]
    exposures = re.findall(r"│ +(\d+\.\d+|–) +│ +–? *\d*\.?\d*%? *│$", shown.out, re.MULTILINE)
    assert exposures[0] == "–" != exposures[1]
    assert atdp("report", out, private, "--html", "-").code == 2
