"""Lists of messages and requests of any API, and exports of ChatGPT."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexus_core.dialects.neutral import message_to_json
from nexus_core.errors import MessageError
from nexus_core.transcripts.read import read_transcript
from nexus_core.types.messages import Message, Opaque, Reasoning, Text, ToolCall
from tests.transcripts.support import every_line, said, sample

HELLO = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(
    ("name", "api", "system", "tools"),
    [
        ("chat.json", "openai", [], ["find_loan"]),
        ("anthropic.json", "anthropic", ["You keep the books of a library."], ["find_loan"]),
        ("gemini.json", "gemini", ["You keep the books of a library."], []),
        ("responses.json", "responses", ["You keep the books of a library."], []),
        ("messages.jsonl", "openai", [], []),
    ],
)
def test_a_request_of_any_api_is_read_in_its_dialect(name: str, api: str, system: list[str], tools: list[str]) -> None:
    transcript = sample(name)

    assert (transcript.format, transcript.api) == ("messages", api)
    assert [message.content for message in transcript.system] == system
    assert [tool.name for tool in transcript.tools] == tools
    assert "user: Who has the atlas?" in said(transcript.entries)


def test_every_message_knows_its_line() -> None:
    assert [entry.lines for entry in sample("chat.json").entries] == [(5,), (9,), (13,), (27,), (32,)]
    assert [entry.lines for entry in sample("messages.jsonl").entries] == [(1,), (2,), (3,)]


def test_the_other_fields_of_a_request_are_kept() -> None:
    transcript = sample("chat.json")

    assert [(kept.number, kept.kind) for kept in transcript.metadata] == [
        (2, "model"),
        (3, "temperature"),
        (37, "tools"),
    ]
    assert transcript.model == "gpt-4o"


@pytest.mark.parametrize("space", [None, 1], ids=["on one line", "on many"])
def test_a_bare_list_is_read(space: int | None) -> None:
    text = json.dumps(
        [HELLO, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}]}],
        indent=space,
    )

    transcript = read_transcript(text)

    assert (transcript.api, said(transcript.entries)) == ("anthropic", ["user: hello", "assistant:  b()"])


def test_messages_of_nexus_itself_are_read() -> None:
    message = Message("assistant", [Text("hello"), Reasoning(text="why not")])

    transcript = read_transcript(json.dumps(message_to_json(message)) + "\n" + json.dumps(message_to_json(message)))

    assert (transcript.api, transcript.messages) == ("neutral", (message, message))


def test_an_empty_list_is_a_conversation_in_which_nothing_was_said() -> None:
    assert read_transcript("[]").entries == ()
    assert read_transcript('{"messages": []}').entries == ()


def test_a_request_may_be_a_single_text() -> None:
    assert said(read_transcript('{"model": "gpt-5", "input": "hello"}').entries) == ["user: hello"]


def test_a_request_that_nobody_has_answered_names_the_model_it_is_for() -> None:
    assert read_transcript('{"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}').model == "gpt-4o"


def test_a_result_may_have_its_call_in_a_list() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    history = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "x", "tool_call_ids": ["c"]},
    ]

    transcript = read_transcript(json.dumps({"history": history, "info": {"cost": 0}}))

    assert transcript.entries[1].message.tool_results[0].call_id == "c"
    assert transcript.entries[1].raw[0]["tool_call_ids"] == ["c"]


def test_an_error_names_file_line_and_message() -> None:
    with pytest.raises(MessageError) as caught:
        read_transcript('[\n {"role": "user", "content": "a"},\n {"role": "usr", "content": "b"}\n]', "chat.json")

    assert caught.value.path == "chat.json:3, messages[1].role"
    assert caught.value.hint == "did you mean 'user'?"


def test_an_error_in_a_request_names_its_line_too() -> None:
    body = {"input": [{"role": "user", "content": "a"}, {"role": "nobody", "content": "b"}]}

    with pytest.raises(MessageError) as caught:
        read_transcript(json.dumps(body, indent=1), "request.json")

    assert caught.value.path == "request.json:7, input[1].role"


def test_a_line_that_is_no_message_is_kept_beside_them() -> None:
    transcript = read_transcript("\n".join(map(json.dumps, [HELLO, {"cost": 3}, HELLO])))

    assert [entry.lines for entry in transcript.entries] == [(1,), (3,)]
    assert transcript.metadata[0].value == {"cost": 3}
    assert every_line(transcript) == [1, 2, 3]


class TestChatGPT:
    def test_what_led_to_the_current_message_is_the_main_path(self) -> None:
        transcript = sample("chatgpt.json")

        assert (transcript.format, transcript.id, transcript.model) == ("chatgpt", "walk-1", "gpt-4o")
        assert said(transcript.entries) == [
            "user: How long is the path around the lake?",
            "assistant:  python()",
            "tool:  = 7.536",
            "assistant: ",
            "assistant: About 7.5 kilometres.",
        ]
        assert transcript.entries[0].lines == (36,)

    def test_parts_of_other_kinds_are_thoughts_calls_and_blocks(self) -> None:
        _, call, result, thought, answer = (entry.message for entry in sample("chatgpt.json").entries)

        assert call.parts == (ToolCall("t1", "python", {}, "2 * 3.14 * 1.2"),)
        assert result.tool_results[0].call_id == "t1"
        assert thought.parts == (Reasoning(text="It is a circle."),)
        assert isinstance(answer.parts[1], Opaque)

    def test_another_answer_is_a_fork(self) -> None:
        (fork,) = sample("chatgpt.json").branches

        assert (fork.parent, said(fork.entries)) == ("q1", ["assistant: About an hour."])

    def test_nodes_that_say_nothing_are_kept(self) -> None:
        kept = [line.value for line in sample("chatgpt.json").metadata if line.kind == "node"]

        assert [value["id"] for value in kept if isinstance(value, dict)] == ["root", "sys"]

    def test_a_list_with_one_conversation_is_that_conversation(self) -> None:
        body: dict[str, Any] = {
            "mapping": {
                "a": {"id": "a", "parent": None, "message": {"author": {"role": "user"}, "content": {"parts": ["hi"]}}}
            }
        }

        assert said(read_transcript(json.dumps([body], indent=1)).entries) == ["user: hi"]

    def test_of_several_conversations_one_must_be_chosen(self) -> None:
        with pytest.raises(MessageError, match="there are 2 conversations in it"):
            read_transcript(json.dumps([{"mapping": {}}, {"mapping": {}}]), "conversations.json")
