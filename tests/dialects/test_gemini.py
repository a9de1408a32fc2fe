"""Gemini's contents, requests, replies and streams."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest
from google import genai
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nexus_core.dialects.fields import to_json_types
from nexus_core.dialects.gemini import DIALECT
from nexus_core.errors import MessageError
from nexus_core.types.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.dialects.support import JSON, OBJECTS, TEXTS, WORDS, Loopback, attempted

BYTES = st.binary(min_size=1, max_size=6)
ENCODED = st.one_of(
    BYTES.map(lambda raw: b64encode(raw).decode()),
    BYTES.map(lambda raw: urlsafe_b64encode(raw).decode()),
    BYTES.map(lambda raw: urlsafe_b64encode(raw).decode().rstrip("=")),
)
MIMES = st.sampled_from(["image/png", "audio/mpeg", "application/pdf", "text/plain"])
NAMES = {"displayName": st.none() | TEXTS}
BLOBS = st.fixed_dictionaries({"data": ENCODED}, optional={"mimeType": MIMES, **NAMES})
FILES = st.fixed_dictionaries(
    {"fileUri": st.sampled_from(["gs://b/a", "https://x.example/a.png", "https://youtu.be/x", "files/abc"])},
    optional={"mimeType": MIMES, **NAMES},
)
CALLS = st.fixed_dictionaries({"name": WORDS}, optional={"id": st.none() | TEXTS, "args": st.none() | OBJECTS})
RESPONSES = st.one_of(
    st.none(),
    OBJECTS,
    st.dictionaries(st.sampled_from(["output", "error", "result", "more"]), TEXTS | JSON, max_size=2),
)
RESULTS = st.fixed_dictionaries(
    {"name": WORDS},
    optional={
        "id": st.none() | TEXTS,
        "response": RESPONSES,
        "willContinue": st.booleans(),
        "parts": st.none()
        | st.lists(
            st.fixed_dictionaries({"inlineData": BLOBS}) | st.fixed_dictionaries({"fileData": FILES}), max_size=2
        ),
    },
)
SAID = {
    "text": TEXTS,
    "inlineData": BLOBS,
    "fileData": FILES,
    "functionCall": CALLS,
    "functionResponse": RESULTS,
    "executableCode": st.fixed_dictionaries({"code": TEXTS, "language": st.just("PYTHON")}),
    "codeExecutionResult": st.fixed_dictionaries({"outcome": st.just("OUTCOME_OK"), "output": TEXTS}),
    "toolCall": st.fixed_dictionaries({"id": TEXTS, "args": OBJECTS}),
}
ASIDE = {
    "thought": st.none() | st.booleans(),
    "thoughtSignature": ENCODED,
    "videoMetadata": st.fixed_dictionaries({"fps": st.just(1.5), "startOffset": st.just("1s")}),
    "partMetadata": OBJECTS,
}
PARTS = st.one_of(
    st.fixed_dictionaries({}, optional=ASIDE),
    *(st.fixed_dictionaries({kind: held}, optional=ASIDE) for kind, held in SAID.items()),
)
FREE = frozenset({"args", "response", "part_metadata", "partMetadata"})
"""Objects whose fields are not Gemini's."""


@st.composite
def respelled(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """Such values, some fields spelled as in the Python SDK."""

    def spell(value: Any) -> Any:
        if isinstance(value, list):
            return [spell(each) for each in value]
        if not isinstance(value, dict):
            return value
        spelled = {key: snake(key) if draw(st.booleans()) else key for key in value}
        return {spelled[key]: held if key in FREE else spell(held) for key, held in value.items()}

    return spell(draw(values))


CONTENTS = respelled(
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.none() | st.sampled_from(["", "user", "model", "function", "tool"]),
            "parts": st.none() | st.lists(PARTS, max_size=3),
        },
    ).filter(bool)
)


def snake(key: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter.group().lower()}", key)


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def only_part(part: dict[str, Any], role: str = "user") -> Any:
    (read,) = DIALECT.read({"role": role, "parts": [part]}).parts
    return read


