"""Requests to Responses: what the SDK is given, and what it sends."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.responses import ResponseInputItemParam, ToolParam

from nexus_core.dialects.responses.dialect import DIALECT
from nexus_core.values.conversation import Conversation
from nexus_core.values.message import Message
from nexus_core.values.parts import Text, ToolResult
from tests.dialects.support import Loopback, values_of
from tests.dialects.test_responses import VALID
from tests.dialects.test_responses_reply import response

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "ls", "description": "List.", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "sql", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
    {"type": "web_search", "search_context_size": "low"},
    {"type": "mcp", "server_label": "s", "server_url": "https://a"},
]
REQUEST: dict[str, Any] = {
    "model": "gpt-5",
    "instructions": "Be brief.",
    "input": list(VALID.values()),
    "tools": TOOLS,
    "reasoning": {"effort": "low"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
}


def test_a_request_comes_back_as_it_was() -> None:
    conversation = DIALECT.read_request(REQUEST)

    assert conversation.messages[0].role == "system"
    assert conversation.messages[0].content == "Be brief."
    assert len(conversation.messages) == 1 + len(VALID)
    assert [tool.name for tool in conversation.tools] == ["ls", "sql", "web_search", "s"]
    assert DIALECT.write_request(conversation) == REQUEST


@pytest.mark.parametrize(
    "request_body",
    [
        {"model": "m", "input": "hello"},
        {"model": "m", "input": "hello", "instructions": None},
        {"model": "m", "input": "", "instructions": ""},
        {"model": "m", "input": []},
        {"model": "m", "input": [VALID["an easy message"]], "tools": []},
        {"model": "m", "prompt": {"id": "pmpt_1"}},
        {"model": "m", "input": None, "previous_response_id": "resp_1"},
        {"model": "m", "instructions": "Be brief.", "previous_response_id": "resp_1"},
        {"model": "m", "input": [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]},
    ],
)
def test_every_spelling_of_a_request_comes_back(request_body: dict[str, Any]) -> None:
    assert DIALECT.write_request(DIALECT.read_request(request_body)) == request_body


@settings(deadline=None)
@given(
    st.lists(values_of(ResponseInputItemParam), max_size=2),
    st.lists(values_of(ToolParam), min_size=1, max_size=2),
    st.none() | st.text(max_size=3),
)
def test_whatever_the_sdk_allows_comes_back(items: list[Any], tools: list[Any], instructions: str | None) -> None:
    request = {"model": "m", "input": items, "tools": tools, "instructions": instructions}

    assert DIALECT.write_request(DIALECT.read_request(request)) == request


def test_the_client_sends_what_was_written(loopback: Loopback) -> None:
    loopback.answer = response([VALID["an answer"]])

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        api.responses.create(**DIALECT.write_request(DIALECT.read_request(REQUEST)))

    assert loopback.paths == ["/responses"]
    assert loopback.body == REQUEST


def test_an_answer_goes_back_to_the_client_as_it_came(loopback: Loopback) -> None:
    output = [VALID["a thought"], VALID["a call"]]
    loopback.answer = response(output)
    asked = DIALECT.read_request({"model": "m", "input": "hello"})

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        reply = DIALECT.read_reply(api.responses.create(**DIALECT.write_request(asked)))
        result = Message("tool", (ToolResult("call_1", "a.txt"),))
        again = Conversation(messages=(*asked.messages, *reply.messages, result), api="responses", extra=asked.extra)
        api.responses.create(**DIALECT.write_request(again))

    hello = {"type": "message", "role": "user", "content": "hello"}
    assert loopback.bodies[1] == {"model": "m", "input": [hello, *output, VALID["a result"]]}


def test_what_was_changed_is_no_text_any_more() -> None:
    asked = DIALECT.read_request({"model": "m", "input": "hello"})
    more = Conversation(messages=(*asked.messages, Message("user", "and?")), api="responses", extra=asked.extra)

    assert [item["content"] for item in DIALECT.write_request(more)["input"]] == ["hello", "and?"]


def test_the_first_system_message_of_others_becomes_the_instructions() -> None:
    made = Conversation(messages=(Message("system", "Be brief."), Message("system", "Really."), Message("user", "x")))

    assert DIALECT.write_request(made) == {
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "system", "content": "Really."},
            {"type": "message", "role": "user", "content": "x"},
        ],
    }


def test_instructions_in_several_parts_stay_among_the_items() -> None:
    made = Conversation(messages=(Message("system", (Text("a"), Text("b"))),))

    assert DIALECT.write_request(made) == {
        "input": [
            {
                "type": "message",
                "role": "system",
                "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
            }
        ]
    }


BAD_REQUESTS: list[tuple[object, str]] = [
    ({"input": 3}, "input"),
    ({"input": ["hello"]}, "input[0]"),
    ({"input": [VALID["a call"], {"type": "message", "role": "user"}]}, "input[1].content"),
    ({"input": "x", "instructions": 3}, "instructions"),
    ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
    ("hello", ""),
]
