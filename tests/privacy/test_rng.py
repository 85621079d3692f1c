"""The key stream: right distribution, its own key each time, untouched by other generators' seeds."""

import random

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from atdp_cli.privacy.rng import KeyStream, insecure_stream, secure_stream


def test_uniforms_are_the_top_53_bits_of_aes_256_in_counter_mode() -> None:
    key = bytes(range(32))
    blocks = (
        Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - the oracle of counter mode, block by block
        .encryptor()
        .update(b"".join(counter.to_bytes(16, "big") for counter in range(4)))
    )
    words = np.frombuffer(blocks, dtype="<u8")
    expected = [(int(word) // 2**11 + 0.5) / 2**53 for word in words]
    assert KeyStream(key).uniforms(8).tolist() == expected


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_as_many_as_asked_for(count: int) -> None:
    assert secure_stream().uniforms(count).shape == (count,)


def test_they_are_uniform_and_never_zero() -> None:
    uniforms = insecure_stream(3, "test").uniforms(200_000)
    assert stats.kstest(uniforms, "uniform").pvalue > 1e-3
    assert uniforms.min() > 0


def test_no_seed_reproduces_the_secure_stream() -> None:
    draws = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        draws.append(secure_stream().uniforms(4).tolist())
    assert draws[0] != draws[1]


def test_purposes_have_their_own_streams() -> None:
    assert insecure_stream(1, "noise").uniforms(4).tolist() != insecure_stream(1, "sample").uniforms(4).tolist()
    assert insecure_stream(1, "noise").uniforms(4).tolist() == insecure_stream(1, "noise").uniforms(4).tolist()
