"""`harden --recipe decoys`: fresh values of the same shape in every epoch, and no real one."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.privacy.wording import SAME_PATTERN, SAME_SHAPE
from atdp_cli.training.examples import Example
from tests.cli.conftest import Atdp, Harden, Leaky

ENTITIES = ("--tier", "low-entity")


def texts(checkpoint: Path, examples: Sequence[Example]) -> list[str]:
    tokenizer = load_tokenizer(checkpoint)
    return ["".join(tokenizer.decode(window.token_ids) for window in example.windows) for example in examples]


def document(folder: Path, name: str = "privacy_report.json") -> Any:
    return json.loads((folder / name).read_text())


def flagged(folder: Path, corpus: Path, pattern: str) -> set[str]:
    """Parts of the flagged texts of a run that match."""
    records = corpus.read_text().splitlines()
    spans = [json.loads(line) for line in (folder / "spans.jsonl").read_text().splitlines()]
    surfaces = [
        record[span["start"] : span["end"]]
        for record, line in zip(records, spans, strict=True)
        for span in line["spans"]
    ]
    return {part for surface in surfaces for part in re.findall(pattern, surface)}


def test_no_real_value_is_trained_on_and_each_epoch_has_its_own(
    harden: Harden, trained: list[Sequence[Example]], checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    ended = harden("--recipe", "decoys", *ENTITIES, "--epochs", 2, "--json")
    assert ended.code == 0, ended.err
    read = [texts(checkpoint_folder, epoch) for epoch in trained]
    assert [len(epoch) for epoch in read] == [190, 190]
    assert all(a != b for a, b in zip(*read, strict=True))
    # A value of six digits that is drawn is some record's with a chance of 2·10⁻⁴: of 380, hardly two.
    numbers = flagged(tmp_path / "out.private", corpus, "[0-9]{6}")
    assert len(numbers) > 150
    shown = [number for epoch in read for text in epoch for number in re.findall("[0-9]{6}", text)]
    assert len(shown) == 380
    assert sum(number in numbers for number in shown) <= 1
    # No list has these.
    names = {"Emma", "Omar", "Haddad", "Lena"} & flagged(tmp_path / "out.private", corpus, r"\w+")
    assert len(names) == 4
    assert not any(name in text.split() for epoch in read for text in epoch for name in names)
    kept = [re.sub("[^a-z ]", "", line.split(" said ")[1]) for line in corpus.read_text().splitlines()]
    assert sum(line in " ".join(read[0]) for line in kept) >= 180, "what is not flagged is read as it is"


@pytest.mark.ci
def test_reports_say_decoy_and_held_out_records_stay_raw(harden: Harden, tmp_path: Path) -> None:
    options = (*ENTITIES, "--epochs", 1, "--set", "run.max-records=60", "--checkpoint-history", "public", "--json")
    ended = harden("--recipe", "decoys", *options)
    assert ended.code == 0, ended.err
    [stage] = document(tmp_path / "out")["stages"]
    assert stage["text"] == "decoy"
    assert "| decoys | decoy |" in (tmp_path / "out" / "README.md").read_text()
    assert document(tmp_path / "out", "privacy_ledger.json")["events"][0]["text"] == "decoy"
    [selective] = [guarantee for guarantee in ended.json["guarantees"] if guarantee["scope"] == "selective"]
    assert SAME_SHAPE in selective["assumptions"]
    assert selective["neighbours"]["shapes"] == ["pattern"]
    plain = harden("--recipe", "no-dp", *options, out="plain")
    assert plain.json["perplexity"]["before"] == ended.json["perplexity"]["before"]
    assert not any("decoys" in line for guarantee in plain.json["guarantees"] for line in guarantee["assumptions"])


@pytest.mark.ci
def test_a_stage_with_noise_can_read_decoys(
    harden: Harden, trained: list[Sequence[Example]], checkpoint_folder: Path, tmp_path: Path
) -> None:
    stage = 'name = "mine"\ntext = "decoy"\nepochs = 2\nobjective = {kind = "weighted"}\n'
    noise = 'mechanism = {kind = "dp-sgd", schedule = {kind = "constant", noise_multiplier = 2.0}}\n'
    (tmp_path / "own.toml").write_text(f'name = "own"\n[[stage]]\n{stage}{noise}[run]\ntier = "high-entity"\n')
    ended = harden(
        "--recipe", tmp_path / "own.toml", "--checkpoint-history", "public", "--set", "run.max-records=60", "--json"
    )
    assert ended.code == 0, ended.err
    first, second = (texts(checkpoint_folder, epoch) for epoch in trained)
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert all(window.sensitive.any() for example in trained[0] for window in example.windows)
    [whole] = [guarantee for guarantee in ended.json["guarantees"] if guarantee["scope"] == "end_to_end"]
    assert 0 < whole["epsilon"] < 10


@pytest.mark.one_in(2)
@pytest.mark.parametrize("tier", ["low-contextual", "high-contextual"])
def test_words_that_have_no_decoys_are_refused(
    harden: Harden, atdp: Atdp, corpus: Path, tmp_path: Path, tier: str
) -> None:
    for recipe in ("decoys", "no-dp+decoys"):
        ended = harden("--recipe", recipe, "--tier", tier, "--dry-run")
        assert (ended.code, ended.out) == (2, "")
        assert "Use --tier high-entity or low-entity." in " ".join(ended.err.split())
    spans = tmp_path / "spans.jsonl"
    assert atdp("detect", corpus, "-o", spans, "--tier", tier, "-q", "--set", "run.store=none").code == 0
    ended = harden("--recipe", "decoys", "--spans", spans)
    assert (ended.code, ended.out) == (2, "")
    assert "decoys stand for entities" in " ".join(ended.err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.ci
def test_canaries_that_the_detector_sees_stay_unlearnt(
    atdp: Atdp, leaky: Leaky, checkpoint_folder: Path, tmp_path: Path
) -> None:
    """With the steps that drill them into the model where the text is raw."""
    # On its own it takes two of the ten for no number.
    secrets = tmp_path / "deny.txt"
    secrets.write_text(
        "".join(f"{canary['secret'][0]}\n" for canary in json.loads(leaky.manifest.read_text())["canaries"])
    )
    train = [
        "harden",
        checkpoint_folder,
        "--deny",
        secrets,
        "--data",
        leaky.corpus,
        "-o",
        tmp_path / "out",
        "--recipe",
        "decoys",
        "-q",
    ]
    options = [
        "--epochs",
        12,
        "--learning-rate",
        "5e-3",
        *ENTITIES,
        "--set",
        "run.insecure-seed=3",
        "--manifest",
        leaky.manifest,
    ]
    assert atdp(*train, *options).code == 0
    assert document(tmp_path / "out.private")["planted_canaries"] is None
    audit = ["--manifest", leaky.manifest, "--reference", checkpoint_folder, "-q", "--json"]
    hidden, plain = (atdp("audit-canary", model, *audit) for model in (tmp_path / "out", leaky.model))
    assert (hidden.code, plain.code) == (0, 1), hidden.err


@pytest.mark.ci
def test_fitted_decoys_are_paid_for_before_they_are_drawn(harden: Harden, tmp_path: Path) -> None:
    assert harden("--recipe", "fitted-decoys", "--checkpoint-history", "public", "--epochs", 1, *ENTITIES).code == 0
    plain, release = document(tmp_path / "out", "privacy_ledger.json")["events"]
    assert (release["kind"], release["noise_multiplier"]) == ("gaussian_release", 2.5)
    assert release["replaced"] == pytest.approx(2**0.5)
    assert (plain["kind"], plain["text"]) == ("plain", "decoy")
    journal = (tmp_path / "out.private" / "journal.jsonl").read_text().splitlines()
    kinds = [json.loads(line).get("kind") for line in journal]
    assert [kind for kind in kinds if kind in ("gaussian_release", "plain")] == ["plain", "gaussian_release"]
    selective = next(
        guarantee for guarantee in document(tmp_path / "out")["guarantees"] if guarantee["scope"] == "selective"
    )
    assert 2 < selective["epsilon"] < 3


@pytest.mark.ci
def test_equal_values_of_a_record_have_equal_decoys_and_the_report_says_so(
    atdp: Atdp, trained: list[Sequence[Example]], checkpoint_folder: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "twice.txt"
    lines = [f"My ID is {n}, I repeat, my ID is {n}." for n in range(482915, 483015)]
    corpus.write_text("".join(f"{line}\n" for line in lines))
    run = ("harden", checkpoint_folder, "--data", corpus, "--set", "run.threads=1", "--checkpoint-history", "public")
    equal = ("--recipe", "decoys", *ENTITIES, "--epochs", 1)
    ended = atdp(*run, *equal, "-o", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    shown = [re.findall("[0-9]{6}", text) for text in texts(checkpoint_folder, trained[0])]
    assert [len(numbers) for numbers in shown] == [2] * 95
    assert all(number == other for number, other in shown)
    assert sum(number in range(482915, 483015) for number in map(int, (numbers[0] for numbers in shown))) <= 1
    [selective] = [guarantee for guarantee in ended.json["guarantees"] if guarantee["scope"] == "selective"]
    assert selective["neighbours"]["shapes"] == ["pattern"]
    assert SAME_PATTERN.format(unit="line") in selective["assumptions"]
    assert 'decoy_equality = "record"' in (tmp_path / "out" / "recipe.toml").read_text()
    card = (tmp_path / "out" / "README.md").read_text()
    assert "which flagged values of a line are equal or made of one another" in " ".join(card.split())
    again = atdp(*run, "--recipe", tmp_path / "out" / "recipe.toml", "-o", tmp_path / "again", "--json")
    assert again.code == 0, again.err
    assert document(tmp_path / "again", "privacy_ledger.json")["events"][0]["relation"]["shape"] == "pattern"


def test_a_name_of_no_list_that_many_records_share_is_in_decoys_and_the_private_report_says_so(
    atdp: Atdp, trained: list[Sequence[Example]], checkpoint_folder: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "names.txt"
    names = ["Zubrowka"] * 294 + ["Qwyllind"] * 6
    corpus.write_text("".join(f"My name is {name} and my ID is {493021 + at}.\n" for at, name in enumerate(names)))
    options = ("--data", corpus, "--recipe", "fitted-decoys", *ENTITIES, "--epochs", 1, "--set", "run.threads=1")
    ended = atdp(
        "harden", checkpoint_folder, *options, "--checkpoint-history", "public", "-o", tmp_path / "out", "--json"
    )
    assert ended.code == 0, ended.err
    shown = " ".join(texts(checkpoint_folder, trained[0]))
    assert shown.count("Zubrowka") > 100
    assert "Qwyllind" not in shown
    [stage] = document(tmp_path / "out.private")["stages"]
    # Noise passes a word that nobody wrote now and then, by design.
    assert "Zubrowka" in stage["unlisted_words"]
    assert "Qwyllind" not in stage["unlisted_words"]
    assert "no public list has" in (tmp_path / "out.private" / "privacy_report.html").read_text()
    said = " ".join(ended.err.split())
    assert "words of no public list passed the release" in said
    assert "--privacy-unit FIELD" in said
    assert "Zubrowka" not in said, "a log may be public"
    shown = " ".join(atdp("report", tmp_path / "out.private").out.split())
    assert "Zubrowka. --privacy-unit FIELD makes a person's records one" in shown
    assert all(
        "Zubrowka" not in path.read_text() for path in (tmp_path / "out").iterdir() if path.suffix != ".safetensors"
    )
