"""Corpora with other flagged values: whatever option reads raw text, the same bytes are published.

Each case changes every record of a corpus, about sixty lines or conversations, into a neighbour: by one stream of
random numbers the weights, what was chosen on the way and all public files must be the same to the last bit.
"""

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from atdp_cli.replacement.equality import DecoyEquality, equality_pattern
from atdp_cli.replacement.frequencies import votes
from atdp_cli.training.recipe import NonPrivate, Recipe, Train, parse_recipe
from tests.chats import CHATML, TEMPLATES, flagged_conversations, write_chat_checkpoint
from tests.hardening.neighbours import profile
from tests.hardening.resumption import Place, finished, report

Text = tuple[str, tuple[Span, ...]]
Changed = Literal["any", "also equalities", "uncounted", "same bytes"]
"""What may change: any value, also which are equal, what no release counts, or what redacts to the same bytes."""


def neighbour(text: str, spans: Sequence[Span], changed: Changed, dice: random.Random) -> Text:
    """Another value of the same label, shape and equalities in each flagged place that may change."""

    def kept(of: Text) -> object:
        shapes = [profile(span.label, of[0][span.start : span.end]) for span in merge(of[1])]
        return shapes, changed == "also equalities" or equality_pattern([of])

    before = text, tuple(spans)
    # By chance values may be equal, or a name in capitals so short that it is an abbreviation.
    redrawn = (_redrawn(*before, changed, dice) for _ in itertools.count())
    return next(after for after in redrawn if kept(after) == kept(before))


def _redrawn(text: str, spans: Sequence[Span], changed: Changed, dice: random.Random) -> Text:
    before = tuple(merge(spans))
    fixed = tuple(span for span in before if changed == "uncounted" and votes(text, (span,)))
    free = [span for span in before if span not in fixed]
    equality: DecoyEquality = "none" if changed == "also equalities" else "record"
    [drawn] = decoy_record([(text, free)], uniformly(dice.randrange), equality)
    moved = iter(drawn.places)
    after = []
    for span in before:
        start, end = (span.start, span.end) if span in fixed else next(moved)
        after.append(replace(span, start=start, end=end))
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


SPEAKERS = "(?P<user>user: )|(?P<assistant>assistant: )|(?P<system>system: )"
"""What begins a message of plain text, as run.turns reads it."""


