"""Messages of Nexus's own, and their form in JSON."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.dialects.fields import MAX_NESTING_LEVELS
from nexus_core.dialects.neutral import DIALECT, message_from_json, message_to_json
from nexus_core.errors import MessageError
from nexus_core.types.messages import (
    ROLES,
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Reply,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.dialects.support import JSON, OBJECTS, attempted, spoiled

WORDS = st.text(st.characters(codec=None, exclude_categories=()), max_size=5)
MEDIA: dict[str, Any] = {"mime": WORDS, "data": WORDS, "url": WORDS, "file_id": WORDS, "extra": OBJECTS}
RESULT_PARTS = st.one_of(
    st.builds(Text, WORDS, OBJECTS),
    st.builds(Image, detail=WORDS, **MEDIA),
    st.builds(File, name=WORDS, **MEDIA),
    st.builds(Opaque, WORDS, OBJECTS),
)
PARTS = st.one_of(
    RESULT_PARTS,
    st.builds(Reasoning, text=WORDS, signature=WORDS, encrypted=WORDS, api=WORDS, extra=OBJECTS),
    st.builds(ToolCall, WORDS, WORDS, OBJECTS, st.none() | WORDS, OBJECTS),
    st.builds(ToolResult, WORDS, st.lists(RESULT_PARTS, max_size=2).map(tuple), WORDS, st.booleans(), OBJECTS),
)
MESSAGES = st.builds(Message, st.sampled_from(ROLES), st.lists(PARTS, max_size=3).map(tuple), WORDS, WORDS, OBJECTS)
TOOLS = st.builds(
    Tool,
    name=WORDS,
    description=WORDS,
    parameters=OBJECTS,
    scope=st.sampled_from(["general", "messaging", "spawn"]),
    api=WORDS,
    extra=OBJECTS,
)
CONVERSATIONS = st.builds(
    Conversation,
    messages=st.lists(MESSAGES, max_size=2).map(tuple),
    tools=st.lists(TOOLS, max_size=2).map(tuple),
    api=WORDS,
    extra=OBJECTS,
)
REPLIES = st.builds(
    Reply,
    messages=st.lists(MESSAGES, max_size=2).map(tuple),
    stop=st.sampled_from(["end", "tools", ""]),
    stop_reason=WORDS,
    usage=st.none() | st.builds(Usage, input_tokens=st.integers(0), reasoning_tokens=st.integers(0)),
    id=WORDS,
    model=WORDS,
    api=WORDS,
)
UNHURRIED = settings(deadline=None)


def through_bytes(value: object) -> Any:
    return json.loads(json.dumps(value))


@UNHURRIED
@given(MESSAGES)
def test_a_message_survives_as_json(message: Message) -> None:
    assert message_from_json(through_bytes(message_to_json(message))) == message


@UNHURRIED
@given(CONVERSATIONS)
def test_a_request_survives_as_json(conversation: Conversation) -> None:
    assert DIALECT.read_request(through_bytes(DIALECT.write_request(conversation))) == conversation


@UNHURRIED
@given(REPLIES)
def test_a_reply_survives_as_json(reply: Reply) -> None:
    from nexus_core.dialects.neutral import encode_value

    assert DIALECT.read_reply(through_bytes(encode_value(reply))) == reply


@UNHURRIED
@given(st.lists(TOOLS, max_size=3))
def test_tools_survive_as_json(tools: list[Tool]) -> None:
    assert DIALECT.read_tools(through_bytes(DIALECT.write_tools(tools))) == tuple(tools)


@UNHURRIED
@given(JSON | OBJECTS | spoiled(MESSAGES.map(message_to_json)))
def test_reading_refuses_or_understands_and_never_breaks(message: Any) -> None:
    read = attempted(message_from_json, message)

    assert read is None or message_from_json(message_to_json(read)) == read


def test_a_message_is_written_in_the_order_of_its_fields_without_what_is_usual() -> None:
    message = Message("tool", (ToolResult("c", (Text("x"),), extra={"b": 1, "a": 2}),), api="openai")

    assert json.dumps(message_to_json(message)) == (
        '{"nexus": 1, "role": "tool", "parts": [{"kind": "tool_result", "call_id": "c", '
        '"parts": [{"kind": "text", "text": "x"}], "extra": {"b": 1, "a": 2}}], "api": "openai"}'
    )


def test_what_is_written_shares_nothing_with_the_message() -> None:
    extra = {"a": [1]}

    written = message_to_json(Message("user", "x", extra=extra))
    written["extra"]["a"].append(2)

    assert extra == {"a": [1]}


def test_messages_tools_requests_and_replies_are_taken_as_they_are() -> None:
    message, tool = Message("user", "x"), Tool(name="ls")
    conversation, reply = Conversation(messages=(message,)), Reply(messages=(message,))

    assert DIALECT.read(message) is message
    assert DIALECT.read_tools([tool])[0] is tool
    assert DIALECT.read_request(conversation) is conversation
    assert DIALECT.read_reply(reply) is reply


def test_tools_of_any_api_are_read() -> None:
    given = [{"name": "a", "input_schema": {"type": "object"}}, {"type": "function", "function": {"name": "b"}}]

    assert [(tool.name, tool.api) for tool in DIALECT.read_tools(given)] == [("a", "anthropic"), ("b", "openai")]


@pytest.mark.parametrize(
    ("message", "path", "what", "hint"),
    [
        ({"nexus": 2, "role": "user", "parts": []}, "nexus", "expected version 1, not 2", "update Nexus"),
        ({"parts": []}, "role", "there is no 'role'", None),
        ({"role": "usr"}, "role", "unknown value: the text 'usr'", "did you mean 'user'?"),
        ({"role": "user", "part": []}, "'part'", "unknown field 'part'", "did you mean 'parts'?"),
        ({"role": "user", "parts": "x"}, "parts", "expected a list, not the text 'x'", None),
        ({"role": "user", "parts": [{"text": "x"}]}, "parts[0].kind", "unknown value: null", None),
        ({"role": "user", "parts": [{"kind": "text"}]}, "parts[0].text", "there is no 'text'", None),
        (
            {"role": "user", "parts": [{"kind": "text", "text": 1}]},
            "parts[0].text",
            "expected text, not the number 1",
            None,
        ),
        (
            {"role": "tool", "parts": [{"kind": "tool_result", "call_id": "c", "is_error": 1}]},
            "parts[0].is_error",
            "expected true or false, not the number 1",
            None,
        ),
        (3, "", "expected an object, not the number 3", None),
    ],
)
def test_what_is_not_of_this_form_is_refused_with_the_place(
    message: object, path: str, what: str, hint: str | None
) -> None:
    with pytest.raises(MessageError) as caught:
        message_from_json(message)

    assert (caught.value.path, caught.value.what) == (path, what)
    assert hint in (None, caught.value.hint)


def nested(levels: int) -> Any:
    """An object with so many levels, itself among them."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


