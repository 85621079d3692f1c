"""Two worlds that differ in one record, compared at the parameters that a real run visits."""

import functools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import FlaggedRecord, Span, Tier
from atdp_cli.events import ignore
from atdp_cli.hardening.encode import Encoding, encode
from atdp_cli.model.adapter import add_adapter
from atdp_cli.privacy.journal import open_journal
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.replacement.decoys import uniformly
from atdp_cli.training.clip.engine import ClippedSum, ClippingEngine
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.examples import Example, make_example
from atdp_cli.training.objectives import Interpolate, Weighted
from atdp_cli.training.options import ENGINES, ClippingEngineName
from atdp_cli.training.plan import CorpusFacts, Reference, StagePlan, make_plan
from atdp_cli.training.recipe import (
    DPSGD,
    RECIPES,
    NonPrivate,
    Recipe,
    Train,
    parse_recipe,
    reads_records,
    reads_reference,
    takes_steps,
)
from atdp_cli.training.trainable import interpolate
from atdp_cli.training.trainer import Randomness, run_noise, run_plain, run_private
from tests.training.stages import stage_run
from tests.training.test_clipping import distance

CLIP = 0.1
CONTEXT = 16
"""The corpus' share of sensitive tokens as it was released, the same in both worlds."""

PUBLIC = Reference(ledger=None, weights={}, past="declared")

Rule = float | Literal["record"]
RULES: tuple[Rule, ...] = (0.2, "record")


def flagged(text: str, *names: str) -> FlaggedRecord:
    """A record in which these words are sensitive."""
    spans = [
        Span(start, start + len(name), "PERSON", "ner", Tier.LOW_ENTITY)
        for name in names
        for start in range(len(text))
        if text.startswith(name, start)
    ]
    return FlaggedRecord(Record("1", text), tuple(sorted(spans, key=lambda span: span.start)))


LONG = "Emma Clarke said please send the order again when they are ready because nobody could open that blue box. "
CORPUS = (
    flagged("Omar Haddad asked for help with her account before noon.", "Omar Haddad"),
    flagged(2 * LONG, "Emma Clarke"),
    flagged("Lena Fischer, Berlin", "Lena Fischer, Berlin"),
    flagged("the order was shipped to an old address and she asked for it"),
    flagged(""),
    flagged("Omar Haddad § said it.", "Omar Haddad"),
    flagged("because Berlin could open", "Berlin"),
    flagged("Emma Clarke said please send 123456 to Berlin before noon.", "Emma Clarke", "Berlin", "123456"),
)
ORDINARY, WINDOWS, ALL_SENSITIVE, UNFLAGGED, ABSENT, NOT_FINITE = range(6)
TARGETS = (ORDINARY, WINDOWS, ALL_SENSITIVE, UNFLAGGED, ABSENT, NOT_FINITE)
"""Records that are replaced by an empty one in turn; the token of § gives the last of them a gradient of nan."""


@dataclass(frozen=True)
class Case:
    """A recipe with its rule for w, an engine, and whether an adapter trains alone."""

    recipe: str
    rule: Rule
    engine: ClippingEngineName
    adapter: bool

    def __str__(self) -> str:
        return f"{self.recipe}-{self.rule}-{self.engine}-{'lora' if self.adapter else 'full'}"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The length of the difference that a record makes to the sum before noise, over C.

    Attributes:
        among: Among the records that the run's own coins chose, and the other targets.
        alone: Where it was the only one, so that its removal empties the batch.
        norm: Of its gradient, not over C.
    """

    target: int
    among: float
    alone: float
    norm: float


def clips(stage: Train) -> bool:
    """Whether records are sampled and clipped."""
    return isinstance(stage.mechanism, DPSGD) and reads_records(stage)


def private_recipes() -> list[str]:
    """Each recipe with a DP stage, alone and after every other recipe."""
    private = [name for name, recipe in RECIPES.items() if any(clips(stage) for stage in recipe)]
    return [*private, *(f"{first}+{last}" for first in RECIPES if first != "base" for last in private if first != last)]


def rules_of(name: str) -> tuple[Rule, ...]:
    """The rules for w among which a recipe's DP stages have a choice."""
    weighted = any(isinstance(stage.objective, Weighted) for stage in parse_recipe(name))
    return RULES if weighted else RULES[:1]


