"""From Anthropic to Gemini and back, and to everybody else: words, calls, results, in their order."""

from __future__ import annotations

import json
from base64 import b64encode
from itertools import pairwise, permutations
from typing import Any

import pytest
from anthropic.types import MessageParam
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.dialects.registry import BUILT_IN_DIALECTS, BUILT_IN_NAMES, get_dialect, read_messages
from nexus_core.types.messages import Message, Text, ToolCall, ToolResult
from tests.dialects.support import WORDS, StrictType, accepted, values_of
from tests.dialects.test_gemini import CONTENTS
from tests.effort import examples

ANTHROPIC, GEMINI = get_dialect("anthropic"), get_dialect("gemini")
MESSAGES = StrictType(list[MessageParam])
UNHURRIED = settings(deadline=None)
ARGUMENTS = st.dictionaries(WORDS, st.none() | st.integers() | st.lists(WORDS, max_size=2), max_size=2)
SAID = st.text("abcdé{ ", min_size=1, max_size=6).filter(str.strip)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Questions and answers in turn, calls with all their results; ids only where the caller has them."""
    has_ids = draw(st.booleans())
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 3))):
        messages.append(Message("user", draw(SAID)))
        for step in range(draw(st.integers(0, 2))):
            count = draw(st.integers(1, 3))
            ids = [f"call_{turn}_{step}_{number}" if has_ids else "" for number in range(count)]
            calls = tuple(ToolCall(call_id, draw(WORDS), draw(ARGUMENTS)) for call_id in ids)
            results = tuple(
                ToolResult(call.id, draw(SAID), call.name, draw(st.booleans())) for call in draw_order(draw, calls)
            )
            said = (Text(draw(SAID)),) if draw(st.booleans()) else ()
            messages.append(Message("assistant", (*said, *calls)))
            messages += [Message("tool", (result,)) for result in results] if turn else [Message("tool", results)]
        messages.append(Message("assistant", draw(SAID)))
    return messages


def draw_order(draw: st.DrawFn, calls: tuple[ToolCall, ...]) -> list[ToolCall]:
    """The order in which results came: any, where ids tell whose they are."""
    return draw(st.permutations(calls)) if calls[0].id else list(calls)


def told(messages: tuple[Message, ...] | list[Message]) -> list[tuple[object, ...]]:
    """What is said, called and answered, in order, whichever elements it stands in; every result by its call's name."""
    names = {call.id: call.name for message in messages for call in message.tool_calls if call.id}
    said: list[tuple[object, ...]] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text):
                said.append((message.role, part.text))
            elif isinstance(part, ToolCall):
                said.append(("call", part.name, dict(part.arguments)))
            elif isinstance(part, ToolResult):
                said.append(("result", part.name or names[part.call_id], part.text))
    return said


def crossed(messages: tuple[Message, ...] | list[Message], *names: str) -> tuple[Message, ...]:
    """The messages, written for one API after the other and read again."""
    for name in names:
        messages = read_messages(get_dialect(name), get_dialect(name).write(messages))
    return tuple(messages)


def taken_by_gemini(contents: list[dict[str, Any]]) -> None:
    for content in contents:
        types.Content.model_validate(content)


@pytest.mark.parametrize("path", list(permutations(BUILT_IN_NAMES, 2)), ids="-".join)
@settings(UNHURRIED, max_examples=examples(20))
@given(messages=conversations())
def test_words_calls_and_results_cross_in_their_order(path: tuple[str, ...], messages: list[Message]) -> None:
    assert told(crossed(messages, *path)) == told(messages)


@UNHURRIED
@given(conversations())
def test_whether_a_tool_failed_crosses_too(messages: list[Message]) -> None:
    there = crossed(messages, "gemini", "anthropic", "gemini")

    failed = [[result.is_error for message in each for result in message.tool_results] for each in (messages, there)]
    assert failed[0] == failed[1]


@UNHURRIED
@given(conversations())
def test_results_are_found_by_the_ids_of_their_calls(messages: list[Message]) -> None:
    bodies = ANTHROPIC.write(crossed(messages, "gemini"))

    accepted(MESSAGES, bodies)
    for answer, results in pairwise(bodies):
        blocks = answer["content"] if isinstance(answer["content"], list) else []
        ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        found = [block["tool_use_id"] for block in results["content"] if block["type"] == "tool_result"] if ids else []
        assert sorted(found) == sorted(ids)


@UNHURRIED
@given(conversations(), st.sampled_from(["anthropic", "gemini"]))
def test_what_was_written_reads_and_writes_the_same(messages: list[Message], name: str) -> None:
    written = get_dialect(name).write(messages)

    assert get_dialect(name).write(crossed(messages, name)) == written
    assert json.dumps(get_dialect(name).write(messages)) == json.dumps(written)


@UNHURRIED
@given(st.lists(values_of(MessageParam), max_size=3))
def test_whatever_anthropic_allows_is_valid_in_gemini(messages: list[Any]) -> None:
    taken_by_gemini(GEMINI.write(read_messages(ANTHROPIC, _with_bytes(messages))))


@UNHURRIED
@given(st.lists(CONTENTS, max_size=3))
def test_whatever_gemini_allows_is_valid_in_anthropic(contents: list[Any]) -> None:
    accepted(MESSAGES, ANTHROPIC.write(read_messages(GEMINI, contents)))


@UNHURRIED
@given(st.lists(values_of(MessageParam), max_size=3), st.lists(CONTENTS, max_size=3), st.randoms())
def test_messages_of_several_apis_may_stand_in_one_list(ours: list[Any], theirs: list[Any], chance: Any) -> None:
    mixed = [*read_messages(ANTHROPIC, _with_bytes(ours)), *read_messages(GEMINI, theirs)]
    chance.shuffle(mixed)

    accepted(MESSAGES, ANTHROPIC.write(mixed))
    taken_by_gemini(GEMINI.write(mixed))


@UNHURRIED
@given(conversations(), st.sampled_from(["anthropic", "gemini"]))
def test_a_list_with_calls_tells_its_dialect(messages: list[Message], name: str) -> None:
    items = get_dialect(name).write(messages)

    if name == "gemini" or any(message.tool_calls for message in messages):
        assert BUILT_IN_DIALECTS.recognise(items).name == name


def _with_bytes(value: Any) -> Any:
    """The same, with base64 where the type only says text."""
    if isinstance(value, list):
        return [_with_bytes(each) for each in value]
    if not isinstance(value, dict):
        return value
    data = {"data": b64encode(value["data"].encode()).decode()} if value.get("type") == "base64" else {}
    return {key: _with_bytes(each) for key, each in value.items()} | data
