"""The options of a run of `harden`. A recipe file's table `run` has those among them that shape the training."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt, create_model

from atdp_cli.options import Option, Options, declared
from atdp_cli.privacy.ledger import Prior
from atdp_cli.ranges import LEAST_DELTA
from atdp_cli.text.options import (
    DATA,
    DETECTION,
    OUTPUT,
    RUNNING,
    DetectionOptions,
    RecordOptions,
    ReplacingOptions,
)
from atdp_cli.text.redaction.placeholders import Style
from atdp_cli.training.recipe import ClippingEngineName, Precision

PRIVACY, TRAINING = "Privacy", "Training"
MOST_RANK = 65_536


def _share(text: object) -> object:
    """`3%` or 0.03."""
    if not isinstance(text, str):
        return text
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError("Give a percentage, as 3%, or a share, as 0.03.") from None


def _tokens(text: object) -> object:
    if text == "auto":
        return None
    if isinstance(text, str) and not (text.isascii() and text.isdigit()):
        raise ValueError("Give auto or a number of tokens.")
    return text if not isinstance(text, str) or len(text) < 20 else 10**20


class CorpusOptions(Options):
    """What is trained on."""

    data: Annotated[
        tuple[Path, ...],
        Field(description="Corpus: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet. Repeatable."),
        Option(panel=DATA, fingerprint="records"),
    ]


class DataOptions(Options):
    """Which of the records are trained and measured on, and how much of each."""

    source_field: Annotated[
        str | None,
        Field(
            description="Encoder-decoder models: the field or column that the encoder reads; --text-field is then what "
            "the decoder learns to say."
        ),
        Option(panel=DATA, fingerprint="records"),
    ] = None
    max_records: Annotated[
        int | None,
        Field(description="Take the first so many records."),
        Option(panel=DATA, fingerprint="records"),
    ] = None
    valid: Annotated[
        Path | None,
        Field(description="Held-out corpus. Default: every twentieth record of --data, at most 500."),
        Option(panel=DATA, fingerprint="records"),
    ] = None
    max_windows: Annotated[
        int,
        Field(ge=1, description="Windows of a long record; the rest is left out."),
        Option(panel=DATA, flags=("--max-windows-per-unit",), fingerprint="recipe", public=True),
    ] = 8
    manifest: Annotated[
        Path | None,
        Field(description="Canaries of plant-canary: check that they are trained on, token for token."),
        Option(panel=DATA),
    ] = None


class MaskOptions(Options):
    """What people say about the spans, and what stands in their place."""

    review_each_epoch: Annotated[
        bool,
        Field(
            description="Before each epoch, queue a sample of the sentences for atdp review in OUT.private/review/ "
            "(until the run ends in OUT.partial/review/), and read the lists beside the queues anew. What people "
            "decide is not covered by ε."
        ),
        Option(panel=DETECTION),
    ] = False
    sample: Annotated[
        float,
        Field(gt=0, le=1, description="Share of the sentences in a queue of --review-each-epoch."),
        Option(panel=DETECTION, fingerprint="--review-each-epoch"),
    ] = 0.01
    spans: Annotated[
        Path | None,
        Field(description="Spans of atdp detect, in place of the detector."),
        Option(panel=DETECTION),
    ] = None
    style: Annotated[
        Style,
        Field(
            description="Placeholders in stages on redacted text, as for atdp redact: label, angle, numbered or "
            "pseudonym. The last two tell which flagged texts are equal (within a record; in the whole run), so no "
            "selective guarantee holds."
        ),
        Option(panel=DETECTION, metavar="STYLE", fingerprint="recipe", public=True),
    ] = Style.LABEL


class AdapterOptions(Options):
    """Which parameters are trained."""

    lora_rank: Annotated[
        Annotated[int, Field(ge=1, le=MOST_RANK)] | None,
        Field(
            description="Train a LoRA adapter of this rank on the linear layers, not the whole model: faster, with "
            "less noise in all. The adapter is what is written.",
        ),
        Option(panel=TRAINING, fingerprint="recipe", public=True),
    ] = None


class ReferenceOptions(Options):
    """What the trained model is compared with."""

    reference: Annotated[
        Path | None,
        Field(
            description="A public model that never saw the corpus, as the base of MODEL: what anchored pulls sensitive "
            "tokens to, interpolate the weights. A ledger beside it is composed in."
        ),
        Option(panel=TRAINING),
    ] = None
    until_exposure: Annotated[
        PositiveFloat | None,
        Field(
            description="Stop a DP stage after the epoch in which every second of the canaries of --manifest is below "
            "this exposure, by log p and by its ratio to --reference. The others' manifest is put into OUT.private/ "
            "for the audit. ε stays that of the whole plan.",
        ),
        Option(panel=TRAINING, metavar="BITS"),
    ] = None
    max_increase: Annotated[
        NonNegativeFloat | None,
        BeforeValidator(_share),
        Field(
            description="Exit with 1 if held-out perplexity rises by more, as 3%; the model is then in OUT.failed/.",
        ),
        Option(
            panel=TRAINING,
            flags=("--max-perplexity-increase",),
            metavar="SHARE",
            fingerprint=False,
            public=True,
        ),
    ] = None


class BudgetOptions(Options):
    """What the noise shall cost at most."""

    target_epsilon: Annotated[
        PositiveFloat | None,
        Field(description="Choose σ₀ so that the strongest finite guarantee has at most this ε."),
        Option(panel=PRIVACY),
    ] = None
    max_epsilon: Annotated[
        PositiveFloat | None,
        Field(description="Refuse a plan whose DP stages, or a stage without noise, spend more than this ε."),
        Option(panel=PRIVACY),
    ] = None
    delta: Annotated[
        float,
        Field(ge=LEAST_DELTA, lt=1, description="δ of the guarantees; below 1/N."),
        Option(panel=PRIVACY, fingerprint="recipe", public=True),
    ] = 1e-6


class PriorOptions(Options):
    """What is public of the plan, and what is known of the checkpoint's past."""

    jitter_seed: Annotated[
        int,
        Field(description="Seed of the jitter; public, and part of the plan."),
        Option(panel=PRIVACY, fingerprint="recipe", public=True),
    ] = 0
    prior: Annotated[
        Prior,
        Field(description="public: the first checkpoint, before any run that its ledger lists, never saw the corpus."),
        Option(panel=PRIVACY),
    ] = "unknown"


