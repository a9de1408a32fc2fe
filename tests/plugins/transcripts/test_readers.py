"""Each reader of the plugin, on a small conversation about an oven in its program's format."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Message, Nexus, hookimpl
from nexus_core.errors import TranscriptError
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.discovery import PluginPolicy, build_given_candidates
from nexus_core.host.manager import Host, get_installed_host
from nexus_core.plugin import Reasoning, TranscriptReader
from nexus_core.plugin.transcripts import (
    SCORE_NONE,
    SCORE_OWN,
    EntryCollector,
    JsonLine,
    LineAccount,
    Transcript,
    TranscriptFormat,
)
from nexus_core.testing import check_plugin
from nexus_core.transcripts.read import gather_transcript, load_formats, read_transcript, split_conversations
from nexus_core.types.messages import ToolCall
from tests.timing import assert_linear
from tests.transcripts.independent import find_missing, list_contents
from tests.transcripts.support import AGENTS, agent_sample, read, said, write_opencode_tree

ASKED, WARM = "user: How warm is the oven?", "assistant: It has 220 degrees."
FILES = {
    "aider.md": "aider",
    "antigravity.jsonl": "antigravity",
    "atif.json": "atif",
    "copilot.jsonl": "copilot",
    "cursor.jsonl": "cursor",
    "droid.jsonl": "droid",
    "droid_stream.jsonl": "droid",
    "grok.jsonl": "grok",
    "hermes.json": "hermes",
    "kimi.jsonl": "kimi",
    "kimi_context.jsonl": "kimi",
    "opencode.json": "opencode",
    "openhands.json": "openhands",
    "openhands_events.jsonl": "openhands",
    "qwen.jsonl": "qwen",
    "sharegpt.json": "sharegpt",
}
JSON_FILES = {name: program for name, program in FILES.items() if program != "aider"}


def gather(path: Path) -> str | None:
    return gather_transcript(path, load_formats(get_installed_host()))


def reasoning(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Reasoning)]


@pytest.mark.parametrize(("name", "program"), JSON_FILES.items())
def test_every_text_call_and_result_of_a_file_is_in_its_transcript(name: str, program: str) -> None:
    transcript = agent_sample(name)

    contents = list_contents(program, (AGENTS / name).read_text(encoding="utf-8"))
    assert transcript.format == program
    assert len(contents) > 2
    assert find_missing(transcript, contents) == []


@pytest.mark.parametrize("name", [name for name in JSON_FILES if name.endswith("jsonl")])
def test_a_file_that_is_cut_off_is_read_up_to_there(name: str) -> None:
    text = (AGENTS / name).read_text(encoding="utf-8")

    transcript = read_transcript(text[:-20], name)

    assert transcript.format == FILES[name]
    assert transcript.report.count("skipped") == 1


def test_copilot_shows_calls_once_and_subagents_apart() -> None:
    transcript = agent_sample("copilot.jsonl")

    assert (transcript.id, transcript.cwd) == ("b1f2c3d4-0000-4000-8000-00000000c0de", "/srv/bakery")
    assert said(transcript.entries) == [
        "user: <now>09:00</now> How warm is the oven?",
        "assistant: I look. oven() task()",
        "tool:  = 220 degrees",
        "tool:  = the counter stopped",
        "user: The counter has finished.",
        WARM,
    ]
    assert reasoning(transcript.entries[1].message) == ["I have to look."]
    assert [(branch.name, said(branch.entries)) for branch in transcript.branches] == [
        ("counter", ["assistant: Twelve loaves."])
    ]
    assert [(each.at, each.summary) for each in transcript.compactions] == [(5, "The oven has 220 degrees.")]


def test_an_unknown_type_is_kept_and_counted() -> None:
    event = {"type": "oven.sensor", "data": {"degrees": 1}, "id": "x", "timestamp": "t"}
    text = (AGENTS / "copilot.jsonl").read_text(encoding="utf-8")

    transcript = read_transcript(text + json.dumps(event) + "\n")

    assert [note.text for note in transcript.report.notes] == [
        "unknown type 'oven.sensor', 2 times: kept, not part of a message"
    ]
    assert [line.value for line in transcript.metadata if line.kind == "oven.sensor"][1] == event


def test_the_older_document_of_copilot_is_read() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]

    transcript = read_transcript(json.dumps({"sessionId": "s", "chatMessages": messages, "timeline": []}))

    assert (transcript.format, said(transcript.entries)) == ("copilot", ["user: hi", "assistant: yo"])


def test_qwen_has_forks_and_messages_of_the_program() -> None:
    transcript = agent_sample("qwen.jsonl")

    assert said(transcript.entries)[-2:] == ["assistant: Very warm.", "user: The timer rang."]
    assert [branch.kind for branch in transcript.branches] == ["fork"]
    assert transcript.entries[-1].kind == "injected"
    usage = transcript.entries[1].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (50, 13)


def test_a_compression_of_qwen_replaces_the_history() -> None:
    history = [{"role": "user", "parts": [{"text": "A short story."}]}, {"role": "model", "parts": [{"text": "Good."}]}]
    line = {"uuid": "u8", "parentUuid": "u7", "sessionId": "s", "type": "system", "subtype": "chat_compression"}
    payload = {"systemPayload": {"compressedHistory": history}}
    text = (AGENTS / "qwen.jsonl").read_text(encoding="utf-8")

    transcript = read_transcript(text + json.dumps(line | payload))

    assert said(transcript.context) == ["user: A short story.", "assistant: Good."]


def test_calls_of_cursor_get_ids_of_their_lines() -> None:
    (call,) = agent_sample("cursor.jsonl").entries[1].message.tool_calls

    assert (call.id, call.name, call.arguments) == ("line-2-2", "Shell", {"command": "oven --shelf 2"})


def test_the_final_text_of_droid_is_shown_once() -> None:
    transcript = agent_sample("droid_stream.jsonl")

    assert said(transcript.entries)[-1] == WARM
    assert transcript.report.count("mirror") == 1
    assert agent_sample("droid.jsonl").cwd == "/srv/bakery"


def test_a_tool_that_grok_runs_itself_is_a_call_with_its_status() -> None:
    transcript = agent_sample("grok.jsonl")

    assert said(transcript.entries)[4:6] == ["assistant:  web_search()", "tool:  = completed"]
    assert [entry.kind for entry in transcript.entries[:2]] == ["injected", "said"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("sessions/%2Fsrv%2Fbakery/0198/chat_history.jsonl", ("0198", "/srv/bakery")),
        ("a/b/chat_history.jsonl", ("", "")),
    ],
)
def test_grok_is_named_by_its_folder_only_where_that_is_its_own(path: str, expected: tuple[str, str]) -> None:
    transcript = read_transcript((AGENTS / "grok.jsonl").read_text(encoding="utf-8"), path)

    assert (transcript.id, transcript.cwd) == expected


def test_the_parts_of_a_step_of_kimi_are_one_reply() -> None:
    transcript = agent_sample("kimi.jsonl")

    assert said(transcript.entries) == [
        ASKED,
        "assistant: I look. oven()",
        "tool:  = 220 degrees",
        WARM,
        "user: The timer rang.",
    ]
    assert [tool.name for tool in transcript.tools] == ["oven"]
    assert said(transcript.context) == ["user: The oven has 220 degrees.", "user: The timer rang."]
    assert transcript.entries[0].time == "2026-03-01T09:00:18.000+00:00"


def test_an_agent_of_kimi_joins_its_session() -> None:
    text = (AGENTS / "kimi.jsonl").read_text(encoding="utf-8").replace('"main"', '"agent-1"')

    transcript = read_transcript(text, "sessions/wd_x/session_77/agents/agent-1/wire.jsonl")

    assert (transcript.id, transcript.agent, len(transcript.entries)) == ("77", "agent-1", 5)


def test_the_log_of_kimi_cli_is_read() -> None:
    def line(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": 1772355600.5, "message": {"type": kind, "payload": payload}}

    call = {"type": "function", "id": "c1", "function": {"name": "oven", "arguments": "{}"}}

    transcript = read(
        line("TurnBegin", {"user_input": "How warm is the oven?"}),
        line("StepBegin", {"n": 1}),
        line("ContentPart", {"type": "text", "text": "I look."}),
        line("ToolCall", call),
        line("ToolResult", {"tool_call_id": "c1", "return_value": {"is_error": False, "output": "220 degrees"}}),
        line("ContentPart", {"type": "text", "text": "It has 220 degrees."}),
    )

    assert said(transcript.entries) == [ASKED, "assistant: I look. oven()", "tool:  = 220 degrees", WARM]


def test_a_result_of_antigravity_without_a_call_gets_one() -> None:
    transcript = agent_sample("antigravity.jsonl")

    assert said(transcript.entries)[1:5] == [
        "assistant:  oven()",
        "tool:  = 220 degrees",
        "assistant:  view_file()",
        "tool:  = recipe: rye",
    ]
    assert [note.line for note in transcript.report.notes] == [5]
    assert transcript.compactions[0].summary == "The oven has 220 degrees."


def test_hermes_is_read_with_its_reasoning() -> None:
    transcript = agent_sample("hermes.json")

    assert (transcript.id, transcript.model, transcript.cwd) == ("20260301_090000_ab", "hermes-4", "/srv/bakery")
    assert reasoning(transcript.entries[1].message) == ["I have to look."]
    assert said(transcript.entries)[1:] == ["assistant:  oven()", "tool:  = 220 degrees", WARM]


def test_a_message_of_opencode_becomes_its_rounds() -> None:
    transcript = agent_sample("opencode.json")

    assert said(transcript.entries) == [
        ASKED,
        "user: Called by the bakery.",
        "assistant:  oven() bell()",
        "tool:  = 220 degrees = no bell",
        WARM,
    ]
    assert transcript.entries[1].kind == "injected"
    assert [note.text for note in transcript.report.notes] == ["unknown part 'hologram': kept, not part of a message"]


def test_a_subagent_of_opencode_names_its_parent() -> None:
    body = json.loads((AGENTS / "opencode.json").read_text(encoding="utf-8"))
    body["info"]["parentID"] = "ses_0"

    transcript = read_transcript(json.dumps(body))

    assert (transcript.id, transcript.agent) == ("ses_0", "ses_1")


def test_both_versions_of_openhands_are_read() -> None:
    assert said(agent_sample("openhands.json").entries) == [
        ASKED,
        "assistant: I look. execute_bash()",
        "tool:  = 220 degrees",
        WARM,
    ]
    assert said(agent_sample("openhands_events.jsonl").entries)[1] == "assistant: I look. terminal()"


def test_each_line_of_a_data_set_is_a_conversation() -> None:
    line = json.dumps({"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}]})

    assert [each.line for each in split_conversations(f"{line}\n{line}\n")] == [1, 2]
    assert split_conversations(line) == []
    with pytest.raises(TranscriptError, match="there are 2 conversations in it"):
        read_transcript(f"{line}\n{line}\n")


def test_atif_has_results_with_the_step_and_subagents_inside() -> None:
    transcript = agent_sample("atif.json")

    assert said(transcript.entries) == [ASKED, "assistant: I look. oven()", "tool:  = 220 degrees", WARM]
    assert [(each.name, len(each.entries)) for each in transcript.branches] == [("counter", 2)]
    assert (transcript.model, [tool.name for tool in transcript.tools]) == ("gpt-5", ["oven"])


@pytest.mark.parametrize("kind", ["tool_use", "tool_result", "thinking"])
def test_a_block_of_atif_that_no_result_can_have_is_left_out(kind: str) -> None:
    body = json.loads((AGENTS / "atif.json").read_text(encoding="utf-8"))
    (result,) = (each for step in body["steps"] for each in step.get("observation", {}).get("results", ()))
    result["content"] = [{"type": kind}, {"type": "text", "text": "220 degrees"}]

    transcript = read_transcript(json.dumps(body))

    assert said(transcript.entries) == said(agent_sample("atif.json").entries)


def test_chats_of_aider_begin_with_an_empty_context() -> None:
    transcript = agent_sample("aider.md")

    assert said(transcript.entries)[0] == "user: How warm is\nthe oven?"
    assert said(transcript.context) == ["user: And now?", "assistant: It is cold."]


def test_spaces_behind_the_start_of_a_chat_of_aider_take_linear_time() -> None:
    def read_spaces(number: int) -> None:
        read_transcript(f"# aider chat started at {' ' * number}x\n#### hi\n\nyo\n")

    assert_linear(read_spaces, 4_000, 16_000)


def test_markdown_that_is_not_a_history_is_refused() -> None:
    with pytest.raises(Exception, match="not a transcript that Nexus knows"):
        read_transcript("# Notes\n\n#### A heading\n\nText.\n")


def test_a_tree_of_opencode_is_read_from_the_file_of_the_session(tmp_path: Path) -> None:
    text = gather(write_opencode_tree(tmp_path))

    assert text is not None
    assert said(read_transcript(text).entries) == said(agent_sample("opencode.json").entries)


@pytest.mark.parametrize(("limit", "value"), [("MAX_TREE_FILES", 3), ("MAX_TREE_BYTES", 300)])
def test_a_tree_that_is_too_large_is_refused_with_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    session = write_opencode_tree(tmp_path)
    monkeypatch.setattr(f"nexus_plugins.transcripts._pieces.{limit}", value)

    with pytest.raises(TranscriptError, match=r"MiB or .* files belong to the conversation") as refused:
        gather(session)

    assert (refused.value.code, refused.value.path) == ("too-large", str(session))


HUGE = "1" + "0" * 400


def test_a_time_that_is_no_time_hides_no_message() -> None:
    text = (AGENTS / "opencode.json").read_text(encoding="utf-8")
    times = re.compile(r'"created": \d+')
    assert times.search(text)

    transcript = read_transcript(times.sub(f'"created": {HUGE}', text))

    assert said(transcript.entries) == said(agent_sample("opencode.json").entries)
    assert {entry.time for entry in transcript.entries} == {""}


def test_a_message_of_a_tree_with_a_huge_time_is_the_last(tmp_path: Path) -> None:
    session = write_opencode_tree(tmp_path)
    body = f'{{"id": "a", "sessionID": "ses_1", "role": "user", "time": {{"created": {HUGE}}}}}'
    (tmp_path / "storage/message/ses_1/a.json").write_text(body, encoding="utf-8")

    gathered = json.loads(gather(session) or "")

    assert [each["info"]["id"] for each in gathered["messages"]][-1] == "a"


def test_links_in_a_tree_of_opencode_are_not_followed(tmp_path: Path) -> None:
    session = write_opencode_tree(tmp_path)
    secret = tmp_path / "secret.json"
    secret.write_text('{"type": "text", "text": "secret"}', encoding="utf-8")
    (tmp_path / "storage/part/msg_1/999.json").symlink_to(secret)

    assert "secret" not in (gather(session) or "")


@pytest.mark.parametrize("name", ["../../secret", "a/b", ""])
def test_a_session_of_opencode_cannot_name_another_folder(tmp_path: Path, name: str) -> None:
    session = write_opencode_tree(tmp_path)
    body = json.loads(session.read_text(encoding="utf-8")) | {"id": name}
    session.write_text(json.dumps(body), encoding="utf-8")

    assert gather(session) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are none here")
@pytest.mark.parametrize("name", ["session/p/x.json", "base_state.json"])
def test_a_pipe_in_the_place_of_a_conversation_is_not_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)

    assert gather(path) is None


def test_the_database_of_opencode_is_read_and_not_changed(tmp_path: Path) -> None:
    body = json.loads((AGENTS / "opencode.json").read_text(encoding="utf-8"))
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT)")
        database.execute("CREATE TABLE message (id TEXT, session_id TEXT, data TEXT)")
        database.execute("CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)")
        database.execute("INSERT INTO session VALUES ('ses_1', NULL, '/srv/bakery', 'Oven', '1')")
        for message in body["messages"]:
            info = message["info"]
            database.execute("INSERT INTO message VALUES (?, 'ses_1', ?)", (info["id"], json.dumps(info)))
            for part in message["parts"]:
                row = (part["id"], info["id"], json.dumps(part))
                database.execute("INSERT INTO part VALUES (?, ?, ?)", row)
    database.close()
    before = path.read_bytes()

    text = gather(path)

    assert text is not None
    assert said(read_transcript(text).entries) == said(agent_sample("opencode.json").entries)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["opencode.db"]


def test_the_chats_of_cursors_database_are_read(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    tool = {
        "toolCallId": "c1",
        "name": "oven",
        "rawArgs": '{"shelf": 2}',
        "result": "220 degrees",
        "status": "completed",
    }
    bubbles = {
        "b1": {"bubbleId": "b1", "type": 1, "text": "How warm is the oven?"},
        "b2": {
            "bubbleId": "b2",
            "type": 2,
            "text": "",
            "thinking": {"text": "I have to look."},
            "toolFormerData": tool,
        },
        "b3": {"bubbleId": "b3", "type": 2, "text": "It has 220 degrees."},
    }
    chat = {"composerId": "x1", "name": "Oven", "fullConversationHeadersOnly": [{"bubbleId": each} for each in bubbles]}
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE cursorDiskKV (key TEXT, value BLOB)")
        database.execute("INSERT INTO cursorDiskKV VALUES ('composerData:x1', ?)", (json.dumps(chat).encode(),))
        for name, body in bubbles.items():
            row = (f"bubbleId:x1:{name}", json.dumps(body).encode())
            database.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", row)
    database.close()

    text = gather(path)

    assert text is not None
    transcript = read_transcript(text)
    assert (transcript.format, transcript.id) == ("cursor", "x1")
    assert said(transcript.entries) == [ASKED, "assistant:  oven()", "tool:  = 220 degrees", WARM]


def test_the_database_of_hermes_is_read_without_copies(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    calls = json.dumps([{"id": "c1", "type": "function", "function": {"name": "oven", "arguments": "{}"}}])
    rows = [
        ("user", "How warm is the oven?", None, None, 1),
        ("user", "How warm is the oven?", None, None, 0),
        ("assistant", "", calls, None, 1),
        ("tool", "220 degrees", None, "c1", 1),
        ("assistant", "It has 220 degrees.", None, None, 1),
    ]
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (id TEXT, model TEXT, started_at REAL)")
        database.execute(
            "CREATE TABLE messages (session_id TEXT, role TEXT, content, tool_calls, tool_call_id, active INT)"
        )
        database.execute("INSERT INTO sessions VALUES ('h1', 'hermes-4', 1772355600.0)")
        for row in rows:
            database.execute("INSERT INTO messages VALUES ('h1', ?, ?, ?, ?, ?)", row)
    database.close()

    text = gather(path)

    assert text is not None
    assert said(read_transcript(text).entries) == [ASKED, "assistant:  oven()", "tool:  = 220 degrees", WARM]


@pytest.mark.parametrize("name", ["state.db", "state.vscdb", "opencode.db"])
def test_a_damaged_database_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)

    with pytest.raises(TranscriptError, match="the database cannot be read"):
        gather(tmp_path / name)


def write_hermes(path: Path, *statements: str, more: str = "") -> Path:
    """Write a database with the sessions `good` and `bad`, of which `good` has a message."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (id, model, started_at)")
        database.execute(f"CREATE TABLE messages (session_id, role, content{more})")
        database.execute("INSERT INTO sessions VALUES ('good', 'm', 1), ('bad', 'm', 1)")
        database.execute("INSERT INTO messages (session_id, role, content) VALUES ('good', 'user', 'hi')")
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


