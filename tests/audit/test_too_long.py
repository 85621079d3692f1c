"""A canary that no audit could be of is refused at once."""

from pathlib import Path

import pytest

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.request import AuditRequest, prepare_audit
from atdp_cli.audit.run import audit_models
from atdp_cli.errors import UsageError
from atdp_cli.events import Event, RecordsRead


@pytest.mark.parametrize("words", [70, 700])
def test_a_canary_longer_than_the_context_is_refused_before_candidates_are_read(
    words: int, checkpoint_folder: Path
) -> None:
    """Its pool has a million candidates, which take minutes to tokenise."""
    said: list[Event] = []
    request = AuditRequest(models=(checkpoint_folder,), canary=f"{'again ' * words}My ID is 493021")
    with pytest.raises(UsageError, match=r"A canary takes .* tokens, and the context of .* has 64"):
        list(audit_models(prepare_audit(request), request, said.append))
    assert not any(isinstance(event, RecordsRead) for event in said)


@pytest.mark.parametrize(
    "template", ["{letters:64}" * 4, "{digits:64} " * 6, "{hex:64}" * 5, "{letters:64}" * 3 + "{digits:60}"]
)
def test_a_template_has_no_more_candidates_than_floats_count(template: str) -> None:
    with pytest.raises(UsageError, match=r"more candidates than floating point counts|slots"):
        parse_template(template)


def test_what_a_large_template_can_show_is_told() -> None:
    from atdp_cli.audit.hypothesis_tests import least_detectable, power

    pool = parse_template("{letters:64}{letters:64}{letters:64}").pool
    assert least_detectable((pool,) * 4, 0.005, least_power=0.8)
    assert power((pool,) * 4, 0.005, mean_exposure=5.0) > 0
