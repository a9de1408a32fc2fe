"""Messages of Converse: what it takes comes back as it was, and what is spoiled is read or refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import Message, MessageError, check, dialect
from nexus_core.plugin import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.dialects.support import JSON, attempted, extended, spoiled
from tests.effort import conclude, concludes, mostly
from tests.plugins.bedrock.converse import BEDROCK, accepted, in_json, values_of

MESSAGES = values_of("Message")
PICTURE = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
CALL = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": "it"}}}
FILM = {"video": {"format": "mp4", "source": {"bytes": b"\x00film"}}}
SEALED = {"reasoningContent": {"redactedContent": b"\x00\x01"}}
S3 = {"s3Location": {"uri": "s3://bucket/a.pdf", "bucketOwner": "123456789012"}}


def parts_of(*blocks: dict[str, Any], role: str = "user") -> tuple[Any, ...]:
    """What is read of blocks that Bedrock would take, and that come back as they were."""
    message = {"role": role, "content": list(blocks)}
    accepted(message, "Message")
    read = BEDROCK.read(message)
    assert BEDROCK.write([read]) == [message]
    return read.parts


@given(items=st.lists(MESSAGES, max_size=3))
def test_whatever_the_api_allows_comes_back_as_it_was(items: list[Any]) -> None:
    before = deepcopy(items)

    assert BEDROCK.write([BEDROCK.read(item) for item in items]) == items
    assert items == before


@given(items=st.lists(MESSAGES, max_size=3))
def test_it_comes_back_as_it_was_from_a_ledger_too(items: list[Any]) -> None:
    neutral = dialect("neutral")

    kept = neutral.write([BEDROCK.read(item) for item in items])

    assert BEDROCK.write([neutral.read(each) for each in kept]) == items


@concludes(0.6)
@given(item=mostly(extended(MESSAGES), spoiled(MESSAGES) | JSON))
def test_anything_at_all_is_understood_or_refused(item: Any) -> None:
    read = attempted(BEDROCK.read, item)
    written = BEDROCK.write([read] if read else [])

    assert BEDROCK.write([BEDROCK.read(each) for each in written]) == written
    if written:
        conclude()


@given(item=MESSAGES)
def test_the_json_of_a_message_is_read_like_the_message(item: Any) -> None:
    assert BEDROCK.read(in_json(item)) == BEDROCK.read(item)


def test_words_pictures_and_documents() -> None:
    document = {"document": {"format": "md", "name": "notes", "source": {"bytes": b"# Hi"}}}

    assert parts_of({"text": "Hi"}, PICTURE, document) == (
        Text("Hi"),
        Image(mime="image/png", data="iVBORw=="),
        File(name="notes", mime="text/markdown", data="IyBIaQ=="),
    )


def test_the_words_of_a_document_are_its_bytes() -> None:
    (file,) = parts_of({"document": {"name": "notes", "source": {"text": "Grüße"}, "citations": {"enabled": True}}})

    assert (file.mime, file.data) == ("text/plain", "R3LDvMOfZQ==")


def test_what_is_in_s3_is_a_file_that_only_bedrock_can_fetch() -> None:
    (file,) = parts_of({"document": {"format": "pdf", "name": "a", "source": S3}})

    assert (file.file_id, file.url) == ("s3://bucket/a.pdf", "")
    assert dialect("openai").write([Message("user", (file,), api="bedrock")]) == [
        {"role": "user", "content": "[file not shown here: s3://bucket/a.pdf]"}
    ]


def test_thoughts_keep_their_seals() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2Vhb"}}}

    assert parts_of(thought, SEALED, role="assistant") == (
        Reasoning(text="Hm.", signature="c2Vhb", api="bedrock"),
        Reasoning(encrypted="AAE=", api="bedrock"),
    )


def test_calls() -> None:
    assert parts_of(CALL, role="assistant") == (ToolCall("t1", "look", {"at": "it"}),)


def test_arguments_that_are_no_object_are_kept_as_text() -> None:
    (call,) = parts_of({"toolUse": {"toolUseId": "t1", "name": "look", "input": ["it"]}}, role="assistant")

    assert (call.arguments, call.raw) == ({}, '["it"]')


def test_results_are_the_tools_word() -> None:
    result = {"toolUseId": "t1", "content": [{"text": "a"}, {"json": {"b": [1]}}, PICTURE, FILM], "status": "error"}

    message = BEDROCK.read({"role": "user", "content": [{"toolResult": result}]})

    assert message.role == "tool"
    (read,) = message.tool_results
    assert isinstance(read, ToolResult)
    assert (read.call_id, read.is_error, read.text) == ("t1", True, 'a\n{"b":[1]}')
    assert read.parts[2:] == (
        Image(mime="image/png", data="iVBORw=="),
        Opaque("bedrock", {"video": {"format": "mp4", "source": {"bytes": "AGZpbG0="}}}),
    )


def test_json_in_a_result_that_was_cut_goes_back_as_words() -> None:
    message = BEDROCK.read(
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"json": [1, 2]}]}}]}
    )
    (result,) = message.tool_results
    (text,) = result.parts
    assert isinstance(text, Text)

    cut = Message("tool", (ToolResult("t1", (Text("[1,", text.extra),)),), api="bedrock")

    assert BEDROCK.write([cut])[0]["content"][0]["toolResult"]["content"] == [{"text": "[1,"}]


def test_what_is_said_with_its_sources_is_said() -> None:
    cited = {"content": [{"text": "Grass "}, {"text": "is green."}], "citations": [{"title": "Lawn"}]}

    (text,) = parts_of({"citationsContent": cited}, role="assistant")

    assert text.text == "Grass is green."
    assert dialect("openai").write([Message("assistant", (text,), api="bedrock")]) == [
        {"role": "assistant", "content": "Grass is green."}
    ]


@pytest.mark.parametrize(
    "block",
    [
        FILM,
        {"audio": {"format": "mp3", "source": {"bytes": b"\x00"}}},
        {"guardContent": {"text": {"text": "x", "qualifiers": ["query"]}}},
        {"guardContent": {"image": {"format": "png", "source": {"bytes": b"\x89"}}}},
        {"cachePoint": {"type": "default", "ttl": "1h"}},
        {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}},
        {
            "toolUse": {
                "toolUseId": "t1",
                "name": "nova_grounding",
                "input": {"bytes": "QUJD"},
                "type": "server_tool_use",
            }
        },
        {"document": {"name": "a", "source": {"content": [{"text": "x"}]}}},
    ],
    ids=lambda block: next(iter(block)),
)
def test_what_nexus_has_no_word_for_stays_as_it_is_and_goes_to_nobody_else(block: dict[str, Any]) -> None:
    (part,) = parts_of(block)

    assert isinstance(part, Opaque)
    assert dialect("openai").write([Message("user", (part,), api="bedrock")]) == []


def test_a_block_that_is_new_comes_back_too() -> None:
    message = {"role": "user", "content": [{"hologram": {"source": {"bytes": b"\x00"}}}], "mood": "good"}

    assert BEDROCK.write([BEDROCK.read(message)]) == [message]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"role": "user", "content": [{"text": "Hi"}]}, True),
        ({"role": "assistant", "content": [CALL]}, True),
        ({"role": "user", "content": [{"type": "text", "text": "Hi"}]}, False),
        ({"role": "user", "content": [{"hologram": {}}, {"text": "Hi"}]}, True),
        ({"role": "user", "content": [{"hologram": {}}]}, False),
        ({"role": "user", "content": "Hi"}, False),
        ({"role": "user", "content": []}, False),
        ({"role": "user", "parts": [{"text": "Hi"}]}, False),
        ({"output": {"message": {"role": "assistant", "content": []}}}, True),
        ({"output": [{"type": "message"}]}, False),
        ({"messageStart": {"role": "assistant"}}, True),
        ({"type": "message_start"}, False),
    ],
)
def test_what_is_surely_of_converse(item: dict[str, Any], expected: bool) -> None:
    assert BEDROCK.recognises(item) is expected


BAD: list[tuple[object, str, str]] = [
    ("Hi", "", "expected an object"),
    ({"content": []}, "role", "there is no 'role'"),
    ({"role": "tool", "content": []}, "role", "unknown role 'tool'"),
    ({"role": "user"}, "content", "there is no 'content'"),
    ({"role": "user", "content": "Hi"}, "content", "a list of blocks"),
    ({"role": "user", "content": [{}]}, "content[0]", "empty"),
    ({"role": "user", "content": [{"text": 3}]}, "content[0].text", "expected text"),
    ({"role": "user", "content": [{"type": "text", "text": "Hi"}]}, "content[0].type", "another API"),
    ({"role": "user", "content": [{"text": "a", **PICTURE}]}, "content[0]", "one thing"),
    ({"role": "user", "content": [{"image": {"source": {}}}]}, "content[0].image.format", "there is no 'format'"),
    ({"role": "user", "content": [{"image": {"format": "png"}}]}, "content[0].image.source", "there is no 'source'"),
    (
        {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": 3}}}]},
        "content[0].image.source.bytes",
        "expected text",
    ),
    ({"role": "user", "content": [{"document": {"source": {}}}]}, "content[0].document.name", "there is no 'name'"),
    ({"role": "assistant", "content": [{"toolUse": {"name": "f", "input": {}}}]}, "content[0].toolUse.toolUseId", ""),
    ({"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f"}}]}, "content[0].toolUse.input", ""),
    ({"role": "user", "content": [{"toolResult": {"toolUseId": "1"}}]}, "content[0].toolResult.content", ""),
    (
        {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": 1}]}}]},
        "content[0].toolResult.content[0].text",
        "expected text",
    ),
    (
        {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {}}}]},
        "content[0].reasoningContent.reasoningText.text",
        "there is no 'text'",
    ),
]


@pytest.mark.parametrize(("message", "path", "words"), BAD, ids=[path or "all" for _, path, _ in BAD])
def test_what_is_no_message_is_refused_with_its_place(message: object, path: str, words: str) -> None:
    with pytest.raises(MessageError) as refused:
        BEDROCK.read(message)

    assert refused.value.path == path
    assert words in str(refused.value)


def test_its_rules_find_what_it_refuses() -> None:
    messages = [
        Message("assistant", "Hi"),
        Message("user", " "),
        Message("assistant", (ToolCall("a b", "look at"),)),
    ]

    codes = {finding.code for finding in check(messages, BEDROCK.rules)}

    assert codes >= {"wrong-first-role", "empty-message", "invalid-tool-name"}
