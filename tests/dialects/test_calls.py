"""Arguments of tool calls as text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.dialects.calls import parse_arguments, parse_strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
WHITESPACE = st.text(" \t\n\r", max_size=3)


@given(VALUES, WHITESPACE, WHITESPACE)
def test_parse_strict_json_ignores_whitespace_around_any_value(value: object, before: str, after: str) -> None:
    assert parse_strict_json(before + json.dumps(value) + after) == value


@pytest.mark.parametrize(
    "text", ["", '{"a": 1} x', '{"a": 1}{}', '{"a": NaN}', '{"a": 1e999}', '\u00a0{"a": 1}', '{"a": 1}\x0b']
)
def test_arguments_that_are_not_json_are_not_parsed(text: str) -> None:
    assert parse_arguments(text) == {}
