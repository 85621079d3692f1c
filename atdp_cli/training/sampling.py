"""Poisson sampling, as the accountant assumes it."""

import numpy as np
import numpy.typing as npt

from atdp_cli.privacy.csprng import KeyStream


def poisson_sample(records: int, sampling_rate: float, stream: KeyStream) -> npt.NDArray[np.int64]:
    """Indices of the records in this step: each one independently with probability q; it may be empty.

    The amplification that the accountant grants needs this sample to stay secret.
    """
    return np.flatnonzero(stream.uniforms(records) < sampling_rate).astype(np.int64)
