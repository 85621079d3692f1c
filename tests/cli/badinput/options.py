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
            "recipe file not UTF-8": ("r.toml is not TOML: UnicodeDecodeError", write("r.toml", b'a = "\xff"')),
            "recipe file with an unknown member": (
                "r.toml: the file: the key 'color' is not known",
                recipe('name = "a"\nstage = []\ncolor = 1\n'),
            ),
            "recipe file of no stages": ("r.toml: the file: the key 'stage' is missing", recipe('name = "a"\n')),
            "recipe file with a number for its name": (
                "r.toml: name: Input should be a valid string",
                recipe("name = 7\nstage = []\n"),
            ),
            "recipe file nested deep": ("r.toml is not TOML: RecursionError", recipe("a = " + "[" * 100_000)),
        },
    ),
    Case("recipe file without end", (*HARDEN, "--recipe", "/dev/zero"), "recipe '/dev/zero' is not known"),
    Case("stage unknown", (*ATDP, "--set", "magic.epochs=1"), "--set magic.epochs=1: no stage is called magic"),
    Case("setting unknown", (*ATDP, "--set", "atdp.blue=1"), "atdp.blue is not an option"),
    Case(
        "noise for the default, which has none",
        (*HARDEN, "--set", "run.clip-norm=1"),
        "run.clip-norm needs a DP stage, and fitted-decoys, the",
    ),
    Case("silence and events", (*HARDEN, "-q", "--progress", "json"), "--quiet silences what --progress json writes"),
    Case(
        "spans and a review",
        (*HARDEN, "--spans", "s.jsonl", "--review-each-epoch"),
        "--spans takes the detector's place, so there is nothing",
        write("s.jsonl", ""),
    ),
    Case("output a link to the model", (*HARDEN, "--force"), "The output is the model itself", link("out", "model")),
    Case("output the root", line("harden model --data corpus.txt -o / --force"), "-o / names no new folder"),
    Case("device unknown", (*HARDEN, "--device", "abacus"), "Invalid value for '--device': 'abacus' is not one of"),
    Case("corpus missing", line("harden model --data nowhere.txt -o out"), "nowhere.txt does not exist"),
    Case("corpus of one record", HARDEN, "corpus.txt holds a single record", write("corpus.txt", SECRET)),
    Case("corpus twice", (*HARDEN, "--data", "./corpus.txt"), "is given twice"),
    Case("standard input", line("harden model --data - -o out"), "read more than once"),
    Case("spans beyond a record", (*HARDEN, "--spans", "s.jsonl", "-q"), "line 1, span 1", write("s.jsonl", SPANS)),
    Case("output folder missing", line("harden model --data corpus.txt -o a/b/out"), "a/b is no folder"),
    Case("batch too large", (*ATDP, "--batch-size", "1000"), "batch-size 1000"),
    Case("delta too large", (*HARDEN, "--delta", "0.1"), "not below 1/N"),
    Case("ceiling below the noise", (*ATDP, "--set", "run.sigma-max=0.5"), "below the noise multiplier"),
    Case("jitter backwards", (*ATDP, "--set", "run.jitter=1.1,0.9"), "0 < LOW ≤ HIGH"),
    Case("target out of reach", (*HARDEN, "--target-epsilon", "1e-9"), "cannot be reached"),
    Case("target without a DP stage", (*HARDEN, *line("--recipe no-dp --target-epsilon 2")), "no DP stage"),
    Case("target and noise", (*ATDP, *line("--target-epsilon 2 --noise-multiplier 1")), "--noise-multiplier sets"),
    Case("target and ceiling", (*ATDP, *line("--target-epsilon 2 --set run.sigma-max=9")), "contradict each other"),
    Case("more than the budget", (*ATDP, "--max-epsilon", "0.1"), "above --max-epsilon 0.1"),
    Case("budget without noise", (*HARDEN, *line("--recipe no-dp+atdp --max-epsilon 50")), "trains without noise"),
    Case("budget of the default", (*HARDEN, "--max-epsilon", "9"), "as --recipe atdp"),
    Case("noise that protects nothing", (*ATDP, "--noise-multiplier", "0.0001"), "it protects nothing"),
    Case("a reference that nothing reads", (*ATDP, "--reference", "model"), "--reference"),
    Case(
        "dtype unknown",
        (*HARDEN, "--set", "run.save-dtype=int4"),
        "that it does not take. Choose 'float32'",
    ),
    Case("unknown option", (*HARDEN, "--frobnicate"), "No such option: --frobnicate"),
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
    Case(
        "a term's expression broken", line("detect corpus.txt --deny d.txt"), "d.txt: line 1", write("d.txt", "/(/\n")
    ),
    Case("nothing left to skip to", line("detect c.txt --skip-bad"), "holds no records", write("c.txt", b"\xff\n")),
    Case("redact into another format", line("redact corpus.txt -o out.jsonl"), "out.jsonl would be JSON Lines"),
    Case("audit without canaries", line("audit-canary model"), "plant-canary CORPUS"),
    Case("canary without digits", line("audit-canary model --canary hello"), "no run of digits"),
    Case("manifest and canary", line("audit-canary model --canary 49 --manifest corpus.txt"), "exclude each other"),
    Case("account of nothing", line("account"), "--sample-rate"),
    Case("account of a corpus", line("account corpus.txt"), "not a ledger"),
    Case(
        "manifest over the corpus",
        line("plant-canary corpus.txt -o p.txt --manifest p.txt --tokenizer model"),
        "would be one file",
    ),
)
