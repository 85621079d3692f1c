"""What `make demo` runs: plant canaries, fine-tune without protection, harden in two ways, audit all of them.

Every step is a command that you can run yourself; the table is what those commands measured, and the verdict is that
of the model that was hardened as recommended: by the default recipe, with the public base.
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

from atdp_cli.privacy.wording import rounded_up
from atdp_cli.reporting.html import VERDICTS
from atdp_cli.reporting.wording import MAY

HERE = Path(os.path.relpath(Path(__file__).parent))
CHECKPOINT = HERE / "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model of the closing table: its held-out perplexity, what made it, and its audit.

    Attributes:
        run: The JSON of the `harden` that wrote it; None for the base model.
    """

    name: str
    perplexity: float
    audit: dict[str, Any]
    run: dict[str, Any] | None = None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for all that the demo writes")
    out: Path = parser.parse_args().out
    out.mkdir(exist_ok=True)
    console = Console(highlight=False)
    started = time.monotonic()
    planted, manifest = out / "planted.txt", out / "canaries.json"
    data = ["--data", str(planted), "--manifest", str(manifest), "--force"]
    reference = ["--reference", str(CHECKPOINT)]
    short = ["--epochs", "1"]

    console.rule("1. Plant ten canaries in the private corpus")
    corpus = ["plant-canary", str(HERE / "corpus.txt"), "-o", str(planted), "--manifest", str(manifest)]
    atdp([*corpus, "--tokenizer", str(CHECKPOINT), "--from", str(HERE / "canaries.json"), "--force"])
    console.rule("2. Fine-tune without protection")
    leaky = out / "unprotected"
    plain = ["harden", str(CHECKPOINT), *data, "--recipe", "no-dp", "--set", "run.workers=2", "-o", str(leaky)]
    runs = {"no-dp": atdp(plain)}
    console.rule("3. Harden as recommended: train the public base anew on decoys. Beside it, the paper's mechanism")
    automatic, paper = out / "automatic", out / "hardened"
    with start(["harden", str(leaky), *data, "--recipe", "atdp", *short, "-o", str(paper), "--quiet"]) as beside:
        runs["decoys"] = atdp(["harden", str(leaky), *data, *reference, "-o", str(automatic)])
        runs["+atdp"] = finish(beside)
    console.rule("4. Audit: what does each model remember of the canaries?")
    models = [str(folder) for folder in (CHECKPOINT, leaky, automatic, paper)]
    audits = atdp(["audit-canary", *models, "--manifest", str(manifest), *reference], allowed=(0, 1, 4))["models"]
    both = out / "audit.json"
    both.write_text(json.dumps({"models": audits[1:3]}), encoding="utf-8")
    console.rule("5. Put what the audit found into the privacy report")
    report = atdp(["report", str(automatic), "--audit", str(both), "--name", "Quickstart, hardened"])

    rows = [Row(name="base", perplexity=runs["no-dp"]["perplexity"]["before"]["all"], audit=audits[0])]
    rows += [
        Row(name=name, perplexity=run["perplexity"]["after"]["all"], audit=audit, run=run)
        for (name, run), audit in zip(runs.items(), audits[1:], strict=True)
    ]
    console.rule("What was measured")
    console.print(table(rows))
    console.print(conclusion(rows), soft_wrap=True)
    verdict = report["release"]["verdict"]
    console.rule("The verdict on the model hardened as recommended")
    console.print(f"{VERDICTS[verdict]}. {report['release']['reason']}", style="bold", soft_wrap=True)
    console.print(MAY[verdict], soft_wrap=True)
    console.print(f"Report: {automatic / 'privacy_report.html'}; model card: {automatic / 'README.md'}", soft_wrap=True)
    console.print(f"{time.monotonic() - started:.0f} seconds in all.")
    if rows[1].audit["verdict"] != "FAIL":
        console.print("The unprotected model should have failed its audit, and did not.")
        return 1
    return 0


def atdp(arguments: list[str], *, allowed: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Run one command, its progress on the terminal, and return its JSON."""
    return finish(start(arguments), allowed=allowed)


def start(arguments: list[str]) -> subprocess.Popen[str]:
    """Start one command, its progress on the terminal."""
    print(f"$ atdp {shlex.join(arguments)}", file=sys.stderr, flush=True)
    return subprocess.Popen([sys.executable, "-m", "atdp_cli", *arguments, "--json"], stdout=subprocess.PIPE, text=True)


def finish(command: subprocess.Popen[str], *, allowed: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Wait for a command and return its JSON; without an exit code that is allowed, end with its own."""
    printed, _ = command.communicate()
    print(f"exit code {command.returncode}\n", file=sys.stderr, flush=True)
    if command.returncode not in allowed:
        sys.exit(command.returncode)
    answer: dict[str, Any] = json.loads(printed)
    return answer


def table(rows: list[Row]) -> Table:
    """Mean exposure in bits by both scores, held-out perplexity, ε of whole records and flagged values, and seconds."""
    table = Table(
        "",
        "audit",
        "exposure",
        "ratio",
        "perplexity",
        "ε records",
        "ε flagged",
        "s",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for row in rows:
        table.add_row(*cells(row))
    return table


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table. The base model's ratio to itself says nothing."""
    combined = row.audit["combined"]
    if row.run is None:
        return (row.name, "–", f"{combined['mean_exposure']:.2f}", "–", f"{row.perplexity:.2f}", "–", "–", "–")
    epsilon = {entry["scope"]: entry["epsilon"] for entry in row.run["guarantees"]}
    return (
        row.name,
        row.audit["verdict"],
        f"{combined['mean_exposure']:.2f}",
        f"{combined['mean_exposure_ratio']:.2f}",
        f"{row.perplexity:.2f}",
        spelt(epsilon["end_to_end"]),
        spelt(epsilon.get("selective")),
        f"{row.run['seconds']:.0f}",
    )


def spelt(epsilon: float | str | None) -> str:
    """ε as the table shows it."""
    return "–" if epsilon is None else rounded_up(float(epsilon))


def conclusion(rows: list[Row]) -> str:
    """What the figures say; chance alone gives a mean exposure of 1.44 bits."""
    said = """Exposure is the mean over ten canaries, in bits: 1.44 is chance, 19.9 is certainty. The
ratio is the score of an attacker who holds the base model."""
    verdicts = {row.name: row.audit["verdict"] for row in rows[2:]}
    for verdict, what in (
        ("PASS", "The audit finds nothing any more after"),
        ("FAIL", "It still finds the canaries after"),
    ):
        if names := [name for name, given in verdicts.items() if given == verdict]:
            said += f"\n{what} {' and '.join(names)}."
    return f"""{said}
decoys is trained from the public base, +atdp from the unprotected model: no ε covers what
that had memorised before."""


if __name__ == "__main__":
    sys.exit(main())
