"""The key stream of ChaCha20 (RFC 8439, section 2.3) made on a GPU, for noise of which a processor makes too little.

A draw is a word of 64 bits, and a block of the cipher has eight. The block's counter has 64 bits, as in Bernstein's
original, and the nonce the other 64: one key is good for 2⁶⁷ draws, where RFC 8439's counter ends after 2³⁵.
"""

import struct
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from atdp_cli.privacy.rng import KeyStream

DRAWS_OF_A_BLOCK = 8

CONSTANTS = struct.unpack("<4i", b"expand 32-byte k")

ROUNDS = (
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)
"""The words of the state that a quarter round changes: those of a round of columns and of one of diagonals."""


def uniforms(stream: KeyStream, count: int, device: torch.device | None) -> torch.Tensor:
    """The next numbers of a stream on (0, 1], 53 bits each, fp64, shape [count].

    On a CPU they are the stream's own, by AES; elsewhere those of ChaCha20, made on the device.
    """
    if device is None or device.type == "cpu":
        return torch.from_numpy(stream.uniforms(count))
    bits = draws(stream.chacha_key, stream.position, count, device).bitwise_right_shift(11)
    stream.skip(count)
    return bits.bitwise_and_((1 << 53) - 1).double().add_(0.5).mul_(2.0**-53)


def draws(key: bytes, first: int, count: int, device: torch.device, nonce: int = 0) -> torch.Tensor:
    """Draws number `first` to `first + count - 1` of the stream of a key, made on the device.

    Args:
        key: 32 bytes.
        first: From 0.
        nonce: 64 bits.

    Returns:
        int64, shape [count]: the bits of each draw, the first four bytes of the stream its lower half.
    """
    block, before = divmod(first, DRAWS_OF_A_BLOCK)
    blocks = -(-(before + count) // DRAWS_OF_A_BLOCK)
    make = _kernel() if device.type == "cuda" else None
    made = (make or blocks_in_torch)(key, block, blocks, device, nonce)
    return made.view(-1)[before : before + count]


def blocks_in_torch(key: bytes, first: int, blocks: int, device: torch.device, nonce: int = 0) -> torch.Tensor:
    """Blocks of the key stream by torch's operations on integers; the kernel is tested against it.

    Returns:
        int64, shape [blocks, 8].
    """
    counter = torch.arange(first, first + blocks, dtype=torch.int64, device=device)
    fixed = (*CONSTANTS, *struct.unpack("<8i", key))
    tail = (_half(counter, 0), _half(counter, 1), *(torch.full_like(counter, word) for word in _words(nonce)))
    start = [torch.full_like(counter, word, dtype=torch.int32) for word in fixed]
    start += [word.to(torch.int32) for word in tail]
    state = list(start)
    for _ in range(10):
        for a, b, c, d in ROUNDS:
            _quarter_round(state, a, b, c, d)
    words = [(one + other).to(torch.int64) & 0xFFFFFFFF for one, other in zip(state, start, strict=True)]
    return torch.stack([words[2 * at] | (words[2 * at + 1] << 32) for at in range(DRAWS_OF_A_BLOCK)], dim=1)


def _quarter_round(state: list[torch.Tensor], a: int, b: int, c: int, d: int) -> None:
    for into, added, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[into] = state[into] + state[added]
        mixed = state[turned] ^ state[into]
        state[turned] = (mixed << bits) | ((mixed >> (32 - bits)) & ((1 << bits) - 1))


def _half(values: torch.Tensor, half: int) -> torch.Tensor:
    """Bits 0 to 31, or 32 to 63, of each value as a signed number of 32 bits."""
    word = (values >> (32 * half)) & 0xFFFFFFFF
    return torch.where(word >= 1 << 31, word - (1 << 32), word)


def _words(value: int) -> tuple[int, int]:
    lower, upper = struct.unpack("<2i", struct.pack("<Q", value))
    return lower, upper


@cache
def _kernel() -> Callable[..., Any] | None:
    """The kernel for NVIDIA's and AMD's GPUs, where torch came with Triton."""
    if find_spec("triton") is None:
        return None
    from atdp_cli.training.chacha_kernel import blocks_by_kernel

    return blocks_by_kernel
