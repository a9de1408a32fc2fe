"""The checks that the other tests rely on can fail."""

from typing import Any

import pytest
from hypothesis import given
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError

from tests.dialects.support import StrictType, accepted, values_of

CHAT = StrictType(list[ChatCompletionMessageParam])
ITEMS = StrictType(list[ResponseInputItemParam])
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BAD_MESSAGES = {
    "an unknown role": {"role": "usr", "content": "x"},
    "a part without its text": {"role": "user", "content": [{"type": "text"}]},
    "an unknown part": {"role": "user", "content": [{"type": "output_text", "text": "x"}]},
    "an unknown field": {"role": "user", "content": "x", "foo": 1},
    "an unknown field in a part": {"role": "user", "content": [{"type": "text", "text": "x", "foo": 1}]},
    "a call without an id": {"role": "assistant", "tool_calls": [{k: v for k, v in CALL.items() if k != "id"}]},
    "arguments that are no text": {
        "role": "assistant",
        "tool_calls": [CALL | {"function": {"name": "f", "arguments": {}}}],
    },
    "a result without the id": {"role": "tool", "content": "x"},
    "content that is a number": {"role": "user", "content": 1},
}
BAD_ITEMS = {
    "a role of chat": {"role": "tool", "content": "x"},
    "a call without the id": {"type": "function_call", "name": "f", "arguments": "{}"},
    "reasoning without an id": {"type": "reasoning", "summary": []},
    "an output that is a number": {"type": "function_call_output", "call_id": "c", "output": 3},
    "output text that was never put out": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "x", "annotations": []}],
    },
    "a part of chat": {"role": "user", "content": [{"type": "text", "text": "x"}]},
}


@pytest.mark.parametrize("message", BAD_MESSAGES.values(), ids=BAD_MESSAGES)
def test_a_bad_chat_message_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        accepted(CHAT, [message])


@pytest.mark.parametrize("item", BAD_ITEMS.values(), ids=BAD_ITEMS)
def test_a_bad_item_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        accepted(ITEMS, [item])


def test_the_types_as_they_are_would_let_bad_messages_pass() -> None:
    """Why they are not used as they are; when this fails, `StrictType` can go."""
    loose: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])

    for message in (BAD_MESSAGES["a call without an id"], BAD_MESSAGES["an unknown field"]):
        loose.validate_python([message])


@given(values_of(ChatCompletionMessageParam))
def test_what_is_made_of_a_type_is_of_that_type(message: dict[str, Any]) -> None:
    accepted(CHAT, [message])
