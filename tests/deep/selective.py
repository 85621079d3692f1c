"""The selective claim of fitted decoys as a game, played on all that the claim covers, in the order in which it arises.

Each of 300 canaries is one of two secrets of one shape, and a coin says which. The auditor knows everything but the
coins: the rest of the corpus, where the canaries are, and the two secrets of each. He guesses all coins

1. from the released frequencies: canaries are names, one record each, and the higher share is the guess. The claim is
   that of the release, for replacing one record;
2. from the decoyed texts of an epoch: canaries are numbers, ten records each, and the one that more digits of their
   decoys agree with is the guess. Such digits have no votes, so the claim is ε = 0 and δ = 0 for any number of records;
3. from the finished model, by `atdp audit-canary` alone: canaries are numbers, ten records each, with the same claim.

Releases and decoys are made by the functions that `atdp harden` makes them with; the model by `atdp harden` itself. Of
a run's alpha each of the three games has a third.
"""

import contextlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.epsilon import Game
from atdp_cli.audit.epsilon_games import compare_flagged
from atdp_cli.audit.manifest import make_manifest, write_manifest
from atdp_cli.audit.stated_epsilon import StatedEpsilon, stated_epsilon
from atdp_cli.corpus.edits import EditedText
from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import FlaggedRecord, Tier, at_tier, merge
from atdp_cli.detection.detect import detect_records
from atdp_cli.hardening import encode as encoding
from atdp_cli.hardening import releases
from atdp_cli.hardening.context import Streams
from atdp_cli.hardening.data import RunData
from atdp_cli.hardening.encode import Windows, encode
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import KeyStream
from atdp_cli.privacy.trace import Released
from atdp_cli.replacement import decoys, draw
from atdp_cli.replacement.decoys import Choose, lists
from atdp_cli.replacement.edits import redact_text
from atdp_cli.replacement.frequencies import Frequencies, choices_of, tables
from atdp_cli.training.plan import CorpusFacts, make_plan
from atdp_cli.training.recipe import FITTED_DECOYS, TextVariant, Train
from tests.deep.planted import atdp
from tests.soundness.tiny import llama

CANARIES, REPEATS = 300, 10
ALPHA = 0.001
LEVEL = ALPHA / 3
DELTA = 1e-8
"""Far below `LEVEL` over the canaries, or no claim with a δ could be refuted."""

NAMED, NUMBERED = "Her name is {}", "Your order number is {}"
CODES = tuple(f"{code:05d}" for code in random.Random(0).sample(range(100_000), 5000))
START = "<s>"

DecoyText = Callable[[str, Any, Choose], EditedText]
Fit = Callable[[Sequence[FlaggedRecord], float, KeyStream], tuple[Frequencies, Released]]


