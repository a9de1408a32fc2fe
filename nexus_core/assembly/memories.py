"""Memories are told while there is room for them, and are the first to go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.rendering import render_current_section

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.types.prompt import Section

MEMORY_TOKENS = 4000
"""Memories take no more, unless `budget.memory` says otherwise."""
_BETWEEN = 2
"""Tokens for the blank lines around a block, at most."""


class Told(NamedTuple):
    """The sections that are told, and the memories that are not."""

    sections: list[Section]
    left_out: list[Section]


def weigh_section(section: Section, count: Callable[[str], int]) -> int:
    """What a section takes in a message."""
    return count(render_current_section(section)) + _BETWEEN


def without_memories(sections: Sequence[Section]) -> list[Section]:
    """The sections that are told in any case."""
    return [section for section in sections if not is_optional(section)]


def is_optional(section: Section) -> bool:
    """Whether a section is a memory that may be left out."""
    return section.kind == "memory" and not section.required


def choose_memories(sections: Sequence[Section], room: int, count: Callable[[str], int]) -> Told:
    """Everything that is no memory, and the memories, without those of the lowest priority that do not fit.

    Args:
        sections: What is to be told, in its order; what must not be left out is paid for already.
        room: Tokens there are for memories.
        count: Counts a text.
    """
    optional = [section for section in sections if is_optional(section)]
    sizes = {id(section): weigh_section(section, count) for section in optional}
    left_out: list[Section] = []
    # Of equals, the last one first.
    for section in [each for _, each in sorted(enumerate(optional), key=lambda pair: (pair[1].priority, -pair[0]))]:
        if sum(sizes.values()) <= room:
            break
        del sizes[id(section)]
        left_out.append(section)
    gone = {id(section) for section in left_out}
    return Told([section for section in sections if id(section) not in gone], left_out)
