"""The facts of a conversation: found, put together over several compactions, the most important first."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.compaction.evidence.calls import command_of, exit_of, other_words, touched_paths
from nexus_core.compaction.evidence.shapes import MOST, distinct, find_code, find_dates, find_facts
from nexus_core.types.compaction import FACT_CLASSES, Fact
from nexus_core.types.messages import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.types.compaction import FactClass, ThreadMessage
    from nexus_core.types.messages import Message

MOST_FACTS = 2000
"""So many facts are carried from one compaction to the next."""
_STRONGER = ("changed", "read", "")

Key = tuple["FactClass", str]
"""What makes two facts the same."""


class FoundFact(NamedTuple):
    """Something that looks like a fact, and what became of it."""

    kind: FactClass
    text: str
    note: str = ""

    @property
    def key(self) -> Key:
        """Which fact it is."""
        return self.kind, self.text


def extract_facts(messages: Iterable[ThreadMessage]) -> tuple[Fact, ...]:
    """The facts in messages of a thread, in the order in which they came up.

    Args:
        messages: Oldest first. A summary among them is read like any other text, so leave out those of which the facts
            are known.
    """
    collected = _Collected()
    for each in messages:
        for found in _facts_of(each.message, collected):
            collected.add(found, each.step, each.position)
    return tuple(collected.facts.values())


def merge_facts(previous: Iterable[Fact], new: Iterable[Fact], *, most: int = MOST_FACTS) -> tuple[Fact, ...]:
    """The facts of earlier compactions and those of this one, each once, the most important first.

    Args:
        previous: What was carried so far.
        new: What came up in steps that were not looked at before.
        most: So many stay.
    """
    merged = {(fact.kind, fact.text): fact for fact in previous}
    for fact in new:
        key = fact.kind, fact.text
        merged[key] = _joined(merged[key], fact) if key in merged else fact
    return rank_facts(merged.values())[:most]


def rank_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Facts by how much they matter: the newest first, and one that stands in twice as many steps is half as old.

    A file that was changed and a command that failed count as half as old once more.
    """
    facts = tuple(facts)
    newest = max((fact.position for fact in facts), default=0)

    def age(fact: Fact) -> tuple[int, int, int, str]:
        halvings = max(fact.uses, 1).bit_length() - 1 + (fact.note not in ("", "read", "exit 0"))
        return newest - fact.position >> halvings, -fact.uses, FACT_CLASSES.index(fact.kind), fact.text

    return tuple(sorted(facts, key=age))


def facts_to_json(facts: Iterable[Fact]) -> list[list[Any]]:
    """Facts as they are written down with a compaction."""
    return [[fact.kind, fact.text, fact.note, fact.step, fact.uses, fact.position] for fact in facts]


def read_facts(value: object) -> tuple[Fact, ...]:
    """What was written down; whatever is no fact is left out."""
    rows = value if isinstance(value, list | tuple) else ()
    return tuple(Fact(*row) for row in rows if _is_row(row))


class _Collected:
    """Facts by what they are, and commands that wait for their results by the id of their call."""

    def __init__(self) -> None:
        self.facts: dict[Key, Fact] = {}
        self.running: dict[str, deque[str]] = defaultdict(deque)

    def end(self, result: ToolResult) -> None:
        """Say how a command ended."""
        running = self.running.get(result.call_id)
        if running:
            known = self.facts["command", running.popleft()]
            self.facts["command", known.text] = replace(known, note=exit_of(result))

    def add(self, found: FoundFact, step: str, position: int) -> None:
        known = self.facts.get(found.key)
        fact = Fact(found.kind, found.text, found.note, step, 1, position)
        if known is None:
            self.facts[found.key] = fact
        elif known.step == step:
            self.facts[found.key] = replace(known, note=_note(known, fact))
        else:
            self.facts[found.key] = _joined(known, fact)


def _facts_of(message: Message, collected: _Collected) -> Iterator[FoundFact]:
    if message.role == "system":
        return
    for part in message.parts:
        if isinstance(part, Text):
            yield from _told(part.text)
        elif isinstance(part, ToolCall):
            yield from _called(part, collected)
        elif isinstance(part, ToolResult):
            collected.end(part)
            yield from (FoundFact(kind, text) for kind, text in find_facts(part.text))


def _told(text: str) -> Iterator[FoundFact]:
    """What somebody says: names of code and days count too, which abound in files and logs."""
    yield from (FoundFact(kind, each) for kind, each in find_facts(text))
    yield from (FoundFact("identifier", name) for name in islice(distinct(find_code(text)), MOST))
    yield from (FoundFact("number", day) for day in islice(distinct(find_dates(text)), MOST))


def _called(call: ToolCall, collected: _Collected) -> Iterator[FoundFact]:
    named = set()
    for path, effect in touched_paths(call):
        named.add(path)
        yield FoundFact("path", path, effect)
    command = command_of(call)
    if command:
        yield FoundFact("command", command)
        collected.running[call.id].append(command)
    for kind, text in find_facts(other_words(call)):
        if text not in named and kind != "error":
            yield FoundFact(kind, text)


def _joined(earlier: Fact, later: Fact) -> Fact:
    if later.position < earlier.position:
        earlier, later = later, earlier
    return Fact(later.kind, later.text, _note(earlier, later), later.step, earlier.uses + later.uses, later.position)


def _note(earlier: Fact, later: Fact) -> str:
    """What is said of a fact: a file that was changed stays so; of a command, how it ended last, if that is known."""
    return min(earlier.note, later.note, key=_strength) if later.kind == "path" else later.note


def _strength(note: str) -> int:
    return _STRONGER.index(note) if note in _STRONGER else 0


def _is_row(row: object) -> bool:
    return (
        isinstance(row, list | tuple)
        and len(row) == 6  # noqa: PLR2004 - the fields of a fact
        and row[0] in FACT_CLASSES
        and all(isinstance(each, str) for each in row[1:4])
        and all(type(each) is int for each in row[4:])
    )
