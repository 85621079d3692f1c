"""Of real values, how many are neighbours of one another to the guarantee for flagged characters, by label.

    python -m tests.benchmarks.coverage

A flagged value is replaced by another real value of the same label whose decoys have the same law, drawn from all
records, and the record is read again. The two are neighbours where the detector flags the other value too, so that
all that decoys depend on is the same. `same redaction` also asks for the same labels, as recipes that read redacted
text do. Sets: those of `tests.benchmarks.detection`, their development halves.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier, at_tier, merge
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.replacement.draw import decoy_law
from atdp_cli.replacement.edits import redact_text
from atdp_cli.replacement.equality import equality_pattern
from tests.benchmarks.detection import PRESIDIO_RESEARCH, WNUT17, labelled_sets

Flagged = tuple[str, tuple[Span, ...]]


def flagged(texts: Sequence[str]) -> list[Flagged]:
    """Each text with its merged spans at the default tier."""
    records = [Record(str(number), text) for number, text in enumerate(texts)]
    detections = detect_records(records, pipeline=load_pipeline())
    return [(found.record.text, merge(at_tier(found.spans, Tier.LOW_ENTITY))) for found in detections]


def law(text: str, spans: Sequence[Span]) -> Hashable:
    """All that the decoys of a text depend on, and the text between them."""
    ends, starts = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(text)]
    between = tuple(text[end:start] for end, start in zip(ends, starts, strict=True))
    laws = tuple(decoy_law(span.label, text[span.start : span.end]) for span in spans)
    return between, laws, equality_pattern([(text, spans)])


def main() -> None:
    """Print the shares, of all labels and of each with ten values or more."""
    dice = random.Random(7)
    sets = labelled_sets(PRESIDIO_RESEARCH, WNUT17, "development")
    found = flagged([record.text for records in sets.values() for record in records])
    values: dict[Hashable, list[str]] = defaultdict(list)
    for text, spans in found:
        for span in spans:
            surface = text[span.start : span.end]
            values[span.label, decoy_law(span.label, surface)].append(surface)
    changed: list[tuple[str, Flagged, str]] = []
    for text, spans in found:
        for span in spans:
            surface = text[span.start : span.end]
            others = [other for other in values[span.label, decoy_law(span.label, surface)] if other != surface]
            if others and text.count(surface) == 1:
                after = f"{text[: span.start]}{dice.choice(others)}{text[span.end :]}"
                changed.append((span.label, (text, spans), after))
    tried, same_law, same_redaction = Counter[str](), Counter[str](), Counter[str]()
    for (label, (text, spans), _), (after, after_spans) in zip(
        changed, flagged([after for *_, after in changed]), strict=True
    ):
        alike = law(text, spans) == law(after, after_spans)
        tried[label] += 1
        same_law[label] += alike
        same_redaction[label] += alike and redact_text(text, spans) == redact_text(after, after_spans)
    print("| label | values | neighbours | same redaction |\n|---|---|---|---|")
    for label, count in [("all", tried.total()), *tried.most_common()]:
        if count >= 10:
            covered, redacted = (each.total() if label == "all" else each[label] for each in (same_law, same_redaction))
            print(f"| {label} | {count} | {covered / count:.1%} | {redacted / count:.1%} |")


if __name__ == "__main__":
    main()
