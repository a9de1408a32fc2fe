"""What chat completions answers: whole, parsed, streamed."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from nexus_core.dialects.openai.dialect import DIALECT
from nexus_core.values.conversation import Usage
from nexus_core.values.parts import Reasoning, Text
from tests.dialects.support import JSON, OBJECTS, Loopback, attempted, spoiled

CALLS: list[dict[str, Any]] = [
    {"id": "a", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}},
    {"id": "b", "type": "function", "function": {"name": "cat", "arguments": '{"path":"x"}'}},
]
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0, "cache_write_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
SPENT = Usage(input_tokens=100, output_tokens=20, cached_input_tokens=64, cache_write_tokens=8, reasoning_tokens=5)
MESSAGE: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "refusal": None,
    "annotations": [],
    "tool_calls": CALLS,
}


def completion(message: dict[str, Any], reason: str | None = "stop", **fields: object) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-2024-11-20"}
    return head | {"choices": [choice], "usage": USAGE} | fields


def chunk(delta: dict[str, Any] | None, reason: str | None = None, **fields: object) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-2024-11-20"}
    return head | {"choices": choices} | fields


CHUNKS = [
    chunk({"role": "assistant", "content": None, "refusal": None}),
    chunk({"tool_calls": [{"index": 0} | CALLS[0] | {"function": {"name": "ls", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 1} | CALLS[1] | {"function": {"name": "cat", "arguments": '{"pa'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path":'}}]}),
    chunk({"tool_calls": [{"index": 1, "function": {"arguments": 'th":"x"}'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"."}'}}]}),
    chunk({}, "tool_calls"),
    chunk(None, usage=USAGE),
]


def client(loopback: Loopback) -> OpenAI:
    return OpenAI(base_url=loopback.url, api_key="none", max_retries=0)


def test_a_reply_says_who_why_and_what_it_cost() -> None:
    reply = DIALECT.read_reply(completion(MESSAGE, "tool_calls"))

    assert (reply.id, reply.model, reply.api) == ("chatcmpl-1", "gpt-4o-2024-11-20", "openai")
    assert (reply.stop, reply.stop_reason, reply.usage) == ("tools", "tool_calls", SPENT)
    assert DIALECT.write(reply.messages) == [MESSAGE]


@pytest.mark.parametrize(
    ("reason", "message", "stop"),
    [
        ("stop", {"content": "hi"}, "end"),
        ("length", {"content": "hi"}, "length"),
        ("tool_calls", {"tool_calls": CALLS}, "tools"),
        ("function_call", {"function_call": {"name": "f", "arguments": ""}}, "tools"),
        ("stop", {"tool_calls": CALLS}, "tools"),
        ("stop", {"refusal": "no"}, "refusal"),
        ("content_filter", {"content": ""}, "refusal"),
        ("error", {"content": ""}, "error"),
        ("something_new", {"content": ""}, ""),
        (None, {"content": ""}, ""),
    ],
)
def test_why_it_ended_has_one_word_for_all_apis(reason: str | None, message: dict[str, Any], stop: str) -> None:
    reply = DIALECT.read_reply(completion(message, reason))

    assert (reply.stop, reply.stop_reason) == (stop, reason or "")


def test_a_reply_without_usage_says_so() -> None:
    assert DIALECT.read_reply(completion(MESSAGE, usage=None)).usage is None


def test_deepseeks_word_for_cached_is_understood() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 7, "prompt_tokens_details": None}

    assert DIALECT.read_reply(completion(MESSAGE, usage=usage)).usage == Usage(
        input_tokens=10, output_tokens=1, cached_input_tokens=7
    )


def test_the_sdks_object_is_read_like_its_dict(loopback: Loopback) -> None:
    loopback.answer = completion(MESSAGE, "tool_calls")

    with client(loopback) as api:
        made = api.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}])

    assert isinstance(made, ChatCompletion)
    assert DIALECT.read_reply(made) == DIALECT.read_reply(loopback.answer)


def test_what_the_sdk_parsed_is_not_part_of_the_message(loopback: Loopback) -> None:
    class Answer(BaseModel):
        number: int

    message = {"role": "assistant", "content": '{"number": 4}', "refusal": None}
    loopback.answer = completion(message)

    with client(loopback) as api:
        made = api.chat.completions.parse(
            model="gpt-4o", messages=[{"role": "user", "content": "x"}], response_format=Answer
        )

    assert made.choices[0].message.parsed == Answer(number=4)
    assert DIALECT.write(DIALECT.read_reply(made).messages) == [message]


def test_chunks_add_up_to_the_reply() -> None:
    whole = DIALECT.read_reply(completion(MESSAGE, "tool_calls"))

    streamed = DIALECT.read_reply(CHUNKS)

    assert streamed.messages[0].tool_calls == whole.messages[0].tool_calls
    assert (streamed.stop, streamed.usage, streamed.id, streamed.model) == (
        whole.stop,
        whole.usage,
        whole.id,
        whole.model,
    )


def test_chunks_from_the_sdk_are_read_like_dicts(loopback: Loopback) -> None:
    loopback.answer = "".join(f"data: {json.dumps(each)}\n\n" for each in CHUNKS) + "data: [DONE]\n\n"

    with client(loopback) as api:
        stream = api.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}], stream=True)
        chunks = list(stream)

    assert all(isinstance(each, ChatCompletionChunk) for each in chunks)
    assert DIALECT.read_reply(chunks) == DIALECT.read_reply(CHUNKS)


def test_the_sdks_own_stream_gives_the_same_by_its_events_and_its_end(loopback: Loopback) -> None:
    loopback.answer = "".join(f"data: {json.dumps(each)}\n\n" for each in CHUNKS) + "data: [DONE]\n\n"

    with (
        client(loopback) as api,
        api.chat.completions.stream(model="gpt-4o", messages=[{"role": "user", "content": "x"}]) as stream,
    ):
        events = list(stream)
        final = stream.get_final_completion()

    expected = DIALECT.read_reply(CHUNKS)
    assert DIALECT.read_reply(events) == expected
    assert DIALECT.read_reply(final).messages[0].tool_calls == expected.messages[0].tool_calls


def test_pieces_of_every_kind_are_joined() -> None:
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "reasoning_content": "let ", "content": ""},
        {"reasoning_content": "me"},
        {"content": "He"},
        {"content": "llo", "audio": {"id": "audio_1", "transcript": "He", "data": "AA"}},
        {"audio": {"transcript": "llo", "data": "BB", "expires_at": 5}},
        {"refusal": "n"},
        {"refusal": "o"},
    ]

    (message,) = DIALECT.read_reply([chunk(delta) for delta in deltas]).messages

    assert DIALECT.write([message]) == [
        {
            "role": "assistant",
            "reasoning_content": "let me",
            "content": "Hello",
            "audio": {"id": "audio_1", "transcript": "Hello", "data": "AABB", "expires_at": 5},
            "refusal": "no",
        }
    ]


def test_openrouters_thoughts_are_joined_by_their_place() -> None:
    details: list[dict[str, Any]] = [
        {"type": "reasoning.text", "index": 0, "text": "let "},
        {"type": "reasoning.text", "index": 0, "text": "me"},
        {"type": "reasoning.text", "index": 0, "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "AAAA"},
    ]

    (message,) = DIALECT.read_reply([chunk({"reasoning_details": [detail]}) for detail in details]).messages

    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    assert [(part.text, part.signature, part.encrypted) for part in thoughts] == [
        ("let me", "sig", ""),
        ("", "", "AAAA"),
    ]


@pytest.mark.parametrize("numbered", [{"index": 0}, {}], ids=["all called the first", "not counted"])
def test_calls_are_told_apart_by_their_ids_where_a_server_cannot_count(numbered: dict[str, int]) -> None:
    chunks = [chunk({"tool_calls": [numbered | call]}) for call in CALLS]

    (message,) = DIALECT.read_reply([*chunks, chunk({}, "stop")]).messages

    assert DIALECT.write([message])[0]["tool_calls"] == CALLS


def test_a_former_call_is_joined() -> None:
    deltas = [{"function_call": {"name": "ls", "arguments": "{"}}, {"function_call": {"arguments": "}"}}]

    reply = DIALECT.read_reply([*(chunk(delta) for delta in deltas), chunk({}, "function_call")])

    assert DIALECT.write(reply.messages) == [{"role": "assistant", "function_call": {"name": "ls", "arguments": "{}"}}]
    assert reply.stop == "tools"


def test_of_several_choices_the_first_is_taken() -> None:
    others = [{"index": 1, "message": {"role": "assistant", "content": "two"}, "finish_reason": "stop"}]
    whole = completion({"role": "assistant", "content": "one"})
    streamed = [chunk({"content": "one"}), chunk({"content": "two"})]
    streamed[1]["choices"][0]["index"] = 1

    assert DIALECT.read_reply(whole | {"choices": whole["choices"] + others}).messages[0].content == "one"
    assert DIALECT.read_reply(streamed).messages[0].content == "one"


def test_chunks_that_do_not_say_how_it_ended_broke_off() -> None:
    assert DIALECT.read_reply(CHUNKS[:-2]).stop == "broken"
    assert DIALECT.read_reply(CHUNKS).stop == "tools"


def test_a_long_stream_is_joined_once() -> None:
    pieces = 20_000

    (message,) = DIALECT.read_reply([chunk({"content": "word "}) for _ in range(pieces)]).messages

    assert message.parts == (Text("word " * pieces),)


BAD_REPLIES: list[tuple[object, str, str]] = [
    ({"error": {"message": "overloaded"}}, "error", "the server answered with an error: 'overloaded'"),
    ({}, "choices", "there is no 'choices'"),
    ({"choices": []}, "choices", "there is no answer in it"),
    ([], "choices", "there is no answer in it"),
    ({"choices": [{}]}, "choices[0].message", "there is no 'message'"),
    (
        {"choices": [{"message": {"content": 1}}]},
        "choices[0].message.content",
        "expected text or a list of parts, not the number 1",
    ),
    (completion(MESSAGE, usage={"prompt_tokens": "many"}), "usage.prompt_tokens", ""),
    (completion(MESSAGE, usage={"prompt_tokens": -1}), "usage.prompt_tokens", ""),
    ([chunk({"tool_calls": [3]})], "[0].choices[0].delta.tool_calls[0]", "expected an object, not the number 3"),
    ("hello", "", "expected an object, not the text 'hello'"),
]


@settings(deadline=None)
@given(
    JSON
    | OBJECTS
    | spoiled(st.builds(lambda: json.loads(json.dumps(completion(MESSAGE)))))
    | spoiled(st.builds(lambda: json.loads(json.dumps(CHUNKS))))
)
def test_reading_a_reply_refuses_or_understands_and_never_breaks(reply: Any) -> None:
    read = attempted(DIALECT.read_reply, reply)

    assert read is None or DIALECT.write(read.messages)
