from __future__ import annotations

from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam, ToolUnionParam

from nexus_core.dialects.anthropic.dialect import DIALECT
from nexus_core.values.conversation import Conversation, Tool
from nexus_core.values.message import Message
from nexus_core.values.parts import File, Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from tests.dialects.support import Loopback, accepted, strictly

REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def written(*messages: Message) -> list[dict[str, Any]]:
    """What is written for Anthropic, having passed its SDK's types."""
    bodies = DIALECT.write(messages)
    accepted(strictly(list[MessageParam]), bodies)
    return bodies


def block_of(part: Part, *, api: str = "openai", role: Any = "user") -> Any:
    """The only block of a message with one part, beside some words."""
    (body,) = written(Message(role, (Text("x"), part), api=api))
    return body["content"][1]


def test_a_text_alone_needs_no_list() -> None:
    assert written(Message("user", "Hi")) == [{"role": "user", "content": "Hi"}]


def test_fields_and_notes_of_another_api_are_left_out() -> None:
    message = Message("user", (Text("Hi", {"x": 1, "_y": 2}),), "ann", "openai", {"name": "ann", "_content": "list"})

    assert written(message) == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("parts", [(), (Text(""),), (Opaque("openai", {"type": "x"}),)])
def test_an_error_that_says_nothing_says_that_it_is_one(parts: tuple[Any, ...]) -> None:
    result = ToolResult("1", parts, is_error=True)

    (body,) = written(Message("tool", (result,)))

    assert body["content"][0]["content"] == "[the tool failed and said nothing]"
    assert body["content"][0]["is_error"]


def test_results_of_a_batch_stand_in_one_message_with_what_the_user_said_after_them() -> None:
    bodies = written(
        Message("assistant", (ToolCall("1", "f"), ToolCall("2", "g"))),
        Message("tool", (ToolResult("1", "one"),)),
        Message("tool", (ToolResult("2", "two", is_error=True),)),
        Message("user", "go on"),
    )

    assert bodies[1:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "one"},
                {"type": "tool_result", "tool_use_id": "2", "content": "two", "is_error": True},
                {"type": "text", "text": "go on"},
            ],
        }
    ]


def test_results_come_first_even_where_something_was_said_before_them() -> None:
    bodies = written(Message("user", "wait"), Message("tool", (ToolResult("1", "one"),)))

    assert [block["type"] for block in bodies[0]["content"]] == ["tool_result", "text"]


def test_a_result_made_here_joins_those_that_anthropic_had_already() -> None:
    own = DIALECT.read({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "one"}]})

    (body,) = written(own, Message("tool", (ToolResult("2", "two"),)))

    assert [block["tool_use_id"] for block in body["content"]] == ["1", "2"]


def test_neighbours_without_results_stay_apart() -> None:
    assert len(written(Message("user", "a"), Message("user", "b"), Message("assistant", "c"))) == 3


def test_messages_of_anthropics_own_are_never_joined() -> None:
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}
    words = {"role": "user", "content": "and"}

    assert written(DIALECT.read(result), DIALECT.read(words)) == [result, words]


def test_calls_that_another_api_had_in_several_elements_stand_in_one() -> None:
    bodies = written(
        Message("assistant", "Let me see.", api="responses"),
        Message("assistant", (ToolCall("1", "f"),), api="responses"),
        Message("assistant", (ToolCall("2", "g"),), api="responses"),
        Message("tool", (ToolResult("1"), ToolResult("2"))),
    )

    assert [len(body["content"]) for body in bodies] == [3, 2]


def test_an_answer_made_here_joins_one_of_anthropics_own_where_there_are_calls() -> None:
    own = DIALECT.read({"role": "assistant", "content": "Let me see."})

    bodies = written(own, Message("assistant", (ToolCall("1", "f"),)), Message("tool", (ToolResult("1"),)))

    assert [[block["type"] for block in body["content"]] for body in bodies] == [["text", "tool_use"], ["tool_result"]]


def test_calls_without_ids_and_their_results_get_the_same_ones() -> None:
    calls = Message("assistant", (ToolCall("", "f"), ToolCall("", "g"), ToolCall("", "f")), api="gemini")
    results = Message("tool", tuple(ToolResult("", name, name) for name in ("g", "f", "f")), api="gemini")

    first, second = written(calls, results)

    ids = [block["id"] for block in first["content"]]
    assert len(set(ids)) == 3
    assert [block["tool_use_id"] for block in second["content"]] == [ids[1], ids[0], ids[2]]


