"""Recall, precision and F2 of the low-entity tier beside presidio-analyzer, with the same spaCy pipeline.

    python -m tests.benchmarks.detection --json

Every character counts once: it is labelled or not, and flagged (as whatever) or not. Both tools read the same
texts; presidio-analyzer runs with its default recognisers and no threshold, and is asked for organisations too,
which its defaults leave out. Labels that the tier does not promise count neither for nor against a tool. Precision is
also given over the spans of names alone (`NAMES`), and for each label that a tool gives. Speed is of one pass over a
set by a loaded tool, in characters a second.

Chats and notes (`labelled/`): every label of labelled/README.md counts. Rules are made on the development halves; the
halves for reporting are scored with --reported.

presidio-research's synthetic records: names, places, organisations, dates and the structured identifiers count.
TITLE, AGE, NRP (nationality, religion, politics) and DOMAIN_NAME (an address of a site, no credentials) do not.
WNUT-17, its words joined by spaces: person, location, corporation and group count. Products and creative works
do not: they belong to the high-entity tier.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Tier, at_tier
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.scan import PIPELINES, load_pipeline

SHARED = Path(__file__).parents[3] / "shared" / "data"
PRESIDIO_RESEARCH = SHARED / "presidio-research" / "synth_dataset_v2.json"
WNUT17 = SHARED / "wnut17" / "emerging.dev.conll"

NOT_COUNTED = frozenset({"TITLE", "AGE", "NRP", "DOMAIN_NAME", "product", "creative-work"})

LABELLED = Path(__file__).parent / "labelled"

NAMES = frozenset({"PERSON", "ORG", "GPE", "LOC", "FAC", "PROPN", "ORGANIZATION", "LOCATION", "NRP"})
"""The labels of both tools for names."""

MARK = re.compile(r"⟦(?P<label>[A-Z_]+)\|(?P<text>[^⟦⟧]+)⟧")

Found = tuple[int, int, str]
"""(start, end, label)."""

Flag = Callable[[Sequence[str]], Iterator[list[Found]]]
"""Gives for each text what a tool flags."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text and its labels: (start, end, type), end exclusive."""

    text: str
    labels: tuple[Found, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--data", type=Path, default=PRESIDIO_RESEARCH, help="presidio-research's JSON")
    parser.add_argument("--wnut17", type=Path, default=WNUT17, help="a CoNLL file of WNUT-17")
    parser.add_argument("--pipeline", default=PIPELINES[1], help="the spaCy pipeline of both tools")
    parser.add_argument("--confidence", action="store_true", help="print how often each kind of span of ours is right")
    parser.add_argument("--reported", action="store_true", help="score the halves of chats and notes set aside")
    arguments = parser.parse_args()
    for needed in (arguments.data, arguments.wnut17):
        if not needed.is_file():
            sys.exit(f"There is no file {needed}; name one with --data or --wnut17.")
    sets = labelled_sets(arguments.data, arguments.wnut17, "reported" if arguments.reported else "development")
    if arguments.confidence:
        sys.stdout.write(json.dumps(confidences(arguments.pipeline, sets), indent=1) + "\n")
        return
    tools = {"atdp": atdp(arguments.pipeline), "presidio": presidio(arguments.pipeline)}
    result = {name: measure(tools, records) for name, records in sets.items()}
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else table(result))


def labelled_sets(presidio_research: Path, wnut17: Path, half: str) -> dict[str, tuple[Labelled, ...]]:
    """All sets, by name; of chats and notes one half."""
    return {
        "presidio-research": tuple(synthetic(presidio_research)),
        "WNUT-17": tuple(conll(wnut17)),
        "chats": tuple(marked(LABELLED / f"chats.{half}.txt")),
        "notes": tuple(marked(LABELLED / f"notes.{half}.txt")),
    }


def measure(tools: dict[str, Flag], records: Sequence[Labelled]) -> dict[str, Any]:
    texts = [record.text for record in records]
    scores = {}
    for name, flag in tools.items():
        began = time.perf_counter()
        flagged = list(flag(texts))
        seconds = time.perf_counter() - began
        scores[name] = score(records, flagged) | {"characters_a_second": round(sum(map(len, texts)) / seconds)}
    return scores


def confidences(pipeline: str, sets: dict[str, tuple[Labelled, ...]]) -> dict[str, dict[str, tuple[float, int]]]:
    """By label and source, then by set: the share of our spans of which half is labelled, and how many there are."""
    loaded, right = load_pipeline(pipeline), dict[str, dict[str, list[bool]]]()
    for name, labelled in sets.items():
        records = (Record(str(number), record.text) for number, record in enumerate(labelled, start=1))
        for record, detection in zip(labelled, detect_records(records, pipeline=loaded), strict=True):
            ignored = covered(label for label in record.labels if label[2] in NOT_COUNTED)
            counted = covered(label for label in record.labels if label[2] not in NOT_COUNTED)
            for span in at_tier(detection.spans, Tier.LOW_ENTITY):
                if places := set(range(span.start, span.end)) - ignored:
                    of_kind = right.setdefault(f"{span.label} {span.source}", {}).setdefault(name, [])
                    of_kind.append(2 * len(places & counted) >= len(places))
    return {
        kind: {name: (round(ratio(sum(each), len(each)), 3), len(each)) for name, each in by_set.items()}
        for kind, by_set in sorted(right.items())
    }


