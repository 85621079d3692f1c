"""`--recipe atdp` trains what the paper says: its weights are those of a loop written here, which shares no step."""

import json
import math
import random
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.privacy.rng import KeyStream, insecure_stream
from tests.cli.conftest import Atdp

SEED, RECORDS, EPOCHS = 7, 40, 2
CLIP, WEIGHT, RATE = 0.1, 0.2, 5e-4

SECRET = re.compile(r"[A-Z]\w+(?: [A-Z]\w+)?|\d+")
"""What is flagged: names and numbers."""

CLOSE = RATE / 100
"""Of weights, absolute: a hundredth of a step of AdamW. Sums of another order and the margins that the run keeps for
rounding change a step's direction where a gradient is all but 0."""


def weighed(tokenizer: PreTrainedTokenizerFast, text: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A record's tokens, and the weight of each in its loss: 1 if flagged or a function word, else w; shape [T]."""
    common = set(files("atdp_cli.detection").joinpath("words", "function_words.txt").read_text().split())
    marked = [False] * len(text)
    actual = [actual.span() for actual in SECRET.finditer(text)]
    actual += [word.span() for word in re.finditer("[a-z]+", text) if word.group() in common]
    for start, end in actual:
        marked[start:end] = [True] * (end - start)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    weights, at = [0.0], 0
    for token in tokenizer.convert_ids_to_tokens(ids):  # a byte each, as the text is ASCII; Ġ is a space
        visible = [place for place in range(at, at + len(token)) if text[place] != " "]
        weights.append(1.0 if any(marked[place] for place in visible) else WEIGHT)
        at += len(token)
    ends = [tokenizer.bos_token_id], [tokenizer.eos_token_id]
    return torch.tensor(ends[0] + ids + ends[1]), torch.tensor([*weights, WEIGHT])


def clipped(model: PreTrainedModel, ids: torch.Tensor, weights: torch.Tensor) -> list[torch.Tensor]:
    """A record's gradient, scaled to an L2 norm of at most C, less a margin for the rounding of norms."""
    chances = torch.log_softmax(model(ids[None]).logits[0, :-1], dim=-1)
    loss = -(weights[1:] * chances.gather(1, ids[1:, None])[:, 0]).sum()
    gradient = [part.double() for part in torch.autograd.grad(loss, list(model.parameters()))]
    norm = math.sqrt(sum(float(part.square().sum()) for part in gradient))
    return [part * min(1.0, CLIP * (1 - 2e-5) / norm) for part in gradient]


def normal(stream: KeyStream, shape: torch.Size) -> torch.Tensor:
    """Normals by Box and Muller."""
    half = math.ceil(shape.numel() / 2)
    first, second = np.split(stream.uniforms(2 * half), 2)
    radius, angle = np.sqrt(-2 * np.log(first)), 2 * math.pi * second
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return torch.from_numpy(both[: shape.numel()]).reshape(shape)


@pytest.mark.ci
def test_the_papers_mechanism_is_that_of_an_independent_loop(
    atdp: Atdp, checkpoint_folder: Path, lines: list[str], tmp_path: Path
) -> None:
    texts = lines[:RECORDS]
    (tmp_path / "corpus.txt").write_text("\n".join(texts) + "\n")
    rows = [
        {"id": str(number), "spans": [_span(actual) for actual in SECRET.finditer(text)]}
        for number, text in enumerate(texts, 1)
    ]
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = ["--data", tmp_path / "corpus.txt", "--spans", tmp_path / "spans.jsonl", "-o", tmp_path / "out"]
    options = ["--recipe", "atdp", "--set", f"run.insecure-seed={SEED}", "--epochs", EPOCHS, "--device", "cpu"]
    assert atdp("harden", checkpoint_folder, *data, *options, "--set", "run.threads=1", "-q").code == 0
    actual = dict(AutoModelForCausalLM.from_pretrained(tmp_path / "out").named_parameters())

    model = AutoModelForCausalLM.from_pretrained(checkpoint_folder).eval()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    tokenizer = AutoTokenizer.from_pretrained(checkpoint_folder)
    records = [weighed(tokenizer, text) for place, text in enumerate(texts) if place % 20 != 19]
    batch = math.ceil(len(records) / 4)
    sample, noise = (insecure_stream(SEED, f"{purpose} of stage 0") for purpose in ("sample", "noise"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    sigma, jitter = 1.0, random.Random("atdp jitter 0 0")
    for _ in range(EPOCHS):
        for _ in range(math.ceil(len(records) / batch)):
            drawn = [
                record
                for record, u in zip(records, sample.uniforms(len(records)), strict=True)
                if u < batch / len(records)
            ]
            gradients = [clipped(model, *record) for record in drawn]
            for place, parameter in enumerate(model.parameters()):
                total = sum(
                    (gradient[place] for gradient in gradients), torch.zeros(parameter.shape, dtype=torch.float64)
                )
                parameter.grad = ((total + sigma * CLIP * normal(noise, parameter.shape)) / batch).float()
            optimizer.step()
        sigma *= 1.2 * jitter.uniform(0.9, 1.1)

    after = {name: value.detach() for name, value in model.named_parameters()}
    moved, apart = (
        {name: float((value - other[name].detach()).abs().max()) for name, value in after.items()}
        for other in (before, actual)
    )
    assert min(moved.values()) > 100 * CLOSE
    assert max(apart.values()) < CLOSE, apart


def _span(actual: re.Match[str]) -> dict[str, object]:
    return {"start": actual.start(), "end": actual.end(), "label": "NAME", "source": "ner"}
