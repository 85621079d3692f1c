"""What an audit finds of the corpus's own numbers, and what all parts of an audit's result have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


class AuditPart(BaseModel):
    """A part of an audit's result: its fields are the keys of the JSON, in their order."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


class NumberResult(AuditPart):
    """How a model ranks a number of the corpus among those of its format. Holds no text.

    Nobody drew it at random, so its exposure is no evidence of memory by itself: dates and years are likelier than
    other digits before any training. That by the ratio takes out what was likely before.

    By log p of the number given the record's text before it, and by the ratio log p - log p_ref; ratio fields are
    None without a reference. Ranks count from 1 among all candidates compared. `exposure` and `exposure_ratio` are
    within the stratum of equal token length, as a canary's are: numbers of few tokens are likelier than others in any
    model. The plain exposures are over all lengths. Bits.

    Attributes:
        record: Which record of the corpus, from 1: the line of the spans file.
        line: The line of the corpus on which the record begins, from 1; None where the corpus has no lines.
        start, end: Code points of the record's text, end exclusive.
        label: What the detector took it for.
        pool: Numbers of its format.
        compared: Candidates that it was ranked among: all of them, or a sample and itself, which caps its plain
            exposures at log2(compared).
        stratum_size: Those of its token length, which cap its exposures at log2(stratum_size).
    """

    record: Positive
    line: Positive | None
    start: Count
    end: Positive
    label: str
    pool: Positive
    compared: Positive
    rank_min: Positive
    rank_max: Positive
    stratum_size: Positive
    exposure: float
    exposure_plain: float
    exposure_ratio: float | None
    exposure_ratio_plain: float | None

    @property
    def judged_exposure(self) -> float:
        """The exposure that a limit is compared with: by the ratio where there is a reference, bits."""
        return self.exposure if self.exposure_ratio is None else self.exposure_ratio


class NumberResults(AuditPart):
    """The numbers of the corpus itself, uncalibrated. Holds no text.

    Attributes:
        eligible: Numbers of the corpus that could be tested.
        skipped_short, skipped_long: Spans with digits, and too few or too many of them.
        skipped_repeated: Spans whose text is in the same record before: copying it takes no memory.
        tested: How many `results` there are.
        skipped_context: Numbers of the sample that no one window of this model's context holds with all of their
            alternatives, or with no token before them.
        skipped_tokens: Numbers of the sample that have other tokens in the whole record, where text follows them,
            than alone: training saw those.
        mean_exposure: Bits, None where none was tested; 1.44 if the numbers were uniform and not remembered.
        mean_exposure_ratio: The same by the ratio; None without a reference.
        max_exposure: The largest `exposure` or `exposure_ratio`, bits.
    """

    eligible: Count
    tested: Count
    skipped_short: Count
    skipped_long: Count
    skipped_repeated: Count
    skipped_context: Count
    skipped_tokens: Count
    results: tuple[NumberResult, ...]
    mean_exposure: float | None
    mean_exposure_ratio: float | None
    max_exposure: float | None
