"""What a GPU makes of training with and without noise, in one process a part: tokens a second, memory, and exactness.

    python -m tests.benchmarks.gpu --peak-tflops 989 exact noise steps lora large audit

exact   how far a record's gradient depends on what stands beside it, on random tokens, in fp32 and bf16
noise   normals a second, by the kernel and by torch's operations, and the kernel's blocks against those
steps   steps of 135 million parameters on 32 records of 256 tokens: ours, Opacus, and transformers' Trainer
lora    LoRA of rank 16 of 1.2 billion parameters on 8 records of 1,024 tokens: ours, and TRL's SFTTrainer
large   the same of 8 billion parameters on 4 records of 1,024 tokens, and the memory that it takes
audit   ten six-digit canaries in the model of `steps`, one token a digit, with a reference

All models have random weights. Rounds are interleaved and figures are medians. The share of the peak counts six
operations a parameter and token, and none for privacy. `--tiny` tries the script where there is no GPU.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from atdp_cli.events import ignore
from atdp_cli.model.adapter import add_adapter
from atdp_cli.model.device import find_device, move_model
from atdp_cli.privacy.rng import secure_stream
from atdp_cli.training.chacha import blocks_in_torch, draws
from atdp_cli.training.clip import ghost
from atdp_cli.training.clip.batches import default_tokens, private_tokens
from atdp_cli.training.clip.engine import ClippingEngine, trainable
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.clip.self_check import batch_effect, without_zeros
from atdp_cli.training.examples import Example
from atdp_cli.training.gradients import gradient_sum, mean_gradient
from atdp_cli.training.noise import clip_and_sum, normals
from atdp_cli.training.options import Precision
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS
from atdp_cli.training.precision import computing_in, in_precision
from atdp_cli.training.step import Noise, noisy_step, optimizer_step
from tests.benchmarks.clipping import Step, make_records, opacus_ghost, opacus_hooks
from tests.benchmarks.graphs import graphed

_NAMES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
)

SHAPES = {
    "135M": (576, 1536, 30, 9, 3, 49152),
    "1.2B": (2048, 8192, 16, 32, 8, 128256),
    "8B": (4096, 14336, 32, 32, 8, 128256),
    "tiny": (64, 128, 2, 4, 2, 512),
}
"""The settings of a Llama by these names."""

CLIP, SIGMA, RANK = 0.1, 1.0, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak-tflops", type=float, default=989.0, help="of the card in bf16, as its maker gives it")
    parser.add_argument("--tiny", action="store_true", help="small models, to try the script")
    parser.add_argument("--profile", action="store_true", help="also print where the time of a step goes")
    parser.add_argument("--out", type=Path, help="a file to which each part's JSON is added")
    arguments = parser.parse_args()
    if len(arguments.parts) > 1:
        for part in arguments.parts:
            given = [word for word in sys.argv[1:] if word not in PARTS]
            subprocess.run([sys.executable, "-m", "tests.benchmarks.gpu", *given, part], check=False)
        return
    [part] = arguments.parts
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    if arguments.device == "cuda":
        move_model(torch.nn.Linear(1, 1), find_device("cuda"))
    began = time.perf_counter()
    answer: dict[str, Any] = {"part": part, "device": name_of(torch.device(arguments.device))}
    try:
        answer |= PARTS[part](arguments)
    except Exception:  # the next part is to run
        answer["failed"] = traceback.format_exc()[-1500:]
    answer["seconds"] = round(time.perf_counter() - began, 1)
    sys.stdout.write(json.dumps(answer) + "\n")
    if arguments.out:
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(answer) + "\n")


def name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def make_model(
    arguments: argparse.Namespace, size: str, *, dtype: torch.dtype = torch.float32, tied: bool = True
) -> Any:
    shape = dict(zip(_NAMES, SHAPES["tiny" if arguments.tiny else size], strict=True))
    special = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    config = LlamaConfig(**shape, **special, max_position_embeddings=2048, tie_word_embeddings=tied)
    with torch.device(arguments.device):
        torch.set_default_dtype(dtype)
        model = LlamaForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
    return model


def token_ids(model: Any, batch: int, length: int) -> torch.Tensor:
    draw = np.random.default_rng(0)
    return torch.from_numpy(draw.integers(0, model.config.vocab_size, (batch, length))).to(model.device)


def plain(model: Any, records: list[Example], rate: float = 1e-5) -> Step:
    """Our step without noise, as `run_plain` takes it, in bf16."""
    optimizer = torch.optim.AdamW(trainable(model), lr=rate, fused=True)
    tokens = default_tokens(model)
    summed = in_precision("bfloat16", lambda model, records: gradient_sum(model, records, tokens=tokens))

    def step() -> None:
        optimizer_step(
            model, optimizer, mean_gradient(model, records, summed, SINGLE_PROCESS), SINGLE_PROCESS, first=False
        )

    return step


def private(model: Any, records: list[Example], engine: ClippingEngine, rate: float = 1e-5) -> Step:
    """Our step with noise, as `run_private` takes it but for the sampling."""
    optimizer, stream = torch.optim.AdamW(trainable(model), lr=rate, fused=True), secure_stream()
    noise = Noise(stream, SIGMA * CLIP, SINGLE_PROCESS)

    def step() -> None:
        clipped = clip_and_sum(engine, model, records, CLIP)
        noisy_step(model, optimizer, clipped.gradient, noise, batch=len(records), first=False)

    return step


def paces(steps: Mapping[str, Callable[[], object]], tokens: int, rounds: int) -> dict[str, float]:
    """Tokens a second: medians of interleaved rounds, after one that does not count."""
    steps = {name: step for name, step in steps.items() if runs(step)}
    took: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            wait()
            began = time.perf_counter()
            step()
            wait()
            took[name].append(time.perf_counter() - began)
    return {name: round(tokens / statistics.median(seconds)) for name, seconds in took.items()}


def runs(step: Callable[[], object]) -> bool:
    """Whether the first step, which does not count, succeeds: Opacus' do not in every precision."""
    try:
        step()
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return False
    return True


