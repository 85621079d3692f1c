"""Recipe files, and options that contradict each other."""

from tests.cli.badinput.case import Case, Make, line, link, write


def recipe(text: str) -> Make:
    """A recipe file."""
    return write("r.toml", text)


HARDEN = line("harden model --data corpus.txt -o out")
ATDP = (*HARDEN, "--recipe", "atdp")

RECIPE = (*HARDEN, "--recipe", "r.toml")


CASES = (
    Case(
        name="recipe file cut",
        make=recipe("name = "),
        command=RECIPE,
        said="r.toml is not TOML: Invalid value (at end of document). Correct the file, or let harden write one.",
    ),
    Case(
        name="recipe file not UTF-8",
        make=write("r.toml", b'a = "\xff"'),
        command=RECIPE,
        said="r.toml is not TOML: UnicodeDecodeError. Correct the file, or let harden write one.",
    ),
    Case(
        name="recipe file without end",
        command=(*HARDEN, "--recipe", "/dev/zero"),
        said="recipe '/dev/zero' is not known. Join any of base, no-dp, redacted, decoys, fitted-decoys, jft, "
        "dp-sgd, atdp, anchored, noise, interpolate, gradient-difference, npo, simnpo, rmu, negated by +, as in "
        "redacted+atdp.",
    ),
    Case(
        name="recipe file with an unknown member",
        make=recipe('name = "a"\nstage = []\ncolor = 1\n'),
        command=RECIPE,
        said="r.toml: the file: the key 'color' is not known. Its keys are name, stage, run.",
    ),
    Case(
        name="recipe file of no stages",
        make=recipe('name = "a"\n'),
        command=RECIPE,
        said="r.toml: the file: the key 'stage' is missing. Add it.",
    ),
    Case(
        name="recipe file with a number for its name",
        make=recipe("name = 7\nstage = []\n"),
        command=RECIPE,
        said="r.toml: name: Input should be a valid string. Correct this key.",
    ),
    Case(
        name="recipe file nested deep",
        make=recipe("a = " + "[" * 100_000),
        command=RECIPE,
        said="r.toml is not TOML: RecursionError. Correct the file, or let harden write one.",
    ),
    Case(
        name="expression for layers broken",
        command=(*ATDP, "--set", "atdp.layers=(("),
        said="layers is '((', no regular expression. Write one, as in h\\.4\\.|ln_f.",
    ),
    Case(
        name="expression for layers that looks for ever",
        command=(*ATDP, "--set", r"atdp.layers=(\w|\w\w|\w{3}|\w{4}|\w{5}|\.)+\d\d$", "-q"),
        said="The regular expression layers takes more than 1 s on 34 characters. Write it without a repeat "
        "inside a repeat, as in (a+)+.",
    ),
    Case(
        name="stage unknown",
        command=(*ATDP, "--set", "magic.epochs=1"),
        said="--set magic.epochs=1: no stage is called magic. Its only stage is atdp.",
    ),
    Case(
        name="setting unknown",
        command=(*ATDP, "--set", "atdp.blue=1"),
        said="atdp.blue is not an option. Choose one of epochs, optimizer, layers, annealing, warmup, restore-best, "
        "release-noise, decoy-equality, weight, target-share, batch-size, clip-norm, noise-multiplier, escalation, "
        "jitter, sigma-max, learning-rate, weight-decay, towards.",
    ),
    Case(
        name="noise for the default, which has none",
        command=(*HARDEN, "--clip-norm", "1"),
        said="--clip-norm needs a DP stage, and fitted-decoys, the default recipe, has none. Add --recipe atdp, or "
        "another with a DP stage.",
    ),
    Case(
        name="noise for the automatic, which has none",
        command=(*HARDEN, "--auto", "--jitter", "1,1"),
        said="--jitter needs a DP stage, and fitted-decoys, the default recipe, has none. Replace --auto by --recipe "
        "atdp, or another with a DP stage.",
    ),
    Case(
        name="minutes and a recipe",
        command=(*HARDEN, "--minutes", "9", "--recipe", "no-dp"),
        said="--minutes goes with the recipe that is chosen. Choose --epochs, or leave --recipe out.",
    ),
    Case(
        name="canaries that stop the default",
        command=(*HARDEN, "--until-exposure", "3"),
        said="Recipe fitted-decoys has no DP stage that could stop. Leave --until-exposure out, or choose a recipe "
        "with one, as --recipe atdp.",
    ),
    Case(
        name="automatic and a recipe",
        command=(*HARDEN, "--auto", "--recipe", "dp-sgd"),
        said="--auto chooses the recipe that --recipe names. Leave one of them out.",
    ),
    Case(
        name="silence and events",
        command=(*HARDEN, "-q", "--progress", "json"),
        said="--quiet silences what --progress json writes. Leave one of them out.",
    ),
    Case(
        name="spans and a review",
        make=write("s.jsonl", ""),
        command=(*HARDEN, "--spans", "s.jsonl", "--review-each-epoch"),
        said="--spans takes the detector's place, so there is nothing to review. Leave --review-each-epoch out.",
    ),
    Case(
        name="store and no store",
        command=(*HARDEN, "--store", "a.private", "--no-store"),
        said="--store and --no-store contradict each other. Leave one of them out.",
    ),
    Case(
        name="output a link to the model",
        make=link("out", "model"),
        command=(*HARDEN, "--force"),
        said="The output is the model itself. Choose another folder with -o.",
    ),
    Case(
        name="output the root",
        command=line("harden model --data corpus.txt -o / --force"),
        said="-o / names no new folder. Choose another folder with -o.",
    ),
    Case(
        name="canaries that stop without a manifest",
        command=(*ATDP, "--until-exposure", "3"),
        said="--until-exposure ranks the planted canaries by log p and by its ratio to a public model. Name both: "
        "--manifest canaries.json --reference BASE.",
    ),
    Case(
        name="device unknown",
        command=(*HARDEN, "--device", "abacus"),
        said="Invalid value for '--device': 'abacus' is not one of 'auto', 'cpu', 'cuda'. See atdp harden --help.",
    ),
)
