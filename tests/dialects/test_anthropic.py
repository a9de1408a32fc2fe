from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import MessageParam, TextBlock, ToolUseBlock

from nexus_core.dialects.anthropic.dialect import DIALECT
from nexus_core.values.message import Message
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.dialects.support import accepted, strictly

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
        accepted(strictly(list[MessageParam]), [spoilt])


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
    ({"role": "tool", "content": "Hi"}, "role", "Anthropic knows user, assistant, system"),
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
