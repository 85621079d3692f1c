"""The random streams of a run, each for one purpose."""

from dataclasses import dataclass

from atdp_cli.privacy.rng import KeyStream, insecure_stream, new_key, secure_stream
from atdp_cli.training.parallel.collectives import broadcast_bytes
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Makes the streams of a run.

    Attributes:
        seed: With a seed the streams are reproducible, and protect nobody; None to key them by the operating system.
        ranks: Several processes share each key: the first draws it and broadcasts it.
        session: How often the run was interrupted before.
    """

    seed: int | None
    ranks: Ranks = SINGLE_PROCESS
    session: int = 0

    def stream(self, stage: int, purpose: str) -> KeyStream:
        """A separate stream for one purpose of the stage at a position."""
        if self.seed is not None:
            return insecure_stream(self.seed, f"{purpose} of stage {stage}")
        return secure_stream() if self.ranks.size == 1 else KeyStream(broadcast_bytes(self.ranks, new_key()))

    def fresh_stream(self, stage: int, purpose: str) -> KeyStream:
        """As `stream`, but a resumed run gets another one even from a seed."""
        return self.stream(stage, f"{purpose} after interruption {self.session}" if self.session else purpose)

    def order_seed(self) -> int | None:
        """A seed for the order of a plain stage that all processes share; None where the stage draws its own."""
        if self.seed is not None or self.ranks.size == 1:
            return self.seed
        return int.from_bytes(broadcast_bytes(self.ranks, new_key())[:7], "big")
