"""A corpus for a trainer, with fresh decoys each epoch."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch

from atdp_cli.corpus.record import Unit, read_records
from atdp_cli.detection.span_file import read_spans
from atdp_cli.errors import InputError, UsageError
from atdp_cli.hardening.context import Streams
from atdp_cli.hardening.releases import decoy_choice
from atdp_cli.replacement.decoys import WITHOUT
from atdp_cli.replacement.draw import decoy_record
from atdp_cli.replacement.equality import DecoyEquality
from atdp_cli.replacement.frequencies import Frequencies
from atdp_cli.settings import path_of

if TYPE_CHECKING:
    from datasets import Dataset

E = TypeVar("E", bound=Mapping[str, Any])


class DecoyDataset(torch.utils.data.Dataset[E], Generic[E]):
    """The records of a corpus as examples, their flagged spans replaced by decoys of the epoch.

    A Trainer calls `set_epoch` before each epoch. An epoch's decoys are drawn for all records in the corpus's order,
    from one stream, as `atdp harden` draws them: with one seed, epoch 0 here has the texts of its epoch 1. Without a
    seed each epoch has a key of its own from the operating system, so that nobody can draw them again; a run that is
    resumed draws others. With workers each of them draws its own.

    Training on them has the selective guarantee of `--recipe decoys` only where no other text of the corpus is read:
    evaluation on raw records, early stopping by it and checkpoints that were trained on raw text are outside.

    Args:
        corpus: As `atdp detect` reads it.
        spans: What `atdp detect` wrote for it, at a tier without contextual words.
        example: Makes an example of a text: a tokenizer's output, or messages.
        release: How often words and digits occur, as `fit_frequencies` released them with noise; without it all are
            drawn uniformly, which spends nothing.
        equality: Whether values of a record are linked.
        unit, text_field: As for `atdp detect`.
        seed: Reproducible decoys, which protect nobody.

    Raises:
        InputError: The corpus or the spans cannot be read, or hold words of a contextual tier.
        UsageError: One of them is no path, or the unit makes one record of several conversations.
    """

    def __init__(
        self,
        corpus: Path | str,
        spans: Path | str,
        example: Callable[[str], E],
        *,
        release: Frequencies | None = None,
        equality: DecoyEquality = "record",
        unit: Unit = "line",
        text_field: str = "text",
        seed: int | None = None,
    ) -> None:
        records = list(read_records(path_of(corpus, "corpus"), unit=unit, text_field=text_field))
        if any(len(record.conversations) > 1 for record in records):
            raise UsageError(
                f"With unit {unit} a record is several conversations, and an example is one text.",
                f"Write copies by atdp decoy --privacy-unit {unit}, and train on those.",
            )
        self._flagged = [(record.text, of_record) for record, of_record in read_spans(path_of(spans, "spans"), records)]
        if any(span.label in WITHOUT for _, of_record in self._flagged for span in of_record):
            raise InputError(
                f"{spans} holds words of a contextual tier, and decoys stand for entities.",
                "Write it again by atdp detect --tier high-entity.",
            )
        self._example, self._release, self._equality = example, release, equality
        self._streams = Streams(seed=seed)
        # Shared with workers that outlive an epoch.
        self._epoch = torch.zeros(1, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        self._drawn: tuple[int, tuple[str, ...]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the examples to come, from 0."""
        self._epoch[0] = epoch

    @property
    def texts(self) -> tuple[str, ...]:
        """The records of this epoch, in the corpus's order."""
        epoch = int(self._epoch)
        if self._drawn is None or self._drawn[0] != epoch:
            self._drawn = epoch, self._draw(epoch)
        return self._drawn[1]

    def _draw(self, epoch: int) -> tuple[str, ...]:
        choose = decoy_choice(self._streams, 0, f"epoch {epoch + 1}", self._release)
        return tuple(decoy_record([flagged], choose, self._equality)[0].text for flagged in self._flagged)

    def for_trl(self) -> "Dataset":
        """The same as a `datasets.Dataset`, which TRL's trainers insist on; it follows this one's epochs.

        They cannot prepare it, since it changes: `example` gives token ids, and the trainer's settings are
        `dataset_kwargs={"skip_prepare_dataset": True}` and `remove_unused_columns=False`.
        """
        from datasets import Dataset  # an extra

        made = Dataset.from_dict({"place": list(range(len(self)))}).with_transform(self._examples)
        made.set_epoch = self.set_epoch
        return made

    def _examples(self, rows: dict[str, list[int]]) -> dict[str, list[Any]]:
        examples = [self[place] for place in rows["place"]]
        return {name: [example[name] for example in examples] for name in examples[0]}

    def __len__(self) -> int:
        return len(self._flagged)

    def __getitem__(self, place: int) -> E:
        return self._example(self.texts[place])
