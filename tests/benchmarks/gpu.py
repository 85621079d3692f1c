"""Tokens a second of training steps on a GPU: without privacy, with our engine, and with Opacus' hooks and ghost.

    python -m tests.benchmarks.gpu --device cuda --peak-tflops 989 --json

A Llama of SmolLM2's shape, 135 million random parameters with a tied head, on records of 256 random tokens. All run in
one process, in interleaved rounds; ours makes its noise on the device of a key stream from the host, Opacus of torch's
generator. The share of the peak counts six operations a parameter and token, forth and back, and none for privacy.
`opacus_ghost` takes no tied weights and has a head of its own; `_bf16` stands for layers under autocast.
--tiny tries the script where there is no GPU.
"""

import argparse
import json
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from atdp_cli.training.clip.batches import default_tokens
from atdp_cli.training.precision import computing_in
from tests.benchmarks.clipping import Step, nonprivate, opacus_ghost, opacus_hooks, our_engine, ours

SMOL = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9}
SMOL |= {"num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 2048}
TINY = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
TINY |= {"num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 512}
LENGTH = 256
HALF = "_bf16"
ENGINES = ("nonprivate", "nonprivate_bf16", "ghost", "ghost_bf16", "opacus_hooks", "opacus_ghost")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peak-tflops", type=float, help="of the card in bf16, as its maker gives it")
    parser.add_argument("--tiny", action="store_true", help="a model of two small layers")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    device = torch.device(arguments.device)
    shape = TINY if arguments.tiny else SMOL
    draw = np.random.default_rng(0)
    ids = torch.from_numpy(draw.integers(0, shape["vocab_size"], (arguments.batch, LENGTH))).to(device)
    steps = {engine: make_step(engine, shape, ids) for engine in arguments.engines}
    parameters = sum(weight.numel() for weight in make_model(shape, tied=True).parameters())
    paces = {engine: ids.numel() / statistics.median(took) for engine, took in seconds(steps, arguments.rounds).items()}
    answer: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "parameters": parameters,
        "batch": arguments.batch,
        "tokens": LENGTH,
        "tokens_per_second": {engine: round(pace) for engine, pace in paces.items()},
        "over_nonprivate": {engine: round(pace / paces["nonprivate"], 3) for engine, pace in paces.items()},
    }
    if arguments.peak_tflops:
        peak = arguments.peak_tflops * 1e12
        answer["share_of_peak"] = {name: round(6 * parameters * pace / peak, 4) for name, pace in paces.items()}
    sys.stdout.write(json.dumps(answer) + "\n" if arguments.json else f"{answer}\n")


def make_model(shape: dict[str, int], *, tied: bool) -> Any:
    torch.manual_seed(0)
    special = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    return LlamaForCausalLM(LlamaConfig(**shape, **special, tie_word_embeddings=tied)).eval()


def make_step(engine: str, shape: dict[str, int], ids: torch.Tensor) -> Step:
    """A step that has ended when it returns."""
    model = make_model(shape, tied=engine != "opacus_ghost").to(ids.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    makers: dict[str, Callable[[Any, torch.optim.Optimizer, torch.Tensor], Step]] = {
        "nonprivate": nonprivate,
        "opacus_hooks": opacus_hooks,
        "opacus_ghost": opacus_ghost,
    }
    name = engine.removesuffix(HALF)
    if name in makers:
        step = makers[name](model, optimizer, ids)
    else:
        step = ours(model, optimizer, ids, our_engine(name, default_tokens(model)))

    def ended() -> None:
        with computing_in(model, "bfloat16" if engine.endswith(HALF) else "float32"):
            step()
        if ids.device.type == "cuda":
            torch.cuda.synchronize()

    return ended


def seconds(steps: dict[str, Step], rounds: int) -> dict[str, list[float]]:
    """Of each engine in each round, after one that does not count."""
    order = random.Random(0)
    found: dict[str, list[float]] = {engine: [] for engine in steps}
    for number in range(rounds + 1):
        for engine in order.sample(list(steps), len(steps)):
            started = time.perf_counter()
            steps[engine]()
            if number:
                found[engine].append(time.perf_counter() - started)
    return found


if __name__ == "__main__":
    main()
