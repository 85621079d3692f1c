"""Ledgers, reports, and parameters of the accountant."""

from typing import Any

from atdp_cli.privacy.ledger import Ledger, SubsampledGaussian, write_ledger
from tests.cli.badinput.case import Case, Make, both, change, line, link, write

STEP = SubsampledGaussian(stage="a", sampling_rate=0.1, noise_multiplier=1.0, clip_norm=0.1, steps=9)


def ledger(**members: Any) -> Make:
    """A ledger beside no weights that is whole but for what is said."""

    def make(place: Any) -> None:
        actual = Ledger(unit="line", prior="public", records=100, delta=1e-6, grid=1e-3, events=(STEP,))
        write_ledger(place / "ledger.json", actual)

    return both(make, change("ledger.json", **members)) if members else make


def sealed(name: str) -> Make:
    """A whole ledger that seals a file of this name, beside the weights."""

    def make(place: Any) -> None:
        actual = Ledger(
            unit="line", prior="public", records=100, delta=1e-6, grid=1e-3, events=(STEP,), seal={name: "0" * 64}
        )
        write_ledger(place / "model" / "privacy_ledger.json", actual)

    return make


def event(**members: Any) -> dict[str, Any]:
    """The steps of a ledger."""
    return {"events": [STEP.model_dump(mode="json") | members]}


ACCOUNT = line("account ledger.json")

STEPS = line("account --sample-rate 0.1 --noise-multiplier 1 --steps 9")

HARDEN = line("harden model --data corpus.txt -o out")

GIVE_A_REPORT = "Give a folder that atdp harden wrote, its .private folder, or a privacy_report.json of this version."

