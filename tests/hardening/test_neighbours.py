"""Corpora with other flagged values: whatever option reads raw text, the same bytes are published.

Each case changes every record of a corpus, about sixty of them, into a neighbour: by one stream of random numbers the
weights, what was chosen on the way and all public files must be the same to the last bit.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from atdp_cli.corpus.record import Record, read_records
from atdp_cli.corpus.spans import Span, Tier, at_tier, merge
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.detection.span_file import read_spans, spans_line
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.hardening.summary import HardenSummary
from atdp_cli.replacement.decoys import uniformly
from atdp_cli.replacement.draw import decoy_record
from atdp_cli.replacement.edits import redact_text
from atdp_cli.replacement.equality import equality_pattern
from atdp_cli.replacement.frequencies import votes
from atdp_cli.training.recipe import NonPrivate, Recipe, Train, parse_recipe
from tests.hardening.resumption import Place, finished, report

Text = tuple[str, tuple[Span, ...]]
Changed = Literal["any", "uncounted", "same bytes"]
"""What may change: any value, what no release counts, or what redacts to the same bytes."""


def neighbour(text: str, spans: tuple[Span, ...], changed: Changed, dice: random.Random) -> Text:
    """Another value of the same label, shape and equalities in each flagged place that may change."""
    before = tuple(merge(spans))
    fixed = tuple(span for span in before if changed == "uncounted" and votes(text, (span,)))
    free = [span for span in before if span not in fixed]
    [drawn] = decoy_record([(text, free)], uniformly(dice.randrange), "record")
    moved = iter(drawn.places)
    after = []
    for span in before:
        start, end = (span.start, span.end) if span in fixed else next(moved)
        after.append(replace(span, start=start, end=end))
    assert equality_pattern([(drawn.text, after)]) == equality_pattern([(text, before)])
    # What stays is where it was, so nothing that changes may change its length.
    assert not fixed or len(drawn.text) == len(text)
    if changed == "same bytes":
        assert redact_text(drawn.text, after).text == redact_text(text, before).text
    return drawn.text, tuple(after)


def lines(texts: list[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def paragraphs(texts: list[str]) -> str:
    return "".join(f"{text}\n\n" for text in texts)


def blocks(texts: list[str]) -> str:
    """Conversations of four lines between blank ones."""
    return "".join(f"{text}\n" + "\n" * (number % 4 == 3) for number, text in enumerate(texts))


def objects(texts: list[str]) -> str:
    return "".join(json.dumps({"who": f"user {number // 4}", "said": text}) + "\n" for number, text in enumerate(texts))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run.

    Attributes:
        settings: Of the request.
        written: The corpus file of some texts, and the end of its name.
        stage: Settings of every stage.
        changed: What its neighbour may have otherwise.
    """

    recipe: str = "decoys"
    settings: Mapping[str, Any] = field(default_factory=dict)
    written: tuple[Callable[[list[str]], str], str] = (lines, ".txt")
    stage: Mapping[str, Any] = field(default_factory=dict)
    changed: Changed = "any"


LONG = {"epochs": 8, "mechanism": NonPrivate(batch_size=4)}
"""With enough small steps that there is room for trials."""

CASES = {
    "decoys": Case(),
    "decoys that need not be equal": Case(stage={"decoy_equality": "none"}),
    "a release": Case(recipe="fitted-decoys", changed="uncounted"),
    "trials": Case(settings={"tune": "quick"}, stage=LONG),
    "many trials": Case(settings={"tune": "full"}, stage=LONG),
    "trials after a release": Case(recipe="fitted-decoys", settings={"tune": "full"}, stage=LONG, changed="uncounted"),
    "the best epoch": Case(stage={"restore_best": True, "epochs": 4}),
    "trials and the best epoch": Case(settings={"tune": "quick"}, stage=LONG | {"restore_best": True}),
    "redacted text": Case(recipe="redacted", changed="same bytes"),
    "redacted text, then decoys": Case(recipe="redacted+decoys", changed="same bytes"),
    "decoys twice": Case(recipe="decoys+fitted-decoys", changed="uncounted"),
    "an adapter": Case(settings={"lora_rank": 2}),
    "paragraphs": Case(settings={"privacy_unit": "paragraph"}, written=(paragraphs, ".txt")),
    "a field": Case(settings={"text_field": "said"}, written=(objects, ".jsonl")),
    "conversations held out whole": Case(settings={"holdout_by": "blank-line"}, written=(blocks, ".txt")),
    "users held out whole": Case(settings={"text_field": "said", "holdout_by": "who"}, written=(objects, ".jsonl")),
    "all records": Case(settings={"max_records": None}),
    "weights that stay in bf16": Case(settings={"compute_dtype": "bfloat16"}),
}


def recipe_of(case: Case) -> Recipe:
    return tuple(replace(stage, **case.stage) for stage in parse_recipe(case.recipe) if isinstance(stage, Train))


