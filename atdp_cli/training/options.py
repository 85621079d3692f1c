"""The options of a run of `harden`. A recipe file's table `run` has those among them that shape the training."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, create_model

from atdp_cli.detection.options import (
    ChatTemplateOptions,
    DetectionOptions,
    ExtraSpansOptions,
    RecordOptions,
    ReplacingOptions,
    SkipOptions,
    SpanFileOptions,
)
from atdp_cli.detection.settings import DetectorSettings
from atdp_cli.privacy.ledger import CheckpointHistory
from atdp_cli.privacy.schedule import NoiseMultiplier, SigmaGrowth, SigmaMax
from atdp_cli.settings import (
    DATA,
    DETECTION,
    MIN_DELTA,
    NO_TAIL,
    OUTPUT,
    DeviceOptions,
    Option,
    Options,
    Positive,
    ThreadOptions,
    contradiction,
    declared,
)
from atdp_cli.training.objectives import TargetShare, UnflaggedWeight
from atdp_cli.training.recipe import RECIPES, Count, Epochs
from atdp_cli.training.search import Effort

ClippingEngineName = Literal["ghost", "opacus", "per-record"]

ENGINES: tuple[ClippingEngineName, ...] = ("ghost", "opacus", "per-record")
"""The engines in the order in which `auto` tries them."""

Precision = Literal["float32", "bfloat16"]
"""The number format that layers compute in."""

PRIVACY, TRAINING = "Privacy", "Training"

MAX_RANK = 65_536


def _tokens(text: object) -> object:
    """`auto` or a number."""
    if not isinstance(text, str):
        return text
    if text != "auto" and not (text.isascii() and text.isdigit()):
        raise contradiction("max-batch-tokens is not a number of tokens.", "Give auto or a number of tokens.")
    return None if text == "auto" else int(text)


def _delta(value: float) -> float:
    """Not so small that noise has no such tail."""
    if value < MIN_DELTA:
        raise contradiction(f"delta is {value:g}.", f"Choose a number of at least {MIN_DELTA:g}: {NO_TAIL}.")
    return value


def _pair(text: object) -> object:
    """`LOW,HIGH`."""
    return text.split(",") if isinstance(text, str) else text


class CorpusOptions(Options):
    """The corpus to train on."""

    data: Annotated[tuple[Path, ...], Option(DATA, main=True, fingerprint="records")]
    """Corpus: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet. Repeatable."""


class DataOptions(Options):
    """The records to train and measure on, and how much of each."""

    source_field: Annotated[str | None, Option(flag=False, fingerprint="records")] = None
    """Encoder-decoder models: the field or column that the encoder reads; --text-field is then what the decoder learns
    to say."""

    max_records: Annotated[int | None, Option(flag=False, fingerprint="records")] = None
    """Use only so many records, the first ones."""

    eval_data: Annotated[Path | None, Option(DATA, fingerprint="records")] = None
    """Held-out corpus. Default: every twentieth record of --data, at most 500."""

    holdout_by: Annotated[str | None, Option(flag=False, fingerprint="records")] = None
    """Hold out every twentieth conversation or user whole: the lines between blank ones, or all records with the same
    value of a field. So you declare these boundaries public. Default: record."""

    max_windows: Annotated[int, Field(ge=1), Option(flag=False, fingerprint="recipe", public=True)] = 8
    """The most windows of a long record; the rest is left out."""

    manifest: Annotated[Path | None, Option(DATA, main=True)] = None
    """Canaries of plant-canary: check that they are trained on, token for token."""


class ChatOptions(ChatTemplateOptions):
    """The part of conversations that is learnt."""

    loss_on: Annotated[
        Literal["assistant", "all"] | None,
        Option(flag=False, fingerprint="recipe", public=True),
    ] = None
    """Conversations: whose messages are learnt, assistant (the default) or all, each with what ends its turn. The
    others, and what the chat template writes, are only read."""


class ReviewEpochOptions(Options):
    """The review of spans by people during a run."""

    review_each_epoch: Annotated[bool, Option(DETECTION)] = False
    """Before each epoch, queue a sample of the sentences for atdp review in OUT.private/review/ (until the run ends in
    OUT.partial/review/), and read the lists beside the queues anew. What people decide is not covered by ε."""

    review_share: Annotated[float, Field(gt=0, le=1), Option(flag=False, fingerprint="--review-each-epoch")] = 0.01
    """Share of the sentences in a queue of --review-each-epoch."""


class RecipeOptions(Options):
    """The recipe."""

    recipe: Annotated[
        str | None,
        Option(TRAINING, main=True, metavar="NAMES|FILE.toml", words=lambda: RECIPES, joined="+", public=True),
    ] = None
    """Stages, joined by +, as in redacted+atdp; --list-recipes shows them. Or a recipe file, as harden writes it;
    options given here override those in its table run. Default: fitted-decoys, ε ≤ 3 unless --target-epsilon says
    else, starting at --reference where there is one. See docs/choosing.md."""

    set_: Annotated[tuple[str, ...], Option(TRAINING, flags=("--set",), metavar="STAGE.KEY=VALUE", public=True)] = ()
    """An option of one stage; without it options act on the last DP stage. run.KEY=VALUE: a setting that has no flag,
    as docs/commands.md lists them. Repeatable."""


class StageSizeOptions(Options):
    """The length of a stage, and the size of its steps. Without a stage's name they act as `StageOptions` says."""

    epochs: Annotated[Epochs | None, Option(TRAINING, main=True, public=True)] = None
    """Passes over the corpus. Default: 3."""

    batch_size: Annotated[Count | None, Option(TRAINING, public=True)] = None
    """B, expected records a step. Default: min(256, ⌈N/4⌉)."""


