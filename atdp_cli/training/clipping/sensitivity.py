"""By how much the computed sum over records moves when one record is removed.

In real numbers it is C. Computed sums move further, as Casacuberta et al. 2022 ("Widespread Underestimation of
Sensitivity in Differentially Private Libraries and How to Fix It") show: rounding depends on all that is added.
"""

from atdp_cli.training.clipping.engine import MAX_CANCELLATION, MAX_TERMS

FP64_ROUNDING = 2.0**-53

SAME_BITS = 2.0**-40
"""Relative difference of two fp64 sums of the same fp32 numbers in another order, with much room."""


def sensitivity(clip_norm: float, records: int, batch_effect: float) -> float:
    """C·(1 + β(n)): the largest distance between the sums with and without any one of n records.

    The sum over n records is Σ_r t_r + e. t_r is what record r adds, ‖t_r‖ ≤ C, and e is the error of adding up.
    Removing record k changes three things:

    - t_k goes: C. `ROUNDING_MARGIN` covers the rounding of the norm to which it was clipped.
    - t_r of the others changes, since they are computed in batches of other shapes: each by at most ηC, and by
      2⁻⁴⁰C where sums in fp64 have another order. `batch_effect` says what η is.
    - e changes, by at most ‖e‖ with k and without. k additions in any order err by at most k·2⁻⁵³ times the sum of
      what is added, in every coordinate and so in the L2 norm. Those terms are the records' gradients where each is
      formed; where none is, they are the outer products and rows of their positions, whose norms add up to at most
      κ‖t_r‖. A batch has at most 2¹⁶ of them, and there are at most n batches and n processes.

    So β(n) = n·(η + 2⁻⁴⁰) + 2·(2¹⁶ + 2n)·2⁻⁵³·κ·n: with η = 0 it is 2.0e-6 for n = 400, 5.3e-6 for n = 1,024 and
    1.2e-4 for n = 16,384.

    Args:
        clip_norm: C > 0.
        records: n, a public number, of all processes together.
        batch_effect: η ≥ 0.
    """
    added_up = 2 * (MAX_TERMS + 2 * records) * FP64_ROUNDING * MAX_CANCELLATION * records
    return clip_norm * (1 + records * (batch_effect + SAME_BITS) + added_up)
