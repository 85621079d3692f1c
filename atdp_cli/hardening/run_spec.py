"""What the parts of a run on disk have to know of it. Loads no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from atdp_cli.training.plan import Plan


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run, as its folders, its journal and its checkpoints see it.

    Attributes:
        output: OUT/, the folder that the model appears in.
        fingerprint: All on which the run's steps and their ε depend, by name: hashes of what is large or private, and
            settings as they are. Two attempts with one fingerprint are the same run.
        target_epsilon, max_epsilon: The limits of ε that a resumed run must keep; None where there is none.
        corpus_key: Under which the ledger commits to the corpus; empty for none.
        command: The command line as it was given; empty where the run was not started by one.
        force: Whether what is in the way may be replaced.
        resume: Whether to resume an interrupted run, if there is one.
    """

    output: Path
    fingerprint: Mapping[str, str]
    plan: Plan
    target_epsilon: float | None = None
    max_epsilon: float | None = None
    corpus_key: bytes = field(default=b"", repr=False)
    command: tuple[str, ...] = ()
    force: bool = False
    resume: bool = False

    @property
    def limits(self) -> str:
        """The options that limit ε, under their command-line names; empty if there are none."""
        given = (("--target-epsilon", self.target_epsilon), ("--max-epsilon", self.max_epsilon))
        return " and ".join(f"{name} {value:g}" for name, value in given if value is not None)