def list_hermes(path: Path) -> list[str]:
    return [each["session_id"] for each in json.loads(gather(path) or "")]


@pytest.mark.parametrize("content", [f"char(0) || 'json:{'[' * 150}{']' * 150}'", "cast(x'ff' as text)"])
def test_an_odd_value_of_hermes_hides_no_other_session(tmp_path: Path, content: str) -> None:
    path = write_hermes(tmp_path / "state.db", f"INSERT INTO messages VALUES ('bad', 'user', {content})")  # noqa: S608 - our own text

    found = split_conversations(gather(path) or "")

    assert [read_transcript(each.text).id for each in found] == ["good", "bad"]


def test_a_deep_chat_of_cursor_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE cursorDiskKV (key TEXT, value BLOB)")
        for name, value in (("good", "1"), ("bad", "[" * 150 + "]" * 150)):
            chat = f'{{"composerId": "{name}", "conversation": [{{"type": 1, "text": "hi", "x": {value}}}]}}'
            database.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"composerData:{name}", chat))
    database.close()

    assert read_transcript(gather(path) or "").id == "good"


def test_a_repeated_session_of_a_database_is_read_once(tmp_path: Path) -> None:
    path = write_hermes(tmp_path / "state.db", *["INSERT INTO sessions VALUES ('good', 'm', 1)"] * 5)

    assert list_hermes(path) == ["good"]


