import pytest

from nexus_core import UnknownNameError
from nexus_core.host.registry import Registry


def test_names_come_out_sorted_whatever_the_order_they_went_in() -> None:
    registry: Registry[int] = Registry("renderer")
    registry.add("tagged", 1, "a")
    registry.add("labelled", 2, "b")

    assert list(registry) == ["labelled", "tagged"]
    assert len(registry) == 2


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    registry: Registry[int] = Registry("renderer")
    registry.add("tagged", 1, "a")

    with pytest.raises(UnknownNameError, match="unknown renderer 'taged'") as caught:
        registry.get("taged")

    assert caught.value.hint == "did you mean 'tagged'?"


def test_the_first_of_two_equal_names_stays_and_its_owner_is_told() -> None:
    registry: Registry[str] = Registry("renderer")

    assert registry.add("tagged", "first", "a") is None
    assert registry.add("tagged", "second", "b") == "a"
    assert registry.get("tagged") == "first"
    assert "tagged" in registry
