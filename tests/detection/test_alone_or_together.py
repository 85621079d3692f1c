"""The spans of a record are the same alone as in any batch: what one record's flags may depend on is that record.

The selective guarantee and the weights of tokens rest on it. spaCy computes a batch at once, so its last bits could
depend on how many texts there are, how long, and in which order.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from atdp_cli.corpus.record import Record
from atdp_cli.detection.detect import Detection, detect_records
from atdp_cli.detection.detector import Detector, run_detector
from atdp_cli.detection.identifiers.recogniser import IdentifierMatch
from atdp_cli.detection.scan import BATCH, PIPELINES, installed_pipeline, load_pipeline
from atdp_cli.errors import InputError
from atdp_cli.events import ignore

Detect = Callable[[Sequence[Record]], list[Detection]]

ODD = ("", " ", "?", "\n\t\n", "😀 Zoë O’Brien", "\u200bАнна", "x" * 1500, "A. " * 40, "4111 1111 1111 1111", "…")
"""Records that a batch may hold as well: empty, a single character, other scripts, a word too long, an identifier."""


def records(lines: Sequence[str], count: int, draw: random.Random) -> list[Record]:
    """Records of one to six lines, and the odd ones."""
    texts = [*ODD, *("  ".join(draw.choices(lines, k=draw.choice((1, 1, 1, 1, 2, 6)))) for _ in range(count))]
    return [Record(str(number), text) for number, text in enumerate(texts)]


def depending(detect: Detect, pool: Sequence[Record], batches: int, draw: random.Random) -> list[str]:
    """The ids of records whose detection in one of so many random batches is not what it is alone."""
    alone: dict[str, Detection] = {}
    actual = []
    for _ in range(batches):
        batch = draw.sample(pool, draw.choice((2, 3, 5, 7, 16, 40)))
        for record, together in zip(batch, detect(batch), strict=True):
            if record.id not in alone:
                [alone[record.id]] = detect([record])
            if together != alone[record.id]:
                actual.append(record.id)
    return actual


def with_random_weights() -> Any:
    """A pipeline whose scores lie close together, so that a last bit decides more often than in a trained one."""
    import numpy as np
    import spacy
    from spacy.training import Example

    pipeline = spacy.blank("en")
    for name in ("tagger", "parser", "ner"):
        pipeline.add_pipe(name)
    doc = pipeline.make_doc("Anna met Tom in Rome .")
    reference = {
        "tags": ["NNP", "VBD", "NNP", "IN", "NNP", "."],
        "heads": [1, 1, 1, 1, 3, 1],
        "deps": ["nsubj", "ROOT", "dobj", "prep", "pobj", "punct"],
        "entities": ["U-PERSON", "O", "U-PERSON", "O", "U-GPE", "O"],
        "sent_starts": [True, False, False, False, False, False],
    }
    pipeline.initialize(lambda: [Example.from_dict(doc, reference)])
    normal = np.random.default_rng(1).normal
    for _, component in pipeline.pipeline:
        for node in component.model.walk():
            for name in node.param_names:
                if node.has_param(name) is True:
                    weights = node.get_param(name)
                    node.set_param(name, weights + normal(0, 0.02, weights.shape).astype(weights.dtype))
    return pipeline


def pipeline_called(name: str) -> Any:
    if name == "random weights":
        return with_random_weights()
    try:
        installed_pipeline(name)
    except InputError:
        pytest.skip(f"the spaCy pipeline {name} is not installed")
    return load_pipeline(name)


@pytest.mark.parametrize("batches", [4, pytest.param(60, marks=pytest.mark.ci)])
@pytest.mark.parametrize("name", [*PIPELINES, "random weights"])
def test_a_record_s_spans_do_not_depend_on_its_batch(lines: list[str], name: str, batches: int) -> None:
    pipeline, draw = pipeline_called(name), random.Random(batches)
    pool = records(lines, BATCH, draw)

    def detect(batch: Sequence[Record]) -> list[Detection]:
        return list(run_detector(batch, Detector(), pipeline, ignore))

    assert not depending(detect, pool, batches, draw)
    assert any(detection.spans for detection in detect(pool[-8:]))


def test_a_detector_that_remembers_is_noticed(lines: list[str], pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check has teeth: a word is flagged that a record before it in the batch has."""
    words: set[str] = set()

    def remembers(text: str) -> Iterator[IdentifierMatch]:
        actual = [match for match in re.finditer(r"\w{4,}", text) if match[0] in words]
        words.update(re.findall(r"\w{4,}", text))
        return ((*match.span(), "PERSON") for match in actual)

    def detect(batch: Sequence[Record]) -> list[Detection]:
        words.clear()
        return list(detect_records(batch, pipeline=pipeline))

    monkeypatch.setattr("atdp_cli.detection.spacy.RECOGNISERS", [remembers])
    draw = random.Random(1)
    assert depending(detect, records(lines, 30, draw), 1, draw)
