"""Sessions of Codex."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core.types.messages import Opaque, Reasoning, Usage
from tests.transcripts.support import every_line, read, said, sample


def item(kind: str = "message", **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": {"type": kind, **payload}}


def user(text: str) -> dict[str, Any]:
    return item(role="user", content=[{"type": "input_text", "text": text}])


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "event_msg", "payload": {"type": kind, **payload}}


def test_messages_are_read_from_items_and_not_from_what_was_shown_of_them() -> None:
    transcript = sample("codex.jsonl")

    assert (transcript.format, transcript.api, transcript.id) == ("codex", "responses", "0199-weather")
    assert said(transcript.entries) == [
        "system: Ask before you write.",
        "user: <environment_context>\n  <cwd>/srv/weather</cwd>\n</environment_context>",
        "user: How warm is it on the roof?",
        "assistant: ",
        "assistant:  read_sensor()",
        "tool:  = 21.5",
        "assistant: 21.5 degrees.",
        "user: And in the garden?",
        "assistant: 19 degrees.",
        "user: Thank you.",
        "assistant: You are welcome.",
    ]
    assert isinstance(transcript.entries[3].message.parts[0], Reasoning)


def test_what_mirrors_an_item_is_kept_and_counted_as_a_mirror() -> None:
    transcript = sample("codex.jsonl")

    assert transcript.report.outcomes["mirror"] == (6, 7, 10, 14, 18, 23, 29)
    assert [kept.kind for kept in transcript.metadata if kept.number in (6, 10)] == [
        "event_msg/user_message",
        "event_msg/exec_command_end",
    ]


def test_only_what_was_typed_is_the_users_own_word() -> None:
    entries = sample("codex.jsonl").entries

    assert [(entry.lines[0], entry.kind) for entry in entries if entry.message.role == "user"] == [
        (3, "injected"),
        (5, "said"),
        (22, "said"),
        (28, "said"),
    ]


def test_instructions_and_tools_of_the_session_stand_beside_the_messages() -> None:
    transcript = sample("codex.jsonl")

    assert [message.content for message in transcript.system] == ["You help with a weather station."]
    assert [tool.name for tool in transcript.tools] == ["read_sensor"]


def test_an_answer_has_the_model_of_its_turn_and_its_cost_once() -> None:
    entries = sample("codex.jsonl").entries

    assert {entry.model for entry in entries if entry.message.role == "assistant"} == {"gpt-5.1-codex"}
    assert [(entry.lines[0], entry.usage) for entry in entries if entry.usage] == [
        (9, Usage(input_tokens=1500, output_tokens=60, cached_input_tokens=1024, reasoning_tokens=32)),
        (15, Usage(input_tokens=1600, output_tokens=8, cached_input_tokens=1500)),
    ]


def test_turns_that_were_taken_back_are_a_branch() -> None:
    (branch,) = sample("codex.jsonl").branches

    assert branch.kind == "rolled-back"
    assert said(branch.entries) == ["user: And in the cellar?", "assistant: There is no sensor in the cellar."]


def test_no_more_turns_are_taken_back_than_there_are() -> None:
    transcript = read(user("one"), user("two"), event("thread_rolled_back", num_turns=9), user("three"))

    assert said(transcript.entries) == ["user: three"]
    assert said(transcript.branches[0].entries) == ["user: one", "user: two"]
    assert transcript.report.notes[0].line == 3


def test_a_compaction_says_what_the_model_read_from_then_on() -> None:
    transcript = sample("codex.jsonl")

    (compaction,) = transcript.compactions
    assert (compaction.line, compaction.at) == (25, 9)
    assert compaction.summary == "The user asked for temperatures: roof 21.5, garden 19."
    assert [entry.kind for entry in compaction.context] == ["said", "said", "said", "summary"]
    assert said(transcript.context)[-2:] == ["user: Thank you.", "assistant: You are welcome."]
    assert len(transcript.context) == 6


def test_an_old_compaction_keeps_what_the_user_typed() -> None:
    transcript = read(
        user("<user_instructions>x</user_instructions>"),
        user("one"),
        event("user_message", message="one"),
        item(role="assistant", content=[{"type": "output_text", "text": "yes"}]),
        {"timestamp": "t", "type": "compacted", "payload": {"message": "They said one."}},
        user("two"),
        event("user_message", message="two"),
    )

    assert said(transcript.context) == ["user: one", "user: They said one.", "user: two"]
    assert "does not say what it kept" in transcript.report.notes[0].text


def test_files_without_envelopes_are_the_same_to_the_reader() -> None:
    transcript = sample("codex_bare.jsonl")

    assert (transcript.format, transcript.id) == ("codex", "0198-barn")
    assert said(transcript.entries)[0] == "user: Count the cows."
    assert said(transcript.entries)[-1] == "assistant: There are twelve."
    assert transcript.report.outcomes["metadata"] == (1, 2, 5)


def test_what_only_the_events_have_is_taken_from_them() -> None:
    transcript = read(
        event("user_message", message="Look."),
        item("function_call", name="shell", call_id="c", arguments="{}"),
        item("function_call_output", call_id="c", output="ok"),
        event("agent_message", message="Done."),
    )

    assert said(transcript.entries) == ["user: Look.", "assistant:  shell()", "tool:  = ok", "assistant: Done."]
    assert [note.line for note in transcript.report.notes] == [1, 4]


def test_items_that_the_model_never_saw_are_no_messages() -> None:
    kinds = {kept.number: kept.kind for kept in sample("codex.jsonl").metadata}

    assert kinds[17] == "response_item/ghost_snapshot"
    assert kinds[27] == "world_state"


def test_an_item_in_a_new_shape_is_kept_whole_at_its_place() -> None:
    transcript = read(item(role="user", content=7), item("function_call_output", call_id="c"), user("a"), user("b"))

    assert [(entry.message.role, type(entry.message.parts[0])) for entry in transcript.entries[:2]] == [
        ("user", Opaque),
        ("tool", Opaque),
    ]
    assert [note.line for note in transcript.report.notes] == [1, 2]


# ---- nothing that looks like conversation goes without a word -----------------------------------------------------


def notes_on(*lines: dict[str, Any]) -> list[tuple[int, str]]:
    return [(note.line, note.text.partition(";")[0]) for note in read(*lines).report.notes]


@pytest.mark.parametrize(
    "events",
    [
        [
            event("tool_call", name="bash", call_id="c1", input={"cmd": "ls"}),
            event("x_end", call_id="c1", output="rye"),
        ],
        [event("bash_begin", call_id="c1", command="ls"), event("bash_end", call_id="c1", aggregated_output="rye")],
        [event("exec_command_end", call_id="c1", name="bash", command=["ls"], stdout="rye")],
    ],
)
def test_calls_and_results_that_are_only_shown_are_part_of_a_session_without_items_of_calls(events: list[Any]) -> None:
    transcript = read(user("Look."), *events)

    assert said(transcript.entries) == ["user: Look.", "assistant:  bash()", "tool:  = rye"]
    assert every_line(transcript) == list(range(1, len(events) + 2))
    assert {note.text for note in transcript.report.notes} == {
        "taken from what was shown; what was sent is not in the file"
    }


def test_reasoning_that_is_only_shown_is_part_of_a_session_without_items_of_reasoning() -> None:
    transcript = read(user("Look."), event("agent_reasoning", text="hm"))

    assert transcript.entries[1].message.parts == (Reasoning(text="hm", api="codex"),)


def test_a_call_is_told_once_and_only_where_no_item_has_it() -> None:
    call = item("function_call", name="shell", arguments="{}", call_id="c1")

    assert notes_on(
        user("Look."),
        call,
        event("exec_command_begin", call_id="c1"),
        event("exec_command_end", call_id="c1"),
        event("exec_command_begin", call_id="c2"),
        event("exec_command_end", call_id="c2"),
        event("web_search_end", call_id="ws_1", query="x"),
    ) == [(5, "a call that is only shown, not among what was sent")]


def test_words_that_are_only_shown_are_told() -> None:
    answer = item(role="assistant", content=[{"type": "output_text", "text": "Here it is.\n\n<plan>…</plan>"}])

    assert notes_on(
        user("# Context\n\nLook at it."),
        event("user_message", message="Look at it."),
        event("user_message", message="And at that."),
        event("agent_reasoning", text="hm"),
        answer,
        event("agent_message", message="Here it is."),
        event("agent_message", message="Something else."),
        event("token_count", info=None),
        event("task_complete", last_agent_message="Here it is."),
        event("poem", text="Roses"),
    ) == [
        (3, "a message that is only shown, not among what was sent"),
        (4, "taken from what was shown"),
        (7, "a message that is only shown, not among what was sent"),
        (10, "an event that is new (poem)"),
    ]


def test_a_session_knows_its_directory() -> None:
    meta = {"type": "session_meta", "payload": {"id": "x", "cwd": "/srv/one"}}
    later = {"type": "turn_context", "payload": {"cwd": "/srv/two"}}

    assert sample("codex.jsonl").cwd == "/srv/weather"
    assert read(meta, later, user("Hi.")).cwd == "/srv/one"
    assert read(later, user("Hi.")).cwd == "/srv/two"
