"""The result of `audit-corpus`: the models that `--json` and the map's file hold."""

from typing import Annotated, Literal

from pydantic import Field

from atdp_cli.audit.results import AuditPart, BaselineState, Count, Positive
from atdp_cli.files.documents import Frozen

Share = Annotated[float, Field(ge=0, le=1)]

MAP = "map"
"""The source of a map's places in a spans file."""

MapVerdict = Literal["PASS", "FAIL", "INCONCLUSIVE"]
"""The verdict of a map on a model with a limit."""

LIKELY = 0.05
"""The share of its decoys that the model may find likelier than a likely value."""


class ValueRank(AuditPart):
    """A flagged value among decoys of its shape, by log p or, with a reference, by log p − log p_ref.

    True values are likelier than decoys anyway, so a rank is no p-value.

    Attributes:
        decoys: How many it is ranked among.
        likelier: The share of them that the model finds likelier, ties half.
        elsewhere: The same with other records' text before them, the median over contexts; None without any.
    """

    decoys: Positive
    likelier: Share
    elsewhere: Share | None

    @property
    def anywhere(self) -> bool:
        """Whether the model finds it likely after other records' text as well: learnt as a word, not in its place."""
        return self.elsewhere is not None and self.elsewhere <= LIKELY


class ComparedRanks(Frozen):
    """Ranks of values in training and held-out records: the share of decoys that the model finds likelier, ties half.

    Attributes:
        training, held_out: The mean share, in [0, 1]; 0 where each value is likelier than all its decoys. They are
            equal where the model remembers no training value.
        training_values, held_out_values: How many values, one a record, each at least 1.
        p_value: That training values rank as high by chance, if the model had read neither: one-sided, of the
            Mann–Whitney U test, exact up to ties. Source: Mann and Whitney 1947.
    """

    training: float
    held_out: float
    training_values: int
    held_out_values: int
    p_value: float


class MemorisedPlace(AuditPart):
    """A place of the corpus that a model knows better than held-out text. It holds no text.

    Attributes:
        record: Which record of the corpus, from 1.
        start, end: Code points of its text, end exclusive.
        value: The same number, from 1, for places of equal text but for case.
        label: Of the flagged span that covers half of it or more; `MEMORISED` where there is none.
        gain: Of its stretch, above what the model gains on average, nats.
        p_value: Of its group of records.
        adjusted_p: The least false discovery rate at which the group is among the findings.
        greedy: Whether greedy decoding says it after the text before it.
        queries_half: Samples after that text that hold it with probability 1/2 (Hayes et al. 2024); None where that
            passes the largest float.
        rank: Of the flagged value, at the place of greatest gain of those of equal text; None elsewhere, where no span
            covers it, and where nothing precedes it.
    """

    record: Positive
    start: Count
    end: Positive
    value: Positive
    label: str
    gain: Annotated[float, Field(gt=0)]
    p_value: Share
    adjusted_p: Share
    greedy: bool
    queries_half: Annotated[float, Field(ge=1)] | None
    rank: ValueRank | None


class MemoryMap(AuditPart):
    """The text of a corpus that one model has memorised.

    Attributes:
        reference: Folder of the public base model; None where its scores are log p alone.
        tested, held_out: Groups of records, of one record each where they are not grouped.
        fdr: The false discovery rate.
        fewest_findings: So many groups must stand out together before any is significant.
        calibrated: Whether the findings are those at the false discovery rate. Otherwise none are, and the list has
            the groups that score above every held-out one.
        memorised: How many groups are listed.
        places: In those groups, the greatest gain first.
        max_memorised: The limit, in groups; None for none.
        verdict: INCONCLUSIVE where more are listed than the limit, uncalibrated. None without a limit.
        weights: SHA-256 of each file of the model that decides what it says.
        baseline: How a FAIL compares with the recorded state, if there is one: `known` is no worse.
    """

    model: str
    reference: str | None
    tested: Count
    held_out: Positive
    fdr: Share
    fewest_findings: Positive
    calibrated: bool
    memorised: Count
    places: tuple[MemorisedPlace, ...]
    max_memorised: Count | None
    verdict: MapVerdict | None
    weights: Annotated[dict[str, str], Field(default_factory=dict)]
    baseline: BaselineState | None = None

    @property
    def gate(self) -> MapVerdict | None:
        """The verdict that the exit code follows: the verdict, but PASS where a FAIL is no worse than recorded."""
        return "PASS" if self.baseline == "known" else self.verdict

    @property
    def greedy(self) -> int:
        """Texts that greedy decoding says after what precedes them, at one of their places or more."""
        return len({place.value for place in self.places if place.greedy})


class MemoryDocument(AuditPart):
    """`atdp audit-corpus --json`."""

    schema_version: Literal[1] = 1
    models: tuple[MemoryMap, ...]
