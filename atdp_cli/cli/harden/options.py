"""The options of `atdp harden`, by subject."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.harden.list_recipes import show_recipes
from atdp_cli.cli.options.shared import Force, TextField, Threads, UnitOption
from atdp_cli.text.redaction.placeholders import Style

DATA, PRIVACY, TRAINING, DETECTION, OUTPUT = "Data", "Privacy", "Training", "Detection", "Output"


class ClippingEngineOption(StrEnum):
    """The clipping engines."""

    AUTO = "auto"
    BOOKKEEPING = "bookkeeping"
    OPACUS = "opacus"
    LOOP = "loop"


class PrecisionOption(StrEnum):
    """What layers compute in."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class DeviceOption(StrEnum):
    """Where the arithmetic runs."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class PriorOption(StrEnum):
    """What is known of the checkpoint's past."""

    PUBLIC = "public"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The recipe and the settings of its stages."""

    recipe: Annotated[
        str,
        typer.Option(
            metavar="NAMES|FILE.toml",
            help="Stages, joined by +, as in redacted+atdp; --list-recipes shows them. Or a recipe file, as harden "
            "writes it beside the weights; options given here go before those in its table run.",
            rich_help_panel=TRAINING,
        ),
    ] = "atdp"
    auto: Annotated[
        bool,
        typer.Option(
            "--auto",
            help="Choose the recipe and its settings: decoys drawn with frequencies of a noisy release, ε ≤ 3 unless "
            "--target-epsilon says else, starting at --reference where there is one. See docs/choosing.md.",
            rich_help_panel=TRAINING,
        ),
    ] = False
    minutes: Annotated[
        float | None,
        typer.Option(help="With --auto: take fewer epochs if training would last longer.", rich_help_panel=TRAINING),
    ] = None
    list_recipes: Annotated[
        bool,
        typer.Option(
            "--list-recipes",
            help="Print the recipes with what each guarantees, and stop.",
            callback=show_recipes,
            is_eager=True,
            rich_help_panel=TRAINING,
        ),
    ] = False
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the corpus. Default: 3.", rich_help_panel=TRAINING)
    ] = None
    learning_rate: Annotated[float | None, typer.Option(help="η. Default: 5e-4.", rich_help_panel=TRAINING)] = None
    batch_size: Annotated[
        int | None,
        typer.Option(help="B, expected records a step. Default: min(256, ⌈N/4⌉).", rich_help_panel=TRAINING),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option(
            help="w of tokens without a flag: a number, record (from the record's own share of flagged tokens) or "
            "released (from the corpus' share, released with noise). Default: 0.2.",
            rich_help_panel=TRAINING,
        ),
    ] = None
    target_share: Annotated[
        float | None,
        typer.Option(
            help="Share of the weight that flagged tokens should carry, for record and released. Default: 0.5.",
            rich_help_panel=TRAINING,
        ),
    ] = None
    lora_rank: Annotated[
        int | None,
        typer.Option(
            help="Train a LoRA adapter of this rank on the linear layers, not the whole model: faster, with less "
            "noise in all. The adapter is what is written.",
            rich_help_panel=TRAINING,
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="STAGE.KEY=VALUE",
            help="An option of one stage; without it options act on the last DP stage. Repeatable.",
            rich_help_panel=TRAINING,
        ),
    ] = None
    reference: Annotated[
        Path | None,
        typer.Option(
            help="A public model that never saw the corpus, as the base of MODEL: what anchored pulls sensitive tokens "
            "to, interpolate the weights. A ledger beside it is composed in.",
            rich_help_panel=TRAINING,
        ),
    ] = None
    until_exposure: Annotated[
        float | None,
        typer.Option(
            metavar="BITS",
            help="Stop a DP stage after the epoch in which every second of the canaries of --manifest is below this "
            "exposure, by log p and by its ratio to --reference. The others' manifest is put into OUT.private/ for "
            "the audit. ε stays that of the whole plan.",
            rich_help_panel=TRAINING,
        ),
    ] = None
    max_increase: Annotated[
        str | None,
        typer.Option(
            "--max-perplexity-increase",
            metavar="SHARE",
            help="Exit with 1 if held-out perplexity rises by more, as 3%; the model is then in OUT.failed/.",
            rich_help_panel=TRAINING,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PrivacyOptions:
    """The noise, what it shall cost at most, and what is known of the checkpoint."""

    noise_multiplier: Annotated[
        float | None,
        typer.Option(help="σ₀: noise over clip norm in the first epoch. Default: 1.", rich_help_panel=PRIVACY),
    ] = None
    target_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Choose σ₀ so that the strongest finite guarantee has at most this ε.", rich_help_panel=PRIVACY
        ),
    ] = None
    max_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Refuse a plan whose DP stages, or a stage without noise, spend more than this ε.",
            rich_help_panel=PRIVACY,
        ),
    ] = None
    delta: Annotated[float, typer.Option(help="δ of the guarantees; below 1/N.", rich_help_panel=PRIVACY)] = 1e-6
    clip_norm: Annotated[
        float | None,
        typer.Option(help="C: largest norm of a record's gradient. Default: 0.1.", rich_help_panel=PRIVACY),
    ] = None
    escalation: Annotated[
        float | None, typer.Option(help="γ: rise of σ an epoch. Default: 1.2.", rich_help_panel=PRIVACY)
    ] = None
    jitter: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH", help="Range of the rise's random factor. Default: 0.9,1.1.", rich_help_panel=PRIVACY
        ),
    ] = None
    sigma_max: Annotated[
        float | None,
        typer.Option(help="Ceiling of σ; above it σ returns to σ₀. Default: 4·σ₀.", rich_help_panel=PRIVACY),
    ] = None
    jitter_seed: Annotated[
        int, typer.Option(help="Seed of the jitter; public, and part of the plan.", rich_help_panel=PRIVACY)
    ] = 0
    prior: Annotated[
        PriorOption,
        typer.Option(
            help="public: the first checkpoint, before any run that its ledger lists, never saw the corpus.",
            rich_help_panel=PRIVACY,
        ),
    ] = PriorOption.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """What is trained and measured on."""

    data: Annotated[
        list[Path],
        typer.Option(
            help="Corpus: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet. Repeatable.", rich_help_panel=DATA
        ),
    ]
    unit: UnitOption = "line"
    text_field: TextField = "text"
    source_field: Annotated[
        str | None,
        typer.Option(
            help="Encoder-decoder models: the field or column that the encoder reads; --text-field is then what the "
            "decoder learns to say.",
            rich_help_panel=DATA,
        ),
    ] = None
    max_records: Annotated[int | None, typer.Option(help="Take the first so many records.", rich_help_panel=DATA)] = (
        None
    )
    valid: Annotated[
        Path | None,
        typer.Option(
            help="Held-out corpus. Default: every twentieth record of --data, at most 500.", rich_help_panel=DATA
        ),
    ] = None
    max_windows: Annotated[
        int,
        typer.Option(
            "--max-windows-per-unit", help="Windows of a long record; the rest is left out.", rich_help_panel=DATA
        ),
    ] = 8
    manifest: Annotated[
        Path | None,
        typer.Option(
            help="Canaries of plant-canary: check that they are trained on, token for token.", rich_help_panel=DATA
        ),
    ] = None
    review_each_epoch: Annotated[
        bool,
        typer.Option(
            "--review-each-epoch",
            help="Before each epoch, queue a sample of the sentences for atdp review in OUT.private/review/ (until "
            "the run ends in OUT.partial/review/), and read the lists beside the queues anew. What people "
            "decide is not covered by ε.",
            rich_help_panel=DETECTION,
        ),
    ] = False
    sample: Annotated[
        float,
        typer.Option(help="Share of the sentences in a queue of --review-each-epoch.", rich_help_panel=DETECTION),
    ] = 0.01
    spans: Annotated[
        Path | None, typer.Option(help="Spans of atdp detect, in place of the detector.", rich_help_panel=DETECTION)
    ] = None
    style: Annotated[
        Style,
        typer.Option(
            metavar="STYLE",
            help="Placeholders in stages on redacted text, as for atdp redact: label, angle, numbered or pseudonym. "
            "The last two tell which flagged texts are equal (within a record; in the whole run), so no selective "
            "guarantee holds.",
            rich_help_panel=DETECTION,
        ),
    ] = Style.LABEL


@dataclass(frozen=True, kw_only=True)
class RunningOptions:
    """What is written, and how the run goes."""

    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write. Default: MODEL-hardened.", rich_help_panel=OUTPUT),
    ] = None
    dtype: Annotated[
        str | None,
        typer.Option(help="float32, float16 or bfloat16. Default: as the checkpoint.", rich_help_panel=OUTPUT),
    ] = None
    merge_adapter: Annotated[
        bool,
        typer.Option(
            "--merge-adapter", help="Write the whole model, the adapter added to its weights.", rich_help_panel=OUTPUT
        ),
    ] = False
    engine: Annotated[
        ClippingEngineOption,
        typer.Option(
            metavar="ENGINE",
            help="How records are clipped: many at once (bookkeeping), by Opacus' hooks (opacus), one at a time "
            "(loop). auto takes the first that agrees with loop on random tokens.",
            rich_help_panel="RunningOptions",
        ),
    ] = ClippingEngineOption.AUTO
    microbatch: Annotated[
        str,
        typer.Option(
            metavar="auto|TOKENS",
            help="Tokens in memory at a time. auto goes by the vocabulary and shrinks when memory runs out.",
            rich_help_panel="RunningOptions",
        ),
    ] = "auto"
    precision: Annotated[
        PrecisionOption,
        typer.Option(
            metavar="float32|bfloat16",
            help="What layers compute in while training. Weights, norms, sums and noise are in float32 or better, and "
            "perplexities are measured in it. bfloat16 is for GPUs.",
            rich_help_panel="RunningOptions",
        ),
    ] = PrecisionOption.FLOAT32
    device: Annotated[
        DeviceOption, typer.Option(help="auto takes the GPU where there is one.", rich_help_panel="RunningOptions")
    ] = DeviceOption.AUTO
    shard_model: Annotated[
        bool,
        typer.Option(
            "--shard-model",
            help="Under torchrun: each process holds a part of every parameter (FSDP2), for models that fit no device.",
            rich_help_panel="RunningOptions",
        ),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and its ε, and stop.", rich_help_panel=OUTPUT)
    ] = False
    force: Force = False
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the run that was interrupted, from its last saved state in OUT.partial/; where there is "
            "none, begin. Steps that are taken again are spent again.",
            rich_help_panel=OUTPUT,
        ),
    ] = False
    checkpoint_every: Annotated[
        float,
        typer.Option(
            metavar="MINUTES",
            help="How often the state of the run is saved in OUT.partial/. 0: only on Ctrl-C or SIGTERM.",
            rich_help_panel="RunningOptions",
        ),
    ] = 10.0
    threads: Threads = None
    insecure_seed: Annotated[
        int | None,
        typer.Option(help="Tests only: reproducible noise, which protects nobody.", rich_help_panel="RunningOptions"),
    ] = None
