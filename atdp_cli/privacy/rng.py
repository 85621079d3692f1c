"""Random numbers from a cryptographically secure stream: AES-256 in counter mode.

The accountant assumes noise and samples that an observer of the model cannot predict; the generators of numpy
and torch give neither.
"""

import hashlib
import secrets

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_WORD, _BLOCK = 8, 16
"""Bytes of a draw, and of a block of the cipher."""

Floats = npt.NDArray[np.float64]


class KeyStream:
    """Draws from one AES-256-CTR key stream; its state is the position in that stream."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._cipher = algorithms.AES(key)
        self._drawn = 0
        self._encryptor = Cipher(self._cipher, modes.CTR(bytes(_BLOCK))).encryptor()

    @property
    def position(self) -> int:
        """How many draws were taken or skipped."""
        return self._drawn

    @property
    def chacha_key(self) -> bytes:
        """32 bytes for a stream of ChaCha20, which a GPU makes in place of this one, at the same positions."""
        return hashlib.sha256(b"atdp ChaCha20 " + self._key).digest()

    def uniforms(self, count: int) -> Floats:
        """`count` draws on (0, 1], 53 bits each, shape [count]; 1 is what the largest rounds to."""
        # The half step keeps 0 out, where the logarithm of Box-Muller has its pole.
        return (self.integers(count).astype(np.float64) + 0.5) * 2.0**-53

    def integers(self, count: int) -> npt.NDArray[np.int64]:
        """`count` draws of 53 bits, shape [count], of which `uniforms` are made."""
        return (self.words(count) >> np.uint64(11)).view(np.int64)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """`count` draws of 64 bits, shape [count]."""
        self._drawn += count
        return np.frombuffer(self._encryptor.update(bytes(_WORD * count)), dtype=np.uint64)

    def skip(self, count: int) -> None:
        """Skip `count` draws, at a cost that does not grow with their number."""
        self._drawn += count
        block, before = divmod(_WORD * self._drawn, _BLOCK)
        self._encryptor = Cipher(self._cipher, modes.CTR(block.to_bytes(_BLOCK, "big"))).encryptor()
        self._encryptor.update(bytes(before))


def secure_stream() -> KeyStream:
    """A stream keyed by the operating system. The key is never written anywhere."""
    return KeyStream(new_key())


def new_key() -> bytes:
    """32 random bytes from the operating system."""
    return secrets.token_bytes(32)


def insecure_stream(seed: int, purpose: str) -> KeyStream:
    """A reproducible stream for tests: whoever knows `seed` can subtract the noise, so nothing is protected."""
    return KeyStream(hashlib.sha256(f"atdp insecure {purpose} {seed}".encode()).digest())
