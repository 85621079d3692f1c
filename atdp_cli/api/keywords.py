"""The keywords of the API's functions: the options of the commands, of which `make generated` makes them."""

import os
from collections.abc import Sequence
from typing import Literal, TypedDict


class DetectKeywords(TypedDict, total=False):
    """Of `atdp detect`."""

    tier: Literal["low-entity", "high-entity", "low-contextual", "high-contextual"] | None
    entities: str | None
    exclude: str | None
    min_confidence: float | None
    speaker_labels: str | None
    allow: Sequence[str | os.PathLike[str]] | None
    deny: Sequence[str | os.PathLike[str]] | None
    spacy_pipeline: str | None
    backend: str | None
    store: str | os.PathLike[str] | None
    no_store: bool | None
    jobs: int | None
    crosscheck: str | None
    crosscheck_url: str | None
    send_unmasked: bool | None
    on_disagreement: Literal["sensitive", "review"] | None
    llm_key_file: str | os.PathLike[str] | None
    engine: Literal["local", "ray"] | None
    ray_address: str | None
    text_field: str | None
    unit: str | None
    turns: str | None
    id_field: str | None
    skip_bad: bool | None
    shard: str | None
    force: bool | None
    review: str | os.PathLike[str] | None
    sample: float | None


class RedactKeywords(TypedDict, total=False):
    """Of `atdp redact`."""

    tier: Literal["low-entity", "high-entity", "low-contextual", "high-contextual"] | None
    entities: str | None
    exclude: str | None
    min_confidence: float | None
    speaker_labels: str | None
    allow: Sequence[str | os.PathLike[str]] | None
    deny: Sequence[str | os.PathLike[str]] | None
    spacy_pipeline: str | None
    backend: str | None
    store: str | os.PathLike[str] | None
    no_store: bool | None
    jobs: int | None
    crosscheck: str | None
    crosscheck_url: str | None
    send_unmasked: bool | None
    on_disagreement: Literal["sensitive", "review"] | None
    llm_key_file: str | os.PathLike[str] | None
    engine: Literal["local", "ray"] | None
    ray_address: str | None
    text_field: str | None
    unit: str | None
    turns: str | None
    id_field: str | None
    skip_bad: bool | None
    shard: str | None
    spans: str | os.PathLike[str] | None
    style: Literal["label", "angle", "numbered", "pseudonym"] | None
    pseudonym_key: str | os.PathLike[str] | None
    force: bool | None


class HardenKeywords(TypedDict, total=False):
    """Of `atdp harden`."""

    text_field: str | None
    unit: str | None
    turns: str | None
    source_field: str | None
    max_records: int | None
    holdout_by: str | None
    max_windows_per_unit: int | None
    manifest: str | os.PathLike[str] | None
    chat_template: str | None
    loss_on: Literal["assistant", "all"] | None
    rounds: int | None
    review_each_epoch: bool | None
    sample: float | None
    spans: str | os.PathLike[str] | None
    also: Sequence[str | os.PathLike[str]] | None
    style: Literal["label", "angle", "numbered", "pseudonym"] | None
    auto: bool | None
    minutes: float | None
    epochs: int | None
    learning_rate: float | None
    batch_size: int | None
    weight: float | str | None
    target_share: float | None
    lora_rank: int | None
    set: Sequence[str] | None
    tune: Literal["none", "quick", "full"] | None
    until_exposure: float | None
    max_perplexity_increase: float | str | None
    noise_multiplier: float | None
    target_epsilon: float | None
    max_epsilon: float | None
    accept_declared: bool | None
    delta: float | None
    clip_norm: float | None
    escalation: float | None
    jitter: str | None
    sigma_max: float | None
    jitter_seed: int | None
    prior: Literal["public", "unknown"] | None
    tier: Literal["low-entity", "high-entity", "low-contextual", "high-contextual"] | None
    entities: str | None
    exclude: str | None
    min_confidence: float | None
    speaker_labels: str | None
    allow: Sequence[str | os.PathLike[str]] | None
    deny: Sequence[str | os.PathLike[str]] | None
    spacy_pipeline: str | None
    backend: str | None
    store: str | os.PathLike[str] | None
    no_store: bool | None
    jobs: int | None
    crosscheck: str | None
    crosscheck_url: str | None
    send_unmasked: bool | None
    on_disagreement: Literal["sensitive", "review"] | None
    llm_key_file: str | os.PathLike[str] | None
    dtype: Literal["float32", "float16", "bfloat16"] | None
    merge_adapter: bool | None
    engine: Literal["auto", "bookkeeping", "opacus", "loop"] | None
    microbatch: int | str | None
    precision: Literal["float32", "bfloat16"] | None
    device: Literal["auto", "cpu", "cuda"] | None
    force: bool | None
    resume: bool | None
    checkpoint_every: float | None
    threads: int | None
    insecure_seed: int | None


