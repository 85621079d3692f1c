"""Loading a checkpoint after checking it, and saving one that loads again."""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

from atdp_cli.errors import InputError
from atdp_cli.files.checkpoint_names import CONFIG, tokenizer_files
from atdp_cli.files.documents import file_sha256
from atdp_cli.model.adapter import load_adapter, no_warnings
from atdp_cli.model.comparison import check_adapter, check_base
from atdp_cli.model.config_checks import CONTEXTS
from atdp_cli.model.device import find_device, move_model
from atdp_cli.model.folder import (
    DTYPES,
    base_of,
    check_folder,
    is_adapter,
    is_quantised,
    model_files,
    stored_dtype,
    stored_tensors,
    tokenizer_folder,
    weight_files,
)
from atdp_cli.model.forward import Batch, logits_of
from atdp_cli.model.hashes import seal_of
from atdp_cli.model.quantised import plain_files
from atdp_cli.model.staging import staged
from atdp_cli.model.tokenizer import (
    check_loaded_tokenizer,
    check_tokenizer_files,
    save_tokenizer,
    unreadable_tokenizer,
    without_panic,
)
from atdp_cli.model.windows import tokenizer_fingerprint


@dataclass(frozen=True, kw_only=True, eq=False)
class Checkpoint:
    """A loaded model.

    Attributes:
        model: In fp32 and eval mode, on the CPU.
        stored_dtype: The dtype of the file as torch names it; float32 for a file in float64.
        seal: SHA-256 of each file as it was loaded, by the names of a ledger's seal.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    stored_dtype: str
    seal: Mapping[str, str]

    @property
    def tokenizer_sha256(self) -> str:
        """The fingerprint of its tokenizer."""
        return tokenizer_fingerprint(self.tokenizer)


def load_checkpoint(
    folder: Path, device: str = "cpu", *, audited: bool = False, keeps_half: bool = False
) -> Checkpoint:
    """Load a model folder into fp32, in eval mode. No pickle is opened, no code of the folder is run.

    Args:
        device: Where the model goes once it is loaded and checked, as `find_device` takes it.
        audited: Quantised weights are allowed, and loaded as the numbers that they stand for: the model is audited.
        keeps_half: Weights stored in bfloat16 stay so, which takes half the memory: only an adapter is to train.

    Raises:
        UsageError: There is no such device.
        InputError: The folder is no such model, is damaged, or holds weights that are not finite.
        RunError: A file was changed while it was read.
    """
    place_of_model = find_device(device)
    check_folder(folder, audited=audited)
    stored = "float32" if is_quantised(folder) else stored_dtype(folder)
    base = base_of(folder) if is_adapter(folder) else folder
    read: dict[Path, str] = {}
    with staged(model_files(base), read) as held, plain_files(base, held) as place:
        config = _load_config(base, place)
        tokenizer = load_tokenizer(tokenizer_folder(folder), read)
        half = keeps_half and not is_quantised(base) and stored_dtype(base) == "bfloat16"
        model = _load_model(base, place, config, tokenizer, torch.bfloat16 if half else torch.float32)
        if is_adapter(folder):
            with staged(model_files(folder), read) as adapter:
                own = model.state_dict(keep_vars=True)
                model = load_adapter(model, folder, adapter)
                check_adapter(folder, model, weight_files(adapter), base=base, held=own, base_files=weight_files(place))
            model.peft_config[model.active_adapter].base_model_name_or_path = str(base)
            _check_finite(folder, model)
    _probe(folder, model)
    move_model(model, place_of_model)
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        stored_dtype="float32" if stored == "float64" else stored,
        seal=seal_of(folder, lambda path: read.get(path) or file_sha256(path)),
    )


def _load_config(folder: Path, place: Path) -> PretrainedConfig:
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with no_warnings():
            return AutoConfig.from_pretrained(place, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers raises many kinds for a configuration that it cannot read
        raise _unloadable(folder, error) from error


def _load_model(
    folder: Path, place: Path, config: PretrainedConfig, tokenizer: PreTrainedTokenizerFast, dtype: torch.dtype
) -> PreTrainedModel:
    """The model of the files in `place`, which are those of `folder`."""
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    _check_size(folder, place, kind, config)
    try:
        with no_warnings():
            model, info = kind.from_pretrained(
                place,
                dtype=dtype,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # many kinds here, too
        raise _unloadable(folder, error) from error
    model.name_or_path = model.config._name_or_path = str(folder)
    detach_from_files(model)
    check_weights(folder, model, info, tokenizer)
    check_base(folder, model, weight_files(place))
    loaded: PreTrainedModel = model.eval()
    return loaded


def detach_from_files(model: PreTrainedModel) -> None:
    """Copy what is mapped from a file: who writes into the file would change the model in memory."""
    copies: dict[tuple[int, torch.Size], torch.Tensor] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        place = tensor.data_ptr(), tensor.shape
        if place not in copies:
            copies[place] = tensor.detach().clone()
        tensor.data = copies[place]


def _check_size(
    folder: Path,
    place: Path,
    kind: type[AutoModelForCausalLM] | type[AutoModelForSeq2SeqLM],
    config: PretrainedConfig,
) -> None:
    """Refuse a configuration of far more parameters than the files have, before memory is taken for them."""
    try:
        with no_warnings(), torch.device("meta"):
            described = kind.from_config(config, trust_remote_code=False)
    except Exception as error:  # as when it is loaded
        raise _unloadable(folder, error) from error
    parameters = sum(parameter.numel() for parameter in described.parameters())
    numbers = sum(size for _, (size, _) in stored_tensors(place))
    # Which parameters are missing is said after loading.
    if parameters > 2 * numbers:
        raise InputError(
            f"{folder / CONFIG} describes a model of {parameters:,} parameters, and the weights have {numbers:,}.",
            "Copy or save the model again.",
        )


def _unloadable(folder: Path, error: Exception) -> InputError:
    return InputError(
        f"{folder} cannot be loaded as a language model ({type(error).__name__}).",
        "Check that transformers loads it: AutoModelForCausalLM.from_pretrained, or AutoModelForSeq2SeqLM.",
    )


def load_tokenizer(folder: Path, read: MutableMapping[Path, str] | None = None) -> PreTrainedTokenizerFast:
    """The folder's fast tokenizer; only a fast one knows which characters a token covers.

    Args:
        read: Gets the SHA-256 of each file as it was read.

    Raises:
        InputError: There is none, it cannot be read, it names files elsewhere, or its patterns take too long.
    """
    tried = check_tokenizer_files(folder)
    # Its class may depend on the model's.
    config = {CONFIG: folder / CONFIG} if (folder / CONFIG).is_file() else {}
    with staged(tokenizer_files(folder) | config, read) as place:
        tokenizer = _load_tokenizer(folder, place)
    if not tokenizer.is_fast:
        raise InputError(f"{folder} has no fast tokenizer.", "Save one: it tells which characters a token covers.")
    check_loaded_tokenizer(folder, tokenizer.backend_tokenizer, tried)
    # The library saves only one of two such tokens, and what it saved may not load again.
    numbers = tokenizer.backend_tokenizer.get_vocab(with_added_tokens=False).values()
    if len(set(numbers)) < len(numbers):
        raise InputError(f"{folder}: the tokenizer has two tokens of one number.", "Save the tokenizer again.")
    return tokenizer


def _load_tokenizer(folder: Path, place: Path) -> PreTrainedTokenizerFast:
    """The tokenizer of the files in `place`, which are those of `folder`."""
    try:
        with without_panic(folder):
            return AutoTokenizer.from_pretrained(place, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers and tokenizers raise many kinds here
        raise unreadable_tokenizer(folder) from error


def save_checkpoint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path, dtype: str) -> None:
    """Write weights in `dtype` (as torch names it), configuration, generation settings and tokenizer into a new folder.

    Of a model with an adapter only the adapter is written. The model itself is converted in place.
    """
    with no_warnings():  # peft's, of an adapted embedding
        model.to(device="cpu", dtype=getattr(torch, dtype)).save_pretrained(folder)  # type: ignore[arg-type, unused-ignore]
    save_tokenizer(tokenizer, folder)


def context_length(model: PreTrainedModel, limit: int = 1024) -> int:
    """The longest window: the model's own context, at most `limit`."""
    config = model.config if model.config.is_encoder_decoder else model.config.get_text_config()
    known = [int(value) for name in CONTEXTS if (value := getattr(config, name, None))]
    return min([limit, *(value for value in known if value > 0)])  # XLNet says -1 for no limit


