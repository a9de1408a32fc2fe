"""Facts as a block of text: by class, each with the step it stands in, no longer than there is room for."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.text.safety import neutralize, visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.types.compaction import Fact

SHORT = 6
"""So many characters of a step's name are shown, its last: they are chance, and the first ones are its time."""
_AHEAD = 8
"""Tokens that a line takes besides its facts."""
_ROUNDS = 4
_MISSES = 8
"""So many facts may be too long before no more are tried."""

# What is shown under which heading, in this order. Commands and errors have a line each.
_HEADINGS = ("Files changed", "Commands", "Errors", "Files", "Identifiers", "Links", "Numbers")
_OF_CLASS = {
    "path": "Files",
    "command": "Commands",
    "identifier": "Identifiers",
    "url": "Links",
    "number": "Numbers",
    "error": "Errors",
}
_LINES = ("Commands", "Errors", "Links")


class Block(NamedTuple):
    """Facts in words.

    Attributes:
        text: The block; "" where nothing is in it.
        facts: Those that are in it.
    """

    text: str
    facts: tuple[Fact, ...]


def render_facts(facts: Sequence[Fact], limit: int, count: Callable[[str], int]) -> Block:
    """The facts that there is room for.

    Every class has an equal share of the room first; what one does not need goes to the most important facts of all.

    Args:
        facts: The most important first.
        limit: Tokens there are.
        count: Who counts.
    """
    block, room = Block("", ()), limit
    # Facts of one step share a line, so that together they take less than one by one; what is left is given out again.
    for _ in range(_ROUNDS):
        chosen = _choose(facts, room, count)
        text = _render(chosen)
        tokens = count(text)
        if tokens <= limit and len(chosen) > len(block.facts):
            block = Block(text, tuple(chosen))
        if len(chosen) == len(facts) or tokens == limit:
            break
        room += limit - tokens
    return block


def short_step(step: str) -> str:
    """A step's name as it is shown to a model."""
    return step[-SHORT:]


def _choose(facts: Sequence[Fact], limit: int, count: Callable[[str], int]) -> list[Fact]:
    places: dict[str, list[int]] = {}
    for place, fact in enumerate(facts):
        places.setdefault(_heading(fact), []).append(place)
    room = limit - sum(count(f"{heading}:\n") for heading in places)
    share = room // max(len(places), 1)
    chosen: set[int] = set()
    for each in places.values():
        found, taken = _within(facts, each, share, count)
        chosen.update(found)
        room -= taken
    found, _ = _within(facts, (place for place in range(len(facts)) if place not in chosen), room, count)
    return [facts[place] for place in sorted(chosen.union(found))]


def _within(
    facts: Sequence[Fact], places: Iterable[int], room: int, count: Callable[[str], int]
) -> tuple[list[int], int]:
    """The places of the first facts that there is room for, and what they take."""
    found: list[int] = []
    taken = misses = 0
    for place in places:
        tokens = count(_words(facts[place])) + _AHEAD
        if taken + tokens <= room:
            taken += tokens
            found.append(place)
        else:
            misses += 1
        if misses > _MISSES or room - taken < _AHEAD:
            break
    return found, taken


def _render(facts: Sequence[Fact]) -> str:
    lines: list[str] = []
    for heading in _HEADINGS:
        under = sorted((fact for fact in facts if _heading(fact) == heading), key=lambda fact: -fact.position)
        if under:
            lines += [f"{heading}:", *_lines(heading, under)]
    return neutralize("\n".join(lines))


def _lines(heading: str, facts: Sequence[Fact]) -> Iterable[str]:
    for step, group in groupby(facts, key=lambda fact: fact.step):
        lead = f"- [{short_step(step)}] " if step else "- "
        if heading in _LINES:
            yield from (lead + _words(fact) for fact in group)
        else:
            yield lead + ", ".join(map(_words, group))


def _words(fact: Fact) -> str:
    note = "" if fact.kind == "path" or not fact.note else f" ({fact.note})"
    return visible_line(fact.text) + note


def _heading(fact: Fact) -> str:
    return "Files changed" if fact.note == "changed" else _OF_CLASS[fact.kind]
