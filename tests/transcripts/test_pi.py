"""Sessions of pi."""

from __future__ import annotations

from typing import Any

from nexus_core.types.messages import Image, Opaque, Reasoning, Text, ToolCall, Usage
from tests.transcripts.support import every_line, read, said, sample

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"}


def entry(name: str, parent: str | None, kind: str = "message", **more: Any) -> dict[str, Any]:
    if kind == "message" and "message" not in more:
        more["message"] = {"role": "user", "content": name}
    return {"type": kind, "id": name, "parentId": parent, "timestamp": "t", **more}


def test_the_main_path_leads_to_the_last_entry() -> None:
    transcript = sample("pi.jsonl")

    assert (transcript.format, transcript.id, transcript.model) == ("pi", "5d0c-garden", "claude-sonnet-4-5")
    assert said(transcript.entries) == [
        "user: Which beds need water?",
        "assistant: I will read the log. read()",
        "tool:  = bed 1: Monday\nbed 2: Friday",
        "assistant: Bed 1 does.",
        "user: Both beds were watered on another branch.",
        "user: Ran `date +%A`\n```\nTuesday\n```",
        "user: It will rain tonight.",
        "user: Is rain enough? Look:",
        "assistant: Yes, rain is enough.",
    ]


def test_an_answer_has_its_parts_its_cost_and_its_end() -> None:
    answer = sample("pi.jsonl").entries[1]

    assert answer.message.parts == (
        Reasoning(text="The log tells.", signature="bG9n", api="anthropic"),
        Text("I will read the log."),
        ToolCall("call_a", "read", {"path": "water.log"}),
    )
    assert answer.usage == Usage(input_tokens=450, output_tokens=11, cached_input_tokens=400, cache_write_tokens=30)
    assert (answer.stop, answer.ids, answer.parent) == ("tools", ("0a000003",), "0a000002")


def test_what_was_left_is_a_fork_and_its_summary_is_marked() -> None:
    transcript = sample("pi.jsonl")

    (fork,) = transcript.branches
    assert (fork.parent, said(fork.entries)) == ("0a000005", ["user: Water both.", "assistant: Both beds are watered."])
    assert transcript.entries[4].kind == "branch-summary"


def test_a_compaction_keeps_the_entries_from_the_one_it_names() -> None:
    transcript = sample("pi.jsonl")

    (compaction,) = transcript.compactions
    assert (compaction.line, compaction.at, compaction.tokens_before) == (14, 8, 461)
    assert said(transcript.context) == [
        "user: Bed 1 needs water; rain is expected.",
        "user: It will rain tonight.",
        "user: Is rain enough? Look:",
        "assistant: Yes, rain is enough.",
    ]
    assert compaction.context[0].kind == "summary"


def test_what_is_kept_from_the_model_is_no_message() -> None:
    kinds = {kept.number: kept.kind for kept in sample("pi.jsonl").metadata}

    assert kinds == {1: "session", 2: "model_change", 11: "message", 16: "label"}


def test_what_the_program_says_in_the_users_name_is_marked() -> None:
    assert [each.kind for each in sample("pi.jsonl").entries][5:8] == ["injected", "injected", "said"]


def test_a_picture_is_a_picture() -> None:
    assert sample("pi.jsonl").entries[7].message.parts[1] == Image(mime="image/png", data="iVBORw0KGgo=")


def test_in_old_files_each_entry_follows_the_one_before() -> None:
    lines = [entry(name, None) for name in "ab"]
    compaction = {"type": "compaction", "timestamp": "t", "summary": "so far", "firstKeptEntryIndex": 2}
    for line in lines:
        del line["id"], line["parentId"]

    transcript = read({"type": "session", "id": "s", "timestamp": "t"}, *lines, compaction)

    assert said(transcript.entries) == ["user: a", "user: b"]
    assert said(transcript.context) == ["user: so far", "user: b"]
    assert transcript.entries[0].ids == ()


def test_a_parent_that_is_lost_is_the_line_before() -> None:
    transcript = read(HEADER, entry("a", None), entry("c", "b"))

    assert said(transcript.entries) == ["user: a", "user: c"]
    assert transcript.report.notes[0].line == 3


def test_a_second_beginning_is_a_fork_at_the_root() -> None:
    transcript = read(HEADER, entry("a", None), entry("b", "a"), entry("c", None))

    assert said(transcript.entries) == ["user: c"]
    assert said(transcript.branches[0].entries) == ["user: a", "user: b"]


def test_an_entry_that_is_repeated_is_used_once() -> None:
    transcript = read(HEADER, entry("a", None), entry("a", None), entry("b", "a"))

    assert said(transcript.entries) == ["user: a", "user: b"]
    assert every_line(transcript) == [1, 2, 3, 4]


def test_a_thought_of_responses_is_the_item_it_came_in() -> None:
    item = '{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "seal"}'
    block = {"type": "thinking", "thinking": "so", "thinkingSignature": item}
    message = {"role": "assistant", "api": "openai-responses", "content": [block]}

    (part,) = read(HEADER, entry("a", None, message=message)).entries[0].message.parts

    assert isinstance(part, Reasoning)
    assert (part.encrypted, part.api) == ("seal", "responses")


def test_a_message_in_a_new_shape_is_kept_whole_at_its_place() -> None:
    transcript = read(
        HEADER,
        entry("a", None, message={"role": "toolResult", "content": []}),
        entry("b", "a", message={"role": "assistant", "content": [{"type": "hologram"}]}),
        entry("c", "b", message={"role": "user", "content": "hello"}),
        entry("d", "c", message={"role": "user", "content": "again"}),
    )

    assert transcript.entries[0].message.parts == (Opaque("pi", {"role": "toolResult", "content": []}),)
    assert transcript.entries[0].message.role == "tool"
    assert transcript.entries[1].message.parts == (Opaque("pi", {"type": "hologram"}),)


def test_arguments_without_a_bottom_are_left_to_the_line() -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"in": deep}
    call = {"type": "toolCall", "id": "c", "name": "n", "arguments": deep}

    transcript = read(
        HEADER,
        entry("a", None, message={"role": "assistant", "content": [call]}),
        entry("b", "a", message={"role": "user", "content": "hello"}),
    )

    assert transcript.entries[0].message.parts == (Opaque("pi", {"type": "nested deeper than 100 levels"}),)
    assert transcript.entries[0].raw[0]["id"] == "a"
