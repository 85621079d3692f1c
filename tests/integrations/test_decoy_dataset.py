"""Decoys that are new each epoch, in real trainers, and those of `atdp harden` where they share a stream."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

from atdp_cli.corpus.record import read_records
from atdp_cli.corpus.spans import FlaggedRecord
from atdp_cli.detection.span_file import read_spans
from atdp_cli.errors import InputError, UsageError
from atdp_cli.hardening.context import Streams
from atdp_cli.hardening.releases import decoy_choice, fit_frequencies
from atdp_cli.integrations.transformers import DecoyDataset
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.replacement.draw import decoy_record, decoy_text


def as_text(text: str) -> dict[str, Any]:
    return {"text": text}


def flagged(corpus: Path, spans: Path) -> list[FlaggedRecord]:
    return [FlaggedRecord(record, actual) for record, actual in read_spans(spans, read_records(corpus))]


def test_paths_may_be_text_and_a_dataset_is_no_path(corpus: Path, span_file: Path) -> None:
    from datasets import Dataset, DatasetDict

    assert len(DecoyDataset(str(corpus), str(span_file), as_text)) == len(DecoyDataset(corpus, span_file, as_text))
    rows = Dataset.from_dict({"text": ["Ada moved"]})
    for wrong in (rows, DatasetDict({"train": rows}), ["Ada moved"], "Ada moved " * 100):
        given: list[tuple[Any, Any]] = [(wrong, span_file), (corpus, wrong)]
        for place, spans in given:
            with pytest.raises(UsageError, match="is no path") as caught:
                DecoyDataset(place, spans, as_text)
            assert "Ada" not in str(caught.value)


def test_a_record_of_several_conversations_is_no_example(tmp_path: Path) -> None:
    corpus, spans = tmp_path / "chats.jsonl", tmp_path / "spans.jsonl"
    row = {"who": "a", "messages": [{"role": "user", "content": "Emma Clarke"}]}
    for rows, problem in ((1, None), (2, "train on those")):
        corpus.write_text(f"{json.dumps(row)}\n" * rows)
        spans.write_text('{"id": "a", "spans": []}\n')
        with nullcontext() if problem is None else pytest.raises(UsageError, match=problem):
            DecoyDataset(corpus, spans, as_text, unit="who", text_field="messages")


@pytest.mark.parametrize("epoch", [0, 3])
def test_with_one_seed_its_texts_are_those_that_harden_reads(corpus: Path, span_file: Path, epoch: int) -> None:
    records = flagged(corpus, span_file)
    release, _ = fit_frequencies(records, 1.0, insecure_stream(1, "release"))
    choose = decoy_choice(Streams(seed=9), 0, f"epoch {epoch + 1}", release)
    expected = tuple(decoy_text(record.record.text, record.spans, choose).text for record in records)
    actual = DecoyDataset(corpus, span_file, as_text, release=release, seed=9)
    actual.set_epoch(epoch)
    assert actual.texts == expected
    assert [actual[place] for place in range(len(actual))] == [{"text": text} for text in expected]
    choose = decoy_choice(Streams(seed=9), 0, f"epoch {epoch + 1}", None)
    alike = DecoyDataset(corpus, span_file, as_text, equality="record", seed=9)
    alike.set_epoch(epoch)
    assert alike.texts == tuple(
        decoy_record([(record.record.text, record.spans)], choose, "record")[0].text for record in records
    )


def test_no_flagged_text_is_left_and_nothing_else_changes(corpus: Path, span_file: Path) -> None:
    """Each epoch is another draw, also of a second data set: the key is the operating system's."""
    first, second = (DecoyDataset(corpus, span_file, as_text) for _ in range(2))
    seen = [first.texts, second.texts]
    first.set_epoch(1)
    seen.append(first.texts)
    assert len(set(seen)) == 3
    assert first.texts is first.texts, "drawn once an epoch"
    for texts in seen:
        for text, record in zip(texts, flagged(corpus, span_file), strict=True):
            before = record.record.text[: record.spans[0].start] if record.spans else record.record.text
            assert text.startswith(before)
    numbers = {record.record.text.split()[-1] for record in flagged(corpus, span_file)}
    drawn = {text.split()[-1] for text in seen[0]}
    assert len(numbers & drawn) < len(numbers) / 10


