"""The examples of docs/python.md."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "python.md"

BLOCKS: list[str] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

_SHOWN = re.compile(r"^ *print\(.*\) +# (.*)$", re.MULTILINE)


def shown(block: str) -> list[str]:
    """What the block says that its lines print."""
    return _SHOWN.findall(block)