CASES = (
    Case(
        name="ledger cut",
        make=write("ledger.json", '{"kind": "atdp-le'),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: the file: Invalid JSON. This version reads "
        "schema_version 1 to 3; take the file as the tool wrote it.",
    ),
    Case(
        name="ledger a pickle",
        make=write("ledger.json", b"\x80\x04cos\nsystem\n."),
        command=ACCOUNT,
        said="ledger.json cannot be read as a ledger. Give a privacy_ledger.json or its folder.",
    ),
    Case(
        name="ledger without end",
        command=line("account /dev/zero"),
        said="/dev/zero cannot be read as a ledger. Give a privacy_ledger.json or its folder.",
    ),
    Case(
        name="ledger a link to itself",
        make=link("ledger.json", "ledger.json"),
        command=ACCOUNT,
        said="ledger.json cannot be read as a ledger. Give a privacy_ledger.json or its folder.",
    ),
    Case(
        name="ledger nested 100,000 deep",
        make=write("ledger.json", "[" * 100_000),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: the file: Invalid JSON. This version reads "
        "schema_version 1 to 3; take the file as the tool wrote it.",
    ),
    Case(
        name="ledger with a figure changed",
        make=ledger(records=10**9),
        command=ACCOUNT,
        said="ledger.json is not what was written: its digest does not fit, so an event may be missing or a "
        "figure changed. Restore the file as the tool wrote it, or remove it and take the past as unknown.",
    ),
    Case(
        name="ledger of noise below zero",
        make=ledger(**event(noise_multiplier=-1.0)),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: events.0.subsampled_gaussian.noise_multiplier: "
        "Input should be greater than 0. This version reads schema_version 1 to 3; take the file as the tool "
        "wrote it.",
    ),
    Case(
        name="ledger of noise that is no number",
        make=ledger(**event(noise_multiplier=float("nan"))),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: events.0.subsampled_gaussian.noise_multiplier: "
        "Input should be a finite number. This version reads schema_version 1 to 3; take the file as the tool "
        "wrote it.",
    ),
    Case(
        name="ledger of a rate above one",
        make=ledger(**event(sampling_rate=1.5)),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: events.0.subsampled_gaussian.sampling_rate: "
        "Input should be less than or equal to 1. This version reads schema_version 1 to 3; take the file as the "
        "tool wrote it.",
    ),
    Case(
        name="ledger of 10³⁰⁰ steps",
        make=ledger(**event(steps=10**300)),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: events.0.subsampled_gaussian.steps: Input "
        "should be less than or equal to 1000000000. This version reads schema_version 1 to 3; take the file as "
        "the tool wrote it.",
    ),
    Case(
        name="ledger of half a step",
        make=ledger(**event(steps=0.5)),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: events.0.subsampled_gaussian.steps: Input "
        "should be a valid integer, got a number with a fractional part. This version reads schema_version "
        "1 to 3; take the file as the tool wrote it.",
    ),
    Case(
        name="ledger with an unknown event",
        make=ledger(events=[{"kind": "magic"}]),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: events.0: Input tag 'magic' found using 'kind' "
        "does not match any of the expected tags: 'plain', 'read_model', 'subsampled_gaussian', "
        "'gaussian_release', 'decoyed_text', 'declared_training'. This version reads schema_version 1 to 3; take the "
        "file as the tool wrote it.",
    ),
    Case(
        name="ledger with an unknown member",
        make=ledger(color="red"),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: color: Extra inputs are not permitted. This "
        "version reads schema_version 1 to 3; take the file as the tool wrote it.",
    ),
    Case(
        name="ledger of a later version",
        make=ledger(schema_version=4),
        command=ACCOUNT,
        said="ledger.json is not a ledger that this version reads: schema_version: Input should be 1, 2 or 3. This "
        "version reads schema_version 1 to 3; take the file as the tool wrote it.",
    ),
    Case(
        name="ledger that seals a file above",
        make=sealed("../corpus.txt"),
        command=line("account model"),
        said="model/privacy_ledger.json does not fit the model beside it: ../corpus.txt is not what it sealed. "
        "Restore the folder as it was written, or remove the ledger and take the past as unknown.",
    ),
    Case(
        name="ledger that seals a whole path",
        make=sealed("/etc/passwd"),
        command=HARDEN,
        said="model/privacy_ledger.json does not fit the model beside it: /etc/passwd is not what it sealed. "
        "Restore the folder as it was written, or remove the ledger and take the past as unknown.",
    ),
    Case(
        name="ledger given twice, one cut",
        make=both(ledger(), write("b.json", "{}")),
        command=line("account ledger.json b.json"),
        said="b.json is not a ledger that this version reads: unit: Field required. This version reads "
        "schema_version 1 to 3; take the file as the tool wrote it.",
    ),
    Case(
        name="ledger and steps",
        make=ledger(),
        command=(*ACCOUNT, "--steps", "9"),
        said="A ledger and parameters exclude each other. Give one of them.",
    ),
    Case(
        name="recipe and steps",
        command=(*STEPS, "--recipe", "atdp"),
        said="A recipe spends by the number of records. Add --records.",
    ),
    Case(
        name="recipe without records",
        command=line("account --recipe atdp"),
        said="A recipe spends by the number of records. Add --records.",
    ),
    Case(name="curve into no folder", command=(*STEPS, "--curve", "no/c.svg"), said="no is no folder. Make it first."),
    Case(
        name="solve without a target",
        command=line("account --sample-rate 0.1 --steps 9 --solve noise"),
        said="--solve and --target-epsilon go together. Give both or neither.",
    ),
    Case(
        name="solve what is given",
        command=(*STEPS, "--solve", "noise", "--target-epsilon", "1"),
        said="--solve noise chooses what --noise-multiplier sets. Leave one of them out.",
    ),
    Case(
        name="report of a folder without one",
        command=line("report model"),
        said=f"The report model/privacy_report.json cannot be read: No such file or directory. {GIVE_A_REPORT}",
    ),
    Case(
        name="report cut",
        make=write("r.json", '{"kind": "atdp-re'),
        command=line("report r.json"),
        said="The report r.json is malformed at the file: Invalid JSON: EOF while parsing a string at line 1 column "
        f"17. {GIVE_A_REPORT}",
    ),
    Case(
        name="report of nothing but its kind",
        make=write("r.json", '{"kind": "atdp-report"}'),
        command=line("report r.json"),
        said=f"The report r.json is malformed at atdp-report.summary: Field required. {GIVE_A_REPORT}",
    ),
    Case(
        name="report nested 100,000 deep",
        make=write("r.json", "[" * 100_000),
        command=line("report r.json --html"),
        said="The report r.json is malformed at the file: Invalid JSON: recursion limit exceeded at line 1 column "
        f"202. {GIVE_A_REPORT}",
    ),
    Case(
        name="report without end",
        command=line("report /dev/zero"),
        said=f"The report /dev/zero cannot be read: Not a regular file. {GIVE_A_REPORT}",
    ),
    Case(
        name="report in two forms",
        command=line("report model --html --json"),
        said="--html and --json exclude each other. Give one of them.",
    ),
    Case(
        name="report a link to itself",
        make=link("r.json", "r.json"),
        command=line("report r.json"),
        said=f"The report r.json cannot be read: Too many levels of symbolic links. {GIVE_A_REPORT}",
    ),
)
