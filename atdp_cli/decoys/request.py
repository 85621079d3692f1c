"""The request of `decoy`, and its plan with all that the copies will spend."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import PositiveFloat, PositiveInt

from atdp_cli.corpus.record import select_records
from atdp_cli.decoys.folder import check_copies
from atdp_cli.detection.crosscheck.request import check_crosscheck
from atdp_cli.detection.detector import Detector, check_detector, detector_files, flags_of, make_detector
from atdp_cli.detection.options import CorpusRequest, SpanFileOptions
from atdp_cli.detection.run import CorpusSource, corpus_source
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify, ignore
from atdp_cli.files.atomic_write import check_apart
from atdp_cli.files.corpus_file import is_stream, raise_error
from atdp_cli.files.private import folders_of
from atdp_cli.hardening.corpus_key import corpus_key
from atdp_cli.hardening.request import EPSILON
from atdp_cli.privacy.guarantee import check_own_flags, guarantees
from atdp_cli.privacy.ledger import DecoyedText, GaussianRelease, Ledger
from atdp_cli.privacy.relation import STABLE_TIERS, Relation, commitment
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.replacement.equality import DecoyEquality
from atdp_cli.settings import OUTPUT, Option, named_paths
from atdp_cli.training.options import PRIVACY, DeltaOptions, SeedOptions
from atdp_cli.training.plan import CorpusFacts, Plan, make_plan
from atdp_cli.training.recipe import RECIPES, Recipe, Train
from atdp_cli.training.solve import solve_noise

if TYPE_CHECKING:
    from atdp_cli.decoys.run import DecoySummary


DecoyRecipe = Literal["fitted-decoys", "decoys"]

COPIES = "Copies"


class DecoyRequest(DeltaOptions, CorpusRequest, SpanFileOptions, SeedOptions):
    """What `decoy` is asked for."""

    output: Annotated[Path, Option(OUTPUT, flags=("--output", "-o"), writes=True)]
    """Folder to write: epoch-1 and so on, each the whole corpus in its format, and privacy_ledger.json. The key by
    which the ledger commits to the corpus is in OUT.private/."""

    epochs: Annotated[PositiveInt, Option(COPIES)] = 3
    """How many copies to write, each with decoys of its own: one for each epoch of training."""

    recipe: Annotated[DecoyRecipe, Option(COPIES, metavar="fitted-decoys|decoys")] = "fitted-decoys"
    """The decoys: those of harden --recipe fitted-decoys, drawn as often as one noisy release says that the corpus has
    them, or those of --recipe decoys, drawn uniformly, which spend nothing."""

    decoy_equality: Annotated[DecoyEquality, Option(flag=False)] = "record"
    """record: values that are equal in a record stay equal in its decoys. none: each is drawn by itself."""

    target_epsilon: Annotated[PositiveFloat | None, Option(PRIVACY)] = None
    """Choose the noise of the release so that the guarantee for flagged characters has at most this ε. Default: 3."""


@dataclass(frozen=True, kw_only=True)
class DecoyPlan:
    """A checked request: the copies to write, and what they will spend.

    Attributes:
        source: The corpus, and how it is read.
        detector: What is flagged.
        stage: The stage of harden that would read the copies.
        release: What is spent before they are drawn; None where they are drawn uniformly.
        ledger: Of the copies.
        guarantees: What it supports.
        key: Under which the ledger commits to the corpus; secret.
    """

    source: CorpusSource
    detector: Detector
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
    source = corpus_source(request, request.corpus)
    detector = make_detector(request, request.corpus, run_on=request.run_on)
    _check(request, detector)
    check_copies(request.output, force=request.force)
    key = corpus_key(None, request.output, request.insecure_seed)
    records = 0

    def texts() -> Iterator[str]:
        nonlocal records
        skipping = (lambda _: None) if source.skip_bad else raise_error
        for record in select_records(source.path, source, skipping):
            records += 1
            yield record.text

    committed = commitment(key, texts())
    flags = flags_of(detector, spans=request.spans is not None, review=False)
    relation = Relation(unit=source.unit, corpus=committed, shape="none", flags=flags)
    corpus = CorpusFacts(records=records, relation=relation)

    def plan_with(recipe: Recipe) -> Plan:
        # No checkpoint has a part in the copies, so there is none whose past is unknown.
        return make_plan(recipe, corpus, delta=request.delta, checkpoint_history="public")

    recipe = _recipe(request)
    if request.recipe == "fitted-decoys":
        target = EPSILON if request.target_epsilon is None else request.target_epsilon
        recipe = solve_noise(recipe, target, plan_with)
    plan = plan_with(recipe)
    [stage] = plan.training
    releases = [event for event in stage.events if isinstance(event, GaussianRelease)]
    written = DecoyedText(stage=stage.stage.name, copies=request.epochs, relation=stage.relation)
    events = (*releases, written)
    ledger = plan.ledger.model_copy(update={"events": events, "insecure_seed": request.insecure_seed is not None})
    if request.target_epsilon is not None:
        check_own_flags(ledger, "--target-epsilon")
    return DecoyPlan(
        source=source,
        detector=detector,
        stage=stage.stage,
        records=records,
        release=next(iter(releases), None),
        ledger=ledger,
        guarantees=guarantees(ledger),
        key=key,
    )


def decoy(request: DecoyRequest, notify: Notify = ignore) -> "DecoySummary":
    """Write copies of a corpus with decoys, and the ledger of what they tell.

    Raises:
        UsageError: Options contradict each other, or δ is not below 1/N.
        BudgetError: ε cannot be reached.
        InputError: The corpus, the spans, a list or the pipeline cannot be used, or a span has no decoy.
        RunError: The corpus changed while it was read, or the disk is full.
    """
    plan = plan_copies(request)
    from atdp_cli.decoys.run import write_copies

    return write_copies(request, plan, notify)


def _recipe(request: DecoyRequest) -> Recipe:
    [stage] = RECIPES[request.recipe]
    return (replace(stage, epochs=request.epochs, decoy_equality=request.decoy_equality),)


def _check(request: DecoyRequest, detector: Detector) -> None:
    if request.recipe == "decoys" and request.target_epsilon is not None:
        raise UsageError("--recipe decoys releases nothing, so --target-epsilon has no noise.", "Leave one out.")
    if is_stream(request.corpus):
        raise UsageError("Standard input cannot be given decoys: it is read more than once.", "Give a file.")
    read, _ = named_paths(request)
    check_apart((*read, *detector_files(detector)), folders_of(request.output))
    if request.spans is None and detector.tier.value not in STABLE_TIERS:
        raise UsageError(
            f"Decoys stand for entities; --tier {detector.tier.value} flags more.",
            "Use --tier high-entity or low-entity.",
        )
    check_crosscheck(detector.crosscheck, spans=request.spans is not None)
    if request.spans is None:
        check_detector(detector)
