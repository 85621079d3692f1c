"""From the options of `atdp audit-canary` to the request that its job takes."""

from typing import TYPE_CHECKING

from atdp_cli.cli.audit_canary.options import (
    AttackOptions,
    BoundOptions,
    LimitOptions,
    ReportOptions,
    TargetOptions,
)
from atdp_cli.training.options import DeviceOptions

if TYPE_CHECKING:
    from atdp_cli.audit.request import AuditRequest


def make_audit_request(
    limits: LimitOptions,
    bounds: BoundOptions,
    trying: AttackOptions,
    reports: ReportOptions,
    targets: TargetOptions,
    computing: DeviceOptions,
) -> "AuditRequest":
    """The options as the job takes them.

    Raises:
        UsageError: Options contradict each other or lie out of range.
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
        fail_on=gates,
        exact=limits.exact,
        device=computing.device,
    )
