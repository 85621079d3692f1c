"""Weights rounded to int8: one scale an output, half a step away, and neither head nor embeddings."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from examples.experiments.rounding import round_to_int8


def test_layers_are_rounded_by_half_a_step() -> None:
    torch.manual_seed(0)
    shape = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 16, "vocab_size": 50}
    model = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0, tie_word_embeddings=False))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    round_to_int8(model)
    for name, tensor in model.state_dict().items():
        if ".h." not in name or not name.endswith("weight") or "ln_" in name:
            assert torch.equal(tensor, before[name]), name
            continue
        # GPT-2 keeps its layers as [inputs, outputs].
        steps = before[name].abs().amax(0) / 127.5
        assert not torch.equal(tensor, before[name])
        assert ((tensor - before[name]).abs() <= steps * 0.501).all()
        counts = tensor / steps
        torch.testing.assert_close(counts, counts.round(), rtol=0, atol=1e-3)
        assert counts.min() >= -128.001
        assert counts.max() <= 127.001
