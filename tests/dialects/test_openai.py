"""Chat messages: read, written back, and refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageParam

from nexus_core.dialects.openai.dialect import DIALECT
from nexus_core.errors import MessageError
from nexus_core.values.message import Message
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.dialects.support import TEXTS, WORDS, accepted, strictly

CHAT = strictly(list[ChatCompletionMessageParam])
UNHURRIED = settings(deadline=None)
PICTURE = "data:image/png;base64,iVBORw0KGgo="
CALL: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
VALID: dict[str, dict[str, Any]] = {
    "system": {"role": "system", "content": "Be brief."},
    "developer": {"role": "developer", "content": [{"type": "text", "text": "Be brief."}], "name": "ops"},
    "user": {"role": "user", "content": "hello", "name": "ann"},
    "a blank": {"role": "user", "content": ""},
    "an empty list": {"role": "user", "content": []},
    "a cache mark": {
        "role": "user",
        "content": [{"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}],
    },
    "a picture": {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}]},
    "a picture elsewhere": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://a/b.png"}}],
    },
    "sound": {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}]},
    "a file": {
        "role": "user",
        "content": [
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "file", "file": {"file_data": "JVBERi0="}},
        ],
    },
    "an answer": {"role": "assistant", "content": "hi"},
    "an answer in parts": {
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}, {"type": "refusal", "refusal": "no"}],
        "name": "bob",
    },
    "a refusal": {"role": "assistant", "content": None, "refusal": "I won't."},
    "calls": {"role": "assistant", "content": None, "tool_calls": [CALL, CALL | {"id": "call_2"}]},
    "calls without content": {"role": "assistant", "tool_calls": [CALL]},
    "a custom call": {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}],
    },
    "a call of former times": {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "ls", "arguments": "{}"},
    },
    "something said aloud": {"role": "assistant", "audio": {"id": "audio_1"}},
    "a result": {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
    "a result in parts": {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "a"}]},
    "a result of former times": {"role": "function", "name": "ls", "content": "a.txt"},
    "no result of former times": {"role": "function", "name": "ls", "content": None},
}
BEYOND: dict[str, dict[str, Any]] = {
    "a reply with everything null": {
        "role": "assistant",
        "content": "hi",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": None,
    },
    "an empty list of calls": {"role": "assistant", "content": "hi", "tool_calls": []},
    "words said aloud": {
        "role": "assistant",
        "content": None,
        "audio": {"id": "audio_1", "data": "UklG", "expires_at": 1, "transcript": "hello"},
    },
    "DeepSeek's thoughts": {"role": "assistant", "reasoning_content": "let me see", "content": "hi"},
    "no thoughts": {"role": "assistant", "reasoning_content": "", "content": "hi"},
    "OpenRouter's thoughts": {
        "role": "assistant",
        "content": "",
        "reasoning": "let me see",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "let me see", "signature": "s", "id": None, "format": "x", "index": 0},
            {"type": "reasoning.summary", "summary": "seen", "index": 1},
            {"type": "reasoning.encrypted", "data": "AAAA", "index": 2},
        ],
        "tool_calls": [CALL],
    },
    "one thought in two fields": {"role": "assistant", "reasoning": "a", "reasoning_content": "a", "content": "hi"},
    "Gemini's signature": {
        "role": "assistant",
        "tool_calls": [CALL | {"extra_content": {"google": {"thought_signature": "sig"}}}],
    },
    "a picture by its URL only": {"role": "user", "content": [{"type": "image_url", "image_url": "https://a/b.png"}]},
    "a part nobody knows": {"role": "user", "content": [{"type": "video_url", "video_url": {"url": "u"}}]},
    "a call nobody knows": {"role": "assistant", "tool_calls": [{"id": "x", "type": "mystery", "mystery": {}}, CALL]},
    "a call without a type": {"role": "assistant", "tool_calls": [{k: v for k, v in CALL.items() if k != "type"}]},
    "a result with a name": {"role": "tool", "tool_call_id": "call_1", "name": "ls", "content": "a.txt"},
    "a picture as a result": {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": [{"type": "image_url", "image_url": {"url": PICTURE}}],
    },
    "fields that look like notes": {"role": "user", "content": [{"type": "text", "text": "x", "_a": 1}], "_content": 1},
    "unknown fields": {"role": "user", "content": "x", "cache_control": {"type": "ephemeral"}},
    "a lone surrogate and NUL": {"role": "user", "content": "a\ud800\x00b"},
}
BAD: list[tuple[object, str, str]] = [
    ("hello", "", "expected an object, not the text 'hello'"),
    (None, "", "expected an object, not null"),
    ({}, "role", "there is no 'role'"),
    ({"role": 1}, "role", "expected text, not the number 1"),
    ({"role": "asistant", "content": "x"}, "role", "unknown role 'asistant'"),
    ({"role": "user"}, "content", "there is no 'content'"),
    ({"role": "user", "content": 3}, "content", "expected text or a list of parts, not the number 3"),
    ({"role": "user", "content": {"type": "text"}}, "content", "expected text or a list of parts, not an object"),
    ({"role": "user", "content": ["x"]}, "content[0]", "expected an object, not the text 'x'"),
    ({"role": "user", "content": [{"text": "x"}]}, "content[0].type", "there is no 'type'"),
    ({"role": "user", "content": [{"type": 1}]}, "content[0].type", "expected text, not the number 1"),
    ({"role": "user", "content": [{"type": "text"}]}, "content[0].text", "there is no 'text'"),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": None}}]},
        "content[0].image_url.url",
        "expected text, not null",
    ),
    ({"role": "user", "content": "x", "name": []}, "name", "expected text, not a list"),
    ({"role": "tool", "content": "x"}, "tool_call_id", "there is no 'tool_call_id'"),
    ({"role": "assistant", "tool_calls": "x"}, "tool_calls", "expected a list, not the text 'x'"),
    ({"role": "assistant", "tool_calls": [CALL | {"id": None}]}, "tool_calls[0].id", "expected text, not null"),
    (
        {"role": "assistant", "tool_calls": [CALL, {"id": "a", "type": "function"}]},
        "tool_calls[1].function",
        "there is no 'function'",
    ),
    (
        {"role": "assistant", "tool_calls": [CALL | {"function": {"name": "f", "arguments": 1}}]},
        "tool_calls[0].function.arguments",
        "expected JSON in a text, not the number 1",
    ),
    ({"role": "assistant", "function_call": "ls"}, "function_call", "expected an object, not the text 'ls'"),
]


def test_an_unknown_role_is_answered_with_the_nearest() -> None:
    with pytest.raises(MessageError, match=r"did you mean 'assistant'\?"):
        DIALECT.read({"role": "asistant", "content": "x"})


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"id": "x", "choices": []}, "this is a whole reply; append its message: reply.choices[0].message"),
        ({"type": "function_call", "call_id": "c"}, "this looks like an item of OpenAI Responses; "),
        ({"parts": [{"text": "x"}]}, "this looks like a content of Gemini's; "),
        ({"content": "x"}, "it must be one of system, developer, user, assistant, tool, function"),
    ],
)
def test_what_has_no_role_is_answered_with_what_it_may_be(given: object, hint: str) -> None:
    with pytest.raises(MessageError, match="there is no 'role'") as caught:
        DIALECT.read(given)

    assert (caught.value.hint or "").startswith(hint)


def test_an_error_shows_neither_much_nor_control_characters() -> None:
    with pytest.raises(MessageError) as caught:
        DIALECT.read({"role": "user", "content": [{"type": "text", "text": "x"}, "\x1b[31m" + "y" * 50_000_000]})

    assert len(str(caught.value)) < 200
    assert "\x1b" not in str(caught.value)


def test_an_sdk_object_is_read_like_its_dict() -> None:
    given = {"role": "assistant", "content": "hi", "refusal": None, "tool_calls": [CALL]}
    made = ChatCompletionMessage.model_validate(given)

    assert DIALECT.read(made) == DIALECT.read(given)
    assert DIALECT.write([DIALECT.read(made)]) == [given]


def test_an_assistants_message_has_thoughts_then_words_then_calls() -> None:
    message = DIALECT.read(BEYOND["DeepSeek's thoughts"] | {"tool_calls": [CALL], "refusal": "no"})

    assert message.role == "assistant"
    assert [type(part) for part in message.parts] == [Reasoning, Text, Text, ToolCall]
    assert message.content == "hi\nno"
    assert message.parts[0] == Reasoning(text="let me see", api="openai", extra={"_field": "reasoning_content"})


def test_a_thought_told_twice_is_one_part() -> None:
    parts = DIALECT.read(BEYOND["one thought in two fields"]).parts

    assert [part.text for part in parts if isinstance(part, Reasoning)] == ["a"]


def test_a_thought_that_is_dropped_takes_its_copy_along() -> None:
    message = DIALECT.read(BEYOND["OpenRouter's thoughts"])
    silent = Message("assistant", tuple(message.tool_calls), api="openai", extra=message.extra)

    assert DIALECT.write([silent]) == [{"role": "assistant", "tool_calls": [CALL]}]


def test_arguments_are_parsed_and_kept_as_written() -> None:
    (call,) = DIALECT.read(VALID["calls without content"]).tool_calls

    assert (call.id, call.name, call.arguments, call.raw) == ("call_1", "ls", {"path": "."}, '{"path": "."}')


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "{",
        "[]",
        "null",
        '"x"',
        '{"a": NaN}',
        '{"a": -1e999}',
        "[" * 100_000,
        '{"a":' * 200 + "1" + "}" * 200,
        "9" * 5000,
    ],
)
def test_arguments_that_are_no_object_are_kept_and_count_as_none(raw: str) -> None:
    given = {"role": "assistant", "tool_calls": [CALL | {"function": {"name": "f", "arguments": raw}}]}

    message = DIALECT.read(given)

    assert (message.tool_calls[0].arguments, message.tool_calls[0].raw) == ({}, raw)
    assert DIALECT.write([message]) == [given]


@pytest.mark.parametrize(("arguments", "written"), [({"a": "ü"}, '{"a":"ü"}'), (None, "{}")])
def test_arguments_that_are_no_text_are_written_as_one(arguments: object, written: str) -> None:
    given = {"role": "assistant", "tool_calls": [CALL | {"function": {"name": "f", "arguments": arguments}}]}

    (message,) = DIALECT.write([DIALECT.read(given)])

    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": written}


@pytest.mark.parametrize("value", [10**5000, {1, 2}], ids=["many digits", "a set"])
def test_arguments_that_json_cannot_say_are_refused(value: object) -> None:
    with pytest.raises(MessageError, match="the arguments of 'f' cannot be written as JSON"):
        DIALECT.write([Message("assistant", (ToolCall("c", "f", {"x": value}),))])


def test_a_custom_tools_text_is_an_argument() -> None:
    (call,) = DIALECT.read(VALID["a custom call"]).tool_calls

    assert (call.arguments, call.raw) == ({"input": "select 1"}, None)


def test_a_call_and_a_result_of_former_times_belong_together() -> None:
    call, result = (DIALECT.read(VALID[f"a {what} of former times"]) for what in ("call", "result"))

    assert call.tool_calls[0].id == result.tool_results[0].call_id == "call_ls"
    assert result.role == "tool"


def test_a_data_url_becomes_bytes_and_type() -> None:
    (image,) = DIALECT.read(VALID["a picture"]).parts

    assert image == Image(mime="image/png", data="iVBORw0KGgo=", detail="low")


def test_files_and_sound_become_files() -> None:
    parts = [*DIALECT.read(VALID["a file"]).parts, *DIALECT.read(VALID["sound"]).parts]

    assert parts == [
        File(name="a.pdf", mime="application/pdf", data="JVBERi0="),
        File(file_id="file-1"),
        File(data="JVBERi0="),
        File(mime="audio/wav", data="UklG", extra={"_sound": "wav"}),
    ]


def test_a_part_nobody_knows_is_opaque() -> None:
    message = BEYOND["a part nobody knows"]

    assert DIALECT.read(message).parts == (Opaque("openai", message["content"][0]),)


def test_large_parts_are_not_copied_over_and_over() -> None:
    data = "A" * 50_000_000
    given = {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]}

    (part,) = DIALECT.read(given).parts

    assert isinstance(part, File)
    assert part.data is data


def test_content_changed_by_others_is_written_as_simply_as_it_was() -> None:
    read = DIALECT.read(VALID["user"])
    changed = Message(read.role, (Text("shorter"),), read.name, read.api, read.extra)

    assert DIALECT.write([changed]) == [VALID["user"] | {"content": "shorter"}]


def test_results_that_came_in_one_message_are_written_one_by_one() -> None:
    foreign = Message("user", (Text("and?"), ToolResult("a", "1"), ToolResult("b", "2")), api="anthropic")

    assert DIALECT.write([foreign]) == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "and?"},
    ]


def test_answers_that_came_in_several_messages_are_one_where_they_call() -> None:
    items = [
        Message("assistant", (Reasoning(text="hm", api="responses"),), api="responses"),
        Message("assistant", "I look.", api="responses"),
        Message("assistant", (ToolCall("a", "ls", raw="{}"),), api="responses"),
        Message("assistant", (ToolCall("b", "ls", raw="{}"),), api="responses"),
    ]

    (message,) = DIALECT.write(items)

    assert message["content"] == "I look."
    assert [call["id"] for call in message["tool_calls"]] == ["a", "b"]
    accepted(CHAT, [message])


def test_messages_of_chat_are_never_merged() -> None:
    messages = [VALID["calls"], VALID["calls without content"]]

    assert DIALECT.write([DIALECT.read(message) for message in messages]) == messages


def test_pictures_in_results_are_shown_by_the_user_after_the_last_result() -> None:
    seen = Image(mime="image/png", data="iVBORw0KGgo=")
    foreign = [
        Message("assistant", (ToolCall("a", "shot"), ToolCall("b", "ls")), api="anthropic"),
        Message("tool", (ToolResult("a", (Text("done"), seen)), ToolResult("b", "x")), api="anthropic"),
        Message("assistant", "I see.", api="anthropic"),
    ]

    messages = DIALECT.write(foreign)

    accepted(CHAT, messages)
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user", "assistant"]
    assert messages[3]["content"] == [{"type": "image_url", "image_url": {"url": PICTURE}}]
    assert "image in the next message" in messages[1]["content"][1]["text"]


def test_what_cannot_be_shown_is_named() -> None:
    foreign = Message("user", (File(url="https://a/b.pdf"), Image(file_id="file_9")), api="anthropic")

    assert DIALECT.write([foreign])[0]["content"] == [
        {"type": "text", "text": "[file not shown here: https://a/b.pdf]"},
        {"type": "text", "text": "[image not shown here: file_9]"},
    ]


@pytest.mark.parametrize("part", [Opaque("anthropic", {"type": "x"}), Reasoning(text="hm", api="anthropic")])
def test_a_message_with_nothing_but_anothers_blocks_is_left_out(part: Opaque | Reasoning) -> None:
    assert DIALECT.write([Message("assistant", (part,), api="anthropic")]) == []


@pytest.mark.parametrize("said", [(), (Opaque("anthropic", {"type": "server_tool_use"}),)])
def test_calls_of_another_api_without_words_are_not_sent_with_an_empty_list(said: tuple[Opaque, ...]) -> None:
    message = Message("assistant", (*said, ToolCall("t1", "ls", {})), api="anthropic", extra={"_content": "list"})

    (body,) = DIALECT.write([message])

    assert body["content"] is None
    assert len(body["tool_calls"]) == 1


def test_calls_without_ids_get_some_that_their_results_share() -> None:
    foreign = [
        Message("assistant", (ToolCall("", "ls"), ToolCall("", "cat"), ToolCall("", "ls")), api="gemini"),
        Message("tool", tuple(ToolResult("", name, name) for name in ("cat", "ls", "ls")), api="gemini"),
    ]

    calls, *results = DIALECT.write(foreign)

    assert [call["id"] for call in calls["tool_calls"]] == ["call_1", "call_2", "call_3"]
    assert [result["tool_call_id"] for result in results] == ["call_2", "call_1", "call_3"]


@UNHURRIED
@given(st.lists(st.tuples(WORDS, TEXTS), min_size=1, max_size=4))
def test_what_is_made_here_is_valid(calls: list[tuple[str, str]]) -> None:
    made = [
        Message("system", "Be brief."),
        Message("user", (Text("a"), Image(url="https://a/b.png"), File(mime="application/pdf", data="AA"))),
        Message("assistant", tuple(ToolCall(name, name, {"x": text}) for name, text in calls)),
        Message("tool", tuple(ToolResult(name, text) for name, text in calls)),
    ]

    accepted(CHAT, DIALECT.write(made))


@pytest.mark.parametrize("turns", [100, 1000])
def test_every_message_is_read_once_however_long_the_list(turns: int) -> None:
    """Writing looks at each message a fixed number of times; counted, not timed."""
    seen = 0

    class Counted(dict[str, Any]):
        def items(self) -> Any:
            nonlocal seen
            seen += 1
            return super().items()

    DIALECT.write([DIALECT.read(Counted(VALID["user"])) for _ in range(turns)])

    assert seen == turns
