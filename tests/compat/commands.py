"""The command lines of the fixtures: `write.py` runs them to make the files, and the tests on what it made.

`place` is the folder of the fixtures as a command is to name it.
"""

import shlex
from pathlib import Path

STOPPED, KILLED = "stopped", "killed"
"""The run that a signal ended in its first stage; and the same resumed, and killed some steps behind the last of
its saved states, in its second stage."""

FIRST_STAGE = "decoys"

LEDGERS = ("out/privacy_ledger.json", "private/privacy_ledger.json", "leaky/privacy_ledger.json")
"""Of runs with a selective guarantee, with one end to end, and with none."""

# So few candidates that no processor's rounding changes a rank.
PLANT = """plant-canary {}/corpus.txt -o {}/planted.txt --manifest {}/canaries.json --tokenizer {}/model --count 4
--repeats 10 --template 'My code is {{digits:2}}' -q"""

DETECT = "detect {}/planted.txt --tier low-entity -o {}/spans.jsonl --no-store -q"

ON = "harden {}/model --data {}/planted.txt --manifest {}/canaries.json --tier low-entity --threads 1 --device cpu"

# The canaries drilled into the model, without protection.
LEAK = f"""{ON} --spans {{}}/spans.jsonl --recipe no-dp --epochs 60 --learning-rate 1e-2 --set no-dp.batch-size=8
--set no-dp.annealing=linear --insecure-seed 3 -q -o {{}}/leaky"""

# A run that goes to its end. With spans from a file it would have no selective guarantee.
HARDEN = f"""{ON} --no-store --recipe redacted+atdp --prior public --epochs 2 --batch-size 20 --insecure-seed 1 --json
-q -o {{}}/out"""

# With it the ledgers have every kind of event.
PRIVATE = f"""{ON} --spans {{}}/spans.jsonl --recipe atdp+anchored --set atdp.weight=released --reference {{}}/model
--prior public --set atdp.epochs=1 --epochs 1 -q -o {{}}/private"""

# A plan by the recipe file of `out`.
AGAIN = """harden {}/model --data {}/planted.txt --recipe {}/out/recipe.toml --prior public --threads 1 --device cpu
--dry-run --json -q -o {}/again"""

# The run that is interrupted: a stage without noise, then a release and a stage with it. Its saved states have every
# part that one can have but the frequencies of fitted decoys, which would be larger than all other fixtures together.
HALVED = f"""{ON} --spans {{}}/spans.jsonl --recipe decoys+atdp --prior public --weight released --target-share 0.8
--set decoys.epochs=5 --set decoys.batch-size=4 --epochs 7 --batch-size 18
--set atdp.optimizer=adambc --set atdp.towards=start --insecure-seed 1 --checkpoint-every 0 --progress json --json"""

# At this level a canary of a hundred candidates can fail a model.
AUDIT = "audit-canary {}/leaky --manifest {}/canaries.json --reference {}/model --alpha 0.5 --threads 1 --json -q"

ACCOUNT = "account --group 3 --replace-one --floor --json -q"


def words(line: str, place: Path) -> list[str]:
    """The arguments of a command line, each `{}` the place."""
    return [word.replace("{}", str(place)).replace("{{", "{").replace("}}", "}") for word in shlex.split(line)]


def halved(place: Path, output: str) -> list[str]:
    """The run that is interrupted, in the folder `output` of the place."""
    return [*words(HALVED, place), "-o", str(place / output)]


def account(place: Path, *ledgers: str) -> list[str]:
    """All figures of ledgers."""
    return [*words(ACCOUNT, place), *(str(place / ledger) for ledger in ledgers)]
