"""When a DP stage has done enough: a part of the planted canaries is watched, the rest is left for the audit."""

from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.manifest import Manifest, read_manifest, write_manifest
from atdp_cli.audit.ranking import Pool, all_scores, pool_of, rank_targets
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify

UNSEEN_FILE = "canaries_unseen.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class Watch:
    """Canaries that say when a model is clean enough.

    Attributes:
        bar: Bits of exposure that each planted one has to be below, by log p and by its ratio to the reference.
        unseen: The manifest of all that are not watched.
        targets: The planted ones of those that are.
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
    if not all(any(one.planted for one in half.canaries) for half in (seen, unseen)):
        raise UsageError(
            "--until-exposure watches every second canary and leaves the others for the audit; one of the halves has "
            "none that is planted.",
            "Plant more.",
        )
    return seen, unseen


def watch_canaries(
    manifest: Path, bar: float, tokenizer: PreTrainedTokenizerFast, reference: PreTrainedModel, notify: Notify
) -> Watch:
    """What `below_exposure` needs, the reference's scores among it.

    Raises:
        UsageError: Too few canaries.
        RunError: The reference cannot be run.
    """
    seen, unseen = halves(read_manifest(manifest))
    targets = tuple(target for target in seen.targets() if target.planted)
    pool = pool_of(tokenizer, seen.slots(), targets, notify)
    return Watch(
        bar=bar, unseen=unseen, targets=targets, pool=pool, base=all_scores(reference, pool, "the reference", notify)
    )


def below_exposure(model: PreTrainedModel, watching: Watch, notify: Notify) -> bool:
    """Whether every watched canary is below the bar by both scores; the model is in eval mode.

    Raises:
        RunError: The model cannot be run.
    """
    scores = all_scores(model, watching.pool, "the model", notify)
    return all(_below(one, watching) for one in (scores, scores - watching.base))


def _below(scores: Scores, watching: Watch) -> bool:
    return all(one.exposure < watching.bar for one in rank_targets(scores, watching.pool, watching.targets))


def write_unseen(watching: Watch, folder: Path) -> None:
    """Write the manifest of the canaries with which the finished model is to be audited."""
    write_manifest(folder / UNSEEN_FILE, watching.unseen)
