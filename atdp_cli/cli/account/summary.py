"""What `atdp account --json` prints, from the figures."""

from collections.abc import Sequence
from dataclasses import asdict

from atdp_cli.cli.account.subject import Subject
from atdp_cli.jobs.account import Figures, ScopeFigures
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.ledger import Ledger, private_events
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.report.guarantee_entry import guarantee_entries
from atdp_cli.report.numbers import json_number, json_numbers
from atdp_cli.report.summary.account import (
    AccountSummary,
    CurvesEntry,
    EpsilonsEntry,
    GroupFigure,
    HypotheticalStage,
    LedgerEpsilon,
    OpacusEntry,
    ParametersEntry,
    ScopeEntry,
)
from atdp_cli.training.plan import Plan


def account_summary(
    subject: Subject, supported: Sequence[Guarantee], result: Figures, group: int | None
) -> AccountSummary:
    """What `--json` prints.

    Args:
        group: So many records together were asked about; None for none.
    """
    ledger = subject.ledger
    scopes = tuple(_scope_entry(scope, group) for scope in result.scopes)
    # The strongest scope comes first, so its figures are those to quote.
    quoted = scopes[0] if scopes else None
    curves = None
    if result.over_delta:
        curves = CurvesEntry(
            epsilon_over_delta=tuple((delta, json_number(epsilon)) for delta, epsilon in result.over_delta),
            epsilon_over_steps=tuple((steps, json_number(epsilon)) for steps, epsilon in result.over_steps),
        )
    cross_check = result.cross_check
    return AccountSummary(
        scope=None if quoted is None else quoted.scope,
        adjacency=None if quoted is None else quoted.adjacency,
        epsilon=None if quoted is None else quoted.epsilon,
        scopes=scopes,
        delta=ledger.delta,
        grid=ledger.grid,
        insecure_seed=ledger.insecure_seed,
        guarantees=guarantee_entries(supported),
        group=None if group is None else (quoted and quoted.group) or GroupFigure(records=group, epsilon=None),
        replace_one=json_number(result.replace_one),
        floor=json_number(result.floor),
        cross_check=None
        if cross_check is None
        else OpacusEntry(opacus_rdp=json_number(cross_check.rdp), opacus_prv=json_number(cross_check.prv)),
        curves=curves,
        ledgers=tuple(
            LedgerEpsilon(path=str(path), epsilon=json_number(epsilon_alone(part))) for path, part in subject.parts
        )
        or None,
        parameters=None if subject.parameters is None else ParametersEntry(**asdict(subject.parameters)),
        stages=None if subject.plan is None else _stages(subject.plan),
    )


def _scope_entry(figures: ScopeFigures, group: int | None) -> ScopeEntry:
    """The figures of a scope."""
    return ScopeEntry(
        scope=figures.scope,
        adjacency=figures.adjacency,
        delta=figures.delta,
        epsilon=EpsilonsEntry.model_validate(json_numbers(asdict(figures.epsilons))),
        group=None if group is None else GroupFigure(records=group, epsilon=json_number(figures.group)),
    )


def _stages(plan: Plan) -> tuple[HypotheticalStage, ...]:
    return tuple(
        HypotheticalStage(
            name=stage.stage.name,
            epochs=stage.stage.epochs,
            steps=stage.steps,
            batch=stage.batch,
            sampling_rate=stage.sampling_rate,
            noise_multipliers=stage.noise_multipliers,
            release_noise_multiplier=stage.stage.release_noise_multiplier,
        )
        for stage in plan.training
    )


def epsilon_alone(ledger: Ledger) -> float | None:
    """What a ledger's stages with noise spend; None where there are none, which is no promise at all."""
    events = private_events(ledger.events)
    return epsilon_pld(events, ledger.delta, grid=ledger.grid) if events else None
