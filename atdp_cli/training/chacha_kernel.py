"""ChaCha20's blocks by one Triton kernel: each of its lanes makes one block, all of it in registers."""

import struct

import torch
import triton
import triton.language as tl

BLOCKS_AT_ONCE = 128


@triton.jit
def _add_turn(a, b, d, bits: tl.constexpr):
    """a += b; d = (d ^ a) turned left by `bits`."""
    a = a + b
    d = d ^ a
    return a, (d << bits) | (d >> (32 - bits))


@triton.jit
def _quarter(a, b, c, d):
    a, d = _add_turn(a, b, d, 16)
    c, b = _add_turn(c, d, b, 12)
    a, d = _add_turn(a, b, d, 8)
    c, b = _add_turn(c, d, b, 7)
    return a, b, c, d


@triton.jit
def _word(words, at: tl.constexpr, lanes):
    return tl.load(words + at).to(tl.uint32, bitcast=True) + tl.zeros_like(lanes).to(tl.uint32)


@triton.jit
def _draw(lower, upper):
    return (lower.to(tl.uint64) | (upper.to(tl.uint64) << 32)).to(tl.int64, bitcast=True)


@triton.jit(do_not_specialize=["first", "blocks"])
def _blocks(out, words, first, blocks, lanes_at_once: tl.constexpr):
    lanes = tl.program_id(0).to(tl.int64) * lanes_at_once + tl.arange(0, lanes_at_once)
    counter = (lanes + first).to(tl.uint64)
    s0, s1, s2, s3 = _word(words, 0, lanes), _word(words, 1, lanes), _word(words, 2, lanes), _word(words, 3, lanes)
    s4, s5, s6, s7 = _word(words, 4, lanes), _word(words, 5, lanes), _word(words, 6, lanes), _word(words, 7, lanes)
    s8, s9, s10, s11 = _word(words, 8, lanes), _word(words, 9, lanes), _word(words, 10, lanes), _word(words, 11, lanes)
    s12, s13 = counter.to(tl.uint32), (counter >> 32).to(tl.uint32)
    s14, s15 = _word(words, 12, lanes), _word(words, 13, lanes)
    x0, x1, x2, x3, x4, x5, x6, x7 = s0, s1, s2, s3, s4, s5, s6, s7
    x8, x9, x10, x11, x12, x13, x14, x15 = s8, s9, s10, s11, s12, s13, s14, s15
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    inside = lanes < blocks
    tl.store(out + lanes * 8 + 0, _draw(x0 + s0, x1 + s1), mask=inside)
    tl.store(out + lanes * 8 + 1, _draw(x2 + s2, x3 + s3), mask=inside)
    tl.store(out + lanes * 8 + 2, _draw(x4 + s4, x5 + s5), mask=inside)
    tl.store(out + lanes * 8 + 3, _draw(x6 + s6, x7 + s7), mask=inside)
    tl.store(out + lanes * 8 + 4, _draw(x8 + s8, x9 + s9), mask=inside)
    tl.store(out + lanes * 8 + 5, _draw(x10 + s10, x11 + s11), mask=inside)
    tl.store(out + lanes * 8 + 6, _draw(x12 + s12, x13 + s13), mask=inside)
    tl.store(out + lanes * 8 + 7, _draw(x14 + s14, x15 + s15), mask=inside)


def blocks_by_kernel(key: bytes, first: int, blocks: int, device: torch.device, nonce: int = 0) -> torch.Tensor:
    """What `blocks_in_torch` gives, from the GPU that the device is."""
    fixed = struct.unpack("<14i", b"expand 32-byte k" + key + struct.pack("<Q", nonce))
    words = torch.tensor(fixed, dtype=torch.int32).to(device, non_blocking=True)
    out = torch.empty((blocks, 8), dtype=torch.int64, device=device)
    with torch.cuda.device(device):
        _blocks[(triton.cdiv(blocks, BLOCKS_AT_ONCE),)](out, words, first, blocks, BLOCKS_AT_ONCE)
    return out
