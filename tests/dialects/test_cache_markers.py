"""Marks for the caches of providers, where the SDKs' types have them."""

from __future__ import annotations

from typing import Any, get_args

from anthropic.types import ContentBlockParam
from openai.types.chat import ChatCompletionContentPartParam
from openai.types.responses import ResponseFunctionCallOutputItemParam, ResponseInputContentParam
from typing_extensions import get_type_hints

from nexus_core.dialects import anthropic, openai
from nexus_core.dialects.cache_markers import limit_tool_markers
from nexus_core.dialects.registry import get_dialect
from nexus_core.types.api import BEFORE_MESSAGES
from nexus_core.types.messages import Conversation, Image, Message, Text, Tool, ToolCall, ToolResult

SHORT: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
LONG: dict[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
EXPLICIT: dict[str, Any] = {"prompt_cache_breakpoint": {"mode": "explicit"}}


def types_with(mark: str, union: Any) -> set[str]:
    """The types of blocks that have the field."""
    kinds = [kind for kind in get_args(union) if hasattr(kind, "__total__")]
    hints = [get_type_hints(kind) for kind in kinds]
    return {get_args(hint["type"])[0] for hint in hints if mark in hint}


def written(api: str, messages: list[Message], marks: dict[int, str], tools: tuple[Tool, ...] = ()) -> dict[str, Any]:
    return get_dialect(api).write_request(Conversation(messages=tuple(messages), tools=tools), marks)


def test_anthropics_blocks_that_take_marks_are_those_of_its_sdk() -> None:
    assert types_with(anthropic.CACHE_MARKER_FIELD, ContentBlockParam) == anthropic.MARKABLE_TYPES


def test_openais_parts_that_take_marks_are_those_of_its_sdk() -> None:
    unions = (ChatCompletionContentPartParam, ResponseInputContentParam, ResponseFunctionCallOutputItemParam)

    assert set().union(*(types_with(openai.CACHE_MARKER_FIELD, union) for union in unions)) == openai.MARKABLE_TYPES


def test_a_text_becomes_a_block_to_be_marked() -> None:
    body = written("anthropic", [Message("system", "s"), Message("user", "u")], {0: "1h", 1: "5m"})

    assert body == {
        "system": [{"type": "text", "text": "s", **LONG}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "u", **SHORT}]}],
    }


def test_the_last_tool_is_marked_for_what_stands_before_the_messages() -> None:
    tools = (Tool(name="a"), Tool(name="b"))

    body = written("anthropic", [Message("user", "u")], {BEFORE_MESSAGES: "5m"}, tools)

    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]


def test_a_message_with_nothing_to_mark_has_no_mark() -> None:
    message = Message("assistant", [], api="anthropic", extra={"_content": "list"})

    assert written("anthropic", [Message("user", "u"), message], {1: "5m"})["messages"][1]["content"] == []


def test_a_block_that_is_marked_keeps_its_mark() -> None:
    message = Message("user", [Text("u", LONG)], api="anthropic")

    assert written("anthropic", [message], {0: "5m"})["messages"][0]["content"][0]["cache_control"]["ttl"] == "1h"


def test_chat_marks_the_last_part_of_input_and_no_answer() -> None:
    picture = Image(mime="image/png", data="AAAA")
    messages = [
        Message("user", [Text("look"), picture]),
        Message("assistant", [Text("so"), ToolCall("a", "look", {}), ToolCall("b", "look", {})]),
        Message("tool", [ToolResult("a", "x"), ToolResult("b", (Text("y"), picture))]),
    ]

    user, assistant, first, second, shown = written("openai", messages, dict.fromkeys(range(3), ""))["messages"]

    assert [openai.CACHE_MARKER_FIELD in part for part in user["content"]] == [False, True]
    assert assistant["content"] == "so"
    assert (first["content"], openai.CACHE_MARKER_FIELD in second["content"][-1]) == ("x", True)
    assert openai.CACHE_MARKER_FIELD not in str(shown)


def test_chat_marks_the_right_message_where_answers_are_put_together() -> None:
    messages = [
        Message("user", "1"),
        Message("assistant", "a", api="anthropic"),
        Message("assistant", [ToolCall("", "look", {})], api="gemini"),
        Message("tool", [ToolResult("", "x", "look")], api="gemini"),
        Message("user", "2"),
    ]

    bodies = written("openai", messages, {4: ""})["messages"]

    assert [openai.CACHE_MARKER_FIELD in str(body) for body in bodies] == [False, False, False, True]


def test_an_empty_text_is_not_marked() -> None:
    messages = [Message("tool", [ToolResult("a", "")])]

    assert written("openai", messages, {0: ""})["messages"] == [{"role": "tool", "tool_call_id": "a", "content": ""}]


def test_responses_keeps_its_instructions_where_they_are_not_marked() -> None:
    messages = [Message("system", "s"), Message("user", "u")]

    beside, among = (written("responses", messages, marks) for marks in ({1: ""}, {0: "", 1: ""}))

    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u", **EXPLICIT}]}
    first = {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "s", **EXPLICIT}]}
    assert beside == {"instructions": "s", "input": [said]}
    assert among == {"input": [first, said]}


def test_apis_without_marks_get_none() -> None:
    messages = [Message("system", "s"), Message("user", "u")]

    for api in ("gemini", "neutral"):
        assert written(api, messages, {0: "5m", 1: "5m"}) == written(api, messages, {})


def test_tools_keep_the_last_marks_that_the_api_takes() -> None:
    marks = [LONG, SHORT, {}, LONG, LONG]
    tools = [Tool(name=str(each), api="anthropic", extra=mark) for each, mark in enumerate(marks)]
    rules = get_dialect("anthropic").rules

    assert limit_tool_markers(tools[:3], rules, 4) == tuple(tools[:3])
    limited = limit_tool_markers(tools, rules, 3)
    short = SHORT["cache_control"]
    assert [tool.extra.get("cache_control") for tool in limited] == [None, short, None, short, short]
