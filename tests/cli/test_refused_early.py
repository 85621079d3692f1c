"""Wrong paths and impossible options are refused before torch or spaCy is loaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.badinput.case import line

HARDEN = "harden model --data corpus.txt"

WRONG = (
    "harden model --data none.txt",
    "harden none --data corpus.txt",
    f"{HARDEN} --eval-data none.txt",
    f"{HARDEN} --manifest corpus.txt",
    f"{HARDEN} --spans none.jsonl",
    f"{HARDEN} --allow none.txt",
    f"{HARDEN} --recipe atdp --reference model",
    f"{HARDEN} --recipe none.toml",
    f"{HARDEN} --recipe atdp --set atdp.magic=1",
    f"{HARDEN} -o there",
    f"{HARDEN} -o model",
    f"{HARDEN} --recipe atdp --target-epsilon 3 --noise-multiplier 1",
    f"{HARDEN} --target-epsilon 1e-9",
    f"{HARDEN} --recipe atdp --max-epsilon 1e-9",
    f"{HARDEN} --delta 0.5",
    f"{HARDEN} --epochs 0",
    f"{HARDEN} --set run.merge-adapter=true",
    f"{HARDEN} --review-each-epoch --spans spans.jsonl",
    f"{HARDEN} --set run.store=found",
    f"{HARDEN} --quiet --set run.progress=json",
    f"{HARDEN} --set run.shard-model=true",
    "harden model --data -",
    f"{HARDEN} --detector pipeline.toml",
    f"{HARDEN} --detector finder.toml",
    "detect none.txt",
    "detect corpus.txt -o spans.jsonl",
    "detect corpus.txt --deny none.txt",
    "detect corpus.txt --detector corpus.txt",
    "detect corpus.txt --detector finder.toml",
    "redact corpus.txt -o none/redacted.txt",
    "redact corpus.txt -o redacted.jsonl",
    "redact corpus.txt -o redacted.txt --style pseudonym --pseudonym-key none/key",
    "review corpus.txt",
    "plant-canary corpus.txt -o planted.txt --manifest m.json --tokenizer none",
    "plant-canary corpus.txt -o spans.jsonl --manifest m.json --tokenizer model",
    "plant-canary corpus.txt -o planted.txt --manifest m.json --tokenizer model --from none.json",
    "audit-canary none --canary 49",
    "audit-canary model --canary none",
    "audit-canary model --manifest corpus.txt",
    "audit-canary model --canary 49 --reference none",
    "audit-canary model --canary 49 --attacks relearning --set run.other-text=none.txt",
    "audit-canary model --canary 49 --baseline none.json",
    "audit-canary model --canary 49 --junit spans.jsonl",
    "report model",
    "report there --html none/report.html",
)


@pytest.mark.ci
def test_nothing_is_loaded(tmp_path: Path, checkpoint_folder: Path) -> None:
    (tmp_path / "model").symlink_to(checkpoint_folder)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "kept.txt").write_text("kept")
    (tmp_path / "corpus.txt").write_text("".join(f"Emma wrote line {number}.\n" for number in range(40)))
    (tmp_path / "pipeline.toml").write_text('spacy_pipeline = "none"\n')
    (tmp_path / "finder.toml").write_text('ner = "hf:model"\n')
    (tmp_path / "spans.jsonl").write_text("".join(f'{{"id": "{at}", "spans": []}}\n' for at in range(1, 41)))
    left, wrong = [list(line(text)) for text in WRONG], []
    while left:
        done = subprocess.run(
            [sys.executable, "-m", "tests.cli.refusals"],
            input=json.dumps(left),
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "", "OMP_WAIT_POLICY": "PASSIVE"},
            capture_output=True,
            text=True,
            check=True,
        )
        ended = [json.loads(text) for text in done.stdout.splitlines()]
        wrong += [outcome for outcome in ended if outcome["code"] != 2 or outcome["loaded"]]
        left = left[len(ended) :]
    assert not wrong
