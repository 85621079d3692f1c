"""`redact_texts`: texts in memory come out as lines of a file do."""

from pathlib import Path

from atdp_cli.detection.options import DetectionOptions
from atdp_cli.detection.redact import RedactRequest, redact, redact_texts
from atdp_cli.detection.run import DetectRequest, detect


def test_texts_are_redacted_as_lines_of_a_file(lines: list[str], tmp_path: Path) -> None:
    corpus, output = tmp_path / "c.txt", tmp_path / "out.txt"
    corpus.write_text("".join(f"{line}\n" for line in lines[:40]))
    summary, _ = redact(RedactRequest(corpus=corpus, output=output, exclude="GPE"))
    assert redact_texts(lines[:40], DetectionOptions(exclude="GPE")) == output.read_text().splitlines()
    assert summary.records == 40
    found: list[str] = []
    assert detect(DetectRequest(corpus=corpus), write=found.append)[0].by_label["PERSON"] > 5
    assert len(found) == 40
