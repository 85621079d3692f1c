"""The names of a checkpoint's files, as transformers and peft save and read them."""

from pathlib import Path

CONFIG, GENERATION = "config.json", "generation_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

GGUF = ".gguf"
"""A folder may have one file with this suffix in place of a model's configuration and weights."""

ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""A LoRA adapter's folder has these in place of a model's configuration and weights."""

TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
TOKENIZER_FILES = (
    *(TOKENIZER, TOKENIZER_CONFIG),
    *("special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
)
TEMPLATES = "additional_chat_templates"
"""A folder of further chat templates, of the tokenizer too."""

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
"""How files of weights end that are never loaded."""

SAFETENSORS = ".safetensors"
WEIGHT_SUFFIXES = (SAFETENSORS, GGUF, *PICKLES)

JSON_FILES = (CONFIG, GENERATION, INDEX, ADAPTER)


def tokenizer_files(folder: Path) -> dict[str, Path]:
    """The files that a fast tokenizer is read from, by their name in the folder: those that are there."""
    files = {name: folder / name for name in TOKENIZER_FILES if (folder / name).is_file()}
    templates = sorted((folder / TEMPLATES).glob("*.jinja"))
    return files | {f"{TEMPLATES}/{path.name}": path for path in templates if path.is_file()}


def checkpoint_files(folder: Path) -> dict[str, Path]:
    """All files of a folder whose names are a checkpoint's, whether they are read or not.

    GGUF and pickles are among them unless there is a model in safetensors, beside which nothing reads them.
    """
    settings = {name: folder / name for name in JSON_FILES if (folder / name).is_file()}
    weights = {path.name: path for path in sorted(folder.glob("*")) if is_weights(path)}
    plain = {name: path for name, path in weights.items() if path.suffix == SAFETENSORS}
    whole = plain and settings.keys() & {CONFIG, ADAPTER}
    return (plain if whole else weights) | settings | tokenizer_files(folder)


def is_weights(path: Path) -> bool:
    """Whether a file is of a format of weights, by its name."""
    return path.suffix.lower() in WEIGHT_SUFFIXES and path.is_file()


def holds_model(folder: Path) -> bool:
    """Whether a folder has a model's or an adapter's configuration, or weights."""
    return any((folder / name).is_file() for name in (CONFIG, ADAPTER)) or any(map(is_weights, folder.glob("*")))
