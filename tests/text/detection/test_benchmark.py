"""How the detection benchmark counts."""

from pathlib import Path

from tests.benchmarks.detection import Labelled, conll, score


def test_labelled_characters_count_once_and_others_not_at_all() -> None:
    record = Labelled("Dr. Jo is in Rome now", ((0, 3, "TITLE"), (4, 6, "PERSON"), (13, 17, "GPE")))
    result = score([record], [[(0, 6), (4, 6), (13, 15), (18, 21)]])
    assert result["overall"] == {"recall": 0.6667, "precision": 0.5, "f2": 0.625}
    assert result["by_type"]["PERSON"] == {"recall": 1.0, "fully_covered": 1.0, "spans": 1}
    assert result["by_type"]["GPE"] == {"recall": 0.5, "fully_covered": 0.0, "spans": 1}
    assert set(result["by_type"]) == {"PERSON", "GPE"}


def test_the_words_of_a_sentence_are_joined_by_spaces(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("At\tO\nOak\tB-location\nHill\tI-location\n\t\nHi\tO\n\nJo\tB-person\n", encoding="utf-8")
    assert list(conll(path)) == [
        Labelled("At Oak Hill", ((3, 11, "location"),)),
        Labelled("Hi", ()),
        Labelled("Jo", ((0, 2, "person"),)),
    ]
