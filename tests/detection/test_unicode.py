"""The detector and redaction over arbitrary Unicode: laws that hold for any text, at any tier, in any style."""

import itertools
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Tier, at_tier, merge
from atdp_cli.detection.detect import PLACEHOLDERS, Detection, detect_records
from atdp_cli.detection.plain_copy import plain_copy
from atdp_cli.replacement.edits import redact_text
from atdp_cli.replacement.placeholders import Masking
from tests.strategies import maskings

PIECES = [
    "Emma Smith moved to Berlin in March 2019.",
    "She gave him the red book.",
    "It was paid by Acme Corp for $20.",
    "jo@x.com",
    "(791) 582-4288",
    "order id is 2033568069",
    "[PERSON]",
    "<GPE>",
    "[GPE_2]",
    "[PERSON_k7f2q4xa]",
    "\r\n",
    "\t",
    "\u2028",
    "\u202eעברית",
    "e\u0301😀👩‍👩‍👧",
    "<b>Zoe\u0308</b>&amp;%20\u200b",
    "555\u20112671\t\n",
    '{\\"name\\": \\"Anna\\"}',
    "\ud800",
    "\0",
]

texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(), max_size=6)), max_size=6).flatmap(
    lambda pieces: st.sampled_from((" ", "")).map(lambda between: between.join(pieces))
)


def check_any_text(pipeline: Any, text: str, tier: Tier, masking: Masking) -> None:
    """Every law of this file for one text."""
    actual = _detected(text, pipeline)
    _check_spans(actual, pipeline)
    spans = at_tier(actual.spans, tier)
    redacted = redact_text(text, spans, masking)
    pieces, kept_to = [], 0
    for (start, end), span in zip(redacted.places, merge(spans), strict=True):
        pieces += [redacted.text[kept_to:start], text[span.start : span.end]]
        kept_to = end
    assert "".join(pieces) + redacted.text[kept_to:] == text
    _check_passes(pipeline, redacted.text, tier, masking)


def _detected(text: str, pipeline: Any) -> Detection:
    [detection] = detect_records([Record("1", text)], pipeline=pipeline)
    return detection


def _check_spans(actual: Detection, pipeline: Any) -> None:
    """Spans lie in the text and are sorted, disjoint once merged, tiers nest, and counts agree with the spans."""
    text = actual.record.text
    assert list(actual.spans) == sorted(set(actual.spans))
    assert all(0 <= span.start < span.end <= len(text) for span in actual.spans)
    assert "".join(text[start:end] for start, end in actual.sentences) == text
    shares = []
    for tier in Tier:
        merged = merge(at_tier(actual.spans, tier))
        assert all(before.end <= after.start for before, after in itertools.pairwise(merged))
        shares.append({at for span in merged for at in range(span.start, span.end)})
    assert all(earlier <= later for earlier, later in itertools.pairwise(shares))
    copy = plain_copy(re.sub("[\ud800-\udfff]", "\ufffd", text))
    tokens = [copy.place(each.idx, each.idx + len(each)) for each in pipeline.make_doc(copy.text) if not each.is_space]
    assert list(actual.tokens) == tokens
    for tier, share in zip(Tier, shares, strict=True):
        flagged = sum(any(at in share for at in range(start, end)) for start, end in tokens)
        assert actual.sensitive_tokens(tier) == flagged


def _check_passes(pipeline: Any, text: str, tier: Tier, masking: Masking) -> None:
    """Redacting what is redacted never reaches into a placeholder, and comes to an end.

    A pass may flag what the last one left, because the parser and the recognisers read placeholders as context:
    one pass is not always the last. But each that changes anything leaves fewer characters outside placeholders.
    """
    left = len(PLACEHOLDERS.sub("", text))
    for _ in range(left + 1):
        spans = at_tier(_detected(text, pipeline).spans, tier)
        places = [match.span() for match in PLACEHOLDERS.finditer(text)]
        assert all(span.end <= start or end <= span.start for span in spans for start, end in places)
        again = redact_text(text, spans, masking).text
        if again == text:
            return
        text = again
    raise AssertionError("redaction does not come to an end")


@pytest.mark.ci
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, tier=st.sampled_from(Tier), masking=maskings)
def test_laws_for_any_text(pipeline: Any, text: str, tier: Tier, masking: Masking) -> None:
    check_any_text(pipeline, text, tier, masking)
