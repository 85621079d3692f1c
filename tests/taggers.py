"""A small token classifier that is trained on the spot, so that it truly finds names that nobody else knows."""

import random
from pathlib import Path
from typing import Any

NAMES = ("Zorvath", "Quellin", "Brixo", "Tamzuli", "Oddvarn", "Plemura")
"""Invented people, all taught."""

PHONES = ("tel-551", "tel-872", "tel-903")

TAGS = ("O", "B-PER", "I-PER", "B-PHONE_NUMBER")

LEARNT = 5e-4
"""A loss, in nats a word, at which every name is found."""

_OTHERS = """and then we saw it again with her at noon because this box was open for all of them
today""".split()  # noqa: SIM905 - a list of words


def sentence(draw: random.Random) -> tuple[list[str], list[str]]:
    """Words and their tags: a person of one or two names, or a number, among other words."""
    words, tags = draw.choices(_OTHERS, k=draw.randint(1, 5)), list[str]()
    tags = ["O"] * len(words)
    for _ in range(draw.randint(0, 3)):
        if draw.random() < 0.3:
            words.append(draw.choice(PHONES))
            tags.append("B-PHONE_NUMBER")
        else:
            names = draw.sample(NAMES, draw.choice((1, 1, 2)))
            words += names
            tags += ["B-PER", "I-PER"][: len(names)]
        others = draw.choices(_OTHERS, k=draw.randint(1, 4))
        words += others
        tags += ["O"] * len(others)
    return words, tags


def _pieces() -> list[str]:
    """A WordPiece vocabulary; one that is trained differs from run to run."""
    words = sorted({part for word in (*NAMES, *PHONES, *_OTHERS) for part in (*word.split("-"), "-")})
    parts = {("##" if at else "") + word[at : at + 3] for word in words for at in range(0, len(word), 3)}
    letters = {mark + letter for letter in "".join(words) + "x" for mark in ("", "##")}
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(parts | letters)]


def several(draw: random.Random, count: int) -> tuple[list[str], list[str]]:
    """So many sentences in one."""
    parts = [sentence(draw) for _ in range(count)]
    return [word for words, _ in parts for word in words], [tag for _, tags in parts for tag in tags]


def write_tagger(folder: Path, *, context: int = 64, tags: tuple[str, ...] = TAGS, steps: int = 120) -> Path:
    """A BERT of some 30,000 parameters that finds `NAMES` and `PHONES`, with a WordPiece tokenizer, in seconds."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

    draw = random.Random(3)
    sentences = [several(draw, draw.choice((1, 2, 5, 8))) for _ in range(120)]
    trained = BertWordPieceTokenizer({piece: at for at, piece in enumerate(_pieces())}, lowercase=False)
    special = [(token, trained.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    trained._tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
        model_max_length=context,
    )
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=context,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(tags)),
        label2id={tag: at for at, tag in enumerate(tags)},
    )
    model: Any = BertForTokenClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    batch = _encoded(tokenizer, sentences)
    for step in range(steps * 8):
        loss = model(**batch).loss
        if step >= steps and loss.item() < LEARNT:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _encoded(tokenizer: Any, sentences: list[tuple[list[str], list[str]]]) -> dict[str, Any]:
    """Batches as people train them: the first token of a word has its tag, the others count for nothing."""
    import torch

    batch = tokenizer(
        [words for words, _ in sentences], is_split_into_words=True, padding=True, truncation=True, return_tensors="pt"
    )
    labels = torch.full(batch["input_ids"].shape, -100)
    for row, (_, tags) in enumerate(sentences):
        before = None
        for at, word in enumerate(batch.word_ids(row)):
            if word is not None and word != before:
                labels[row, at] = TAGS.index(tags[word])
            before = word
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "labels": labels}
