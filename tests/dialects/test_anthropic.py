"""Anthropic's Messages: blocks, requests, replies and streams."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types import MessageParam, RawMessageStreamEvent, TextBlock, ToolUnionParam, ToolUseBlock
from hypothesis import given
from pydantic import BaseModel, TypeAdapter

from nexus_core.dialects.anthropic import DIALECT
from nexus_core.types.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.dialects.support import JSON, Loopback, StrictType, accepted, attempted

RESULT = {"type": "tool_result", "tool_use_id": "toolu_1"}
SEALED = {"type": "thinking", "thinking": "Hm.", "signature": "c2Vhb"}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def only_part(block: dict[str, Any], role: str = "user") -> Any:
    (part,) = DIALECT.read({"role": role, "content": [block]}).parts
    return part


@pytest.mark.parametrize(
    "spoilt",
    [
        {"role": "tool", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": "x", "name": "y"},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
        {"role": "user", "content": [{"type": "text", "text": "x", "colour": "red"}]},
        {"role": "user", "content": [{**RESULT, "content": [{"type": "tool_use"}]}]},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": "{}"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]},
    ],
)
def test_the_validator_of_these_tests_refuses_what_the_api_would_refuse(spoilt: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        accepted(StrictType(list[MessageParam]), [spoilt])


def test_a_text_is_one_part() -> None:
    assert DIALECT.read({"role": "user", "content": "Hi"}) == Message("user", (Text("Hi"),), api="anthropic")


def test_citations_and_cache_marks_stay_with_their_text() -> None:
    marks = {"cache_control": {"type": "ephemeral", "ttl": "1h"}, "citations": None}

    assert only_part({"type": "text", "text": "Hi", **marks}) == Text("Hi", marks)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ({"type": "base64", "media_type": "image/png", "data": "aGk="}, Image(mime="image/png", data="aGk=")),
        ({"type": "url", "url": "https://x.example/a.png"}, Image(url="https://x.example/a.png")),
        ({"type": "file", "file_id": "file_1"}, Image(file_id="file_1")),
    ],
)
def test_a_picture_is_its_bytes_an_address_or_an_id(source: dict[str, str], part: Image) -> None:
    assert only_part({"type": "image", "source": source}) == part


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"type": "base64", "media_type": "application/pdf", "data": "aGk="}, ("application/pdf", "aGk=", "", "")),
        ({"type": "text", "media_type": "text/plain", "data": "hi"}, ("text/plain", "aGk=", "", "")),
        ({"type": "content", "content": "hi"}, ("text/plain", "aGk=", "", "")),
        ({"type": "url", "url": "https://x.example/a.pdf"}, ("", "", "https://x.example/a.pdf", "")),
        ({"type": "file", "file_id": "file_1"}, ("", "", "", "file_1")),
    ],
)
def test_a_document_is_a_file_whatever_its_source(source: dict[str, str], expected: tuple[str, ...]) -> None:
    part = only_part({"type": "document", "source": source, "title": "Plan"})

    assert isinstance(part, File)
    assert part.name == "Plan"
    assert (part.mime, part.data, part.url, part.file_id) == expected


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "hi"}]}},
        {"type": "image", "source": {"type": "hologram", "data": "x"}},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "hi"}]},
        {"type": "container_upload", "file_id": "file_1"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {
            "type": "code_execution_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "code_execution_result"},
        },
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "f", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": "x"},
        {"type": "compaction", "content": "So far…", "encrypted_content": "x"},
        {"type": "something_new", "field": [1]},
    ],
)
def test_what_only_the_provider_understands_is_kept_whole(block: dict[str, Any]) -> None:
    assert only_part(block, "assistant") == Opaque("anthropic", block)


def test_thoughts_keep_their_seal() -> None:
    message = DIALECT.read({"role": "assistant", "content": [SEALED, {"type": "redacted_thinking", "data": "x"}]})

    assert message.parts == (
        Reasoning(text="Hm.", signature="c2Vhb", api="anthropic"),
        Reasoning(encrypted="x", api="anthropic"),
    )


def test_a_call_has_its_arguments_as_an_object() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": [1]}, "caller": {"type": "direct"}}

    assert only_part(block, "assistant") == ToolCall("toolu_1", "f", {"a": [1]}, extra={"caller": {"type": "direct"}})


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({}, ToolResult("toolu_1")),
        ({"content": "ok"}, ToolResult("toolu_1", (Text("ok"),))),
        ({"content": "bad", "is_error": True}, ToolResult("toolu_1", (Text("bad"),), is_error=True)),
        ({"content": [], "is_error": False}, ToolResult("toolu_1", extra={"is_error": False, "_content": "list"})),
    ],
)
def test_a_result_is_read_however_short_it_is(fields: dict[str, Any], result: ToolResult) -> None:
    assert only_part(RESULT | fields) == result


def test_a_message_of_nothing_but_results_is_the_tools() -> None:
    words = {"type": "text", "text": "and now?"}

    assert DIALECT.read(user(RESULT, {**RESULT, "tool_use_id": "toolu_2"})).role == "tool"
    assert DIALECT.read(user(RESULT, words)).role == "user"


def test_objects_of_the_sdk_may_stand_in_the_content() -> None:
    said = [TextBlock(type="text", text="Let me see."), ToolUseBlock(type="tool_use", id="1", name="f", input={"a": 1})]

    message = DIALECT.read({"role": "assistant", "content": said})

    assert message.parts == (Text("Let me see."), ToolCall("1", "f", {"a": 1}))


def test_of_a_whole_reply_among_the_messages_only_what_may_be_sent_back_is_read() -> None:
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": {}, "content": "Hi"}

    assert DIALECT.write([DIALECT.read(reply)]) == [{"role": "assistant", "content": "Hi"}]


BAD: list[tuple[object, str, str]] = [
    ("Hi", "", "expected an object, not the text 'Hi'"),
    ({"content": "Hi"}, "role", "there is no 'role'"),
    ({"role": "asistant", "content": "Hi"}, "role", "did you mean 'assistant'"),
    ({"role": "tool", "content": "Hi"}, "role", "Anthropic has the roles user, assistant, system"),
    ({"role": "user"}, "content", "there is no 'content'"),
    ({"role": "user", "content": 3}, "content", "expected text or a list of blocks, not the number 3"),
    ({"role": "user", "content": ["Hi"]}, "content[0]", "expected an object, not the text 'Hi'"),
    (user({"text": "Hi"}), "content[0].type", "there is no 'type'"),
    (user({"type": "text", "text": None}), "content[0].text", "expected text, not null"),
    (user({"type": "image"}), "content[0].source", "there is no 'source'"),
    (user({"type": "image", "source": {"type": "url"}}), "content[0].source.url", "there is no 'url'"),
    (user(RESULT | {"is_error": "yes"}), "content[0].is_error", "expected true or false"),
    (user(RESULT | {"content": [{"type": "text"}]}), "content[0].content[0].text", "there is no 'text'"),
    (
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": "{}"}]},
        "content[0].input",
        "expected an object, not the text '{}'",
    ),
]


@pytest.mark.parametrize(
    "block",
    [
        RESULT,
        {"type": "tool_use", "id": "1", "name": "f", "input": {}},
        SEALED,
        {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {}},
        {"type": "image", "source": {"type": "url", "url": "https://x.example"}},
    ],
)
def test_a_block_that_nobody_else_has_tells_the_dialect(block: dict[str, Any]) -> None:
    assert DIALECT.recognises(user(block))


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.example"}}]},
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {"content": [3, {"type": 3}]},
    ],
)
def test_what_others_write_too_does_not_tell_it(item: dict[str, Any]) -> None:
    assert not DIALECT.recognises(item)


SHORT_REPLY = {
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
    accepted(StrictType(list[MessageParam]), bodies)
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

    accepted(StrictType(list[ToolUnionParam]), tools)
    assert tools[0]["input_schema"]["type"] == "object"


def test_the_sdks_client_sends_the_request_as_it_was_written(loopback: Loopback) -> None:
    loopback.answer = SHORT_REPLY
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


USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 200,
    "cache_creation_input_tokens": 30,
    "output_tokens": 50,
    "output_tokens_details": {"thinking_tokens": 20},
}
BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Hm.", "signature": "c2Vhb"},
    {"type": "text", "text": "Let me see.", "citations": None},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": ["it"]}},
]
REPLY: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": BLOCKS,
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": USAGE,
}
START: dict[str, Any] = {
    "type": "message_start",
    "message": REPLY | {"content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}},
}
END: dict[str, Any] = {
    "type": "message_delta",
    "delta": {"stop_reason": "tool_use", "stop_sequence": None},
    "usage": {key: value for key, value in USAGE.items() if key != "input_tokens"},
}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def json_delta(text: str) -> dict[str, str]:
    return {"type": "input_json_delta", "partial_json": text}


CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
EVENTS = [
    START,
    {"type": "ping"},
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "H"},
        {"type": "thinking_delta", "thinking": "m."},
        {"type": "signature_delta", "signature": "c2Vhb"},
    ),
    *block(
        1,
        {"type": "text", "text": "", "citations": None},
        {"type": "text_delta", "text": "Let me "},
        {"type": "text_delta", "text": "see."},
    ),
    *block(
        2,
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        json_delta('{"query": "x"}'),
    ),
    *block(3, CALL, json_delta(""), json_delta('{"at": ["i'), json_delta('t"]}')),
    END,
    {"type": "message_stop"},
]


def test_a_reply_is_a_message_that_may_be_sent_back() -> None:
    reply = DIALECT.read_reply(REPLY)

    assert (reply.id, reply.model, reply.stop, reply.stop_reason) == ("msg_1", "claude-opus-5", "tools", "tool_use")
    assert DIALECT.write(reply.messages) == [{"role": "assistant", "content": BLOCKS}]


def test_what_is_read_from_and_put_into_the_cache_is_input_as_well() -> None:
    assert DIALECT.read_reply(REPLY).usage == Usage(
        input_tokens=240,
        output_tokens=50,
        cached_input_tokens=200,
        cache_write_tokens=30,
        reasoning_tokens=20,
    )


def test_an_object_of_the_sdk_reads_like_its_json() -> None:
    assert DIALECT.read_reply(SdkMessage.model_validate(REPLY)) == DIALECT.read_reply(REPLY)


def test_what_the_sdk_parsed_for_its_user_is_not_sent_back(loopback: Loopback) -> None:
    class Answer(BaseModel):
        a: int

    loopback.answer = REPLY | {"content": [{"type": "text", "text": '{"a": 1}'}]}

    with anthropic.Anthropic(base_url=loopback.url, api_key="none", max_retries=0) as client:
        reply = client.messages.parse(
            model="claude-opus-5", max_tokens=9, messages=[{"role": "user", "content": "Hi"}], output_format=Answer
        )

    assert reply.parsed_output == Answer(a=1)
    assert DIALECT.read_reply(reply).messages[0].parts == (Text('{"a": 1}'),)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "tools"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause"),
        ("compaction", "pause"),
        ("refusal", "refusal"),
        ("something_new", ""),
        (None, ""),
    ],
)
def test_every_reason_to_stop_has_a_word(reason: str | None, stop: str) -> None:
    reply = DIALECT.read_reply(REPLY | {"stop_reason": reason})

    assert (reply.stop, reply.stop_reason) == (stop, reason or "")


def test_every_reason_that_the_sdk_knows_has_a_word() -> None:
    reasons = anthropic.types.StopReason.__args__ + anthropic.types.beta.BetaStopReason.__args__  # type: ignore[attr-defined]

    assert all(DIALECT.read_reply(REPLY | {"stop_reason": reason}).stop for reason in reasons)


def test_a_reply_may_say_nothing_and_cost_unknown() -> None:
    reply = DIALECT.read_reply({"role": "assistant", "content": [], "stop_reason": "end_turn"})

    assert (reply.messages[0].parts, reply.usage) == ((), None)


def test_events_add_up_to_the_reply() -> None:
    assert DIALECT.read_reply(EVENTS) == DIALECT.read_reply(REPLY)


def test_so_do_the_events_of_the_sdk() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)

    events = [adapter.validate_python(event) for event in EVENTS if event["type"] != "ping"]

    assert DIALECT.read_reply(events) == DIALECT.read_reply(REPLY)


def test_the_sdks_own_stream_ends_in_the_same_message(loopback: Loopback) -> None:
    loopback.answer = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS)

    with (
        anthropic.Anthropic(base_url=loopback.url, api_key="none", max_retries=0) as client,
        client.messages.stream(
            model="claude-opus-5", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
        ) as stream,
    ):
        events = list(stream)
        final = stream.get_final_message()

    assert DIALECT.read_reply(events) == DIALECT.read_reply(final) == DIALECT.read_reply(REPLY)


def test_citations_of_a_stream_stay_with_their_text() -> None:
    cited = {"type": "web_search_result_location", "url": "https://x.example"}

    (part,) = (
        DIALECT.read_reply(
            [
                START,
                *block(
                    0,
                    {"type": "text", "text": "", "citations": None},
                    {"type": "text_delta", "text": "Yes."},
                    {"type": "citations_delta", "citation": cited},
                ),
                END,
            ]
        )
        .messages[0]
        .parts
    )

    assert part == Text("Yes.", {"citations": [cited]})


def test_a_compaction_arrives_whole() -> None:
    delta = {"type": "compaction_delta", "content": "So far…", "encrypted_content": "x"}

    reply = DIALECT.read_reply([START, *block(0, {"type": "compaction", "content": None}, delta), END])

    whole = {"type": "compaction", "content": "So far…", "encrypted_content": "x"}
    assert reply.messages[0].parts == (Opaque("anthropic", whole),)


def test_arguments_that_were_cut_off_are_kept_as_far_as_they_came() -> None:
    events = [START, *block(0, CALL, json_delta('{"at": ["i')), END | {"delta": {"stop_reason": "max_tokens"}}]

    reply = DIALECT.read_reply(events)

    assert reply.stop == "length"
    assert reply.messages[0].parts == (ToolCall("toolu_1", "look", {}, '{"at": ["i'),)


def test_a_stream_that_ended_in_an_error_says_which() -> None:
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    reply = DIALECT.read_reply([*EVENTS[:4], failed])

    assert (reply.stop, reply.stop_reason) == ("error", "overloaded_error")
    assert reply.messages[0].parts == (Reasoning(text="H", api="anthropic", extra={"signature": ""}),)
    assert DIALECT.read_reply([failed]).messages[0].parts == ()


def test_a_stream_without_an_end_broke_off() -> None:
    reply = DIALECT.read_reply(EVENTS[:-2])

    assert (reply.stop, reply.stop_reason) == ("broken", "")


BAD_REPLIES: list[tuple[object, str, str]] = [
    ({"type": "error", "error": {"type": "api_error", "message": "Oh no"}}, "error", "an error: 'Oh no'"),
    ("Hi", "", "expected an object"),
    ({}, "content", "there is no 'content'"),
    (REPLY | {"usage": []}, "usage", "expected an object"),
    (REPLY | {"usage": {"input_tokens": "3"}}, "usage.input_tokens", "expected a whole number"),
    (REPLY | {"stop_reason": 3}, "stop_reason", "expected text"),
    ([], "", "contain no reply"),
    ([{"type": "message_stop"}], "[0].type", "starts with 'message_start'"),
    ([START, {"type": "content_block_delta", "index": 4, "delta": {}}], "[1].index", "no block has started at 4"),
    ([START, *block(0, CALL, {"type": "text_delta", "text": 3})], "[2].delta.text", "expected text"),
    ([START, 3], "[1]", "expected an object"),
]


@given(JSON, JSON)
def test_anything_at_all_is_read_as_a_reply_or_refused(value: Any, other: Any) -> None:
    replies = (
        value,
        REPLY | {"content": value, "usage": other},
        [START, {"type": "content_block_start", "index": 0, "content_block": value}, *block(1, CALL, other)],
        [
            START,
            *block(0, {"type": "text", "text": value}, {"type": "text_delta", "text": "x"}),
            END | {"usage": other},
        ],
        [START, {"type": "message_delta", "delta": value, "usage": other}],
    )
    for reply in replies:
        attempted(DIALECT.read_reply, reply)