@pytest.mark.parametrize(
    ("raw", "arguments", "expected"),
    [
        (None, {}, {}),
        ('{"a": 1}', {"a": 1}, {"a": 1}),
        ("", {}, {}),
        (" { } ", {}, {}),
        ('{"a": ', {}, {"input": '{"a": '}),
        ("[1]", {}, {"input": "[1]"}),
    ],
)
def test_arguments_that_are_no_object_stand_in_one(raw: str | None, arguments: Any, expected: dict[str, Any]) -> None:
    assert block_of(ToolCall("1", "f", arguments, raw), role="assistant")["input"] == expected


def test_thoughts_and_blocks_of_others_are_left_out_and_a_message_of_nothing_else_too() -> None:
    message = Message("assistant", (Reasoning(text="Hm.", api="openai"), Opaque("openai", {"type": "x"})), api="openai")

    assert written(message, Message("assistant", "")) == []


def test_a_thought_of_anthropics_goes_back_even_in_a_message_that_was_rebuilt() -> None:
    thought = Reasoning(text="Hm.", signature="s", api="anthropic")

    assert block_of(thought, api="", role="assistant") == {"type": "thinking", "thinking": "Hm.", "signature": "s"}


@pytest.mark.parametrize(
    ("part", "source"),
    [
        (Image(mime="image/png", data="aGk="), {"type": "base64", "media_type": "image/png", "data": "aGk="}),
        (Image(mime="image/jpg", data="aGk="), {"type": "base64", "media_type": "image/jpeg", "data": "aGk="}),
        (Image(url="data:image/gif;base64,aGk="), {"type": "base64", "media_type": "image/gif", "data": "aGk="}),
        (Image(url="https://x.example/a"), {"type": "url", "url": "https://x.example/a"}),
        (File(mime="image/png", data="aGk="), {"type": "base64", "media_type": "image/png", "data": "aGk="}),
        (
            File(mime="application/pdf", data="aGk="),
            {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
        ),
        (File(mime="text/markdown", data="aGk="), {"type": "text", "media_type": "text/plain", "data": "hi"}),
        (File(mime="application/json", data="aGk="), {"type": "text", "media_type": "text/plain", "data": "hi"}),
        (File(url="https://x.example/a.pdf"), {"type": "url", "url": "https://x.example/a.pdf"}),
    ],
)
def test_media_of_others_are_shown_where_anthropic_can_see_them(part: Image | File, source: dict[str, str]) -> None:
    assert block_of(part)["source"] == source


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Image(mime="image/tiff", data="aGk="), "[image not shown here: image/tiff]"),
        (Image(data="aGk="), "[image not shown here]"),
        (Image(file_id="file-1"), "[image not shown here: file-1]"),
        (Image(url="gs://bucket/a.png"), "[image not shown here: gs://bucket/a.png]"),
        (File(name="a.wav", mime="audio/wav", data="aGk="), "[file not shown here: a.wav]"),
        (File(mime="text/plain", data="/w=="), "[file not shown here: text/plain]"),
        (File(mime="text/plain", data="IA=="), "[file not shown here: text/plain]"),
        (File(mime="text/csv", url="https://x.example/a.csv"), "[file not shown here: https://x.example/a.csv]"),
    ],
)
def test_media_that_anthropic_cannot_see_are_named(part: Image | File, words: str) -> None:
    assert block_of(part) == {"type": "text", "text": words}


def test_a_files_id_given_here_is_taken_as_anthropics_own() -> None:
    assert block_of(File(file_id="file_1", name="Plan"), api="") == {
        "type": "document",
        "source": {"type": "file", "file_id": "file_1"},
        "title": "Plan",
    }


def test_an_assistant_cannot_show_anything() -> None:
    assert block_of(Image(url="https://x.example/a"), role="assistant")["type"] == "text"


def test_a_result_may_show_pictures() -> None:
    result = ToolResult("1", (Text("see"), Image(mime="image/png", data="aGk=")))

    (body,) = written(Message("tool", (result,)))

    assert [block["type"] for block in body["content"][0]["content"]] == ["text", "image"]


