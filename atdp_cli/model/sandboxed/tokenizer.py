"""A script: what a tokenizer's patterns make of texts on which a bad one takes for ever.

A pattern that is slow only after words of its own choosing is not found; the tokenizers library gives such a search up
after ten million attempts at one place, and the text is then refused.

It reads the parts, their patterns and some texts as JSON on standard input, and ends with 0 where all was done. Nobody
imports it; `ends_in_time` runs it.
"""

import json
import re
import resource
import sys
import time
from itertools import chain

SHORT, LONG, SLOWEST = 2_000, 50_000, 3
"""Characters of the texts that all are tried, of those that are tried again, and how many are."""

PROCESSOR_SECONDS, BYTES = 2, 4 << 30
"""Of the whole trial; most take a tenth. On the long texts a search that is quadratic takes longer."""

REPEATED = (
    *("a", "A", "1", " ", "\n", "\t", ".", "-", "_", "'", "é", "日", "\u0301", "#", "/", "\\"),
    *("a ", " a", "1 ", "a1", "Aa", "a.", "a-", "a'", "\r\n", " \n", "ab", "a\n", "'s", "12 ", "日 "),
)


def _main() -> None:
    """Try the tokenizer on the standard input."""
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    from tokenizers import Tokenizer

    given = json.load(sys.stdin)
    model = {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"}
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model, **given["parts"]}))

    def seconds(text: str) -> float:
        began = time.process_time()
        tokenizer.encode(text)
        if tokenizer.decoder is not None:
            tokenizer.decoder.decode([text])
        return time.process_time() - began

    own = list(dict.fromkeys(chain.from_iterable(map(_own, given["patterns"]))))
    # A search is given up at once where a character that it needs is nowhere in the text.
    ends = ("", "!\0a", "\0" + "".join(own) + "\0")
    times = {(part, end): seconds(_text(part, SHORT, end)) for part in dict.fromkeys((*REPEATED, *own)) for end in ends}
    for part, end in sorted(times, key=times.__getitem__)[-SLOWEST:]:
        seconds(_text(part, LONG, end))
    for text in given["texts"]:
        seconds(text)


def _own(pattern: str) -> list[str]:
    """What a pattern itself names: its characters, and its words."""
    return [*sorted(set(pattern))[:100], *sorted(set(re.findall(r"\w{2,20}", pattern)))[:100]]


def _text(part: str, length: int, end: str) -> str:
    return (part * (length // len(part) + 1))[:length] + end


if __name__ == "__main__":
    _main()
