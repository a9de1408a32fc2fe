"""Sessions of Gemini CLI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexus_core.errors import TranscriptError
from nexus_core.transcripts.base import Transcript
from nexus_core.transcripts.read import read_transcript
from nexus_core.types.messages import Image, Opaque, Reasoning, Text, ToolCall, Usage
from tests.transcripts.support import every_line, read, said, sample

HEADER = {"sessionId": "s", "projectHash": "0", "startTime": "t", "lastUpdated": "t", "kind": "main"}


def user(name: str, content: object = None) -> dict[str, Any]:
    return {"id": name, "timestamp": "t", "type": "user", "content": [{"text": name}] if content is None else content}


def reply(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "t", "type": "gemini", "content": name, "model": "gemini-3-pro-preview", **more}


def call(name: str, result: object) -> dict[str, Any]:
    return {"id": name, "name": "read_file", "args": {"path": name}, "result": result, "status": "success"}


def response(name: str, output: str) -> dict[str, Any]:
    return {"functionResponse": {"id": name, "name": "read_file", "response": {"output": output}}}


def document(*messages: object, **more: object) -> Transcript:
    """A session in the older format, which is one document."""
    return read_transcript(json.dumps({**HEADER, "messages": messages, **more}, indent=2))


def test_main_path_has_calls_and_results_without_what_was_rewound() -> None:
    transcript = sample("gemini_cli.jsonl")

    assert (transcript.format, transcript.model) == ("gemini-cli", "gemini-3-pro-preview")
    assert transcript.id == "c1f0a7de-5b1d-4a57-9b7e-2f6f0d3f9a11"
    assert said(transcript.entries) == [
        "user: <session_context>\nToday is Wednesday.\n</session_context>",
        "user: Which beds need water?",
        "assistant: I will read the log. read_file()",
        "tool:  = bed 1: Monday\nbed 2: Friday",
        "assistant: Bed 1 does.",
        "user: Is rain enough? Look:",
        "assistant: Yes, rain is enough.",
    ]


def test_reply_has_its_thoughts_call_and_usage_from_the_last_version() -> None:
    entry = sample("gemini_cli.jsonl").entries[2]

    assert entry.message.parts == (
        Reasoning(text="**Log** It has the days.", api="gemini"),
        Text("I will read the log."),
        ToolCall("read_file_1", "read_file", {"path": "water.log"}),
    )
    assert entry.usage == Usage(input_tokens=450, output_tokens=18, cached_input_tokens=400, reasoning_tokens=7)
    assert (entry.lines, entry.stop, len(entry.raw)) == ((5, 6), "tools", 2)


def test_rewound_messages_are_a_branch() -> None:
    (branch,) = sample("gemini_cli.jsonl").branches

    assert (branch.kind, branch.at, branch.leaves) == ("rolled-back", 5, None)
    assert said(branch.entries) == ["user: Water both.", "assistant: Both beds are watered."]


def test_compression_replaces_what_the_model_reads() -> None:
    transcript = sample("gemini_cli.jsonl")

    (compaction,) = transcript.compactions
    assert (compaction.line, compaction.at) == (14, 6)
    assert compaction.summary == "<state_snapshot>Bed 1 needs water.</state_snapshot>"
    assert [entry.kind for entry in compaction.context] == ["summary", "said"]
    assert said(transcript.context) == [
        "user: <state_snapshot>Bed 1 needs water.</state_snapshot>",
        "user: Is rain enough? Look:",
        "assistant: Yes, rain is enough.",
    ]


def test_every_line_has_one_outcome_and_other_lines_are_kept() -> None:
    transcript = sample("gemini_cli.jsonl")

    assert every_line(transcript) == list(range(1, 17))
    kinds = {kept.number: kept.kind for kept in transcript.metadata}
    assert kinds == {1: "header", 4: "$set", 8: "info", 9: "user/command", 12: "$rewindTo", 16: "$set"}


def test_message_of_the_program_is_injected_and_image_is_an_image() -> None:
    entries = sample("gemini_cli.jsonl").entries

    assert [entry.kind for entry in entries[:2]] == ["injected", "said"]
    assert Image(mime="image/png", data="iVBORw0KGgo=") in entries[5].message.parts


def test_document_of_the_older_format_is_read() -> None:
    transcript = document(user("hi", "Hello"), reply("yo", toolCalls=[call("c", [response("c", "text")])]), summary="x")

    assert said(transcript.entries) == ["user: Hello", "assistant: yo read_file()", "tool:  = text"]
    assert transcript.entries[0].lines == (8,)
    assert (transcript.id, transcript.report.count("message")) == ("s", 2)


def test_document_without_messages_has_no_entries() -> None:
    assert document().entries == ()


def test_element_that_is_no_message_is_skipped_with_a_note() -> None:
    transcript = document(user("hi"), 7)

    assert said(transcript.entries) == ["user: hi"]
    assert [note.text for note in transcript.report.notes] == ["expected a message"]


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("plain text", "plain text"),
        ([{"text": "one"}, {"text": "two"}], "one\ntwo"),
        ([response("", "no id")], "no id"),
        ([response("c", "mine"), response("other", "of another call")], "mine"),
    ],
    ids=["text", "parts", "no id", "two"],
)
def test_result_is_found_in_every_form(result: object, shown: str) -> None:
    transcript = read(HEADER, user("hi"), reply("a", toolCalls=[call("c", result)]))

    (found,) = transcript.entries[-1].message.tool_results
    assert (found.call_id, found.name, found.text) == ("c", "read_file", shown)


@pytest.mark.parametrize("result", [None, [], ""])
def test_call_without_a_result_is_left_open(result: object) -> None:
    transcript = read(HEADER, user("hi"), reply("a", toolCalls=[call("c", result)]))

    assert said(transcript.entries) == ["user: hi", "assistant: a read_file()"]


def test_call_and_result_that_are_in_the_content_too_are_read_once() -> None:
    content = [{"text": "Reading."}, {"functionCall": {"id": "c", "name": "read_file", "args": {"path": "c"}}}]
    transcript = read(
        HEADER,
        user("hi"),
        reply("a", content=content, toolCalls=[call("c", [response("c", "text")])]),
        user("r", [response("c", "text")]),
        reply("b"),
    )

    assert said(transcript.entries) == [
        "user: hi",
        "assistant: Reading. read_file()",
        "tool:  = text",
        "assistant: b",
    ]


def test_failed_tool_is_an_error() -> None:
    failed = {"functionResponse": {"id": "c", "name": "read_file", "response": {"error": "no such file"}}}
    transcript = read(HEADER, user("hi"), reply("a", toolCalls=[call("c", [failed])]))

    assert [result.is_error for result in transcript.entries[-1].message.tool_results] == [True]


def test_rewind_of_a_rewind_leaves_the_branch() -> None:
    transcript = read(
        HEADER,
        *(user("a"), reply("b"), user("c"), reply("d")),
        {"$rewindTo": "c"},
        *(user("e"), reply("f")),
        {"$rewindTo": "a"},
        user("g"),
    )

    assert said(transcript.entries) == ["user: g"]
    assert [said(branch.entries) for branch in transcript.branches] == [
        ["user: c", "assistant: d"],
        ["user: a", "assistant: b", "user: e", "assistant: f"],
    ]
    assert [(branch.leaves, branch.at) for branch in transcript.branches] == [(1, 2), (None, 0)]


def test_rewind_to_an_unknown_message_undoes_everything_with_a_note() -> None:
    transcript = read(HEADER, user("a"), {"$rewindTo": "z"}, user("b"))

    assert said(transcript.entries) == ["user: b"]
    assert [note.line for note in transcript.report.notes] == [3]


def test_message_of_unknown_shape_is_kept_in_its_place() -> None:
    transcript = read(HEADER, user("a"), user("b", [7]), reply("c"), reply("d", content=[{"hologram": 1}]))

    assert transcript.entries[1].message.parts == (Opaque("gemini-cli", user("b", [7])),)
    assert transcript.entries[3].message.parts == (Opaque("gemini", {"hologram": 1}),)
    assert [note.line for note in transcript.report.notes] == [3]


def test_list_of_prompts_is_refused_by_name() -> None:
    log = [{"sessionId": "s", "messageId": 0, "type": "user", "message": "hi", "timestamp": "t"}]

    with pytest.raises(TranscriptError, match="the list of prompts of Gemini CLI") as caught:
        read_transcript(json.dumps(log))

    assert caught.value.code == "unsupported-format"
