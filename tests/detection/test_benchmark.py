"""How the detection benchmark counts."""

from pathlib import Path

import pytest

from atdp_cli.detection.detect import confidence
from atdp_cli.detection.scan import installed_pipeline
from tests.benchmarks.detection import Labelled, confidences, conll, labelled_sets, marked, score

FEWEST = 10
"""Spans of a kind in a set, of which a share is worth something."""


def test_labelled_characters_count_once_and_others_not_at_all() -> None:
    record = Labelled("Dr. Jo is in Rome now", ((0, 3, "TITLE"), (4, 6, "PERSON"), (13, 17, "GPE")))
    spans = [(0, 6, "PERSON"), (4, 6, "PERSON"), (13, 15, "GPE"), (18, 21, "DATE")]
    result = score([record], [spans])
    assert result["overall"] == {"recall": 0.6667, "precision": 0.5, "f2": 0.625, "precision_of_names": 0.8}
    assert result["by_type"]["PERSON"] == {"recall": 1.0, "fully_covered": 1.0, "spans": 1}
    assert result["by_type"]["GPE"] == {"recall": 0.5, "fully_covered": 0.0, "spans": 1}
    assert set(result["by_type"]) == {"PERSON", "GPE"}
    assert result["precision_by_label"] == {
        "PERSON": {"precision": 0.6667, "characters": 3},
        "GPE": {"precision": 1.0, "characters": 2},
        "DATE": {"precision": 0.0, "characters": 3},
    }


def test_marks_are_taken_out_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("hi\nits ⟦PERSON|jo li⟧, pin ⟦SECRET|40|93⟧!\n", encoding="utf-8")
    text = "its jo li, pin 40|93!"
    assert list(marked(path)) == [Labelled("hi", ()), Labelled(text, ((4, 9, "PERSON"), (15, 20, "SECRET")))]


def test_the_words_of_a_sentence_are_joined_by_spaces(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("At\tO\nOak\tB-location\nHill\tI-location\n\t\nHi\tO\n\nJo\tB-person\n", encoding="utf-8")
    assert list(conll(path)) == [
        Labelled("At Oak Hill", ((3, 11, "location"),)),
        Labelled("Hi", ()),
        Labelled("Jo", ((0, 2, "person"),)),
    ]


@pytest.mark.deep
def test_the_confidence_of_spacys_names_is_how_often_they_are_right(shared_data: Path) -> None:
    presidio = shared_data / "presidio-research" / "synth_dataset_v2.json"
    sets = labelled_sets(presidio, shared_data / "wnut17" / "emerging.dev.conll", "development")
    checked = set()
    for kind, by_set in confidences(installed_pipeline(), sets).items():
        label, source = kind.split()
        shares = [share for share, spans in by_set.values() if spans >= FEWEST]
        if source in ("ner", "pos") and shares:
            assert confidence(label, source) == pytest.approx(sum(shares) / len(shares), abs=0.05), kind
            checked.add(label)
    assert checked == {"PERSON", "ORG", "GPE", "LOC", "FAC", "DATE", "PROPN"}
