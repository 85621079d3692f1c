"""Repeated values: which mentions count, and that what is counted is what greedy decoding says."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import FlaggedRecord, Span, Tier
from atdp_cli.hardening.encode import Encoding, encode
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.model.perplexity import RepeatedValues, repeated_values
from atdp_cli.model.windows import Window
from atdp_cli.training.recipe import TextVariant

NAMES = ("Emma Clarke", "Omar Haddad", "Lena Fischer", "Berlin", "482915", "731604")


@pytest.fixture(scope="module")
def checkpoint(checkpoint_folder: Path) -> Checkpoint:
    return load_checkpoint(checkpoint_folder)


def windows_of(checkpoint: Checkpoint, texts: Sequence[str], context: int = 64) -> list[Window]:
    """The windows of texts in which every mention of `NAMES` is flagged, and the first names too."""
    flagged = []
    for number, text in enumerate(texts):
        values = {*NAMES, *(name.split()[0] for name in NAMES)}
        places = {
            at: max((value for value in values if text.startswith(value, at)), key=len, default="")
            for at in range(len(text))
        }
        spans = [Span(at, at + len(value), "PERSON", "ner", Tier.LOW_ENTITY) for at, value in places.items() if value]
        flagged.append(FlaggedRecord(Record(str(number), text), tuple(spans)))
    encoding = Encoding(tokenizer=checkpoint.tokenizer, context=context, windows=8)
    return [window for windows in encode(flagged, TextVariant.RAW, encoding) for window in windows]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Emma Clarke said the order was ready, so Emma Clarke asked.", 1),
        ("Emma Clarke said the order was ready, so Emma asked.", 1),
        ("Emma said the order was ready, so Emma Clarke asked.", 0),
        ("Emma Clarke said Omar Haddad asked Lena Fischer.", 0),
        ("Emma Clarke, Omar Haddad: Emma Clarke, Omar Haddad; 482915, 482915.", 3),
        ("Emma Clarke and EMMA and Emma Clarke", 1),
        ("nobody asked nobody.", 0),
    ],
)
def test_a_mention_counts_where_the_text_has_the_value_before(checkpoint: Checkpoint, text: str, values: int) -> None:
    [window] = windows_of(checkpoint, [text])
    assert repeated_values(checkpoint.model, checkpoint.tokenizer, [window]).values == values


def test_a_mention_whose_first_is_in_another_window_does_not_count(checkpoint: Checkpoint) -> None:
    text = "Emma Clarke said the order was ready, so Emma Clarke asked."
    windows = windows_of(checkpoint, [text], context=8)
    assert len(windows) > 2
    assert repeated_values(checkpoint.model, checkpoint.tokenizer, windows).values == 0


def test_what_is_counted_is_what_greedy_decoding_says(checkpoint: Checkpoint) -> None:
    """By forward passes over the text before each mention, token by token, of a model that has learnt some of them."""
    dice = random.Random(2)
    texts = [
        f"{name} said {dice.choice(('when', 'after'))} {dice.choice(NAMES)} asked for {name} {dice.choice(NAMES)}."
        for name in dice.choices(NAMES, k=60)
    ]
    windows = windows_of(checkpoint, texts)
    model = learnt(checkpoint, windows)
    actual = repeated_values(model, checkpoint.tokenizer, windows, tokens_per_batch=200)
    assert actual == by_decoding(model, checkpoint, windows)
    assert 0 < actual.whole < actual.values
    assert actual.whole < actual.right < actual.tokens
    assert actual == repeated_values(model, checkpoint.tokenizer, windows[::-1], tokens_per_batch=50)


def learnt(checkpoint: Checkpoint, windows: Sequence[Window]) -> torch.nn.Module:
    model: torch.nn.Module = checkpoint.model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for window in [*windows] * 3:
        ids = torch.from_numpy(window.token_ids)[None]
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


@torch.inference_mode()
def by_decoding(model: torch.nn.Module, checkpoint: Checkpoint, windows: Sequence[Window]) -> RepeatedValues:
    values = whole = tokens = right = 0
    for window in windows:
        ids, flags = window.token_ids.tolist(), [*window.sensitive.tolist(), False]
        known: set[str] = set()
        start = None
        for place, flagged in enumerate(flags):
            if flagged and start is None:
                start = place
            if flagged or start is None:
                continue
            text = checkpoint.tokenizer.decode(ids[start:place]).strip().casefold()
            if text in known:
                said: list[int] = []
                for _ in range(place - start):
                    logits = model(input_ids=torch.tensor([ids[:start] + said])).logits
                    said.append(int(logits[0, -1].argmax()))
                forced = [
                    int(model(input_ids=torch.tensor([ids[:at]])).logits[0, -1].argmax()) == ids[at]
                    for at in range(start, place)
                ]
                assert all(forced) == (said == ids[start:place])
                values, whole = values + 1, whole + all(forced)
                tokens, right = tokens + len(forced), right + sum(forced)
            known |= {text, *text.split()}
            start = None
    return RepeatedValues(values=values, whole=whole, tokens=tokens, right=right)
