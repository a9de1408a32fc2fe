from __future__ import annotations

import json
from typing import Any

from google import genai
from google.genai import types
from hypothesis import given

from nexus_core.dialects.gemini.dialect import DIALECT
from nexus_core.values.conversation import Usage
from nexus_core.values.parts import Reasoning, Text, ToolCall
from tests.dialects.support import JSON, Loopback, attempted

PARTS: list[dict[str, Any]] = [
    {"text": "Hm.", "thought": True},
    {"text": "Let me see."},
    {"functionCall": {"name": "look", "args": {"at": "it"}}, "thoughtSignature": "c2Vh"},
]
REPLY: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": PARTS}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 40,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 155,
    },
    "modelVersion": "gemini-3-flash",
    "responseId": "r1",
}


def chunk(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One response of a stream."""
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **fields}]}


CHUNKS = [
    chunk({"text": "H", "thought": True}) | {"responseId": "r1", "modelVersion": "gemini-3-flash"},
    chunk({"text": "m.", "thought": True}),
    chunk({"text": "Let me "}) | {"usageMetadata": {"promptTokenCount": 1}},
    chunk({"text": "see."}, PARTS[2]),
    {"candidates": [{"finishReason": "STOP"}], "usageMetadata": REPLY["usageMetadata"]},
]


def test_a_reply_is_a_message_that_may_be_sent_back() -> None:
    reply = DIALECT.read_reply(REPLY)

    assert (reply.id, reply.model, reply.stop, reply.stop_reason) == ("r1", "gemini-3-flash", "tools", "STOP")
    assert DIALECT.write(reply.messages) == [{"role": "model", "parts": PARTS}]


def test_thoughts_are_output_and_what_tools_brought_is_input() -> None:
    assert DIALECT.read_reply(REPLY).usage == Usage(
        input_tokens=105, output_tokens=50, cached_input_tokens=40, reasoning_tokens=30
    )


def test_an_object_of_the_sdk_reads_like_its_json() -> None:
    reply = types.GenerateContentResponse.model_validate(REPLY)
    reply.parsed = types.HttpResponse  # type: ignore[assignment]  # whatever the SDK adds for its user

    assert DIALECT.read_reply(reply) == DIALECT.read_reply(REPLY)


def test_so_does_what_the_sdk_makes_of_it_in_python() -> None:
    dumped = types.GenerateContentResponse.model_validate(REPLY).model_dump(exclude_none=True)

    reply = DIALECT.read_reply(dumped)

    assert reply.usage == DIALECT.read_reply(REPLY).usage
    assert reply.messages[0].tool_calls[0].arguments == {"at": "it"}
    assert (reply.stop, reply.id) == ("tools", "r1")


def test_every_reason_that_the_sdk_knows_has_a_word() -> None:
    words: dict[str, set[str]] = {}
    for reason in types.FinishReason:
        stop = DIALECT.read_reply(chunk({"text": "x"}, finishReason=reason)).stop
        words.setdefault(stop, set()).add(reason.value)

    assert words[""] == {"FINISH_REASON_UNSPECIFIED"}
    assert (words["end"], words["length"], words["pause"]) == ({"STOP"}, {"MAX_TOKENS"}, {"CONTINUATION"})
    assert {"SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII"} < words["refusal"]
    assert {"MALFORMED_FUNCTION_CALL", "OTHER"} < words["error"]


def test_a_prompt_that_was_blocked_is_a_refusal() -> None:
    reply = DIALECT.read_reply({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}})

    assert (reply.stop, reply.stop_reason, reply.messages[0].parts) == ("refusal", "SAFETY", ())


def test_of_several_candidates_the_first_is_read() -> None:
    reply = DIALECT.read_reply({"candidates": [{"index": 1}, {"content": {"parts": [{"text": "a"}]}, "index": 0}]})

    assert reply.messages[0].content == "a"


def test_the_responses_of_a_stream_add_up_to_the_reply() -> None:
    assert DIALECT.read_reply(CHUNKS) == DIALECT.read_reply(REPLY)


def test_so_do_the_objects_that_the_sdks_client_streams(loopback: Loopback) -> None:
    loopback.answer = "".join(f"data: {json.dumps(each)}\n\n" for each in CHUNKS)

    with genai.Client(api_key="none", http_options=types.HttpOptions(base_url=loopback.url)) as client:
        responses = list(client.models.generate_content_stream(model="gemini-3-flash", contents="Hi"))

    assert len(responses) == len(CHUNKS)
    assert DIALECT.read_reply(responses) == DIALECT.read_reply(REPLY)


def test_texts_within_one_response_and_texts_with_a_seal_stay_apart() -> None:
    reply = DIALECT.read_reply(
        [
            chunk({"text": "a"}, {"text": "b"}),
            chunk({"text": "c", "thoughtSignature": "c2Vh"}),
            chunk({"text": "d"}),
            chunk({"text": "e", "thought": True}),
            chunk({"text": "", "thoughtSignature": "c2Vh"}),
        ]
    )

    assert [getattr(part, "text", "") for part in reply.messages[0].parts] == ["a", "b", "c", "d", "e", ""]
    assert isinstance(reply.messages[0].parts[4], Reasoning)


def test_a_text_in_very_many_pieces_is_one_text() -> None:
    reply = DIALECT.read_reply([chunk({"text": "ab"}) for _ in range(20_000)])

    assert reply.messages[0].parts == (Text("ab" * 20_000),)


def test_arguments_that_are_streamed_one_by_one_are_put_together() -> None:
    def more(*arguments: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return chunk({"functionCall": {"partialArgs": list(arguments), **fields}})

    reply = DIALECT.read_reply(
        [
            chunk({"functionCall": {"name": "light", "id": "1", "willContinue": True}, "thoughtSignature": "c2Vh"}),
            more({"jsonPath": "$.room", "stringValue": "kit", "willContinue": True}, willContinue=True),
            more({"json_path": "$.room", "string_value": "chen"}, {"jsonPath": "$.on", "boolValue": False}),
            more(
                {"jsonPath": "$.lamps[1].level", "numberValue": 0.5},
                {"jsonPath": "$['a b']", "nullValue": "NULL_VALUE"},
            ),
            chunk({"functionCall": {}}),
            chunk({"functionCall": {"name": "other", "args": {}}}),
        ]
    )

    assert reply.messages[0].parts == (
        ToolCall(
            "1",
            "light",
            {"room": "kitchen", "on": False, "lamps": [None, {"level": 0.5}], "a b": None},
            extra={"thoughtSignature": "c2Vh"},
        ),
        ToolCall("", "other"),
    )


BAD_REPLIES: list[tuple[object, str, str]] = [
    ({"error": {"code": 429, "message": "Slow down"}}, "error", "an error: 'Slow down'"),
    ("Hi", "", "expected a response, not the text 'Hi'"),
    ({}, "candidates", "there is no 'candidates'"),
    ({"candidates": {}}, "candidates", "expected a list"),
    ({"candidates": [3]}, "candidates[0]", "expected an object"),
    ({"candidates": [{"content": 3}]}, "candidates[0].content", "expected an object"),
    ({"candidates": [{"content": {"parts": 3}}]}, "candidates[0].content.parts", "expected a list of parts"),
    (chunk({"text": 3}), "candidates[0].content.parts[0].text", "expected text"),
    (chunk({"text": "x"}, finishReason=3), "finishReason", "expected text"),
    (REPLY | {"usageMetadata": {"promptTokenCount": -1}}, "usageMetadata.promptTokenCount", "a whole number"),
    ([], "", "there is no answer"),
    ([REPLY, 3], "[1]", "expected a response"),
    (
        [chunk({"functionCall": {"name": "f", "willContinue": True, "partialArgs": [{"jsonPath": "room"}]}})],
        "candidates[0].content.partialArgs",
        "not a path into the arguments: 'room'",
    ),
]


@given(JSON, JSON)
def test_anything_at_all_is_read_as_a_reply_or_refused(value: Any, other: Any) -> None:
    started = chunk({"functionCall": {"name": "f", "willContinue": True}})
    replies = (
        value,
        REPLY | {"candidates": value, "usageMetadata": other},
        chunk(value, finishReason=other),
        [chunk({"text": "x"}), chunk(value), {"candidates": [other]}],
        [started, chunk({"functionCall": {"partialArgs": value}}), {"promptFeedback": other}],
    )
    for reply in replies:
        attempted(DIALECT.read_reply, reply)
