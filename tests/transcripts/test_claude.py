"""Sessions of Claude Code."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core.types.messages import Opaque, Reasoning, Text, ToolCall, Usage
from tests.transcripts.support import every_line, read, said, sample


def line(kind: str, name: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | ({"id": more.pop("reply")} if "reply" in more else {})
    return {"type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s", "message": message, **more}


def use(call: str, name: str = "Read") -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call, "name": name, "input": {}}]


def result(call: str, text: str = "ok") -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": text}]


def test_the_main_path_leads_to_the_newest_line() -> None:
    transcript = sample("claude.jsonl")

    assert (transcript.format, transcript.api, transcript.id) == ("claude-code", "anthropic", "bakery-1")
    assert transcript.model == "claude-opus-4-5-20251101"
    assert said(transcript.entries) == [
        "user: Which loaves cost more than four francs?",
        "assistant: I will look at both price lists. Read() Read()",
        "tool:  = loaf,price\nrye,4.20\nspelt,5.10\nbaguette,2.40",
        "tool:  = No such file.",
        "assistant: Rye and spelt do. There is no list for cakes.",
        "user: Make the rye ten centimes cheaper.",
        "assistant:  Task()",
        "tool:  = Only prices/bread.csv has one.",
        "user: <command-name>/compact</command-name>",
        "user: Go on.",
        "assistant:  Edit()",
        "tool:  = The file was changed.",
        "assistant: Rye costs 4.10 francs now.",
    ]


def test_the_lines_of_one_answer_become_one_message() -> None:
    answer = sample("claude.jsonl").entries[1]

    assert [type(part) for part in answer.message.parts] == [Reasoning, Text, ToolCall, ToolCall]
    assert answer.lines == (4, 5, 6, 8)
    assert answer.ids == ("a-1a", "a-1b", "a-1c", "a-1d")
    assert (answer.parent, answer.reply, answer.stop) == ("u-start", "msg_1", "tools")


def test_an_answer_costs_what_its_last_line_says() -> None:
    assert sample("claude.jsonl").entries[1].usage == Usage(
        input_tokens=9312, output_tokens=96, cached_input_tokens=9000, cache_write_tokens=300
    )


def test_results_of_calls_made_together_are_all_on_the_main_path() -> None:
    transcript = read(
        line("user", "u", None, "go"),
        line("assistant", "a1", "u", use("c1"), reply="m"),
        line("assistant", "a2", "a1", use("c2"), reply="m"),
        line("user", "r2", "a2", result("c2", "two")),
        line("user", "r1", "a1", result("c1", "one")),
        line("assistant", "b", "r2", "done"),
    )

    assert said(transcript.entries) == [
        "user: go",
        "assistant:  Read() Read()",
        "tool:  = two",
        "tool:  = one",
        "assistant: done",
    ]
    assert transcript.branches == ()


def test_an_answer_goes_on_beside_the_path_to_the_next_one() -> None:
    transcript = read(
        line("user", "u", None, "go"),
        line("assistant", "a1", "u", use("c1"), reply="m"),
        line("user", "r1", "a1", result("c1", "one")),
        line("assistant", "a2", "a1", use("c2"), reply="m"),
        line("user", "r2", "a2", result("c2", "two")),
        line("assistant", "b", "r1", "done"),
    )

    assert said(transcript.entries) == [
        "user: go",
        "assistant:  Read() Read()",
        "tool:  = one",
        "tool:  = two",
        "assistant: done",
    ]
    assert transcript.branches == ()


def test_what_the_user_went_back_from_is_a_fork() -> None:
    (fork,) = (branch for branch in sample("claude.jsonl").branches if branch.kind == "fork")

    assert said(fork.entries) == ["user: And how much is the wheat loaf?", "assistant: The list has no wheat loaf."]
    assert fork.parent == "s-1"


def test_a_fork_of_a_fork_is_a_branch_of_its_own() -> None:
    transcript = read(
        line("user", "a", None, "a"),
        line("user", "b", "a", "b"),
        line("user", "c", "b", "c"),
        line("user", "d", "b", "d"),
        line("user", "e", "a", "e"),
    )

    assert said(transcript.entries) == ["user: a", "user: e"]
    assert [(said(branch.entries), branch.parent) for branch in transcript.branches] == [
        (["user: c"], "b"),
        (["user: b", "user: d"], "a"),
    ]


def test_a_second_beginning_is_a_fork_at_the_root() -> None:
    transcript = read(
        line("user", "a", None, "first try"),
        line("assistant", "b", "a", "yes"),
        line("user", "c", None, "second try"),
        line("assistant", "d", "c", "yes"),
    )

    assert said(transcript.entries) == ["user: second try", "assistant: yes"]
    assert said(transcript.branches[0].entries) == ["user: first try", "assistant: yes"]


@pytest.mark.parametrize("parent", [None, "missing"])
def test_where_no_line_says_what_it_follows_the_file_has_the_order(parent: str | None) -> None:
    lines = [line("user", name, None, name) for name in "abc"]
    for each in lines if parent else ():
        del each["parentUuid"]

    assert said(read(*lines).entries) == ["user: a", "user: b", "user: c"]


def test_a_line_whose_parent_is_lost_follows_the_line_before() -> None:
    transcript = read(line("user", "a", None, "a"), "{broken", line("user", "c", "b", "c"), line("user", "d", "c", "d"))

    assert said(transcript.entries) == ["user: a", "user: c", "user: d"]
    assert transcript.entries[1].parent == "b"
    assert [note.line for note in transcript.report.notes] == [2, 3]


def test_a_subagent_is_kept_apart() -> None:
    (subagent,) = (branch for branch in sample("claude.jsonl").branches if branch.kind == "subagent")

    assert subagent.name == "agent-7"
    assert said(subagent.entries)[1] == "assistant: Only prices/bread.csv has one."


def test_in_its_own_file_a_subagent_is_the_conversation() -> None:
    transcript = read(
        line("user", "a", None, "look", isSidechain=True, agentId="x"),
        line("assistant", "b", "a", "found", isSidechain=True, agentId="x"),
    )

    assert said(transcript.entries) == ["user: look", "assistant: found"]


def test_a_compaction_stands_between_what_it_covers_and_what_follows() -> None:
    transcript = sample("claude.jsonl")

    (compaction,) = transcript.compactions
    assert (compaction.line, compaction.at, compaction.tokens_before) == (20, 8, 12450)
    assert compaction.summary.startswith("Summary: the user wants the rye loaf")
    assert [(entry.kind, entry.lines) for entry in compaction.context] == [("summary", (21,))]


def test_the_context_is_the_summary_and_what_follows() -> None:
    context = sample("claude.jsonl").context

    assert [entry.lines[0] for entry in context] == [21, 22, 24, 25, 26, 27]


@pytest.mark.parametrize(
    "preserved",
    [{"preservedMessages": {"uuids": ["k1", "k2"]}}, {"preservedSegment": {"headUuid": "k1", "tailUuid": "k2"}}],
)
def test_messages_that_a_compaction_kept_are_still_in_the_context(preserved: dict[str, Any]) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "sessionId": "s"}
    transcript = read(
        line("user", "old", None, "old"),
        line("user", "k1", "old", "kept one"),
        line("assistant", "k2", "k1", "kept two"),
        boundary | {"logicalParentUuid": "k2", "compactMetadata": preserved},
        line("user", "s", "b", "the summary", isCompactSummary=True),
        line("user", "new", "k2", "new"),  # it follows what was kept, past the summary
    )

    assert said(transcript.context) == [
        "user: the summary",
        "user: kept one",
        "assistant: kept two",
        "user: new",
    ]
    assert said(transcript.entries) == ["user: old", "user: kept one", "assistant: kept two", "user: new"]
    assert transcript.branches == ()


def test_a_compaction_that_the_user_went_back_from_counts_no_more() -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "sessionId": "s"}
    transcript = read(
        line("user", "a", None, "a"),
        line("user", "c", "a", "c"),
        boundary | {"logicalParentUuid": "c"},
        line("user", "s", "b", "the summary", isCompactSummary=True),
        line("user", "d", "a", "d"),
    )

    assert transcript.compactions == ()
    assert said(transcript.context) == ["user: a", "user: d"]
    assert every_line(transcript) == [1, 2, 3, 4, 5]


def test_lines_of_every_other_kind_are_kept_as_they_are() -> None:
    metadata = sample("claude.jsonl").metadata

    assert [(kept.number, kept.kind) for kept in metadata] == [
        (1, "summary"),
        (2, "file-history-snapshot"),
        (11, "system/turn_duration"),
        (19, "api-error"),
        (23, "attachment/todo"),
        (28, "oven-temperature"),
    ]
    assert metadata[-1].value == {"type": "oven-temperature", "celsius": 230, "sessionId": "bakery-1"}


def test_what_the_program_says_in_the_users_name_is_marked() -> None:
    kinds = {entry.lines[0]: entry.kind for entry in sample("claude.jsonl").entries}

    assert [number for number, kind in kinds.items() if kind == "injected"] == [22]


def test_the_lines_themselves_stay_with_the_message() -> None:
    entry = sample("claude.jsonl").entries[2]

    assert entry.raw[0]["toolUseResult"] == {"file": {"filePath": "prices/bread.csv", "numLines": 4}}
    assert entry.raw[0]["message"]["content"][0]["tool_use_id"] == "toolu_1"  # type: ignore[index]


def test_a_line_that_is_repeated_is_used_once() -> None:
    transcript = read(line("user", "a", None, "a"), line("user", "a", None, "a"), line("user", "b", "a", "b"))

    assert said(transcript.entries) == ["user: a", "user: b"]
    assert transcript.report.outcomes["skipped"] == (2,)
    assert transcript.report.notes[0].text == "the same uuid as in line 1"


def test_a_message_in_a_new_shape_is_kept_whole_at_its_place() -> None:
    transcript = read(
        line("user", "a", None, {"shape": "new"}),
        line("assistant", "b", "a", [{"no": "type"}], reply="m"),
        line("user", "c", "b", "hello"),
        line("assistant", "d", "c", "hi", reply="n"),
    )

    assert [entry.message.parts for entry in transcript.entries[:2]] == [
        (Opaque("claude-code", {"role": "user", "content": {"shape": "new"}}),),
        (Opaque("claude-code", {"id": "m", "role": "assistant", "content": [{"no": "type"}]}),),
    ]
    assert "kept as it is" in transcript.report.notes[0].text


def test_a_cost_in_a_new_shape_does_not_cost_the_answer() -> None:
    answer = line("assistant", "a", None, "yes", reply="m")
    answer["message"]["usage"] = {"input_tokens": "many"}

    (entry,) = read(answer).entries

    assert (entry.message.content, entry.usage, entry.reply) == ("yes", None, "m")


def test_what_is_printed_as_stream_json_is_understood() -> None:
    transcript = read(
        {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Read"]},
        {
            "type": "assistant",
            "session_id": "s",
            "message": {"role": "assistant", "content": use("c", "Task"), "id": "m"},
        },
        {
            "type": "assistant",
            "session_id": "s",
            "parent_tool_use_id": "c",
            "message": {"role": "assistant", "content": "inside", "id": "n"},
        },
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": result("c")}},
        {"type": "result", "session_id": "s", "result": "done"},
    )

    assert said(transcript.entries) == ["assistant:  Task()", "tool:  = ok"]
    assert [(branch.kind, said(branch.entries)) for branch in transcript.branches] == [
        ("subagent", ["assistant: inside"])
    ]


def test_lines_that_follow_each_other_in_a_circle_end_somewhere() -> None:
    transcript = read(line("user", "a", "b", "a"), line("user", "b", "a", "b"))

    assert said(transcript.entries) == ["user: a", "user: b"]


def test_calls_and_results_without_a_message_are_read() -> None:
    transcript = read(
        line("user", "a", None, "Open README"),
        {"type": "tool_use", "sessionId": "s", "uuid": "t", "name": "bash", "input": {"command": "cat README"}},
        {"type": "tool_result", "sessionId": "s", "uuid": "r", "name": "bash", "output": "# Bakery"},
    )

    assert said(transcript.entries)[1:] == ["assistant:  bash()", "tool:  = # Bakery"]


def bare(kind: str, name: str, value: object) -> dict[str, Any]:
    """A call or result on a line of its own, as older versions wrote it."""
    fields = {"name": name, "input": value} if kind == "tool_use" else {"output": value}
    return {"type": kind, "sessionId": "s", "uuid": f"{kind} {name}", **fields}


def read_pairs(*lines: dict[str, Any]) -> list[tuple[str, str]]:
    """The name of each call, with the text of its result."""
    messages = read(line("user", "a", None, "Look"), *lines).messages
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return [(names[found.call_id], found.text) for message in messages for found in message.tool_results]


def test_results_without_a_message_answer_their_calls_in_file_order() -> None:
    calls = [bare("tool_use", "ls", {}), bare("tool_use", "ls2", {})]
    results = [bare("tool_result", "r1", "one"), bare("tool_result", "r1", "one"), bare("tool_result", "r2", "two")]

    assert read_pairs(*calls, *results) == [("ls", "one"), ("ls2", "two")]


def test_a_result_without_a_message_does_not_answer_a_call_before_the_user_wrote() -> None:
    prompt = {"type": "user", "sessionId": "s", "uuid": "b", "message": {"role": "user", "content": "Stop. Again"}}

    assert read_pairs(
        bare("tool_use", "ls", {}), prompt, bare("tool_use", "ls2", {}), bare("tool_result", "r2", "two")
    ) == [("ls2", "two")]


def test_a_call_that_cannot_be_read_has_one_note() -> None:
    call = {"type": "tool_use", "sessionId": "s", "uuid": "t", "name": "ls", "input": "text"}

    notes = read(line("user", "a", None, "Look"), call).report.notes

    assert [(note.line, note.text.partition(":")[0]) for note in notes] == [(2, "kept as it is")]


def test_a_type_that_is_no_text_is_survived() -> None:
    transcript = read(line("user", "a", None, "Rye?"), {"type": ["tool_use"], "sessionId": "s", "input": {}})

    assert said(transcript.entries) == ["user: Rye?"]


def test_another_message_with_the_same_uuid_is_read() -> None:
    first, other = line("user", "a", None, "Rye?"), line("user", "a", None, "Spelt?")

    transcript = read(first, other, other)

    assert sorted(said(transcript.entries) + [text for each in transcript.branches for text in said(each.entries)]) == [
        "user: Rye?",
        "user: Spelt?",
    ]
