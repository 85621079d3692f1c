"""Ledgers, reports, and parameters of the accountant."""

from typing import Any

from atdp_cli.privacy.ledger import Ledger, SubsampledGaussian, write_ledger
from atdp_cli.privacy.relation import hypothetical
from tests.cli.badinput.case import Case, Make, both, cases, change, line, link, write

STEP = SubsampledGaussian(
    stage="a", sampling_rate=0.1, noise_multiplier=1.0, clip_norm=0.1, steps=9, relation=hypothetical()
)


def ledger(**members: Any) -> Make:
    """A ledger beside no weights that is whole but for what is said."""

    def make(place: Any) -> None:
        actual = Ledger(unit="line", checkpoint_history="public", records=100, delta=1e-6, grid=1e-3, events=(STEP,))
        write_ledger(place / "ledger.json", actual)

    return both(make, change("ledger.json", **members)) if members else make


def sealed(name: str) -> Make:
    """A whole ledger that seals a file of this name, beside the weights."""

    def make(place: Any) -> None:
        actual = Ledger(
            unit="line",
            checkpoint_history="public",
            records=100,
            delta=1e-6,
            grid=1e-3,
            events=(STEP,),
            seal={name: "0" * 64},
        )
        write_ledger(place / "model" / "privacy_ledger.json", actual)

    return make


def event(**members: Any) -> dict[str, Any]:
    """The steps of a ledger."""
    return {"events": [STEP.model_dump(mode="json") | members]}


ACCOUNT = line("account ledger.json")

STEPS = line("account --sampling-probability 0.1 --noise-multiplier 1 --steps 9")

HARDEN = line("harden model --data corpus.txt -o out")


CASES = (
    *cases(
        ACCOUNT,
        {
            "ledger a link to itself": ("ledger.json cannot be read as a ledger", link("ledger.json", "ledger.json")),
            "ledger nested 100,000 deep": ("the file: Invalid JSON", write("ledger.json", "[" * 100_000)),
            "ledger of 10³⁰⁰ steps": ("events.0.subsampled_gaussian.steps", ledger(**event(steps=10**300))),
            "ledger of half a step": ("events.0.subsampled_gaussian.steps", ledger(**event(steps=0.5))),
            "ledger with an unknown member": ("color: Extra inputs are not permitted", ledger(color="red")),
        },
    ),
    Case(
        "ledger that seals a file above",
        line("account model"),
        "model/privacy_ledger.json does not fit the model beside",
        sealed("../corpus.txt"),
    ),
    Case(
        "ledger that seals a whole path",
        HARDEN,
        "model/privacy_ledger.json does not fit the model beside",
        sealed("/etc/passwd"),
    ),
    Case(
        "ledger given twice, one cut",
        line("account ledger.json b.json"),
        "unit: Field required",
        both(ledger(), write("b.json", "{}")),
    ),
    Case("ledger and steps", (*ACCOUNT, "--steps", "9"), "A ledger and parameters exclude each other", ledger()),
    Case("recipe without records", line("account --recipe atdp"), "A recipe spends by the number of records"),
    Case(
        "solve without a target",
        line("account --sampling-probability 0.1 --steps 9 --solve noise"),
        "--solve and --target-epsilon go together",
    ),
    Case(
        "solve what is given",
        (*STEPS, "--solve", "noise", "--target-epsilon", "1"),
        "--solve noise chooses what --noise-multiplier sets",
    ),
    Case(
        "report of a folder without one",
        line("report model"),
        "The report model/privacy_report.json cannot be read: No such file or directory",
    ),
    *cases(
        line("report r.json"),
        {
            "report cut": ("malformed at the file: Invalid JSON", write("r.json", '{"kind": "atdp-re')),
            "report of nothing but its kind": (
                "malformed at atdp-report.summary",
                write("r.json", '{"kind": "atdp-report"}'),
            ),
        },
    ),
    Case("report without end", line("report /dev/zero"), "The report /dev/zero cannot be read: Not a regular file"),
)
