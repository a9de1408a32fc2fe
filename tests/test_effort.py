"""The choice of cases for a quick run."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from hypothesis import settings

from tests.effort import choose_cases, examples, is_long_run, rounds, some

APIS = ("openai", "responses", "anthropic", "gemini")


@dataclass(frozen=True)
class Item:
    """A test as pytest collects it."""

    nodeid: str

    @property
    def callspec(self) -> SimpleNamespace:
        _, _, case = self.nodeid.removesuffix("]").partition("[")
        api, _, number = case.partition("-")
        return SimpleNamespace(indices={"api": APIS.index(api), "number": int(number)})


ALONE = Item("test_a.py::test_alone")
FEW = [Item(f"test_a.py::test_of_few_cases[{api}-0]") for api in APIS]
MANY = [Item(f"test_a.py::test_of_many_cases[{api}-{number}]") for number in range(50) for api in APIS]
ITEMS: Any = [ALONE, *FEW, *MANY]


def test_cases_are_left_out_only_where_there_are_more() -> None:
    chosen = choose_cases(ITEMS, 4)

    assert {ALONE, *FEW} < chosen
    assert len(chosen - {ALONE, *FEW}) == 4


def test_every_value_of_a_parameter_of_few_values_is_tried() -> None:
    many = choose_cases(ITEMS, 4).intersection(MANY)

    assert {APIS[item.callspec.indices["api"]] for item in many} == set(APIS)


def test_the_same_cases_are_chosen_in_any_order() -> None:
    assert choose_cases(ITEMS, 4) == choose_cases(ITEMS[::-1], 4)


def test_profile_that_pytest_chooses_decides_how_much_is_tried() -> None:
    tried = {}
    before = settings.get_current_profile_name()
    for profile in ("quick", "full", "long"):
        settings.load_profile(profile)
        tried[profile] = is_long_run(), examples(50), rounds(50), len(some(range(80)))
    settings.load_profile(before)

    assert tried == {"quick": (False, 5, 5, 10), "full": (False, 50, 50, 80), "long": (True, 1000, 250, 80)}
