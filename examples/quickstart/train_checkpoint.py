"""Train the quickstart's checkpoint: a small GPT-2 with a tied head, on ordinary English text.

    python train_checkpoint.py --corpus wikitext-2-raw/train.txt --valid wikitext-2-raw/valid.txt

The tokenizer is trained on the same text. One core, one thread, about half an hour. The same arguments,
library versions and processor give the same weights.
"""

import argparse
import math
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

END = "<|endoftext|>"
HEADING = re.compile(r"^=.*=$")
LARGEST_WEIGHTS = 4_000_000  # bytes; the file is kept in git
PROMPT = "The first season of the series was"
SAMPLE = "Hi, this is Ana Ruiz, ana.ruiz7@example.com, (212) 555-0147: order 8841-20 is late.\n\tÉté 東京"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the model is made of; 1.9 million parameters."""

    vocabulary: int = 4096
    context: int = 256
    width: int = 144
    layers: int = 5
    heads: int = 4
    spread: float = 0.06  # standard deviation of the first weights; GPT-2's 0.02 is too little at this width


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how fast it learns."""

    steps: int
    batch: int = 16
    peak_rate: float = 5e-3
    warmup: int = 200
    weight_decay: float = 0.1
    seed: int = 20


def detokenise(line: str) -> str:
    """Undo WikiText's spacing, so that the model meets text as people write it.

    >>> detokenise(' The " role @-@ playing " game ( 2011 ) sold 1 @,@ 500 copies , didn \\'t it ? ')
    'The "role-playing" game (2011) sold 1,500 copies, didn\\'t it?'
    """
    text = re.sub(r" @([-,.])@ ", r"\1", line.strip())
    text = re.sub(r'" ([^"]*?) "', r'"\1"', text)
    text = re.sub(r" n 't\b", "n't", re.sub(r"(\w)n 't\b", r"\1n't", text))
    text = re.sub(r" '(s|re|ve|ll|d|m|t)\b", r"'\1", text)
    text = re.sub(r"(\w) ' (?=\w)", r"\1' ", text)
    text = re.sub(r" ([,.;:!?%)\]])", r"\1", text)
    text = re.sub(r"([(\[$£€]) ", r"\1", text)
    return re.sub(r"(?<=\d) – (?=\d)", "–", text)


def paragraphs(path: Path) -> Iterator[str]:
    """The paragraphs of a WikiText file, without its headings."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text and not HEADING.match(text):
            yield detokenise(text)


def train_tokenizer(texts: list[str], shape: Shape) -> PreTrainedTokenizerFast:
    """A byte-level BPE that encodes any text and adds no special token by itself."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=shape.vocabulary,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END,
        eos_token=END,
        model_max_length=shape.context,
        clean_up_tokenization_spaces=False,
    )


def encode(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> torch.Tensor:
    """All paragraphs as one stream of ids, an end mark before each."""
    end = tokenizer.bos_token_id
    batches = tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=False)
    return torch.tensor([token for paragraph in batches for token in (end, *paragraph.ids)], dtype=torch.long)


def new_model(shape: Shape, end: int) -> Any:
    """The untrained model; its head shares the token embedding's weights."""
    config = GPT2Config(
        vocab_size=shape.vocabulary,
        n_positions=shape.context,
        n_embd=shape.width,
        n_layer=shape.layers,
        n_head=shape.heads,
        initializer_range=shape.spread,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end,
        eos_token_id=end,
        tie_word_embeddings=True,
        use_cache=True,
    )
    return GPT2LMHeadModel(config)


def rate(step: int, schedule: Schedule) -> float:
    """Linear warm-up, then a cosine down to a hundredth of the peak.

    >>> [round(rate(step, Schedule(steps=1000)), 5) for step in (0, 199, 600, 999)]
    [3e-05, 0.005, 0.00252, 5e-05]
    """
    if step < schedule.warmup:
        return schedule.peak_rate * (step + 1) / schedule.warmup
    done = (step - schedule.warmup) / max(1, schedule.steps - schedule.warmup)
    return schedule.peak_rate * (0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done)))


def optimiser(model: Any, schedule: Schedule) -> torch.optim.Optimizer:
    """AdamW; biases and layer norms do not decay."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": schedule.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=schedule.peak_rate, betas=(0.9, 0.95))


def windows(stream: torch.Tensor, context: int, schedule: Schedule) -> Iterator[torch.Tensor]:
    """Batches of windows; each epoch cuts the stream at another offset and shuffles the pieces."""
    draw = torch.Generator().manual_seed(schedule.seed)
    while True:
        offset = int(torch.randint(context, (1,), generator=draw))
        pieces = (len(stream) - offset) // context
        cut = stream[offset : offset + pieces * context].view(pieces, context)
        order = torch.randperm(pieces, generator=draw)
        for start in range(0, pieces - schedule.batch + 1, schedule.batch):
            yield cut[order[start : start + schedule.batch]]


def mean_loss(model: Any, batch: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of each next token within its window."""
    logits = model(input_ids=batch, use_cache=False).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())


