"""How hard tests try: `make quick` tries a part of what `make test` tries, and a long run more of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings

FULL = 100
LONG = settings().max_examples > FULL
"""Whether this is a long run: `make faults LONG=1` and the like."""


def examples(full: int) -> int:
    """How many examples a property is tried with that wants `full` of them in `make test`."""
    return max(1, full * settings().max_examples // FULL)


def rounds(full: int) -> int:
    """How often something is repeated that `make test` repeats `full` times."""
    return full * 5 if LONG else full


def sampled(cases: Iterable[Any], *, one_in: int) -> list[ParameterSet]:
    """All cases of a parametrised test; all but the first of each `one_in` are slow."""
    return [_case(case, () if place % one_in == 0 else (pytest.mark.slow,)) for place, case in enumerate(cases)]


def _case(case: Any, marks: tuple[pytest.MarkDecorator, ...]) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return case._replace(marks=(*case.marks, *marks))
    return pytest.param(*case, marks=marks) if isinstance(case, tuple) else pytest.param(case, marks=marks)
