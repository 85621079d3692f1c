"""A sentence that says which mean exposure an audit can find."""

from math import ceil

from atdp_cli.audit.results import CONFIDENCE, MIN_POWER


def resolution(detectable: float | None, limit: float | None, limit_ratio: float | None) -> str:
    """The memory that a passed audit leaves possible, in sentences; bits as in `Combined`, rounded up to tenths."""
    sentences = []
    if detectable is not None:
        sentences.append(
            f"The tests find a mean exposure of {_tenths(detectable)} bits with probability {MIN_POWER:g}, and a "
            "smaller one less often."
        )
    if limit is not None:
        by_ratio = "" if limit_ratio is None else f" by log p and {_tenths(limit_ratio)} by the ratio"
        sentences.append(
            f"With {CONFIDENCE:.0%} confidence, secrets like these have a mean exposure of at most {_tenths(limit)} "
            f"bits{by_ratio}, if one is remembered independently of the others."
        )
    return " ".join(sentences)


def _tenths(bits: float) -> str:
    return f"{ceil(bits * 10 - 1e-9) / 10:.1f}"
