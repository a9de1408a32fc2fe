"""Memories are the first to go."""

from __future__ import annotations

import pytest

from nexus_core import Section
from nexus_core.request.input import choose_memories, without_memories


def count(text: str) -> int:
    return len(text.split())


def memory(name: str, *, priority: int = 0, required: bool = False, words: int = 10) -> Section:
    return Section(name, title=name, text="word " * words, kind="memory", priority=priority, required=required)


EVENT = Section("git", title="Git", text="clean", kind="event")


def names(sections: list[Section]) -> list[str]:
    return [section.id for section in sections]


@pytest.mark.acceptance("D-06", "X-05")
def test_the_lowest_priority_is_left_out_first() -> None:
    told = choose_memories([memory("low"), memory("high", priority=5), EVENT, memory("middle", priority=2)], 30, count)

    assert names(told.sections) == ["high", "git", "middle"]
    assert names(told.left_out) == ["low"]


def test_of_equals_the_last_is_left_out_first() -> None:
    assert names(choose_memories([memory("a"), memory("b"), memory("c")], 30, count).sections) == ["a", "b"]


@pytest.mark.acceptance("D-06", "X-05")
def test_without_any_room_no_memory_is_told() -> None:
    told = choose_memories([memory("a"), EVENT, memory("b")], -5, count)

    assert names(told.sections) == ["git"]
    assert sorted(names(told.left_out)) == ["a", "b"]


def test_what_must_not_be_left_out_stays() -> None:
    sections = [memory("a"), memory("must", required=True), EVENT]

    assert names(choose_memories(sections, 0, count).sections) == ["must", "git"]
    assert names(without_memories(sections)) == ["must", "git"]
