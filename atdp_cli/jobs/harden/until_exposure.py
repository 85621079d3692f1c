"""When a DP stage can stop: half of the planted canaries is watched, the other half is left for the audit."""

from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.manifest import Manifest, write_manifest
from atdp_cli.audit.ranking import Pool, all_scores, pool_of, rank_targets
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.jobs.harden.model import LoadedModel
from atdp_cli.jobs.harden.request import Planned
from atdp_cli.training.distributed.collectives import broadcast_bytes
from atdp_cli.training.loop import StopCriterion

UNSEEN_FILE = "canaries_unseen.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class Watch:
    """The canaries whose exposure ends a stage.

    Attributes:
        bar: Bits of exposure that each of them has to be below, by log p and by its ratio to the reference.
        unseen: The manifest of all canaries that are not watched.
        targets: The planted canaries among the watched.
        base: log p of every candidate under the reference.
    """

    bar: float
    unseen: Manifest
    targets: tuple[Target, ...]
    pool: Pool
    base: Scores


def halves(manifest: Manifest) -> tuple[Manifest, Manifest]:
    """Every second canary in the order in which they were drawn, and all others.

    The parts are alike, and no coin had a say in which is which: those of the unseen half stay fair.

    Raises:
        UsageError: One of the halves has no planted canary.
    """
    seen, unseen = (manifest.model_copy(update={"canaries": manifest.canaries[start::2]}) for start in (0, 1))
    if not all(any(canary.planted for canary in half.canaries) for half in (seen, unseen)):
        raise UsageError(
            "--until-exposure watches every second canary and leaves the others for the audit; one of the halves has "
            "none that is planted.",
            "Plant more.",
        )
    return seen, unseen


def watch_canaries(
    manifest: Manifest, bar: float, tokenizer: PreTrainedTokenizerFast, reference: PreTrainedModel, notify: Notify
) -> Watch:
    """The watched half of the manifest's canaries, scored by the reference.

    Raises:
        UsageError: Too few canaries.
        RunError: The reference cannot be run.
    """
    seen, unseen = halves(manifest)
    targets = tuple(target for target in seen.targets() if target.planted)
    pool = pool_of(seen.reader(tokenizer), seen.scored(), targets, notify)
    return Watch(
        bar=bar, unseen=unseen, targets=targets, pool=pool, base=all_scores(reference, pool, "the reference", notify)
    )


def stop_criterion(planned: Planned, loaded: LoadedModel, folder: Path, notify: Notify) -> StopCriterion | None:
    """The criterion of --until-exposure; the manifest of the canaries that it does not watch is written."""
    bar, ranks = planned.request.until_exposure, planned.request.ranks
    if bar is None or planned.manifest is None or loaded.reference is None:
        return None
    tokenizer, model = loaded.checkpoint.tokenizer, loaded.checkpoint.model
    watch = watch_canaries(planned.manifest, bar, tokenizer, loaded.reference, notify)
    write_unseen(watch, folder)
    # All processes follow the first, whatever their hardware computes.
    return lambda: broadcast_bytes(ranks, bytes([below_exposure(model, watch, notify)])) == b"\x01"


def below_exposure(model: PreTrainedModel, watch: Watch, notify: Notify) -> bool:
    """Whether every watched canary is below the bar by both scores; the model is in eval mode.

    Raises:
        RunError: The model cannot be run.
    """
    scores = all_scores(model, watch.pool, "the model", notify)
    return all(
        rank.exposure < watch.bar
        for score in (scores, scores - watch.base)
        for rank in rank_targets(score, watch.pool, watch.targets)
    )


def write_unseen(watch: Watch, folder: Path) -> None:
    """Write the manifest of the canaries with which the finished model is to be audited."""
    write_manifest(folder / UNSEEN_FILE, watch.unseen)
