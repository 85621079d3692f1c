"""The random streams of a run, each for one purpose."""

from collections.abc import Iterator

from atdp_cli.jobs.harden.request import HardenRequest
from atdp_cli.privacy.rng import KeyStream, insecure_stream, new_key, secure_stream
from atdp_cli.text.redaction.decoys import Draw
from atdp_cli.training.distributed.collectives import broadcast_bytes

_BLOCK = 4096


def stream(request: HardenRequest, position: int, purpose: str) -> KeyStream:
    """A stream of its own for a purpose of the stage at `position`, keyed by the operating system.

    Several processes share the key: the first draws it and tells the others. With --insecure-seed it is reproducible,
    and protects nobody.
    """
    if request.insecure_seed is None:
        return secure_stream() if request.ranks.size == 1 else KeyStream(broadcast_bytes(request.ranks, new_key()))
    return insecure_stream(request.insecure_seed, f"{purpose} of stage {position}")


def order_seed(request: HardenRequest) -> int | None:
    """A seed for the order of a plain stage that all processes share; None where the stage draws its own."""
    if request.insecure_seed is not None or request.ranks.size == 1:
        return request.insecure_seed
    return int.from_bytes(broadcast_bytes(request.ranks, new_key())[:7], "big")


def integer_draws(source: KeyStream) -> Draw:
    """Draws from 0, …, n−1 for n far below 2⁵³, uniform up to the stream's 53 bits."""
    uniforms = _uniforms(source)
    # A uniform can round up to 1.
    return lambda n: min(int(next(uniforms) * n), n - 1)


def _uniforms(source: KeyStream) -> Iterator[float]:
    while True:
        yield from source.uniforms(_BLOCK).tolist()
