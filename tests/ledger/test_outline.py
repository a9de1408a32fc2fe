"""An outline says of stored messages what decoding them says, and nothing where they cannot be decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexus_core.errors import LedgerError
from nexus_core.ledger.codec import DECODE_ERRORS, decode_messages, encode_messages
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.outline import MAX_OUTLINED_LEVELS, MessageOutline, outline_messages, outline_step
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import ROLES, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.effort import examples

WORDS = st.sampled_from(["", "red", "look", 'say "red"', "\ud800", "{}"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=4
)
EXTRA = st.dictionaries(WORDS, VALUES, max_size=2)
TEXTS = st.builds(Text, WORDS, EXTRA)
PLAIN_PARTS = (
    TEXTS
    | st.builds(Reasoning, text=WORDS, signature=WORDS, encrypted=WORDS, api=WORDS, extra=EXTRA)
    | st.builds(ToolCall, WORDS, WORDS, EXTRA, st.none() | WORDS, EXTRA)
    | st.builds(ToolResult, WORDS, st.lists(TEXTS, max_size=2), WORDS, st.booleans(), EXTRA)
)
OTHER_PARTS = st.builds(Image, mime=WORDS, url=WORDS) | st.builds(Opaque, WORDS, EXTRA)


def messages(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Message]]:
    """Lists of messages of such parts."""
    return st.lists(
        st.builds(Message, st.sampled_from(ROLES), st.lists(parts, max_size=3), WORDS, WORDS, EXTRA), max_size=3
    )


def decoded(text: str) -> list[MessageOutline] | None:
    """The outlines of messages that are decoded; None where that fails."""
    try:
        found = decode_messages(text, lambda _digest: b"")
    except DECODE_ERRORS:
        return None
    return [MessageOutline(each.role, tuple(call.name for call in each.tool_calls)) for each in found]


@settings(max_examples=examples(300), deadline=None)
@given(messages(PLAIN_PARTS))
def test_an_outline_of_what_is_said_thought_and_called_needs_no_decoding(given: list[Message]) -> None:
    text, _ = encode_messages(given)

    assert outline_messages(text) == decoded(text) is not None


@settings(max_examples=examples(300), deadline=None)
@given(messages(PLAIN_PARTS | OTHER_PARTS))
def test_an_outline_of_anything_else_is_none_or_what_decoding_says(given: list[Message]) -> None:
    text, _ = encode_messages(given)

    assert outline_messages(text) in (None, decoded(text))


REMOVED = object()


def changed(value: Any, path: list[int], new: Any) -> Any:
    """JSON with another value somewhere in it, or without one: where the path leads, as far as that goes."""
    if not path or not isinstance(value, dict | list) or not value:
        return None if new is REMOVED else new
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    if new is REMOVED and len(path) == 1:
        del copied[key]
    else:
        copied[key] = changed(value[key], path[1:], new)
    return copied


@settings(max_examples=examples(500), deadline=None)
@given(messages(PLAIN_PARTS | OTHER_PARTS), st.lists(st.integers(0, 5), max_size=6), VALUES | st.just(REMOVED))
@example([Message("user", "a")], [0, 0], 2)
@example([Message("user", "a")], [0, 0], 1.0)
@example([Message("user", "a")], [0, 1], "robot")
@example([Message("user", "a")], [0, 2, 0, 0], "tool_call")
def test_what_cannot_be_decoded_has_no_outline(given: list[Message], path: list[int], new: Any) -> None:
    text = json.dumps(changed(json.loads(encode_messages(given)[0]), path, new))

    outline = outline_messages(text)

    assert outline is None or outline == decoded(text)


def test_nesting_is_left_to_the_decoder() -> None:
    inner: dict[str, Any] = {}
    for _ in range(MAX_OUTLINED_LEVELS):
        inner = {"a": inner}
    shallow, _ = encode_messages([Message("user", (Text("a", inner["a"]),))])
    deep, _ = encode_messages([Message("user", (Text("a", {"a": inner}),))])
    too_deep = deep.replace('{"a":', '{"a":' * 100).replace("}", "}" * 100)

    assert outline_messages(shallow) == [MessageOutline("user")]
    assert (outline_messages(deep), decoded(deep)) == (None, [MessageOutline("user")])
    assert outline_messages(too_deep) is None


def test_a_step_whose_messages_are_gone_has_no_outline() -> None:
    ledger = MemoryLedger()
    ledger.create(
        "a", steps=[NewStep(kind="turn", closes=True, messages=(Message("user", (Image(data="A" * 4000),)),))]
    )
    (step,) = ledger.steps()
    ledger.store.drop_blobs([digest for digest, _ in ledger.store.blob_rows()])  # type: ignore[attr-defined]

    with pytest.raises(LedgerError, match="is gone"):
        outline_step(step)
