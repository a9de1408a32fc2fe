"""What Responses answers: whole, parsed, streamed."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from pydantic import BaseModel

from nexus_core.dialects.responses.dialect import DIALECT
from nexus_core.values.conversation import Usage
from tests.dialects.support import JSON, OBJECTS, Loopback, attempted, spoiled
from tests.dialects.test_responses import VALID

OUTPUT = [VALID["a thought"], VALID["a search"], VALID["an answer"], VALID["a call"]]
USAGE = {
    "input_tokens": 100,
    "output_tokens": 20,
    "total_tokens": 120,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
    "output_tokens_details": {"reasoning_tokens": 5},
}
SPENT = Usage(input_tokens=100, output_tokens=20, cached_input_tokens=64, cache_write_tokens=8, reasoning_tokens=5)
SAID = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": []}


def response(output: list[dict[str, Any]], status: str = "completed", **fields: object) -> dict[str, Any]:
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "status": status}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None}
    return {**head, **rest, "output": output, "usage": USAGE, **fields}


def events(*output: dict[str, Any], final: str = "completed", **fields: object) -> list[dict[str, Any]]:
    begun = response([], "in_progress", usage=None)
    listed: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(output):
        listed.append({"type": "response.output_item.added", "output_index": place, "item": item})
        listed.append({"type": "response.output_item.done", "output_index": place, "item": item})
    if final:
        listed.append({"type": f"response.{final}", "response": response(list(output), final, **fields)})
    return [event | {"sequence_number": number} for number, event in enumerate(listed)]


def test_a_reply_says_who_why_and_what_it_cost() -> None:
    reply = DIALECT.read_reply(response(OUTPUT))

    assert (reply.id, reply.model, reply.api) == ("resp_1", "gpt-5", "responses")
    assert (reply.stop, reply.stop_reason, reply.usage) == ("tools", "completed", SPENT)
    assert len(reply.messages) == len(OUTPUT)
    assert DIALECT.write(reply.messages) == OUTPUT


@pytest.mark.parametrize(
    ("reply", "stop", "reason"),
    [
        (response([SAID]), "end", "completed"),
        (response([SAID | {"content": [{"type": "refusal", "refusal": "no"}]}]), "refusal", "completed"),
        (response([VALID["a custom call"]]), "tools", "completed"),
        (response([VALID["a shell"]]), "tools", "completed"),
        (response([VALID["a shell"], VALID["a shell's output"], SAID]), "end", "completed"),
        (response([VALID["a request for approval"]]), "tools", "completed"),
        (response([], "incomplete", incomplete_details={"reason": "max_output_tokens"}), "length", "max_output_tokens"),
        (response([], "incomplete", incomplete_details={"reason": "content_filter"}), "refusal", "content_filter"),
        (response([], "failed", error={"code": "server_error", "message": "x"}), "error", "server_error"),
        (response([], "cancelled"), "error", "cancelled"),
        (response([], "queued"), "pause", "queued"),
        ({"output": []}, "", ""),
    ],
)
def test_why_it_ended_has_one_word_for_all_apis(reply: dict[str, Any], stop: str, reason: str) -> None:
    read = DIALECT.read_reply(reply)

    assert (read.stop, read.stop_reason) == (stop, reason)


def test_the_sdks_object_is_read_like_its_dict(loopback: Loopback) -> None:
    loopback.answer = response(OUTPUT)

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        made = api.responses.create(model="gpt-5", input="x")

    assert DIALECT.read_reply(made) == DIALECT.read_reply(loopback.answer)
    assert DIALECT.write(DIALECT.read_reply(made).messages) == OUTPUT


def test_what_the_sdk_parsed_is_not_part_of_the_items(loopback: Loopback) -> None:
    class Answer(BaseModel):
        number: int

    said = {"type": "output_text", "text": '{"number": 4}', "annotations": []}
    loopback.answer = response([SAID | {"content": [said]}, VALID["a call"]])

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        made = api.responses.parse(model="gpt-5", input="x", text_format=Answer)

    assert made.output_parsed == Answer(number=4)
    assert DIALECT.write(DIALECT.read_reply(made).messages) == loopback.answer["output"]


@pytest.mark.parametrize(
    ("final", "fields", "stop"),
    [
        ("completed", {}, "tools"),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ("failed", {"error": {"code": "server_error", "message": "x"}}, "error"),
    ],
)
def test_the_final_event_of_a_stream_is_the_reply(final: str, fields: dict[str, Any], stop: str) -> None:
    reply = DIALECT.read_reply(events(*OUTPUT, final=final, **fields))

    assert (reply.stop, reply.usage, reply.id) == (stop, SPENT, "resp_1")
    assert DIALECT.write(reply.messages) == OUTPUT


def test_events_from_the_sdk_are_read_like_dicts(loopback: Loopback) -> None:
    listed = events(*OUTPUT)
    loopback.answer = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in listed)

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        heard = list(api.responses.create(model="gpt-5", input="x", stream=True))

    assert DIALECT.read_reply(heard) == DIALECT.read_reply(listed)


def test_a_final_event_that_leaves_the_output_out_is_filled_up() -> None:
    listed = events(*OUTPUT)
    listed[-1]["response"]["output"] = []

    assert DIALECT.write(DIALECT.read_reply(listed).messages) == OUTPUT


def test_of_a_stream_that_broke_off_there_is_what_had_come() -> None:
    reply = DIALECT.read_reply(events(*OUTPUT[:2], final=""))

    assert (reply.stop, reply.stop_reason, reply.id, reply.usage) == ("broken", "", "resp_1", None)
    assert DIALECT.write(reply.messages) == OUTPUT[:2]


def test_so_there_is_of_an_item_that_was_not_finished() -> None:
    message = {"type": "message", "id": "msg_2", "role": "assistant", "status": "in_progress", "content": []}
    call = {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "rm", "arguments": ""}
    begun = [
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Ha"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "lf"},
        {"type": "response.output_item.added", "output_index": 2, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"path": "/tm'},
        {"type": "response.output_item.added", "output_index": 3, "item": {"type": "reasoning", "id": "rs_2"}},
    ]

    reply = DIALECT.read_reply([*events(OUTPUT[0], final=""), *begun])

    assert reply.stop == "broken"
    assert reply.messages[1].content == "Half"
    assert reply.messages[2].tool_calls[0].raw == '{"path": "/tm'
    assert len(reply.messages) == 3


def test_an_error_in_a_stream_is_the_reason_it_ended() -> None:
    error = {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}

    reply = DIALECT.read_reply([*events(OUTPUT[0], final=""), error])

    assert (reply.stop, reply.stop_reason) == ("error", "rate_limit_exceeded")
    assert DIALECT.write(reply.messages) == OUTPUT[:1]


BAD_REPLIES: list[tuple[object, str]] = [
    ({}, "output"),
    ({"error": {"message": "overloaded"}}, "error"),
    ([], ""),
    ([{"type": "response.output_text.delta", "delta": "x"}], ""),
    ([3], "[0]"),
    (response([{"type": "message"}]), "output[0].role"),
    (response([], usage={"input_tokens": 1.5}), "usage.input_tokens"),
    (3, ""),
]


@settings(deadline=None)
@given(
    JSON
    | OBJECTS
    | spoiled(st.builds(lambda: json.loads(json.dumps(response(OUTPUT)))))
    | spoiled(st.builds(lambda: json.loads(json.dumps(events(*OUTPUT)))))
)
def test_reading_a_reply_refuses_or_understands_and_never_breaks(reply: Any) -> None:
    read = attempted(DIALECT.read_reply, reply)

    assert read is None or len(DIALECT.write(read.messages)) == len(read.messages)