def test_a_generated_column_of_a_database_is_not_computed(tmp_path: Path) -> None:
    path = write_hermes(tmp_path / "state.db", more=", tool_name AS (hex(zeroblob(100)))")

    assert "0000" not in (gather(path) or "")


def test_more_of_a_database_than_a_transcript_may_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus_plugins.transcripts._databases._MAX_BYTES", 1000)
    path = write_hermes(tmp_path / "state.db", "INSERT INTO messages VALUES ('bad', 'user', hex(zeroblob(600)))")

    with pytest.raises(TranscriptError, match="more than 1000 bytes") as caught:
        gather(path)

    assert caught.value.code == "too-large"


def test_a_view_in_a_database_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'composerData:' || i, '{}' FROM n"
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE VIEW cursorDiskKV (key, value) AS {endless}")
    database.close()

    assert gather(path) is None


def test_events_of_openhands_are_gathered_without_keys(tmp_path: Path) -> None:
    state = {
        "id": "oh-1",
        "agent": {"llm": {"model": "gpt-5", "api_key": "sk-hidden"}},
        "workspace": {"working_dir": "/srv"},
    }
    (tmp_path / "base_state.json").write_text(json.dumps(state), encoding="utf-8")
    (tmp_path / "events").mkdir()
    lines = (AGENTS / "openhands_events.jsonl").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        (tmp_path / f"events/event-{number:05}.json").write_text(line, encoding="utf-8")

    text = gather(tmp_path / "base_state.json")

    assert text is not None
    assert "sk-hidden" not in text
    transcript = read_transcript(text)
    assert (transcript.id, transcript.model, transcript.cwd) == ("oh-1", "gpt-5", "/srv")
    assert said(transcript.entries)[0] == ASKED


