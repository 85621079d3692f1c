"""Combinations of what models and records can be like that the suite's covering array has not."""

from typing import Any

import pytest

from tests.training.clipping.models import pairwise
from tests.training.clipping.test_matrix import AXES, check, name

CASES = [case for seed in range(1, 7) for case in pairwise(AXES, seed)]


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES, ids=name)
def test_more_combinations(case: dict[str, Any]) -> None:
    check(case)
