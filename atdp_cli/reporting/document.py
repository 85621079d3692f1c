"""The privacy report as data. OUT/privacy_report.json is the public part, OUT.private/ has the whole."""

from typing import Literal, Self

from pydantic import model_validator

from atdp_cli.files.documents import Frozen, Number
from atdp_cli.privacy.accountant import EpsilonPoint, Epsilons
from atdp_cli.reporting.audit_entry import AuditEntry
from atdp_cli.reporting.entries import (
    BeforeAfter,
    GroupFigure,
    GuaranteeEntry,
    MemoryEntry,
    PerplexityEntry,
    RanksBeforeAfter,
    TunedEntry,
    UsefulnessEntry,
)

REPORT_FILE, HTML_FILE = "privacy_report.json", "privacy_report.html"

MADE_UP_SENTENCE = "My name is Emma Carter, I live in Berlin, and my order has not arrived yet."
"""The sentence for which the report shows each model's surprise, token by token."""

NOT_COVERED = (
    "Records held out from training, and what was measured on them.",
    "Settings chosen by looking at the data, or at results on it.",
    "Term lists and spans taken from the data.",
    "A person or a secret that occurs in several records: ε is for one record, and grows fast with their number; "
    "atdp account computes it.",
    "Other models from the same records: their ε adds to this one.",
    "What this report states about other models, the starting checkpoint among them.",
    "Attacks that measure time.",
)

FLOATING_NOISE = "Attacks on floating-point noise."
"""A limit of the guarantees where there was noise."""

FLOATING_POINT = (
    "The noise of steps is added in floating point, whose rounding can reveal more than the theory, which assumes real "
    "numbers (Mironov 2012). Nothing here defends against that. By how much rounding moves a sum over records is "
    "bounded, and the noise covers it."
)

VERIFIED = "Verified at the end of the run: sampler, clip, noise and releases used what the ledger says."

CROSSCHECKED = (
    "What the cross-check's language model was sent, and who reads it there; which text is sensitive depends on its "
    "answers."
)
"""A limit of the guarantees where a cross-check ran."""

REVIEWED = (
    "People's review while the run trained: lists were read anew before each epoch, and what people put on them may "
    "come from any record."
)
"""A limit of the guarantees where people reviewed."""


class Summary(Frozen):
    """What a reader who knows nothing of differential privacy takes away, in a sentence each.

    Attributes:
        protects: What is protected, for whom, and at what ε.
        leaves_open: What is not.
        audit: What the canary audit found, or that none is attached.
    """

    protects: str
    leaves_open: str
    audit: str


class ReleaseVerdict(Frozen):
    """Whether the model may be released, and why, in a sentence.

    Attributes:
        verdict: `flagged-values-only` where nothing but what the detector flagged is protected; `not-audited` where a
            guarantee would do, and no audit of the model has passed.
        scope: The scope of the guarantee that it rests on; null where there is none.
    """

    verdict: Literal["releasable", "flagged-values-only", "not-audited", "not-releasable"]
    reason: str
    scope: Literal["end_to_end", "selective"] | None = None


class StageEntry(Frozen):
    """One stage as it was planned and run. σ is listed an epoch each.

    Attributes:
        text: What the stage read; null where it read no record.
        mechanism: `noise` has no gradient, `none` trains nothing.
        release_noise_multiplier: σ of the release that decoys are fitted by; null where none is.
        ended_after: The step after which the allowed ε was used up, as the run had been interrupted and steps that
            were taken again were spent again; null where the stage went to its end.
        tuned: The learning rate that was searched; null where it was as planned.
        restored_epoch: The epoch after which the loss on decoyed held-out text was lowest, whose weights the stage has
            in the end; null where it has those of its last epoch in any case.
    """

    name: str
    text: Literal["raw", "redacted", "decoy"] | None = None
    objective: str
    mechanism: Literal["plain", "dp-sgd", "noise", "none"]
    epochs: int = 0
    steps: int = 0
    batch: int = 0
    sampling_rate: float | None = None
    clip_norm: float | None = None
    noise_multipliers: tuple[float, ...] = ()
    release_noise_multiplier: float | None = None
    optimizer: str | None = None
    ended_after: int | None = None
    tuned: TunedEntry | None = None
    restored_epoch: int | None = None


class ReferenceEntry(Frozen):
    """A public model that a stage read, and why it is held to be public."""

    past: Literal["public", "declared", "unknown"]
    weights: dict[str, str]


class CrossCheckEntry(Frozen):
    """The language model that was asked about what is not flagged, and whether spans were masked in what it saw."""

    model: str
    masked: bool


class DetectorEntry(Frozen):
    """The detector that marked the sensitive tokens.

    Attributes:
        kept: Which of its flags count, in words; empty for all.
    """

    tier: str
    pipeline: str | None
    lists: bool
    kept: str = ""
    crosscheck: CrossCheckEntry | None = None


