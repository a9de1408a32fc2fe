"""Where branches leave other paths."""

from __future__ import annotations

import json
from typing import Any

from tests.transcripts.support import read, said, sample


def claude(name: str, parent: str | None, kind: str = "user", **more: Any) -> dict[str, Any]:
    line = {"type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s", **more}
    return line | ({"message": {"role": kind, "content": name}} if kind in ("user", "assistant") else {})


def leaving(transcript: Any) -> list[tuple[list[str], int | None, int]]:
    """What is said on each branch, and where it leaves."""
    return [([each.partition(": ")[2] for each in said(b.entries)], b.leaves, b.at) for b in transcript.branches]


def test_a_branch_of_claude_leaves_the_main_path_behind_an_entry() -> None:
    transcript = read(claude("a", None), claude("b", "a"), claude("c", "b"), claude("x", "a"))

    assert leaving(transcript) == [(["b", "c"], None, 1)]


def test_what_it_follows_need_not_be_a_message() -> None:
    lines = [claude("a", None), claude("n", "a", "system", subtype="note"), claude("b", "n"), claude("x", "n")]

    assert leaving(read(*lines)) == [(["b"], None, 1)]


def test_a_branch_may_leave_a_branch() -> None:
    lines = [claude("a", None), claude("b", "a"), claude("c", "b"), claude("d", "b"), claude("x", "a")]

    found = leaving(read(*lines))

    assert found == [(["c"], 1, 1), (["b", "d"], None, 1)]


def test_a_branch_with_a_beginning_of_its_own_leaves_nothing() -> None:
    side: dict[str, Any] = {"isSidechain": True, "agentId": "7"}

    assert leaving(read(claude("a", None), claude("s", None, **side), claude("b", "a"))) == [(["s"], None, 0)]


def test_a_circle_leaves_nothing() -> None:
    assert leaving(read(claude("x", "y"), claude("y", "x"), claude("a", None)))[0][1:] == (None, 0)


def test_a_branch_of_pi_leaves_behind_whatever_stands_between() -> None:
    transcript = sample("pi.jsonl")

    (branch,) = transcript.branches
    assert (branch.leaves, branch.at) == (None, 4)


def test_branches_of_branches_of_pi_are_told_apart() -> None:
    def entry(name: str, parent: str | None, kind: str = "message") -> dict[str, Any]:
        message = {"message": {"role": "user", "content": name}} if kind == "message" else {}
        return {"type": kind, "id": name, "parentId": parent, "timestamp": "t", **message}

    head = {"type": "session", "id": "s", "timestamp": "t", "cwd": "/"}
    lines = [entry("a", None), entry("m", "a", "model_change"), entry("b", "m"), entry("c", "b"), entry("d", "b")]

    assert leaving(read(head, *lines, entry("x", "a"))) == [(["c"], 1, 1), (["b", "d"], None, 1)]


def test_turns_that_codex_took_back_leave_where_they_began() -> None:
    def item(text: str, role: str = "user") -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return {"timestamp": "t", "type": "response_item", "payload": payload}

    def event(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "t", "type": "event_msg", "payload": payload}

    def turn(text: str) -> list[dict[str, Any]]:
        return [item(text), event(type="user_message", message=text), item(f"re {text}", "assistant")]

    back = event(type="thread_rolled_back", num_turns=1)
    lines = [*turn("1"), *turn("2"), *turn("3"), back, *turn("4"), event(type="thread_rolled_back", num_turns=2)]

    found = leaving(read(*lines, *turn("5")))

    assert found == [(["3", "re 3"], 1, 2), (["2", "re 2", "4", "re 4"], None, 2)]


def test_a_branch_of_chatgpt_leaves_behind_a_node() -> None:
    transcript = sample("chatgpt.json")

    (branch,) = transcript.branches
    assert branch.leaves is None
    assert branch.at == [entry.ids[0] for entry in transcript.entries].index(branch.parent) + 1


def test_branches_of_chatgpt_may_follow_what_says_nothing() -> None:
    def node(parent: str | None, text: str = "") -> dict[str, Any]:
        message = {"author": {"role": "user"}, "content": {"parts": [text]}} if text else None
        return {"parent": parent, "message": message}

    mapping = {"root": node(None), "a": node("root", "a"), "n": node("a"), "b": node("n", "b"), "c": node("n", "c")}

    found = leaving(read(json.dumps({"mapping": mapping, "current_node": "c"}, indent=1)))

    assert found == [(["b"], None, 1)]


def test_a_subagents_own_file_says_whose_it_is() -> None:
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a7"}

    assert read(claude("p", None, **side), claude("q", "p", "assistant", **side)).agent == "a7"
    assert sample("claude.jsonl").agent == ""
