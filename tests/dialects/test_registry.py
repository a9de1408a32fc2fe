"""Dialects by name, and by what a list looks like."""

import sys
from subprocess import run
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall

from nexus_core.dialects.registry import BUILT_IN_DIALECTS, BUILT_IN_NAMES, get_dialect, read_messages
from nexus_core.errors import MessageError, UnknownNameError
from nexus_core.types.messages import Message

UNSURE = {"role": "user", "content": "hello"}


@pytest.mark.parametrize("name", BUILT_IN_NAMES)
def test_a_dialect_is_found_by_its_name(name: str) -> None:
    found = get_dialect(name)

    assert (found.name, found.rules.name) == (name, name)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'anthropic'\?"):
        get_dialect("antropic")


def test_only_the_dialect_asked_for_is_imported() -> None:
    program = (
        "import sys; from nexus_core.dialects.registry import get_dialect; get_dialect('openai'); "
        "print([name for name in sys.modules if name.startswith('nexus_core.dialects.') and "
        "name.split('.')[2] in ('responses', 'anthropic', 'gemini', 'neutral')])"
    )

    printed = run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"role": "tool", "tool_call_id": "c", "content": "x"}, "openai"),
        ({"role": "function", "name": "f", "content": "x"}, "openai"),
        ({"role": "assistant", "content": None, "tool_calls": []}, "openai"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}, "openai"),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, "responses"),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, "responses"),
        ({"type": "reasoning", "id": "r", "summary": []}, "responses"),
        ({"type": "web_search_call", "id": "w", "status": "completed"}, "responses"),
        ({"type": "message", "role": "user", "content": "x"}, "responses"),
        ({"role": "user", "content": [{"type": "input_text", "text": "x"}]}, "responses"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}, "anthropic"),
        ({"role": "model", "parts": [{"text": "x"}]}, "gemini"),
        ({"nexus": 1, "role": "user", "parts": []}, "neutral"),
        (Message("user", "x"), "neutral"),
        (ChatCompletionMessage(role="assistant", content="x"), "openai"),
        (ResponseFunctionToolCall(type="function_call", call_id="c", name="f", arguments=""), "responses"),
    ],
)
def test_a_list_is_recognised_by_the_first_element_that_is_sure(item: Any, name: str) -> None:
    assert BUILT_IN_DIALECTS.recognise([UNSURE, item]).name == name


@pytest.mark.parametrize("items", [[], [UNSURE], [{"role": "system", "content": "x"}, UNSURE]])
def test_a_list_that_could_be_anybodys_is_chat(items: list[object]) -> None:
    assert BUILT_IN_DIALECTS.recognise(items).name == "openai"


def test_what_is_no_message_is_named_with_its_place() -> None:
    with pytest.raises(MessageError, match="expected a message, not the text 'hello'") as caught:
        BUILT_IN_DIALECTS.recognise([UNSURE, "hello"])

    assert caught.value.path == "messages[1]"


def test_an_error_in_a_list_says_where_it_is() -> None:
    bad = {"role": "user", "content": [{"type": "text", "text": 3}]}

    with pytest.raises(MessageError) as caught:
        read_messages(get_dialect("openai"), [UNSURE, UNSURE, bad])

    assert caught.value.path == "messages[2].content[0].text"
