"""What `atdp audit-corpus` finds of planted texts that no detector flags, and how often it is wrong about unread text.

    python -m tests.benchmarks.memory_map --json

For each pair of a checkpoint and a corpus: 60 made-up passphrases, project names and sentences are put into lines of
the corpus, a third of them once, a third in four lines and a third in sixteen. `no-dp` trains the checkpoint on these
lines for three epochs, and the map is drawn with other lines held out and the checkpoint as reference. `found` counts
texts of which a place covers half or more; `planted_share` is the share of the places that overlap a planted text:
what else is found may be memorised as well. `flagged` counts the texts that the detector flags most of. For `unread`
the checkpoint itself, which read none of the lines, is mapped with them relabelled at random: the share of relabelings
with a finding is the false discovery rate, with its upper 95 % limit. `--seed` draws other texts and lines. With
`--others N` nothing is planted: N models that `no-dp` trained on as many other lines, each on its own, are mapped with
the checkpoint as reference, likewise with the lines relabelled.

With `--loop` the trained model is then hardened from the checkpoint: without the map, with it, and a second
time with a map of the result too. `loop` has for each model what a new map finds against lines that the first one did
not use, how many of these texts greedy decoding or a thousand samples give, what is found once the model was fine-tuned
for fifty steps on other lines, and the perplexity of held-out lines.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from atdp_cli.audit.results import DISCOVERABLE_QUERIES
from atdp_cli.events import ignore
from atdp_cli.memorisation.map import MappedCorpus, MappedRecord, find_memorised
from atdp_cli.memorisation.scores import TokenScores, score_tokens
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.replacement.decoys import lists
from tests.benchmarks.stages import ROOT, SHARED
from tests.benchmarks.tuning import MODELS, text_lines, texts

PAIRS = (("quickstart", "abcd"), ("quickstart", "wikitext"), ("stories", "abcd"), ("stories", "wikitext"))
REPEATS = (1, 4, 16)
FDR = 0.05
COMMON = ("--store", "none", "--quiet", "--set", "run.threads=1")

OTHER = 842
"""Lines to relearn on: 800 train, at 16 a step."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A text and where it stands: line, from 1, and code points."""

    text: str
    places: tuple[tuple[int, int, int], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--held-out", type=int, default=1000)
    parser.add_argument("--relabelings", type=int, default=200)
    parser.add_argument("--loop", action="store_true", help="also harden with the map and draw it again")
    parser.add_argument("--others", type=int, default=0, help="models that were trained on other lines")
    parser.add_argument("--characters", type=int, default=300, help="of a line; the rest is left out")
    parser.add_argument("--pairs", nargs="+", metavar="MODEL+CORPUS", help=f"default: {' '.join(map('+'.join, PAIRS))}")
    arguments = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit("The checkpoints and corpora of ../shared are absent.")
    pairs = [tuple(pair.split("+")) for pair in arguments.pairs] if arguments.pairs else PAIRS
    measured = []
    for model, corpus in pairs:
        with tempfile.TemporaryDirectory() as folder:
            work = others if arguments.others else measure
            measured.append({"pair": f"{model}+{corpus}"} | work(MODELS[model], corpus, Path(folder), arguments))
        sys.stderr.write(f"{json.dumps(measured[-1])}\n")
    if arguments.json:
        settings = {name: getattr(arguments, name) for name in ("seed", "lines", "held_out", "relabelings")}
        sys.stdout.write(json.dumps(settings | {"load": os.getloadavg()[0], "pairs": measured}) + "\n")


def measure(model: Path, corpus: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """One pair."""
    dice = random.Random(arguments.seed)
    lines = [line[: arguments.characters].strip() for line in corpora()[corpus] if not line.startswith("=")]
    sizes = (arguments.lines, arguments.held_out, *((arguments.held_out, OTHER) if arguments.loop else ()))
    drawn = iter(dice.sample(lines, sum(sizes)))
    training, held_out, *rest = (list(islice(drawn, size)) for size in sizes)
    planted = plant(training, dice)
    data, valid, trained, file = (folder / name for name in ("train.txt", "valid.txt", "model", "map.jsonl"))
    files = (data, valid, folder / "fresh.txt", folder / "other.txt")
    for path, written in zip(files, (training, held_out, *rest), strict=False):
        path.write_text("\n".join(written) + "\n", encoding="utf-8")
    given = ("--data", data, "--eval-data", valid, *COMMON)
    atdp("harden", model, *given, "--recipe", "no-dp", "--epochs", 3, "-o", trained)
    began = time.monotonic()
    document = json.loads(atdp("audit-corpus", trained, *given, "--reference", model, "-o", file, "--json"))
    seconds = time.monotonic() - began
    [found] = document["models"]
    atdp("detect", data, "-o", folder / "spans.jsonl", "--store", "none", "--quiet")
    return {
        "memorised": found["memorised"],
        "places": len(found["places"]),
        "fewest_findings": found["fewest_findings"],
        "found": recall(planted, file),
        "flagged": recall(planted, folder / "spans.jsonl"),
        "planted_share": planted_share(planted, file),
        "seconds": round(seconds, 1),
        "unread": unread(model, training, held_out, arguments.relabelings, arguments.seed),
        "loop": loop(model, folder, planted) if arguments.loop else None,
    }


def others(model: Path, corpus: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Models that were trained, but on none of the lines."""
    dice = random.Random(arguments.seed)
    lines = [line[: arguments.characters].strip() for line in corpora()[corpus] if not line.startswith("=")]
    sizes = (arguments.lines, arguments.held_out, *(arguments.lines,) * arguments.others)
    drawn = iter(dice.sample(lines, sum(sizes)))
    training, held_out, *parts = (list(islice(drawn, size)) for size in sizes)
    found = []
    for number, part in enumerate(parts):
        data, trained = folder / f"{number}.txt", folder / f"model-{number}"
        data.write_text("\n".join(part) + "\n", encoding="utf-8")
        atdp("harden", model, "--data", data, *COMMON, "--recipe", "no-dp", "--epochs", 3, "-o", trained)
        found.append(unread(trained, training, held_out, arguments.relabelings, arguments.seed, reference=model))
    return {"unread": found}


def loop(model: Path, folder: Path, planted: Sequence[Planted]) -> dict[str, Any]:
    """The trained model, it hardened from the checkpoint, and it hardened with its map, once and twice."""
    data, trained = folder / "train.txt", folder / "model"
    given = ("--data", data, "--eval-data", folder / "valid.txt", *COMMON)
    harden = ("harden", trained, *given, "--reference", model)
    also = ("--extra-spans", folder / "map.jsonl")
    atdp(*harden, "-o", folder / "hardened")
    atdp(*harden, *also, "-o", folder / "once")
    atdp("audit-corpus", folder / "once", *given, "--reference", model, "-o", folder / "left.jsonl")
    atdp(*harden, *also, "--extra-spans", folder / "left.jsonl", "-o", folder / "twice")
    return {name: round_of(model, folder, name, planted) for name in ("model", "hardened", "once", "twice")}


def round_of(model: Path, folder: Path, name: str, planted: Sequence[Planted]) -> dict[str, Any]:
    """What is left in one model."""
    given = (
        "--data",
        folder / "train.txt",
        "--eval-data",
        folder / "fresh.txt",
        "--reference",
        model,
        *COMMON,
        "--json",
    )
    first, second = (folder / f"{name}.{part}.jsonl" for part in ("map", "relearnt"))
    [found] = json.loads(atdp("audit-corpus", folder / name, *given, "-o", first))["models"]
    relearnt = folder / f"{name}-relearnt"
    tuning = ("--data", folder / "other.txt", "--recipe", "no-dp", "--epochs", 1, *COMMON)
    atdp("harden", folder / name, *tuning, "-o", relearnt)
    atdp("audit-corpus", relearnt, *given, "-o", second)
    report = json.loads((folder / f"{name}.private" / "privacy_report.json").read_text(encoding="utf-8"))
    return {
        "memorised": found["memorised"] if found["calibrated"] else 0,
        "found": recall(planted, first),
        "said": recall(planted, first, said=True),
        "found_after_relearning": recall(planted, second),
        "perplexity": report["perplexity"]["after"],
    }


def corpora() -> dict[str, Iterator[str]]:
    """The lines of each corpus; the quickstart's checkpoint was trained on the rest of WikiText-2."""
    folder = SHARED / "data" / "wikitext-2-raw"
    parts = (text_lines(folder / f"{name}.txt") for name in ("valid", "test"))
    return texts() | {"wikitext": chain.from_iterable(parts)}


def plant(lines: list[str], dice: random.Random) -> list[Planted]:
    """Put the texts into lines of their own, between words."""
    words = [word for word in lists()["names"].more if word.isalpha() and 4 <= len(word) <= 9]
    where = iter(dice.sample(range(len(lines)), 20 * sum(REPEATS)))
    planted = []
    for number in range(20 * len(REPEATS)):
        text = made_up(number % 3, [word.lower() for word in dice.sample(words, 6)], dice)
        places = []
        for _ in range(REPEATS[number // 20]):
            line = next(where)
            parts = lines[line].split()
            cut = dice.randint(0, len(parts))
            before = " ".join(parts[:cut])
            start = len(before) + bool(before)
            lines[line] = " ".join([*parts[:cut], text, *parts[cut:]])
            places.append((line + 1, start, start + len(text)))
        planted.append(Planted(text=text, places=tuple(places)))
    return planted


def made_up(kind: int, words: list[str], dice: random.Random) -> str:
    """A passphrase, the name of a project, or a sentence."""
    if kind == 0:
        return " ".join(words[:5])
    if kind == 1:
        first, second = ("".join(dice.choice("bdfgklmnprstvz") + dice.choice("aeiou") for _ in range(3)) for _ in "12")
        return f"the {first} {words[0]} project of {second}"
    a, b, c, d, e, f = words
    return f"the {a} behind the {b} opens only when {c} and {d} {e} the {f}"


def spans_of(file: Path, *, said: bool = False) -> dict[int, list[tuple[int, int]]]:
    """By line, from 1."""
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {
        line: [
            (span["start"], span["end"])
            for span in row["spans"]
            if not said or span["greedy"] or (span["queries_half"] or math.inf) <= DISCOVERABLE_QUERIES
        ]
        for line, row in enumerate(rows, start=1)
    }


def recall(planted: Sequence[Planted], file: Path, *, said: bool = False) -> dict[int, int]:
    """By repeats, how many of twenty texts have a place of which the file's spans cover half.

    Args:
        said: Count only spans that greedy decoding gives, or a thousand samples with even odds.
    """
    spans = spans_of(file, said=said)

    def covered(line: int, start: int, end: int) -> bool:
        return 2 * sum(max(0, min(end, last) - max(start, first)) for first, last in spans[line]) >= end - start

    return {
        repeats: sum(any(covered(*place) for place in text.places) for text in planted if len(text.places) == repeats)
        for repeats in REPEATS
    }


def planted_share(planted: Sequence[Planted], file: Path) -> float | None:
    """Of the file's spans, those that overlap a planted text."""
    true = {line: (start, end) for text in planted for line, start, end in text.places}
    hits = [
        line in true and min(end, true[line][1]) > max(start, true[line][0])
        for line, spans in spans_of(file).items()
        for start, end in spans
    ]
    return round(sum(hits) / len(hits), 3) if hits else None


def unread(
    model: Path,
    training: list[str],
    held_out: list[str],
    relabelings: int,
    seed: int,
    *,
    reference: Path | None = None,
) -> dict[str, float]:
    """The share of relabelings of lines that the model never read with a finding, and its upper 95 % limit."""
    lines = [*training, *held_out]
    scores, *bases = (
        score_tokens(load_checkpoint(folder), lines, name="unread", notify=ignore)
        for folder in (model, *(() if reference is None else (reference,)))
    )
    dice = np.random.default_rng(seed)
    false = sum(relabelled(lines, scores, bases, len(training), dice) for _ in range(relabelings))
    upper = float(beta.ppf(0.95, false + 1, relabelings - false)) if false < relabelings else 1.0
    return {"false_discovery_rate": false / relabelings, "upper": round(upper, 4)}


def relabelled(
    lines: Sequence[str],
    scores: Sequence[TokenScores],
    bases: Sequence[Sequence[TokenScores]],
    size: int,
    dice: np.random.Generator,
) -> bool:
    """Whether anything is found among `size` of the lines at random against the others.

    Args:
        bases: The reference's scores; none without one.
    """
    places = dice.permutation(len(lines))
    parts = [
        tuple(
            MappedRecord(number=int(place) + 1, text=lines[place], spans=(), group=group)
            for group, place in enumerate(part)
        )
        for part in (places[:size], places[size:])
    ]
    corpus = MappedCorpus(training=parts[0], held_out=parts[1])
    own, *base = ([each[place] for place in places] for each in (scores, *bases))
    return find_memorised(corpus, own, base[0] if base else None, fdr=FDR).calibrated


def atdp(*arguments: object) -> str:
    """Run one command line; it must end well."""
    code = "import sys; from atdp_cli.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        sys.exit(f"{arguments[0]}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