def profiled(name: str, step: Callable[[], object]) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        step()
        wait()
    for order in ("self_cuda_time_total", "self_cpu_time_total"):
        sys.stderr.write(
            f"{name}\n{recorded.key_averages().table(sort_by=order, row_limit=18, max_name_column_width=60)}\n"
        )


def exact(arguments: argparse.Namespace) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    began = time.perf_counter()
    cases: list[tuple[str, Precision]] = [("135M", "float32"), ("135M", "bfloat16"), ("1.2B", "bfloat16")]
    for size, precision in cases:
        model = make_model(arguments, size)
        if size != "135M":
            model = add_adapter(model.to(torch.bfloat16), RANK)
        with computing_in(model, precision), without_zeros(model):
            engine = partial(ghost.clipped_sum, tokens=private_tokens(model), positions=False)
            answer[f"{size} {precision}"] = batch_effect(model, engine)
            records = make_records(token_ids(model, 3, 300))
            first, second = (ghost.clipped_sum(model, records, CLIP, tokens=1024, positions=False) for _ in range(2))
        pairs = zip(first.gradient, second.gradient, strict=True)
        answer[f"{size} {precision} same twice"] = all(torch.equal(one, other) for one, other in pairs)
        sys.stderr.write(f"{answer} {time.perf_counter() - began:.1f} s\n")
        del model, engine, first, second, pairs
    return answer


def noise(arguments: argparse.Namespace) -> dict[str, Any]:
    device, key = torch.device(arguments.device), bytes(range(32))
    answer: dict[str, Any] = {}
    for first in (0, 5, 2**35 - 3, 2**63 - 1):
        kernel = draws(key, 8 * (first % 2**60), 8 * 4096, device).view(-1, 8)
        oracle = blocks_in_torch(key, first % 2**60, 4096, device)
        answer[f"same_at_{first}"] = bool(torch.equal(kernel, oracle))
    count, stream = 1 << 24, secure_stream()
    made = {"draws": partial(draws, key, 0, count, device), "normals": partial(normals, stream, count, device)}
    answer |= paces(made, count, arguments.rounds)
    sample = normals(stream, 1 << 22, device)
    answer["mean"], answer["variance"] = float(sample.mean()), float(sample.var())
    return answer


