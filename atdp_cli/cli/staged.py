"""`atdp detect` on the lines that a commit adds, for the hook of pre-commit in `.pre-commit-hooks.yaml`.

    python -m atdp_cli.cli.staged [--OPTION=VALUE of atdp detect]... FILE...

A line for each of them in which something is found, as FILE:LINE and the labels, never the text. The exit code is 1 if
there is any, and 0 if not.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from atdp_cli.cli.app import run
from atdp_cli.cli.escape import escaped

_HUNK = re.compile(r"@@ -\S+ \+(\d+)")

_DIFF = ("git", "--literal-pathspecs", "diff", "--cached", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--")


def added_lines(file: str) -> Iterator[tuple[int, str]]:
    """The lines that the staged version of a file adds, with their numbers in it, from 1."""
    diff = subprocess.run([*_DIFF, file], stdout=subprocess.PIPE, check=True).stdout  # noqa: S603 - git
    number = 0
    for line in diff.decode("utf-8", "replace").split("\n"):
        if hunk := _HUNK.match(line):
            number = int(hunk[1])
        elif number and line.startswith("+"):
            yield number, line[1:]
            number += 1


def detect_staged(arguments: Sequence[str]) -> int:
    """Run the hook and return its exit code."""
    options = [each for each in arguments if each.startswith("-")]
    files = [each for each in arguments if not each.startswith("-")]
    added = [(f"{file}:{number}", text) for file in files for number, text in added_lines(file)]
    if not added:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        corpus, spans = Path(folder, "staged.jsonl"), Path(folder, "spans.jsonl")
        corpus.write_text("".join(f"{json.dumps({'text': text})}\n" for _, text in added), encoding="utf-8")
        if code := run(["detect", str(corpus), "-o", str(spans), "-q", "--set", "run.store=none", *options]):
            return code
        lines = spans.read_text(encoding="utf-8").splitlines()
    labels = [{span["label"] for span in json.loads(line)["spans"]} for line in lines]
    for (place, _), found in zip(added, labels, strict=True):
        if found:
            print(escaped(f"{place}: {', '.join(sorted(found))}"))
    return int(any(labels))


if __name__ == "__main__":
    sys.exit(detect_staged(sys.argv[1:]))