class AuditCanaryKeywords(TypedDict, total=False):
    """Of `atdp audit-canary`."""

    manifest: str | os.PathLike[str] | None
    canary: str | None
    packed: bool | None
    alpha: float | None
    fail_on: str | None
    exact: Literal["auto", "always", "never"] | None
    max_exposure: float | None
    max_epsilon_lower_bound: float | None
    baseline: str | os.PathLike[str] | None
    guesses: int | None
    top: int | None
    attacks: str | None
    samples: int | None
    resurfacing_steps: int | None
    full: bool | None
    engine: Literal["local", "ray"] | None
    ray_address: str | None
    junit: str | os.PathLike[str] | None
    sarif: str | os.PathLike[str] | None
    write_baseline: str | os.PathLike[str] | None
    show_secrets: bool | None
    force: bool | None
    threads: int | None
    device: Literal["auto", "cpu", "cuda"] | None


class AuditCorpusKeywords(TypedDict, total=False):
    """Of `atdp audit-corpus`."""

    harden_split: bool | None
    holdout_by: str | None
    text_field: str | None
    unit: str | None
    turns: str | None
    chat_template: str | None
    fdr: float | None
    decoys: int | None
    max_memorised: int | float | str | None
    baseline: str | os.PathLike[str] | None
    tier: Literal["low-entity", "high-entity", "low-contextual", "high-contextual"] | None
    entities: str | None
    exclude: str | None
    min_confidence: float | None
    speaker_labels: str | None
    allow: Sequence[str | os.PathLike[str]] | None
    deny: Sequence[str | os.PathLike[str]] | None
    spacy_pipeline: str | None
    backend: str | None
    store: str | os.PathLike[str] | None
    no_store: bool | None
    jobs: int | None
    crosscheck: str | None
    crosscheck_url: str | None
    send_unmasked: bool | None
    on_disagreement: Literal["sensitive", "review"] | None
    llm_key_file: str | os.PathLike[str] | None
    engine: Literal["local", "ray"] | None
    ray_address: str | None
    output: str | os.PathLike[str] | None
    junit: str | os.PathLike[str] | None
    sarif: str | os.PathLike[str] | None
    html: bool | None
    write_baseline: str | os.PathLike[str] | None
    show_secrets: bool | None
    force: bool | None
    threads: int | None
    device: Literal["auto", "cpu", "cuda"] | None


class AccountKeywords(TypedDict, total=False):
    """Of `atdp account`."""

    sample_rate: float | None
    noise_multiplier: float | None
    steps: int | None
    solve: Literal["noise", "steps", "sample-rate"] | None
    target_epsilon: float | None
    records: int | None
    epochs: int | None
    batch_size: int | None
    set: Sequence[str] | None
    jitter_seed: int | None
    prior: Literal["public", "unknown"] | None
    delta: float | None
    group: int | None
    replace_one: bool | None
    floor: bool | None
    cross_check: bool | None
    curve: str | os.PathLike[str] | None
    adopt: str | os.PathLike[str] | None
    ledger: Sequence[str | os.PathLike[str]] | None
    max_epsilon: float | None
    accept_declared: bool | None
    force: bool | None
