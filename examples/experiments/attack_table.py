"""What attacks bring back from each system, with 95 % intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from atdp_cli.audit.exposure import bootstrap
from examples.experiments.experiment import MANY_STEPS
from examples.experiments.shares import perplexity_share, with_interval
from examples.experiments.table import Measured

ATTACKS = {
    "audited": ("exposures", "ratios"),
    "relearnt": ("resurfaced", "resurfaced_ratios"),
    f"relearnt_{MANY_STEPS}": ("relearnt", "relearnt_ratios"),
    "int8": ("rounded", "rounded_ratios"),
}
"""Both scores of the canaries, as `Measured` has them."""


def attack_row(name: str, runs: Sequence[Measured], plain: Sequence[Measured]) -> dict[str, Any]:
    """A system under every attack.

    Args:
        runs: One a repetition.
        plain: Those of `no-dp`, in the same order.

    Returns:
        For each of `ATTACKS` the mean of both scores in bits, with 95 % intervals by a bootstrap over repetitions and
        canaries; the canaries that decoding gives; and perplexities over those of `no-dp`.
    """
    return {
        "recipe": name,
        "seeds": len(runs),
        "canaries": sum(len(run.exposures) for run in runs),
        "failed": sum(run.verdict == "FAIL" for run in runs),
        **{attack: [_mean([getattr(run, score) for run in runs]) for score in ATTACKS[attack]] for attack in ATTACKS},
        "greedy": sum(run.greedy or 0 for run in runs),
        "discoverable": sum(run.discoverable or 0 for run in runs),
        "all": perplexity_share(runs, plain, "all"),
        "unflagged": perplexity_share(runs, plain, "other"),
    }


def _mean(by_seed: Sequence[Sequence[float]]) -> dict[str, float]:
    low, high = bootstrap([np.array(bits) for bits in by_seed])
    mean = float(np.concatenate([np.array(bits) for bits in by_seed]).mean())
    return {"mean": round(mean, 3), "low": round(low, 3), "high": round(high, 3)}


def attack_table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "## Under every attack",
        "",
        f"| system | audited | after 50 steps | after {MANY_STEPS} steps | in int8 | greedy, discoverable | "
        "perplexity, all | unflagged | audits failed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            row["recipe"],
            *(" / ".join(with_interval(score, 1) for score in row[attack]) for attack in ATTACKS),
            f"{row['greedy']}, {row['discoverable']} of {row['canaries']}",
            with_interval(row["all"], 3),
            with_interval(row["unflagged"], 3),
            f"{row['failed']} of {row['seeds']}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    foot = (
        "Mean exposure in bits by log p and by its ratio to the base, with 95 % intervals: as audited, after "
        "fine-tuning on held-out text, and with weights rounded to int8. Perplexity of held-out records is over that "
        "of `no-dp` in the same seed."
    )
    return "\n".join([*lines, "", foot]) + "\n"
