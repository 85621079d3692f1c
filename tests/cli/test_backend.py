"""`ner` of --detector: another finder of entities, in detect, redact and harden."""

import json
import random
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from atdp_cli.corpus.record import Record
from atdp_cli.detection.detector import Detector, flags_of
from atdp_cli.detection.identity import detector_identity
from atdp_cli.detection.ner import Ner, with_entities
from atdp_cli.detection.scan import load_pipeline, pipeline_name, scan
from tests.cli.conftest import Atdp, Harden, detector
from tests.taggers import NAMES, PHONES, several

needs_presidio = pytest.mark.skipif(
    find_spec("presidio_analyzer") is None, reason="presidio-analyzer is not installed: pip install 'atdp[presidio]'"
)

FINDERS = ["hf", pytest.param("presidio", marks=needs_presidio)]

LINES = [
    "then Zorvath saw it and tel-551 was open",
    "and Anna Smith of Microsoft met Quellin in Paris on 3 May 2021",
    "mail anna@foo.com or call 212-555-1234 (SSN 536-22-1234), http://example.org/a",
    "",
    "  \u200b Zorvath's box, \n\t日本 e\u0301 Brixo.",
    "and Tamzuli Plemura " * 300,
]


def backend(name: str, tagger_folder: Path) -> Ner:
    return Ner(tagger_folder if name == "hf" else None)


def lines(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(several(draw, draw.choice((1, 2)))[0]) + "." for _ in range(count)]


@pytest.fixture
def corpus_file(tmp_path: Path) -> Path:
    path = tmp_path / "mail.txt"
    path.write_text("".join(f"{line}\n" for line in lines(60)))
    return path


@pytest.mark.ci
@pytest.mark.parametrize("name", FINDERS)
def test_a_record_s_spans_do_not_depend_on_its_batch(name: str, tagger_folder: Path) -> None:
    pipeline = with_entities(load_pipeline(), backend(name, tagger_folder))
    records = [Record(str(number), text) for number, text in enumerate([*LINES, *lines(20)])]
    alone = {record.id: next(iter(scan([record], pipeline=pipeline))) for record in records}
    draw = random.Random(2)
    for _ in range(3):
        batch = draw.sample(records, len(records))
        assert list(scan(batch, pipeline=pipeline)) == [alone[record.id] for record in batch]


def test_only_entities_are_replaced(tagger_folder: Path) -> None:
    spacy = load_pipeline()
    pipeline = with_entities(spacy, Ner(tagger_folder))
    records = [Record(str(number), text) for number, text in enumerate(LINES)]
    for own, other in zip(scan(records, pipeline=spacy), scan(records, pipeline=pipeline), strict=True):
        assert (own.tokens, own.sentences) == (other.tokens, other.sentences)
        for source in ("pattern", "dep"):
            assert [span for span in own.spans if span.source == source] == [
                span for span in other.spans if span.source == source
            ]
    [first, *_] = scan(records, pipeline=pipeline)
    named = {(first.record.text[span.start : span.end], span.label) for span in first.spans if span.source == "ner"}
    assert named == {("Zorvath", "PERSON"), ("tel-551", "PHONE")}