class SamplingEntry(Frozen):
    """How the accountant takes records to be drawn, and how they were."""

    assumed: str
    run: str


class HardwareEntry(Frozen):
    """The machine of the run; memory in GiB."""

    processor: str
    cores: int
    memory: float
    accelerator: str | None


class TokenEntry(Frozen):
    """A token of the published sentence, and how much each model is surprised by it: -log₂ of its probability.

    Attributes:
        before, after: Bits; null for the first token where nothing comes before it.
    """

    text: str
    sensitive: bool
    before: Number | None
    after: Number | None


AnnexStatus = Literal["stated", "tested", "not tested", "does not apply"]


class AnnexRow(Frozen):
    """One question of NIST SP 800-226, and what this report says to it.

    Attributes:
        level: Of the publication's pyramid, from its top.
        status: `stated` follows from the ledger or is declared by the user; `tested` was tried or measured.
    """

    level: Literal["the guarantee", "what can undermine it", "what it stands on"]
    topic: str
    status: AnnexStatus
    lines: tuple[str, ...]


Loader = Literal[
    "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoPeftModelForCausalLM", "AutoPeftModelForSeq2SeqLM"
]


class CardEntry(Frozen):
    """What the model card says of the model besides its protection; taken from the card of the starting checkpoint.

    Attributes:
        loader: The class of transformers or peft that loads it.
    """

    loader: Loader = "AutoModelForCausalLM"
    pipeline_tag: str | None = "text-generation"
    base_model: tuple[str, ...] = ()
    license: str | None = None
    license_name: str | None = None
    license_link: str | None = None
    language: tuple[str, ...] = ()


class PublicReport(Frozen):
    """What may be published with the model: no text, no file names, no figure measured on private text.

    Attributes:
        name: As its owner gave it by `atdp report --name`; null where nobody did.
        release: Whether it may be released; null in a report that is being made.
        summary: For people who know nothing of it; `verdict` is for those who do.
        person: ε for so many records of one person, who changes them together, in the strongest scope that has a finite
            ε; empty where that holds for any number, or there is none.
        start: SHA-256 of each weight file of the starting checkpoint.
        passes: How often each record is read by training stages, on average: three plain epochs are 3.
        repeated_steps: Steps with noise that were taken again after an interruption; the ledger has them twice.
        ended_early: Why the run took fewer steps than planned, as a sentence; null where it did not.
        engine, engines_refused, engine_check: Of clipping; null or empty where no stage clipped.
        noise_source: null where neither a step nor a release had noise.
        floating_point: null where no step had noise.
        verified: What the trace of the run was compared with; null where nothing had noise, or where some steps have no
            trace.
        command: The options of the run; paths and free text are left out.
        sentence: The same for every model, and made up.
        audits: Of the model as written and of the starting checkpoint; of others where their owner published them.
        annex: The questions of NIST SP 800-226 in its order; empty in a report that is being made.
    """

    schema_version: Literal[1] = 1
    kind: Literal["atdp-report"] = "atdp-report"
    name: str | None = None
    release: ReleaseVerdict | None = None
    summary: Summary
    verdict: tuple[str, ...]
    guarantees: tuple[GuaranteeEntry, ...]
    epsilon: Epsilons | None
    person: tuple[GroupFigure, ...] = ()
    delta: float
    unit: str
    adjacency: Literal["zero-out"] = "zero-out"
    records: int
    held_out: int
    checkpoint_history: Literal["public", "unknown"]
    inherited_ledger: bool
    references: tuple[ReferenceEntry, ...] = ()
    recipe: str
    stages: tuple[StageEntry, ...]
    detector: DetectorEntry
    engine: str | None
    engines_refused: tuple[str, ...] = ()
    engine_check: str | None
    sampling: SamplingEntry | None
    noise_source: str | None
    floating_point: str | None = FLOATING_POINT
    verified: str | None = None
    insecure_seed: bool
    epsilon_over_steps: tuple[EpsilonPoint, ...] = ()
    sentence: tuple[TokenEntry, ...] = ()
    audits: tuple[AuditEntry, ...] = ()
    passes: float
    repeated_steps: int = 0
    ended_early: str | None = None
    start: dict[str, str]
    weights: dict[str, str]
    software: dict[str, str]
    command: tuple[str, ...] = ()
    card: CardEntry = CardEntry()
    created: str
    not_covered: tuple[str, ...] = NOT_COVERED
    annex: tuple[AnnexRow, ...] = ()

    @model_validator(mode="after")
    def _says_what_holds_end_to_end(self) -> Self:
        if all(guarantee.scope != "end_to_end" for guarantee in self.guarantees):
            raise ValueError("No guarantee is end to end.")
        return self


