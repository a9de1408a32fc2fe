from __future__ import annotations

from typing import Any

import pytest
from google import genai
from google.genai import types
from pydantic import BaseModel

from nexus_core.dialects.gemini.dialect import DIALECT
from nexus_core.values.conversation import Conversation, Tool
from nexus_core.values.message import Message
from nexus_core.values.parts import File, Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from tests.dialects.support import Loopback

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
