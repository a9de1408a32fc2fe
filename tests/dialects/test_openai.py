"""Chat Completions: messages, requests, replies and streams."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import NOT_GIVEN, OpenAI, omit
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessage,
    ChatCompletionMessageParam,
    ChatCompletionToolUnionParam,
)
from pydantic import BaseModel

from nexus_core.dialects.openai import DIALECT
from nexus_core.errors import MessageError
from nexus_core.types.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.dialects.support import (
    JSON,
    OBJECTS,
    TEXTS,
    WORDS,
    Loopback,
    StrictType,
    accepted,
    attempted,
    spoiled,
    values_of,
)

CHAT = StrictType(list[ChatCompletionMessageParam])
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
        ({"parts": [{"text": "x"}]}, "this looks like a Gemini content; "),
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


FUNCTION = {"name": "ls", "description": "List files.", "parameters": {"type": "object", "properties": {}}}
REQUEST: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": list(VALID.values()),
    "tools": [
        {"type": "function", "function": FUNCTION | {"strict": True}},
        {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}},
    ],
    "temperature": 0.5,
    "tool_choice": "auto",
    "stream": False,
    "metadata": {"_": "x"},
}


class Answer(BaseModel):
    number: int


def test_a_request_comes_back_as_it_was() -> None:
    conversation = DIALECT.read_request(REQUEST)

    assert len(conversation.messages) == len(VALID)
    assert [tool.name for tool in conversation.tools] == ["ls", "sql"]
    assert conversation.extra["model"] == "gpt-4o"
    assert DIALECT.write_request(conversation) == REQUEST


@pytest.mark.parametrize(
    "more",
    [
        {"tools": []},
        {"tools": None},
        {"functions": [FUNCTION], "function_call": "auto"},
        {"response_format": Answer, "timeout": 3},
        {"_underscored": 1},
    ],
)
def test_what_is_rare_comes_back_too(more: dict[str, Any]) -> None:
    request = {"model": "m", "messages": [VALID["user"]]} | more

    assert DIALECT.write_request(DIALECT.read_request(request)) == request


@settings(deadline=None)
@given(
    st.lists(values_of(ChatCompletionMessageParam), max_size=2),
    st.lists(values_of(ChatCompletionToolUnionParam), min_size=1, max_size=2),
    st.dictionaries(WORDS, JSON, max_size=2),
)
def test_whatever_the_sdk_allows_comes_back(messages: list[Any], tools: list[Any], more: dict[str, Any]) -> None:
    request = {**more, "messages": messages, "tools": tools}

    assert DIALECT.write_request(DIALECT.read_request(request)) == request


@pytest.mark.parametrize("nothing", [NOT_GIVEN, omit])
def test_the_sdks_marks_for_nothing_are_left_out(nothing: object) -> None:
    request = {"model": "m", "messages": [VALID["user"]], "tools": nothing, "temperature": nothing}

    assert DIALECT.write_request(DIALECT.read_request(request)) == {"model": "m", "messages": [VALID["user"]]}


def test_the_client_sends_what_was_written(loopback: Loopback) -> None:
    request = REQUEST | {
        "messages": [*VALID.values(), *(BEYOND[name] for name in ("DeepSeek's thoughts", "unknown fields"))]
    }
    loopback.answer = completion({"role": "assistant", "content": "hi"})

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        api.chat.completions.create(**DIALECT.write_request(DIALECT.read_request(request)))

    assert loopback.paths == ["/chat/completions"]
    assert loopback.body == request


def test_an_answer_goes_back_to_the_client_as_it_came(loopback: Loopback) -> None:
    loopback.answer = completion(VALID["calls"], "tool_calls")
    asked = DIALECT.read_request({"model": "m", "messages": [VALID["user"]]})

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        reply = DIALECT.read_reply(api.chat.completions.create(**DIALECT.write_request(asked)))
        result = Message("tool", DIALECT.read(VALID["a result"]).parts)
        again = Conversation(messages=(*asked.messages, *reply.messages, result), api="openai", extra=asked.extra)
        api.chat.completions.create(**DIALECT.write_request(again))

    assert loopback.bodies[1]["messages"] == [VALID["user"], VALID["calls"], VALID["a result"]]


def test_another_apis_arguments_are_not_passed_on() -> None:
    foreign = Conversation(
        messages=(Message("user", "x"),), api="anthropic", extra={"model": "claude", "max_tokens": 5, "thinking": {}}
    )

    assert DIALECT.write_request(foreign) == {"messages": [{"role": "user", "content": "x"}]}


def test_arguments_made_here_are_passed_on() -> None:
    made = Conversation(
        messages=(Message("user", "x"),), tools=(Tool(name="ls"),), extra={"model": "m", "temperature": 0}
    )

    assert DIALECT.write_request(made) == {
        "model": "m",
        "temperature": 0,
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": {"name": "ls"}}],
    }


BAD_REQUESTS: list[tuple[object, str, str]] = [
    ({"model": "m"}, "messages", "there is no 'messages'"),
    ({"messages": "hello"}, "messages", "expected a list, not the text 'hello'"),
    ({"messages": iter([])}, "messages", "expected a list, not a list_iterator"),
    (
        {"messages": [VALID["user"], {"role": "user", "content": [{"type": 1}]}]},
        "messages[1].content[0].type",
        "",
    ),
    ({"messages": [], "tools": "all"}, "tools", "expected a list, not the text 'all'"),
    ({"messages": [], "tools": [{"type": "function", "function": {}}]}, "tools[0].function.name", ""),
    ({"messages": [], "functions": [{"name": 1}]}, "functions[0].name", ""),
    ({1: 2}, "", "expected text as the name of an argument, not the number 1"),
    (3, "", "expected the arguments of a call, not the number 3"),
]

CALLS: list[dict[str, Any]] = [
    {"id": "a", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}},
    {"id": "b", "type": "function", "function": {"name": "cat", "arguments": '{"path":"x"}'}},
]
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0, "cache_write_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
SPENT = Usage(input_tokens=100, output_tokens=20, cached_input_tokens=64, cache_write_tokens=8, reasoning_tokens=5)
MESSAGE: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "refusal": None,
    "annotations": [],
    "tool_calls": CALLS,
}


def completion(message: dict[str, Any], reason: str | None = "stop", **fields: object) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-2024-11-20"}
    return head | {"choices": [choice], "usage": USAGE} | fields


def chunk(delta: dict[str, Any] | None, reason: str | None = None, **fields: object) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-2024-11-20"}
    return head | {"choices": choices} | fields


CHUNKS = [
    chunk({"role": "assistant", "content": None, "refusal": None}),
    chunk({"tool_calls": [{"index": 0} | CALLS[0] | {"function": {"name": "ls", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 1} | CALLS[1] | {"function": {"name": "cat", "arguments": '{"pa'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path":'}}]}),
    chunk({"tool_calls": [{"index": 1, "function": {"arguments": 'th":"x"}'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"."}'}}]}),
    chunk({}, "tool_calls"),
    chunk(None, usage=USAGE),
]


def client(loopback: Loopback) -> OpenAI:
    return OpenAI(base_url=loopback.url, api_key="none", max_retries=0)


def test_a_reply_says_who_why_and_what_it_cost() -> None:
    reply = DIALECT.read_reply(completion(MESSAGE, "tool_calls"))

    assert (reply.id, reply.model, reply.api) == ("chatcmpl-1", "gpt-4o-2024-11-20", "openai")
    assert (reply.stop, reply.stop_reason, reply.usage) == ("tools", "tool_calls", SPENT)
    assert DIALECT.write(reply.messages) == [MESSAGE]


@pytest.mark.parametrize(
    ("reason", "message", "stop"),
    [
        ("stop", {"content": "hi"}, "end"),
        ("length", {"content": "hi"}, "length"),
        ("tool_calls", {"tool_calls": CALLS}, "tools"),
        ("function_call", {"function_call": {"name": "f", "arguments": ""}}, "tools"),
        ("stop", {"tool_calls": CALLS}, "tools"),
        ("stop", {"refusal": "no"}, "refusal"),
        ("content_filter", {"content": ""}, "refusal"),
        ("error", {"content": ""}, "error"),
        ("something_new", {"content": ""}, ""),
        (None, {"content": ""}, ""),
    ],
)
def test_why_it_ended_has_one_word_for_all_apis(reason: str | None, message: dict[str, Any], stop: str) -> None:
    reply = DIALECT.read_reply(completion(message, reason))

    assert (reply.stop, reply.stop_reason) == (stop, reason or "")


def test_a_reply_without_usage_says_so() -> None:
    assert DIALECT.read_reply(completion(MESSAGE, usage=None)).usage is None


def test_deepseeks_word_for_cached_is_understood() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 7, "prompt_tokens_details": None}

    assert DIALECT.read_reply(completion(MESSAGE, usage=usage)).usage == Usage(
        input_tokens=10, output_tokens=1, cached_input_tokens=7
    )


def test_the_sdks_object_is_read_like_its_dict(loopback: Loopback) -> None:
    loopback.answer = completion(MESSAGE, "tool_calls")

    with client(loopback) as api:
        made = api.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}])

    assert isinstance(made, ChatCompletion)
    assert DIALECT.read_reply(made) == DIALECT.read_reply(loopback.answer)


def test_what_the_sdk_parsed_is_not_part_of_the_message(loopback: Loopback) -> None:
    class Answer(BaseModel):
        number: int

    message = {"role": "assistant", "content": '{"number": 4}', "refusal": None}
    loopback.answer = completion(message)

    with client(loopback) as api:
        made = api.chat.completions.parse(
            model="gpt-4o", messages=[{"role": "user", "content": "x"}], response_format=Answer
        )

    assert made.choices[0].message.parsed == Answer(number=4)
    assert DIALECT.write(DIALECT.read_reply(made).messages) == [message]


def test_chunks_add_up_to_the_reply() -> None:
    whole = DIALECT.read_reply(completion(MESSAGE, "tool_calls"))

    streamed = DIALECT.read_reply(CHUNKS)

    assert streamed.messages[0].tool_calls == whole.messages[0].tool_calls
    assert (streamed.stop, streamed.usage, streamed.id, streamed.model) == (
        whole.stop,
        whole.usage,
        whole.id,
        whole.model,
    )


def test_chunks_from_the_sdk_are_read_like_dicts(loopback: Loopback) -> None:
    loopback.answer = "".join(f"data: {json.dumps(each)}\n\n" for each in CHUNKS) + "data: [DONE]\n\n"

    with client(loopback) as api:
        stream = api.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}], stream=True)
        chunks = list(stream)

    assert all(isinstance(each, ChatCompletionChunk) for each in chunks)
    assert DIALECT.read_reply(chunks) == DIALECT.read_reply(CHUNKS)


def test_the_sdks_own_stream_gives_the_same_by_its_events_and_its_end(loopback: Loopback) -> None:
    loopback.answer = "".join(f"data: {json.dumps(each)}\n\n" for each in CHUNKS) + "data: [DONE]\n\n"

    with (
        client(loopback) as api,
        api.chat.completions.stream(model="gpt-4o", messages=[{"role": "user", "content": "x"}]) as stream,
    ):
        events = list(stream)
        final = stream.get_final_completion()

    expected = DIALECT.read_reply(CHUNKS)
    assert DIALECT.read_reply(events) == expected
    assert DIALECT.read_reply(final).messages[0].tool_calls == expected.messages[0].tool_calls


def test_pieces_of_every_kind_are_joined() -> None:
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "reasoning_content": "let ", "content": ""},
        {"reasoning_content": "me"},
        {"content": "He"},
        {"content": "llo", "audio": {"id": "audio_1", "transcript": "He", "data": "AA"}},
        {"audio": {"transcript": "llo", "data": "BB", "expires_at": 5}},
        {"refusal": "n"},
        {"refusal": "o"},
    ]

    (message,) = DIALECT.read_reply([chunk(delta) for delta in deltas]).messages

    assert DIALECT.write([message]) == [
        {
            "role": "assistant",
            "reasoning_content": "let me",
            "content": "Hello",
            "audio": {"id": "audio_1", "transcript": "Hello", "data": "AABB", "expires_at": 5},
            "refusal": "no",
        }
    ]


def test_openrouters_thoughts_are_joined_by_their_place() -> None:
    details: list[dict[str, Any]] = [
        {"type": "reasoning.text", "index": 0, "text": "let "},
        {"type": "reasoning.text", "index": 0, "text": "me"},
        {"type": "reasoning.text", "index": 0, "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "AAAA"},
    ]

    (message,) = DIALECT.read_reply([chunk({"reasoning_details": [detail]}) for detail in details]).messages

    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    assert [(part.text, part.signature, part.encrypted) for part in thoughts] == [
        ("let me", "sig", ""),
        ("", "", "AAAA"),
    ]


@pytest.mark.parametrize("numbered", [{"index": 0}, {}], ids=["all called the first", "not counted"])
def test_calls_are_told_apart_by_their_ids_where_a_server_cannot_count(numbered: dict[str, int]) -> None:
    chunks = [chunk({"tool_calls": [numbered | call]}) for call in CALLS]

    (message,) = DIALECT.read_reply([*chunks, chunk({}, "stop")]).messages

    assert DIALECT.write([message])[0]["tool_calls"] == CALLS


def test_a_former_call_is_joined() -> None:
    deltas = [{"function_call": {"name": "ls", "arguments": "{"}}, {"function_call": {"arguments": "}"}}]

    reply = DIALECT.read_reply([*(chunk(delta) for delta in deltas), chunk({}, "function_call")])

    assert DIALECT.write(reply.messages) == [{"role": "assistant", "function_call": {"name": "ls", "arguments": "{}"}}]
    assert reply.stop == "tools"


def test_of_several_choices_the_first_is_taken() -> None:
    others = [{"index": 1, "message": {"role": "assistant", "content": "two"}, "finish_reason": "stop"}]
    whole = completion({"role": "assistant", "content": "one"})
    streamed = [chunk({"content": "one"}), chunk({"content": "two"})]
    streamed[1]["choices"][0]["index"] = 1

    assert DIALECT.read_reply(whole | {"choices": whole["choices"] + others}).messages[0].content == "one"
    assert DIALECT.read_reply(streamed).messages[0].content == "one"


def test_chunks_that_do_not_say_how_it_ended_broke_off() -> None:
    assert DIALECT.read_reply(CHUNKS[:-2]).stop == "broken"
    assert DIALECT.read_reply(CHUNKS).stop == "tools"


def test_a_long_stream_is_joined_once() -> None:
    pieces = 20_000

    (message,) = DIALECT.read_reply([chunk({"content": "word "}) for _ in range(pieces)]).messages

    assert message.parts == (Text("word " * pieces),)


BAD_REPLIES: list[tuple[object, str, str]] = [
    ({"error": {"message": "overloaded"}}, "error", "the server answered with an error: 'overloaded'"),
    ({}, "choices", "there is no 'choices'"),
    ({"choices": []}, "choices", "the response contains no reply"),
    ([], "choices", "the response contains no reply"),
    ({"choices": [{}]}, "choices[0].message", "there is no 'message'"),
    (
        {"choices": [{"message": {"content": 1}}]},
        "choices[0].message.content",
        "expected text or a list of parts, not the number 1",
    ),
    (completion(MESSAGE, usage={"prompt_tokens": "many"}), "usage.prompt_tokens", ""),
    (completion(MESSAGE, usage={"prompt_tokens": -1}), "usage.prompt_tokens", ""),
    ([chunk({"tool_calls": [3]})], "[0].choices[0].delta.tool_calls[0]", "expected an object, not the number 3"),
    ("hello", "", "expected an object, not the text 'hello'"),
]


@settings(deadline=None)
@given(
    JSON
    | OBJECTS
    | spoiled(st.builds(lambda: json.loads(json.dumps(completion(MESSAGE)))))
    | spoiled(st.builds(lambda: json.loads(json.dumps(CHUNKS))))
)
def test_reading_a_reply_refuses_or_understands_and_never_breaks(reply: Any) -> None:
    read = attempted(DIALECT.read_reply, reply)

    assert read is None or DIALECT.write(read.messages)
