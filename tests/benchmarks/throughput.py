"""Speed of detection over that of a bare pass of the same spaCy pipeline, in one run.

    python -m tests.benchmarks.throughput --json

Detection reads the file, looks for everything, writes spans lines and fills a new span store; the bare pass is
`pipeline.pipe` over the same texts with as many processes. Then detection again, from the store. `identifiers` is the
processor time that all recognisers take for these texts, over that of detection, both in this process.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from atdp_cli.corpus.record import read_records
from atdp_cli.corpus.spans import at_tier, merge
from atdp_cli.detection.detector import Detector, run_detector
from atdp_cli.detection.identifiers import RECOGNISERS
from atdp_cli.detection.run_on import Local
from atdp_cli.detection.scan import BATCH, PIPELINES, load_pipeline
from atdp_cli.detection.span_file import spans_line
from atdp_cli.events import ignore

DATA = Path(__file__).parents[3] / "shared" / "data"
CORPORA = (DATA / "wikitext-2-raw" / "valid.txt", DATA / "abcd" / "valid.txt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--data", type=Path, nargs="+", default=CORPORA, help="text files")
    parser.add_argument("--kilobytes", type=int, default=400, help="how much of each file to read")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of processes")
    parser.add_argument("--rounds", type=int, default=5, help="how often to measure")
    parser.add_argument("--pipeline", default=PIPELINES[1], help="the spaCy pipeline")
    arguments = parser.parse_args()
    for needed in arguments.data:
        if not needed.is_file():
            sys.exit(f"There is no file {needed}; name others with --data.")
    pipeline = load_pipeline(arguments.pipeline)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(arguments.data):
            corpus = Path(folder) / f"{number}.txt"
            corpus.write_bytes(beginning(path, 1000 * arguments.kilobytes))
            for jobs in arguments.jobs:
                name = f"{path.parent.name}, jobs {jobs}"
                result[name] = compare(corpus, pipeline, jobs, arguments.rounds, Path(folder))
            result[f"{path.parent.name}, identifiers"] = identifiers_share(corpus, pipeline, Path(folder))
    lines = "".join(f"{name:<28}{figures}\n" for name, figures in result.items())
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else lines)


def beginning(path: Path, size: int) -> bytes:
    """Whole lines from the beginning of a file."""
    with path.open("rb") as stream:
        return b"".join(stream.readlines(size))


def compare(corpus: Path, pipeline: Any, jobs: int, rounds: int, folder: Path) -> dict[str, float]:
    """Kilobytes a second of each, and the median over the rounds of the speed of detection over the bare one."""
    texts = [record.text for record in read_records(corpus)]
    deque(islice(pipeline.pipe(texts, batch_size=BATCH), 5 * BATCH), maxlen=0)
    bare: list[float] = []
    first: list[float] = []
    again: list[float] = []

    def passed() -> None:
        deque(pipeline.pipe(texts, batch_size=BATCH, n_process=jobs), maxlen=0)

    for number in range(rounds):
        store = folder / f"{corpus.stem}-{jobs}-{number}.private"
        detector = Detector(executor=Local(workers=jobs), store=store)

        def detected(detector: Detector = detector) -> None:
            detect_once(corpus, pipeline, detector, folder / "spans.jsonl")

        # Turned about, so that neither profits from its place.
        for measure, seconds in ((passed, bare), (detected, first))[:: 1 if number % 2 else -1]:
            seconds.append(timed(measure))
        again.append(timed(detected))
    kilobytes = corpus.stat().st_size / 1000
    return {
        "speed over bare": round(statistics.median(a / b for a, b in zip(bare, first, strict=True)), 3),
        "bare kB/s": round(kilobytes / statistics.median(bare), 1),
        "first run kB/s": round(kilobytes / statistics.median(first), 1),
        "from the store kB/s": round(kilobytes / statistics.median(again), 1),
        "store MB per MB": round((store / "spans.db").stat().st_size / 1000 / kilobytes, 2),
    }


def identifiers_share(corpus: Path, pipeline: Any, folder: Path) -> float:
    """The recognisers' share of the processor time of detection, without a store."""
    texts = [record.text for record in read_records(corpus)]
    started = time.process_time()
    for text in texts:
        for recognise in RECOGNISERS:
            deque(recognise(text), maxlen=0)
    recognised = time.process_time()
    detect_once(corpus, pipeline, Detector(), folder / "spans.jsonl")
    return round((recognised - started) / (time.process_time() - recognised), 4)


def detect_once(corpus: Path, pipeline: Any, detector: Detector, target: Path) -> None:
    with target.open("w") as stream:
        for found in run_detector(read_records(corpus), detector, pipeline, ignore):
            found.sensitive_tokens(detector.tier)
            stream.write(spans_line(found.record.id, merge(at_tier(found.spans, detector.tier))) + "\n")


def timed(measure: Callable[[], None]) -> float:
    started = time.perf_counter()
    measure()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
