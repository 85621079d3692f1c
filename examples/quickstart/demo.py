"""What `make demo` runs: plant canaries, fine-tune without protection, audit, harden, audit again.

Every step is a command that you can run yourself; the table at the end is what those commands measured.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from atdp_cli.privacy.guarantee import rounded_up

HERE = Path(os.path.relpath(Path(__file__).parent))
CHECKPOINT = HERE / "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model of the closing table."""

    name: str
    audit: dict[str, Any]
    run: dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for all that the demo writes")
    out: Path = parser.parse_args().out
    out.mkdir(exist_ok=True)
    console = Console(highlight=False)
    started = time.monotonic()
    planted, manifest = out / "planted.txt", out / "canaries.json"
    data = ["--data", str(planted), "--manifest", str(manifest), "--force"]

    console.rule("1. Plant ten canaries in the private corpus")
    corpus = ["plant-canary", str(HERE / "corpus.txt"), "-o", str(planted), "--manifest", str(manifest)]
    atdp([*corpus, "--tokenizer", str(CHECKPOINT), "--from", str(HERE / "canaries.json"), "--force"])
    console.rule("2. Fine-tune without protection")
    leaky = out / "unprotected"
    before = atdp(["harden", str(CHECKPOINT), *data, "--recipe", "no-dp", "-o", str(leaky)])
    console.rule("3. Audit: does the model remember the canaries?")
    rows = [Row(name="before", audit=audit(leaky, manifest), run=before)]
    console.rule("4. Harden")
    hardened = out / "hardened"
    after = atdp(["harden", str(leaky), *data, "-o", str(hardened)])
    console.rule("5. Audit again")
    rows.append(Row(name="after", audit=audit(hardened, manifest), run=after))

    console.rule("What was measured")
    console.print(table(rows))
    console.print(conclusion(rows, planted), soft_wrap=True)
    console.print(f"Report: {hardened / 'privacy_report.json'}; model card: {hardened / 'README.md'}", soft_wrap=True)
    console.print(f"{time.monotonic() - started:.0f} seconds in all.")
    if rows[0].audit["verdict"] != "FAIL":
        console.print("The unprotected model should have failed its audit, and did not.")
        return 1
    return 0


def audit(model: Path, manifest: Path) -> dict[str, Any]:
    """One model's entry of `audit-canary --json`."""
    command = ["audit-canary", str(model), "--manifest", str(manifest), "--reference", str(CHECKPOINT)]
    entry: dict[str, Any] = atdp(command, allowed=(0, 1, 4))["models"][0]
    return entry


def atdp(arguments: list[str], *, allowed: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Run one command, its progress on the terminal, and return its JSON."""
    print(f"$ atdp {shlex.join(arguments)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "atdp_cli", *arguments, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    print(f"exit code {done.returncode}\n", file=sys.stderr, flush=True)
    if done.returncode not in allowed:
        sys.exit(done.returncode)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def table(rows: list[Row]) -> Table:
    """Mean exposure in bits by both scores, perplexity of held-out records, ε with its scope, and seconds."""
    found = Table(
        "",
        "audit",
        "exposure",
        "ratio",
        "perplexity",
        "ε end to end",
        "ε added",
        "s",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for row in rows:
        epsilon = {entry["scope"]: entry["epsilon"] for entry in row.run["guarantees"]}
        found.add_row(
            row.name,
            row.audit["verdict"],
            f"{row.audit['combined']['mean_exposure']:.2f}",
            f"{row.audit['combined']['mean_exposure_ratio']:.2f}",
            f"{row.run['perplexity']['after']['all']:.2f}",
            spelt(epsilon["end_to_end"]),
            spelt(epsilon["increment"]),
            f"{row.run['seconds']:.0f}",
        )
    return found


def spelt(epsilon: float | str | None) -> str:
    """ε as the table shows it."""
    return "–" if epsilon is None else rounded_up(float(epsilon))


def conclusion(rows: list[Row], planted: Path) -> str:
    """What the figures say; chance alone gives a mean exposure of 1.44 bits."""
    said = """Exposure is the mean over ten canaries, in bits: 1.44 is chance, 19.9 is certainty. The
ratio is the score of an attacker who holds the base model."""
    if rows[-1].audit["verdict"] == "PASS":
        return f"{said}\nAfter hardening the audit no longer finds the canaries, by either score."
    return f"""{said}
The hardened model still fails its audit: what a checkpoint has memorised is hard to
take out again, and the ε that was added says nothing about it. A model that met the
secrets under protection only is easier to keep clean, at a price in perplexity. From
the base, with an ε that holds end to end:
  atdp harden {CHECKPOINT} --data {planted} --recipe dp-sgd --prior public -o clean"""


if __name__ == "__main__":
    sys.exit(main())
