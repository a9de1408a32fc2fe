"""Objects of the SDKs as dicts: what was set and nothing else."""

import sys
from datetime import UTC, datetime
from enum import Enum
from subprocess import run
from types import MappingProxyType
from typing import Any

import pytest
from openai import NOT_GIVEN, omit
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.parsed_chat_completion import ParsedChatCompletionMessage
from openai.types.responses.parsed_response import ParsedResponseFunctionToolCall
from pydantic import BaseModel, ConfigDict, Field

from nexus_core.dialects.fields import MAX_NESTING_LEVELS, is_not_given, to_json_dict, to_json_types
from nexus_core.errors import MessageError


class Colour(str, Enum):  # noqa: UP042 - as SDKs that support Python 3.10 have them
    RED = "red"


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="allow")

    mime_type: str | None = Field(default=None, alias="mimeType")
    colour: Colour | None = None
    data: bytes | None = None
    inner: "Aliased | None" = None


def test_a_field_that_was_not_set_is_not_there() -> None:
    message = ChatCompletionMessage(role="assistant", content="hi")

    assert to_json_types(message) == {"content": "hi", "role": "assistant"}


def test_null_that_was_set_is_there() -> None:
    message = ChatCompletionMessage(role="assistant", content=None, refusal=None)

    assert to_json_types(message) == {"content": None, "refusal": None, "role": "assistant"}


def test_fields_that_the_class_does_not_know_are_there() -> None:
    message = ChatCompletionMessage.model_validate({"role": "assistant", "content": "x", "reasoning_content": "why"})

    assert to_json_types(message)["reasoning_content"] == "why"


def test_names_are_those_on_the_wire() -> None:
    given = Aliased(mime_type="image/png", inner=Aliased(colour=Colour.RED), other=1)  # type: ignore[call-arg]

    assert to_json_types(given) == {"mimeType": "image/png", "inner": {"colour": "red"}, "other": 1}


def test_bytes_are_base64() -> None:
    assert to_json_types(Aliased(data=b"\xff\xfe")) == {"data": "//4="}


def test_what_an_sdk_parsed_for_its_user_is_left_out() -> None:
    message = ParsedChatCompletionMessage[Aliased].model_construct(role="assistant", content="{}", parsed=Aliased())
    call = ParsedResponseFunctionToolCall.model_construct(
        type="function_call", call_id="c", name="f", arguments="{}", parsed_arguments=object()
    )

    assert to_json_types(message) == {"content": "{}", "role": "assistant"}
    assert to_json_types(call) == {"arguments": "{}", "call_id": "c", "name": "f", "type": "function_call"}


def test_objects_inside_dicts_and_lists_are_found() -> None:
    given = {"choices": [{"message": ChatCompletionMessage(role="assistant", content="x")}]}

    assert to_json_types(given) == {"choices": [{"message": {"content": "x", "role": "assistant"}}]}


def test_what_is_given_is_copied() -> None:
    given: dict[str, Any] = {"content": [{"type": "text"}]}

    copied = to_json_types(MappingProxyType(given))
    copied["content"][0]["type"] = "changed"

    assert given == {"content": [{"type": "text"}]}


def test_other_mappings_tuples_and_dates_become_json() -> None:
    given = MappingProxyType({"at": datetime(2025, 1, 2, tzinfo=UTC), "items": (1, 2.5, True)})

    assert to_json_types(given) == {"at": "2025-01-02T00:00:00+00:00", "items": [1, 2.5, True]}


@pytest.mark.parametrize(
    ("value", "path", "what"),
    [
        ({"a": [1, {"b": {1, 2}}]}, "m.a[1].b", "a set cannot be written as JSON"),
        ({"a": (each for each in "xy")}, "m.a", "a generator cannot be written as JSON"),
        ({"a": {1: 2}}, "m.a", "expected text as the name of a field, not the number 1"),
        ({"a": object}, "m.a", "a type cannot be written as JSON"),
    ],
)
def test_what_json_cannot_say_is_named_with_its_place(value: object, path: str, what: str) -> None:
    with pytest.raises(MessageError) as caught:
        to_json_types(value, "m")

    assert (caught.value.path, caught.value.what) == (path, what)


def test_a_value_that_contains_itself_is_refused() -> None:
    given: dict[str, Any] = {}
    given["a"] = given

    with pytest.raises(MessageError, match=f"deeper than {MAX_NESTING_LEVELS} levels"):
        to_json_types(given)


@pytest.mark.parametrize("value", [None, 1, "text", [], object()])
def test_what_must_be_an_object_and_is_not_is_refused(value: object) -> None:
    with pytest.raises(MessageError, match="expected an object, not"):
        to_json_dict(value)


def test_marks_of_the_sdk_for_nothing_are_known() -> None:
    assert is_not_given(NOT_GIVEN)
    assert is_not_given(omit)
    assert not is_not_given(None)


def test_dialects_import_no_sdk() -> None:
    names = ("openai", "responses", "anthropic", "gemini", "neutral")
    program = (
        f"import sys; from nexus_core.dialects.registry import get_dialect; [get_dialect(name) for name in {names}]; "
        "print(sorted(sys.modules.keys() & {'openai', 'anthropic', 'google', 'google.genai', 'pydantic', 'asyncio'}))"
    )

    printed = run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"