@dataclass(frozen=True, kw_only=True)
class Played:
    """What a game could prove, as known beforehand, what it proved, and the claim that it was for."""

    attainable: float
    epsilon: float
    claim: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is."""
        return self.epsilon > self.claim


@dataclass(frozen=True, kw_only=True)
class World:
    """What all runs share.

    Attributes:
        pipeline: The detector's.
        corpus: Lines of a real corpus, flagged.
        names: Public names that are flagged alike, not common, and not in the corpus.
        base: A checkpoint with a token for each code and each word of the corpus.
    """

    pipeline: Any
    corpus: tuple[FlaggedRecord, ...]
    names: tuple[str, ...]
    base: Path


def make_world(lines: Sequence[str], pipeline: Any, folder: Path) -> World:
    """The world of a corpus."""
    present = {word for line in lines for word in re.findall(r"\w+", line.casefold())}
    absent = [name for name in lists()["given"].more if name.casefold() not in present]
    named = flagged([NAMED.format(name) for name in absent], pipeline)
    most_common = Counter(map(_hidden, named)).most_common(1)[0][0]
    return World(
        pipeline=pipeline,
        corpus=flagged(lines, pipeline),
        names=tuple(name for name, record in zip(absent, named, strict=True) if _hidden(record) == most_common),
        base=_checkpoint(folder / "base", lines),
    )


def flagged(texts: Sequence[str], pipeline: Any) -> tuple[FlaggedRecord, ...]:
    """Records as `atdp harden --tier low-entity` flags them."""
    actual = detect_records([Record(str(line), text) for line, text in enumerate(texts)], pipeline=pipeline)
    return tuple(FlaggedRecord(detection.record, at_tier(detection.spans, Tier.LOW_ENTITY)) for detection in actual)


def _hidden(record: FlaggedRecord) -> tuple[str, tuple[decoys.Shape, ...]]:
    """What the selective guarantee does not hide of a record."""
    text, spans = record.record.text, record.spans
    shapes = (decoys.shape(span.label, text[span.start : span.end]) for span in merge(spans))
    return redact_text(text, spans).text, tuple(shapes)


def claimed(repeats: int, *, records: Sequence[FlaggedRecord]) -> StatedEpsilon:
    """What the ledger of the advised recipe claims for replacing so many records by others of these."""
    corpus = CorpusFacts(records=1000, relation=hypothetical("line"))
    ledger: Ledger = make_plan(FITTED_DECOYS, corpus, delta=DELTA, checkpoint_history="public").ledger
    alike = compare_flagged(((record.record.text, record.spans) for record in records), frozenset({"pattern", "votes"}))
    return stated_epsilon(ledger, repeats=repeats, invariance=lambda: alike)


def play_on_release(world: World, seed: int, *, fit: Fit = releases.fit_frequencies) -> Played:
    """Guess from the released frequencies which name each record holds."""
    dice = random.Random(seed)
    chosen = dice.sample(world.names, 2 * CANARIES)
    pairs = [tuple(dice.sample(pair, 2)) for pair in zip(chosen[::2], chosen[1::2], strict=True)]
    canaries = flagged([NAMED.format(own) for own, _ in pairs], world.pipeline)
    game = _game(claimed(1, records=canaries))
    [stage] = FITTED_DECOYS
    assert isinstance(stage, Train)
    assert stage.release_noise_multiplier is not None
    noise = Streams(seed=seed).fresh_stream(0, "frequencies")
    released, _ = fit((*world.corpus, *canaries), stage.release_noise_multiplier, noise)
    share = _shares(released)
    return _played(game, sum(share[own] > share[other] for own, other in pairs))


def play_on_decoys(world: World, seed: int, *, decoy_text: DecoyText = draw.decoy_text) -> Played:
    """Guess from an epoch's decoyed texts which number each record holds."""
    dice = random.Random(seed)
    pairs = [tuple(dice.sample(CODES, 2)) for _ in range(CANARIES)]
    canaries = flagged([NUMBERED.format(own) for own, _ in pairs], world.pipeline)
    game = _game(claimed(REPEATS, records=canaries))
    streams = Streams(seed=seed)
    released, _ = releases.fit_frequencies(world.corpus, 2.5, streams.fresh_stream(0, "frequencies"))
    choose = releases.decoy_choice(streams, 0, "epoch 1", released)
    correct = 0
    for (own, other), record in zip(pairs, canaries, strict=True):
        seen = [decoy_text(record.record.text, record.spans, choose).text[-5:] for _ in range(REPEATS)]
        correct += _agreement(own, seen) > _agreement(other, seen)
    return _played(game, correct)


def play_on_model(world: World, seed: int, folder: Path) -> dict[str, Played]:
    """`atdp plant-canary`, `atdp harden` and `atdp audit-canary` with its own reading of the claim, by game."""
    planted, manifest, model = folder / "planted.txt", folder / "canaries.json", folder / "model"
    _plant(world, seed, folder, planted, manifest)
    (folder / "valid.txt").write_text("".join(f"{record.record.text}\n" for record in world.corpus[-20:]))
    data = (
        "--data",
        planted,
        "--eval-data",
        folder / "valid.txt",
        "--tier",
        "low-entity",
        "--checkpoint-history",
        "public",
    )
    training = ("--recipe", "fitted-decoys", "--epochs", 3, "--learning-rate", "5e-3", "--batch-size", 64)
    atdp(
        "harden",
        world.base,
        *data,
        *training,
        "--delta",
        DELTA,
        "--set",
        f"run.insecure-seed={seed}",
        "-o",
        model,
        "-q",
    )
    audit = ("--manifest", manifest, "--reference", world.base, "--alpha", LEVEL, "--json", "-q")
    [entry] = json.loads(atdp("audit-canary", model, *audit, allowed=(0, 1, 4)))["models"]
    assert all((bound["scope"], bound["delta"]) == ("selective", 0) for bound in entry["epsilon"]), entry["epsilon"]
    assert all((bound["finding"] == "refuted") == (bound["epsilon"] > bound["claim"]) for bound in entry["epsilon"])
    return {
        bound["method"]: Played(attainable=bound["attainable"], epsilon=bound["epsilon"], claim=bound["claim"])
        for bound in entry["epsilon"]
    }


