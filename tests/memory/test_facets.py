"""Facets of steps, and questions that ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core.dialects.neutral import message_to_json
from nexus_core.memory.facets import find_query_facets, find_step_facets
from nexus_core.types.messages import Message, ToolCall, ToolResult


@pytest.mark.parametrize(
    ("message", "facets"),
    [
        (Message("user", "Always run the linter before you commit."), {"rule"}),
        (Message("assistant", "Always run the linter before you commit."), set()),
        (Message("assistant", "We decided to use the write-ahead log for the ledger."), {"decision"}),
        (Message("assistant", "Raising the timeout of the server did not help at all."), {"rejected"}),
        (Message("assistant", [ToolCall("1", "Bash", {"command": "make test"})]), {"command"}),
        (Message("assistant", [ToolCall("1", "Edit", {"file_path": "src/a.py", "new_string": "x"})]), {"file"}),
        (Message("assistant", [ToolCall("1", "Read", {"file_path": "src/a.py"})]), set()),
        (Message("tool", [ToolResult("1", "ValueError: no such port", is_error=True)]), {"error"}),
        (Message("tool", [ToolResult("1", "fatal: not a git repository")]), {"error"}),
        (Message("tool", [ToolResult("1", "The user doesn't want to proceed with this tool use.")]), {"rejected"}),
        (Message("user", "What time is it?"), set()),
    ],
)
def test_facets_of_a_step_come_from_its_facts(message: Message, facets: set[str]) -> None:
    assert find_step_facets([message_to_json(message)]) == facets


@pytest.mark.parametrize(
    ("text", "facets"),
    [
        ("Which command did we run for the release?", ("command",)),
        ("What failed with the error about the port?", ("error",)),
        ("Why did we decide that the cache is shared?", ("decision",)),
        ("Where did we change the file middleware?", ("file",)),
        ("What have we tried that did not work?", ("rejected",)),
        ("Where does Anna live?", ()),
        ("", ()),
        ("\x00" * 100_000, ()),
    ],
)
def test_question_asks_for_facets_by_its_words(text: str, facets: tuple[str, ...]) -> None:
    assert find_query_facets(text) == facets


@pytest.mark.parametrize("part", [{"kind": "tool_call", "name": "x", "arguments": None}, {"kind": "tool_result"}, {}])
def test_incomplete_part_has_no_facets(part: dict[str, Any]) -> None:
    assert find_step_facets([{"role": "assistant", "parts": [part]}]) == frozenset()
