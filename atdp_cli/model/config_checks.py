"""Checks of what a checkpoint's configuration says, before a library reads it. Never imports torch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atdp_cli.errors import InputError

KERNELS = ("attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation")
"""Settings that make transformers load code from the hub: of the repository that they name, or a FlashAttention."""

NOT_FOLLOWED = {
    "transformers_weights": "has transformers load other weights",
    "fast_tokenizer_files": "has transformers load another tokenizer",
    "attribute_map": "gives settings other names",
    "megatron_config": "has peft import a module",
    "layer_replication": "has peft repeat layers",
    "sequence_bias": "has generation prefer some tokens",
    "forced_decoder_ids": "has generation say some tokens",
}
"""Settings by which transformers or peft would load something else than the files that are checked here."""

LAYERS = (
    *("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    *("encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers"),
)
"""Names of the number of layers in configurations."""

FACTORS, LEAST_FACTOR = ("_multiplier", "_scale", "_scaling", "_scaling_factor", "_scalar"), 1e-6
"""How the names of factors in configurations end, and the smallest that leaves weights an effect."""

EPSILONS = ("_eps", "_epsilon")
"""How the names of what norms add to a variance end."""

QUANTISED = "quantization_config"
"""The setting that says how weights are quantised."""

AUDITED_METHODS = frozenset({"torchao"})
"""The quantisation methods of weights that can be audited."""

MOST, MOST_LABELS = 1 << 24, 1 << 16
"""The largest whole number of a configuration, rotary bases aside, and of classes; libraries make lists that long."""

BASES = ("theta", "base")
"""How the names of rotary bases end."""

CONTEXTS = ("max_position_embeddings", "max_seq_len", "n_ctx", "n_positions", "seq_length")
"""Names of the length of the context in configurations."""


def refuse_code(file: Path, config: dict[str, Any]) -> None:
    """Refuse settings that run code from outside transformers: the folder's, a repository's, or a quantiser's."""
    for part in objects(config):
        if part.get("auto_map"):
            raise InputError(
                f"{file} asks for code of its own (auto_map), which is never run.",
                "Give a model whose architecture transformers knows.",
            )
        for name in KERNELS:
            if any(mark in str(part.get(name)).lower() for mark in ("/", "flash")):
                raise InputError(f"{file} asks for a kernel of the hub ({name}), which is never run.", "Take it out.")
        for name, effect in NOT_FOLLOWED.items():
            if part.get(name):
                raise InputError(f"{file} {effect} ({name}), which is not followed.", "Take it out.")
        if part.get(QUANTISED):
            raise InputError(
                f"{file} says that the weights are quantised.",
                "Give the model as it was before; the quantised one can be audited.",
            )


def check_quantised(file: Path, settings: Any) -> None:
    """Refuse a quantiser whose numbers cannot be written out."""
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    if method not in AUDITED_METHODS:
        raise InputError(
            f"{file} says that the weights are quantised by {method}, whose numbers are not read here.",
            f"Audit a model that is quantised by {', '.join(sorted(AUDITED_METHODS))}.",
        )
    refuse_code(file, settings)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """A JSON object and all objects nested in it."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def check_layers(file: Path, config: dict[str, Any], tensors: int) -> None:
    """Refuse no layers, and more than the files have tensors, before a model of that size is created."""
    for part in objects(config):
        for name in LAYERS:
            layers = part.get(name)
            if isinstance(layers, int) and not 1 <= layers <= tensors:
                raise InputError(
                    f"{file} says {name} is {layers}, and the weights have {tensors:,} tensors.",
                    "Copy or save the model again.",
                )


def check_factors(file: Path, config: dict[str, Any]) -> None:
    """Refuse a factor by which layers have no effect, and what they learnt shows once it is set back."""
    for part in objects(config):
        for name, value in part.items():
            factor = isinstance(value, int | float) and not isinstance(value, bool)
            none = factor and name.endswith(FACTORS) and abs(value) < LEAST_FACTOR
            if none or (factor and name.endswith(EPSILONS) and not 0 <= value < 1):
                raise InputError(
                    f"{file} says {name} is {value}, by which weights have no effect.", "Copy or save the model again."
                )


def check_numbers(file: Path, config: dict[str, Any]) -> None:
    """Refuse whole numbers that no model has, by which a library would fill the memory.

    Raises:
        InputError: Names the setting.
    """
    for part in objects(config):
        for name, value in part.items():
            least = 2 if name in CONTEXTS else -MOST  # one token predicts nothing
            most = MOST_LABELS if name == "num_labels" else MOST
            for number in () if name.endswith(BASES) else _numbers(value):
                whole = isinstance(number, int)
                if (whole or name in CONTEXTS) and not (whole and least <= number <= most):
                    raise InputError(f"{file} says {name} is {number}, as in no model.", "Copy or save it again.")


def _numbers(value: Any) -> Iterator[int | float]:
    """The number that is a setting's value, or those of lists in it."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, int | float) and not isinstance(part, bool):
            yield part
        elif isinstance(part, list):
            pending += part
