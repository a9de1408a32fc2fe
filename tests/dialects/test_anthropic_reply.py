from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types import RawMessageStreamEvent
from hypothesis import given
from pydantic import BaseModel, TypeAdapter

from nexus_core.dialects.anthropic.dialect import DIALECT
from nexus_core.values.conversation import Usage
from nexus_core.values.parts import Opaque, Reasoning, Text, ToolCall
from tests.dialects.support import JSON, Loopback, attempted

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
    ([], "", "there is no answer"),
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
