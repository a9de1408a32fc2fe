"""JSON as it is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.errors import LedgerError
from nexus_core.ledger.store import parse_json, write_canonical_json, write_json

TEXTS = st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@given(VALUES)
def test_what_is_stored_is_what_the_standard_library_writes(value: object) -> None:
    assert write_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(VALUES)
def test_the_canonical_form_is_the_same_with_sorted_keys(value: object) -> None:
    assert write_canonical_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def test_a_number_that_json_cannot_write_becomes_its_name_and_half_a_character_a_sign() -> None:
    assert write_json([float("nan"), float("-inf"), "\ud800"]) == '["NaN","-Infinity","\ufffd"]'


def test_what_holds_itself_is_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(LedgerError, match="data cannot be written as JSON"):
        write_json(circle)


def test_a_text_is_written_after_one_that_was_refused() -> None:
    given: dict[str, object] = {"made of": object()}
    with pytest.raises(LedgerError, match="data cannot be written as JSON"):
        write_json(given)
    given["made of"] = "words"
    assert write_json(given) == '{"made of":"words"}'


@given(VALUES, st.sampled_from(["", " ", "\n", " x", ","]), st.booleans())
def test_stored_json_is_parsed_as_the_standard_library_does(value: Any, added: str, in_front: bool) -> None:
    text = added + json.dumps(value) if in_front else json.dumps(value) + added

    assert parse_outcome(parse_json, text) == parse_outcome(json.loads, text)


def parse_outcome(parse: Any, text: str) -> object:
    try:
        return parse(text)
    except ValueError as error:
        return str(error)