class StageOptions(StageSizeOptions):
    """Options of a stage. They act on the last DP stage, or on the last stage where none is; --set names another."""

    noise_multiplier: Annotated[NoiseMultiplier | None, Option(PRIVACY, public=True)] = None
    """σ₀: noise over clip norm in the first epoch. Default: 1."""

    learning_rate: Annotated[Positive | None, Option(TRAINING, public=True)] = None
    """η. Default: 5e-4."""

    clip_norm: Annotated[Positive | None, Option(flag=False, public=True)] = None
    """C: largest norm of a record's gradient. Default: 0.1."""

    unflagged_weight: Annotated[UnflaggedWeight | None, Option(flag=False, public=True)] = None
    """w of tokens without a flag: a number, or record (from the record's own share of flagged tokens). Default: 0.2."""

    target_share: Annotated[TargetShare | None, Option(flag=False, public=True)] = None
    """Share of the weight that flagged tokens should carry, for record. Default: 0.5."""

    sigma_growth: Annotated[SigmaGrowth | None, Option(flag=False, public=True)] = None
    """γ: rise of σ an epoch. Default: 1.2."""

    jitter: Annotated[tuple[float, float] | None, BeforeValidator(_pair), Option(flag=False, public=True)] = None
    """Range of the rise's random factor, LOW,HIGH. Default: 0.9,1.1."""

    sigma_max: Annotated[SigmaMax | None, Option(flag=False, public=True)] = None
    """Ceiling of σ; above it σ returns to σ₀. Default: 4·σ₀."""


STAGE_OPTIONS = tuple(name.replace("_", "-") for name in StageOptions.model_fields)
"""Their names on the command line, without `--`."""


class TuneOptions(Options):
    """The search for the settings of a stage on decoys."""

    tune: Annotated[Effort | None, Option(TRAINING, metavar="none|quick|full", fingerprint="recipe", public=True)] = (
        None
    )
    """Tune a last stage on decoys, in recipes without DP stages: short trials find η in at most 25 % of its steps;
    full adds trials in finer steps where that allows it, none has no trials. From a public start they look for the
    least loss on decoyed text, and the stage warms up and keeps its best epoch; else they start at twice η, and look
    for the lowest at which the model forgets. With --learning-rate no trials. Default: quick where the recipe is
    chosen, none with --review-each-epoch; with --recipe the stage is as the recipe says."""


class AdapterOptions(Options):
    """The parameters to train."""

    lora_rank: Annotated[
        Annotated[int, Field(ge=1, le=MAX_RANK)] | None, Option(TRAINING, fingerprint="recipe", public=True)
    ] = None
    """Train a LoRA adapter of this rank on the linear layers, not the whole model: faster, with less noise in all. The
    adapter is what is written."""


class ReferenceOptions(Options):
    """The public base model."""

    reference: Annotated[Path | None, Option(TRAINING, main=True)] = None
    """Public base model that never saw the corpus, for recipes that read one. A ledger beside it is composed in."""


class BudgetOptions(Options):
    """The limits of ε."""

    target_epsilon: Annotated[PositiveFloat | None, Option(PRIVACY, main=True)] = None
    """Choose σ₀ so that the strongest finite guarantee has at most this ε."""

    max_epsilon: Annotated[PositiveFloat | None, Option(PRIVACY)] = None
    """Refuse a plan whose DP stages, or a stage without noise, spend more than this ε."""


class AcceptOptions(Options):
    """Which ledgers --max-epsilon accepts."""

    accept_declared: Annotated[bool, Option(flag=False, fingerprint=False)] = False
    """Let --max-epsilon hold for a model whose training somebody declared by atdp account --adopt."""


class DeltaOptions(Options):
    """The δ of (ε, δ)-DP."""

    delta: Annotated[
        float, Field(gt=0, lt=1), AfterValidator(_delta), Option(PRIVACY, fingerprint="recipe", public=True)
    ] = 1e-06
    """δ of the guarantees; at least 1e-12, below 1/N, and below 1/(10·N) for a verdict of releasable."""