def train(model: Any, stream: torch.Tensor, shape: Shape, schedule: Schedule) -> None:
    """Fit the model; matrix products run in bfloat16, weights and sums stay in float32."""
    chosen = optimiser(model, schedule)
    began = time.monotonic()
    model.train()
    for step, batch in zip(range(schedule.steps), windows(stream, shape.context, schedule), strict=False):
        for group in chosen.param_groups:
            group["lr"] = rate(step, schedule)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = mean_loss(model, batch)
        chosen.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        chosen.step()
        if step % 100 == 0 or step == schedule.steps - 1:
            seconds = time.monotonic() - began
            print(f"step {step:5d}  loss {loss.item():.4f}  {seconds:6.0f} s", flush=True)


@torch.no_grad()
def perplexity(model: Any, stream: torch.Tensor, context: int) -> float:
    """Token perplexity over consecutive windows of the stream, in float32."""
    model.eval()
    whole = stream[: len(stream) // context * context].view(-1, context)
    parts = [whole[start : start + 32] for start in range(0, len(whole), 32)]
    return math.exp(sum(float(mean_loss(model, part)) * len(part) for part in parts) / len(whole))


def save(model: Any, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write the folder's files beside it first, then move each into place whole."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".checkpoint-") as name:
        draft = Path(name)
        tokenizer.save_pretrained(draft)
        model.half().save_pretrained(draft)
        for path in sorted(draft.iterdir()):
            path.chmod(0o644)
            path.replace(folder / path.name)


def require(holds: bool, what: str) -> None:
    """Stop where the written checkpoint is not what it should be."""
    if not holds:
        raise SystemExit(f"The checkpoint fails its check: {what}")


def check(folder: Path, tokenizer: PreTrainedTokenizerFast, stream: torch.Tensor, shape: Shape) -> float:
    """Load the folder as a user would, compare it with what was trained, and return its perplexity."""
    again = cast(Any, AutoTokenizer.from_pretrained(folder))
    before, after = (t(SAMPLE, return_offsets_mapping=True) for t in (tokenizer, again))
    require(len(before["input_ids"]) > 0 and before["input_ids"] == after["input_ids"], "token ids differ")
    require(before["offset_mapping"] == after["offset_mapping"], "token offsets differ")
    require(again.decode(after["input_ids"]) == SAMPLE, "text does not survive encoding")
    model = cast(Any, AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))
    require(model.lm_head.weight is model.transformer.wte.weight, "the head is not tied")
    require(all(bool(p.isfinite().all()) for p in model.parameters()), "a weight is not finite")
    size = (folder / "model.safetensors").stat().st_size
    require(size <= LARGEST_WEIGHTS, "the weights file is too large")
    prompt = again(END + PROMPT, return_tensors="pt")
    text = model.generate(**prompt, max_new_tokens=40, do_sample=False, pad_token_id=again.eos_token_id)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {size:,} bytes of weights")
    print(f"greedy: {again.decode(text[0], skip_special_tokens=True)!r}")
    return perplexity(model, stream, shape.context)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train the quickstart's checkpoint on WikiText-2.")
    parser.add_argument("--corpus", type=Path, required=True, help="WikiText-2 raw, training split")
    parser.add_argument("--valid", type=Path, required=True, help="WikiText-2 raw, validation split")
    parser.add_argument("-o", "--out", type=Path, default=Path(__file__).with_name("checkpoint"))
    parser.add_argument("--steps", type=int, default=3400)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    shape, schedule = Shape(), Schedule(steps=options.steps)
    torch.set_num_threads(1)
    torch.manual_seed(schedule.seed)
    texts = list(paragraphs(options.corpus))
    tokenizer = train_tokenizer(texts, shape)
    stream, held_out = encode(tokenizer, texts), encode(tokenizer, list(paragraphs(options.valid)))
    print(f"{len(texts):,} paragraphs, {len(stream):,} tokens; validation {len(held_out):,}", flush=True)
    model = new_model(shape, cast(int, tokenizer.bos_token_id))
    train(model, stream, shape, schedule)
    print(f"validation perplexity before rounding to float16: {perplexity(model, held_out, shape.context):.2f}")
    save(model, tokenizer, options.out)
    print(f"validation perplexity as saved: {check(options.out, tokenizer, held_out, shape):.2f}")


if __name__ == "__main__":
    main()