HOLDERS = {
    "the message": lambda body: Message("user", "x", extra=body),
    "a text": lambda body: Message("user", (Text("x", body),)),
    "a call": lambda body: Message("assistant", (ToolCall("c", "f", body),)),
    "a block": lambda body: Message("assistant", (Opaque("anthropic", body),)),
    "a block of a result": lambda body: Message("tool", (ToolResult("c", (Opaque("anthropic", body),)),)),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_may_be_nested_does_not_depend_on_where_it_stands(holder: str) -> None:
    deepest, too_deep = HOLDERS[holder](nested(MAX_NESTING_LEVELS + 1)), HOLDERS[holder](nested(MAX_NESTING_LEVELS + 2))

    assert message_from_json(through_bytes(message_to_json(deepest))) == deepest
    conversation = Conversation(messages=(deepest,))
    assert DIALECT.read_request(through_bytes(DIALECT.write_request(conversation))) == conversation
    with pytest.raises(MessageError, match="nested deeper than 100 levels"):
        message_to_json(too_deep)


def test_what_is_nested_too_deeply_is_refused_when_it_is_read_too() -> None:
    written = message_to_json(Message("user", "x", extra={"a": 1}))
    written["extra"] = nested(MAX_NESTING_LEVELS + 2)

    with pytest.raises(MessageError, match="nested deeper than 100 levels"):
        message_from_json(written)


def test_a_field_of_another_type_is_refused_with_the_place_before_it_is_written() -> None:
    message = Message("assistant", (Text("x"), ToolCall("c", "f", {"a": [object()]})))
    with pytest.raises(MessageError) as caught:
        message_to_json(message)
    assert caught.value.path == "parts[1].arguments.a[0]"

    with pytest.raises(MessageError, match="expected text, not null") as caught:
        DIALECT.write_tools([Tool(name="ls", description=None)])  # type: ignore[arg-type] # on purpose
    assert caught.value.path == "description"

    with pytest.raises(MessageError, match="expected a message, part, tool, request or reply, not the number 3"):
        message_to_json(3)  # type: ignore[arg-type] # on purpose


def test_a_message_of_a_subclass_is_written_as_a_message() -> None:
    class Mine(Message):
        __slots__ = ("seen",)

    assert message_to_json(Mine("user", "x")) == message_to_json(Message("user", "x"))


def test_a_result_holds_no_calls() -> None:
    part = {"kind": "tool_result", "call_id": "c", "parts": [{"kind": "tool_call", "id": "d", "name": "f"}]}

    with pytest.raises(MessageError, match="unknown value: the text 'tool_call'") as caught:
        message_from_json({"role": "tool", "parts": [part]})

    assert caught.value.path == "parts[0].parts[0].kind"
