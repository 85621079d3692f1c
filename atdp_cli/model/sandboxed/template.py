"""A script: what a chat template makes of small conversations on which a bad one takes for ever, or all memory.

A template that is slow only after words of its own choosing is not found. It reads the template as JSON on standard
input, and ends with 0 unless a limit is passed; what a template refuses is no fault. Nobody imports it;
`ends_in_time` runs it.
"""

import json
import resource
import sys

PROCESSOR_SECONDS, BYTES, CHARACTERS = 5, 4 << 30, 1 << 20
"""Of the trial, imports included, and the most that may become of one small conversation."""

ROLES = (
    *(("user",), ("assistant",), ("system",), ("user", "assistant"), ("system", "user", "assistant", "user")),
    *(("user", "assistant") * 8, ("system", "user", "assistant", "tool", "assistant")),
)


def _main() -> None:
    """Try the template on the standard input."""
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    from jinja2 import TemplateError
    from transformers.utils.chat_template_utils import render_jinja_template

    template = json.load(sys.stdin)
    for roles in ROLES:
        for content in ("Hello.", "", " a\n" * 1000):
            messages = [{"role": role, "content": content} for role in roles]
            try:
                [text], _ = render_jinja_template([messages], chat_template=template)
            except (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
                continue
            if len(text) > CHARACTERS:
                sys.exit(1)


if __name__ == "__main__":
    _main()
