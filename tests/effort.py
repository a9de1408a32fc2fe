"""How hard tests try: `make quick` tries a part of what `make test` tries, and a long run more of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar
from zlib import crc32

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings
from hypothesis import strategies as st

T = TypeVar("T")
FULL = 100
USUAL = 8


def is_long_run() -> bool:
    """Return True for a long run: `make faults LONG=1` and the like.

    A function, because pytest chooses the profile after this module is imported.
    """
    return settings().max_examples > FULL


def examples(full: int) -> int:
    """How many examples a property is tried with that wants `full` of them in `make test`."""
    return max(1, full * settings().max_examples // FULL)


def rounds(full: int) -> int:
    """How often something is repeated that `make test` repeats `full` times."""
    return full * 5 if is_long_run() else examples(full)


def some(cases: Sequence[T], *, one_in: int = 8) -> Sequence[T]:
    """Return all cases that one test tries in a row; in `make quick`, one in eight of them."""
    return cases if settings().max_examples >= FULL else cases[::one_in]


def sampled(cases: Iterable[Any], *, one_in: int) -> list[ParameterSet]:
    """All cases of a parametrised test; all but the first of each `one_in` are slow."""
    return [_case(case, () if place % one_in == 0 else (pytest.mark.slow,)) for place, case in enumerate(cases)]


def _case(case: Any, marks: tuple[pytest.MarkDecorator, ...]) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return case._replace(marks=(*case.marks, *marks))
    return pytest.param(*case, marks=marks) if isinstance(case, tuple) else pytest.param(case, marks=marks)


def choose_cases(items: Sequence[Any], most: int) -> set[Any]:
    """Choose at most so many cases of each parametrized test, the same ones each time; a test without cases is chosen.

    Each value of a parameter that has no more values than that is in a chosen case.
    """
    tests: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    return {item for cases in tests.values() for item in (_choose(cases, most) if len(cases) > most else cases)}


def _choose(cases: list[Any], most: int) -> list[Any]:
    # In an order in which no parameter changes faster than another.
    cases = sorted(cases, key=lambda case: crc32(case.nodeid.encode()))
    values: dict[str, set[int]] = defaultdict(set)
    for case in cases:
        for name, place in _get_places(case).items():
            values[name].add(place)
    missing = {(name, place) for name, places in values.items() if len(places) <= most for place in places}
    chosen = []
    for _ in range(most):
        best = max(cases, key=lambda case: len(missing & _get_places(case).items()))
        cases.remove(best)
        missing -= _get_places(best).items()
        chosen.append(best)
    return chosen


def _get_places(case: Any) -> dict[str, int]:
    """Return by parameter which of its values a case has."""
    places: dict[str, int] = case.callspec.indices
    return places


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