@given(CONTENTS)
def test_an_object_of_the_sdk_comes_back_as_the_json_it_stands_for(content: dict[str, Any]) -> None:
    model = types.Content.model_validate(content)

    (written,) = DIALECT.write([DIALECT.read(model)])

    assert written == to_json_types(model)
    assert types.Content.model_validate(written) == model


def test_both_roles_and_those_of_former_times_are_read() -> None:
    result = {"functionResponse": {"name": "f", "response": {"output": "x"}}}

    assert DIALECT.read(user({"text": "x"})).role == "user"
    assert DIALECT.read({"parts": [{"text": "x"}]}).role == "user"
    assert DIALECT.read({"role": "model", "parts": [{"text": "x"}]}).role == "assistant"
    assert {DIALECT.read({"role": role, "parts": [result]}).role for role in ("user", "function", "tool")} == {"tool"}
    assert DIALECT.read(user(result, {"text": "x"})).role == "user"


def test_a_thought_keeps_its_seal() -> None:
    part = {"text": "Hm.", "thought": True, "thoughtSignature": "c2Vh"}

    assert only_part(part, "model") == Reasoning(text="Hm.", signature="c2Vh", api="gemini")


def test_a_call_may_have_an_id_and_a_seal() -> None:
    part = {"functionCall": {"id": "1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "c2Vh"}

    assert only_part(part, "model") == ToolCall("1", "f", {"a": 1}, extra={"thoughtSignature": "c2Vh"})
    assert only_part({"functionCall": {"name": "f", "args": {}}}, "model") == ToolCall("", "f")


@pytest.mark.parametrize(
    ("response", "words", "failed"),
    [
        ({"output": "ok"}, "ok", False),
        ({"result": "ok"}, "ok", False),
        ({"error": "bad"}, "bad", True),
        ({"error": {"code": 3}}, '{"error":{"code":3}}', True),
        ({"output": {"a": [1]}}, '{"output":{"a":[1]}}', False),
        ({"output": "ok", "b": "ü"}, '{"output":"ok","b":"ü"}', False),
        ({}, "", False),
    ],
)
def test_a_result_is_a_text_or_the_json_of_an_object(response: dict[str, Any], words: str, failed: bool) -> None:
    part = only_part({"functionResponse": {"id": "1", "name": "f", "response": response}})

    assert (part.call_id, part.name, part.text, part.is_error) == ("1", "f", words, failed)


def test_a_shortened_result_is_a_text_from_then_on() -> None:
    message = DIALECT.read(user({"functionResponse": {"name": "f", "response": {"a": "long", "b": "long"}}}))
    (result,) = message.tool_results

    short = ToolResult(result.call_id, '{"a":"lo…', result.name, extra=result.extra)

    (content,) = DIALECT.write([Message("tool", (short,), api="gemini", extra=message.extra)])
    assert content["parts"][0]["functionResponse"]["response"] == {"output": '{"a":"lo…'}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"inlineData": {"mimeType": "image/png", "data": "aGk="}}, Image(mime="image/png", data="aGk=")),
        ({"inline_data": {"mime_type": "audio/wav", "data": b"hi"}}, File(mime="audio/wav", data="aGk=")),
        (
            {"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/a"}},
            Image(mime="image/png", url="https://x.example/a"),
        ),
        (
            {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/a", "displayName": "Plan"}},
            File(name="Plan", mime="application/pdf", file_id="gs://b/a"),
        ),
        (
            {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}},
            File(file_id="https://generativelanguage.googleapis.com/v1beta/files/abc"),
        ),
    ],
)
def test_media_are_bytes_or_an_address(part: dict[str, Any], expected: Image | File) -> None:
    read = only_part(part)

    assert type(read) is type(expected)
    assert (read.mime, read.data, read.url, read.file_id) == (
        expected.mime,
        expected.data,
        expected.url,
        expected.file_id,
    )


def test_bytes_are_in_the_alphabet_that_every_api_reads() -> None:
    assert only_part({"inlineData": {"mimeType": "image/png", "data": "-__-AQ"}}).data == "+//+AQ=="


