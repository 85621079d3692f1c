"""Shares of spaCy's tokens that each tier flags in every tenth line of WikiText-2 train.

    python -m tests.benchmarks.shares --json

White space is no token. The two rules for long digit runs are off: the paper has none, and it is its shares that
these are compared with.
"""

import argparse
import json
import sys
from itertools import islice
from pathlib import Path

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.identifiers import RECOGNISERS, numbers
from atdp_cli.detection.scan import PIPELINES, load_pipeline

WIKITEXT = Path(__file__).parents[3] / "shared" / "data" / "wikitext-2-raw" / "train.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--data", type=Path, default=WIKITEXT, help="a text file")
    parser.add_argument("--every", type=int, default=10, help="read one line in this many")
    parser.add_argument("--pipeline", default=PIPELINES[1], help="the spaCy pipeline")
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        sys.exit(f"There is no file {arguments.data}; name one with --data.")
    result = shares(arguments.data, arguments.every, arguments.pipeline)
    lines = "".join(f"{name:<18}{value}\n" for name, value in result.items())
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else lines)


def shares(path: Path, every: int, pipeline: str) -> dict[str, float]:
    """The number of tokens, and the share of them that each tier flags."""
    without_runs = [each for each in RECOGNISERS if each not in (numbers.digits, numbers.spaced_digits)]
    tokens = 0
    flagged = dict.fromkeys(Tier, 0)
    with path.open(encoding="utf-8") as lines:
        filled = (line for line in lines if line.strip())
        records = (Record(str(number), line) for number, line in enumerate(islice(filled, 0, None, every), start=1))
        for found in detect_records(records, pipeline=load_pipeline(pipeline), recognisers=without_runs):
            tokens += len(found.tokens)
            for tier in Tier:
                flagged[tier] += found.sensitive_tokens(tier)
    return {"tokens": tokens} | {str(tier): round(count / tokens, 4) for tier, count in flagged.items()}


if __name__ == "__main__":
    main()
