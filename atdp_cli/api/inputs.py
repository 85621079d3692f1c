"""What the functions of the API take: paths, or records, models and recipes in memory. Imports nothing heavy."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from atdp_cli.errors import AtdpError, InputError, UsageError
from atdp_cli.events import Event, Notify

if TYPE_CHECKING:
    from pydantic import BaseModel

    from atdp_cli.training.recipe import Stage
    from atdp_cli.training.recipe_file import RecipeFile

PathLike = str | os.PathLike[str]


class Dataset(Protocol):
    """Rows with named columns, as a `datasets.Dataset` has them; each row is a mapping."""

    @property
    def column_names(self) -> Sequence[str]:
        """The names of the columns."""

    def __iter__(self) -> Iterator[Any]:
        """Its rows, in order."""


class SavesPretrained(Protocol):
    """A model or a tokenizer of transformers that is loaded already."""

    save_pretrained: Callable[..., Any]


Records = list[str] | tuple[str, ...] | Dataset
"""Records in memory. A string alone is a path, and several files are a list of `Path`."""

Corpus = PathLike | Records

LoadedOrFolder = PathLike | SavesPretrained
"""A model: its folder, or the model itself."""

OWN_RECIPE = "custom"
"""What reports call a recipe of stages that nobody has named."""

_Document = TypeVar("_Document", bound="BaseModel")


@dataclass(frozen=True, kw_only=True)
class Scratch:
    """A folder that only its owner may read, for what is in memory; it is gone when the call ends, however it ends."""

    folder: Path

    def said(self, text: str) -> str:
        """A text without the folder's path: what is in memory has none."""
        return text.replace(f"{self.folder}{os.sep}", "")

    def document(self, document: _Document) -> _Document:
        """A result without the folder's path."""
        text = document.model_dump_json()
        return document if str(self.folder) not in text else type(document).model_validate_json(self.said(text))

    def notify(self, notify: Notify) -> Notify:
        """Passes events on without the folder's path."""

        def pass_on(event: Event) -> None:
            changed = {
                name: self.said(value)
                for name, value in vars(event).items()
                if isinstance(value, str) and str(self.folder) in value
            }
            notify(type(event)(**vars(event) | changed) if changed else event)

        return pass_on


@contextmanager
def scratch() -> Iterator[Scratch]:
    """The folder of a call, in the system's place for temporary files.

    Raises:
        AtdpError: As it was raised within, without the folder's path.
        InputError: The system cannot use a path that was given.
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="atdp-") as folder:
        place = Scratch(folder=Path(folder).resolve())
        try:
            yield place
        except OSError as error:
            from atdp_cli.cli.terminal.exit import UNUSABLE, unusable_path

            if error.errno not in UNUSABLE:
                raise
            raise unusable_path(error) from error
        except AtdpError as error:
            if str(place.folder) not in f"{error}":
                raise
            raise type(error)(place.said(error.problem), place.said(error.remedy)) from error


def in_memory(value: object) -> bool:
    """Whether records, a model or a recipe are given themselves, and not by a path."""
    return value is not None and not isinstance(value, str | os.PathLike)


def corpus_file(place: Scratch, name: str, corpus: Corpus, columns: Sequence[str]) -> Path:
    """The file of a corpus. Records in memory are written as JSON Lines, an object a record.

    Args:
        name: What messages call it.
        columns: The names of the fields: the first is that of the text, and a data set's others are taken where it
            has them.

    Raises:
        InputError: A record is no string, or a value of the data set is none that JSON has.
    """
    if isinstance(corpus, str | os.PathLike):
        return Path(corpus)
    path = place.folder / f"{name}.jsonl"
    with path.open("x", encoding="utf-8") as file:
        for number, row in enumerate(_rows(corpus, columns), start=1):
            try:
                file.write(json.dumps(row, allow_nan=False) + "\n")
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"{name}: record {number} has a value that JSON has not ({type(error).__name__}).",
                    "Give strings and numbers.",
                ) from error
    return path


def _rows(corpus: Records, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    if isinstance(corpus, list | tuple):
        yield from ({columns[0]: text} for text in corpus)
        return
    if not hasattr(corpus, "column_names"):
        raise UsageError(
            f"A {type(corpus).__name__} is no corpus.", "Give a path, a list of strings, or a data set with columns."
        )
    kept = [name for name in dict.fromkeys(columns) if name in corpus.column_names]
    yield from ({name: row[name] for name in kept} for row in corpus)


def model_folder(place: Scratch, name: str, model: LoadedOrFolder, tokenizer: SavesPretrained | None) -> Path:
    """The folder of a model. One in memory is saved, and is then read and checked as any other.

    Raises:
        UsageError: It has no tokenizer, or is an adapter.
        InputError: It cannot be saved.
    """
    if isinstance(model, str | os.PathLike):
        return Path(model)
    if tokenizer is None:
        raise UsageError("A model in memory needs its tokenizer.", "Give tokenizer.")
    if hasattr(model, "peft_config"):
        raise UsageError(
            "An adapter in memory has no folder of its base.", "Save it and give the folder, or merge_and_unload() it."
        )
    folder = place.folder / name
    try:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    except OSError:
        raise
    except Exception as error:  # transformers raises many kinds for what it cannot save
        raise InputError(
            f"{name} cannot be saved ({type(error).__name__}).", "Give a model of transformers and its tokenizer."
        ) from error
    return folder


def recipe_option(place: Scratch, recipe: "str | RecipeFile | Sequence[Stage] | None") -> str | None:
    """A recipe as the option takes it. One in memory is written as a recipe file, and read and checked as any other.

    Raises:
        UsageError: It is none.
    """
    if recipe is None or isinstance(recipe, str):
        return recipe
    from atdp_cli.training.recipe_file import RecipeFile, write_recipe

    if not isinstance(recipe, RecipeFile):
        recipe = RecipeFile(name=OWN_RECIPE, recipe=tuple(recipe))
    path = place.folder / "recipe.toml"
    write_recipe(path, recipe)
    return str(path)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Torch's number of threads, and what transformers says, as they were before the call. Loads both.

    While it lasts, transformers shows no bars.
    """
    import torch
    from transformers.utils import logging

    threads, verbosity, bars = torch.get_num_threads(), logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
