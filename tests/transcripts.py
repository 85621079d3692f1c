"""What the commands print for people: text files in tests/golden, which `make generated` writes."""

import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from atdp_cli.cli.app import run
from atdp_cli.privacy.relation import hypothetical
from tests.small import small_lines, write_checkpoint, write_corpus

GOLDEN = Path(__file__).parent / "golden"
WIDTH = 80

MAIL = """Mail emma.clarke@example.org about the parcel.
Nothing here. The blue box is where it was.
The account is 48213377.
Ask Omar Haddad in Berlin.
"""
LOW = "--tier low-entity"
QUEUE = f"detect mail.txt {LOW} --review queue.jsonl --set run.review-share=1 -o spans.jsonl --quiet"
HARDEN = "harden model --data corpus.txt --set run.max-records=60"
AUDIT = "audit-canary model --manifest canaries.json"

SCREENS: dict[str, tuple[str, ...]] = {
    "account": (
        "account ledger.json",
        "account ledger.json plain.json",
        "account --sampling-probability 0.01 --noise-multiplier 1 --steps 1000",
        "account --recipe redacted+atdp --records 10000 --solve noise --target-epsilon 2",
    ),
    "recipes": ("harden --list-recipes",),
    "harden": (
        f"{HARDEN} --dry-run",
        f"{HARDEN} --reference base --dry-run",
        f"{HARDEN} --recipe atdp --dry-run",
        f"{HARDEN} --recipe redacted+atdp --checkpoint-history public {LOW} --dry-run",
        f"{HARDEN} --epochs 1 -o hardened",
    ),
    "detect": (
        f"detect mail.txt {LOW}",
        f"detect mail.txt {LOW} -o spans.jsonl --review queue.jsonl --set run.review-share=1",
    ),
    "redact": (f"redact mail.txt {LOW} -o redacted.txt", f"redact bad.jsonl {LOW} -o kept.jsonl --skip-bad"),
    "decoy": (
        "decoy mail.txt -o decoyed --epochs 2 --recipe decoys",
        "decoy mail.txt -o fitted --epochs 2",
        "account --adopt model --ledger fitted --checkpoint-history public",
        "account model --max-epsilon 5",
        "decoy mail.txt -o decoyed",
    ),
    "review": (QUEUE, "review queue.jsonl"),
    "plant-canary": (
        "plant-canary corpus.txt -o planted.txt --manifest new.json --tokenizer model --count 5 --repeats 2",
    ),
    "audit-canary": (
        AUDIT,
        f"{AUDIT} --reference base --set run.describe-candidates=true --attacks extraction --set run.continuations=10",
        "audit-canary model --manifest coins.json --attacks membership",
        "audit-canary model base absent --manifest canaries.json --max-exposure 0.001",
    ),
    "audit-corpus": (
        "audit-corpus model --data corpus.txt --harden-split --reference base --set run.store=none",
        "audit-corpus model --data corpus.txt --harden-split --set run.store=none --max-memorised 0",
    ),
    "report": ("report reports/out", "report reports/out.private"),
    "errors": (
        "report absent",
        f"{AUDIT} --max-exposure 0.001",
        "detect mail.txt --set run.progress=json --quiet",
        "detect absent.txt",
        "audit-canary absent --manifest canaries.json",
        "audit-canary absent elsewhere --manifest canaries.json",
        "audit-canary model --canary 'My ID is 12'",
        QUEUE,
        "review queue.jsonl --json",
    ),
}
"""The command lines of each file; those of one run one after the other in one folder."""

TYPED = {"review queue.jsonl": "d 1\nk\ns\nm blue box\nk\nr 1\nx\nk\nq\n"}
"""What somebody types."""

INTERRUPTED = frozenset({"review queue.jsonl --json"})
"""Where somebody presses Ctrl-C."""

MARKS = (
    (re.compile(r"[^\n]+: [\d,]+ of [\d,]+\.\n"), ""),
    (re.compile(r"\babout(\s+)[\d.,]+(\s+)GB(\s+)of(\s+)memory"), r"about\1N\2GB\3of\4memory"),
    (re.compile(r" steps in \d+ s\."), " steps in N s."),
    (re.compile(r"\b\d{3}\.\d\d\b"), "NNN.NN"),
    (re.compile(r"(│ (?:its start|this model) +│) \d\.\d\d( +│) \d\.\d\d( +│) \d\.\d\d"), r"\1 N.NN\2 N.NN\3 N.NN"),
    (re.compile(r"(noise multiplier \d\.\d{4})\d+"), r"\1…"),
)
"""What differs from run to run or between processors (seconds, perplexities, the last digits of what was solved for),
with what stands for it. A mark is as long as what it stands for where a table or a wrapped line depends on it."""