def trainer_pace(make: Callable[[Any], Any], steps: int, tokens: int) -> float:
    """Tokens a second of transformers' Trainer, by its steps after the first two."""
    from transformers import TrainerCallback

    class Clock(TrainerCallback):  # type: ignore[misc]
        taken: list[float] = []  # noqa: RUF012 - one run's

        def on_step_end(self, *_: Any, **__: Any) -> None:
            wait()
            self.taken.append(time.perf_counter())

    clock = Clock()
    clock.taken = []
    make(clock).train()
    took = [after - before for before, after in zip(clock.taken[1:], clock.taken[2:], strict=False)]
    return round(tokens / statistics.median(took))


def common(ids: torch.Tensor, steps: int) -> dict[str, Any]:
    """Settings of both trainers."""
    return {
        "output_dir": tempfile.mkdtemp(),
        "per_device_train_batch_size": len(ids),
        "max_steps": steps,
        "bf16": ids.is_cuda,
        "use_cpu": not ids.is_cuda,
        "report_to": [],
        "save_strategy": "no",
        "logging_strategy": "no",
        "disable_tqdm": True,
    }


def transformers_trainer(model: Any, ids: torch.Tensor, steps: int) -> Callable[[Any], Any]:
    from transformers import Trainer, TrainingArguments

    rows = [{"input_ids": row, "labels": row} for row in ids.cpu()] * steps
    settings = TrainingArguments(**common(ids, steps))
    return lambda clock: Trainer(model=model, args=settings, train_dataset=rows, callbacks=[clock])


