"""The names of the clipping engines and of what layers compute in; importing them loads no torch."""

from typing import Literal

EngineName = Literal["bookkeeping", "opacus", "loop"]
ENGINES: tuple[EngineName, ...] = ("bookkeeping", "opacus", "loop")
"""In the order in which `auto` tries them."""

Precision = Literal["float32", "bfloat16"]