def all_cases() -> list[Case]:
    """Every recipe, rule and engine, full and adapted; an adapter cannot be interpolated with a whole model."""
    ruled = [(name, rule) for name in private_recipes() for rule in rules_of(name)]
    return [
        Case(*pair, engine, adapter)
        for pair in ruled
        for engine in ENGINES
        for adapter in (False, True)
        if not (adapter and not all(map(takes_steps, parse_recipe(pair[0]))))
    ]


def recipe_of(name: str, rule: Rule) -> Recipe:
    """The recipe, one epoch a stage, three steps of it private."""
    return tuple(_small(stage, rule) for stage in parse_recipe(name))


def _small(stage: Train, rule: Rule) -> Train:
    if isinstance(stage.mechanism, NonPrivate):
        return replace(stage, epochs=1, mechanism=NonPrivate(batch_size=4))
    mechanism = replace(stage.mechanism, clip_norm=CLIP, expected_batch=3)
    objective = stage.objective
    if isinstance(objective, Weighted):
        objective = replace(objective, unflagged_weight=rule)
    return replace(stage, epochs=1, mechanism=mechanism, objective=objective)


def model(vocabulary: int, *, adapter: bool) -> Any:
    """An untied GPT-2: Opacus refuses a table that two layers share."""
    torch.manual_seed(0)
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": CONTEXT, "bos_token_id": 0, "eos_token_id": 0}
    actual = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, tie_word_embeddings=False, **shape)).eval()
    return add_adapter(actual, 2) if adapter else actual


@functools.cache
def reference(vocabulary: int) -> Any:
    """A model that is far from `model`, so that no divergence from it is small."""
    actual = model(vocabulary, adapter=False)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in actual.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=draw))
    return actual.requires_grad_(False)


def examples_of(corpus: Sequence[FlaggedRecord], stage: Train, tokenizer: Any) -> list[Example]:
    """Records as `jobs.stages` makes them for a stage."""
    encoding = Encoding(tokenizer=tokenizer, context=CONTEXT, windows=8)
    # Every record has decoys of its own chance here, so that what one record changes can be seen; in a run they share a
    # stream, of which each gets a part that nothing else depends on.
    windows = tuple(
        encode([*[flagged("")] * place, corpu], stage.text, encoding, uniformly(random.Random(place).randrange))[place]
        for place, corpu in enumerate(corpus)
    )
    towards = reference(len(tokenizer)) if reads_reference(stage) else None
    return [make_example(window, stage.objective, reference=towards) for window in windows]


def without(target: int) -> list[FlaggedRecord]:
    """The corpus with an empty record in this one's place."""
    return [flagged("") if place == target else corpu for place, corpu in enumerate(CORPUS)]


@functools.cache
def engine_of(name: ClippingEngineName, vocabulary: int, adapter: bool) -> ClippingEngine:
    """The engine as a run uses it, once it was found to fit the model."""
    return select_engine(model(vocabulary, adapter=adapter), name, ignore).run


def check(case: Case, tokenizer: Any, folder: Path) -> None:
    """No target moves the sum by more than C, at any step; those longer than C come up to the margin of it."""
    recipe = recipe_of(case.recipe, case.rule)
    current = model(len(tokenizer), adapter=case.adapter)
    actual = visit(recipe, current, tokenizer, engine_of(case.engine, len(tokenizer), case.adapter), folder)
    assert len(actual) == 3 * len(TARGETS) * sum(clips(stage) for stage in recipe)
    assert max(max(compared.among, compared.alone) for compared in actual) <= 1
    for compared in actual:
        if compared.target == ABSENT:
            assert compared.among == compared.alone == compared.norm == 0
        elif compared.target == NOT_FINITE:
            assert math.isnan(compared.norm)
            assert compared.alone == 0
            assert compared.among < 1e-5
        else:
            assert compared.norm > CLIP
            assert min(compared.among, compared.alone) > 0.9999