def sft_trainer(model: Any, ids: torch.Tensor, steps: int) -> Callable[[Any], Any]:
    from datasets import Dataset
    from peft import LoraConfig
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")), eos_token="a", pad_token="b"
    )
    rows = Dataset.from_dict({"input_ids": ids.tolist() * steps})
    settings = SFTConfig(
        **common(ids, steps),
        gradient_checkpointing=False,
        max_length=ids.shape[1],
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    lora = LoraConfig(r=RANK, lora_alpha=2 * RANK, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")
    return lambda clock: SFTTrainer(
        model=model, args=settings, train_dataset=rows, processing_class=tokenizer, peft_config=lora, callbacks=[clock]
    )


def steps(arguments: argparse.Namespace) -> dict[str, Any]:
    models = {
        name: make_model(arguments, "135M")
        for name in ("plain", "private", "private fp32", "in graphs", "opacus_hooks")
    }
    models["opacus_ghost"] = make_model(arguments, "135M", tied=False)
    batch, length = (4, 64) if arguments.tiny else (32, 256)
    ids = token_ids(models["plain"], batch, length)
    records = make_records(ids)
    half = select_engine(models["private"], "ghost", ignore, precision="bfloat16").run
    single = select_engine(models["private fp32"], "ghost", ignore, precision="float32").run
    taken: dict[str, Step] = {
        "plain": plain(models["plain"], records),
        "private": private(models["private"], records, half),
        "private fp32": private(models["private fp32"], records, single),
        "opacus_hooks fp32": opacus_hooks(models["opacus_hooks"], adamw(models["opacus_hooks"]), ids),
        "opacus_ghost fp32": opacus_ghost(models["opacus_ghost"], adamw(models["opacus_ghost"]), ids),
        "opacus_ghost": under_autocast(opacus_ghost, make_model(arguments, "135M", tied=False), ids),
        "opacus_hooks": under_autocast(opacus_hooks, make_model(arguments, "135M"), ids),
    }
    if ids.is_cuda:
        taken["private in graphs"] = private(models["in graphs"], records, in_graphs(models["in graphs"]))
    found = paces(taken, ids.numel(), arguments.rounds)
    if arguments.profile:
        profiled("private", taken["private"])
    trainer = make_model(arguments, "135M").train()
    found["transformers Trainer"] = trainer_pace(transformers_trainer(trainer, ids, 10), 10, ids.numel())
    found["plain again"] = paces({"plain": taken["plain"]}, ids.numel(), arguments.rounds)["plain"]
    return shares(arguments, found, models["plain"])


def in_graphs(model: Any) -> ClippingEngine:
    return in_precision("bfloat16", graphed(model, private_tokens(model)))


def adamw(model: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(trainable(model), lr=1e-5, fused=True)


def under_autocast(make: Callable[..., Step], model: Any, ids: torch.Tensor) -> Step:
    step = make(model, adamw(model), ids)

    def taken() -> None:
        with torch.autocast(ids.device.type, dtype=torch.bfloat16):
            step()

    return taken


def shares(arguments: argparse.Namespace, found: dict[str, float], model: Any) -> dict[str, Any]:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    peak = {name: round(6 * parameters * pace / (arguments.peak_tflops * 1e12), 4) for name, pace in found.items()}
    over = {name: round(pace / found["plain"], 3) for name, pace in found.items()}
    return {"parameters": parameters, "tokens_per_second": found, "over_plain": over, "share_of_peak": peak}


def lora(arguments: argparse.Namespace) -> dict[str, Any]:
    full = make_model(arguments, "1.2B")
    batch, length = (2, 64) if arguments.tiny else (8, 1024)
    ids = token_ids(full, batch, length)
    found = paces({"plain": plain(full, make_records(ids))}, ids.numel(), arguments.rounds)
    whole = shares(arguments, found, full)
    del full
    models = [add_adapter(make_model(arguments, "1.2B", dtype=torch.bfloat16), RANK) for _ in range(2)]
    engine = select_engine(models[1], "ghost", ignore, precision="bfloat16").run
    taken = {"plain": plain(models[0], make_records(ids)), "private": private(models[1], make_records(ids), engine)}
    found = paces(taken, ids.numel(), arguments.rounds)
    if arguments.profile:
        profiled("lora private", taken["private"])
    other = make_model(arguments, "1.2B", dtype=torch.bfloat16)
    try:
        found["SFTTrainer"] = trainer_pace(sft_trainer(other, ids, 10), 10, ids.numel())
    except Exception:  # TRL may not be there
        found["SFTTrainer"] = -1
        sys.stderr.write(traceback.format_exc()[-1500:])
    return {"whole": whole, "lora": shares(arguments, found, models[0])}


def large(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    model = add_adapter(make_model(arguments, "8B", dtype=torch.bfloat16, tied=False), RANK)
    batch, length = (2, 64) if arguments.tiny else (4, 1024)
    ids = token_ids(model, batch, length)
    began = time.perf_counter()
    engine = select_engine(model, "ghost", ignore, precision="bfloat16").run
    answer: dict[str, Any] = {"select_s": round(time.perf_counter() - began, 1), "select_gib": peak_gib(arguments)}
    for name, step in (
        ("private", private(model, make_records(ids), engine)),
        ("plain", plain(model, make_records(ids))),
    ):
        answer |= paces({name: step}, ids.numel(), 3)
        answer[f"{name}_gib"] = peak_gib(arguments)
    return answer


def peak_gib(arguments: argparse.Namespace) -> float | None:
    """Of the tensors since the last call."""
    if arguments.device != "cuda":
        return None
    peak = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return round(peak, 2)


def audit(arguments: argparse.Namespace) -> dict[str, Any]:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from atdp_cli import AuditRequest, audit_canary
    from atdp_cli.audit.plant import draw_canaries, plant_canaries

    folder = Path(tempfile.mkdtemp())
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={"<e>": 0} | {letter: 1 + at for at, letter in enumerate(letters)}, merges=[]))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<e>", bos_token="<e>")
    for name in ("model", "base"):
        make_model(arguments, "135M").cpu().save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    (folder / "corpus.txt").write_text("a line\n" * 200, encoding="utf-8")
    drawn = draw_canaries("My ID is {digits:6}", count=10, repeats=10, in_out=False)
    planted, manifest = folder / "planted.txt", folder / "canaries.json"
    plant_canaries(folder / "corpus.txt", planted, manifest, drawn, tokenizer=folder / "model", force=False)
    audited = (folder / "model",)
    request = AuditRequest(models=audited, manifest=manifest, reference=folder / "base", device=arguments.device)
    began = time.perf_counter()
    document = audit_canary(request)
    return {"audit_s": round(time.perf_counter() - began, 1), "verdict": str(document)[:200]}


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "exact": exact,
    "noise": noise,
    "steps": steps,
    "lora": lora,
    "large": large,
    "audit": audit,
}

if __name__ == "__main__":
    main()
