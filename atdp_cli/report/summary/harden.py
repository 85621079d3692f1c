"""What `harden --json` prints of a run, and of a plan with --dry-run, as models."""

from typing import Literal

from atdp_cli.report.document import StageEntry
from atdp_cli.report.guarantee_entry import GuaranteeEntry
from atdp_cli.report.measured import BeforeAfter, RanksBeforeAfter
from atdp_cli.report.numbers import Frozen


class FlaggedEntry(Frozen):
    """The share of the characters that are flagged in so many records, in [0, 1]."""

    records: int
    share: float


class HardenPlan(Frozen):
    """What `plan` returns, and `atdp harden --dry-run --json` prints.

    Attributes:
        output: Where the run would write.
        notice: Which recipe is taken and why, and what it does.
        statements: What is guaranteed, a sentence each.
        advice: What the user could do better, a sentence each.
        flagged: In a part of the records; None where spans come from a file.
        records: Those that train, one `unit` each.
        searches: What is searched before a stage, a sentence each.
        trial_steps: At most, for settings that are searched.
        engine: Of clipping; None where nothing is clipped.
        estimated_bytes: The most memory, about; None where the system does not tell.
    """

    schema_version: Literal[1] = 1
    dry_run: Literal[True] = True
    output: str
    recipe: str
    notice: str
    statements: tuple[str, ...]
    advice: tuple[str, ...]
    tier: str
    flagged: FlaggedEntry | None = None
    records: int
    held_out: int
    unit: str
    steps: int
    stages: tuple[StageEntry, ...]
    searches: tuple[str, ...]
    trial_steps: int
    guarantees: tuple[GuaranteeEntry, ...]
    insecure_seed: bool
    engine: str | None = None
    estimated_bytes: int | None = None


class HardenSummary(Frozen):
    """What `harden` returns, and `atdp harden --json` prints. Perplexities are of held-out private text.

    Attributes:
        output: Where the model is: OUT/, or OUT.failed/ where its perplexity rose above the limit.
        steps: That were taken; repeated ones count once.
        stages: As they were trained, with the settings that were chosen.
        decoyed_perplexity: Of held-out text with decoys; None where nothing could be decoyed.
        value_ranks: Of flagged values among decoys; None where they tell nothing.
        failed: Why the model is in OUT.failed/, as a sentence.
        ended_early: Why the run took fewer steps than planned, as a sentence.
    """

    schema_version: Literal[1] = 1
    dry_run: Literal[False] = False
    output: str
    recipe: str
    steps: int
    stages: tuple[StageEntry, ...]
    guarantees: tuple[GuaranteeEntry, ...]
    insecure_seed: bool
    perplexity: BeforeAfter
    decoyed_perplexity: BeforeAfter | None
    value_ranks: RanksBeforeAfter | None
    seconds: float
    failed: str | None
    ended_early: str | None