@pytest.mark.parametrize(
    "part",
    [
        {"executableCode": {"code": "1", "language": "PYTHON"}},
        {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"toolCall": {"id": "1", "toolType": "GOOGLE_SEARCH_WEB"}},
        {"thoughtSignature": "c2Vh"},
        {"somethingNew": [1]},
        {"inlineData": {"mimeType": "image/png", "data": ""}},
        {},
    ],
)
def test_what_only_gemini_understands_is_kept_whole(part: dict[str, Any]) -> None:
    assert only_part(part, "model") == Opaque("gemini", part)


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("Hi", user({"text": "Hi"})),
        (["Hi", {"text": "you"}], user({"text": "Hi"}, {"text": "you"})),
        (types.Part(text="Hi"), user({"text": "Hi"})),
        ({"functionCall": {"name": "f"}}, {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}),
        (
            types.File(uri="https://x.example/files/a", mime_type="image/png", name="files/a"),
            user({"fileData": {"fileUri": "https://x.example/files/a", "mimeType": "image/png"}}),
        ),
    ],
)
def test_the_sdks_shorthands_are_written_out(short: object, whole: dict[str, Any]) -> None:
    assert DIALECT.write([DIALECT.read(short)]) == [whole]


def test_a_text_of_the_model_is_a_text() -> None:
    content = types.Content(role="model", parts=[types.Part(text="Hi")])

    assert DIALECT.read(content) == Message("assistant", (Text("Hi"),), api="gemini")


BAD: list[tuple[object, str, str]] = [
    (3, "", "expected an object, not the number 3"),
    ({}, "parts", "there is no 'parts'"),
    ({"role": "user", "parts": {}}, "parts", "expected a list of parts, not an object"),
    ({"role": "modle", "parts": []}, "role", "did you mean 'model'"),
    ({"role": "system", "parts": []}, "role", "pass system messages as systemInstruction"),
    ({"role": ["user"], "parts": []}, "role", "expected text, not a list"),
    (user("Hi"), "parts[0]", "expected an object, not the text 'Hi'"),
    (user({"text": 3}), "parts[0].text", "expected text, not the number 3"),
    (user({"text": "a", "functionCall": {"name": "f"}}), "parts[0]", "one content field, not text and functionCall"),
    (
        user({"text": "a", "file_data": None, "fileData": None}),
        "parts[0]",
        "duplicate field: 'file_data' and 'fileData' mean the same",
    ),
    (user({"inline_data": {"data": 3}}), "parts[0].inline_data.data", "expected text"),
    (user({"functionCall": {"args": {}}}), "parts[0].functionCall.name", "there is no 'name'"),
    (user({"functionCall": {"name": "f", "args": "{}"}}), "parts[0].functionCall.args", "expected an object"),
    (user({"functionResponse": {"response": []}}), "parts[0].functionResponse.response", "expected an object"),
    (
        user({"functionResponse": {"name": "f", "parts": [{}, 3]}}),
        "parts[0].functionResponse.parts[1]",
        "expected an object",
    ),
    (
        user({"functionResponse": {"name": "f", "response": {"a": 10**5000}}}),
        "parts[0].functionResponse.response",
        "it cannot be written as JSON",
    ),
]


@pytest.mark.parametrize(
    "item",
    [
        {"role": "model", "parts": []},
        {"parts": [{"text": "Hi"}]},
        {"role": "user", "parts": [{"inline_data": {"data": "aGk="}}]},
    ],
)
def test_parts_that_nobody_else_has_tell_the_dialect(item: dict[str, Any]) -> None:
    assert DIALECT.recognises(item)


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "Hi"},
        {"role": "model", "content": "Hi"},
        {"role": "user", "parts": [{"type": "text", "text": "Hi"}]},
        {"role": "user", "parts": "Hi"},
        {"role": "user", "parts": [3, {}]},
    ],
)
def test_what_others_write_too_does_not_tell_it(item: dict[str, Any]) -> None:
    assert not DIALECT.recognises(item)


def test_a_message_of_another_api_is_never_read_as_an_empty_content() -> None:
    with pytest.raises(MessageError, match="'content' instead of 'parts'") as caught:
        DIALECT.read({"role": "user", "content": "important"})

    assert caught.value.path == "content"


SIGNATURE = "skip_thought_signature_validator"
HI = {"role": "user", "parts": [{"text": "Hi"}]}


