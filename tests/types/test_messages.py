"""Parts say at once which of their fields is of another type."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from nexus_core import Message
from nexus_core.context import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from nexus_core.types.messages import ROLES, Tool


@pytest.mark.parametrize(
    ("make", "given", "what"),
    [
        (Text, {"text": 1}, "Text.text must be str, not int"),
        (Text, {"text": "x", "extra": None}, "Text.extra must be Mapping, not NoneType"),
        (Image, {"mime": None}, "Image.mime must be str, not NoneType"),
        (Image, {"data": b"\x89PNG"}, "Image.data must be str, not bytes"),
        (File, {"name": 3}, "File.name must be str, not int"),
        (Reasoning, {"signature": None}, "Reasoning.signature must be str, not NoneType"),
        (Opaque, {"api": "anthropic", "block": []}, "Opaque.block must be Mapping, not list"),
        (Opaque, {"api": None, "block": {}}, "Opaque.api must be str, not NoneType"),
        (ToolCall, {"id": None, "name": "ls"}, "ToolCall.id must be str, not NoneType"),
        (ToolCall, {"id": "c", "name": "ls", "arguments": [1]}, "ToolCall.arguments must be Mapping, not list"),
        (ToolCall, {"id": "c", "name": "ls", "raw": 1}, "ToolCall.raw must be str or None, not int"),
        (ToolResult, {"call_id": "c", "is_error": 1}, "ToolResult.is_error must be bool, not int"),
        (ToolResult, {"call_id": "c", "name": None}, "ToolResult.name must be str, not NoneType"),
        (ToolResult, {"call_id": "c", "extra": [("a", 1)]}, "ToolResult.extra must be Mapping, not list"),
        (ToolResult, {"call_id": "c", "parts": [ToolCall("c", "ls")]}, "ToolResult.parts must contain texts, images"),
        (Message, {"role": "user", "name": None}, "Message.name must be str, not NoneType"),
        (Message, {"role": "user", "api": 1}, "Message.api must be str, not int"),
        (Message, {"role": "user", "extra": 1}, "Message.extra must be Mapping, not int"),
    ],
)
def test_a_field_of_another_type_is_refused_by_its_name(make: Any, given: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        make(**given)


def test_words_and_objects_of_other_classes_are_taken() -> None:
    class Words(str):
        __slots__ = ()

    frozen = MappingProxyType({"a": 1})

    assert Text(Words("x"), frozen).text == "x"
    assert ToolCall(Words("c"), "ls", frozen, extra=frozen).arguments == {"a": 1}
    assert ToolResult(Words("c"), "x", extra=frozen).extra == {"a": 1}


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
    with pytest.raises(ValueError, match="must contain parts such as Text or ToolCall"):
        Message("user", parts)


def test_a_scope_that_means_nothing_is_refused_with_the_name_of_the_tool() -> None:
    with pytest.raises(
        ValueError, match="the scope of the tool 'post' must be one of general, messaging, spawn, not 'mesaging'"
    ):
        Tool(name="post", scope="mesaging")  # type: ignore[arg-type]
