"""The random streams of a run, each for one purpose."""

from atdp_cli.jobs.request import HardenRequest
from atdp_cli.privacy.csprng import KeyStream, insecure_stream, secure_stream


def stream(request: HardenRequest, position: int, purpose: str) -> KeyStream:
    """A stream of its own for a purpose of the stage at `position`, keyed by the operating system.

    With --insecure-seed it is reproducible, and protects nobody.
    """
    if request.insecure_seed is None:
        return secure_stream()
    return insecure_stream(request.insecure_seed, f"{purpose} of stage {position}")