def accepted(contents: list[dict[str, Any]]) -> None:
    """Fail unless the SDK takes the contents to the letter."""
    models = [types.Content.model_validate(content) for content in contents]
    assert [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models] == contents


def written(*messages: Message) -> list[dict[str, Any]]:
    """What is written for Gemini, having passed its SDK's types."""
    contents = DIALECT.write(messages)
    accepted(contents)
    return contents


def part_of(part: Part, *, api: str = "openai", role: Any = "user") -> Any:
    """The only part of a message that holds nothing else."""
    (content,) = written(Message(role, (part,), api=api))
    (block,) = content["parts"]
    return block


@pytest.mark.parametrize(
    "spoilt",
    [
        {"role": "user", "parts": [{"text": 3}]},
        {"role": "user", "parts": [{"text": "x", "colour": "red"}]},
        {"role": "user", "parts": [{"functionCall": {"name": "f", "arguments": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": "x"}}]},
        {"role": "user", "content": "x"},
        {"role": "user", "parts": "x"},
    ],
)
def test_the_validator_of_these_tests_refuses_what_the_api_would_refuse(spoilt: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        accepted([spoilt])


def test_fields_and_notes_of_another_api_are_left_out() -> None:
    message = Message("user", (Text("Hi", {"x": 1, "_y": 2}),), "ann", "openai", {"name": "ann", "_content": "list"})

    assert written(message) == [HI]


def test_all_results_of_a_batch_stand_alone_in_one_content() -> None:
    contents = written(
        Message("assistant", (ToolCall("1", "f"), ToolCall("2", "g"))),
        Message("tool", (ToolResult("1", "one"),)),
        Message("user", (ToolResult("2", "two", is_error=True), Text("go on")), api="anthropic"),
    )

    assert contents[1:] == [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "1", "name": "f", "response": {"output": "one"}}},
                {"functionResponse": {"id": "2", "name": "g", "response": {"error": "two"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "go on"}]},
    ]


def test_a_result_made_here_joins_those_that_gemini_had_already() -> None:
    own = DIALECT.read({"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]})

    (content,) = written(own, Message("tool", (ToolResult("", "two", "g"),)))

    assert content["role"] == "function"
    assert [part["functionResponse"]["name"] for part in content["parts"]] == ["f", "g"]


def test_contents_of_geminis_own_are_never_joined() -> None:
    result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}

    assert written(DIALECT.read(result), DIALECT.read(result)) == [result, result]


def test_calls_of_others_are_marked_as_not_geminis_once_for_each_answer() -> None:
    contents = written(
        Message("assistant", (ToolCall("1", "f"), ToolCall("2", "g")), api="openai"),
        Message("tool", (ToolResult("1"), ToolResult("2"))),
        Message("assistant", (Text("so"), ToolCall("3", "f", {"a": 1})), api="openai"),
    )

    assert [[part.get("thoughtSignature") for part in content["parts"]] for content in contents] == [
        [SIGNATURE, None],
        [None, None],
        [None, SIGNATURE],
    ]


def test_calls_of_its_own_are_not_marked() -> None:
    content = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}

    assert written(DIALECT.read(content)) == [content]


def test_calls_that_another_api_had_in_several_elements_stand_in_one() -> None:
    contents = written(
        Message("assistant", (ToolCall("1", "f"),), api="responses"),
        Message("assistant", (ToolCall("2", "g"),), api="responses"),
        Message("tool", (ToolResult("1"),)),
        Message("tool", (ToolResult("2"),)),
    )

    assert [len(content["parts"]) for content in contents] == [2, 2]


def test_all_of_an_answer_joins_its_calls_so_that_they_follow_the_user() -> None:
    said = [Message("assistant", word, api="anthropic") for word in ("Well.", "Let me see.")]

    contents = written(Message("user", "Hi"), *said, Message("assistant", (ToolCall("1", "f"),)))

    assert [content["role"] for content in contents] == ["user", "model"]
    assert len(written(Message("user", "Hi"), *said)) == 3


def test_an_answer_made_here_joins_one_of_geminis_own_and_relies_on_its_seal() -> None:
    sealed = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2Vh"}
    own = DIALECT.read({"role": "model", "parts": [sealed]})

    (content,) = written(own, Message("assistant", (ToolCall("2", "g"),)))

    assert content["parts"] == [sealed, {"functionCall": {"id": "2", "name": "g", "args": {}}}]


def test_a_seal_is_seen_however_it_is_spelled() -> None:
    part = {"function_call": {"name": "ls", "args": {}}, "thought_signature": "c2VhbA=="}
    own = DIALECT.read({"role": "model", "parts": [part]})

    (content,) = DIALECT.write([Message("assistant", "Let me look."), own])

    assert content["parts"] == [{"text": "Let me look."}, part]


def test_a_result_without_its_call_still_has_a_name() -> None:
    assert part_of(ToolResult("9", "x"))["functionResponse"]["name"] == "unknown"


def test_thoughts_blocks_and_empty_texts_of_others_are_left_out() -> None:
    parts = (Reasoning(text="Hm.", api="openai"), Opaque("openai", {"type": "x"}), Text(" \n"))

    assert written(Message("assistant", parts, api="openai"), Message("user", "Hi")) == [HI]


def test_a_thought_of_geminis_goes_back_even_in_a_message_that_was_rebuilt() -> None:
    thought = Reasoning(text="Hm.", signature="c2Vh", api="gemini")

    assert part_of(thought, api="", role="assistant") == {"text": "Hm.", "thought": True, "thoughtSignature": "c2Vh"}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Image(mime="image/png", data="aGk="), {"inlineData": {"mimeType": "image/png", "data": "aGk="}}),
        (Image(url="data:image/gif;base64,aGk="), {"inlineData": {"mimeType": "image/gif", "data": "aGk="}}),
        (File(mime="audio/wav", data="aGk=", name="a"), {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}}),
        (
            Image(url="https://x.example/a.PNG?b=c.d"),
            {"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/a.PNG?b=c.d"}},
        ),
        (File(url="https://x.example/a"), {"fileData": {"fileUri": "https://x.example/a"}}),
        (File(file_id="gs://b/a.pdf"), {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/a.pdf"}}),
        (Image(data="aGk="), {"text": "[image not shown here]"}),
        (File(file_id="file-1"), {"text": "[file not shown here: file-1]"}),
    ],
)
def test_media_of_others_are_shown_where_gemini_can_see_them(part: Image | File, expected: dict[str, Any]) -> None:
    assert part_of(part) == expected