def visit(recipe: Recipe, current: Any, tokenizer: Any, engine: ClippingEngine, folder: Path) -> list[Compared]:
    """Run the recipe, and at the parameters of every private step compare the worlds."""
    corpus = CorpusFacts(records=len(CORPUS), relation=hypothetical("line"))
    compared: list[Compared] = []
    for plan in make_plan(recipe, corpus, delta=1e-6, checkpoint_history="public", reference=PUBLIC).stages:
        if not isinstance(plan, StagePlan) or not clips(plan.stage):
            _pass(plan, current, tokenizer)
            continue
        examples = examples_of(CORPUS, plan.stage, tokenizer)
        comparing = Comparing(
            engine=engine,
            examples=examples,
            others={target: examples_of(without(target), plan.stage, tokenizer) for target in TARGETS},
            token=tokenizer("§")["input_ids"][0],
        )
        _run(current, examples, plan, comparing, folder)
        compared += comparing.compared
    return compared


def _pass(plan: StagePlan, current: Any, tokenizer: Any) -> None:
    """A stage that clips no record."""
    if isinstance(plan.stage.objective, Interpolate):
        interpolate(current, reference(len(tokenizer)), plan.stage.objective.beta)
    elif not reads_records(plan.stage):
        run_noise(stage_run(current, plan), noise=insecure_stream(0, "noise"))
    else:
        run_plain(stage_run(current, plan, examples=examples_of(CORPUS, plan.stage, tokenizer)), seed=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparing:
    """An engine that first compares the worlds at the parameters that it finds.

    Attributes:
        examples: The records.
        others: The same with a target's place empty.
        token: Whoever holds it has a gradient of nan.
        compared: What came out so far.
    """

    engine: ClippingEngine
    examples: Sequence[Example]
    others: Mapping[int, Sequence[Example]]
    token: int
    compared: list[Compared] = field(default_factory=list)

    def __call__(self, model: PreTrainedModel, chosen: Sequence[Example], clip_norm: float) -> ClippedSum:
        coins = [row for row, example in enumerate(self.examples) if any(example is other for other in chosen)]
        with not_finite(model, self.token):
            self.compared.extend(self._compare(model, coins))
        return self.engine(model, chosen, clip_norm)

    def _compare(self, model: PreTrainedModel, coins: Sequence[int]) -> Iterator[Compared]:
        rows = sorted({*coins, *TARGETS})
        whole = self.engine(model, [self.examples[row] for row in rows], CLIP)
        for target, others in self.others.items():
            less = self.engine(model, [others[row] for row in rows], CLIP)
            alone = self.engine(model, [self.examples[target]], CLIP)
            emptied = self.engine(model, [others[target]], CLIP)
            yield Compared(
                target=target,
                among=distance(whole.gradient, less.gradient) / CLIP,
                alone=distance(alone.gradient, emptied.gradient) / CLIP,
                norm=float(alone.norms[0]),
            )


def _run(current: Any, examples: list[Example], plan: StagePlan, engine: ClippingEngine, folder: Path) -> None:
    with open_journal(folder / "journal") as journal:
        run_private(
            stage_run(current, plan, examples=examples),
            engine=engine,
            randomness=Randomness(sample=insecure_stream(0, "sample"), noise=insecure_stream(0, "noise")),
            journal=journal,
        )


@contextmanager
@torch.no_grad()
def not_finite(model: PreTrainedModel, token: int) -> Iterator[None]:
    """In the block, what the model makes of this token is nan."""
    row = model.get_input_embeddings().weight[token]
    before = row.clone()
    row.fill_(math.nan)
    yield
    row.copy_(before)
