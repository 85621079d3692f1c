"""Cost of one private step over that of a non-private AdamW step, for our engines and for Opacus as its users call it.

    python -m tests.benchmarks.clipping --json

A private step is the clipped sum, noise and AdamW; ours draws its noise from the CSPRNG, Opacus from torch's
generator. The non-private step is a forward pass, a backward pass and AdamW at the same batch. Each round runs every
engine once in one process and one thread, in an order of its own; a ratio is the median of the rounds' ratios.
`opacus` is our engine of that name, `opacus_hooks` GradSampleModule with DPOptimizer, `opacus_ghost` Opacus' fast
gradient clipping, which takes no tied weights and so has a model whose head is its own.

Memory: each engine takes three steps in a process of its own. Counted is the largest resident size of that process
less the one before the model was built: model, optimizer and whatever a step needs, over that of the non-private step.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import peft
import torch
from opacus import GradSampleModule
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from atdp_cli.model.windows import Window
from atdp_cli.privacy.rng import secure_stream
from atdp_cli.training.clip import ghost, opacus, per_record
from atdp_cli.training.clip.batches import default_tokens
from atdp_cli.training.clip.engine import ClippingEngine, trainable
from atdp_cli.training.examples import Example
from atdp_cli.training.noise import add_noise

LENGTH = 128
CLIP = 0.1
SIGMA = 1.0
MEMORY_STEPS = 3

Step = Callable[[], None]


PRIVATE = ("ghost", "per-record", "opacus", "opacus_hooks", "opacus_ghost")


@dataclass(frozen=True, kw_only=True)
class Case:
    """GPT-2 with 4 layers of width 256, if nothing else is said.

    Attributes:
        engines: Those that are measured; the others take too long, or do not take the model.
        encoder: Whether it is a T5, whose encoder reads the same tokens.
    """

    name: str
    vocabulary: int
    batch: int
    rank: int | None = None
    layers: int = 4
    width: int = 256
    heads: int = 4
    encoder: bool = False
    engines: tuple[str, ...] = PRIVATE


CASES = (
    Case(name="V=8,192 B=8", vocabulary=8192, batch=8),
    Case(name="V=8,192 B=32", vocabulary=8192, batch=32),
    Case(name="V=50,257 B=8", vocabulary=50257, batch=8),
    Case(name="LoRA r=8, V=8,192 B=8", vocabulary=8192, batch=8, rank=8),
    Case(name="LoRA r=8, V=8,192 B=32", vocabulary=8192, batch=32, rank=8),
    Case(name="T5, V=8,192 B=8", vocabulary=8192, batch=8, encoder=True, engines=("ghost", "per-record")),
    Case(name="T5, V=8,192 B=32", vocabulary=8192, batch=32, encoder=True, engines=("ghost", "per-record")),
    Case(
        name="135M, V=49,152 B=8",
        vocabulary=49152,
        batch=8,
        layers=27,
        width=576,
        heads=9,
        engines=("ghost",),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES], help="only this one")
    parser.add_argument("--memory-of", nargs=2, metavar=("ENGINE", "CASE"), help="print bytes of one engine")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if arguments.memory_of:
        engine, name = arguments.memory_of
        sys.stdout.write(f"{own_memory(engine, next(case for case in CASES if case.name == name))}\n")
        return
    chosen = [case for case in CASES if not arguments.case or case.name in arguments.case]
    cases = [measure(case, arguments.rounds) for case in chosen]
    result = {"rounds": arguments.rounds, "threads": 1, "load": os.getloadavg()[0], "cases": cases}
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else table(cases))


def measure(case: Case, rounds: int) -> dict[str, Any]:
    times = seconds(case, rounds)
    memory = {engine: memory_of(engine, case) for engine in ("nonprivate", *case.engines)}
    return {
        "case": case.name,
        "seconds_nonprivate": round(statistics.median(times["nonprivate"]), 3),
        "ratio_to_nonprivate": {
            engine: round(
                statistics.median(slow / fast for slow, fast in zip(times[engine], times["nonprivate"], strict=True)), 3
            )
            for engine in case.engines
        },
        "bytes_nonprivate": memory["nonprivate"],
        "peak_memory_ratio": {engine: round(memory[engine] / memory["nonprivate"], 3) for engine in case.engines},
    }


def seconds(case: Case, rounds: int) -> dict[str, list[float]]:
    """Of each engine in each round."""
    steps = {engine: make_step(engine, case) for engine in ("nonprivate", *case.engines)}
    for step in steps.values():
        step()
    order = random.Random(0)
    found: dict[str, list[float]] = {engine: [] for engine in steps}
    for _ in range(rounds):
        for engine in order.sample(list(steps), len(steps)):
            started = time.perf_counter()
            steps[engine]()
            found[engine].append(time.perf_counter() - started)
    return found


def memory_of(engine: str, case: Case) -> int:
    command = [sys.executable, "-m", "tests.benchmarks.clipping", "--memory-of", engine, case.name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    return int(done.stdout)


def own_memory(engine: str, case: Case) -> int:
    """Bytes."""
    before = resident("VmRSS")
    step = make_step(engine, case)
    for _ in range(MEMORY_STEPS):
        step()
    return resident("VmHWM") - before


def resident(field: str) -> int:
    """Bytes. Not from getrusage, whose largest size a process takes over from the one that started it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def make_step(engine: str, case: Case) -> Step:
    model = make_model(case, tied=engine != "opacus_ghost")
    optimizer = torch.optim.AdamW(trainable(model), lr=1e-5)
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, case.vocabulary, (case.batch, LENGTH)))
    if engine == "nonprivate":
        return nonprivate(model, optimizer, ids, encoder=case.encoder)
    if engine == "opacus_hooks":
        return opacus_hooks(model, optimizer, ids)
    if engine == "opacus_ghost":
        return opacus_ghost(model, optimizer, ids)
    return ours(model, optimizer, ids, our_engine(engine, default_tokens(model)), encoder=case.encoder)