def random_tokens(model: PreTrainedModel, length: int) -> torch.Tensor:
    """One row of random token ids, shape [1, length]: for trying a model without reading records."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, model.get_input_embeddings().weight.shape[0], (1, length), generator=generator)


@torch.inference_mode()
def _probe(folder: Path, model: PreTrainedModel) -> None:
    """Run the model over its whole context: it must not fail, look at later tokens, or change itself."""
    before = [float(parameter.double().sum()) for parameter in model.parameters()]
    ids = random_tokens(model, context_length(model))
    short = ids[:, :16]
    changed = short.clone()
    changed[0, -1] = (changed[0, -1] + 1) % model.get_input_embeddings().weight.shape[0]

    def logits(tokens: torch.Tensor) -> torch.Tensor:
        source = (ids, torch.ones_like(ids)) if model.config.is_encoder_decoder else ()
        return logits_of(model, Batch(tokens, None, *source)).float()

    try:
        logits(ids)
        original, with_other_end = (logits(tokens)[:, :-1] for tokens in (short, changed))
    except Exception as error:  # an unfamiliar architecture can raise anything
        raise InputError(
            f"{folder}: the model cannot read {ids.shape[1]} tokens ({type(error).__name__}).",
            "Give a causal language model for text.",
        ) from error
    if not torch.isfinite(original).all():
        raise InputError(f"{folder}: the model's logits are not finite numbers.", "Give an undamaged checkpoint.")
    if (original - with_other_end).abs().max() > 1e-4 * original.abs().max():
        raise InputError(f"{folder}: the model looks at later tokens.", "Give a causal language model.")
    if before != [float(parameter.double().sum()) for parameter in model.parameters()]:
        raise InputError(f"{folder}: the model changes its weights when it runs.", "Such models cannot be hardened.")


def _check_finite(folder: Path, model: PreTrainedModel) -> None:
    bad = [name for name, tensor in model.named_parameters() if not torch.isfinite(tensor).all()]
    if bad:
        raise InputError(f"{folder}: the weights of {bad[0]} are not finite numbers.", "Give an undamaged checkpoint.")


def check_weights(
    folder: Path, model: PreTrainedModel, info: dict[str, object], tokenizer: PreTrainedTokenizerFast
) -> None:
    """Refuse a loaded model that is not what its files hold, or that the tokenizer does not fit.

    Args:
        folder: For the message.
        info: What `from_pretrained` gives with `output_loading_info`.

    Raises:
        InputError: Names the first tensor that is wrong.
    """
    missing = sorted(str(key) for key in info.get("missing_keys") or ())  # type: ignore[attr-defined]
    if missing:
        raise InputError(
            f"{folder} lacks {len(missing)} of the model's tensors, {missing[0]} among them.",
            "Give the whole checkpoint; an adapter must be merged first.",
        )
    _check_stored(folder, model)
    _check_finite(folder, model)
    rows = model.get_input_embeddings().weight.shape[0]
    tokens = max(tokenizer.get_vocab().values(), default=-1) + 1
    if tokens > rows:
        raise InputError(
            f"{folder}: the tokenizer has {tokens:,} tokens, the model embeds {rows:,}.",
            "Save the tokenizer that belongs to this model. If tokens were added for an adapter, resize the model by "
            "resize_token_embeddings, load the adapter, and save the result of merge_and_unload.",
        )


def _check_stored(folder: Path, model: PreTrainedModel) -> None:
    """Refuse parameters that are not stored as floats: converted, they would not be what was trained."""
    if is_quantised(folder):
        return
    parameters = {name for name, _ in model.named_parameters()}
    for name, (_, dtype) in stored_tensors(folder):
        if name in parameters and dtype not in DTYPES:
            raise InputError(f"{folder} stores {name} as {dtype}.", "Save it as float32, float16 or bfloat16.")