@pytest.mark.ci
@needs_presidio
def test_a_search_that_presidio_gives_up_is_no_silence(
    atdp: Atdp, corpus_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("presidio_analyzer.pattern_recognizer.REGEX_TIMEOUT_SECONDS", 1e-6)
    corpus_file.write_text("4111 1111 1111 1112 and 12 " * 2000 + "\n")
    ended = atdp("detect", corpus_file, *detector(tmp_path, ner="presidio"), "--set", "run.store=none", "-q")
    assert ended.code == 3
    assert ended.err.splitlines()[-1].startswith("atdp: presidio gave up a search")
    assert len(ended.err.splitlines()) == 1


@needs_presidio
def test_presidio_asks_for_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tldextract would download a list of suffixes, and answer from its own where it cannot."""
    asked: list[object] = []

    def ask(*given: object, **_: object) -> None:
        asked.append(given)
        raise OSError("no network")

    monkeypatch.setattr("socket.getaddrinfo", ask)
    monkeypatch.setattr("socket.socket.connect", ask)
    pipeline = with_entities(load_pipeline(), Ner())
    text = "Mail anna@foo.co.uk or see https://example.org/a."
    [finding] = scan([Record("1", text)], pipeline=pipeline)
    assert {"EMAIL", "URL"} <= {span.label for span in finding.spans if span.source == "ner"}
    assert not asked


def test_redact_masks_what_it_finds(atdp: Atdp, corpus_file: Path, tmp_path: Path, tagger_folder: Path) -> None:
    output = tmp_path / "redacted.txt"
    ended = atdp(
        "redact",
        corpus_file,
        "-o",
        output,
        "--tier",
        "low-entity",
        *detector(tmp_path, ner=f"hf:{tagger_folder}"),
        "--set",
        "run.store=none",
    )
    assert ended.code == 0, ended.err
    before, after = corpus_file.read_text(), output.read_text()
    taught = re.compile("|".join(map(re.escape, (*NAMES, *PHONES))))
    # The model is small; it may miss one in a hundred.
    assert len(taught.findall(after)) < 0.01 * len(taught.findall(before))
    # A listed name before a number may be masked together with it.
    assert after.count("[PHONE]") >= 0.9 * len(re.findall("tel-", before))


@pytest.mark.ci
def test_the_store_gives_the_same_back_and_knows_the_backend(
    atdp: Atdp, corpus_file: Path, tmp_path: Path, tagger_folder: Path
) -> None:
    def spans(*options: object) -> str:
        ended = atdp("detect", corpus_file, *options)
        assert ended.code == 0, ended.err
        return ended.out

    folder = tmp_path / "tagger"
    shutil.copytree(tagger_folder, folder)
    store = ("--set", f"run.store={tmp_path / 'a.private'}")
    fresh = spans(*detector(tmp_path, ner=f"hf:{folder}"), "--set", "run.store=none")
    assert spans(*detector(tmp_path, ner=f"hf:{folder}"), *store) == fresh
    assert spans(*detector(tmp_path, ner=f"hf:{tagger_folder}"), *store) == fresh  # the same files at another place
    own = spans(*store)
    assert own == spans("--set", "run.store=none")
    assert own != fresh
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {number: name.replace("PER", "ANIMAL") for number, name in config["id2label"].items()}
    (folder / "config.json").write_text(json.dumps(config))
    assert '"ANIMAL"' in spans(*detector(tmp_path, ner=f"hf:{folder}"), *store, "--tier", "high-entity")


def test_it_belongs_to_the_identity_of_the_detector(tmp_path: Path, tagger_folder: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(tagger_folder, other)
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    backends = [None, Ner(tagger_folder), Ner(other)]
    flags = [flags_of(Detector(ner=each), spans=False, review=False).detector for each in backends]
    assert len(set(flags)) == 3
    pipelines = [with_entities(load_pipeline(), each) for each in backends]
    assert len(set(map(detector_identity, pipelines))) == 3
    assert len(set(map(pipeline_name, pipelines))) == 3
    assert str(tmp_path) not in pipeline_name(pipelines[-1])


@pytest.mark.ci
def test_harden_flags_by_it(harden: Harden, tagger_folder: Path, tmp_path: Path) -> None:
    options = ("--recipe", "redacted", "--tier", "low-entity", "--epochs", 1, "--set", "run.store=none")
    ended = harden(*options, *detector(tmp_path, ner=f"hf:{tagger_folder}"))
    assert ended.code == 0, ended.err
    report = json.loads((tmp_path / "out" / "privacy_report.json").read_text())
    assert "entities of the token classifier hf:" in report["detector"]["pipeline"]
    assert str(tagger_folder) not in json.dumps(report)


REFUSED = {
    "no folder named": ("hf:", "ner is hf:, which is not known"),
    "no folder": ("hf:nowhere", "nowhere is no folder"),
    "no classifier": ("hf:model", "model is no token classifier"),
    "a pickle": ("hf:weights.bin", "weights.bin is a pickle"),
}


@pytest.fixture
def unreadable(tmp_path: Path, checkpoint_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to be in: its corpus is not UTF-8, which nobody finds who does not read it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(checkpoint_folder)
    (tmp_path / "weights.bin").write_bytes(b"\x80")
    (tmp_path / "corpus.txt").write_bytes(b"\xff\n" * 40)
    return tmp_path


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_before_the_corpus_is_read(name: str, unreadable: Path, atdp: Atdp) -> None:
    value, said = REFUSED[name]
    ended = atdp("detect", "corpus.txt", *detector(unreadable, ner=value))
    assert ended.code == 2
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_missing_extra_is_named(
    atdp: Atdp, corpus_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atdp_cli.errors.find_spec", lambda name: None)
    ended = atdp("detect", corpus_file, *detector(tmp_path, ner="presidio"))
    assert ended.code == 2
    assert "pip install 'atdp[presidio]'" in ended.err
    assert len(ended.err.splitlines()) == 1
