"""A trained token classifier as the detector's: what it finds, alone and in batches, in short texts and long ones."""

import json
import pickle
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BertModel,
    DistilBertConfig,
    DistilBertForTokenClassification,
    RobertaConfig,
    RobertaForTokenClassification,
)

from atdp_cli.detection.entities import EntityMatch, TextWords
from atdp_cli.detection.token_classifier import TokenClassifier, load_token_classifier
from atdp_cli.detection.token_classifier_folder import classifier_identity
from atdp_cli.errors import InputError
from tests.taggers import NAMES, PHONES, sentence

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def classifier(tagger_folder: Path) -> TokenClassifier:
    return load_token_classifier(tagger_folder)


def with_words(text: str) -> TextWords:
    return text, [match.span() for match in re.finditer(r"[\w-]+|[^\w\s]", text)]


def actual(classifier: TokenClassifier, *texts: str) -> list[list[tuple[str, str]]]:
    results = classifier([with_words(text) for text in texts])
    return [
        [(text[start:end], label) for start, end, label, _ in entities]
        for text, entities in zip(texts, results, strict=True)
    ]


def test_it_finds_what_it_was_taught(classifier: TokenClassifier) -> None:
    draw = random.Random(8)
    for _ in range(50):
        words, tags = sentence(draw)
        names = [word for word, tag in zip(words, tags, strict=True) if tag.endswith("PER")]
        [entities] = actual(classifier, " ".join(words))
        assert " ".join(text for text, label in entities if label == "PERSON").split() == names
        assert [text for text, label in entities if label == "PHONE"] == [word for word in words if word in PHONES]


def test_a_text_gives_the_same_alone_and_in_any_batch_bit_for_bit(classifier: TokenClassifier) -> None:
    draw = random.Random(4)
    texts = [" ".join(sentence(draw)[0] * draw.choice((1, 1, 1, 2, 9, 40))) for _ in range(60)]
    texts += ["", " ", "\n\t", "?", "日本 Zorvath", "e\u0301 Quellin", "x" * 900, "[SEP] Brixo [MASK]"]
    alone = {text: classifier([with_words(text)])[0] for text in texts}
    for _ in range(4):
        draw.shuffle(texts)
        assert classifier([with_words(text) for text in texts]) == [alone[text] for text in texts]
    assert sum(map(len, alone.values())) > 100


@pytest.mark.parametrize("length", [50, 62, 200, 3000])
def test_texts_longer_than_the_context(classifier: TokenClassifier, length: int) -> None:
    draw = random.Random(length)
    words: list[str] = []
    people = 0
    while len(words) < length:
        new, tags = sentence(draw)
        words += new
        people += sum(tag.endswith("PER") for tag in tags)
    text = " ".join(words)
    [entities] = actual(classifier, text)
    names = " ".join(name for name, label in entities if label == "PERSON").split()
    # A small model errs where it sees other neighbours than in training, but never by the end of a window.
    assert len(names) > 0.97 * people
    assert sum(name not in NAMES for name in names) < 0.03 * people


def test_entities_keep_scores_and_do_not_overlap(classifier: TokenClassifier) -> None:
    [entities] = classifier([with_words("then Zorvath saw it and then tel-551 because this was for Brixo")])
    assert [entity.label for entity in entities] == ["PERSON", "PHONE", "PERSON"]
    assert all(0.5 < entity.score <= 1 for entity in entities)
    assert all(isinstance(entity, EntityMatch) for entity in entities)


def test_another_process_finds_the_same(classifier: TokenClassifier) -> None:
    texts = [with_words("and then Tamzuli Brixo saw it")]
    sent = pickle.loads(pickle.dumps(classifier))  # noqa: S301 - our own
    assert sent(texts) == classifier(texts)


def small(kind: Any, config: Any, folder: Path, source: Path, **special: int) -> TokenClassifier:
    """A model with random weights and the tokenizer of another folder."""
    torch.manual_seed(0)
    labels = {0: "O", 1: "B-PER", 2: "B-misc"}
    model = kind(config(vocab_size=200, id2label=labels, label2id={name: at for at, name in labels.items()}, **special))
    model.save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / file, folder)
    return load_token_classifier(folder)


def test_other_architectures_and_their_contexts(tmp_path: Path, tagger_folder: Path) -> None:
    """RoBERTa counts positions from behind its padding, so its context is shorter than its configuration says."""
    roberta = small(
        RobertaForTokenClassification,
        RobertaConfig,
        tmp_path / "roberta",
        tagger_folder,
        **{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16},
        **{"max_position_embeddings": 42, "pad_token_id": 1},
    )
    assert roberta.stride == 38 // 4
    distilbert = small(
        DistilBertForTokenClassification,
        DistilBertConfig,
        tmp_path / "distilbert",
        tagger_folder,
        **{"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 40},
    )
    assert distilbert.stride == 38 // 4
    for classifier in (roberta, distilbert):
        for entities in classifier([with_words("then Zorvath saw it " * 60)]):
            assert {entity.label for entity in entities} <= {"PERSON", "MISC"}


def settings(**changes: object) -> Damage:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        document = json.loads(path.read_text())
        for name, value in changes.items():
            document.pop(name, None)
            if value is not None:
                document[name] = value
        path.write_text(json.dumps(document))

    return change


def as_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def without_its_head(folder: Path) -> None:
    model = BertModel.from_pretrained(folder)
    model.save_pretrained(folder)
    settings(architectures=["BertForTokenClassification"])(folder)


def index_elsewhere(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../outside.safetensors"}}))


REFUSED: dict[str, tuple[Damage, str]] = {
    "no folder": (shutil.rmtree, "is no folder"),
    "a language model": (settings(architectures=["BertForMaskedLM"]), "is no token classifier"),
    "no architecture": (settings(architectures=None), "is no token classifier"),
    "no names": (settings(id2label=None), "does not name the classes"),
    "names of transformers": (settings(id2label={str(at): f"LABEL_{at}" for at in range(4)}), "does not name"),
    "nothing outside": (settings(id2label={str(at): f"B-{at}" for at in range(4)}), "are not O"),
    "other classes": (settings(id2label={"0": "O", "1": "B-PER"}), "cannot be loaded as a token classifier"),
    "a pickle": (as_pickle, "as a pickle, which is never loaded"),
    "no fast tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
    "half a file": (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:5000]),
        "is not a whole safetensors file",
    ),
    "no head": (without_its_head, "lacks 2 of the model's tensors"),
    "weights elsewhere": (index_elsewhere, "which is not in the folder"),
    "code of its own": (settings(auto_map={"AutoModel": "evil.Model"}), "auto_map"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path, tagger_folder: Path) -> None:
    damage, said = REFUSED[name]
    folder = tmp_path / "model"
    shutil.copytree(tagger_folder, folder)
    damage(folder)
    with pytest.raises(InputError, match=re.escape(said)):
        load_token_classifier(folder)


def test_the_identity_is_that_of_all_files_that_are_loaded(tmp_path: Path, tagger_folder: Path) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(tagger_folder, folder)
    before = classifier_identity(tagger_folder)
    assert classifier_identity(folder) == before
    (folder / "README.md").write_text("not read")
    assert classifier_identity(folder) == before
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        kept = (folder / name).read_text()
        (folder / name).write_text(kept + "\n")
        assert classifier_identity(folder) != before
        (folder / name).write_text(kept)
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert classifier_identity(folder) != before