def _game(claim: StatedEpsilon) -> Game:
    return Game(
        method="pair",
        canaries=CANARIES,
        guesses=CANARIES,
        pool=2,
        top=1,
        claim=claim,
        level=LEVEL,
    )


def _played(game: Game, correct: int) -> Played:
    assert game.claim.epsilon is not None, game.claim.missing
    return Played(attainable=game.attainable, epsilon=game.bound(correct), claim=game.claim.epsilon)


def _shares(released: Frequencies) -> dict[str, int]:
    """How many outcomes of a draw give each given name."""
    cumulative = released["given"].cumulative[: tables()["given"].size]
    ends = [0, *cumulative]
    return {name: high - low for name, (low, high) in zip(choices_of("given"), pairwise(ends), strict=True)}


def _agreement(code: str, seen: Sequence[str]) -> int:
    return sum(digit == shown for text in seen for digit, shown in zip(code, text, strict=True))


def _checkpoint(folder: Path, lines: Sequence[str]) -> Path:
    """The smallest Llama, with a token for every word and every code."""
    words = sorted({word for text in (*lines, NUMBERED) for word in text.split()} - {"{}", START})
    vocabulary = {token: number for number, token in enumerate((START, *CODES, *(set(words) - set(CODES))))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=START))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    model = llama(len(vocabulary), 16)
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=START).save_pretrained(folder)
    return folder


def _plant(world: World, seed: int, folder: Path, planted: Path, manifest: Path) -> None:
    """Canaries from a generator that can be repeated, planted by the product."""
    dice = random.Random(seed)
    corpus, drawn = folder / "corpus.txt", folder / "drawn.json"
    corpus.write_text("".join(f"{record.record.text}\n" for record in world.corpus[:-20]))
    template = parse_template(NUMBERED.format("{choice:codes}"), {"codes": CODES})
    records = len(world.corpus) - 20 + CANARIES * REPEATS
    places = dice.sample(range(1, records + 1), CANARIES * REPEATS)
    made = make_manifest(
        load_tokenizer(world.base),
        template,
        [template.secret(dice.randrange(template.pool)) for _ in range(CANARIES)],
        [sorted(places[REPEATS * canary : REPEATS * (canary + 1)]) for canary in range(CANARIES)],
        repeats=(REPEATS,) * CANARIES,
        others=None,
        records=records,
        drawn="csprng",
    )
    write_manifest(drawn, made)
    options = ("-o", planted, "--manifest", manifest, "--tokenizer", world.base, "--from", drawn, "-q")
    atdp("plant-canary", corpus, *options)


# --- Faults


def keeping_a_digit(text: str, spans: Any, choose: Choose) -> EditedText:
    """Decoys whose last digit is the true one."""
    made = draw.decoy_text(text, spans, choose)
    merged, content = merge(spans), list(made.text)
    for span, (_, end) in zip(merged, made.places, strict=True):
        if text[span.end - 1].isdigit():
            content[end - 1] = text[span.end - 1]
    return EditedText("".join(content), made.places)


def without_noise(records: Sequence[FlaggedRecord], sigma: float, noise: KeyStream) -> tuple[Frequencies, Released]:
    """A release whose noise is a thousandth of what the ledger says."""
    return releases.fit_frequencies(records, sigma / 1000, noise)


@contextlib.contextmanager
def raw_in_one_epoch(epoch: int) -> Iterator[None]:
    """`harden` reads the raw text where it should read decoys, in one epoch."""
    calls: list[int] = []

    def windows(data: RunData, choose: Choose, equality: Any = None) -> Sequence[Windows]:
        calls.append(1)
        return encode(
            data.trained, TextVariant.RAW if len(calls) == epoch else TextVariant.DECOY, data.encoding, choose, equality
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunData, "decoys", windows)
        yield
    assert len(calls) >= epoch


@contextlib.contextmanager
def decoys_that_keep_a_digit() -> Iterator[None]:
    """`harden` with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "decoy", keeping_a_digit)
        yield
