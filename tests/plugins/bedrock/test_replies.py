"""What Converse answers, at once and in pieces."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import MessageError, Nexus, Usage
from nexus_core.plugin import Opaque, Reasoning, Text, ToolCall
from tests.dialects.support import JSON, attempted, spoiled
from tests.plugins.bedrock.converse import BEDROCK, in_json, values_of

BLOCKS: list[dict[str, Any]] = [
    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2Vhb"}}},
    {"reasoningContent": {"redactedContent": b"\x00\x01\x02"}},
    {"text": "Let me see."},
    {"citationsContent": {"content": [{"text": "Green."}], "citations": [{"title": "Lawn"}]}},
    {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": ["it"]}}},
]
USAGE = {
    "inputTokens": 10,
    "outputTokens": 50,
    "totalTokens": 290,
    "cacheReadInputTokens": 200,
    "cacheWriteInputTokens": 30,
}
REPLY: dict[str, Any] = {
    "ResponseMetadata": {"RequestId": "r1", "HTTPStatusCode": 200},
    "output": {"message": {"role": "assistant", "content": BLOCKS}},
    "stopReason": "tool_use",
    "usage": USAGE,
    "metrics": {"latencyMs": 1},
    "trace": {"promptRouter": {"invokedModelId": "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0"}},
}


def delta(index: int, **piece: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece}}


def thought(index: int, **piece: Any) -> dict[str, Any]:
    return delta(index, reasoningContent=piece)


START = {"messageStart": {"role": "assistant"}}
CALL = {"contentBlockStart": {"contentBlockIndex": 4, "start": {"toolUse": {"toolUseId": "t1", "name": "look"}}}}
STOP = {"messageStop": {"stopReason": "tool_use"}}
METADATA = {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}, "trace": REPLY["trace"]}}
EVENTS: list[dict[str, Any]] = [
    START,
    thought(0, text="H"),
    thought(0, text="m."),
    thought(0, signature="c2Vhb"),
    {"contentBlockStop": {"contentBlockIndex": 0}},
    thought(1, redactedContent=b"\x00"),
    thought(1, redactedContent=b"\x01\x02"),
    delta(2, text="Let me "),
    delta(2, text="see."),
    delta(3, text="Green."),
    delta(3, citation={"title": "Lawn"}),
    CALL,
    delta(4, toolUse={"input": '{"at": ["i'}),
    delta(4, toolUse={"input": 't"]}'}),
    {"contentBlockStop": {"contentBlockIndex": 4}},
    STOP,
    METADATA,
]
REPLIES = st.fixed_dictionaries(
    {
        "output": st.fixed_dictionaries({"message": values_of("Message")}),
        "stopReason": values_of("StopReason"),
        "usage": values_of("TokenUsage"),
    }
)
PIECES = (
    st.sampled_from(EVENTS).map(deepcopy)
    | st.fixed_dictionaries({"contentBlockStart": values_of("ContentBlockStartEvent")})
    | st.fixed_dictionaries({"contentBlockDelta": values_of("ContentBlockDeltaEvent")})
)


def test_a_reply_is_a_message_that_may_be_sent_back() -> None:
    reply = BEDROCK.read_reply(REPLY)

    assert (reply.id, reply.stop, reply.stop_reason, reply.api) == ("r1", "tools", "tool_use", "bedrock")
    assert reply.model.endswith("amazon.nova-pro-v1:0")
    assert BEDROCK.write(reply.messages) == [{"role": "assistant", "content": BLOCKS}]


def test_what_is_read_from_and_put_into_the_cache_is_input_as_well() -> None:
    assert BEDROCK.read_reply(REPLY).usage == Usage(
        input_tokens=240, output_tokens=50, cached_input_tokens=200, cache_write_tokens=30
    )


def test_the_events_of_a_stream_add_up_to_the_reply() -> None:
    streamed = BEDROCK.read_reply(EVENTS)
    response = BEDROCK.read_reply({"ResponseMetadata": REPLY["ResponseMetadata"], "stream": EVENTS})

    assert response == BEDROCK.read_reply(REPLY)
    assert streamed.messages == response.messages


def test_a_session_takes_a_response_whose_stream_was_read() -> None:
    response = {"ResponseMetadata": REPLY["ResponseMetadata"], "stream": EVENTS}
    with Nexus(layers=False, ledger="memory:") as nexus:
        session = nexus.session("a", model="gpt-4o")
        session.ask("Why?")

        step = session.record(response)

    assert step.text == BEDROCK.read_reply(EVENTS).messages[0].content


@pytest.mark.parametrize("given", [REPLY, EVENTS], ids=["whole", "streamed"])
def test_the_json_of_a_reply_is_read_like_the_reply(given: Any) -> None:
    assert BEDROCK.read_reply(in_json(given)) == BEDROCK.read_reply(given)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "refusal"),
        ("content_filtered", "refusal"),
        ("malformed_tool_use", "error"),
        ("something_new", ""),
    ],
)
def test_why_it_stopped(reason: str, stop: str) -> None:
    said = {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}

    reply = BEDROCK.read_reply({"output": said, "stopReason": reason})

    assert (reply.stop, reply.stop_reason, reply.usage) == (stop, reason, None)


def test_calls_wait_even_where_the_model_says_that_its_turn_has_ended() -> None:
    assert BEDROCK.read_reply(REPLY | {"stopReason": "end_turn"}).stop == "tools"


def test_what_boto3_could_not_read_is_not_sent_back() -> None:
    content = [{"SDK_UNKNOWN_MEMBER": {"name": "hologram"}}, {"text": "Hi"}]

    reply = BEDROCK.read_reply({"output": {"message": {"role": "assistant", "content": content}}})

    assert reply.messages[0].parts == (Text("Hi"),)


def test_a_stream_that_broke_off_gives_what_had_arrived() -> None:
    reply = BEDROCK.read_reply([START, delta(0, text="Hm"), CALL, delta(4, toolUse={"input": '{"at": ["i'})])

    assert reply.stop == "broken"
    assert reply.messages[0].parts == (Text("Hm"), ToolCall("t1", "look", raw='{"at": ["i'))


def test_a_call_without_arguments_may_bring_no_piece_of_them() -> None:
    (call,) = BEDROCK.read_reply([START, CALL, STOP]).messages[0].tool_calls

    assert (call.arguments, call.raw) == ({}, None)


def test_a_stream_that_ended_in_an_error_says_which() -> None:
    reply = BEDROCK.read_reply([START, delta(0, text="Hm"), {"throttlingException": {"message": "Slow down."}}])

    assert (reply.stop, reply.stop_reason) == ("error", "throttlingException")


def test_pictures_and_what_a_tool_of_the_provider_brought_come_in_pieces_too() -> None:
    reply = BEDROCK.read_reply(
        [
            START,
            {
                "contentBlockStart": {
                    "contentBlockIndex": 0,
                    "start": {"toolResult": {"toolUseId": "t0", "type": "nova_grounding_result"}},
                }
            },
            delta(0, toolResult=[{"text": "a"}]),
            delta(0, toolResult=[{"json": {"b": 1}}]),
            {"contentBlockStart": {"contentBlockIndex": 1, "start": {"image": {"format": "png"}}}},
            delta(1, image={"source": {"bytes": b"\x89"}}),
            delta(1, image={"source": {"bytes": b"PNG"}}),
            STOP,
        ]
    )

    assert BEDROCK.write(reply.messages)[0]["content"] == [
        {
            "toolResult": {
                "content": [{"text": "a"}, {"json": {"b": 1}}],
                "toolUseId": "t0",
                "type": "nova_grounding_result",
            }
        },
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
    ]
    assert isinstance(reply.messages[0].parts[0], Opaque)


def test_thoughts_that_nobody_signed_are_thoughts() -> None:
    reply = BEDROCK.read_reply([START, thought(0, text="Hm."), delta(1, text="Hi"), STOP])

    assert reply.messages[0].parts == (Reasoning(text="Hm.", api="bedrock"), Text("Hi"))


@given(reply=spoiled(REPLIES) | JSON)
def test_any_reply_at_all_is_understood_or_refused(reply: Any) -> None:
    attempted(BEDROCK.read_reply, reply)


@given(events=st.lists(PIECES | spoiled(PIECES), max_size=6))
def test_any_stream_at_all_is_understood_or_refused(events: list[Any]) -> None:
    attempted(BEDROCK.read_reply, [START, *events])


BAD: list[tuple[object, str, str]] = [
    ("Hi", "", "expected an object"),
    ({}, "output", "there is no 'output'"),
    ({"output": {}}, "output.message", "there is no 'message'"),
    ({"output": {"message": {"role": "assistant"}}}, "output.message.content", "there is no 'content'"),
    (
        {"output": {"message": {"role": "assistant", "content": [{"toolUse": {"name": "f"}}]}}},
        "output.message.content[0].toolUse.toolUseId",
        "",
    ),
    (REPLY | {"usage": {"inputTokens": -1}}, "usage.inputTokens", "a whole number"),
    ({"Error": {"Message": "No.", "Code": "x"}}, "Error", "No."),
    ({"stream": iter(EVENTS)}, "stream", "list(response['stream'])"),
    ([], "", "there is no answer in it"),
    ([delta(0, text="Hi")], "[0].contentBlockDelta", "messageStart"),
    ([START, delta(0, text=3)], "[1].contentBlockDelta.delta.text", "expected text"),
    ([START, thought(0, redactedContent="?")], "[1].contentBlockDelta.delta.reasoningContent.redactedContent", "bytes"),
]


@pytest.mark.parametrize(("reply", "path", "words"), BAD, ids=[path or "all" for _, path, _ in BAD])
def test_what_is_no_reply_is_refused_with_its_place(reply: object, path: str, words: str) -> None:
    with pytest.raises(MessageError) as refused:
        BEDROCK.read_reply(reply)

    assert refused.value.path == path
    assert words in str(refused.value)
