"""LoRA: a few trainable parameters beside frozen ones, which need less noise."""

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peft import LoraConfig, PeftModel, get_peft_model
from transformers import PreTrainedModel

from atdp_cli.errors import InputError
from atdp_cli.files.checkpoint_names import ADAPTER
from atdp_cli.files.documents import read_whole
from atdp_cli.model.config_checks import LEAST_FACTOR
from atdp_cli.model.sandbox import NAMES, ends_in_time
from atdp_cli.settings import require_at_least

_PLAIN = re.compile(r"[\w.-]{1,200}")
"""A name, as which a pattern does no harm; a dot in it stands for one character."""


ADAPTER_SETTINGS = frozenset(
    """peft_type peft_version task_type base_model_name_or_path revision inference_mode r lora_alpha lora_dropout bias
    fan_in_fan_out use_rslora use_dora lora_bias init_lora_weights target_modules exclude_modules target_parameters
    modules_to_save layers_to_transform layers_pattern rank_pattern alpha_pattern ensure_weight_tying
    trainable_token_indices runtime_config loftq_config auto_mapping megatron_core qalora_group_size""".split()  # noqa: SIM905
)
"""Settings of an adapter that say where it is, and not for which tokens it counts; others must be off."""


def add_adapter(model: PreTrainedModel, rank: int) -> Any:
    """The model with a fresh LoRA adapter of this rank on every linear layer but the head; only the adapter trains.

    Source: Hu et al. 2021; scaling α/r = 2. The model must be on its device already.

    Raises:
        UsageError: The rank is below 1.
        InputError: The model has an adapter already, or no linear layer.
    """
    require_at_least("lora-rank", rank, 1)
    if isinstance(model, PeftModel):
        raise InputError("The checkpoint is an adapter already, and is hardened as one.", "Leave --lora-rank out.")
    settings = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear")
    settings.exclude_modules = list(_unadaptable(model)) or None
    settings.task_type = "SEQ_2_SEQ_LM" if model.config.is_encoder_decoder else "CAUSAL_LM"
    try:
        with no_warnings():
            return get_peft_model(model, settings).eval()
    except ValueError as error:
        raise InputError("The model has no linear layer to adapt.", "Leave --lora-rank out.") from error


def _unadaptable(model: PreTrainedModel) -> Iterator[str]:
    """Linear layers that an adapter would break, or not reach: routers return more than a product, and Mamba's blocks
    read some weights past the adapter.
    """
    for name, part in model.named_modules():
        if type(part).__name__.endswith("Router"):
            yield name
        elif hasattr(part, "conv1d"):
            yield from (f"{name}.{layer}" for layer in ("x_proj", "dt_proj", "out_proj") if hasattr(part, layer))


def load_adapter(base: PreTrainedModel, folder: Path, place: Path) -> Any:
    """The base model with the adapter of a folder, which can be trained further.

    Args:
        place: A folder with the adapter's checked files alone.

    Raises:
        InputError: The adapter does not fit the model, or selects layers by a pattern that takes too long.
    """
    _try_patterns(base, folder)
    try:
        with no_warnings():
            model = PeftModel.from_pretrained(base, str(place), is_trainable=True)
            # Only this reports tensors that the file lacks; peft leaves those as initialised.
            missing = model.load_adapter(str(place), model.active_adapter, is_trainable=True).missing_keys
    except Exception as error:  # peft raises many kinds for an adapter that does not fit
        raise InputError(
            f"{folder} cannot be loaded as an adapter of {base.name_or_path} ({type(error).__name__}).",
            "Check that peft loads it: PeftModel.from_pretrained.",
        ) from error
    if missing:
        raise InputError(
            f"{folder} lacks {len(missing)} of the adapter's tensors, {min(missing)} among them.",
            "Copy or save the adapter again.",
        )
    scalings = [of for module in model.modules() if isinstance(of := getattr(module, "scaling", None), dict)]
    if min((abs(scaling) for of in scalings for scaling in of.values()), default=1.0) < LEAST_FACTOR:
        raise InputError(
            f"{folder} has next to no effect: its {ADAPTER} scales it down (lora_alpha, alpha_pattern).",
            "Copy or save the adapter again.",
        )
    return model.eval()


def _try_patterns(base: PreTrainedModel, folder: Path) -> None:
    """Refuse an adapter with unknown settings, or with patterns that do not end soon on the model's names."""
    settings = json.loads(read_whole(folder / ADAPTER))
    if others := sorted(name for name, value in settings.items() if value and name not in ADAPTER_SETTINGS):
        raise InputError(f"{folder / ADAPTER} sets {others[0]}, which is not followed.", "Merge the adapter.")
    unknown = {name: _expressions(settings.get(name)) for name in NAMES}
    names = [name for name, _ in base.named_modules()]
    if any(unknown.values()) and not ends_in_time("names", {"patterns": unknown, "names": names}):
        raise InputError(
            f"{folder} cannot be loaded: a pattern in its {ADAPTER} fails or takes too long.",
            "List the layers by name in target_modules.",
        )


def _expressions(value: Any) -> list[str]:
    """The expressions in a setting, which are more than names: a text is one pattern, a list has some, an object's keys
    are some.
    """
    texts = [value] if isinstance(value, str) else map(str, value or ())
    return [text for text in texts if not _PLAIN.fullmatch(text)]


@contextmanager
def no_warnings() -> Iterator[None]:
    """Silence the warnings of peft and transformers: a model that loads is checked here, others are refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def is_adapted(model: Any) -> bool:
    """Whether the model has an adapter, which alone is saved."""
    return isinstance(model, PeftModel)


def merged(model: Any) -> PreTrainedModel:
    """The model with its adapter merged into its weights; a model without adapter unchanged."""
    full: PreTrainedModel = model.merge_and_unload() if isinstance(model, PeftModel) else model
    return full
