"""From the options of `atdp audit-canary` to the request that its job takes."""

from typing import TYPE_CHECKING

from atdp_cli.cli.audit_canary.options import (
    AttackOptions,
    BoundOptions,
    CorpusNumberOptions,
    LimitOptions,
    ReportOptions,
    TargetOptions,
)
from atdp_cli.training.options import DeviceOptions

if TYPE_CHECKING:
    from atdp_cli.audit.request import AuditRequest, CorpusNumbers


def make_audit_request(
    limits: LimitOptions,
    bounds: BoundOptions,
    trying: AttackOptions,
    own: CorpusNumberOptions,
    reports: ReportOptions,
    targets: TargetOptions,
    computing: DeviceOptions,
) -> "AuditRequest":
    """The options as the job takes them.

    Raises:
        UsageError: Options contradict each other or lie out of range.
        InputError: The corpus of --data or its spans cannot be read.
    """
    from atdp_cli.audit.epsilon import Games
    from atdp_cli.audit.request import Attack, Attacks, AuditRequest, parse_attacks, parse_gates
    from atdp_cli.audit.verdict import Limits

    gates = None if limits.fail_on is None else parse_gates(limits.fail_on)
    return AuditRequest(
        reference=targets.reference,
        limits=Limits(
            alpha=limits.alpha,
            max_exposure=limits.max_exposure,
            max_epsilon_lower_bound=limits.max_epsilon_lower_bound,
        ),
        games=Games(guesses=bounds.guesses, top=bounds.top),
        attacks=Attacks(
            chosen=parse_attacks(trying.attacks) | {attack for attack in Attack if attack in (gates or ())},
            samples=trying.samples,
            other_text=trying.other_text,
            steps=trying.resurfacing_steps,
        ),
        full=trying.full,
        show_secrets=reports.show_secrets,
        numbers=_numbers(own),
        fail_on=gates,
        exact=limits.exact,
        device=computing.device,
    )


def _numbers(own: CorpusNumberOptions) -> "CorpusNumbers | None":
    """The corpus's own numbers, found once for all models."""
    from atdp_cli.audit.number_search import find_numbers
    from atdp_cli.audit.request import CorpusNumbers

    if own.secrets is None or own.data is None:
        return None
    located = find_numbers(
        own.data,
        own.secrets,
        unit=own.unit,
        text_field=own.text_field,
        id_field=own.id_field,
        turns=own.turns,
        most=own.most_secrets,
    )
    return CorpusNumbers(located=located, sample=own.alternatives)
