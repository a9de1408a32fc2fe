"""Replies that broke off, and calls of which nobody can read what they are to be run with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexus_core.errors import MessageError
from nexus_core.session.record import INTERRUPTED_RESULT
from tests.session.conftest import OpenSession
from tests.session.support import calls, says

START = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}}
CALL = {"type": "tool_use", "id": "t1", "name": "rm", "input": {}}
CALLING: list[dict[str, Any]] = [
    START,
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Half"}},
    {"type": "content_block_start", "index": 1, "content_block": CALL},
]
CUT = {
    "type": "content_block_delta",
    "index": 1,
    "delta": {"type": "input_json_delta", "partial_json": '{"path": "/tm'},
}
ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Half", "annotations": []}]}
FUNCTION = {"name": "rm", "arguments": '{"path": "/tm'}

BROKEN_OFF: dict[str, list[dict[str, Any]]] = {
    "anthropic": [*CALLING, CUT],
    "anthropic before its arguments": CALLING,
    "openai": [
        {"id": "c1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Half"}}]},
        {
            "id": "c1",
            "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "t1", "function": FUNCTION}]}}],
        },
    ],
    "responses": [
        {"type": "response.created", "response": {"id": "r1", "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
    ],
    "gemini": [
        {"responseId": "g1", "candidates": [{"content": {"role": "model", "parts": [{"text": "Half"}]}}]},
    ],
}


@pytest.mark.parametrize("pieces", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_a_stream_without_its_end_is_refused_and_can_be_asked_for_again(
    open_session: OpenSession, pieces: list[dict[str, Any]]
) -> None:
    session = open_session()
    sent = session.ask("Tidy up.").to("anthropic")

    with pytest.raises(MessageError, match="the stream broke off") as caught:
        session.record(pieces)

    assert "interrupted=True) keeps what came" in str(caught.value)
    assert session.pending_calls == ()
    assert session.next().to("anthropic") == sent
    assert session.record(says("Done.")).done


@pytest.mark.parametrize("pieces", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_what_came_of_it_can_be_kept_and_its_calls_are_not_run(
    open_session: OpenSession, pieces: list[dict[str, Any]]
) -> None:
    session = open_session()
    session.ask("Tidy up.")

    step = session.record(pieces, interrupted=True)
    again = session.record(pieces, interrupted=True)

    assert (step.text, step.done, step.tool_calls) == ("Half", True, ())
    assert again.duplicate
    results = [result.text for message in session.messages for result in message.tool_results]
    assert set(results) <= {INTERRUPTED_RESULT}


def test_a_server_that_never_says_how_a_reply_ended_can_be_believed(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Hi")

    assert session.record(BROKEN_OFF["gemini"], interrupted=False).done


def test_what_a_model_was_about_to_do_when_it_failed_is_not_done(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Tidy up.")
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    step = session.record([*CALLING, failed])

    assert (step.text, step.done, step.tool_calls) == ("Half", True, ())


@pytest.mark.parametrize(
    "error", [{"error": {"message": "bad key"}}, [{"error": {"message": "bad key"}}], {"error": "bad key"}]
)
def test_an_error_of_the_api_is_called_one(open_session: OpenSession, error: object) -> None:
    session = open_session()
    session.ask("Hi")

    with pytest.raises(MessageError, match="this is an error of the API: bad key"):
        session.record(error)


@pytest.mark.parametrize("raw", ['{"path": "/tm', "[1]", "null", "rm -rf"])
def test_a_call_with_arguments_that_nobody_can_read_says_so(open_session: OpenSession, raw: str) -> None:
    session = open_session()
    session.ask("Tidy up.")
    call = {"id": "t1", "type": "function", "function": {"name": "rm", "arguments": raw}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}

    (broken,) = session.record({"id": "c", "choices": [{"message": message, "finish_reason": "tool_calls"}]}).tool_calls
    session.record(broken.result("These arguments are no JSON object.", is_error=True))

    assert (broken.has_invalid_arguments, broken.raw, broken.arguments) == (True, raw, {"INVALID_JSON": raw})
    told = session.next().to("openai")["messages"][-2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(told) == {"INVALID_JSON": raw}


@pytest.mark.parametrize("raw", ["{}", "", " { } ", '{"path": "x"}'])
def test_a_call_without_arguments_is_as_good_as_any(open_session: OpenSession, raw: str) -> None:
    session = open_session()
    session.ask("Tidy up.")
    call = {"id": "t1", "type": "function", "function": {"name": "ls", "arguments": raw}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}

    (whole,) = session.record({"id": "c", "choices": [{"message": message, "finish_reason": "tool_calls"}]}).tool_calls

    assert not whole.has_invalid_arguments
    assert "INVALID_JSON" not in whole.arguments


def test_a_call_that_comes_as_an_object_is_never_broken(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Tidy up.")

    (call,) = session.record(calls("t1")).tool_calls

    assert not call.has_invalid_arguments
