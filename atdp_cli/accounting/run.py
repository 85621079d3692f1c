"""`atdp account` as a function: ε of ledgers, or of parameters or a recipe that nobody has run yet. Loads no torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from atdp_cli.accounting.equal_steps import Parameters, solve_hypothesis
from atdp_cli.accounting.request import AccountRequest, Unknown
from atdp_cli.accounting.results import (
    AccountSummary,
    HypotheticalStage,
    LedgerEpsilon,
    ScopeEntry,
)
from atdp_cli.corpus.spans import DEFAULT_TIER, PAPER_TIER
from atdp_cli.errors import BudgetError, UsageError
from atdp_cli.files.documents import copy_fields
from atdp_cli.hardening.recipes import hypothetical_plan
from atdp_cli.model.hashes import verified_ledger
from atdp_cli.privacy.accountant import Epsilons, epsilon_pld, epsilons
from atdp_cli.privacy.compose import compose_ledgers
from atdp_cli.privacy.guarantee import check_seen, guarantees
from atdp_cli.privacy.ledger import MAX_RECORDS, Ledger, private_events
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.privacy.wording import advice, guarantee_sentences
from atdp_cli.reporting.entries import guarantee_entries, person_figures
from atdp_cli.settings import require_at_least, require_at_most, require_delta
from atdp_cli.training.objectives import Weighted
from atdp_cli.training.plan import CorpusFacts, Plan
from atdp_cli.training.recipe import Recipe, TextVariant
from atdp_cli.training.recipe_file import load_recipe
from atdp_cli.training.solve import solve_noise
from atdp_cli.training.stage_options import apply_settings, parse_setting, stage_setting

DEFAULT_DELTA = 1e-6


def account(request: AccountRequest) -> AccountSummary:
    """Compute the ε that runs have spent, or would spend.

    With `adopt`, first the ledger of that model is written, as its user declares it.

    Raises:
        UsageError: Nothing is to be accounted for, or things that exclude each other.
        InputError: A ledger or a recipe cannot be read.
        BudgetError: ε is in the thousands or above `max_epsilon`, or what is to be solved for has no solution.
    """
    stages: Recipe | None = None
    if request.recipe is not None:
        loaded = load_recipe(request.recipe)
        stages, request = loaded.recipe, request.fill(loaded.run.given())
    subject = _subject(_adopted(request), stages)
    supported = guarantees(subject.ledger, models=max(1, len(subject.parts)))
    if subject.parameters is not None:
        # Parameters have neither a past nor a corpus, so nothing can be said of records.
        supported = supported[-1:]
    if request.max_epsilon is not None:
        check_limit(subject.ledger, supported, request.max_epsilon, accept_declared=request.accept_declared)
    return _summary(subject, supported)


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """The ledgers or the planned steps to account for.

    Attributes:
        ledger: All of it, as one ledger.
        parts: The path and the ledger of each of several.
        parameters: A run of equal steps, where that was asked about.
        plan: A recipe's, where that was asked about.
    """

    ledger: Ledger
    parts: tuple[tuple[Path, Ledger], ...] = ()
    parameters: Parameters | None = None
    plan: Plan | None = None


def _adopted(request: AccountRequest) -> AccountRequest:
    """Write the ledger of a model to adopt, and return the request about that model; unchanged if there is none."""
    from atdp_cli.accounting.adopt import adopt_model

    if request.adopt is None:
        if request.ledger:
            raise UsageError("--ledger goes with --adopt.", "Name a ledger to account for without --ledger.")
        return request
    if request.max_epsilon is not None:
        raise UsageError("--adopt writes what is declared, before any --max-epsilon.", "Adopt it, then account it.")
    if not request.ledger:
        raise UsageError("--adopt describes a model by ledgers.", "Add --ledger DECOYED, which atdp decoy wrote.")
    if request.ledgers or request.is_hypothetical:
        raise UsageError(
            "--adopt goes with --ledger and --checkpoint-history alone.", "Leave parameters and other ledgers out."
        )
    adopt_model(request.adopt, request)
    return request.replace(ledgers=(request.adopt,))


def _subject(request: AccountRequest, stages: Recipe | None) -> _Subject:
    """The ledgers, the recipe or the run of equal steps that the request names."""
    if (request.solve is None) != (request.target_epsilon is None):
        raise UsageError("--solve and --target-epsilon go together.", "Give both or neither.")
    if request.ledgers:
        if request.is_hypothetical:
            raise UsageError("A ledger and parameters exclude each other.", "Give one of them.")
        each = tuple(verified_ledger(path) for path in request.ledgers)
        parts = tuple(zip(request.ledgers, each, strict=True)) if len(each) > 1 else ()
        return _Subject(ledger=with_delta(compose_ledgers(each), request.delta), parts=parts)
    if stages is not None:
        plan = _plan(request, stages)
        return _Subject(ledger=plan.ledger, plan=plan)
    if any(value is not None for value in request.planned):
        raise UsageError("--records, --epochs, --batch-size and --set go with --recipe.", "Add --recipe.")
    return _of_parameters(request)


def _plan(request: AccountRequest, stages: Recipe) -> Plan:
    """Plan what a recipe would spend; with a target ε, solve for its noise."""
    if request.records is None:
        raise UsageError("A recipe spends by the number of records.", "Add --records.")
    if request.sampling_probability is not None or request.steps is not None:
        raise UsageError(
            "A recipe sets its own sampling probability and steps.", "Use --records, --batch-size and --epochs."
        )
    if request.solve not in (None, Unknown.NOISE):
        raise UsageError("For a recipe only the noise can be solved for.", "Use --solve noise.")
    if request.solve is not None and request.noise_multiplier is not None:
        raise UsageError("--solve noise chooses what --noise-multiplier sets.", "Leave one of them out.")
    require_at_least("records", request.records, 1)
    require_at_most("records", request.records, MAX_RECORDS)
    given = {
        "epochs": request.epochs,
        "batch-size": request.batch_size,
        "noise-multiplier": request.noise_multiplier,
    }
    settings = [stage_setting(stages, option, value) for option, value in given.items() if value is not None]
    recipe = apply_settings(stages, [*settings, *(parse_setting(stages, text) for text in request.set_)])
    corpus = CorpusFacts(records=request.records, relation=hypothetical("record", _tier(recipe)))
    delta = DEFAULT_DELTA if request.delta is None else request.delta
    plan_with = partial(hypothetical_plan, corpus=corpus, delta=delta, checkpoint_history=request.checkpoint_history)
    target = request.target_epsilon
    return plan_with(recipe if target is None else solve_noise(recipe, target, plan_with))


def _of_parameters(request: AccountRequest) -> _Subject:
    given: dict[str, float | None] = {
        "sampling-probability": request.sampling_probability,
        "noise-multiplier": request.noise_multiplier,
        "steps": request.steps,
    }
    sought = "noise-multiplier" if request.solve is Unknown.NOISE else request.solve
    if sought is not None and given[sought] is not None:
        raise UsageError(f"--solve {request.solve} chooses what --{sought} sets.", "Leave one of them out.")
    if any(value is None for name, value in given.items() if name != sought):
        raise UsageError(
            "There is nothing to account for.",
            "Give a model folder or ledger, --recipe and --records, or all of --sampling-probability, "
            "--noise-multiplier and --steps, but for the one that --solve finds.",
        )
    parameters = Parameters(
        sampling_probability=1.0 if request.sampling_probability is None else request.sampling_probability,
        noise_multiplier=1.0 if request.noise_multiplier is None else request.noise_multiplier,
        steps=1 if request.steps is None else request.steps,
    )
    delta = with_delta(parameters.ledger(DEFAULT_DELTA), request.delta).delta
    if request.solve is not None and request.target_epsilon is not None:
        parameters = solve_hypothesis(request.solve, parameters, request.target_epsilon, delta)
    return _Subject(ledger=parameters.ledger(delta), parameters=parameters)


def _tier(recipe: Recipe) -> str:
    """The tier that harden flags with by default: the paper's where a stage weighs sensitive tokens of raw text."""
    weighs = any(isinstance(stage.objective, Weighted) and stage.text is TextVariant.RAW for stage in recipe)
    decoys = any(stage.text is TextVariant.DECOY for stage in recipe)
    return (PAPER_TIER if weighs and not decoys else DEFAULT_TIER).value


