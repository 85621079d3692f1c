"""The names of the clipping engines; importing them loads no torch."""

from typing import Literal

EngineName = Literal["bookkeeping", "opacus", "loop"]
ENGINES: tuple[EngineName, ...] = ("bookkeeping", "opacus", "loop")
"""In the order in which `auto` tries them."""