def test_instructions_are_a_field_beside_the_messages() -> None:
    messages = (Message("system", "Be brief."), Message("user", "Hi"), Message("system", "Be kind."))

    body = DIALECT.write_request(Conversation(messages=messages))

    assert body == {
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_instructions_that_anthropic_had_among_the_messages_stay_there() -> None:
    later = {"role": "system", "content": "Be kind."}
    request = {"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}, later]}

    conversation = DIALECT.read_request(request)

    assert [message.role for message in conversation.messages] == ["system", "user", "system"]
    assert DIALECT.write_request(conversation) == request


@pytest.mark.parametrize(
    "request_",
    [
        {"messages": []},
        {"messages": [], "system": "", "tools": []},
        {"messages": [], "system": None, "tools": None},
        {"messages": [], "system": "Be brief.", "model": "m", "max_tokens": 5, "metadata": {"user_id": "u"}},
        {"messages": [], "system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
        {"messages": [], "system": [{"type": "text", "text": "x"}]},
        {
            "messages": [],
            "tools": [
                {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": True},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
            ],
        },
    ],
)
def test_a_request_comes_back_as_it_was(request_: dict[str, Any]) -> None:
    assert DIALECT.write_request(DIALECT.read_request(request_)) == request_


def test_arguments_that_are_no_json_are_the_callers_own() -> None:
    timeout = object()

    given = {"messages": [], "timeout": timeout, "top_k": anthropic.NOT_GIVEN}

    assert DIALECT.write_request(DIALECT.read_request(given)) == {"messages": [], "timeout": timeout}


def test_arguments_of_another_providers_request_are_left_out() -> None:
    conversation = Conversation(messages=(Message("user", "Hi"),), api="openai", extra={"model": "gpt-5"})

    assert DIALECT.write_request(conversation) == {"messages": [{"role": "user", "content": "Hi"}]}


BAD_REQUESTS: list[tuple[object, str]] = [
    ([], ""),
    ({}, "messages"),
    ({"messages": {}}, "messages"),
    (
        {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": [{}]}]},
        "messages[1].content[0].type",
    ),
    ({"messages": [], "system": 3}, "system"),
    ({"messages": [], "system": [{"type": "text"}]}, "system[0].text"),
    ({"messages": [], "tools": [{}]}, "tools[0]"),
]


def test_tools_are_in_the_shape_that_the_sdk_knows() -> None:
    tools = DIALECT.write_tools([Tool(name="f", description="d", parameters={"properties": {"a": {"type": "string"}}})])

    accepted(strictly(list[ToolUnionParam]), tools)
    assert tools[0]["input_schema"]["type"] == "object"


def test_the_sdks_client_sends_the_request_as_it_was_written(loopback: Loopback) -> None:
    loopback.answer = REPLY
    messages = (
        Message("system", "Be brief."),
        Message("user", (Text("What is this?"), Image(mime="image/png", data="aGk="))),
        Message("assistant", (Text("Let me see."), ToolCall("call_1", "look", {"at": "it"}))),
        Message("tool", (ToolResult("call_1", "a cat"),)),
        Message("user", "And?"),
    )
    tool = Tool(name="look", description="Looks.", parameters={"type": "object"})
    conversation = Conversation(messages=messages, tools=(tool,), extra={"model": "claude-opus-5", "max_tokens": 9})
    arguments = DIALECT.write_request(conversation)

    with anthropic.Anthropic(base_url=loopback.url, api_key="none", max_retries=0) as client:
        reply = client.messages.create(**arguments)

    assert loopback.paths == ["/v1/messages"]
    assert loopback.body == arguments
    assert DIALECT.read_reply(reply).messages[0].parts == (Text("Hi"),)


@pytest.mark.parametrize("block", [{}, {"a": 1}, {"type": None}, {"type": "text"}, {"type": "text", "text": None}])
@pytest.mark.parametrize("api", ["", "anthropic"])
def test_a_block_made_by_hand_may_lack_its_type_or_its_text(block: dict[str, Any], api: str) -> None:
    parts = (Text("x"), Opaque("anthropic", block))
    said, brought = Message("user", parts, api=api), Message("tool", (ToolResult("c", parts[1:]),))

    (body,) = DIALECT.write([said])

    is_sent = api == "anthropic" or block.get("type") != "text"
    assert body["content"] == ([{"type": "text", "text": "x"}, block] if is_sent else "x")
    DIALECT.write_request(Conversation(messages=(said, brought)), {0: "5m", 1: "5m"})  # breaks nothing either