def make_model(case: Case, *, tied: bool) -> Any:
    torch.manual_seed(0)
    if case.encoder:
        size = {"d_model": case.width, "d_ff": 4 * case.width, "num_layers": case.layers, "num_heads": case.heads}
        t5 = T5Config(vocab_size=case.vocabulary, d_kv=case.width // case.heads, dropout_rate=0.0, **size)
        return T5ForConditionalGeneration(t5).eval()
    shape = {"n_embd": case.width, "n_layer": case.layers, "n_head": case.heads, "n_positions": LENGTH}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    special = {"bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(vocab_size=case.vocabulary, tie_word_embeddings=tied, **shape, **dropout, **special)
    model = GPT2LMHeadModel(config).eval()
    if case.rank is None:
        return model
    targets = ["c_attn", "c_proj", "c_fc"]
    return peft.get_peft_model(model, peft.LoraConfig(r=case.rank, target_modules=targets, fan_in_fan_out=True)).eval()


def nonprivate(model: Any, optimizer: torch.optim.Optimizer, ids: torch.Tensor, *, encoder: bool = False) -> Step:
    # As transformers does: shifted labels, so that the logits need no copy.
    labels = F.pad(ids[:, 1:], (0, 1), value=-100).flatten()

    def step() -> None:
        logits = model(input_ids=ids, use_cache=False, **({"decoder_input_ids": ids} if encoder else {})).logits
        loss = F.cross_entropy(logits.flatten(0, 1), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        del logits, loss
        optimizer.step()
        optimizer.zero_grad()

    return step


def our_engine(name: str, tokens: int) -> ClippingEngine:
    if name == "per-record":
        return per_record.clipped_sum
    batched = {"ghost": ghost.clipped_sum, "opacus": opacus.clipped_sum}[name]
    return lambda model, records, clip_norm: batched(model, records, clip_norm, tokens=tokens, positions=True)


def make_records(ids: torch.Tensor, *, encoder: bool = False) -> list[Example]:
    """A record for each row, all of its tokens but the first of weight 1; an encoder reads the same."""
    length = ids.shape[1]
    nothing = np.zeros(length, dtype=np.bool_)
    weights = np.ones(length, dtype=np.float32)
    weights[0] = 0
    rows = ids.cpu().numpy()
    windows = [
        Window(number, row, nothing, nothing, nothing, row if encoder else None) for number, row in enumerate(rows)
    ]
    return [Example((window,), (weights,)) for window in windows]


def ours(
    model: Any, optimizer: torch.optim.Optimizer, ids: torch.Tensor, engine: ClippingEngine, *, encoder: bool = False
) -> Step:
    records = make_records(ids, encoder=encoder)
    stream = secure_stream()

    def step() -> None:
        clipped = engine(model, records, CLIP)
        add_noise(clipped.gradient, SIGMA * CLIP, stream)
        for parameter, part in zip(trainable(model), clipped.gradient, strict=True):
            parameter.grad = part.div_(len(ids)).to(parameter.dtype)
        del clipped, part
        optimizer.step()
        optimizer.zero_grad()

    return step


def _losses(module: Any, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Of each record."""
    logits = module(input_ids=ids, position_ids=positions, use_cache=False).logits
    labels = F.pad(ids[:, 1:], (0, 1), value=-100)
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(ids.shape).sum(1)


def _positions(ids: torch.Tensor) -> torch.Tensor:
    return torch.arange(ids.shape[1], device=ids.device).repeat(len(ids), 1)


def opacus_hooks(model: Any, optimizer: torch.optim.Optimizer, ids: torch.Tensor) -> Step:
    module, positions = GradSampleModule(model.train()), _positions(ids)
    private = DPOptimizer(
        optimizer, noise_multiplier=SIGMA, max_grad_norm=CLIP, expected_batch_size=len(ids), loss_reduction="mean"
    )

    def step() -> None:
        _losses(module, ids, positions).mean().backward()  # type: ignore[no-untyped-call]
        private.step()
        private.zero_grad()

    return step


def opacus_ghost(model: Any, optimizer: torch.optim.Optimizer, ids: torch.Tensor) -> Step:
    module = GradSampleModuleFastGradientClipping(model.train(), max_grad_norm=CLIP, use_ghost_clipping=True)
    positions = _positions(ids)
    private = DPOptimizerFastGradientClipping(
        optimizer, noise_multiplier=SIGMA, max_grad_norm=CLIP, expected_batch_size=len(ids), loss_reduction="mean"
    )

    def step() -> None:
        losses = _losses(module, ids, positions)
        DPTensorFastGradientClipping(module, private, losses, "mean").backward()
        private.step()
        private.zero_grad()

    return step


def table(cases: list[dict[str, Any]]) -> str:
    """Markdown: time and, after the slash, memory."""
    lines = ["| | " + " | ".join(PRIVATE) + " |", "|---" * (len(PRIVATE) + 1) + "|"]
    for case in cases:
        times, sizes = case["ratio_to_nonprivate"], case["peak_memory_ratio"]
        cells = [f"{times[name]:.2f} / {sizes[name]:.2f}" if name in times else "–" for name in PRIVATE]
        lines.append(f"| {case['case']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
