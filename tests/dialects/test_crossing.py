"""From one of OpenAI's APIs to the other and back: words, calls, results, in their order."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam

from nexus_core.dialects.registry import get_dialect, read_messages
from nexus_core.types.api import Dialect
from nexus_core.types.messages import File, Image, Message, Text, ToolCall, ToolResult
from tests.dialects.support import StrictType, accepted, values_of
from tests.dialects.test_openai import PICTURE, VALID
from tests.timing import assert_linear

CHAT, RESPONSES, NEUTRAL = get_dialect("openai"), get_dialect("responses"), get_dialect("neutral")
MESSAGES = StrictType(list[ChatCompletionMessageParam])
ITEMS = StrictType(list[ResponseInputItemParam])
UNHURRIED = settings(deadline=None)
WORDS = st.text("abcdé ", min_size=1, max_size=6)
ARGUMENTS = st.sampled_from(["{}", '{"a": 1}', "{broken", ""])


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation as chat has it: questions, answers, calls with all their results."""
    messages: list[dict[str, Any]] = [{"role": draw(st.sampled_from(["system", "developer"])), "content": draw(WORDS)}]
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(WORDS)})
        ids = [f"call_{turn}_{number}" for number in range(draw(st.integers(0, 3)))]
        custom = draw(st.booleans())
        if ids:
            content = {"content": draw(WORDS.filter(str.strip))} if draw(st.booleans()) else {"content": None}
            calls = [_custom(call, draw(WORDS)) if custom else _call(call, draw(ARGUMENTS)) for call in ids]
            messages.append({"role": "assistant", **content, "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": call, "content": draw(WORDS)} for call in ids]
        messages.append({"role": "assistant", "content": draw(WORDS)})
    return messages


def _call(call_id: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "ls", "arguments": arguments}}


def _custom(call_id: str, text: str) -> dict[str, Any]:
    return {"id": call_id, "type": "custom", "custom": {"name": "sql", "input": text}}


def told(messages: list[Message]) -> list[tuple[object, ...]]:
    """What is said, called and answered, in order, whichever messages it stands in."""
    said: list[tuple[object, ...]] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text):
                said.append((message.role, part.text))
            elif isinstance(part, ToolCall):
                said.append((part.id, part.name, dict(part.arguments), part.raw))
            elif isinstance(part, ToolResult):
                said.append((part.call_id, part.text))
    return said


def crossed(items: list[Any], *path: Dialect) -> list[Any]:
    for here, there in pairwise(path):
        items = there.write(read_messages(here, items))
    return items


@UNHURRIED
@given(turns())
def test_a_conversation_crosses_and_returns_as_it_was(messages: list[dict[str, Any]]) -> None:
    items = crossed(messages, CHAT, NEUTRAL)

    assert crossed(items, NEUTRAL, CHAT) == messages
    there = crossed(messages, CHAT, RESPONSES)
    accepted(ITEMS, there)
    assert told(list(read_messages(RESPONSES, there))) == told(list(read_messages(CHAT, messages)))
    assert crossed(there, RESPONSES, CHAT) == messages


@UNHURRIED
@given(turns())
def test_a_request_crosses_and_returns(messages: list[dict[str, Any]]) -> None:
    request = {"model": "m", "temperature": 1, "messages": messages, "max_tokens": 5}

    there = RESPONSES.write_request(CHAT.read_request(request))
    back = CHAT.write_request(RESPONSES.read_request(there))

    assert (there["model"], there["temperature"], "max_tokens" in there) == ("m", 1, False)
    assert ("instructions" in there) == (messages[0]["role"] == "system")
    assert back == {"model": "m", "temperature": 1, "messages": messages}


@UNHURRIED
@given(st.lists(values_of(ChatCompletionMessageParam), max_size=3))
def test_whatever_chat_allows_is_valid_in_responses(messages: list[Any]) -> None:
    accepted(ITEMS, crossed(messages, CHAT, RESPONSES))


@UNHURRIED
@given(st.lists(values_of(ResponseInputItemParam), max_size=3))
def test_whatever_responses_allows_is_valid_in_chat(items: list[Any]) -> None:
    accepted(MESSAGES, crossed(items, RESPONSES, CHAT))


def test_words_calls_and_results_of_items_keep_their_order_in_chat() -> None:
    items = [
        {"role": "user", "content": "q"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "3"},
        {"role": "assistant", "content": "done"},
    ]

    messages = crossed(items, RESPONSES, CHAT)

    accepted(MESSAGES, messages)
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert told(list(read_messages(CHAT, messages))) == told(list(read_messages(RESPONSES, items)))


@pytest.mark.parametrize("name", ["a picture", "a picture elsewhere", "a file"])
def test_pictures_and_files_cross_and_return(name: str) -> None:
    there = crossed([VALID[name]], CHAT, RESPONSES)

    accepted(ITEMS, there)
    parts = [part for part in CHAT.read(VALID[name]).parts if isinstance(part, Image | File)]
    (back,) = read_messages(CHAT, crossed(there, RESPONSES, CHAT))
    assert [_held(part) for part in back.parts] == [_held(part) for part in parts]


def _held(part: Any) -> tuple[str, ...]:
    return part.data, part.url, part.file_id


def test_a_screenshot_crosses_to_chat() -> None:
    items = [
        {
            "type": "computer_call",
            "id": "cu",
            "call_id": "c",
            "action": {"type": "screenshot"},
            "pending_safety_checks": [],
            "status": "completed",
        },
        {
            "type": "computer_call_output",
            "call_id": "c",
            "output": {"type": "computer_screenshot", "image_url": PICTURE},
        },
    ]

    called, result, shown = crossed(items, RESPONSES, CHAT)

    assert called["tool_calls"][0]["function"] == {
        "name": "computer",
        "arguments": '{"action":{"type":"screenshot"}}',
    }
    assert result["tool_call_id"] == "c"
    assert shown["content"] == [{"type": "image_url", "image_url": {"url": PICTURE}}]


def test_an_empty_text_beside_a_call_is_no_item_of_responses() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [_call("call_1", "{}")]}

    there = crossed([message], CHAT, RESPONSES)

    assert [item["type"] for item in there] == ["function_call"]


@pytest.mark.acceptance("T18")
def test_raw_arguments_of_many_blanks_take_time_in_proportion_to_their_length() -> None:
    def write(length: int) -> None:
        call = ToolCall("a", "look", {}, raw=" " * length + "!")
        get_dialect("anthropic").write([Message("assistant", [call])])

    assert_linear(write, 25_000, 100_000)
