"""ChaCha20's key stream in torch: RFC 8439's vectors, another implementation, and the GPU's kernel."""

import struct

import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.privacy.rng import insecure_stream, secure_stream
from atdp_cli.training.chacha import blocks_in_torch, draws, uniforms

CPU = torch.device("cpu")

VECTORS = {
    # RFC 8439: section 2.3.2, and appendix A.1's vectors 1, 2, 4 and 5.
    "2.3.2": (bytes(range(32)), 1, "000000090000004a00000000", "10f1e7e4d13b5915500fdd1fa32071c4"),
    "A.1 1": (bytes(32), 0, "000000000000000000000000", "76b8e0ada0f13d90405d6ae55386bd28"),
    "A.1 2": (bytes(32), 1, "000000000000000000000000", "9f07e7be5551387a98ba977c732d080d"),
    "A.1 4": (b"\0\xff" + bytes(30), 2, "000000000000000000000000", "72d54dfbf12ec44b362692df94137f32"),
    "A.1 5": (bytes(32), 0, "000000000000000000000002", "c2c64d378cd536374ae204b9ef933fcd"),
}


def starting(counter: int, nonce: str) -> tuple[int, int]:
    """The RFC's counter of 32 bits and nonce of 96 as our counter and nonce, of 64 bits each."""
    first, second, third = struct.unpack("<3I", bytes.fromhex(nonce))
    return counter | first << 32, second | third << 32


@pytest.mark.parametrize("name", VECTORS)
def test_the_vectors_of_the_standard(name: str) -> None:
    key, counter, nonce, expected = VECTORS[name]
    block, words = starting(counter, nonce)
    made = blocks_in_torch(key, block, 1, CPU, words)
    assert made.numpy().tobytes()[:16].hex() == expected


@settings(max_examples=30)
@given(key=st.binary(min_size=32, max_size=32), first=st.integers(0, 2**34), count=st.integers(0, 40))
def test_draws_are_those_of_another_implementation(key: bytes, first: int, count: int) -> None:
    block, before = divmod(first, 8)
    start = struct.pack("<Q", block) + bytes(8)
    stream = Cipher(algorithms.ChaCha20(key, start), mode=None).encryptor().update(bytes(8 * (before + count)))
    assert draws(key, first, count, CPU).numpy().tobytes() == stream[8 * before :]


def test_the_counter_goes_on_beyond_32_bits() -> None:
    key, last = bytes(range(32)), 2**32 - 1
    both = blocks_in_torch(key, last, 2, CPU)
    assert not torch.equal(both[1], blocks_in_torch(key, 0, 1, CPU)[0])
    block, words = starting(0, "010000000000000000000000")
    assert torch.equal(both[1], blocks_in_torch(key, block, 1, CPU, words)[0])


def test_a_stream_stays_where_it_was_read_to() -> None:
    device = torch.device("meta")  # any that is no CPU; it computes nothing
    stream = insecure_stream(1, "test")
    assert uniforms(stream, 5, device).shape == (5,)
    assert stream.position == 5
    assert secure_stream().chacha_key != secure_stream().chacha_key


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
@pytest.mark.parametrize("first", [0, 1, 2**32 - 3, 2**60 - 1])
def test_the_kernel_makes_the_same_blocks(first: int) -> None:
    key, device = bytes(range(32)), torch.device("cuda")
    made = draws(key, 8 * first, 8 * 1000, device).view(-1, 8)
    assert torch.equal(made.cpu(), blocks_in_torch(key, first, 1000, CPU))
