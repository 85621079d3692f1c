"""Runs command lines that cannot work, one after another, and prints those that loaded torch or spaCy."""

import contextlib
import io
import json
import sys

from atdp_cli.cli.app import run


def main() -> None:
    """Command lines come as JSON on standard input, and go out with their exit code, their error and what they loaded.

    After one that loaded something the process is no longer fresh, so no other is run.
    """
    for command in json.load(sys.stdin):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = run(command)
        loaded = [name for name in ("torch", "spacy") if name in sys.modules]
        print(json.dumps({"command": command, "code": code, "error": errors.getvalue(), "loaded": loaded}))
        if loaded:
            break


if __name__ == "__main__":
    main()