def score(records: Sequence[Labelled], flagged: Iterable[Sequence[Found]]) -> dict[str, Any]:
    """Over all characters, and by type: the share of its characters flagged, and of its spans flagged whole."""
    hits = positives = false_alarms = 0
    of_type: dict[str, list[tuple[int, int]]] = {}
    given: dict[str, list[int]] = {}
    names = [0, 0]
    for record, spans in zip(records, flagged, strict=True):
        found = covered(spans)
        counted, ignored = set[int](), set[int]()
        for start, end, label in record.labels:
            places = set(range(start, end))
            (ignored if label in NOT_COUNTED else counted).update(places)
            if label not in NOT_COUNTED:
                of_type.setdefault(label, []).append((len(places & found), len(places)))
        hits += len(counted & found)
        positives += len(counted)
        false_alarms += len(found - counted - ignored)
        for label in {label for _, _, label in spans}:
            places = covered(span for span in spans if span[2] == label) - ignored
            right = given.setdefault(label, [0, 0])
            right[0] += len(places & counted)
            right[1] += len(places)
        places = covered(span for span in spans if span[2] in NAMES) - ignored
        names = [names[0] + len(places & counted), names[1] + len(places)]
    recall, precision = ratio(hits, positives), ratio(hits, hits + false_alarms)
    return {
        "overall": {
            "recall": round(recall, 4),
            "precision": round(precision, 4),
            "f2": round(ratio(5 * precision * recall, 4 * precision + recall), 4),
            "precision_of_names": round(ratio(*names), 4),
        },
        "by_type": {
            label: {
                "recall": round(ratio(sum(hit for hit, _ in spans), sum(size for _, size in spans)), 4),
                "fully_covered": round(ratio(sum(hit == size for hit, size in spans), len(spans)), 4),
                "spans": len(spans),
            }
            for label, spans in sorted(of_type.items())
        },
        "precision_by_label": {
            label: {"precision": round(ratio(*counts), 4), "characters": counts[1]}
            for label, counts in sorted(given.items())
        },
    }


def covered(spans: Iterable[Found]) -> set[int]:
    return {place for start, end, _ in spans for place in range(start, end)}


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def atdp(pipeline: str) -> Flag:
    loaded = load_pipeline(pipeline)

    def flag(texts: Sequence[str]) -> Iterator[list[Found]]:
        records = (Record(str(number), text) for number, text in enumerate(texts, start=1))
        for detection in detect_records(records, pipeline=loaded):
            yield [(span.start, span.end, span.label) for span in at_tier(detection.spans, Tier.LOW_ENTITY)]

    return flag


def presidio(pipeline: str) -> Flag:
    import presidio_analyzer
    import tldextract
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    # The list of domain suffixes that comes with the package; its default is to download a newer one.
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    provider = NlpEngineProvider()
    provider.nlp_configuration["models"] = [{"lang_code": "en", "model_name": pipeline}]
    provider.nlp_configuration["ner_model_configuration"]["labels_to_ignore"].remove("ORGANIZATION")
    engine = provider.create_engine()
    analyzer = presidio_analyzer.AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])

    def flag(texts: Sequence[str]) -> Iterator[list[Found]]:
        for text in texts:
            yield [(found.start, found.end, found.entity_type) for found in analyzer.analyze(text=text, language="en")]

    return flag


def synthetic(path: Path) -> Iterator[Labelled]:
    """The records of presidio-research's JSON."""
    for record in json.loads(path.read_text(encoding="utf-8")):
        spans = record["spans"]
        labels = ((span["start_position"], span["end_position"], span["entity_type"]) for span in spans)
        yield Labelled(record["full_text"], tuple(labels))


def conll(path: Path) -> Iterator[Labelled]:
    """The sentences of a file with a word, a tab and an IOB tag on each line, and blank lines between them."""
    for block in path.read_text(encoding="utf-8").replace("\n\t\n", "\n\n").split("\n\n"):
        text = ""
        labels: list[tuple[int, int, str]] = []
        for line in block.strip("\n").split("\n"):
            word, _, tag = line.partition("\t")
            text += " " * bool(text)
            start, end = len(text), len(text) + len(word)
            text += word
            position, _, label = tag.strip().partition("-")
            if position == "B":
                labels.append((start, end, label))
            elif position == "I" and labels:
                labels[-1] = (labels[-1][0], end, label)
        if text.strip():
            yield Labelled(text, tuple(labels))


def marked(path: Path) -> Iterator[Labelled]:
    """The lines of a file in which each labelled span is written ⟦LABEL|text⟧."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text, labels, end = "", [], 0
        for mark in MARK.finditer(line):
            text += line[end : mark.start()]
            labels.append((len(text), len(text) + len(mark["text"]), mark["label"]))
            text, end = text + mark["text"], mark.end()
        yield Labelled(text + line[end:], tuple(labels))


def table(result: dict[str, Any]) -> str:
    lines = []
    for name, pair in result.items():
        ours, theirs = pair["atdp"], pair["presidio"]
        lines.append(f"{name:<20}{'atdp':>8}{'presidio':>10}")
        for figure, value in ours["overall"].items():
            lines.append(f"{figure:<20}{value:>8.3f}{theirs['overall'][figure]:>10.3f}")
        for label, figures in ours["by_type"].items():
            lines.append(f"  {label:<18}{figures['recall']:>8.3f}{theirs['by_type'][label]['recall']:>10.3f}")
        speed = [tool["characters_a_second"] for tool in (ours, theirs)]
        lines.append(f"{'characters a second':<20}{speed[0]:>8,}{speed[1]:>10,}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
