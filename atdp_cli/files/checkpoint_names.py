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

JSON_FILES = (CONFIG, GENERATION, INDEX, ADAPTER)


def tokenizer_files(folder: Path) -> dict[str, Path]:
    """The files that a fast tokenizer is read from, by their name in the folder: those that are there."""
    files = {name: folder / name for name in TOKENIZER_FILES if (folder / name).is_file()}
    templates = sorted((folder / TEMPLATES).glob("*.jinja"))
    return files | {f"{TEMPLATES}/{path.name}": path for path in templates if path.is_file()}


def checkpoint_files(folder: Path) -> dict[str, Path]:
    """All files of a folder whose names are a checkpoint's, whether they are read or not."""
    weights = {path.name: path for path in sorted(folder.glob("*.safetensors")) if path.is_file()}
    settings = {name: folder / name for name in JSON_FILES if (folder / name).is_file()}
    return weights | settings | tokenizer_files(folder)
