"""Recipe files, and options that contradict each other."""

from tests.cli.badinput.case import SECRET, Case, Make, both, cases, line, link, write


def recipe(text: str) -> Make:
    """A recipe file."""
    return write("r.toml", text)


HARDEN = line("harden model --data corpus.txt -o out")
ATDP = (*HARDEN, "--recipe", "atdp")

RECIPE = (*HARDEN, "--recipe", "r.toml")
SPANS = '{"id": "1", "spans": [{"start": 0, "end": 1000000, "label": "X", "source": "ner"}]}\n'
USER = '{"text": "a", "user": "u"}\n'


CASES = (
    *cases(
        RECIPE,
        {
            "recipe file cut": ("r.toml is not TOML: Invalid value (at end of document)", recipe("name = ")),
            "recipe file nested deep": ("r.toml is not TOML: RecursionError", recipe("a = " + "[" * 100_000)),
        },
    ),
    Case("recipe file without end", (*HARDEN, "--recipe", "/dev/zero"), "recipe '/dev/zero' is not known"),
    Case(
        "noise for the default, which has none",
        (*HARDEN, "--set", "run.clip-norm=1"),
        "run.clip-norm needs a DP stage, and fitted-decoys, the",
    ),
    Case(
        "spans and a review",
        (*HARDEN, "--spans", "s.jsonl", "--review-each-epoch"),
        "--spans takes the detector's place, so there is nothing",
        write("s.jsonl", ""),
    ),
    Case("output a link to the model", (*HARDEN, "--force"), "The output is the model itself", link("out", "model")),
    Case("device unknown", (*HARDEN, "--device", "abacus"), "Invalid value for '--device': 'abacus' is not one of"),
    Case("corpus of one record", HARDEN, "corpus.txt holds a single record", write("corpus.txt", SECRET)),
    Case("corpus twice", (*HARDEN, "--data", "./corpus.txt"), "is given twice"),
    Case("spans beyond a record", (*HARDEN, "--spans", "s.jsonl", "-q"), "line 1, span 1", write("s.jsonl", SPANS)),
    Case("output folder missing", line("harden model --data corpus.txt -o a/b/out"), "a/b is no folder"),
    Case("ceiling below the noise", (*ATDP, "--set", "run.sigma-max=0.5"), "below the noise multiplier"),
    Case("target and ceiling", (*ATDP, *line("--target-epsilon 2 --set run.sigma-max=9")), "contradict each other"),
    Case("budget without noise", (*HARDEN, *line("--recipe no-dp+atdp --max-epsilon 50")), "trains without noise"),
    Case("budget of the default", (*HARDEN, "--max-epsilon", "9"), "as --recipe atdp"),
    *(
        Case(
            f"{limit} with flags by others", (*ATDP, *line(f"{limit} 9 {who}")), f"no {limit} holds", write(name, text)
        )
        for limit in ("--max-epsilon", "--target-epsilon")
        for who, name, text in (
            ("--allow l.txt", "l.txt", "Emma"),
            ("--deny l.txt", "l.txt", "Emma"),
            ("--spans s.jsonl", "s.jsonl", ""),
            ("--extra-spans s.jsonl", "s.jsonl", ""),
        )
    ),
    Case("noise that protects nothing", (*ATDP, "--noise-multiplier", "0.0001"), "it protects nothing"),
    Case("dtype unknown", (*HARDEN, "--set", "run.save-dtype=int4"), "that it does not take. Choose 'float32'"),
    Case("unit without a field", (*HARDEN, "--privacy-unit", "user"), "unit"),
    Case(
        "users over two files",
        line("harden model --data a.jsonl --data b.jsonl --privacy-unit user -o out"),
        "goes with one --data file",
        both(write("a.jsonl", USER), write("b.jsonl", USER)),
    ),
    Case(
        "users on both sides",
        line("harden model --data a.jsonl --eval-data b.jsonl --privacy-unit user -o out"),
        "have values of user in common",
        both(write("a.jsonl", USER * 2), write("b.jsonl", USER * 2)),
    ),
    Case("nothing left to skip to", line("detect c.txt --skip-bad"), "holds no records", write("c.txt", b"\xff\n")),
    Case("redact into another format", line("redact corpus.txt -o out.jsonl"), "out.jsonl would be JSON Lines"),
    Case("audit without canaries", line("audit-canary model"), "plant-canary CORPUS"),
    Case("canary without digits", line("audit-canary model --canary hello"), "no run of digits"),
    Case("manifest and canary", line("audit-canary model --canary 49 --manifest corpus.txt"), "exclude each other"),
    Case("account of nothing", line("account"), "--sampling-probability"),
    Case("account of a corpus", line("account corpus.txt"), "not a ledger"),
    Case(
        "manifest over the corpus",
        line("plant-canary corpus.txt -o p.txt --manifest p.txt --tokenizer model"),
        "would be one file",
    ),
)
