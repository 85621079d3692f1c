"""Text that a report takes from files is shown as it is on the page, also where it would steer what is around it."""

import pytest

from atdp_cli.reporting.html import render_html
from tests.reporting.documents import NOISY, private, public
from tests.security.test_terminal import PAYLOADS

STEERING = {
    name: text
    for name, text in PAYLOADS.items()
    if not text.isprintable() and "\udcff" not in text and not set("\n\t") & set(text)
}


@pytest.mark.parametrize("payload", STEERING)
def test_a_fields_name_cannot_steer_the_page(payload: str) -> None:
    """Nor can the name of a stage, of a model or of a label."""
    text = STEERING[payload]
    report = public(NOISY, unit=f"user{text}", name=f"model{text}")
    stages = tuple(stage.model_copy(update={"name": f"dp{text}"}) for stage in report.stages)
    report = report.model_copy(update={"stages": stages})
    for page in (render_html(report), render_html(private().model_copy(update={"public": report}))):
        assert not {mark for mark in text if not mark.isprintable()} & set(page)
        assert "user" in page
