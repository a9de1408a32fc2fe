"""How hard tests try: `make quick` tries a part of what `make test` tries, and a long run more of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings
from hypothesis import strategies as st

FULL = 100
USUAL = 8
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


_concluded = [0]


def conclude() -> None:
    """Say that the running example has reached the assertion of its property."""
    _concluded[0] += 1


ENOUGH = 50
"""Examples from which a share is judged."""


def concludes(share: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Fail a property if fewer of its examples than this share call `conclude`."""

    def decorate(test: Any) -> Callable[..., None]:
        tried = [0]
        inner = test.hypothesis.inner_test

        @wraps(inner)
        def counting(*arguments: Any, **named: Any) -> None:
            tried[0] += 1
            inner(*arguments, **named)

        test.hypothesis.inner_test = counting

        @wraps(test)
        def run(*arguments: Any, **named: Any) -> None:
            tried[0] = _concluded[0] = 0
            test(*arguments, **named)
            # In a quick run, of which the few examples are the smallest, the share says little.
            assert tried[0] < ENOUGH or _concluded[0] >= share * tried[0], (
                f"only {_concluded[0]} of {tried[0]} examples conclude"
            )

        return run

    return decorate


@st.composite
def mostly(draw: st.DrawFn, usual: st.SearchStrategy[Any], others: st.SearchStrategy[Any]) -> Any:
    """Eight of ten times what is usual, otherwise something else."""
    return draw(usual if draw(st.integers(0, 9)) < USUAL else others)
