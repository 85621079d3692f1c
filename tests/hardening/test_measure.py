"""Bits of a sentence's tokens, against the model used directly."""

import math
from pathlib import Path

import pytest
import torch

from atdp_cli.detection.detector import Detector
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.hardening.measure import compare_surprise, mark_sentence, surprise
from atdp_cli.model.checkpoint import load_checkpoint

TEXT = "Emma Clarke said the order was shipped to Berlin."


def test_each_token_has_the_bits_that_the_model_gives_it(checkpoint_folder: Path) -> None:
    checkpoint = load_checkpoint(checkpoint_folder)
    actual = surprise(checkpoint, mark_sentence(TEXT, Detector(), checkpoint, load_pipeline()))
    assert "".join(actual.tokens) == TEXT
    start = checkpoint.tokenizer.bos_token_id
    ids = [start, *checkpoint.tokenizer(TEXT)["input_ids"]]
    with torch.no_grad():
        log_p = checkpoint.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    direct = [-float(log_p[place, token]) / math.log(2) for place, token in enumerate(ids[1:])]
    known = [bits for bits in actual.bits if bits is not None]
    assert known == pytest.approx(direct[-len(known) :], abs=1e-4)
    assert len(known) >= len(actual.bits) - 1


def test_what_the_detector_flags_is_marked(checkpoint_folder: Path) -> None:
    checkpoint = load_checkpoint(checkpoint_folder)
    actual = surprise(checkpoint, mark_sentence(TEXT, Detector(), checkpoint, load_pipeline()))
    flagged = "".join(text for text, sensitive in zip(actual.tokens, actual.sensitive, strict=True) if sensitive)
    assert "Emma Clarke" in flagged
    assert "order" not in flagged
    entries = compare_surprise(actual, actual)
    assert [entry.before for entry in entries] == [entry.after for entry in entries] == list(actual.bits)
