"""Formats are decided by the whole file: foreign ones are refused by name, and so is what would be mostly opaque."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexus_core.errors import TranscriptError
from nexus_core.host.manager import get_installed_host
from nexus_core.transcripts.base import SCORE_NONE, SCORE_OWN, TranscriptFormat
from nexus_core.transcripts.read import load_formats, read_transcript
from nexus_core.transcripts.recognition import FormatDetector, extract_line_shape
from tests.dialects.support import JSON
from tests.transcripts.support import SAMPLES, read, said

Lines = list[dict[str, Any]]
FORMATS = load_formats(get_installed_host())

SNAPSHOT: dict[str, Any] = {
    "type": "file-history-snapshot",
    "messageId": "m1",
    "snapshot": {"messageId": "m1", "trackedFileBackups": {}, "timestamp": "2026-01-01T00:00:00Z"},
    "isSnapshotUpdate": False,
}
ASKED = {
    "type": "user",
    "uuid": "a",
    "parentUuid": None,
    "sessionId": "s",
    "message": {"role": "user", "content": "hi"},
}

COPILOT: Lines = [
    {"type": "session.start", "data": {"sessionId": "s"}, "id": "1", "timestamp": "t", "parentId": None},
    {"type": "user.message", "data": {"content": "hi"}, "id": "2", "timestamp": "t", "parentId": "1"},
]
QWEN: Lines = [
    {
        "uuid": "1",
        "parentUuid": None,
        "sessionId": "s",
        "type": "user",
        "message": {"role": "user", "parts": [{"text": "hi"}]},
    },
    {"uuid": "2", "parentUuid": "1", "sessionId": "s", "type": "system", "subtype": "ui_telemetry"},
]
DROID: Lines = [
    {"type": "session_start", "id": "d", "title": "Lunch", "cwd": "/srv"},
    {"type": "message", "id": "1", "parentId": "d", "timestamp": "t", "message": {"role": "user", "content": "hi"}},
    {
        "type": "message",
        "id": "2",
        "parentId": "1",
        "timestamp": "t",
        "message": {"role": "assistant", "content": "yo"},
    },
]
DROID_STREAM: Lines = [
    {"type": "message", "session_id": "d", "role": "user", "text": "hi"},
    {"type": "tool_call", "session_id": "d", "toolCallId": "c", "toolName": "Shell", "parameters": {}},
    {"type": "completion", "session_id": "d", "finalText": "yo"},
]
KIMI: Lines = [
    {"type": "metadata", "protocol_version": "1.4", "created_at": 1},
    {"type": "turn.prompt", "input": [{"type": "text", "text": "hi"}], "time": 2},
    {"type": "context.append_message", "message": {"role": "user", "content": []}, "time": 3},
]
KIMI_CONTEXT: Lines = [
    {"role": "_checkpoint", "id": 0},
    {"role": "user", "content": "hi"},
    {"role": "_usage", "token_count": 9},
]
ANTIGRAVITY: Lines = [
    {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "status": "DONE", "content": "hi"},
    {"step_index": 1, "source": "MODEL", "type": "PLANNER_RESPONSE", "status": "DONE", "content": "yo"},
]
GROK: Lines = [
    {"type": "system", "content": "Help."},
    {"type": "user", "content": [{"type": "text", "text": "hi"}], "prompt_index": 0},
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "assistant", "content": "yo", "model_id": "grok", "model_fingerprint": "f"},
    {"type": "tool_result", "tool_call_id": "c", "content": "done"},
]
CURSOR: Lines = [
    {"role": "user", "message": {"content": [{"type": "text", "text": "hi"}]}},
    {"type": "turn_ended", "status": "success"},
]
GEMINI: Lines = [
    {"sessionId": "s", "projectHash": "0", "startTime": "t", "lastUpdated": "t", "kind": "main"},
    {"id": "1", "timestamp": "t", "type": "user", "content": [{"text": "hi"}]},
    {"id": "2", "timestamp": "t", "type": "gemini", "content": "yo", "tokens": {}},
]
GEMINI_SESSION = {
    "sessionId": "s",
    "projectHash": "0",
    "startTime": "t",
    "lastUpdated": "t",
    "messages": [
        {"id": "1", "timestamp": "t", "type": "user", "content": "hi"},
        {"id": "2", "timestamp": "t", "type": "gemini", "content": "yo", "thoughts": []},
    ],
}
OPENCODE = {"id": "m", "sessionID": "s", "role": "user", "time": {"created": 1}, "agent": "build"}
OPENCODE_PART = {"id": "p", "sessionID": "s", "messageID": "m", "type": "text", "text": "hi"}
OPENCODE_EXPORT = {
    "info": {"id": "s"},
    "messages": [{"info": {"role": "user"}, "parts": [{"type": "text", "text": "hi"}]}],
}
GEMINI_LOG = "the list of prompts of Gemini CLI (its sessions are in `chats`)"
VSCODE = {"version": 3, "requesterUsername": "me", "responderUsername": "GitHub Copilot", "requests": []}

SAMPLE_LINES: Lines = [
    json.loads(line)
    for path in sorted(SAMPLES.glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
KNOWN_LINES: Lines = [
    *(SNAPSHOT, ASKED, *COPILOT, *QWEN, *DROID, *DROID_STREAM, *KIMI, *KIMI_CONTEXT, *ANTIGRAVITY, *GROK, *GEMINI),
    *(GEMINI_SESSION, OPENCODE, OPENCODE_PART, OPENCODE_EXPORT, VSCODE),
    *SAMPLE_LINES,
]
FIELDS = sorted({(key, json.dumps(value)) for line in KNOWN_LINES for key, value in line.items()})


@st.composite
def mixed_lines(draw: st.DrawFn) -> dict[str, Any]:
    """Return a line of some program with fields of others, left out, or with another value of any type."""
    line = dict(draw(st.sampled_from(KNOWN_LINES)))
    for key in draw(st.lists(st.sampled_from(sorted(line)), max_size=3)):
        line.pop(key, None)
    line |= {key: json.loads(text) for key, text in draw(st.lists(st.sampled_from(FIELDS), max_size=3))}
    for key in draw(st.lists(st.sampled_from(sorted({"type", "role", "message", *line})), max_size=1)):
        line[key] = draw(JSON)
    return line


@st.composite
def similar_lines(draw: st.DrawFn) -> dict[str, Any]:
    """Return one of few lines, so that two of them often differ in one thing only."""
    inner = st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, "x", {"c": 1}]), max_size=1)
    values = st.sampled_from([None, 0, 1, 1.5, True, "", "x", "message"]) | inner | st.lists(inner, max_size=2)
    return draw(st.dictionaries(st.sampled_from(["type", "role", "message", "time", "messages", "id"]), values))


def lines(*values: dict[str, Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def refused(text: str) -> TranscriptError:
    with pytest.raises(TranscriptError) as caught:
        read_transcript(text, "file")
    return caught.value


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        (json.dumps([{"sessionId": "s", "messageId": 0, "type": "user", "message": "hi"}]), "gemini-log", GEMINI_LOG),
        (json.dumps(VSCODE, indent=1), "vscode-chat", "a chat session of VS Code"),
    ],
)
def test_a_format_without_a_reader_is_refused_by_name(text: str, name: str, title: str) -> None:
    error = refused(text)

    assert (error.code, error.nearest) == ("unsupported-format", name)
    assert error.what == f"this is {title}; Nexus cannot read it yet"
    assert error.path == "file:1"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (lines(*COPILOT), "copilot"),
        (lines(*QWEN), "qwen"),
        (lines(*DROID), "droid"),
        (lines(*DROID_STREAM), "droid"),
        (lines(*KIMI), "kimi"),
        (lines(*KIMI_CONTEXT), "kimi"),
        (lines(*ANTIGRAVITY), "antigravity"),
        (lines(*GROK), "grok"),
        (lines(*CURSOR), "cursor"),
        (json.dumps(OPENCODE_EXPORT), "opencode"),
    ],
)
def test_a_format_of_a_plugin_is_recognised(text: str, name: str) -> None:
    assert read_transcript(text, "file").format == name


@pytest.mark.parametrize("piece", [OPENCODE, OPENCODE_PART])
def test_one_file_of_several_is_refused_with_the_file_to_name(piece: dict[str, Any]) -> None:
    error = refused(json.dumps(piece))

    assert (error.code, error.nearest) == ("partial-session", "opencode")
    assert "storage/session/" in (error.hint or "")


def test_claude_code_is_recognised_behind_a_snapshot_of_files() -> None:
    transcript = read(SNAPSHOT, SNAPSHOT, ASKED)

    assert (transcript.format, said(transcript.entries)) == ("claude-code", ["user: hi"])
    assert [line.kind for line in transcript.metadata] == ["file-history-snapshot"] * 2


@pytest.mark.parametrize("foreign", [COPILOT[0], KIMI[1], GROK[3], {"role": "user", "content": "stray"}])
def test_one_line_of_another_program_does_not_decide(foreign: dict[str, Any]) -> None:
    follows = [ASKED | {"uuid": name, "parentUuid": parent} for name, parent in (("b", "a"), ("c", "b"))]

    assert read(foreign, ASKED, *follows).format == "claude-code"


def test_items_below_the_header_of_codex_are_its_items() -> None:
    header = {"id": "s", "timestamp": "t", "instructions": None}
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}] * 3

    assert read(header, *items).format == "codex"
    assert read(*items).format == "messages"


def test_a_file_that_would_be_mostly_opaque_is_refused_with_the_nearest_format() -> None:
    strange = [{"role": "user", "content": [{"type": "hologram", "beam": 1}]}] * 3

    error = refused(lines(*strange, {"role": "user", "content": "hi"}))

    assert error.code == "mostly-opaque"
    assert error.what.startswith("3 of 4 messages would be opaque")
    assert error.hint == "the nearest format is messages, which explains 4 of 4 entries"


def test_lines_of_a_program_that_nobody_knows_are_refused() -> None:
    error = refused(lines({"type": "boot", "at": 1}, {"type": "say", "words": "hi"}))

    assert (error.code, error.what) == ("unknown-format", "not a transcript that Nexus knows")


def test_items_that_responses_keeps_whole_are_not_opaque() -> None:
    transcript = read({"type": "web_search_call", "id": "w", "status": "completed"}, {"role": "user", "content": "hi"})

    assert (transcript.format, len(transcript.entries)) == ("messages", 2)


def test_content_that_is_a_list_of_strings_is_text() -> None:
    messages = [{"role": "user", "content": ["Hello,", "you."]}, {"role": "assistant", "content": ["Hi."]}]

    for text in (json.dumps(messages), json.dumps({"messages": messages}), lines(*messages)):
        assert [message.content for message in read_transcript(text).messages] == ["Hello,\nyou.", "Hi."]


def test_items_of_responses_in_a_list_called_messages_are_read() -> None:
    body = {"messages": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]}

    assert said(read_transcript(json.dumps(body)).entries) == ["user: hi"]


def test_a_saved_session_of_nexus3_is_read() -> None:
    saved = {
        "schema_version": 1,
        "agent_id": "main",
        "created_at": "2026-01-01T10:00:00",
        "modified_at": "2026-01-01T10:05:00",
        "messages": [
            {"role": "user", "content": "Bake."},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "oven", "arguments": {"heat": 9}}]},
            {"role": "tool", "content": "hot", "tool_call_id": "c"},
            {"role": "assistant", "content": "Done."},
        ],
        "system_prompt": "You bake.",
        "system_prompt_path": None,
        "working_directory": "/srv/bakery",
        "permission_level": "trusted",
        "model_alias": "haiku",
        "token_usage": {},
        "provenance": "user",
    }

    transcript = read_transcript(json.dumps(saved, indent=2), "bread.json")

    assert (transcript.format, transcript.cwd, transcript.model) == ("nexus3", "/srv/bakery", "haiku")
    assert said(transcript.entries) == ["user: Bake.", "assistant:  oven()", "tool:  = hot", "assistant: Done."]
    assert transcript.entries[1].message.tool_calls[0].arguments == {"heat": 9}
    assert [message.content for message in transcript.system] == ["You bake."]


@given(mixed_lines())
def test_the_outline_of_a_line_weighs_as_much_as_the_line(line: dict[str, Any]) -> None:
    outline = extract_line_shape(line)

    assert [form.score_line(outline) for form in FORMATS] == [form.score_line(line) for form in FORMATS]


@given(st.lists(mixed_lines(), max_size=3).flatmap(lambda kinds: st.lists(st.sampled_from([ASKED, *kinds]))))
def test_evidence_is_the_sum_of_the_weights_of_all_lines(values: Lines) -> None:
    evidence = FormatDetector(FORMATS)
    for value in values:
        evidence.add(value)

    weights = {form: [form.score_line(value) for value in values] for form in FORMATS}
    explained = {form: sum(weight > SCORE_NONE for weight in weights[form]) for form in FORMATS}
    candidates = [form for form in FORMATS if SCORE_OWN in weights[form]]
    assert evidence.best() == max(candidates, key=explained.__getitem__, default=None)
    assert evidence.nearest()[1] == max(explained.values())


@given(similar_lines(), similar_lines())
@example({"message": {}, "time": {"a": 1}}, {"message": {"a": 1}, "time": {}})
@example({"type": "x"}, {"type": "message"})
@example({"role": "x"}, {"role": "message"})
@example({"time": {"a": 1}}, {"time": {"b": 1}})
@example({"message": {"a": 1}}, {"message": {"a": "x"}})
@example({"messages": [{"a": 1}]}, {"messages": [{"b": 1}]})
@example({"id": 1}, {"id": True})
def test_lines_share_a_weight_only_if_their_outlines_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    def score_line(outline: dict[str, Any]) -> int:
        return SCORE_OWN if _typed(outline) == wanted else SCORE_NONE

    wanted = _typed(extract_line_shape(other))
    evidence = FormatDetector([TranscriptFormat("other", "the other line", score_line)])
    evidence.add(one)
    evidence.add(other)

    assert evidence.nearest() == ("other", 1 + (_typed(extract_line_shape(one)) == wanted))


def _typed(outline: dict[str, Any]) -> str:
    return json.dumps(outline)  # unlike `==`, it tells 0 from False, and one order of keys from another


def test_an_outline_has_the_keys_and_types_of_a_line_without_its_content() -> None:
    line = {"type": "user", "version": 3, "cwd": "/srv", "tags": ["a"], "message": {"role": "user", "content": ["hi"]}}

    outline = extract_line_shape(line | {"messages": [{"id": 1}, {"id": 2}, "x", {"text": "hi"}]})

    assert outline == {
        "type": "user",
        "version": 0,
        "cwd": "",
        "tags": [],
        "message": {"role": "", "content": []},
        "messages": [{"id": None}, {"text": None}],
    }


def test_a_file_in_which_every_line_is_of_another_kind_is_recognised() -> None:
    evidence = FormatDetector(FORMATS)
    for number in [*range(3000), *range(3000)]:
        evidence.add(ASKED | {f"field{number}": number})

    assert evidence.best() == next(form for form in FORMATS if form.name == "claude-code")
    assert evidence.nearest() == ("claude-code", 6000)
