"""Recall, precision and F2 of the low-entity tier beside presidio-analyzer, with the same spaCy pipeline.

    python -m tests.benchmarks.detection --json

Every character counts once: it is labelled or not, and flagged (as whatever) or not. Both tools read the same
texts; presidio-analyzer runs with its default recognisers and no threshold, and is asked for organisations too,
which its defaults leave out. Labels that the tier does not promise count neither for nor against a tool.

presidio-research's synthetic records: names, places, organisations, dates and the structured identifiers count.
TITLE, AGE, NRP (nationality, religion, politics) and DOMAIN_NAME (an address of a site, no credentials) do not.
WNUT-17, its words joined by spaces: person, location, corporation and group count. Products and creative works
do not: they belong to the high-entity tier.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atdp_cli.text.corpus.records import Record
from atdp_cli.text.detection.detect import detect_records
from atdp_cli.text.detection.scan import PIPELINES, load_pipeline
from atdp_cli.text.detection.spans import Tier, at_tier

SHARED = Path(__file__).parents[3] / "shared" / "data"
PRESIDIO_RESEARCH = SHARED / "presidio-research" / "synth_dataset_v2.json"
WNUT17 = SHARED / "wnut17" / "emerging.dev.conll"

NOT_COUNTED = frozenset({"TITLE", "AGE", "NRP", "DOMAIN_NAME", "product", "creative-work"})

Flag = Callable[[Sequence[str]], Iterator[list[tuple[int, int]]]]
"""Gives for each text what a tool flags, as (start, end)."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text and its labels: (start, end, type), end exclusive."""

    text: str
    labels: tuple[tuple[int, int, str], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--data", type=Path, default=PRESIDIO_RESEARCH, help="presidio-research's JSON")
    parser.add_argument("--wnut17", type=Path, default=WNUT17, help="a CoNLL file of WNUT-17")
    parser.add_argument("--pipeline", default=PIPELINES[1], help="the spaCy pipeline of both tools")
    arguments = parser.parse_args()
    for needed in (arguments.data, arguments.wnut17):
        if not needed.is_file():
            sys.exit(f"There is no file {needed}; name one with --data or --wnut17.")
    tools = {"atdp": atdp(arguments.pipeline), "presidio": presidio(arguments.pipeline)}
    result: dict[str, Any] = measure(tools, tuple(synthetic(arguments.data)))
    result["wnut17"] = measure(tools, tuple(conll(arguments.wnut17)))
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else table(result))


def measure(tools: dict[str, Flag], records: Sequence[Labelled]) -> dict[str, Any]:
    texts = [record.text for record in records]
    return {name: score(records, flag(texts)) for name, flag in tools.items()}


def score(records: Sequence[Labelled], flagged: Iterable[Sequence[tuple[int, int]]]) -> dict[str, Any]:
    """Over all characters, and by type: the share of its characters flagged, and of its spans flagged whole."""
    hits = positives = false_alarms = 0
    of_type: dict[str, list[tuple[int, int]]] = {}
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
    recall, precision = ratio(hits, positives), ratio(hits, hits + false_alarms)
    return {
        "overall": {
            "recall": round(recall, 4),
            "precision": round(precision, 4),
            "f2": round(ratio(5 * precision * recall, 4 * precision + recall), 4),
        },
        "by_type": {
            label: {
                "recall": round(ratio(sum(hit for hit, _ in spans), sum(size for _, size in spans)), 4),
                "fully_covered": round(ratio(sum(hit == size for hit, size in spans), len(spans)), 4),
                "spans": len(spans),
            }
            for label, spans in sorted(of_type.items())
        },
    }


def covered(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def atdp(pipeline: str) -> Flag:
    loaded = load_pipeline(pipeline)

    def flag(texts: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
        records = (Record(str(number), text) for number, text in enumerate(texts, start=1))
        for detection in detect_records(records, pipeline=loaded):
            yield [(span.start, span.end) for span in at_tier(detection.spans, Tier.LOW_ENTITY)]

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

    def flag(texts: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
        for text in texts:
            yield [(found.start, found.end) for found in analyzer.analyze(text=text, language="en")]

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


def table(result: dict[str, Any]) -> str:
    lines = []
    for name, pair in (("presidio-research", result), ("WNUT-17", result["wnut17"])):
        ours, theirs = pair["atdp"], pair["presidio"]
        lines.append(f"{name:<20}{'atdp':>8}{'presidio':>10}")
        for figure, value in ours["overall"].items():
            lines.append(f"{figure:<20}{value:>8.3f}{theirs['overall'][figure]:>10.3f}")
        for label, figures in ours["by_type"].items():
            lines.append(f"  {label:<18}{figures['recall']:>8.3f}{theirs['by_type'][label]['recall']:>10.3f}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
