"""Requests to chat completions: what the SDK is given, and what it sends."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import NOT_GIVEN, OpenAI, omit
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from pydantic import BaseModel

from nexus_core.dialects.openai.dialect import DIALECT
from nexus_core.values.conversation import Conversation, Tool
from nexus_core.values.message import Message
from tests.dialects.support import JSON, WORDS, Loopback, values_of
from tests.dialects.test_openai import BEYOND, VALID
from tests.dialects.test_openai_reply import completion

FUNCTION = {"name": "ls", "description": "List files.", "parameters": {"type": "object", "properties": {}}}
REQUEST: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": list(VALID.values()),
    "tools": [
        {"type": "function", "function": FUNCTION | {"strict": True}},
        {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}},
    ],
    "temperature": 0.5,
    "tool_choice": "auto",
    "stream": False,
    "metadata": {"_": "x"},
}


class Answer(BaseModel):
    number: int


def test_a_request_comes_back_as_it_was() -> None:
    conversation = DIALECT.read_request(REQUEST)

    assert len(conversation.messages) == len(VALID)
    assert [tool.name for tool in conversation.tools] == ["ls", "sql"]
    assert conversation.extra["model"] == "gpt-4o"
    assert DIALECT.write_request(conversation) == REQUEST


@pytest.mark.parametrize(
    "more",
    [
        {"tools": []},
        {"tools": None},
        {"functions": [FUNCTION], "function_call": "auto"},
        {"response_format": Answer, "timeout": 3},
        {"_underscored": 1},
    ],
)
def test_what_is_rare_comes_back_too(more: dict[str, Any]) -> None:
    request = {"model": "m", "messages": [VALID["user"]]} | more

    assert DIALECT.write_request(DIALECT.read_request(request)) == request


@settings(deadline=None)
@given(
    st.lists(values_of(ChatCompletionMessageParam), max_size=2),
    st.lists(values_of(ChatCompletionToolUnionParam), min_size=1, max_size=2),
    st.dictionaries(WORDS, JSON, max_size=2),
)
def test_whatever_the_sdk_allows_comes_back(messages: list[Any], tools: list[Any], more: dict[str, Any]) -> None:
    request = {**more, "messages": messages, "tools": tools}

    assert DIALECT.write_request(DIALECT.read_request(request)) == request


@pytest.mark.parametrize("nothing", [NOT_GIVEN, omit])
def test_the_sdks_marks_for_nothing_are_left_out(nothing: object) -> None:
    request = {"model": "m", "messages": [VALID["user"]], "tools": nothing, "temperature": nothing}

    assert DIALECT.write_request(DIALECT.read_request(request)) == {"model": "m", "messages": [VALID["user"]]}


def test_the_client_sends_what_was_written(loopback: Loopback) -> None:
    request = REQUEST | {
        "messages": [*VALID.values(), *(BEYOND[name] for name in ("DeepSeek's thoughts", "unknown fields"))]
    }
    loopback.answer = completion({"role": "assistant", "content": "hi"})

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        api.chat.completions.create(**DIALECT.write_request(DIALECT.read_request(request)))

    assert loopback.paths == ["/chat/completions"]
    assert loopback.body == request


def test_an_answer_goes_back_to_the_client_as_it_came(loopback: Loopback) -> None:
    loopback.answer = completion(VALID["calls"], "tool_calls")
    asked = DIALECT.read_request({"model": "m", "messages": [VALID["user"]]})

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        reply = DIALECT.read_reply(api.chat.completions.create(**DIALECT.write_request(asked)))
        result = Message("tool", DIALECT.read(VALID["a result"]).parts)
        again = Conversation(messages=(*asked.messages, *reply.messages, result), api="openai", extra=asked.extra)
        api.chat.completions.create(**DIALECT.write_request(again))

    assert loopback.bodies[1]["messages"] == [VALID["user"], VALID["calls"], VALID["a result"]]


def test_another_apis_arguments_are_not_passed_on() -> None:
    foreign = Conversation(
        messages=(Message("user", "x"),), api="anthropic", extra={"model": "claude", "max_tokens": 5, "thinking": {}}
    )

    assert DIALECT.write_request(foreign) == {"messages": [{"role": "user", "content": "x"}]}


def test_arguments_made_here_are_passed_on() -> None:
    made = Conversation(
        messages=(Message("user", "x"),), tools=(Tool(name="ls"),), extra={"model": "m", "temperature": 0}
    )

    assert DIALECT.write_request(made) == {
        "model": "m",
        "temperature": 0,
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": {"name": "ls"}}],
    }


BAD_REQUESTS: list[tuple[object, str, str]] = [
    ({"model": "m"}, "messages", "there is no 'messages'"),
    ({"messages": "hello"}, "messages", "expected a list, not the text 'hello'"),
    ({"messages": iter([])}, "messages", "expected a list, not a list_iterator"),
    (
        {"messages": [VALID["user"], {"role": "user", "content": [{"type": 1}]}]},
        "messages[1].content[0].type",
        "",
    ),
    ({"messages": [], "tools": "all"}, "tools", "expected a list, not the text 'all'"),
    ({"messages": [], "tools": [{"type": "function", "function": {}}]}, "tools[0].function.name", ""),
    ({"messages": [], "functions": [{"name": 1}]}, "functions[0].name", ""),
    ({1: 2}, "", "expected text as the name of an argument, not the number 1"),
    (3, "", "expected the arguments of a call, not the number 3"),
]
