"""`audit-canary --exact`: a gate that ranks among a sample, and what needs all candidates."""

import pytest

from tests.cli.conftest import Atdp, Leaky

LARGE_ALPHA = ("--alpha", "0.05")
"""So that a sample is much smaller than the ten thousand candidates."""


@pytest.mark.parametrize("which", ["leaky", "base"])
def test_a_sample_gives_the_verdict_of_all_candidates(
    atdp: Atdp, leaky: Leaky, which: str, checkpoint_folder: str
) -> None:
    model = leaky.model if which == "leaky" else checkpoint_folder
    audit = ("audit-canary", model, "--manifest", leaky.manifest, *LARGE_ALPHA)
    whole = atdp(*audit, "--set", "run.ranking=exact", "--json")
    sample = atdp(*audit, "--set", "run.ranking=sampled", "--json")
    assert whole.code == sample.code == (1 if which == "leaky" else 0)
    (exact,), (drawn,) = whole.json["models"], sample.json["models"]
    assert {canary["compared"] for canary in exact["canaries"]} == {canary["pool"] for canary in exact["canaries"]}
    (size,) = {canary["compared"] for canary in drawn["canaries"]}
    assert size < drawn["canaries"][0]["pool"] / 2
    for canary, other in zip(exact["canaries"], drawn["canaries"], strict=True):
        # Binomial, so within five standard deviations of the exact share.
        share, shown = canary["rank_max"] / canary["compared"], other["rank_max"] / size
        assert abs(share - shown) <= 5 * (share * (1 - share) / size) ** 0.5 + 2 / size
    assert "--set run.ranking=exact" in " ".join(atdp(*audit, "--set", "run.ranking=sampled").out.split())


def test_a_cheap_pool_is_not_sampled_by_itself(atdp: Atdp, leaky: Leaky) -> None:
    entry = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, *LARGE_ALPHA, "--json").json["models"][0]
    assert entry["canaries"][0]["compared"] == entry["canaries"][0]["pool"]


@pytest.mark.parametrize(
    "option",
    [
        (
            "--set",
            "run.describe-candidates=true",
        ),
        ("--max-exposure", "3"),
        ("--max-epsilon-lower-bound", "3"),
        ("--set", "run.rank-guesses=5"),
    ],
)
def test_what_needs_all_candidates_is_refused_in_a_sample(atdp: Atdp, leaky: Leaky, option: tuple[str, ...]) -> None:
    ended = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, "--set", "run.ranking=sampled", *option)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert option[-1].partition("=")[0] in ended.err if option[0] == "--set" else option[0] in ended.err
