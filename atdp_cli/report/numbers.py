"""Numbers as JSON holds them, and the base of every part of a report."""

import math
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

LARGEST = 1 << 63
"""A whole number of JSON may have thousands of digits, and every chart and table wants floats."""

Number = float | Literal["inf"] | None
"""A number, "inf", or null: for an ε where no DP stage ran, for a perplexity where there was no such token."""


class Frozen(BaseModel):
    """A part of a report: it never changes, and a field that nobody knows is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="after")
    def _fits_into_floats(self) -> Self:
        if any(isinstance(value, int) and abs(value) > LARGEST for value in self.__dict__.values()):
            raise ValueError("A whole number is too large.")
        return self


def json_number(value: float | None) -> Number:
    """JSON has no infinity: it is spelt "inf"."""
    return "inf" if value is not None and math.isinf(value) else value


def json_numbers(values: Mapping[str, float | None]) -> dict[str, Number]:
    """`json_number` of every value."""
    return {name: json_number(value) for name, value in values.items()}