def messages(number: int, text: str) -> Iterator[tuple[str, list[str]]]:
    """Who says what in a conversation of some lines; now and then a message has two, and a system says the first."""
    said, size = text.split("\n"), 2 if number % 5 == 4 else 1
    for at in range(0, len(said), size):
        answers = (at // size + number % 2) % 2
        yield "system" if at == 0 and number % 4 == 3 else "assistant" if answers else "user", said[at : at + size]


def chats(texts: list[str]) -> str:
    """Conversations as objects, a message of two lines in two parts."""

    def content(parts: list[str]) -> object:
        return parts[0] if len(parts) == 1 else [{"type": "text", "text": each} for each in parts]

    def chat(number: int, text: str) -> object:
        said = [{"role": role, "content": content(parts)} for role, parts in messages(number, text)]
        return {"who": f"user {number // 4}", "messages": said}

    return "".join(json.dumps(chat(number, text)) + "\n" for number, text in enumerate(texts))


def chats_of_users(texts: list[str]) -> str:
    """The messages of each text in two conversations of one user, all first ones before all second ones."""

    def row(number: int, said: list[tuple[str, list[str]]]) -> str:
        told = [{"role": role, "content": "\n".join(parts)} for role, parts in said]
        return json.dumps({"who": f"user {number}", "messages": told}) + "\n" if told else ""

    users = [list(messages(number, text)) for number, text in enumerate(texts)]
    halves = (slice(-(-len(user) // 2)) for user in users), (slice(-(-len(user) // 2), None) for user in users)
    return "".join(
        row(at, user[half]) for part in halves for (at, user), half in zip(enumerate(users), part, strict=True)
    )


def calls(texts: list[str]) -> str:
    """Conversations as paragraphs in which speakers begin a message."""

    def call(number: int, text: str) -> str:
        return "\n".join(f"{role}: " + "\n".join(parts) for role, parts in messages(number, text))

    return paragraphs([call(number, text) for number, text in enumerate(texts)])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run.

    Attributes:
        conversations: Whether its records are conversations, and not lines.
        settings: Of the request.
        written: The corpus file of some texts, and the end of its name.
        stage: Settings of every stage.
        changed: What its neighbour may have otherwise.
    """

    recipe: str = "decoys"
    conversations: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    written: tuple[Callable[[list[str]], str], str] = (lines, ".txt")
    stage: Mapping[str, Any] = field(default_factory=dict)
    changed: Changed = "any"


def chat(settings: Mapping[str, Any] | None = None, **others: Any) -> Case:
    """A run on conversations in JSON Lines, with other settings beside."""
    read = {"text_field": "messages", **(settings or {})}
    return Case(conversations=True, settings=read, **{"written": (chats, ".jsonl"), **others})


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
    "chats": chat(),
    "chats of which all is learnt": chat({"loss_on": "all"}),
    "chats whose values need not be equal": chat(stage={"decoy_equality": "none"}, changed="also equalities"),
    "chats after a release": chat(recipe="fitted-decoys", changed="uncounted"),
    "chats, redacted, then decoys": chat(recipe="redacted+decoys", changed="same bytes"),
    "chats, trials and the best epoch": chat({"tune": "quick"}, stage=LONG | {"restore_best": True}),
    "chats by users held out whole": chat({"holdout_by": "who", "loss_on": "all"}),
    "chats by a template that trims": chat({"chat_template": "Llama"}),
    "chats by a template without special tokens": chat({"chat_template": "own", "loss_on": "all"}),
    "chats in few windows": chat({"max_windows": 1}),
    "chats of users": chat({"privacy_unit": "who"}, written=(chats_of_users, ".jsonl")),
    "chats of users after a release": chat(
        {"privacy_unit": "who", "loss_on": "all"},
        recipe="fitted-decoys",
        changed="uncounted",
        written=(chats_of_users, ".jsonl"),
    ),
    "speakers": Case(
        conversations=True, settings={"privacy_unit": "paragraph", "turns": SPEAKERS}, written=(calls, ".txt")
    ),
}


@pytest.fixture(scope="module")
def checkpoint_folder(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """The small checkpoint with several chat templates, which reads about three messages at a time."""
    folder = tmp_path_factory.mktemp("checkpoint") / "tiny"
    return write_chat_checkpoint(folder, lines, {"default": CHATML, **TEMPLATES}, context=128)


def recipe_of(case: Case) -> Recipe:
    return tuple(replace(stage, **case.stage) for stage in parse_recipe(case.recipe) if isinstance(stage, Train))


def records_in(case: Case, corpus: Path, texts: Sequence[str]) -> list[Record]:
    """Some texts, written to a file and read again."""
    write, _ = case.written
    corpus.write_text(write(list(texts)), encoding="utf-8")
    asked = {"unit": "privacy_unit", "text_field": "text_field", "turns": "turns"}
    given = {name: case.settings[option] for name, option in asked.items() if option in case.settings}
    records = list(read_records(corpus, **given))
    assert [record.text for record in records] == list(texts)
    assert all(bool(record.turns) == case.conversations for record in records)
    return records


def written(folder: Path, case: Case, texts: list[Text]) -> dict[str, Any]:
    """A corpus and its spans."""
    folder.mkdir()
    corpus, spans = folder / f"corpus{case.written[1]}", folder / "spans.jsonl"
    records = records_in(case, corpus, [text for text, _ in texts])
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


def texts_of(case: Case, place: Place, count: int = 60) -> list[Text]:
    """The small corpus, or so many conversations."""
    if case.conversations:
        return flagged_conversations(count)
    return [(record.text, spans) for record, spans in read_spans(place.spans, read_records(place.corpus))]


def both(case: Case, place: Place, folder: Path) -> tuple[HardenSummary, HardenSummary]:
    """The run on a corpus, and on its neighbour in every record."""
    dice, ours = random.Random(case.recipe), texts_of(case, place)
    theirs = [neighbour(*each, case.changed, dice) for each in ours]
    assert sum(text != other for (text, _), (other, _) in zip(ours[:60], theirs[:60], strict=True)) >= 55
    return run_on(case, place, folder, "first", ours), run_on(case, place, folder, "second", theirs)


def run_on(case: Case, place: Place, folder: Path, name: str, texts: list[Text]) -> HardenSummary:
    """A case's run on these texts."""
    asked = {"checkpoint_history": "public", **case.settings, **written(folder / f"{name} corpus", case, texts)}
    return run_of(case, place, name, asked)


def run_of(case: Case, place: Place, name: str, asked: dict[str, Any]) -> HardenSummary:
    """The run with what is asked; a stage's settings hold over the small ones."""
    request: SettledRequest = place.request(recipe_of(case), out=name, **asked)
    return finished(request.replace(recipe=recipe_of(case)) if case.stage else request)


@pytest.mark.ci
@pytest.mark.parametrize("name", CASES)
def test_no_flagged_value_has_a_say_in_what_is_published(name: str, place: Place, tmp_path: Path) -> None:
    first, second = both(CASES[name], place, tmp_path)
    assert public_files(first) == public_files(second)
    losses = [[stage["trial_losses"] for stage in report(each)["stages"]] for each in (first, second)]
    assert losses[0] == losses[1]
    # What is measured on raw text does differ.
    assert first.perplexity.after != second.perplexity.after


SEEN = {
    "what a release counts": Case(recipe="fitted-decoys"),
    "what a release counts of chats": chat(recipe="fitted-decoys"),
    "which values of a chat are equal": chat(changed="also equalities"),
}
"""Corpora that differ in what is paid for by ε, or told by the decoys."""


@pytest.mark.ci
@pytest.mark.parametrize("name", SEEN)
def test_what_may_have_a_say_has_one(name: str, place: Place, tmp_path: Path) -> None:
    """The comparison sees these differences."""
    first, second = both(SEEN[name], place, tmp_path)
    assert public_files(first)["model.safetensors"] != public_files(second)["model.safetensors"]


@pytest.mark.ci
def test_a_word_of_one_message_has_a_say(place: Place, tmp_path: Path) -> None:
    """Even a word of a user's, which is read and not learnt."""
    case, texts = chat(), flagged_conversations()
    roles = ([role for role, _ in messages(number, text)] for number, (text, _) in enumerate(texts))
    at = next(number for number, each in enumerate(roles) if each[:2] == ["user", "assistant"])
    text, spans = texts[at]
    changed = [*texts[:at], (text.replace("my name", "my fame", 1), spans), *texts[at + 1 :]]
    first, second = (run_on(case, place, tmp_path, *each) for each in (("first", texts), ("second", changed)))
    assert public_files(first)["model.safetensors"] != public_files(second)["model.safetensors"]


@pytest.mark.ci
@pytest.mark.parametrize("case", [Case(stage=LONG), chat(stage=LONG)], ids=["lines", "chats"])
def test_no_held_out_value_of_a_file_has_a_say(case: Case, place: Place, tmp_path: Path) -> None:
    """With --eval-data and trials; the detector itself reads both files, so records count that it flags alike."""
    dice, ending = random.Random(4), case.written[1]
    ours = detected(case, tmp_path / f"ours{ending}", [text for text, _ in texts_of(case, place, 120)])
    theirs = [neighbour(*each, "any", dice) for each in ours]
    again = detected(case, tmp_path / f"theirs{ending}", [text for text, _ in theirs])
    pairs = zip(ours, theirs, again, strict=True)
    alike = [(text, other) for (text, _), (other, spans), (_, found) in pairs if places_of(found) == places_of(spans)]
    assert len(alike) >= 60
    assert sum(first != second for first, second in alike) >= 0.9 * len(alike)

    def of(name: str, texts: Sequence[str]) -> HardenSummary:
        (folder := tmp_path / f"{name} files").mkdir()
        data, held = folder / f"data{ending}", folder / f"held{ending}"
        records_in(case, data, texts[:-15])
        records_in(case, held, texts[-15:])
        asked = {**case.settings, "data": (data,), "eval_data": held, "spans": None}
        return run_of(case, place, name, {"checkpoint_history": "public", "tune": "quick", **asked})

    first, second = (of(name, texts) for name, texts in zip(("first", "second"), zip(*alike, strict=True), strict=True))
    assert public_files(first) == public_files(second)
    assert first.perplexity.after != second.perplexity.after


def detected(case: Case, corpus: Path, texts: Sequence[str]) -> list[Text]:
    """Texts with what the detector flags in them."""
    found = detect_records(records_in(case, corpus, texts), pipeline=load_pipeline())
    return [(each.record.text, merge(at_tier(each.spans, Tier.LOW_ENTITY))) for each in found]


def places_of(spans: Sequence[Span]) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label) for span in spans]
