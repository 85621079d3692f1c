"""What equal decoys are worth: the perplexity of models trained with them and without, on raw and on decoyed text.

    python examples/sweep/equal_decoys.py --model M --corpus C --out DIR

For each of --seeds seeds `atdp harden --recipe fitted-decoys` trains M on C twice, with decoys drawn one by one and
with `decoy-equality=record`. Both models read the same held-out records: as they are, and with decoys of either kind,
which have a seed of their own. results.json has every figure, and what comes out is a table of means over the seeds.
An interrupted comparison goes on where it stopped.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

# Other distributions have a package of that name.
sys.path.insert(0, str(Path(__file__).parents[2]))

from atdp_cli.jobs.harden.encoding import Encoding, FlaggedRecord, encode
from atdp_cli.jobs.harden.releases import fit_frequencies
from atdp_cli.model.checkpoint import Checkpoint, context_length, load_checkpoint
from atdp_cli.model.perplexity import perplexity
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.text.corpus.records import read_records
from atdp_cli.text.corpus.split import load_split
from atdp_cli.text.detection.span_file import read_spans
from atdp_cli.text.redaction.equality import equality_pattern
from atdp_cli.text.redaction.frequencies import Frequencies, by_frequency
from atdp_cli.training.recipe import DecoyEquality, TextVariant

EQUALITIES: tuple[DecoyEquality | None, ...] = (None, "record")
SIGMA = 2.5
"""Of the release that the measure's decoys are drawn by, as of the recipe's own."""

Figures = dict[str, float]


def main() -> int:
    given = parser().parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows = [row for seed in range(given.seeds) for row in compare(given, seed)]
    records = flagged(given.out / "0-none", given.corpus, given.records)
    document = {"records": repeated(records), "rows": rows}
    (given.out / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(rows)))
    print(json.dumps(document["records"]))
    return 0


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", type=Path, required=True, help="the base checkpoint")
    options.add_argument("--corpus", type=Path, required=True, help="plain text, a record a line")
    options.add_argument("--out", type=Path, required=True, help="folder for all that is written")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--records", type=int, help="take the first so many of the corpus")
    options.add_argument("--set", action="append", default=[], help="a setting of fitted-decoys, as learning-rate=2e-3")
    return options


def compare(given: argparse.Namespace, seed: int) -> Iterator[Figures]:
    """What both models of a seed measure."""
    for equality in EQUALITIES:
        out = given.out / f"{seed}-{equality or 'none'}"
        if not out.is_dir():
            train(given, seed, equality, out)
        yield {"seed": seed, "equal": float(equality is not None), **measure(given, out)}


def train(given: argparse.Namespace, seed: int, equality: DecoyEquality | None, out: Path) -> None:
    settings = [*given.set, *([] if equality is None else [f"decoy-equality={equality}"])]
    command = [sys.executable, "-m", "atdp_cli", "harden", str(given.model), "--data", str(given.corpus)]
    command += [
        "--recipe",
        "fitted-decoys",
        "--tier",
        "low-entity",
        "--checkpoint-history",
        "public",
        "-o",
        str(out),
        "-q",
    ]
    command += ["--insecure-seed", str(seed), "--threads", "1"]
    command += [] if given.records is None else ["--max-records", str(given.records)]
    command += [part for setting in settings for part in ("--set", f"fitted-decoys.{setting}")]
    subprocess.run(command, check=True)


def flagged(run: Path, corpus: Path, records: int | None) -> tuple[FlaggedRecord, ...]:
    """All records of a run with their spans."""
    lines = list(read_records(corpus))[:records]
    spans = read_spans(run.with_name(f"{run.name}.private") / "spans.jsonl", lines)
    return tuple(FlaggedRecord(record, flagged) for record, flagged in spans)


def measure(given: argparse.Namespace, out: Path) -> Figures:
    """The perplexity of held-out tokens that are not flagged, and of those that are, on text of three kinds."""
    records = flagged(out, given.corpus, given.records)
    split = load_split([given.corpus], unit="line", text_field="text", max_records=given.records, valid=None)
    held_out = [record for place, record in enumerate(records) if place in split.held_out]
    trained = [record for place, record in enumerate(records) if place not in split.held_out]
    shares, _ = fit_frequencies(trained, SIGMA, insecure_stream(0, "measured decoys"))
    checkpoint = load_checkpoint(out / "model" if (out / "model").is_dir() else out)
    by_text = {"raw": read(checkpoint, held_out, TextVariant.RAW, shares, None)}
    by_text |= {
        f"decoys {equality or 'none'}": read(checkpoint, held_out, TextVariant.DECOY, shares, equality)
        for equality in EQUALITIES
    }
    return {f"{text}, {kind}": figure for text, figures in by_text.items() for kind, figure in figures.items()}


def read(
    checkpoint: Checkpoint,
    records: Sequence[FlaggedRecord],
    text: TextVariant,
    shares: Frequencies,
    equality: DecoyEquality | None,
) -> Figures:
    encoding = Encoding(tokenizer=checkpoint.tokenizer, context=context_length(checkpoint.model), windows=8)
    choose = by_frequency(random.Random(0).randrange, shares)
    windows = [window for each in encode(records, text, encoding, choose, equality) for window in each]
    measured = perplexity(checkpoint.model, windows)
    return {"unflagged": measured.other or 0.0, "flagged": measured.sensitive or 0.0}


def repeated(records: Sequence[FlaggedRecord]) -> Figures:
    """How many records there are, how many have a value more than once, and the share of all values that repeat one."""
    patterns = [equality_pattern([(record.record.text, record.spans)]) for record in records]
    repeats = [len(pattern) - len(set(pattern)) for pattern in patterns]
    values = sum(map(len, patterns))
    return {"records": len(records), "with repeats": sum(map(bool, repeats)), "share": sum(repeats) / max(1, values)}


def table(rows: Sequence[Figures]) -> Iterator[str]:
    """A line for each figure: the mean without and with equality, and the mean and range of their ratio by seed."""
    apart, equal = ([row for row in rows if row["equal"] == wanted] for wanted in (0.0, 1.0))
    for name in (name for name in rows[0] if "," in name):
        ratios = [of_equal[name] / of_apart[name] for of_equal, of_apart in zip(equal, apart, strict=True)]
        yield (
            f"{name:24} {mean(row[name] for row in apart):8.3f} {mean(row[name] for row in equal):8.3f} "
            f"{mean(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f})"
        )


if __name__ == "__main__":
    sys.exit(main())
