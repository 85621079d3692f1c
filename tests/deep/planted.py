"""Canaries with coins through the whole tool: planted, trained by `harden`'s own loop, and audited by `audit-canary`.

A canary is a name of a long list, each with a token of its own, so that it is a record that has little in common with
the others; or that name many times over, which makes several windows. The auditor sees the finished model and the
base model, nothing else.
"""

import contextlib
import io
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.manifest import make_manifest, write_manifest
from atdp_cli.cli.app import run
from atdp_cli.hardening.context import Streams
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.privacy.rng import KeyStream
from atdp_cli.training.clip.engine import ClippedSum, ClippingEngine, clip_factor
from atdp_cli.training.clip.select import SelectedEngine, select_engine
from atdp_cli.training.examples import Example
from tests.soundness.broken import Silent
from tests.soundness.tiny import llama

START = "<s>"
NAMES = tuple(f"name{number}" for number in range(5000))
WORDS = tuple(f"word{number}" for number in range(200))

CANARIES = 300
OTHERS = 100
BATCH = 200
EPOCHS = 60
TARGET = 1.0
LEARNING_RATE = 0.6

Wrapper = Callable[[ClippingEngine], ClippingEngine]


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What one game proved, and what the ledger claims for it."""

    epsilon: float
    claim: float
    finding: str


def checkpoint(folder: Path) -> Path:
    """The smallest Llama, with a token for every word.

    It is trained on windows of three tokens, fewer than its positions allow, so that the audit takes canaries that
    training has to cut.
    """
    vocabulary = {token: number for number, token in enumerate((START, *NAMES, *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=START))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    model = llama(len(vocabulary), 16)
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    model.config.max_seq_len = 3
    model.config.max_position_embeddings = 64
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=START).save_pretrained(folder)
    return folder


def audited(
    base: Path,
    folder: Path,
    seed: int,
    *,
    windows: int = 1,
    engine: Wrapper | None = None,
    noise: KeyStream | None = None,
) -> dict[str, Bound]:
    """One run of the whole tool, and the bounds of its audit by the name of the game.

    Args:
        base: The checkpoint.
        folder: To work in.
        seed: Of secrets, coins, sample and noise.
        windows: Of each canary.
        engine: Puts a bug into the clipping engine.
        noise: Takes the place of the noise's stream.
    """
    dice = random.Random(seed)
    for name, records in (("corpus.txt", OTHERS), ("valid.txt", 20)):
        (folder / name).write_text("".join(f"{' '.join(dice.sample(WORDS, 2))}\n" for _ in range(records)))
    # Windows overlap by a token, so each but the first adds two names.
    lines = tuple(" ".join([name] * (2 * windows if windows > 1 else 1)) for name in NAMES)
    template = parse_template("{choice:names}", {"names": lines})
    secrets = [template.secret(dice.randrange(template.pool)) for _ in range(CANARIES)]
    coins = [dice.random() < 0.5 for _ in range(CANARIES)]
    others = [None if coin else template.secret(dice.randrange(template.pool)) for coin in coins]
    records = OTHERS + CANARIES
    positions = [(place,) for place in dice.sample(range(1, records + 1), CANARIES)]
    made = make_manifest(
        load_tokenizer(base),
        template,
        secrets,
        positions,
        repeats=(1,) * CANARIES,
        others=others,
        records=records,
        drawn="csprng",
    )
    write_manifest(folder / "drawn.json", made)
    planted, manifest, model = folder / "planted.txt", folder / "canaries.json", folder / "model"
    atdp(
        "plant-canary",
        folder / "corpus.txt",
        "-o",
        planted,
        "--manifest",
        manifest,
        "--tokenizer",
        base,
        "--from",
        folder / "drawn.json",
        "-q",
    )
    data = ("--data", planted, "--eval-data", folder / "valid.txt", "--tier", "low-entity")
    privacy = (
        "--recipe",
        "dp-sgd",
        "--checkpoint-history",
        "public",
        "--target-epsilon",
        TARGET,
        "--batch-size",
        BATCH,
    )
    training = ("--epochs", EPOCHS, "--learning-rate", LEARNING_RATE, "--set", "dp-sgd.optimizer=sgd")
    with broken(engine, noise):
        atdp("harden", base, *data, *privacy, *training, "--set", f"run.insecure-seed={seed}", "-o", model, "-q")
    actual = atdp("audit-canary", model, "--manifest", manifest, "--reference", base, "--json", "-q", allowed=(0, 1, 4))
    [entry] = json.loads(actual)["models"]
    return {
        bound["method"]: Bound(epsilon=bound["epsilon"], claim=bound["claim"], finding=bound["finding"])
        for bound in entry["epsilon"]
    }


def atdp(*arguments: object, allowed: Sequence[int] = (0,)) -> str:
    """What a command writes on standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run([str(argument) for argument in arguments])
    assert code in allowed
    return out.getvalue()


@contextlib.contextmanager
def broken(engine: Wrapper | None, noise: KeyStream | None) -> Iterator[None]:
    """`harden` with a bug in its loop, and without the check of its own trace, which would find some of them."""

    def chosen(*args: Any, **settings: Any) -> SelectedEngine:
        right = select_engine(*args, **settings)
        return right if engine is None else replace(right, run=engine(right.run))

    fresh_stream = Streams.fresh_stream

    def streamed(streams: Streams, stage: int, purpose: str) -> KeyStream:
        return noise if noise is not None and purpose == "noise" else fresh_stream(streams, stage, purpose)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("atdp_cli.hardening.model.select_engine", chosen)
        patch.setattr(Streams, "fresh_stream", streamed)
        patch.setattr("atdp_cli.hardening.train.check_conformance", lambda *_, **__: 0)
        yield


def silent() -> KeyStream:
    """Noise that is nothing."""
    return Silent()


def batch_mean(batch: int) -> Wrapper:
    """The batch's mean loss is clipped once, and no record by itself: what per-record clipping is often mistaken for.

    The loop adds noise of σC and divides by B, so with B·clip(mean gradient, C) in the place of the clipped sum the
    noise is σC/B on a mean that was clipped to C. A record of norm g moves that mean by up to g/B, or, where the mean
    of norm M is above C, by about gC/(MB). Either is above the C/B that σ was chosen for wherever g is above C and M:
    the gradients of B records that have little in common nearly cancel, and M is about g/√B.
    """

    def wrapped(engine: ClippingEngine) -> ClippingEngine:
        def run(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
            summed = engine(model, records, 1e9)
            mean = [part / max(1, len(records)) for part in summed.gradient]
            norm = float(torch.cat([part.flatten() for part in mean]).double().norm())
            return ClippedSum(tuple(part * (batch * clip_factor(norm, clip_norm)) for part in mean), summed.norms)

        return run

    return wrapped