def with_delta(ledger: Ledger, delta: float | None) -> Ledger:
    """The ledger with another δ.

    Raises:
        UsageError: δ is not below 1/N.
    """
    if delta is None:
        return ledger
    require_delta(delta)
    if delta >= 1 / ledger.records:
        raise UsageError(
            f"delta is {delta:g}, not below 1/N for {ledger.records:,} training records.", "Choose a smaller one."
        )
    return ledger.model_copy(update={"delta": delta})


def check_limit(ledger: Ledger, supported: Sequence[Guarantee], limit: float, *, accept_declared: bool) -> None:
    """Refuse a ledger whose strongest guarantee has more than this ε.

    Args:
        supported: Its guarantees, the strongest first; of parameters alone, the increment.
        accept_declared: Take one that somebody declared.

    Raises:
        BudgetError: It has more, or none is finite, or it is declared.
    """
    if not accept_declared:
        check_seen(ledger)
    counted = supported if len(supported) == 1 else [each for each in supported if each.scope != "increment"]
    finite = [each.epsilon or 0.0 for each in counted if math.isfinite(each.epsilon or 0.0)]
    if not finite:
        raise BudgetError("No guarantee has a finite ε, so no --max-epsilon holds.", "See what is said of the ledger.")
    if finite[0] > limit:
        raise BudgetError(
            f"The strongest guarantee has ε = {finite[0]:.3g}, above --max-epsilon {limit:g}.",
            "Spend less, or allow more.",
        )