class StagePrivate(Frozen):
    """The measurements of a stage on private text.

    Attributes:
        seconds, processor_seconds: Of the stage without measuring, by the clock and of the processors.
        tokens: Read by the stage's steps.
        clamped: For weights from the record: the share of records whose own share of sensitive tokens was already at
            or above the target, so that w is 1 and their tokens weigh the same.
        trial_losses: Of each trial for the learning rate, in nats a token of decoyed held-out text, in order.
        trial_p_values: Of each level of a range test, in order: that the model ranks values of training records like
            those of held-out ones, by the sample that chose the level, and then by the one that confirmed it.
        unlisted_words: The words that no public list has and that decoys had all the same, since the release found them
            in many records.
        sensitive_weight: The paper's r(w) as it came out at the start of the stage: the share of all weight, over the
            training records, that sensitive tokens carried; null where no token had weight.
    """

    name: str
    perplexities: tuple[PerplexityEntry, ...]
    mean_norms: tuple[float | None, ...]
    not_finite: int
    seconds: float
    processor_seconds: float
    tokens: int
    clamped: float | None
    trial_losses: tuple[Number | None, ...] = ()
    trial_p_values: tuple[tuple[float, ...], ...] = ()
    unlisted_words: tuple[str, ...] = ()
    sensitive_weight: float | None


class PrivateReport(Frozen):
    """The public report and what must stay with the records' owner.

    Attributes:
        release: The verdict for the records' owner, which counts how much is flagged.
        usefulness: What the models can do on held-out records with decoys drawn uniformly from public lists, alike in
            every run, the hardened one first; empty where a contextual tier flags words that have none.
        value_ranks: How the model ranks flagged values; null where neither its past nor a stage read raw text without
            protection, or nothing reads decoys.
        sensitive_share: Of the held-out tokens, in [0, 1].
        planted_canaries: How many training records carry each canary of the manifest; null without one.
        flagged_spans: Flagged spans of the training records.
        flagged_share: Of the characters of the training records, in [0, 1].
        flagged_labels: How many spans have each label.
        review: What people found missed or wrongly flagged, a sentence each; empty where no review was put in.
        missed_names: A sentence, where they look like another language than the detector reads; else null.
        unread_records: Training records without a token to learn from: they took part and added nothing.
        interruptions: How often the run was interrupted and resumed.
        listed_terms: Terms of --allow and --deny, as they are at the end of the run.
        maps: What memory maps found, this model's first.
        given: SHA-256 of MODEL's files, where the run started from the reference.
        audits: Of other models that were audited with this one, and are not in the public part.
        command: The whole command line.
        seconds: Of the whole run; they depend on the text, so they are not public.
    """

    schema_version: Literal[1] = 1
    kind: Literal["atdp-private-report"] = "atdp-private-report"
    public: PublicReport
    release: ReleaseVerdict | None = None
    seconds: float
    perplexity: BeforeAfter
    usefulness: tuple[UsefulnessEntry, ...] = ()
    value_ranks: RanksBeforeAfter | None = None
    sensitive_share: float
    stages: tuple[StagePrivate, ...]
    planted_canaries: tuple[int, ...] | None
    given: dict[str, str] | None = None
    flagged_spans: int
    flagged_share: float
    flagged_labels: tuple[tuple[str, int], ...] = ()
    review: tuple[str, ...] = ()
    missed_names: str | None = None
    unread_records: int
    listed_terms: int
    hardware: HardwareEntry
    interruptions: int = 0
    maps: tuple[MemoryEntry, ...] = ()
    audits: tuple[AuditEntry, ...] = ()
    command: tuple[str, ...] = ()


class AuditReport(Frozen):
    """The report of a model that `harden` did not write: its audits, and no guarantee.

    Attributes:
        audit: What the audit found, as `Summary.audit`.
        weights: SHA-256 of each of its files.
    """

    schema_version: Literal[1] = 1
    kind: Literal["atdp-audit-report"] = "atdp-audit-report"
    release: ReleaseVerdict
    audit: str
    weights: dict[str, str]
    audits: tuple[AuditEntry, ...]


Report = PublicReport | PrivateReport


def listed_audits(report: Report | AuditReport) -> list[tuple[str, AuditEntry]]:
    """All audits of a report, each with its path in the JSON; those of a whole report are in two places."""
    places = [("public.audits", report.public.audits)] if isinstance(report, PrivateReport) else []
    places.append(("audits", report.audits))
    return [(f"{path}.{place}", audit) for path, audits in places for place, audit in enumerate(audits)]


def public_of(report: Report) -> PublicReport:
    """The part of a report that may be published."""
    return report.public if isinstance(report, PrivateReport) else report
