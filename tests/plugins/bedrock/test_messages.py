"""Messages of Converse: read, written back, and valid by botocore's own model."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from anthropic.types import MessageParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam

from nexus_core import Message, MessageError, Tool, check, get_dialect, repair
from nexus_core.dialects.requests import REQUEST_OVERHEAD_BYTES, count_message_bytes
from nexus_core.plugin import File, Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from nexus_core.plugin.dialects import Conversation
from tests.dialects.support import JSON, attempted, extended, spoiled
from tests.dialects.support import values_of as dialect_values_of
from tests.effort import conclude, concludes, examples, mostly
from tests.plugins.bedrock.converse import BEDROCK, accepted, in_json, sent, values_of
from tests.plugins.bedrock.converse import values_of as described

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
    neutral = get_dialect("neutral")

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
    assert get_dialect("openai").write([Message("user", (file,), api="bedrock")]) == [
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
    assert get_dialect("openai").write([Message("assistant", (text,), api="bedrock")]) == [
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
    assert get_dialect("openai").write([Message("user", (part,), api="bedrock")]) == []


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


PNG = "iVBORw=="
PDF = "application/pdf"
OTHERS = {
    "openai": dialect_values_of(ChatCompletionMessageParam),
    "anthropic": dialect_values_of(MessageParam),
}


def block_of(part: Part, *, api: str = "openai", role: Any = "user") -> Any:
    """The only block of a message with one part, beside some words."""
    (body,) = sent(Message(role, (Text("x"), part), api=api))
    return body["content"][1]


def kinds(body: dict[str, Any]) -> list[str]:
    return [next(iter(block)) for block in body["content"]]


@pytest.mark.parametrize("api", OTHERS)
@given(data=st.data())
def test_whatever_others_say_is_taken_once_it_is_repaired(api: str, data: st.DataObject) -> None:
    items = data.draw(st.lists(OTHERS[api], max_size=3))
    read = [get_dialect(api).read(item) for item in items]

    mended = repair(read, BEDROCK.rules).messages
    body = BEDROCK.write_request(Conversation(messages=tuple(mended), extra={"model": "m"}))

    accepted(body)
    roles = [each["role"] for each in body["messages"]]
    assert all(before != after for before, after in pairwise(roles))


@settings(max_examples=examples(40))
@given(items=st.lists(described("Message"), max_size=3))
def test_what_bedrock_said_others_can_be_told(items: list[Any]) -> None:
    read = [BEDROCK.read(item) for item in items]

    for api in ("openai", "responses", "anthropic", "gemini"):
        speaking = get_dialect(api)
        written = speaking.write(repair(read, api).messages)
        assert speaking.write([speaking.read(each) for each in written]) == written


@settings(max_examples=examples(40))
@given(data=st.data())
def test_a_request_is_never_larger_than_it_is_said_to_be(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(("bedrock", *OTHERS)))
    values, speaking = (described("Message"), BEDROCK) if api == "bedrock" else (OTHERS[api], get_dialect(api))
    read = tuple(speaking.read(item) for item in data.draw(st.lists(values, max_size=3)))
    mended = tuple(repair(read, BEDROCK.rules).messages)

    body = in_json(BEDROCK.write_request(Conversation(messages=mended)))

    assert len(json.dumps(body)) <= sum(map(count_message_bytes, mended)) + REQUEST_OVERHEAD_BYTES


def test_a_text_is_a_block() -> None:
    assert sent(Message("user", "Hi")) == [{"role": "user", "content": [{"text": "Hi"}]}]


def test_fields_and_notes_of_another_api_are_left_out() -> None:
    message = Message("user", (Text("Hi", {"x": 1, "_json": True}),), "ann", "openai", {"name": "ann"})

    assert sent(message) == [{"role": "user", "content": [{"text": "Hi"}]}]


def test_thoughts_and_blocks_of_others_are_left_out_and_a_message_of_nothing_else_too() -> None:
    thought = Message("assistant", (Reasoning(text="Hm.", signature="s", api="anthropic"), Text(" ")), api="anthropic")
    block = Message("user", (Opaque("openai", {"type": "x"}),), api="openai")

    assert sent(thought, block) == []


def test_neighbours_of_one_role_become_one_message() -> None:
    bodies = sent(Message("user", "a"), Message("user", "b"), Message("assistant", "c"), Message("assistant", "d"))

    assert bodies == [
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
        {"role": "assistant", "content": [{"text": "c"}, {"text": "d"}]},
    ]


def test_neighbours_of_bedrocks_own_stay_as_they_are_until_they_are_part_of_another_request() -> None:
    items = [{"role": "user", "content": [{"text": "a"}]}, {"role": "user", "content": [{"text": "b"}]}]
    own = tuple(BEDROCK.read(item) for item in items)

    assert BEDROCK.write(own) == items
    assert BEDROCK.write_request(Conversation(messages=own, api="bedrock"))["messages"] == items
    assert len(BEDROCK.write_request(Conversation(messages=own))["messages"]) == 1


def test_results_of_a_batch_stand_in_one_message_and_come_first() -> None:
    bodies = sent(
        Message("user", "go"),
        Message("assistant", (ToolCall("1", "f"), ToolCall("2", "g"))),
        Message("tool", (ToolResult("1", "one"),)),
        Message("user", "wait"),
        Message("tool", (ToolResult("2", "two", is_error=True),)),
    )

    assert bodies[2] == {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "1", "content": [{"text": "one"}]}},
            {"toolResult": {"toolUseId": "2", "content": [{"text": "two"}], "status": "error"}},
            {"text": "wait"},
        ],
    }


@pytest.mark.parametrize(
    ("failed", "words"), [(True, "[the tool failed and said nothing]"), (False, "[the tool said nothing]")]
)
@pytest.mark.parametrize("parts", [(), (Text(" "),), (Opaque("openai", {"type": "x"}),)])
def test_a_result_that_says_nothing_says_so(parts: tuple[Any, ...], failed: bool, words: str) -> None:
    (body,) = sent(Message("tool", (ToolResult("1", parts, is_error=failed),)))

    assert body["content"][0]["toolResult"]["content"] == [{"text": words}]


def test_a_result_of_bedrocks_own_that_says_nothing_stays_as_it_is_until_it_is_part_of_another_request() -> None:
    item = {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": []}}]}
    message = BEDROCK.read(item)

    assert BEDROCK.write([message]) == [item]
    (body,) = BEDROCK.write_request(Conversation(messages=(message,)))["messages"]
    assert body["content"][0]["toolResult"]["content"] == [{"text": "[the tool said nothing]"}]


def test_a_result_of_bedrocks_own_whose_blank_words_were_taken_away_says_so() -> None:
    call = {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}
    result = {"toolResult": {"toolUseId": "t", "content": [{"text": " "}]}}
    said = [{"text": "Look."}], [call], [result]
    items = [{"role": role, "content": each} for role, each in zip(("user", "assistant", "user"), said, strict=True)]

    mended = repair(items).messages

    assert mended[2]["content"][0]["toolResult"]["content"] == [{"text": "[the tool said nothing]"}]


def test_calls_without_ids_and_their_results_get_the_same_ones() -> None:
    calls = Message("assistant", (ToolCall("", "f"), ToolCall("", "g")), api="gemini")
    results = Message("tool", (ToolResult("", "g", "g"), ToolResult("", "f", "f")), api="gemini")

    first, second = sent(calls, results)

    ids = [block["toolUse"]["toolUseId"] for block in first["content"]]
    assert [block["toolResult"]["toolUseId"] for block in second["content"]] == ids[::-1]


@pytest.mark.parametrize(
    ("raw", "arguments", "expected"),
    [(None, {}, {}), ('{"a": 1}', {"a": 1}, {"a": 1}), ('{"a": ', {}, {"input": '{"a": '})],
)
def test_arguments_that_are_no_object_stand_in_one(raw: str | None, arguments: Any, expected: dict[str, Any]) -> None:
    assert block_of(ToolCall("1", "f", arguments, raw), role="assistant")["toolUse"]["input"] == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Image(mime="image/png", data=PNG), {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}),
        (Image(mime="image/jpg", data=PNG), {"image": {"format": "jpeg", "source": {"bytes": b"\x89PNG"}}}),
        (Image(url=f"data:image/webp;base64,{PNG}"), {"image": {"format": "webp", "source": {"bytes": b"\x89PNG"}}}),
        (File(mime="image/gif", data=PNG), {"image": {"format": "gif", "source": {"bytes": b"\x89PNG"}}}),
        (Image(mime="image/tiff", data=PNG), {"text": "[image not shown here: image/tiff]"}),
        (Image(mime="image/png", data="no base64"), {"text": "[image not shown here: image/png]"}),
        (Image(url="https://a/b.png"), {"text": "[image not shown here: https://a/b.png]"}),
        (
            File(name="My_report  (1).v2.pdf", mime=PDF, data="JVBERg=="),
            {"document": {"format": "pdf", "name": "My report (1) v2", "source": {"bytes": b"%PDF"}}},
        ),
        (
            File(mime="application/json", data="e30="),
            {"document": {"format": "txt", "name": "document", "source": {"bytes": b"{}"}}},
        ),
        (
            File(mime=PDF, file_id="s3://bucket/a.pdf", name="日本"),
            {"document": {"format": "pdf", "name": "document", "source": {"s3Location": {"uri": "s3://bucket/a.pdf"}}}},
        ),
        (File(name="a.mp3", mime="audio/mpeg", data="AA=="), {"text": "[file not shown here: a.mp3]"}),
        (File(file_id="file-1"), {"text": "[file not shown here: file-1]"}),
    ],
)
def test_what_can_be_shown_is_shown_and_what_cannot_is_named(part: Any, expected: dict[str, Any]) -> None:
    assert block_of(part) == expected


def test_pictures_in_an_answer_are_named() -> None:
    assert block_of(Image(mime="image/png", data=PNG), role="assistant") == {
        "text": "[image not shown here: image/png]"
    }


def test_no_two_documents_have_one_name() -> None:
    own = BEDROCK.read(
        {"role": "user", "content": [{"document": {"format": "pdf", "name": "a", "source": {"bytes": b"x"}}}]}
    )
    files = tuple(File(name=name, mime=PDF, data="JVBERg==") for name in ("a.pdf", "a.pdf", "", ""))

    (body,) = sent(own, Message("user", (Text("x"), *files)))

    names = [block["document"]["name"] for block in body["content"] if "document" in block]
    assert names == ["a", "a 2", "a 3", "document", "document 2"]


def test_a_document_stands_beside_words() -> None:
    (body,) = sent(Message("user", (File(name="a.pdf", mime=PDF, data="JVBERg=="),)))

    assert body["content"][1:] == [{"text": "[documents: a]"}]


# ---- requests -------------------------------------------------------------------------------------------------------


def test_a_document_of_bedrocks_own_gets_words_where_it_is_part_of_another_request() -> None:
    document = {"document": {"format": "pdf", "name": "a", "source": {"bytes": b"x"}}}
    item = {"role": "user", "content": [document]}
    message = BEDROCK.read(item)

    assert BEDROCK.write([message]) == [item]
    (body,) = BEDROCK.write_request(Conversation(messages=(message,)))["messages"]
    assert body["content"] == [document, {"text": "[documents: a]"}]


def test_instructions_are_a_field() -> None:
    messages = (Message("system", "Be brief."), Message("user", "Hi"), Message("system", (Text("Be kind."), Text(" "))))

    body = accepted(BEDROCK.write_request(Conversation(messages=messages, extra={"model": "m"})))

    assert body == {
        "modelId": "m",
        "system": [{"text": "Be brief."}, {"text": "Be kind."}],
        "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
    }


def test_the_usual_settings_have_the_names_that_converse_has() -> None:
    extra = {"model": "m", "max_tokens": 9, "top_p": 0.5, "inferenceConfig": {"maxTokens": 3}, "stop_sequences": ["x"]}

    body = accepted(BEDROCK.write_request(Conversation(messages=(Message("user", "Hi"),), extra=extra)))

    assert body["inferenceConfig"] == {"maxTokens": 3, "topP": 0.5, "stopSequences": ["x"]}


def test_what_converse_has_no_argument_for_is_for_the_model() -> None:
    extra = {"model": "m", "top_k": 5, "thinking": {"type": "adaptive"}, "serviceTier": {"type": "flex"}}
    fields = {"additionalModelRequestFields": {"top_k": 9}}

    body = accepted(BEDROCK.write_request(Conversation(messages=(Message("user", "Hi"),), extra=extra | fields)))

    assert body["additionalModelRequestFields"] == {"top_k": 9, "thinking": {"type": "adaptive"}}
    assert body["serviceTier"] == {"type": "flex"}


def test_arguments_of_another_providers_request_are_left_out() -> None:
    body = BEDROCK.write_request(
        get_dialect("openai").read_request(
            {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}], "seed": 1}
        )
    )

    assert body == {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}


def test_tools_of_any_api_are_specified() -> None:
    tools = BEDROCK.read_tools(
        [
            {"type": "function", "function": {"name": "a", "parameters": {"type": "object"}, "strict": True}},
            {"name": "b", "description": "B.", "input_schema": {"properties": {}}, "cache_control": {}},
            {"functionDeclarations": [{"name": "c", "parameters": {"type": "OBJECT"}}]},
            {"name": "d", "inputSchema": {"type": "object"}},
            Tool(name="e", description=" "),
            {"type": "web_search_20250305", "name": "web_search"},
        ]
    )

    extra = {"model": "m", "toolConfig": {"toolChoice": {"any": {}}}}
    body = accepted(BEDROCK.write_request(Conversation(messages=(Message("user", "Hi"),), tools=tools, extra=extra)))

    specs = [tool["toolSpec"] for tool in body["toolConfig"]["tools"]]
    assert [(spec["name"], spec.get("description", "")) for spec in specs] == [
        ("a", ""),
        ("b", "B."),
        ("c", ""),
        ("d", ""),
        ("e", ""),
    ]
    assert {spec["inputSchema"]["json"]["type"] for spec in specs} == {"object"}
    assert body["toolConfig"]["toolChoice"] == {"any": {}}


def test_tools_that_were_called_and_are_not_offered_any_more_are_specified_nevertheless() -> None:
    messages = (
        Message("user", "go"),
        Message("assistant", (ToolCall("1", "f"), ToolCall("2", "f"))),
        Message("tool", (ToolResult("1", "x"), ToolResult("2", "y"))),
    )

    body = accepted(BEDROCK.write_request(Conversation(messages=messages, extra={"model": "m"})))

    (tool,) = body["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "f"


def test_marks_end_what_is_to_be_kept() -> None:
    messages = (
        Message("system", "Be brief."),
        Message("user", (Text("a"), File(mime=PDF, data="JVBERg=="))),
        Message("assistant", (ToolCall("1", "f"),)),
        Message("tool", (ToolResult("1", "x"),)),
        Message("user", "b"),
    )
    conversation = Conversation(messages=messages, tools=(Tool(name="f"),), extra={"model": "m"})

    body = accepted(BEDROCK.write_request(conversation, {-1: "1h", 0: "5m", 1: "", 3: ""}))

    assert body["toolConfig"]["tools"][1:] == [{"cachePoint": {"type": "default", "ttl": "1h"}}]
    assert body["system"] == [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}]
    # Behind a document, some of them are refused.
    assert [kinds(each) for each in body["messages"]] == [
        ["text", "cachePoint", "document"],
        ["toolUse"],
        ["toolResult", "cachePoint", "text"],
    ]


def test_what_is_marked_already_is_not_marked_again() -> None:
    item = {"role": "user", "content": [{"text": "a"}, {"cachePoint": {"type": "default"}}]}
    conversation = Conversation(messages=(BEDROCK.read(item),), api="bedrock")

    assert BEDROCK.write_request(conversation, {0: ""})["messages"] == [item]


def test_of_too_many_marks_the_first_are_left_out_and_none_outlives_one_before_it() -> None:
    marks = ["5m", "5m", "5m", "1h", "5m"]
    items = [{"text": f"{index}"} for index in range(5)]
    content = [
        block
        for item, ttl in zip(items, marks, strict=True)
        for block in (item, {"cachePoint": {"type": "default", "ttl": ttl}})
    ]
    own = BEDROCK.read({"role": "user", "content": content})

    (message,) = repair([own], BEDROCK.rules).messages
    (body,) = sent(message)

    left = [block["cachePoint"] for block in body["content"] if "cachePoint" in block]
    assert left == [
        {"type": "default", "ttl": "5m"},
        {"type": "default", "ttl": "5m"},
        {"type": "default"},
        {"type": "default", "ttl": "5m"},
    ]
