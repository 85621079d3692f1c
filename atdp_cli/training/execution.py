"""How the training of a stage is computed, whatever its recipe. Never imports torch."""

from typing import Literal

ClippingEngineName = Literal["ghost", "opacus", "per-record"]
ENGINES: tuple[ClippingEngineName, ...] = ("ghost", "opacus", "per-record")
"""In the order in which `auto` tries them."""

Precision = Literal["float32", "bfloat16"]
"""What layers compute in."""
