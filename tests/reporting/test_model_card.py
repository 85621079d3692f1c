"""What a card takes over from the card of the start, and what it never takes."""

from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from atdp_cli.reporting.card import inherited_card, render_card
from atdp_cli.reporting.document import CardEntry
from tests.reporting.documents import NOISY, public


def inherited(folder: Path, metadata: str) -> CardEntry:
    (folder / "README.md").write_text(f"---\n{metadata}\n---\n\n# A model\n", encoding="utf-8")
    return inherited_card(folder, encoder=False, adapter=False)


def test_licence_language_and_base_are_taken_over(tmp_path: Path) -> None:
    said = "license: cc-by-sa-4.0\nlanguage: [en, de]\nbase_model: owner/name\npipeline_tag: text-generation"
    card = inherited(tmp_path, said)
    assert (card.license, card.language, card.base_model) == ("cc-by-sa-4.0", ("en", "de"), ("owner/name",))
    reported: Any = ModelCard(render_card(public(NOISY, card=card)), ignore_metadata_errors=False).data
    assert (reported.license, reported.language, reported.base_model) == ("cc-by-sa-4.0", ["en", "de"], ["owner/name"])
    assert reported.tags == ["atdp", "differential-privacy", "dp-sgd"]
    for name in reported.base_model:
        validate_repo_id(name)


@pytest.mark.parametrize(
    "metadata",
    [
        "base_model: ./secret/folder",
        "base_model: /home/someone/model",
        "license: the text of Emma Clarke",
        "language: {a: b}",
        "license_link: file:///home/someone",
        "pipeline_tag: 'x\ny'",
        "license: [",
        "- a list",
        "",
    ],
)
def test_what_is_not_well_formed_is_left_out(tmp_path: Path, metadata: str) -> None:
    assert inherited(tmp_path, metadata) == CardEntry()


def test_a_folder_at_hand_is_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret-project").mkdir()
    monkeypatch.chdir(tmp_path)
    assert inherited(tmp_path, "base_model: secret-project").base_model == ()


def test_without_a_card_nothing_is_said(tmp_path: Path) -> None:
    assert inherited_card(tmp_path, encoder=False, adapter=False) == CardEntry()
    assert inherited_card(tmp_path, encoder=True, adapter=False).pipeline_tag is None


@pytest.mark.parametrize(("encoder", "adapter"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_loader_is_a_class_that_there_is(tmp_path: Path, encoder: bool, adapter: bool) -> None:
    import peft
    import transformers

    card = inherited_card(tmp_path, encoder=encoder, adapter=adapter)
    assert hasattr(peft if adapter else transformers, card.loader)
    assert f"import {card.loader}" in render_card(public(card=card))
