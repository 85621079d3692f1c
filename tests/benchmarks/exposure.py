"""Exact ranks among all 10**6 candidates: their cost over that of naive scoring, and that of the gate.

    python -m tests.benchmarks.exposure --json

GPT-2's tokenizer (../shared; with `--tokenizer llama` one with a token a digit) and a random GPT-2 of 4 layers of width
128; for pruning and for the gate the same model after it has memorised the ten canaries of `plant-canary`: training
stops when no other candidate can be as likely as any of them. One thread everywhere, tokenising included. Seconds are
those of the processor, so that other work on the machine counts for little, and the least of the rounds; the gate's are
wall-clock seconds as well.

Naive scoring passes padded candidates through the model in batches, takes the log-softmax of all logits, and shares
nothing between candidates. It is measured on a sample for several batch sizes, and the fastest counts;
`naive_tail_seconds` lets the model leave out the logits of the prefix. Both sides tokenise all candidates; ours also
builds the trie.

`gate_seconds` is the whole of `audit_canary` on the memorised model: checkpoint, candidates, trie, ranks, verdict.
`gate_process_seconds` is `atdp audit-canary` from start to end, imports included. `peak_memory_bytes` is what
tokenising, building the trie and scoring all candidates add to a process that has loaded the model.
`reference_processor_seconds` is an audit by all candidates beside a reference.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.manifest import read_manifest
from atdp_cli.audit.pool import PADDING, Candidates
from atdp_cli.audit.rank import make_candidates, score_likeliest
from atdp_cli.audit.request import AuditRequest
from atdp_cli.audit.results import Audit, Verdict
from atdp_cli.audit.run import audit_canary
from atdp_cli.audit.trie import build_trie, score_pool
from atdp_cli.events import Event, NodesScored, ignore
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.model.windows import encode_record

ROOT = Path(__file__).parents[2]
MODELS = ROOT.parent / "shared" / "models"
TOKENIZERS = {"gpt2": MODELS / "gpt2-tokenizer", "llama": MODELS / "stories15M"}
"""GPT-2's has tokens of up to three digits, Llama's one token a digit."""
TEMPLATE = parse_template("My ID is {digits:6}")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What is measured: a folder with the checkpoints `random` and `memorised`, and a manifest."""

    folder: Path
    tokenizer: Path
    rounds: int
    sample: int
    batches: tuple[int, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default="gpt2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int, default=512, help="candidates that naive scoring is extrapolated from")
    parser.add_argument("--batches", type=int, nargs="+", default=[4, 8, 16, 32, 64, 128, 256], help="naive scoring's")
    parser.add_argument("--peak-of", type=Path, metavar="MODEL", help="print bytes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = TOKENIZERS[arguments.tokenizer]
    if not tokenizer.is_dir():
        sys.exit(f"There is no folder {tokenizer}.")
    if arguments.peak_of:
        sys.stdout.write(f"{own_peak(arguments.peak_of)}\n")
        return
    with tempfile.TemporaryDirectory() as name:
        batches = tuple(arguments.batches)
        setup = Setup(
            folder=Path(name), tokenizer=tokenizer, rounds=arguments.rounds, sample=arguments.sample, batches=batches
        )
        prepare(setup)
        result = {**speeds(setup), **gate(setup), **beside_reference(setup)}
        result["peak_memory_bytes"] = peak_of(setup.folder / "random")
    result |= {"threads": 1, "load": os.getloadavg()[0]}
    lines = "".join(f"{name:<24}{figure}\n" for name, figure in result.items())
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else lines)


def prepare(setup: Setup) -> None:
    """Saves a random model, plants ten canaries, and trains the model on the planted lines until it knows them."""
    tokenizer = AutoTokenizer.from_pretrained(setup.tokenizer)
    torch.manual_seed(0)
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = GPT2Config(vocab_size=len(tokenizer), n_layer=4, n_embd=128, n_head=4, n_positions=64, **ends)
    model = GPT2LMHeadModel(config).eval()
    save(model, tokenizer, setup.folder / "random")
    corpus, planted, manifest = (setup.folder / name for name in ("corpus.txt", "planted.txt", "canaries.json"))
    corpus.write_text("A corpus needs a record.\n", encoding="utf-8")
    assert (
        atdp("plant-canary", corpus, "-o", planted, "--manifest", manifest, "--tokenizer", setup.folder / "random") == 0
    )
    candidates = make_candidates(tokenizer, TEMPLATE, sample=None, notify=ignore)
    targets = targets_of(manifest)
    known = Candidates(prefix=candidates.prefix, tails=candidates.tails[targets], lengths=candidates.lengths[targets])
    lines = [encode_record(tokenizer, line) for line in planted.read_text(encoding="utf-8").splitlines()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    while not memorised(model, known):
        for ids in map(torch.tensor, lines):
            model(input_ids=ids[None], labels=ids[None]).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    save(model, tokenizer, setup.folder / "memorised")


def memorised(model: Any, known: Candidates) -> bool:
    """Whether the probability that is left over is less than any of theirs, so that nothing ranks before them."""
    p = np.exp(score_pool(model, known))
    return bool(1 - p.sum() < p.min())


def atdp(*arguments: object) -> int:
    """Runs a command of the product, and gives its exit code."""
    script = "import sys; from atdp_cli.cli.app import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", script, *map(str, arguments), "--quiet"]
    return subprocess.run(command, check=False, cwd=ROOT, stdout=subprocess.DEVNULL).returncode


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def targets_of(manifest: Path) -> list[int]:
    return sorted({target.index for target in read_manifest(manifest).targets()})


def speeds(setup: Setup) -> dict[str, Any]:
    """Naive scoring over ours: every candidate, and what ten memorised canaries need."""
    loaded = {name: load_checkpoint(setup.folder / name) for name in ("random", "memorised")}
    tokenizer, model = loaded["random"].tokenizer, loaded["random"].model
    targets = targets_of(setup.folder / "canaries.json")
    candidates = make_candidates(tokenizer, TEMPLATE, sample=None, notify=ignore)
    heard: list[Event] = []

    def pruned() -> None:
        score_likeliest(loaded["memorised"].model, candidates, targets, notify=heard.append)

    seconds = least(
        {
            "tokenise": lambda: make_candidates(tokenizer, TEMPLATE, sample=None, notify=ignore),
            "trie": lambda: score_pool(model, candidates),
            "pruned": pruned,
        },
        setup.rounds,
    )
    naive = {kept: naive_seconds(model, candidates, setup, kept=kept) for kept in ("all", "tail")}
    fastest = min(naive["all"].values())
    last = heard[-1]
    assert isinstance(last, NodesScored)
    naive_whole = fastest + seconds["tokenise"]
    return {
        "speedup": round(naive_whole / (seconds["tokenise"] + seconds["trie"]), 1),
        "speedup_pruned": round(naive_whole / (seconds["tokenise"] + seconds["pruned"]), 1),
        "pruned_nodes": last.done,
        "nodes": last.total,
        **{f"{name}_seconds": round(value, 3) for name, value in seconds.items()},
        "naive_seconds": naive["all"],
        "naive_tail_seconds": naive["tail"],
    }


def least(parts: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Processor seconds of each, the least of the interleaved rounds."""
    found: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, part in parts.items():
            started = time.process_time()
            part()
            found[name].append(time.process_time() - started)
    return {name: min(values) for name, values in found.items()}


def naive_seconds(model: Any, candidates: Candidates, setup: Setup, *, kept: str) -> dict[int, float]:
    """Processor seconds for all candidates, by batch size, extrapolated from a sample."""
    sample = np.random.default_rng(0).integers(TEMPLATE.pool, size=setup.sample)
    positions = 0 if kept == "all" else candidates.tails.shape[1] + 1

    def whole(size: int) -> NDArray[np.float64]:
        parts = [sample[start : start + size] for start in range(0, sample.size, size)]
        return np.concatenate([naive_batch(model, candidates, part, positions) for part in parts])

    rounds = least({str(size): lambda size=size: whole(size) for size in setup.batches}, setup.rounds)  # type: ignore[misc]
    assert np.abs(whole(setup.batches[0]) - score_pool(model, candidates)[sample]).max() < 1e-3
    return {int(size): round(value / setup.sample * TEMPLATE.pool, 1) for size, value in rounds.items()}


@torch.inference_mode()
def naive_batch(model: Any, candidates: Candidates, chosen: NDArray[np.int64], positions: int) -> NDArray[np.float64]:
    """log p of the chosen candidates, padded to one length; logits of the last `positions`, 0 for all."""
    shared = np.broadcast_to(candidates.prefix, (chosen.size, candidates.prefix.size))
    padded = np.concatenate([shared, candidates.tails[chosen]], axis=1, dtype=np.int64)
    ids, mask = torch.from_numpy(np.maximum(padded, 0)), torch.from_numpy((padded != PADDING).astype(np.int64))
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False, logits_to_keep=positions).logits
    tail = candidates.tails.shape[1]
    log_p = torch.log_softmax(logits[:, :-1], dim=-1)
    own = log_p.gather(2, ids[:, -log_p.shape[1] :, None])[:, -tail:, 0]
    total: NDArray[np.float64] = (own * mask[:, -tail:]).sum(dim=1).double().numpy()
    return total


def gate(setup: Setup) -> dict[str, Any]:
    """Seconds of auditing the memorised model: of the function, and of the process."""
    model, manifest = setup.folder / "memorised", setup.folder / "canaries.json"
    inside, spent, process = [], [], []
    for _ in range(setup.rounds):
        started, before = time.perf_counter(), time.process_time()
        (audit,) = audit_canary(AuditRequest(models=(model,), manifest=manifest)).models
        inside.append(time.perf_counter() - started)
        spent.append(time.process_time() - before)
        assert isinstance(audit, Audit)
        assert audit.verdict is Verdict.FAIL
        assert all(canary.rank_max <= len(audit.canaries) for canary in audit.canaries)
        started = time.perf_counter()
        assert atdp("audit-canary", model, "--manifest", manifest, "--set", "run.threads=1") == 1
        process.append(time.perf_counter() - started)
    return {
        "gate_seconds": round(min(inside), 2),
        "gate_processor_seconds": round(min(spent), 2),
        "gate_process_seconds": round(min(process), 2),
    }


def beside_reference(setup: Setup) -> dict[str, Any]:
    """Processor seconds of an audit by all candidates beside the random model as reference."""
    request = AuditRequest(
        models=(setup.folder / "memorised",),
        manifest=setup.folder / "canaries.json",
        reference=setup.folder / "random",
        ranking="exact",
    )
    before = time.process_time()
    audit_canary(request)
    return {"reference_processor_seconds": round(time.process_time() - before, 2)}


def peak_of(model: Path) -> int:
    command = [sys.executable, "-m", "tests.benchmarks.exposure", "--peak-of", str(model)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def own_peak(folder: Path) -> int:
    """Bytes."""
    checkpoint = load_checkpoint(folder)
    before = _resident("VmRSS")
    candidates = make_candidates(checkpoint.tokenizer, TEMPLATE, sample=None, notify=ignore)
    score_pool(checkpoint.model, candidates, trie=build_trie(candidates.tails, candidates.lengths))
    return _resident("VmHWM") - before


def _resident(field: str) -> int:
    """Bytes. Not from getrusage, whose largest size a process takes over from the one that started it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    main()