def reading(loaded: Checkpoint, seen: list[tuple[int, ...]]) -> Callable[[str], dict[str, list[int]]]:
    def example(text: str) -> dict[str, list[int]]:
        ids = loaded.tokenizer(text)["input_ids"][:60]
        seen.append(tuple(ids))
        return {"input_ids": ids, "labels": ids}

    return example


@pytest.mark.ci
def test_a_trainer_reads_new_decoys_each_epoch(
    corpus: Path, span_file: Path, checkpoint_folder: Path, tmp_path: Path
) -> None:
    loaded, seen = load_checkpoint(checkpoint_folder), list[tuple[int, ...]]()
    dataset = DecoyDataset(corpus, span_file, reading(loaded, seen), seed=2)

    def collate(batch: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        ids = torch.tensor([row["input_ids"] + [0] * (60 - len(row["input_ids"])) for row in batch])
        return {"input_ids": ids, "labels": ids}

    settings = {"per_device_train_batch_size": 50, "num_train_epochs": 3, "use_cpu": True, "disable_tqdm": True}
    arguments = TrainingArguments(str(tmp_path), report_to="none", save_strategy="no", **settings)
    Trainer(model=loaded.model, args=arguments, train_dataset=dataset, data_collator=collate).train()
    assert_epochs(seen, dataset, loaded)


def assert_epochs(seen: list[tuple[int, ...]], dataset: DecoyDataset[Any], loaded: Checkpoint) -> None:
    """What was read, epoch by epoch, is what these epochs have, in the sampler's order."""
    read, size = list(seen), len(dataset)
    assert len(read) == 3 * size
    for epoch in range(3):
        dataset.set_epoch(epoch)
        expected = sorted(tuple(loaded.tokenizer(text)["input_ids"][:60]) for text in dataset.texts)
        assert sorted(read[epoch * size : (epoch + 1) * size]) == expected


@pytest.mark.ci
def test_an_sft_trainer_reads_new_decoys_each_epoch(
    sft: Callable[..., Any], corpus: Path, span_file: Path, loaded: Checkpoint
) -> None:
    seen: list[tuple[int, ...]] = []
    dataset = DecoyDataset(corpus, span_file, reading(loaded, seen), seed=2)
    settings = {"remove_unused_columns": False, "dataset_kwargs": {"skip_prepare_dataset": True}}
    trainer = sft(dataset.for_trl(), num_train_epochs=3, per_device_train_batch_size=50, **settings)
    seen.clear()  # it looked at the first example
    trainer.train()
    assert_epochs(seen, dataset, loaded)


def test_workers_that_outlive_an_epoch_hear_of_the_next(corpus: Path, span_file: Path) -> None:
    dataset = DecoyDataset(corpus, span_file, as_text, seed=4)
    loader = DataLoader(dataset, batch_size=50, num_workers=1, persistent_workers=True)
    read = []
    for epoch in range(2):
        dataset.set_epoch(epoch)
        read.append([text for batch in loader for text in batch["text"]])
    assert read == [list(alone(corpus, span_file, epoch).texts) for epoch in range(2)]


def alone(corpus: Path, spans: Path, epoch: int) -> DecoyDataset[Any]:
    dataset = DecoyDataset(corpus, spans, as_text, seed=4)
    dataset.set_epoch(epoch)
    return dataset


def test_words_of_a_contextual_tier_are_refused(corpus: Path, span_file: Path, tmp_path: Path) -> None:
    lines = span_file.read_text().splitlines()
    first = json.loads(lines[0])
    first["spans"] = [{"start": 0, "end": 1, "label": "VERB"}]
    contextual = tmp_path / "spans.jsonl"
    contextual.write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    with pytest.raises(InputError, match="contextual tier"):
        DecoyDataset(corpus, contextual, as_text)
