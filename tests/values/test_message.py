"""One message, in no API's shape."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core import Message
from nexus_core.context import Reasoning, Text, ToolCall, ToolResult
from nexus_core.values.message import ROLES


@pytest.mark.acceptance("C-17")
def test_there_are_four_roles_and_no_others() -> None:
    assert ROLES == ("system", "user", "assistant", "tool")
    with pytest.raises(ValueError, match="must be one of system, user, assistant, tool, not 'Human'"):
        Message("Human", "Hello")  # type: ignore[arg-type] # on purpose


def test_a_string_is_taken_as_one_text() -> None:
    assert Message("user", "Hello") == Message("user", (Text("Hello"),)) == Message("user", [Text("Hello")])


def test_its_content_is_its_words_alone() -> None:
    message = Message("assistant", (Reasoning(text="hm"), Text("one"), ToolCall("a", "ls"), Text("two")))

    assert message.content == "one\ntwo"


def test_it_names_its_calls_and_results() -> None:
    call, result = ToolCall("a", "ls"), ToolResult("a", "README.md")

    assert Message("assistant", [Text("Let me look."), call]).tool_calls == (call,)
    assert Message("tool", [result]).tool_results == (result,)


def test_the_text_of_a_result_is_its_words() -> None:
    assert ToolResult("a", [Text("one"), Text("two")]).text == "one\ntwo"


@pytest.mark.parametrize("parts", [[{"type": "text", "text": "Hello"}], {"a": 1}, ["Hello"]])
def test_parts_of_an_apis_own_shape_are_refused(parts: Any) -> None:
    with pytest.raises(ValueError, match="must hold parts such as Text or ToolCall"):
        Message("user", parts)
