"""What a model's card inherits from the card of the checkpoint that it was made from."""

import re
from pathlib import Path
from typing import Any

from atdp_cli.files.front_matter import front_matter
from atdp_cli.report.document import CardEntry, Loader

CARD = "README.md"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
"""A licence, a language, a half of a repository's name; nothing that could be a sentence."""


def inherited_card(folder: Path, *, encoder: bool, adapter: bool) -> CardEntry:
    """Licence, language, task and base model as the metadata of `folder`'s card state them, where they are well-formed.

    The folder's own name stays out of it: it may say whose text the model was trained on.

    Args:
        encoder: Whether the model has an encoder and a decoder.
        adapter: Whether a LoRA adapter is written and not a whole model.
    """
    metadata = front_matter(folder / CARD)
    link = metadata.get("license_link")
    return CardEntry(
        loader=_loader(encoder=encoder, adapter=adapter),
        pipeline_tag=_name(metadata.get("pipeline_tag")) or (None if encoder else "text-generation"),
        base_model=tuple(name for name in _several(metadata.get("base_model")) if _repository(name)),
        license=_name(metadata.get("license")),
        license_name=_name(metadata.get("license_name")),
        license_link=link if isinstance(link, str) and re.fullmatch(r"https://[!-~]{1,200}", link) else None,
        language=tuple(name for name in _several(metadata.get("language")) if _name(name)),
    )


def _loader(*, encoder: bool, adapter: bool) -> Loader:
    if adapter:
        return "AutoPeftModelForSeq2SeqLM" if encoder else "AutoPeftModelForCausalLM"
    return "AutoModelForSeq2SeqLM" if encoder else "AutoModelForCausalLM"


def _several(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [name for name in values if isinstance(name, str)]


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and NAME.fullmatch(value) else None


def _repository(name: str) -> bool:
    """Whether it names a repository of the hub, as `owner/name`, and no folder at hand."""
    halves = name.split("/")
    return len(halves) <= 2 and all(_name(half) for half in halves) and not Path(name).exists()