class WritingOptions(Options):
    """What is written."""

    output: Annotated[
        Path | None,
        Field(description="Folder to write. Default: MODEL-hardened."),
        Option(panel=OUTPUT, flags=("--output", "-o"), fingerprint=False),
    ] = None
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16"] | None,
        Field(description="float32, float16 or bfloat16. Default: as the checkpoint."),
        Option(panel=OUTPUT, metavar="DTYPE", fingerprint=False, public=True),
    ] = None
    merge_adapter: Annotated[
        bool,
        Field(description="Write the whole model, the adapter added to its weights."),
        Option(panel=OUTPUT, fingerprint=False),
    ] = False


class EngineOptions(Options):
    """What computes, and in which numbers."""

    engine: Annotated[
        Literal["auto", ClippingEngineName],
        Field(
            description="How records are clipped: many at once (bookkeeping), by Opacus' hooks (opacus), one at a time "
            "(loop). auto takes the first that agrees with loop on random tokens."
        ),
        Option(panel=RUNNING, metavar="ENGINE", fingerprint=False),
    ] = "auto"
    microbatch: Annotated[
        PositiveInt | None,
        BeforeValidator(_tokens),
        Field(
            description="Tokens in memory at a time. auto goes by the vocabulary and shrinks when memory runs out.",
        ),
        Option(panel=RUNNING, metavar="auto|TOKENS", shown="auto", fingerprint=False, public=True),
    ] = None
    precision: Annotated[
        Precision,
        Field(
            description="What layers compute in while training. Weights, norms, sums and noise are in float32 or "
            "better, and perplexities are measured in it. bfloat16 is for GPUs."
        ),
        Option(panel=RUNNING, metavar="float32|bfloat16", fingerprint=False),
    ] = "float32"
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        Field(description="auto takes the GPU where there is one."),
        Option(panel=RUNNING, fingerprint=False),
    ] = "auto"
    shard_model: Annotated[
        bool,
        Field(
            description="Under torchrun: each process holds a part of every parameter (FSDP2), for models that fit no "
            "device."
        ),
        Option(panel=RUNNING, fingerprint=False),
    ] = False


class ResumingOptions(Options):
    """How an interrupted run goes on."""

    resume: Annotated[
        bool,
        Field(
            description="Go on with the run that was interrupted, from its last saved state in OUT.partial/; where "
            "there is none, begin. Steps that are taken again are spent again."
        ),
        Option(panel=OUTPUT, fingerprint=False),
    ] = False
    checkpoint_every: Annotated[
        float,
        Field(
            ge=0,
            description="How often the state of the run is saved in OUT.partial/. 0: only on Ctrl-C or SIGTERM.",
        ),
        Option(panel=RUNNING, metavar="MINUTES", fingerprint=False),
    ] = 10.0


class SeedOptions(Options):
    """What tests set."""

    insecure_seed: Annotated[
        int | None,
        Field(description="Tests only: reproducible noise, which protects nobody."),
        Option(panel=RUNNING),
    ] = None


class TrainingRunOptions(
    CorpusOptions,
    RecordOptions,
    DataOptions,
    MaskOptions,
    AdapterOptions,
    ReferenceOptions,
    BudgetOptions,
    PriorOptions,
    WritingOptions,
    EngineOptions,
    ReplacingOptions,
    ResumingOptions,
    SeedOptions,
):
    """All of them, but for those of the detector and of single stages."""


FIRST_WRITTEN = ("tier", "unit", "style", "max_windows", "jitter_seed", "lora_rank", "delta")
"""The order in which recipe files have these. The fingerprint of a run has the text of one, so it stays."""


def _shown_by_recipe() -> dict[str, Any]:
    """The options that shape the training, without their defaults.

    Raises:
        TypeError: One of them is not public, and would be written to OUT/.
    """
    fields = {}
    for name, field, option in declared(DetectionOptions, TrainingRunOptions):
        if option.fingerprint == "recipe":
            if not option.public:
                raise TypeError(f"{name} is not public.")
            fields[name] = (Annotated[field.annotation, *field.metadata] | None, None)
    return {name: fields[name] for name in (*FIRST_WRITTEN, *(fields.keys() - set(FIRST_WRITTEN)))}


_Fields: Any = create_model("_Fields", __base__=Options, **_shown_by_recipe())


class RunOptions(_Fields):  # type: ignore[misc]  # its fields are known when it runs
    """A recipe file's table `run`: options of `harden` beside the recipe, and None where it says nothing."""

    def given(self) -> dict[str, Any]:
        """The options about which something is said."""
        return {name: value for name, value in self if value is not None}


NO_OPTIONS = RunOptions()