def test_media_of_a_result_stand_beside_its_text() -> None:
    result = ToolResult("1", (Text("see"), Image(mime="image/png", data="aGk="), Image(file_id="file-1")), "f")

    assert part_of(result)["functionResponse"] == {
        "id": "1",
        "name": "f",
        "response": {"output": "see\n[image not shown here: file-1]"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}],
    }


def test_instructions_are_a_setting_of_the_call() -> None:
    brief = Conversation(messages=(Message("system", "Be brief."), Message("user", "Hi")))
    both = Conversation(messages=(Message("system", "Be brief."), Message("user", "Hi"), Message("system", "Be kind.")))

    assert DIALECT.write_request(brief) == {"contents": [HI], "config": {"system_instruction": "Be brief."}}
    assert DIALECT.write_request(both)["config"] == {
        "system_instruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    }


def test_pictures_in_instructions_are_named() -> None:
    messages = (Message("system", (Text("Like this:"), Image(mime="image/png", data="aGk="))),)

    config = DIALECT.write_request(Conversation(messages=messages))["config"]

    assert config["system_instruction"]["parts"][1] == {"text": "[image not shown here: image/png]"}


@pytest.mark.parametrize(
    "request_",
    [
        {"contents": []},
        {"model": "m", "contents": [HI], "config": None},
        {"model": "m", "contents": [HI], "config": {}},
        {"contents": [HI], "config": {"temperature": 0.5, "system_instruction": "Be brief.", "tools": []}},
        {"contents": [HI], "config": {"systemInstruction": {"role": "system", "parts": [{"text": "Be brief."}]}}},
        {"contents": [HI], "config": {"system_instruction": {"parts": [{"text": "Be brief."}]}}},
        {"contents": [HI], "systemInstruction": {"parts": [{"text": "Be brief."}]}, "generationConfig": {"topK": 1}},
        {"contents": [HI], "system_instruction": {"parts": [{"text": "x"}]}, "tools": [{"googleSearch": {}}]},
        {"model": "models/m", "contents": [HI], "safetySettings": []},
        {
            "contents": [HI],
            "config": {
                "tools": [
                    {"function_declarations": [{"name": "f", "parameters": {"type": "OBJECT"}}, {"name": "g"}]},
                    {"functionDeclarations": [{"name": "h", "parametersJsonSchema": {"type": "object"}}]},
                    {"google_search": {}},
                    {"codeExecution": {}, "urlContext": {}},
                ]
            },
        },
    ],
)
def test_a_request_comes_back_as_it_was_given_to_the_sdk_or_to_rest(request_: dict[str, Any]) -> None:
    assert DIALECT.write_request(DIALECT.read_request(request_)) == request_


@pytest.mark.parametrize(
    "contents", ["Hi", [{"text": "Hi"}], types.Content(role="user", parts=[types.Part(text="Hi")]), HI, ["Hi"]]
)
def test_the_sdks_shorthands_for_contents_are_written_out(contents: object) -> None:
    assert DIALECT.write_request(DIALECT.read_request({"contents": contents})) == {"contents": [HI]}


def test_settings_may_be_an_object_of_the_sdk_and_hold_what_is_no_json() -> None:
    class Answer(BaseModel):
        a: int

    config = types.GenerateContentConfig(
        system_instruction=["Be brief.", "Be kind."],
        response_schema=Answer,
        tools=[types.Tool(function_declarations=[types.FunctionDeclaration(name="f")])],
    )

    conversation = DIALECT.read_request({"model": "m", "contents": "Hi", "config": config})

    assert conversation.messages[0].content == "Be brief.\nBe kind."
    assert [tool.name for tool in conversation.tools] == ["f"]
    assert DIALECT.write_request(conversation)["config"]["response_schema"] is Answer


def test_arguments_of_another_providers_request_are_left_out() -> None:
    conversation = Conversation(messages=(Message("user", "Hi"),), api="openai", extra={"model": "gpt-5", "top_p": 1})

    assert DIALECT.write_request(conversation) == {"contents": [HI]}


def test_settings_given_here_go_where_the_sdk_wants_them() -> None:
    conversation = Conversation(messages=(Message("user", "Hi"),), extra={"model": "m", "temperature": 0.5})

    assert DIALECT.write_request(conversation) == {"model": "m", "contents": [HI], "config": {"temperature": 0.5}}


BAD_REQUESTS: list[tuple[object, str]] = [
    (3, ""),
    ({}, "contents"),
    ({"contents": [HI, {"role": "user", "parts": [{"text": 3}]}]}, "contents[1].parts[0].text"),
    ({"contents": 3}, "contents[0]"),
    ({"contents": [], "config": 3}, "config"),
    (
        {"contents": [], "config": {"system_instruction": {"parts": [{"text": 3}]}}},
        "config.system_instruction.parts[0].text",
    ),
    ({"contents": [], "systemInstruction": 3}, "systemInstruction"),
    ({"contents": [], "config": {"tools": [3]}}, "config.tools[0]"),
]


def test_the_sdks_client_sends_the_request_as_it_was_written(loopback: Loopback) -> None:
    loopback.answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "A cat."}]}}]}
    messages = (
        Message("system", "Be brief."),
        Message("user", (Text("What is this?"), Image(mime="image/png", data="+//+AQ=="))),
        Message("assistant", (Text("Let me see."), ToolCall("call_1", "look", {"at": "it"})), api="openai"),
        Message("tool", (ToolResult("call_1", "a cat"),), api="openai"),
    )
    tool = Tool(name="look", description="Looks.", parameters={"type": "object", "properties": {}})
    conversation = Conversation(messages=messages, tools=(tool,), extra={"model": "gemini-3-flash"})
    arguments = DIALECT.write_request(conversation)
    options = types.HttpOptions(base_url=loopback.url)

    with genai.Client(api_key="none", http_options=options) as client:
        reply = client.models.generate_content(**arguments)

    sent = loopback.body
    # The client puts its own spelling and its own base64 in the place of ours.
    heard, said = ([types.Content.model_validate(each) for each in body["contents"]] for body in (sent, arguments))
    assert heard == said
    assert sent["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert [tool.name for tool in DIALECT.read_request(sent).tools] == ["look"]
    assert DIALECT.read_reply(reply).messages[0].content == "A cat."


REPLY_PARTS: list[dict[str, Any]] = [
    {"text": "Hm.", "thought": True},
    {"text": "Let me see."},
    {"functionCall": {"name": "look", "args": {"at": "it"}}, "thoughtSignature": "c2Vh"},
]
REPLY: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": REPLY_PARTS}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 40,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 155,
    },
    "modelVersion": "gemini-3-flash",
    "responseId": "r1",
}


