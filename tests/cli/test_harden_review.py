"""`harden --review-each-epoch`: people's lists act from the next epoch on, and the report says that ε does not know."""

import json
from pathlib import Path

import pytest

from atdp_cli.cli.app import run
from atdp_cli.corpus.split import held_out_positions
from atdp_cli.events import Event, Notify, ReviewQueued
from atdp_cli.hardening import data as reviewing
from atdp_cli.hardening.encode import encode

OPTIONS = [
    "--recipe",
    "atdp",
    "--epochs",
    "3",
    "--tier",
    "low-entity",
    "--set",
    "run.insecure-seed=1",
    "--set",
    "run.store=none",
]


@pytest.mark.ci
def test_a_queue_an_epoch_and_lists_that_act_from_the_next_one(
    checkpoint_folder: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reviewer marks "ready" after the first queue: the second queue hides it, and so does training."""
    queued: list[Path] = []
    seen: list[int] = []

    def count(flagged, *arguments):  # type: ignore[no-untyped-def]
        seen.append(
            sum(record.record.text[span.start : span.end] == "ready" for record in flagged for span in record.spans)
        )
        return encode(flagged, *arguments)

    original = reviewing.review_each_epoch

    def watched(request, split, data, private_folder, notify: Notify):  # type: ignore[no-untyped-def]
        def tell(event: Event) -> None:
            notify(event)
            if isinstance(event, ReviewQueued):
                queued.append(Path(event.queue))
                if len(queued) == 1:
                    run(["review", event.queue, "-q"])

        return original(request, split, data, private_folder, tell)

    answers = tmp_path / "answers"
    answers.write_text("".join("m ready\nk\n" for _ in range(60)))
    monkeypatch.setattr(reviewing, "encode", count)
    monkeypatch.setattr("atdp_cli.hardening.train.review_each_epoch", watched)
    with answers.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        code = run(
            [str(part) for part in ["harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "out", *OPTIONS]]
            + ["--review-each-epoch", "--set", "run.review-share=0.4", "-q"]
        )
    assert code == 0
    assert len(queued) == 3
    lines = corpus.read_text().splitlines()
    trained = [line for place, line in enumerate(lines) if place not in held_out_positions(len(lines))]
    hidden = sum(line.split().count("ready") for line in trained)
    assert seen[-3:] == [0, hidden, hidden]
    kept = sorted((tmp_path / "out.private" / "review").glob("*.jsonl"))
    assert [path.name for path in kept] == [f"{n}-atdp-epoch-{n}.jsonl" for n in (1, 2, 3)]
    later = [json.loads(line) for line in kept[1].read_text().splitlines()[1:]]
    assert not any("ready" in entry["masked"].split() for entry in later)
    report = json.loads((tmp_path / "out" / "privacy_report.json").read_text())
    assert any("review" in line for line in report["not_covered"])
    assert report["detector"]["lists"] is True
