"""A check of a checkpoint's patterns and templates in a process with limits of time and memory: they may never end.

`ends_in_time` runs this file as a script, which imports nothing of this package. It reads what to try as JSON on
standard input, and ends with 0 where all was done. What is slow only after words of its own choosing is not found: the
tokenizers library gives such a search up after ten million attempts at one place, and the text is then refused.
"""

import json
import os
import re
import resource
import subprocess
import sys
import time
from itertools import chain
from typing import Any, Literal

TIMEOUT = {"names": 8.0, "tokenizer": 8.0, "template": 30.0}
"""Seconds of each kind of check, on a machine that does other things as well; most take a tenth of it."""

LIMITS = {"names": (2, 1 << 30), "tokenizer": (2, 4 << 30), "template": (5, 4 << 30)}
"""Processor seconds and bytes of each kind of check, imports included."""


def ends_in_time(kind: Literal["names", "tokenizer", "template"], given: object) -> bool:
    """Whether a check ends well within its limits.

    Args:
        kind: Of an adapter's patterns, a tokenizer's, or a chat template.
        given: The input of the check, as JSON.
    """
    try:
        ended = subprocess.run(  # noqa: S603 - our own file, without a shell
            [sys.executable, "-P", __file__, kind],
            input=json.dumps(given).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT[kind],
            check=False,
            env=os.environ | {"TOKENIZERS_PARALLELISM": "false"},
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


NAMES = {
    "target_modules": "{}",
    "exclude_modules": "{}",
    "layers_pattern": r"(?:^|.*?\.){}\.(?P<idx>\d+)\.",
    "modules_to_save": r"(^|.*\.){}($|\..*)",
    "rank_pattern": r"(.*\.)?({})$",
    "alpha_pattern": r"(.*\.)?({})$",
}
"""The settings of an adapter of which peft makes regular expressions, and what it makes of each."""


def _try_names(given: Any) -> None:
    """Search for patterns in the names of a model's modules, as peft does it."""
    for setting, patterns in given["patterns"].items():
        for pattern in patterns:
            expression = re.compile(NAMES[setting].format(pattern))
            for name in given["names"]:
                expression.fullmatch(name) if NAMES[setting] == "{}" else expression.match(name)


FEW, SHORT, LONG, SLOWEST = 8, 2_000, 50_000, 3
"""Characters of the texts that every pattern is tried on, of those for the slowest, and how many the slowest are."""

REPEATED = (
    *("a", "A", "1", " ", "\n", "\t", ".", "-", "_", "'", "é", "日", "\u0301", "#", "/", "\\"),
    *("a ", " a", "1 ", "a1", "Aa", "a.", "a-", "a'", "\r\n", " \n", "ab", "a\n", "'s", "12 ", "日 "),
)


GROWTH = 100
"""The most characters and tokens that may become of one character."""


def _try_tokenizer(given: Any) -> None:
    """Encode texts that a bad pattern takes for ever on, or that grow. On the long ones a quadratic search is found."""
    from tokenizers import Tokenizer

    model = {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"}
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model, **given["parts"]}))

    def seconds(text: str) -> float:
        began = time.process_time()
        made = [tokenizer.encode(text).ids]
        if tokenizer.normalizer is not None:
            made.append(tokenizer.normalizer.normalize_str(text))
        if tokenizer.decoder is not None:
            made.append(tokenizer.decoder.decode([text]))
        if max(map(len, made)) > GROWTH * max(len(text), GROWTH):
            sys.exit(1)
        return time.process_time() - began

    own = list(dict.fromkeys(chain.from_iterable(map(_own, given["patterns"]))))
    # A search is given up at once where a character that it needs is nowhere in the text.
    ends = ("", "!\0a", "\0" + "".join(own) + "\0")
    times = {(part, end): seconds(_text(part, SHORT, end)) for part in dict.fromkeys((*REPEATED, *own)) for end in ends}
    for part, end in sorted(times, key=times.__getitem__)[-SLOWEST:]:
        seconds(_text(part, LONG, end))
    for text in (*given["texts"], *(_text(part, FEW, "") for part in (*REPEATED, *own))):
        seconds(text)


def _own(pattern: str) -> list[str]:
    """The texts that a pattern itself names: its characters, and its words."""
    return [*sorted(set(pattern))[:100], *sorted(set(re.findall(r"\w{2,20}", pattern)))[:100]]


def _text(part: str, length: int, end: str) -> str:
    return (part * (length // len(part) + 1))[:length] + end


CHARACTERS = 1 << 20
"""The most characters that one small conversation may be rendered to."""

ROLES = (
    *(("user",), ("assistant",), ("system",), ("user", "assistant"), ("system", "user", "assistant", "user")),
    *(("user", "assistant") * 8, ("system", "user", "assistant", "tool", "assistant")),
)


def _try_template(template: Any) -> None:
    """Render small conversations; what a template refuses is no fault."""
    from jinja2 import TemplateError
    from transformers.utils.chat_template_utils import render_jinja_template

    for roles in ROLES:
        for content in ("Hello.", "", " a\n" * 1000):
            messages = [{"role": role, "content": content} for role in roles]
            try:
                [text], _ = render_jinja_template([messages], chat_template=template)
            except (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
                continue
            if len(text) > CHARACTERS:
                sys.exit(1)


def _main(kind: str) -> None:
    seconds, size = LIMITS[kind]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    {"names": _try_names, "tokenizer": _try_tokenizer, "template": _try_template}[kind](json.load(sys.stdin))


if __name__ == "__main__":
    _main(sys.argv[1])