def written(folder: Path, case: Case, texts: list[Text]) -> dict[str, Any]:
    """A corpus and its spans."""
    folder.mkdir()
    write, ending = case.written
    corpus, spans = folder / f"corpus{ending}", folder / "spans.jsonl"
    corpus.write_text(write([text for text, _ in texts]), encoding="utf-8")
    unit = case.settings.get("privacy_unit", "line")
    records = list(read_records(corpus, unit=unit, text_field=case.settings.get("text_field", "text")))
    assert [record.text for record in records] == [text for text, _ in texts]
    spans.write_text(
        "".join(spans_line(record.id, found) + "\n" for record, (_, found) in zip(records, texts, strict=True))
    )
    return {"data": (corpus,), "spans": spans}


def public_files(hardened: HardenSummary) -> dict[str, bytes]:
    """All that is published, but for what differs between any two runs.

    That is the run's name, the time of its end, the commitment to the corpus, a keyed hash, and the digest of all that.
    """
    folder = Path(hardened.output)
    ledger = json.loads((folder / "privacy_ledger.json").read_text())
    own = {ledger["run"], ledger["created"], ledger["digest"]}
    own |= {event["relation"]["corpus"] for event in ledger["events"]} | {event["run"] for event in ledger["events"]}
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for value in own:
            content = content.replace(str(value).encode(), b"...")
        files[path.relative_to(folder).as_posix()] = content
    return files


def both(case: Case, place: Place, folder: Path) -> tuple[HardenSummary, HardenSummary]:
    """The run on the small corpus, and on its neighbour in every record."""
    dice = random.Random(case.recipe)
    ours = [(record.text, tuple(spans)) for record, spans in read_spans(place.spans, read_records(place.corpus))]
    theirs = [neighbour(*each, case.changed, dice) for each in ours]
    assert sum(text != other for (text, _), (other, _) in zip(ours[:60], theirs[:60], strict=True)) >= 55

    def of(name: str, texts: list[Text]) -> HardenSummary:
        asked = {"checkpoint_history": "public", **case.settings, **written(folder / f"{name} corpus", case, texts)}
        request: SettledRequest = place.request(recipe_of(case), out=name, **asked)
        return finished(request.replace(recipe=recipe_of(case)) if case.stage else request)

    return of("first", ours), of("second", theirs)


@pytest.mark.ci
@pytest.mark.parametrize("name", CASES)
def test_no_flagged_value_has_a_say_in_what_is_published(name: str, place: Place, tmp_path: Path) -> None:
    first, second = both(CASES[name], place, tmp_path)
    assert public_files(first) == public_files(second)
    losses = [[stage["trial_losses"] for stage in report(each)["stages"]] for each in (first, second)]
    assert losses[0] == losses[1]
    # What is measured on raw text does differ.
    assert first.perplexity.after != second.perplexity.after


@pytest.mark.ci
def test_what_a_release_counts_has_a_say(place: Place, tmp_path: Path) -> None:
    """Corpora that differ in what is paid for by ε: the comparison sees that."""
    first, second = both(Case(recipe="fitted-decoys"), place, tmp_path)
    assert public_files(first)["model.safetensors"] != public_files(second)["model.safetensors"]


@pytest.mark.ci
def test_no_held_out_value_of_a_file_has_a_say(place: Place, tmp_path: Path) -> None:
    """With --eval-data and trials; the detector itself reads both files, so records count that it flags alike."""
    pipeline, dice = load_pipeline(), random.Random(4)
    ours = [(record.text, tuple(spans)) for record, spans in read_spans(place.spans, read_records(place.corpus))]
    pairs = [(each, neighbour(*each, "any", dice)) for each in ours]
    found = [
        list(detect_records([Record(str(at), text) for at, (text, _) in enumerate(texts)], pipeline=pipeline))
        for texts in zip(*pairs, strict=True)
    ]
    alike = [
        (first.record.text, second.record.text)
        for first, second, (_, (_, spans)) in zip(*found, pairs, strict=True)
        if places_of(first.spans) == places_of(ours[int(first.record.id)][1])
        and places_of(second.spans) == places_of(spans)
    ]
    assert len(alike) >= 60
    assert sum(first != second for first, second in alike) >= 0.9 * len(alike)

    def of(name: str, texts: Sequence[str]) -> HardenSummary:
        (folder := tmp_path / f"{name} files").mkdir()
        for file, part in (("data.txt", texts[:-15]), ("held.txt", texts[-15:])):
            (folder / file).write_text(lines(list(part)), encoding="utf-8")
        case = Case(stage=LONG)
        asked: dict[str, Any] = {"data": (folder / "data.txt",), "eval_data": folder / "held.txt", "spans": None}
        request = place.request(recipe_of(case), out=name, checkpoint_history="public", tune="quick", **asked)
        return finished(request.replace(recipe=recipe_of(case)))

    first, second = (of(name, texts) for name, texts in zip(("first", "second"), zip(*alike, strict=True), strict=True))
    assert public_files(first) == public_files(second)
    assert first.perplexity.after != second.perplexity.after


def places_of(spans: Sequence[Span]) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label) for span in merge(at_tier(spans, Tier.LOW_ENTITY))]
