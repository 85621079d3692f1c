"""A checkpoint folder, checked before anything of it is loaded. Never imports torch."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from atdp_cli.errors import InputError
from atdp_cli.files.checkpoint_names import (
    ADAPTER,
    ADAPTER_WEIGHTS,
    CONFIG,
    GENERATION,
    GGUF,
    INDEX,
    PICKLES,
    TOKENIZER,
    TOKENIZER_CONFIG,
    TOKENIZER_FILES,
    WEIGHTS,
)
from atdp_cli.files.documents import NAME_BYTES, parse_json, read_whole
from atdp_cli.model.config_checks import (
    QUANTISED,
    check_factors,
    check_layers,
    check_numbers,
    check_quantised,
    refuse_code,
)

DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""Names in safetensors and in torch. float64 is read, and written as float32."""

WIDTHS = ("hidden_size", "n_embd", "d_model")
"""Names of the width of hidden states in configurations."""


CHANGES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
"""How adapters begin that are what a base model lacks once its own weights are changed."""


HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""How the Hugging Face Hub names a model."""


def check_folder(folder: Path, *, audited: bool = False) -> None:
    """Refuse a folder that cannot be a Hugging Face language model saved as safetensors, with its tokenizer.

    Args:
        audited: Quantised weights are allowed: the model is audited, and not trained further.

    Raises:
        InputError: Names the file that is missing, damaged or unsafe.
    """
    if not folder.is_dir():
        what = "is a pickle, which is never loaded" if folder.suffix in PICKLES else "is no folder"
        remedy = "Give a model folder as save_pretrained writes it; nothing is downloaded by name."
        if HUB_ID.fullmatch(str(folder)):
            remedy = f"If it is on the Hub: hf download {folder} --local-dir {folder.name}, and give {folder.name}."
        raise InputError(f"{folder} {what}.", remedy)
    _check_regular(folder)
    if is_adapter(folder):
        _check_adapter(folder)
        return
    if os.path.lexists(folder / ADAPTER):
        raise InputError(
            f"{folder} holds a model and {ADAPTER}, which transformers would add to it.",
            "Merge the adapter, or put it into a folder of its own.",
        )
    if (file := gguf_of(folder)) is not None:
        _check_gguf(file, audited=audited)
        return
    config = read_settings(folder / CONFIG)
    quantised = config.pop(QUANTISED, None) if audited else None
    if quantised:
        check_quantised(folder / CONFIG, quantised)
    refuse_code(folder / CONFIG, config)
    check_numbers(folder / CONFIG, config)
    if (folder / GENERATION).is_file():
        refuse_code(folder / GENERATION, read_settings(folder / GENERATION))
    check_layers(folder / CONFIG, config, len(_check_index(folder)))
    check_factors(folder / CONFIG, config)
    _check_tokenizer(folder, needed=True)


def is_adapter(folder: Path) -> bool:
    """Whether the folder holds a LoRA adapter, not a whole model."""
    return (folder / ADAPTER).is_file() and not (folder / CONFIG).is_file()


def gguf_of(folder: Path) -> Path | None:
    """The one GGUF file of a folder that has no configuration; None where there is none.

    Raises:
        InputError: There are several.
    """
    if any((folder / name).is_file() for name in (CONFIG, ADAPTER)):
        return None
    files = sorted(path for path in folder.glob(f"*{GGUF}") if path.is_file())
    if len(files) > 1:
        raise InputError(f"{folder} holds {len(files)} files *{GGUF}.", "Put each into a folder of its own.")
    return files[0] if files else None


def base_of(folder: Path) -> Path:
    """The folder of an adapter's base model: the path in its configuration, or a folder of that name beside it.

    Raises:
        InputError: There is no such folder.
    """
    name = read_settings(folder / ADAPTER).get("base_model_name_or_path")
    named = Path(str(name or "."))
    for base in (named, folder.resolve().parent / named.name):
        if name and os.path.isfile(base / CONFIG):  # noqa: PTH113 - also of a name that is too long
            return base
    raise InputError(
        f"{folder} adapts the model {name}, which is not at hand.",
        f"Put that model's folder beside the adapter's, or name it in {ADAPTER}.",
    )


def with_bases(paths: Iterable[Path]) -> Iterator[Path]:
    """The paths, and behind each adapter's folder that of its base model, if it is at hand."""
    for path in paths:
        yield path
        with suppress(InputError):
            if is_adapter(path):
                yield base_of(path)


