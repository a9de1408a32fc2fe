from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.dialects.gemini.dialect import DIALECT
from nexus_core.dialects.plain import plain
from nexus_core.errors import MessageError
from nexus_core.values.message import Message
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.dialects.support import JSON, OBJECTS, TEXTS, WORDS

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

    assert written == plain(model)
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
    ({"role": "system", "parts": []}, "role", "instructions stand in systemInstruction"),
    ({"role": ["user"], "parts": []}, "role", "expected text, not a list"),
    (user("Hi"), "parts[0]", "expected an object, not the text 'Hi'"),
    (user({"text": 3}), "parts[0].text", "expected text, not the number 3"),
    (user({"text": "a", "functionCall": {"name": "f"}}), "parts[0]", "one thing, not text and functionCall"),
    (
        user({"text": "a", "file_data": None, "fileData": None}),
        "parts[0]",
        "twice, as 'file_data' and as 'fileData'",
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