DEEP = "[" * 400 + "]" * 400


@pytest.mark.parametrize("name", [name for name in JSON_FILES if name.endswith("jsonl")])
def test_deep_nesting_in_any_field_is_survived(name: str) -> None:
    lines = []
    for line in (AGENTS / name).read_text(encoding="utf-8").splitlines():
        lines.append(line)
        places = ('"How warm is the oven?"', '"220 degrees"', '{"shelf": 2}', '{"command": "oven"}')
        lines += [line.replace(old, DEEP) for old in places if old in line]

    try:
        transcript = read_transcript(lines, "file")
    except TranscriptError as error:
        assert error.code == "mostly-opaque"  # noqa: PT017 - reading may succeed as well
    else:
        assert transcript.format == FILES[name]


# ---- another implementation of the hook ------------------------------------------------------------------------------


def score_parrot(value: dict[str, Any]) -> int:
    return SCORE_OWN if "squawk" in value else SCORE_NONE


def read_parrot(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
    found = EntryCollector("parrot", account)
    for record in records:
        found.add("assistant", str(record.value["squawk"]), record)
    return found.build(id="polly")


PARROT = TranscriptFormat("parrot", "the talk of a parrot", score_parrot, read_lines=read_parrot)


def fail_to_read(_records: Sequence[JsonLine], _account: LineAccount) -> Transcript:
    raise ZeroDivisionError


BROKEN = TranscriptFormat("broken", "nothing", score_parrot, read_lines=fail_to_read)


class ParrotPlugin:
    @hookimpl
    def nexus_transcripts(self) -> list[TranscriptReader]:
        return [TranscriptReader("parrot", "Parrot", f"{__name__}:PARROT")]


class BadPlugin:
    def __init__(self, name: str, target: str) -> None:
        self._given = name, target

    @hookimpl
    def nexus_transcripts(self) -> list[TranscriptReader]:
        return [TranscriptReader(self._given[0], "Bad", self._given[1])]


def test_a_plugin_adds_a_reader(tmp_path: Path) -> None:
    with Nexus(tmp_path, home=tmp_path / "home", plugins=[ParrotPlugin()]) as nexus:
        formats = load_formats(nexus.host)

    transcript = read_transcript('{"squawk": "Hello!"}\n{"squawk": "Bye!"}', formats=formats)

    assert (transcript.format, said(transcript.entries)) == ("parrot", ["assistant: Hello!", "assistant: Bye!"])
    assert check_plugin(ParrotPlugin()) == []


@pytest.mark.parametrize(
    ("name", "target", "problem"),
    [
        ("parrot", "no_such_module:FORMAT", "raised ModuleNotFoundError"),
        ("budgie", f"{__name__}:PARROT", "is the format 'parrot', expected the TranscriptFormat 'budgie'"),
        ("parrot", f"{__name__}:AGENTS", "expected the TranscriptFormat 'parrot'"),
        ("codex", f"{__name__}:PARROT", "the transcript format 'codex' is taken by Nexus itself"),
    ],
)
def test_a_reader_that_cannot_be_used_is_reported_and_left_out(name: str, target: str, problem: str) -> None:
    host = Host([*BUNDLED, *build_given_candidates([BadPlugin(name, target)])], PluginPolicy(), report=lambda _: None)

    formats = load_formats(host)

    assert problem in str(host.problems[0])
    assert [form.name for form in formats if form.name == name] == (["codex"] if name == "codex" else [])


def test_a_reader_that_fails_is_an_error_with_its_name() -> None:
    with pytest.raises(TranscriptError, match="the reader of broken raised ZeroDivisionError") as caught:
        read_transcript('{"squawk": "Hello!"}\n{"squawk": "Bye!"}', "talk", formats=[BROKEN])

    assert caught.value.code == "reader-failed"


def fail_to_gather(_path: Path) -> str | None:
    raise ZeroDivisionError


def test_a_reader_that_fails_to_gather_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="the reader of broken raised ZeroDivisionError") as caught:
        gather_transcript(tmp_path / "x", [BROKEN._replace(gather_files=fail_to_gather)])

    assert caught.value.code == "reader-failed"


def test_arguments_that_are_no_object_stay_as_the_model_wrote_them() -> None:
    line = {"type": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "oven", "arguments": "{broken"}]}

    transcript = read({"type": "user", "content": "hi", "prompt_index": 0}, line)

    (call,) = transcript.entries[1].message.tool_calls
    assert call == ToolCall("c", "oven", {}, "{broken")


@pytest.mark.slow
def test_no_reader_is_imported_to_show_a_prompt(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from nexus_core.cli.run import run\n"
        "code = run(['show'])\n"
        "loaded = [name for name in sys.modules if 'transcripts' in name]\n"
        "print(code, loaded, file=sys.stderr)\n"
    )

    outcome = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert outcome.stderr.splitlines()[-1] == "0 []"
