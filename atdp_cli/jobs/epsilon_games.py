"""The bounds on ε of one model: its ledger's claims, the games that can test them, and what the canaries prove."""

from dataclasses import replace
from pathlib import Path

from atdp_cli.audit.attacks.membership import canary_records
from atdp_cli.audit.claims import NO_LEDGER, Alike, Claim, claim_of, group_epsilons, ledger_of
from atdp_cli.audit.epsilon import GamePlan, mirror, plan_games
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.levels import split_alpha
from atdp_cli.audit.ranking import Pool
from atdp_cli.audit.request import AuditRequest, CanaryTargets
from atdp_cli.audit_result import RANKS
from atdp_cli.jobs.detector_invariance import alike_for
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.tokens import encode_record
from atdp_cli.privacy.adjacency import Adjacency


def games_for(folder: Path, canaries: CanaryTargets, pool: Pool, request: AuditRequest) -> GamePlan:
    """What is played on a model, decided by what was planted and claimed, before the model is looked at.

    Raises:
        UsageError: There are fewer canaries, or candidates, than the games were set for.
    """
    scores = 1 if request.reference is None else 2
    if canaries.manifest is None or not canaries.calibrated:
        return GamePlan(games=(), levels=split_alpha(request.limits.alpha, scores=scores, bounds=0, canaries=0))
    ledger = ledger_of(folder)
    template, targets = canaries.template, canaries.targets
    repeats = max((target.repeats for target in targets), default=1)

    def alike() -> Alike:
        return Alike(unlike=NO_LEDGER) if ledger is None else alike_for(ledger, template, targets)

    def claim(adjacency: Adjacency) -> Claim:
        return claim_of(ledger, adjacency, repeats=repeats, alike=alike)

    plan = plan_games(
        targets,
        pool=template.pool,
        coins=canaries.manifest.coins,
        ranked=not pool.sampled or pool.product is not None,
        games=request.games,
        limits=request.limits,
        scores=scores,
        attacks=len(request.attack_gates),
        by_ranks=RANKS in request.gates,
        claim=claim,
    )
    return replace(plan, groups=group_epsilons(ledger, (target.repeats for target in targets if target.planted)))


def pair_scores(checkpoint: Checkpoint, canaries: CanaryTargets, *, name: str) -> tuple[Scores, Scores] | None:
    """log p of each canary's record and of its mirror image's, shape [canaries] each, both by the same forward pass.

    None where a record has no token to predict.
    """
    template, own = canaries.scored, canaries.targets
    reader = canaries.reader(checkpoint.tokenizer)
    if any(len(encode_record(reader, template.record(template.secret(target.index)))) < 2 for target in own):
        return None
    mirrored = [replace(target, index=mirror(target.index, template.pool)) for target in own]
    scored = canary_records(checkpoint, canaries, (*own, *mirrored), name=name).log_p
    return scored[: len(own)], scored[len(own) :]


def relative_pairs(
    pairs: tuple[Scores, Scores] | None, reference: tuple[Scores, Scores] | None
) -> tuple[Scores, Scores] | None:
    """Each pair's log p less that by the reference, where there is one."""
    if pairs is None or reference is None:
        return pairs
    return pairs[0] - reference[0], pairs[1] - reference[1]


def has_pairs(plan: GamePlan) -> bool:
    """Whether any game needs the scores of pairs."""
    return any(game.method == "pair" for game in plan.games)