def chunk(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One response of a stream."""
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **fields}]}


CHUNKS = [
    chunk({"text": "H", "thought": True}) | {"responseId": "r1", "modelVersion": "gemini-3-flash"},
    chunk({"text": "m.", "thought": True}),
    chunk({"text": "Let me "}) | {"usageMetadata": {"promptTokenCount": 1}},
    chunk({"text": "see."}, REPLY_PARTS[2]),
    {"candidates": [{"finishReason": "STOP"}], "usageMetadata": REPLY["usageMetadata"]},
]


def test_a_reply_is_a_message_that_may_be_sent_back() -> None:
    reply = DIALECT.read_reply(REPLY)

    assert (reply.id, reply.model, reply.stop, reply.stop_reason) == ("r1", "gemini-3-flash", "tools", "STOP")
    assert DIALECT.write(reply.messages) == [{"role": "model", "parts": REPLY_PARTS}]


def test_thoughts_are_output_and_what_tools_brought_is_input() -> None:
    assert DIALECT.read_reply(REPLY).usage == Usage(
        input_tokens=105, output_tokens=50, cached_input_tokens=40, reasoning_tokens=30
    )


def test_an_object_of_the_sdk_reads_like_its_json() -> None:
    reply = types.GenerateContentResponse.model_validate(REPLY)
    reply.parsed = types.HttpResponse  # type: ignore[assignment]  # whatever the SDK adds for its user

    assert DIALECT.read_reply(reply) == DIALECT.read_reply(REPLY)


def test_so_does_what_the_sdk_makes_of_it_in_python() -> None:
    dumped = types.GenerateContentResponse.model_validate(REPLY).model_dump(exclude_none=True)

    reply = DIALECT.read_reply(dumped)

    assert reply.usage == DIALECT.read_reply(REPLY).usage
    assert reply.messages[0].tool_calls[0].arguments == {"at": "it"}
    assert (reply.stop, reply.id) == ("tools", "r1")


def test_every_reason_that_the_sdk_knows_has_a_word() -> None:
    words: dict[str, set[str]] = {}
    for reason in types.FinishReason:
        stop = DIALECT.read_reply(chunk({"text": "x"}, finishReason=reason)).stop
        words.setdefault(stop, set()).add(reason.value)

    assert words[""] == {"FINISH_REASON_UNSPECIFIED"}
    assert (words["end"], words["length"], words["pause"]) == ({"STOP"}, {"MAX_TOKENS"}, {"CONTINUATION"})
    assert {"SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII"} < words["refusal"]
    assert {"MALFORMED_FUNCTION_CALL", "OTHER"} < words["error"]


def test_a_prompt_that_was_blocked_is_a_refusal() -> None:
    reply = DIALECT.read_reply({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}})

    assert (reply.stop, reply.stop_reason, reply.messages[0].parts) == ("refusal", "SAFETY", ())


def test_of_several_candidates_the_first_is_read() -> None:
    reply = DIALECT.read_reply({"candidates": [{"index": 1}, {"content": {"parts": [{"text": "a"}]}, "index": 0}]})

    assert reply.messages[0].content == "a"


def test_the_responses_of_a_stream_add_up_to_the_reply() -> None:
    assert DIALECT.read_reply(CHUNKS) == DIALECT.read_reply(REPLY)


def test_so_do_the_objects_that_the_sdks_client_streams(loopback: Loopback) -> None:
    loopback.answer = "".join(f"data: {json.dumps(each)}\n\n" for each in CHUNKS)

    with genai.Client(api_key="none", http_options=types.HttpOptions(base_url=loopback.url)) as client:
        responses = list(client.models.generate_content_stream(model="gemini-3-flash", contents="Hi"))

    assert len(responses) == len(CHUNKS)
    assert DIALECT.read_reply(responses) == DIALECT.read_reply(REPLY)


def test_texts_within_one_response_and_texts_with_a_seal_stay_apart() -> None:
    reply = DIALECT.read_reply(
        [
            chunk({"text": "a"}, {"text": "b"}),
            chunk({"text": "c", "thoughtSignature": "c2Vh"}),
            chunk({"text": "d"}),
            chunk({"text": "e", "thought": True}),
            chunk({"text": "", "thoughtSignature": "c2Vh"}),
        ]
    )

    assert [getattr(part, "text", "") for part in reply.messages[0].parts] == ["a", "b", "c", "d", "e", ""]
    assert isinstance(reply.messages[0].parts[4], Reasoning)


def test_a_text_in_very_many_pieces_is_one_text() -> None:
    reply = DIALECT.read_reply([chunk({"text": "ab"}) for _ in range(20_000)])

    assert reply.messages[0].parts == (Text("ab" * 20_000),)


def test_arguments_that_are_streamed_one_by_one_are_put_together() -> None:
    def more(*arguments: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return chunk({"functionCall": {"partialArgs": list(arguments), **fields}})

    reply = DIALECT.read_reply(
        [
            chunk({"functionCall": {"name": "light", "id": "1", "willContinue": True}, "thoughtSignature": "c2Vh"}),
            more({"jsonPath": "$.room", "stringValue": "kit", "willContinue": True}, willContinue=True),
            more({"json_path": "$.room", "string_value": "chen"}, {"jsonPath": "$.on", "boolValue": False}),
            more(
                {"jsonPath": "$.lamps[1].level", "numberValue": 0.5},
                {"jsonPath": "$['a b']", "nullValue": "NULL_VALUE"},
            ),
            chunk({"functionCall": {}}),
            chunk({"functionCall": {"name": "other", "args": {}}}),
        ]
    )

    assert reply.messages[0].parts == (
        ToolCall(
            "1",
            "light",
            {"room": "kitchen", "on": False, "lamps": [None, {"level": 0.5}], "a b": None},
            extra={"thoughtSignature": "c2Vh"},
        ),
        ToolCall("", "other"),
    )


BAD_REPLIES: list[tuple[object, str, str]] = [
    ({"error": {"code": 429, "message": "Slow down"}}, "error", "an error: 'Slow down'"),
    ("Hi", "", "expected a response, not the text 'Hi'"),
    ({}, "candidates", "there is no 'candidates'"),
    ({"candidates": {}}, "candidates", "expected a list"),
    ({"candidates": [3]}, "candidates[0]", "expected an object"),
    ({"candidates": [{"content": 3}]}, "candidates[0].content", "expected an object"),
    ({"candidates": [{"content": {"parts": 3}}]}, "candidates[0].content.parts", "expected a list of parts"),
    (chunk({"text": 3}), "candidates[0].content.parts[0].text", "expected text"),
    (chunk({"text": "x"}, finishReason=3), "finishReason", "expected text"),
    (REPLY | {"usageMetadata": {"promptTokenCount": -1}}, "usageMetadata.promptTokenCount", "a whole number"),
    ([], "", "contains no reply"),
    ([REPLY, 3], "[1]", "expected a response"),
    (
        [chunk({"functionCall": {"name": "f", "willContinue": True, "partialArgs": [{"jsonPath": "room"}]}})],
        "candidates[0].content.partialArgs",
        "not a path into the arguments: 'room'",
    ),
]


@given(JSON, JSON)
def test_anything_at_all_is_read_as_a_reply_or_refused(value: Any, other: Any) -> None:
    started = chunk({"functionCall": {"name": "f", "willContinue": True}})
    replies = (
        value,
        REPLY | {"candidates": value, "usageMetadata": other},
        chunk(value, finishReason=other),
        [chunk({"text": "x"}), chunk(value), {"candidates": [other]}],
        [started, chunk({"functionCall": {"partialArgs": value}}), {"promptFeedback": other}],
    )
    for reply in replies:
        attempted(DIALECT.read_reply, reply)