class CheckpointHistoryOptions(Options):
    """The public seed of the plan, and the known past of the checkpoint."""

    jitter_seed: Annotated[int, Option(flag=False, fingerprint="recipe", public=True)] = 0
    """Seed of the jitter; public, and part of the plan."""

    checkpoint_history: Annotated[CheckpointHistory, Option(PRIVACY, main=True, metavar="PAST")] = "unknown"
    """public: the first checkpoint, before any run of its ledger, never saw this corpus; else unknown. Refused if the
    ledger says unknown."""


class WritingOptions(Options):
    """The model to write."""

    output: Annotated[
        Path | None, Option(OUTPUT, main=True, flags=("--output", "-o"), fingerprint=False, writes=True)
    ] = None
    """Folder to write. Default: MODEL-hardened."""

    save_dtype: Annotated[
        Literal["float32", "float16", "bfloat16"] | None,
        Option(flag=False, fingerprint=False, public=True),
    ] = None
    """float32, float16 or bfloat16. Default: as the checkpoint."""

    merge_adapter: Annotated[bool, Option(flag=False, fingerprint=False)] = False
    """Write the whole model, the adapter added to its weights."""


class EngineOptions(Options):
    """The clipping engine, with its memory and precision."""

    clipping: Annotated[Literal["auto", ClippingEngineName], Option(flag=False, fingerprint=False, public=True)] = (
        "auto"
    )
    """How records are clipped: many at once (ghost), by Opacus' hooks (opacus), one at a time (per-record). auto takes
    the first that agrees with per-record on random tokens."""

    max_batch_tokens: Annotated[
        PositiveInt | None,
        BeforeValidator(_tokens),
        Option(flag=False, fingerprint=False, public=True),
    ] = None
    """Tokens in memory at a time. auto goes by the vocabulary and shrinks when memory runs out."""

    compute_dtype: Annotated[Precision, Option(flag=False, fingerprint=False, public=True)] = "float32"
    """The number format of layers' computations while training. Weights, norms, sums and noise are in float32 or
    better, and perplexities are measured in it. bfloat16 is for GPUs."""

    shard_model: Annotated[bool, Option(flag=False, fingerprint=False)] = False
    """Under torchrun: each process holds a part of every parameter (FSDP2), for models that fit no device."""


class ResumingOptions(Options):
    """Saving and resuming of interrupted runs."""

    resume: Annotated[bool, Option(OUTPUT, main=True, fingerprint=False)] = False
    """Continue the interrupted run from its last saved state in OUT.partial/, or begin if there is none. Steps that are
    taken again are spent again."""

    checkpoint_every: Annotated[float, Field(ge=0), Option(flag=False, fingerprint=False)] = 10.0
    """How often the state of the run is saved in OUT.partial/. 0: only on Ctrl-C or SIGTERM."""


class SeedOptions(Options):
    """The seed that tests set."""

    insecure_seed: Annotated[int | None, Option(flag=False)] = None
    """Tests only: reproducible noise, which protects nobody."""


class TrainingRunOptions(
    CorpusOptions,
    RecordOptions,
    SkipOptions,
    DataOptions,
    ChatOptions,
    ReviewEpochOptions,
    SpanFileOptions,
    ExtraSpansOptions,
    TuneOptions,
    AdapterOptions,
    ReferenceOptions,
    BudgetOptions,
    AcceptOptions,
    DeltaOptions,
    CheckpointHistoryOptions,
    WritingOptions,
    EngineOptions,
    DeviceOptions,
    ReplacingOptions,
    ResumingOptions,
    SeedOptions,
    ThreadOptions,
):
    """The options of a run, but for those of the detector and of single stages."""


def _shown_by_recipe() -> dict[str, Any]:
    """The options that shape the training, without their defaults.

    Raises:
        TypeError: One of them is not public, and would be written to OUT/.
    """
    fields = {}
    for name, field, option in declared(DetectionOptions, DetectorSettings, TrainingRunOptions):
        if option.fingerprint == "recipe":
            if not option.public:
                raise TypeError(f"{name} is not public.")
            fields[name] = (Annotated[field.annotation, *field.metadata] | None, None)
    return fields


_Fields: Any = create_model("_Fields", __base__=Options, **_shown_by_recipe())


class RunOptions(_Fields):  # type: ignore[misc]  # its fields are known when it runs
    """A recipe file's table `run`: options of `harden` beside the recipe, and None where it says nothing."""

    model_config = ConfigDict(strict=True)

    def given(self) -> dict[str, Any]:
        """The options that the file gives."""
        return {name: value for name, value in self if value is not None}


NO_OPTIONS = RunOptions()