class _Interrupt:
    """The standard input of somebody who presses Ctrl-C."""

    def readline(self) -> str:
        """Nothing is ever read."""
        raise KeyboardInterrupt


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command said, and how it ended."""

    line: str
    out: str
    err: str
    code: int

    def __str__(self) -> str:
        """As a golden file has it."""
        err = f"--- on standard error\n{self.err}" if self.err else ""
        end = f"--- exit code {self.code}\n" if self.code else ""
        return f"$ atdp {self.line}\n{self.out}{err}{end}"


def golden_path(name: str) -> Path:
    """Where a screen is kept."""
    return GOLDEN / f"{name}.{WIDTH}.txt"


def golden_files() -> dict[Path, str]:
    """Every golden file with the text that it must have."""
    with tempfile.TemporaryDirectory() as folder:
        make_place(Path(folder))
        return {golden_path(name): as_text(transcript(name, Path(folder))) for name in SCREENS}


def as_text(said: tuple[Said, ...]) -> str:
    """A golden file."""
    return "\n".join(map(str, said))


def transcript(name: str, place: Path, **settings: str) -> tuple[Said, ...]:
    """What the commands of a screen say in a copy of the place.

    Args:
        settings: Of the environment, beside those of `surroundings`.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve() / "place"
        shutil.copytree(place, folder)
        stack.enter_context(surroundings(COLUMNS=str(WIDTH), **settings))
        stack.enter_context(chdir(folder))
        return tuple(_said(line, folder) for line in SCREENS[name])


@contextmanager
def surroundings(**settings: str) -> Iterator[None]:
    """The environment of a command whose output goes into a pipe."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "VIRTUAL_ENV")}
    plain = {"TERM": "xterm-256color", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (
        patch.dict(os.environ, kept | plain | settings, clear=True),
        # Typer made these two from the environment in which it was imported.
        patch("typer.rich_utils.FORCE_TERMINAL", None),
        patch("typer.rich_utils.MAX_WIDTH", None),
    ):
        yield


def make_place(folder: Path) -> None:
    """Write the files that the command lines name."""
    from atdp_cli.privacy.ledger import PlainTraining, write_ledger
    from tests.privacy.ledgers import ledger, release, steps

    lines = small_lines()
    write_corpus(folder / "corpus.txt", lines)
    write_checkpoint(folder / "model", lines)
    write_checkpoint(folder / "base", lines, seed=8)
    (folder / "mail.txt").write_text(MAIL, encoding="utf-8")
    (folder / "bad.jsonl").write_text('{"text": "Ask Omar Haddad."}\n{"text": \n', encoding="utf-8")
    write_ledger(folder / "ledger.json", ledger(steps(0.05, 1.5, 200), release(20.0), records=10_000, run="1"))
    write_ledger(
        folder / "plain.json",
        ledger(PlainTraining(stage="no-dp", text="raw", relation=hypothetical()), records=10_000, run="2"),
    )
    _write_manifest(folder, "canaries.json", None)
    _write_manifest(folder, "coins.json", [True, False, True, False, True, False])
    _write_reports(folder / "reports")


def _write_reports(folder: Path) -> None:
    from atdp_cli.reporting.document import REPORT_FILE
    from tests.reporting.documents import RAW, private, public

    reports = {"out": public(), "out.private": private(), "other": public(RAW, audits=(), recipe="no-dp")}
    for name, report in reports.items():
        (folder / name).mkdir(parents=True)
        (folder / name / REPORT_FILE).write_text(report.model_dump_json(), encoding="utf-8")


def _write_manifest(folder: Path, name: str, coins: list[bool] | None) -> None:
    """Six canaries out of a hundred: so few that no processor's rounding changes a rank."""
    from atdp_cli.audit.canary import parse_template
    from atdp_cli.audit.manifest import make_manifest, write_manifest
    from atdp_cli.model.checkpoint import load_tokenizer

    template = parse_template("My ID is {digits:2}")
    made = make_manifest(
        load_tokenizer(folder / "model"),
        template,
        [template.secret(index) for index in (4, 17, 34, 55, 77, 92)],
        [[2 * at + 1, 2 * at + 2] for at in range(6)],
        repeats=(2,) * 6,
        others=None if coins is None else [None if heads else template.secret(60) for heads in coins],
        records=212,
        drawn="csprng",
    )
    write_manifest(folder / name, made)


def _said(line: str, folder: Path) -> Said:
    typed = io.TextIOWrapper(io.BytesIO(TYPED.get(line, "").encode()), encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    with patch("sys.stdin", _Interrupt() if line in INTERRUPTED else typed), redirect_stdout(out), redirect_stderr(err):
        code = run(shlex.split(line))
    return Said(line=line, out=_marked(out.getvalue(), folder), err=_marked(err.getvalue(), folder), code=code)


def _marked(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "/place")
    for pattern, mark in MARKS:
        text = pattern.sub(mark, text)
    return text
