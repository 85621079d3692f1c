"""The laws of tests/detection/test_unicode.py over twenty times as many texts."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.spans import Tier
from atdp_cli.replacement.placeholders import Masking
from tests.detection.conftest import pipeline
from tests.detection.test_unicode import check_any_text, texts
from tests.strategies import maskings

__all__ = ["pipeline"]


@pytest.mark.deep
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=texts, tier=st.sampled_from(Tier), masking=maskings)
def test_laws_for_ten_thousand_texts(pipeline: Any, text: str, tier: Tier, masking: Masking) -> None:
    check_any_text(pipeline, text, tier, masking)
