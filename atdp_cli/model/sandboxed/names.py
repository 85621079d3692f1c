"""A script: a regular expression searched for in the names of a model's modules, as peft does it.

It reads both as JSON on standard input, and ends with 0 where all was done. `ends_in_time` runs it.
"""

import json
import re
import resource
import sys

FORMS = {
    "target_modules": "{}",
    "exclude_modules": "{}",
    "layers_pattern": r"(?:^|.*?\.){}\.(?P<idx>\d+)\.",
    "modules_to_save": r"(^|.*\.){}($|\..*)",
    "rank_pattern": r"(.*\.)?({})$",
    "alpha_pattern": r"(.*\.)?({})$",
}
"""The settings of an adapter of which peft makes regular expressions, and what it makes of each."""

PROCESSOR_SECONDS, BYTES = 2, 1 << 30
"""Of all the searches; in a model of ten thousand modules they take a quarter of it."""


def _main() -> None:
    """Search for the patterns on the standard input, each in the form that its setting has."""
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    given = json.load(sys.stdin)
    for setting, patterns in given["patterns"].items():
        for pattern in patterns:
            expression = re.compile(FORMS[setting].format(pattern))
            for name in given["names"]:
                expression.fullmatch(name) if FORMS[setting] == "{}" else expression.match(name)


if __name__ == "__main__":
    _main()
