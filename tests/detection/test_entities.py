"""Labels and tiers of entities that something other than spaCy finds."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.detect import LABELS
from atdp_cli.detection.entities import LABEL_OF, entity_tier, label_of
from atdp_cli.detection.span_file import read_spans, spans_line


@pytest.mark.parametrize(
    ("theirs", "ours", "tier"),
    [
        ("PER", "PERSON", Tier.LOW_ENTITY),
        ("person", "PERSON", Tier.LOW_ENTITY),
        ("LOCATION", "LOC", Tier.LOW_ENTITY),
        ("GPE", "GPE", Tier.LOW_ENTITY),
        ("ORGANIZATION", "ORG", Tier.LOW_ENTITY),
        ("DATE_TIME", "DATE", Tier.LOW_ENTITY),
        ("PHONE_NUMBER", "PHONE", Tier.LOW_ENTITY),
        ("EMAIL_ADDRESS", "EMAIL", Tier.LOW_ENTITY),
        ("US_SSN", "SSN", Tier.LOW_ENTITY),
        ("US_PASSPORT", "NATIONAL_ID", Tier.LOW_ENTITY),
        ("NRP", "NORP", Tier.HIGH_ENTITY),
        ("MISC", "MISC", Tier.HIGH_ENTITY),
        ("creative-work", "CREATIVE_WORK", Tier.HIGH_ENTITY),
        ("Größe", "GR_SSE", Tier.HIGH_ENTITY),
        ("1st name", "L_1ST_NAME", Tier.HIGH_ENTITY),
    ],
)
def test_labels_and_tiers(theirs: str, ours: str, tier: Tier) -> None:
    assert label_of(theirs) == ours
    assert entity_tier(ours) is tier


def test_the_table_names_nothing_twice_and_placeholders_know_its_labels() -> None:
    assert set(LABEL_OF.values()) <= LABELS
    assert all(LABEL_OF[ours] == ours for ours in LABEL_OF.values())


@given(st.text(max_size=80))
def test_any_name_becomes_a_label_that_files_of_spans_take(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    label = label_of(name)
    assert re.fullmatch(r"[A-Z][A-Z0-9_]{0,39}", label)
    path = tmp_path_factory.getbasetemp() / "labels.jsonl"
    path.write_text(spans_line("1", [Span(0, 1, label, "ner", Tier.LOW_ENTITY)]) + "\n")
    [(_, [span])] = read_spans(path, [Record("1", "x")])
    assert span.label == label


def test_nothing_that_reads_text_imports_torch() -> None:
    """Of a new interpreter, since this one has it already."""
    code = (
        "import importlib, pkgutil, sys\n"
        "for room in ('atdp_cli.corpus', 'atdp_cli.replacement', 'atdp_cli.detection'):\n"
        "    for module in pkgutil.walk_packages(importlib.import_module(room).__path__, room + '.'):\n"
        "        if not module.name.endswith('.token_classifier'):\n"
        "            importlib.import_module(module.name)\n"
        "print(sorted({'torch', 'transformers', 'presidio_analyzer', 'spacy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
