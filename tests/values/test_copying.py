"""A copy is equal, and shares nothing that could be changed."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nexus_core import Message
from nexus_core.plugin import ToolCall
from nexus_core.testing.samples import sample_record
from nexus_core.values.copying import copied

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def changeable(value: Any) -> list[int]:
    """The identities of everything in a value that could be changed."""
    if isinstance(value, dict):
        return [id(value), *(each for inner in value.values() for each in changeable(inner))]
    if isinstance(value, list | tuple):
        inside = [each for inner in value for each in changeable(inner)]
        return [id(value), *inside] if isinstance(value, list) else inside
    if hasattr(value, "__dataclass_fields__"):
        return [each for name in value.__dataclass_fields__ for each in changeable(getattr(value, name))]
    return []


@given(st.dictionaries(st.text(), json), st.dictionaries(st.text(), json))
def test_a_copy_of_a_message_is_equal_and_shares_nothing_that_can_be_changed(
    arguments: dict[str, Any], extra: dict[str, Any]
) -> None:
    message = Message("assistant", (ToolCall("1", "look", arguments, extra=extra),), extra=extra)

    made = copied(message)

    assert made == message == copy.deepcopy(message)
    assert not set(changeable(made)) & set(changeable(message))


def test_a_copy_of_a_step_is_a_step() -> None:
    step, *_ = sample_record()

    made = copied(step)

    assert (type(made), made, made is step, made.data is step.data) == (type(step), step, False, False)


def test_what_strangers_made_is_copied_as_they_want_it() -> None:
    class Odd(Message):
        __slots__ = ("more",)

        def __deepcopy__(self, memo: dict[int, Any]) -> str:
            return "copied"

    made: object = copied((Odd("user", "x"),))

    assert made == ("copied",)
