"""What `atdp decoy` was asked for, and the plan that answers it: all that the copies will spend."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from atdp_cli.errors import UsageError
from atdp_cli.files.atomic_write import real_path
from atdp_cli.files.corpus_file import is_stream, raise_error
from atdp_cli.jobs.decoy.folder import check_copies
from atdp_cli.jobs.detect import CorpusSource
from atdp_cli.jobs.detector import Detector, check_detector, flags_of
from atdp_cli.jobs.harden.auto import EPSILON
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import DecoyedText, GaussianRelease, Ledger
from atdp_cli.privacy.relation import STABLE_TIERS, Relation, commitment
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.runs.corpus_identity import corpus_key
from atdp_cli.text.corpus.records import select_records
from atdp_cli.text.crosscheck.request import check_crosscheck
from atdp_cli.training.plan import CorpusFacts, Plan, make_plan
from atdp_cli.training.recipe import RECIPES, DecoyEquality, Recipe, Train
from atdp_cli.training.solve import solve_noise

DecoyRecipe = Literal["fitted-decoys", "decoys"]


@dataclass(frozen=True, kw_only=True)
class DecoyRequest:
    """Copies of a corpus with decoys.

    Attributes:
        output: The folder to write.
        recipe: That of harden whose decoys they are.
        epochs: How many copies.
        equality: Within what equal words and numbers have equal decoys.
        release_noise: σ of the release; None to solve for it.
        target_epsilon: Of the selective guarantee; None for `EPSILON`.
        spans: A spans file of the corpus, in the detector's place.
        seed: Makes copies reproducible, and protects nobody.
        force: Replace copies that are there.
    """

    corpus: CorpusSource
    output: Path
    detector: Detector
    recipe: DecoyRecipe = "fitted-decoys"
    epochs: int = 3
    equality: DecoyEquality | None = None
    release_noise: float | None = None
    target_epsilon: float | None = None
    delta: float = 1e-6
    spans: Path | None = None
    seed: int | None = None
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class DecoyPlan:
    """The copies of a corpus that was read once.

    Attributes:
        stage: The stage of harden that would read the copies.
        release: What is spent before they are drawn; None where they are drawn uniformly.
        ledger: Of the copies.
        guarantees: What it supports.
        key: Under which the ledger commits to the corpus; secret.
    """

    stage: Train
    records: int
    release: GaussianRelease | None
    ledger: Ledger
    guarantees: tuple[Guarantee, ...]
    key: bytes = field(repr=False)


def plan_copies(request: DecoyRequest) -> DecoyPlan:
    """Check everything that can be checked before a record is looked at, and account for the copies.

    The corpus is read once, and not kept.

    Raises:
        InputError: CorpusFacts, spans, a list or the pipeline cannot be used.
        UsageError: Options contradict each other, or δ is not below 1/N.
        BudgetError: ε cannot be reached.
    """
    _check(request)
    check_copies(request.output, force=request.force)
    key = corpus_key(None, request.output, request.seed)
    records = 0

    def texts() -> Iterator[str]:
        nonlocal records
        skipping = (lambda _: None) if request.corpus.skip_bad else raise_error
        for record in select_records(request.corpus.path, request.corpus, skipping):
            records += 1
            yield record.text

    committed = commitment(key, texts())
    flags = flags_of(request.detector, spans=request.spans is not None, review=False)
    relation = Relation(unit=request.corpus.unit, corpus=committed, shape="none", flags=flags)
    corpus = CorpusFacts(records=records, relation=relation)

    def plan_with(recipe: Recipe) -> Plan:
        # No checkpoint has a part in the copies, so there is none whose past is unknown.
        return make_plan(recipe, corpus, delta=request.delta, prior="public")

    recipe = _recipe(request)
    if request.recipe == "fitted-decoys" and request.release_noise is None:
        target = EPSILON if request.target_epsilon is None else request.target_epsilon
        recipe = solve_noise(recipe, target, plan_with)
    plan = plan_with(recipe)
    [stage] = plan.training
    releases = [event for event in stage.events if isinstance(event, GaussianRelease)]
    written = DecoyedText(stage=stage.stage.name, copies=request.epochs, relation=stage.relation)
    events = (*releases, written)
    ledger = plan.ledger.model_copy(update={"events": events, "insecure_seed": request.seed is not None})
    return DecoyPlan(
        stage=stage.stage,
        records=records,
        release=next(iter(releases), None),
        ledger=ledger,
        guarantees=guarantees(ledger),
        key=key,
    )


def _recipe(request: DecoyRequest) -> Recipe:
    [stage] = RECIPES[request.recipe]
    noise = stage.release_noise_multiplier if request.release_noise is None else request.release_noise
    return (replace(stage, epochs=request.epochs, release_noise_multiplier=noise, decoy_equality=request.equality),)


def _check(request: DecoyRequest) -> None:
    if request.recipe not in get_args(DecoyRecipe):
        raise UsageError(f"recipe {request.recipe} writes no decoys.", f"Choose {' or '.join(get_args(DecoyRecipe))}.")
    chosen = [
        name
        for name, value in (("--target-epsilon", request.target_epsilon), ("--release-noise", request.release_noise))
        if value is not None
    ]
    if request.recipe == "decoys" and chosen:
        raise UsageError(f"--recipe decoys releases nothing, so {chosen[0]} has no noise.", "Leave one of them out.")
    if len(chosen) == 2:
        raise UsageError("--target-epsilon chooses the noise that --release-noise sets.", "Leave one of them out.")
    if is_stream(request.corpus.path):
        raise UsageError("Standard input cannot be given decoys: it is read more than once.", "Give a file.")
    if real_path(request.corpus.path).is_relative_to(real_path(request.output)):
        raise UsageError("The corpus lies in the folder to write.", "Choose another folder with -o.")
    if request.spans is None and request.detector.tier.value not in STABLE_TIERS:
        raise UsageError(
            f"Decoys stand for entities; --tier {request.detector.tier.value} flags more.",
            "Use --tier high-entity or low-entity.",
        )
    check_crosscheck(request.detector.crosscheck, spans=request.spans is not None)
    if request.spans is None:
        check_detector(request.detector)