def _summary(subject: _Subject, supported: Sequence[Guarantee]) -> AccountSummary:
    ledger = subject.ledger
    scopes = tuple(
        _scope_entry(ledger, guarantee)
        for guarantee in supported
        if guarantee.epsilon is not None and math.isfinite(guarantee.epsilon)
    )
    # The strongest scope comes first, so its figures are those to quote.
    quoted = scopes[0] if scopes else None
    sentences = () if subject.parameters is not None else guarantee_sentences(ledger, supported)
    return AccountSummary(
        scope=None if quoted is None else quoted.scope,
        adjacency=None if quoted is None else quoted.adjacency,
        epsilon=None if quoted is None else quoted.epsilon,
        scopes=scopes,
        unit=ledger.unit,
        delta=ledger.delta,
        grid=ledger.grid,
        insecure_seed=ledger.insecure_seed,
        guarantees=guarantee_entries(supported),
        sentences=sentences,
        advice=None if subject.parameters is not None else advice(ledger),
        ledgers=tuple(_alone(path, part) for path, part in subject.parts) or None,
        parameters=subject.parameters,
        stages=None if subject.plan is None else _stages(subject.plan),
    )


def _scope_entry(ledger: Ledger, guarantee: Guarantee) -> ScopeEntry:
    zero = Epsilons(pld=0.0, rdp=0.0, paper=0.0, without_amplification=0.0)
    private = private_events(ledger.events)
    return copy_fields(
        ScopeEntry,
        guarantee,
        epsilon=zero
        if guarantee.exact
        else epsilons(private, ledger.delta, grid=ledger.grid, adjacency=guarantee.adjacency),
        person=person_figures(ledger, guarantee),
    )


def _alone(path: Path, ledger: Ledger) -> LedgerEpsilon:
    """ε of a ledger's noisy stages; None if it has none, which is no guarantee."""
    events = private_events(ledger.events)
    epsilon = epsilon_pld(events, ledger.delta, grid=ledger.grid) if events else None
    return LedgerEpsilon(path=str(path), delta=ledger.delta, epsilon=epsilon)


def _stages(plan: Plan) -> tuple[HypotheticalStage, ...]:
    return tuple(copy_fields(HypotheticalStage, stage, stage.stage) for stage in plan.training)