def tokenizer_folder(folder: Path) -> Path:
    """The folder with the tokenizer: for an adapter without one, that of its base model."""
    return base_of(folder) if is_adapter(folder) and not (folder / TOKENIZER).is_file() else folder


def model_files(folder: Path) -> dict[str, Path]:
    """The files that a model or an adapter is loaded from, without its tokenizer and its base, by their names.

    Raises:
        InputError: There are no weights.
    """
    files = {file.name: file for file in weight_files(folder)}
    if gguf_of(folder) is not None:
        return files
    if is_adapter(folder):
        return files | {ADAPTER: folder / ADAPTER}
    settings = (CONFIG, GENERATION, *(() if WEIGHTS in files else (INDEX,)))
    return files | {name: folder / name for name in settings if (folder / name).is_file()}


def _check_regular(folder: Path) -> None:
    """Refuse a pipe or a device under the name of a file that transformers or peft would read."""
    for name in (CONFIG, GENERATION, WEIGHTS, INDEX, ADAPTER, ADAPTER_WEIGHTS, *TOKENIZER_FILES):
        path = folder / name
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{path} is no regular file.", "Copy or save the model again.")


def _check_adapter(folder: Path) -> None:
    config = read_settings(folder / ADAPTER)
    refuse_code(folder / ADAPTER, config)
    check_numbers(folder / ADAPTER, config)
    if config.get("peft_type") != "LORA":
        raise InputError(f"{folder} is an adapter of type {config.get('peft_type')}.", "Give a LoRA adapter.")
    if str(start := config.get("init_lora_weights")).startswith(CHANGES_BASE):
        raise InputError(
            f"{folder} changes weights of its base as it is loaded (init_lora_weights is {start}).",
            "Merge it: load it with peft, merge_and_unload, and save_pretrained.",
        )
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise InputError(f"{folder} has no {ADAPTER_WEIGHTS}.", "Save the adapter as safetensors.")
    _tensor_names(folder / ADAPTER_WEIGHTS)
    _check_tokenizer(folder)
    check_folder(base_of(folder))


def _check_tokenizer(folder: Path, *, needed: bool = False) -> None:
    if needed and not (folder / TOKENIZER).is_file():
        raise InputError(f"{folder} has no {TOKENIZER}.", "Save the model's fast tokenizer into the folder.")
    if (folder / TOKENIZER_CONFIG).is_file():
        refuse_code(folder / TOKENIZER_CONFIG, read_settings(folder / TOKENIZER_CONFIG))


def _check_gguf(file: Path, *, audited: bool) -> None:
    if not audited:
        raise InputError(
            f"{file} is GGUF, which is audited and never trained.", "Give the model as it was before the conversion."
        )
    _check_tokenizer(file.parent, needed=True)


def is_quantised(folder: Path) -> bool:
    """Whether a model's weights are quantised, or may be, in GGUF; those of an adapter never are."""
    if is_adapter(folder):
        return False
    return gguf_of(folder) is not None or bool(read_settings(folder / CONFIG).get(QUANTISED))


