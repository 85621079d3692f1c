"""Small corpora with numbers, their spans files, and tokenizers with tokens of several digits."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.number_search import LocatedNumbers, find_numbers
from atdp_cli.text.corpus.records import read_records
from atdp_cli.text.detection.span_file import spans_line
from atdp_cli.text.detection.spans import Span, Tier
from tests.text.corpus.corpora import written

CONTEXT = 64


def bpe_of(lines: Sequence[str], **settings: str) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer with tokens of several digits, so that alternatives differ in length."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=360, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)


DICE = random.Random(3)
NUMBERS = [f"{DICE.choice(('12', '345', '77', '608'))}{DICE.randrange(100)}" for _ in range(400)]
START = {"bos_token": "<s>", "eos_token": "</s>"}
BPE = bpe_of([f"My PIN is {number}, he said." for number in NUMBERS], **START)


NO_START = bpe_of([f"My PIN is {number}, he said." for number in NUMBERS])


def spotted(folder: Path, corpus: Path, numbers: Sequence[Sequence[str]], **options: Any) -> Path:
    """A spans file with each record's numbers at their first place."""
    lines = []
    for record, own in zip(read_records(corpus, **options), numbers, strict=True):
        spans = [
            Span(
                record.text.index(number), record.text.index(number) + len(number), "NUMBER", "pattern", Tier.LOW_ENTITY
            )
            for number in own
        ]
        lines.append(spans_line(record.id, spans) + "\n")
    return written(folder, "spans.jsonl", "".join(lines))


def located(folder: Path, lines: Sequence[str], numbers: Sequence[str], **settings: Any) -> LocatedNumbers:
    """The numbers of a text corpus, one a record."""
    corpus = written(folder, "corpus.txt", "".join(line + "\n" for line in lines))
    return find_numbers(corpus, spotted(folder, corpus, [[number] for number in numbers]), **settings)


LINES = [
    "Call Ana: {4711} 🙂, she said",
    "{braces:4} and {} before 555-1234: no",
    "Zoë's PIN is 0042",
    "Ünïcödé 👩‍👩‍👧 code 98-76.",
]
OWN = ["4711", "5-1234", "0042", "98-76"]
