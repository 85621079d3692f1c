"""How far two people who labelled the chats and notes by themselves agree.

    python -m tests.benchmarks.agreement --json

Over characters: whether each is labelled (Cohen's kappa), and F1 of the labelled ones. Over spans: F1 of those that
both have at the same place, and of those that both have there with the same label.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from tests.benchmarks.detection import LABELLED, Labelled, covered, marked, ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = {}
    for name in ("chats", "notes"):
        first, second = (tuple(marked(LABELLED / f"{name}.{person}.txt")) for person in "ab")
        result[name] = agreement(first, second)
    if arguments.json:
        sys.stdout.write(json.dumps(result) + "\n")
        return
    for name, figures in result.items():
        sys.stdout.write(f"{name}: " + ", ".join(f"{figure} {value:.3f}" for figure, value in figures.items()) + "\n")


def agreement(first: Sequence[Labelled], second: Sequence[Labelled]) -> dict[str, float]:
    """Agreement over the same texts.

    Raises:
        ValueError: The texts differ.
    """
    if [record.text for record in first] != [record.text for record in second]:
        raise ValueError("the two did not label the same texts")
    characters = sum(len(record.text) for record in first)
    left, right, both = 0, 0, 0
    places = labels = spans = 0
    for record, other in zip(first, second, strict=True):
        mine, theirs = covered(record.labels), covered(other.labels)
        left, right, both = left + len(mine), right + len(theirs), both + len(mine & theirs)
        spans += len(record.labels) + len(other.labels)
        places += len({span[:2] for span in record.labels} & {span[:2] for span in other.labels})
        labels += len(set(record.labels) & set(other.labels))
    same = ratio(characters - left - right + 2 * both, characters)
    chance = ratio(left, characters) * ratio(right, characters)
    chance += (1 - ratio(left, characters)) * (1 - ratio(right, characters))
    return {
        "kappa": round(ratio(same - chance, 1 - chance), 4),
        "characters": round(ratio(2 * both, left + right), 4),
        "spans": round(ratio(2 * places, spans), 4),
        "spans_and_labels": round(ratio(2 * labels, spans), 4),
    }


if __name__ == "__main__":
    main()