def _check_index(folder: Path) -> set[str]:
    """The names of the stored tensors, each in one file and where the index says it is.

    Raises:
        InputError: One is stored twice or somewhere else; loaders differ in which one they read.
    """
    places = [(name, file.name) for file in weight_files(folder) for name in _tensor_names(file)]
    index = read_settings(folder / INDEX).get("weight_map") if (folder / INDEX).is_file() else dict(places)
    if not isinstance(index, dict) or sorted(index.items()) != sorted(places):
        raise InputError(
            f"{folder / INDEX} does not say where each of the stored tensors is.",
            "Save the model again with save_pretrained.",
        )
    return set(index)


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The safetensors files that hold the weights, one or all shards of the index; or the GGUF file.

    Raises:
        InputError: There are none, only pickles, or the index names a file that is not in the folder.
    """
    if is_adapter(folder):
        return (folder / ADAPTER_WEIGHTS,)
    if (file := gguf_of(folder)) is not None:
        return (file,)
    if (folder / WEIGHTS).is_file():
        return (folder / WEIGHTS,)
    if (folder / INDEX).is_file():
        shards = read_settings(folder / INDEX).get("weight_map")
        if not isinstance(shards, dict) or not shards:
            raise InputError(f"{folder / INDEX} has no weight_map.", "Save the model again.")
        return tuple(_shard(folder, name) for name in sorted({str(name) for name in shards.values()}))
    if any(file.suffix in PICKLES for file in folder.iterdir()):
        raise InputError(
            f"{folder} holds its weights as a pickle, which is never loaded.",
            "Save them as safetensors: model.save_pretrained(folder) in a place where you trust the file.",
        )
    raise InputError(f"{folder} has no {WEIGHTS}.", "Give a model folder as save_pretrained writes it.")


def stored_dtype(folder: Path) -> str:
    """The weights' dtype as torch names it, such as `float16`: that of the largest tensor."""
    _, name = max((about for _, about in stored_tensors(folder)), key=lambda about: about[0])
    if name not in DTYPES:
        raise InputError(f"{folder} stores its weights as {name}.", "Save them as float32, float16 or bfloat16.")
    return DTYPES[name]


def stored_tensors(folder: Path) -> Iterator[tuple[str, tuple[int, str]]]:
    """Each stored tensor's name, how many numbers it has, and its dtype as safetensors names it."""
    import math

    from safetensors import safe_open

    for file in weight_files(folder):
        with safe_open(file, framework="np") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - a handle, not a mapping
                part = tensors.get_slice(name)
                yield name, (math.prod(part.get_shape()), part.get_dtype())


def hidden_width(folder: Path) -> int | None:
    """The width of the model's hidden states by its configuration; None where that does not name it.

    Raises:
        InputError: The folder has no readable configuration.
    """
    config = read_settings((base_of(folder) if is_adapter(folder) else folder) / CONFIG)
    width = next((config[name] for name in WIDTHS if name in config), None)
    return width if isinstance(width, int) and width > 0 else None


def _shard(folder: Path, name: str) -> Path:
    if Path(name).name != name or len(name.encode("utf-8", "replace")) > NAME_BYTES or not (folder / name).is_file():
        shown = name if len(name) <= NAME_BYTES else f"{name[:NAME_BYTES]}…"
        raise InputError(f"{folder / INDEX} names {shown!r}, which is not in the folder.", "Restore the missing file.")
    return folder / name


def _tensor_names(file: Path) -> list[str]:
    """The names of the tensors in a safetensors file, at least one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as tensors:
            names = list(tensors.keys())
    except PermissionError as error:
        raise InputError(f"{file} cannot be read.", "Check its permissions.") from error
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file} is not a whole safetensors file.", "Copy or save it again.") from error
    if not names:
        raise InputError(f"{file} holds no tensors.", "Copy or save it again.")
    return names


def read_settings(file: Path) -> dict[str, Any]:
    """The JSON object in a file of a checkpoint.

    Raises:
        InputError: It is missing, or no such file.
    """
    if not file.is_file():
        raise InputError(f"{file.parent} has no {file.name}.", "Give a model folder as save_pretrained writes it.")
    try:
        document = parse_json(read_whole(file).decode("utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{file} is not valid JSON.", "Copy or save it again.") from error
    if not isinstance(document, dict):
        raise InputError(f"{file} holds no JSON object.", "Copy or save it again.")
    return document
