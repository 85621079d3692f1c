"""`atdp decoy`: the copies that `--recipe fitted-decoys` reads, all else as it was, and the ledger beside them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.corpus.record import read_records
from atdp_cli.corpus.spans import FlaggedRecord
from atdp_cli.hardening.encode import encode
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.privacy.ledger import DecoyedText, GaussianRelease, PlainTraining, read_ledger, write_ledger
from atdp_cli.replacement.decoys import uniformly
from atdp_cli.replacement.draw import decoy_text
from atdp_cli.training.examples import Example
from atdp_cli.training.recipe import TextVariant
from tests.cli.conftest import Atdp

FLAGS = ("--set", "run.insecure-seed=1", "--set", "run.store=none")
UNIFORM = ("--recipe", "decoys", "--set", "run.store=none")

MAIL = (
    '{"id": 1, "text": "Mail emma.clarke@example.org, été.", "from": "Emma \\u00e9"}\n'
    "\n"
    '{"from": "Omar", "text" : "The account is 48213377.", "n": 1.0}\r\n'
    '{"id": 3, "text": "Nothing here."}\n'
    '{"id": 4, "text": "Ask Omar Haddad in Berlin."}'
)


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    path = tmp_path / "mail.jsonl"
    path.write_text(MAIL, newline="")
    return path


def token_ids(examples: Sequence[Example]) -> list[list[list[int]]]:
    return [[window.token_ids.tolist() for window in example.windows] for example in examples]


@pytest.mark.ci
@pytest.mark.parametrize(
    "decoys",
    [
        ("fitted-decoys", ("--target-epsilon", 3)),
        ("fitted-decoys", ("--set", "run.decoy-equality=record")),
        ("decoys", ()),
    ],
)
def test_with_one_stream_the_copies_are_what_harden_reads(  # noqa: PLR0917 - fixtures
    atdp: Atdp,
    trained: list[Sequence[Example]],
    checkpoint_folder: Path,
    lines: list[str],
    tmp_path: Path,
    decoys: tuple[str, tuple[object, ...]],
) -> None:
    recipe, options = decoys
    corpus, held_out = tmp_path / "corpus.jsonl", tmp_path / "held-out.jsonl"
    for path, texts in ((corpus, lines[:60]), (held_out, lines[60:70])):
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    common = ("--recipe", recipe, "--epochs", 2, "--set", "run.insecure-seed=5", "--set", "run.store=none")
    copied = atdp("decoy", corpus, "-o", tmp_path / "decoyed", *common, *options, "--json")
    assert copied.code == 0, copied.err
    equal = ("--set", f"{recipe}.decoy-equality=record") if "run.decoy-equality=record" in options else ()
    target = ("--target-epsilon", 3) if recipe == "fitted-decoys" else ()
    known = ("--eval-data", held_out, "--checkpoint-history", "public")
    ended = atdp(
        "harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "out", *common, *known, *equal, *target
    )
    assert ended.code == 0, ended.err

    tokenizer = load_tokenizer(checkpoint_folder)
    assert len(trained) == 2
    for read, copy in zip(trained, copied.json["copies"], strict=True):
        texts = [record.text for record in read_records(Path(copy))]
        assert token_ids(read) == _encoded(texts, tokenizer)
        decoded = ["".join(tokenizer.decode(ids) for ids in token_id) for token_id in token_ids(read)]
        assert [text.replace(tokenizer.eos_token, "") for text in decoded] == texts
    ours, theirs = (read_ledger(tmp_path / name / "privacy_ledger.json") for name in ("decoyed", "out"))
    assert {event.relation for event in ours.events if isinstance(event, DecoyedText)} == {
        event.relation for event in theirs.events if isinstance(event, PlainTraining)
    }
    assert [event.model_copy(update={"run": None}) for event in ours.events if isinstance(event, GaussianRelease)] == [
        event.model_copy(update={"run": None}) for event in theirs.events if isinstance(event, GaussianRelease)
    ]
    assert ours.records == theirs.records == 60


def _encoded(texts: Sequence[str], tokenizer: Any) -> list[list[list[int]]]:
    from atdp_cli.corpus.record import Record
    from atdp_cli.hardening.encode import Encoding

    encoding = Encoding(tokenizer=tokenizer, context=64, windows=8)
    flagged = [FlaggedRecord(Record(str(place), text), ()) for place, text in enumerate(texts)]
    return [[window.token_ids.tolist() for window in windows] for windows in encode(flagged, TextVariant.RAW, encoding)]


def test_everything_but_flagged_spans_stays_byte_for_byte(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    ended = atdp("decoy", mail, "-o", tmp_path / "out", "--epochs", 2, *FLAGS)
    assert ended.code == 0, ended.err
    copies = [(tmp_path / "out" / f"epoch-{epoch}.jsonl").read_bytes().decode() for epoch in (1, 2)]
    left = re.compile(
        re.escape(MAIL)
        .replace(re.escape("emma.clarke@example.org"), r"[a-z]+\.[a-z]+@[a-z.]+")
        .replace("48213377", "[0-9]{8}")
        .replace(re.escape("Omar Haddad"), "[A-Z][a-z]+ [A-Z][a-z]+")
        .replace("Berlin", "[A-Z][a-z]+")
    )
    assert all(left.fullmatch(copy) for copy in copies)
    assert copies[0] != copies[1]
    assert not any("48213377" in copy for copy in copies)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mail.jsonl", "out", "out.private"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "epoch-1.jsonl",
        "epoch-2.jsonl",
        "privacy_ledger.json",
    ]
    assert (tmp_path / "out.private").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["mail.txt", "mail.jsonl", "mail.csv", "mail.parquet", "mail.txt.gz"])
def test_a_copy_read_again_has_the_decoys_of_its_records(atdp: Atdp, tmp_path: Path, name: str) -> None:
    """Flagged spans that hold line feeds and quotes, over records that are several lines, objects or rows."""
    from atdp_cli.corpus.spans import Span, Tier, spans_within_borders
    from atdp_cli.privacy.rng import insecure_stream
    from atdp_cli.replacement.decoys import integer_draws

    path, unit = tmp_path / name, "paragraph" if ".txt" in name else "user"
    _write(path, [("a", 'Ask "Tom\r'), ("b", "Jones, Omar"), ("a", "Haddad 12\n34, then"), ("a", "Anna")], unit)
    records = list(read_records(path, unit=unit))
    whole = [Span(2, len(record.text) - 1, "PERSON", "file", Tier.LOW_ENTITY) for record in records]
    spans = [spans_within_borders(record, [span]) for record, span in zip(records, whole, strict=True)]
    listed = tmp_path / "spans.jsonl"
    listed.write_text(
        "".join(
            json.dumps({"id": record.id, "spans": [{"start": span.start, "end": span.end, "label": span.label}]}) + "\n"
            for record, span in zip(records, whole, strict=True)
        )
    )
    ended = atdp(
        *("decoy", path, "-o", tmp_path / "out", "--privacy-unit", unit, "--spans", listed, "--recipe", "decoys"),
        *("--epochs", 1, "--set", "run.insecure-seed=3"),
    )
    assert ended.code == 0, ended.err
    [copy] = (tmp_path / "out").glob("epoch-1*")
    assert copy.name == f"epoch-1{''.join(path.suffixes)}"
    choose = uniformly(integer_draws(insecure_stream(3, "decoys of epoch 1 of stage 0")))
    expected = [
        (record.id, decoy_text(record.text, actual, choose).text) for record, actual in zip(records, spans, strict=True)
    ]
    assert [(record.id, record.text) for record in read_records(copy, unit=unit)] == expected
    assert any("\n" in text for _, text in expected)


def _write(path: Path, rows: list[tuple[str, str]], unit: str) -> None:
    import csv
    import gzip

    if unit == "paragraph":
        content = "\ufeff" + "\r\n".join(text.strip() for _, text in rows) + "\r\n\r\n  \nBob Smith\nwas there\n"
        path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"user": user, "text": text}) + "\n" for user, text in rows))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("user", "text"), *rows])
    else:
        import pyarrow
        import pyarrow.parquet

        users, texts = zip(*rows, strict=True)
        pyarrow.parquet.write_table(pyarrow.table({"user": users, "text": texts}), path)


def test_no_two_runs_draw_alike_and_the_store_reads_once(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    for out in ("one", "two"):
        assert atdp("decoy", mail, "-o", tmp_path / out, "--epochs", 1, "--recipe", "decoys").code == 0
    first, second = ((tmp_path / out / "epoch-1.jsonl").read_bytes() for out in ("one", "two"))
    assert first != second
    assert (tmp_path / "mail.jsonl.private").is_dir()
    ledgers = [read_ledger(tmp_path / out / "privacy_ledger.json") for out in ("one", "two")]
    corpora = {event.relation.corpus for each in ledgers for event in each.events if isinstance(event, DecoyedText)}
    assert len(corpora) == 2, "each has a key of its own"


REFUSED = [
    (("-o", "{out}", "--tier", "low-contextual"), "Use --tier high-entity or low-entity."),
    (("-o", "{out}", "--recipe", "decoys", "--target-epsilon", 2), "--recipe decoys releases nothing"),
    (("-o", "{out}/deeper"), "is no folder that can be written to"),
    (("-o", "-"), "names no new folder"),
    (("-o", "{here}", "--force"), "would be replaced"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_cannot_be_written_is_refused_in_one_line(
    atdp: Atdp, mail: Path, tmp_path: Path, options: tuple[object, ...], message: str
) -> None:
    ended = atdp("decoy", mail, *(str(word).format(out=tmp_path / "out", here=tmp_path) for word in options))
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mail.jsonl"]


def test_standard_input_and_a_corpus_in_the_folder_are_refused(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    assert "it is read more than once" in atdp("decoy", "-", "-o", tmp_path / "out").err
    assert atdp("decoy", mail, "-o", tmp_path / "out", "--epochs", 1, *FLAGS).code == 0
    again = atdp("decoy", tmp_path / "out" / "epoch-1.jsonl", "-o", tmp_path / "out", "--force")
    assert "which is read" in again.err


def test_what_is_no_copies_is_never_replaced(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    """A model's folder has a ledger as well."""
    from tests.privacy.ledgers import ledger, steps

    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    assert "holds no copies of atdp decoy" in atdp("decoy", mail, "-o", folder, "--force").err
    write_ledger(folder / "privacy_ledger.json", ledger(steps(0.1, 1.0, 5)))
    assert "holds no copies of atdp decoy" in atdp("decoy", mail, "-o", folder, "--force").err
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.ci
def test_copies_are_replaced_whole_or_not_at_all(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert atdp("decoy", mail, "-o", out, "--epochs", 2, *UNIFORM).code == 0
    before, key = {path.name: path.read_bytes() for path in out.iterdir()}, tmp_path / "out.private" / "corpus.key"
    assert "exists. Use --force" in atdp("decoy", mail, "-o", out, "--epochs", 1, *UNIFORM).err
    mail.write_text(MAIL + "\n{broken\n", newline="")
    broken = atdp("decoy", mail, "-o", out, "--epochs", 1, "--force", *UNIFORM)
    assert broken.code == 2
    spans = tmp_path / "spans.jsonl"
    mail.write_text(MAIL, newline="")
    spans.write_text('{"id": "1", "spans": []}\n' * 4)
    late = atdp("decoy", mail, "-o", out, "--epochs", 1, "--force", "--spans", spans)
    assert "line 2 has another id" in late.err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    kept = key.read_bytes()
    assert atdp("decoy", mail, "-o", out, "--epochs", 1, "--force", "--set", "run.store=none").code == 0
    assert {path.name for path in out.iterdir()} == {"epoch-1.jsonl", "privacy_ledger.json"}
    assert key.read_bytes() == kept
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.ci
def test_what_the_ledger_of_the_copies_claims(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    for recipe, spans, expected in (
        ("fitted-decoys", False, {"end_to_end": "inf", "selective": 3, "uncounted": 0, "increment": 3}),
        ("decoys", False, {"end_to_end": "inf", "selective": 0, "increment": None}),
        ("fitted-decoys", True, {"end_to_end": "inf", "increment": 3}),
    ):
        listed = tmp_path / "spans.jsonl"
        assert atdp("detect", mail, "-o", listed, "--force", "--set", "run.store=none").code == 0
        given = ("--spans", listed) if spans else ("--set", "run.store=none")
        ended = atdp(
            "decoy", mail, "-o", tmp_path / "out", "--epochs", 1, "--recipe", recipe, "--force", "--json", *given
        )
        actual = {guarantee["scope"]: guarantee["epsilon"] for guarantee in ended.json["guarantees"]}
        assert actual.keys() == expected.keys()
        for scope, epsilon in expected.items():
            if isinstance(epsilon, int) and epsilon:
                assert 2 < actual[scope] <= epsilon
            else:
                assert actual[scope] == epsilon
        accounted = atdp("account", tmp_path / "out", "--json")
        assert accounted.json["guarantees"] == ended.json["guarantees"]
        assumed = " ".join(assumption for each in ended.json["guarantees"] for assumption in each["assumptions"])
        assert "checkpoint never saw" not in assumed
    [released, written] = read_ledger(tmp_path / "out" / "privacy_ledger.json").events
    assert isinstance(released, GaussianRelease)
    assert isinstance(written, DecoyedText)
    assert written.copies == 1
