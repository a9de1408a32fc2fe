"""Step index in memory, for ledgers without a stored index."""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.neutral import message_to_json
from nexus_core.ledger.codec import StoredStep
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.ledger.store import clean_text
from nexus_core.memory.step_index import (
    TURN_BITS,
    TURNS_PER_NUMBER,
    IdSpan,
    IndexedStep,
    find_branch_owners,
    find_owned_steps,
    find_step_directories,
    get_step_directory,
    is_id_in_spans,
    read_forgotten_steps,
    read_indexed_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from nexus_core.memory.step_index import Advance, BranchPart, DirectorySteps, IndexedText
    from nexus_core.types.ledger import Ledger, Step


class InMemoryStepIndex:
    """The words of all turns of a ledger, in dictionaries.

    It answers for ledgers in memory, for those of plugins without an index, and for files that cannot be written.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._places: dict[str, list[int]] = {}
        self._facts: dict[int, IndexedStep] = {}
        self._speakers: dict[str, int] = {}
        self._numbers: dict[str, list[int]] = {}
        self._branches: dict[int, _BranchNumber] = {}
        self._sizes: dict[int, list[int]] = {}
        self._positions: dict[int, list[int]] = {}
        self._indexed: dict[str, int] = {}
        self._labels: dict[str, str] = {}
        self._ids: dict[str, int] = {}
        self._forgotten: set[str] = set()
        self._deletions = 0

    def catch_up(self, ledger: Ledger, *, deletions: int, advance: Advance) -> None:
        """Index the steps that are new, or all if something was deleted since.

        Args:
            ledger: The ledger.
            deletions: The number of its recorded deletions.
            advance: Called with the number of steps.
        """
        if deletions != self._deletions:
            self._reset()
            self._deletions = deletions
        owners: _StepOwners | None = None
        for step in ledger.steps():
            if self._indexed.get(step.branch, -1) < step.position:
                if owners is None:
                    owners = _StepOwners(ledger)
                self._indexed[step.branch] = step.position
                if step.kind == "forget":
                    self._forget(ledger, read_forgotten_steps(step.data))
                if step.id not in self._forgotten:
                    self._add(step, owners)
                advance(1)
        used = {each.session for each in self._branches.values() if each.session}
        records = {label: ledger.session(label) for label in used}  # a session may have a new name
        self._labels = {label: record.label for label, record in records.items() if record is not None}

    def _forget(self, ledger: Ledger, names: Sequence[str]) -> None:
        self._forgotten.update(names)
        for name in names:
            id_, step = self._ids.pop(name, None), ledger.step(name)
            if id_ is None or step is None:
                continue
            del self._facts[id_]
            for stem, is_rest in _list_stems(_read_step_text(step)):
                self._places[stem].remove(id_ << 1 | is_rest)
                if not self._places[stem]:
                    del self._places[stem]

    def _add(self, step: Step, owners: _StepOwners) -> None:
        text = _read_step_text(step)
        if text is None:
            return
        numbers = self._numbers.setdefault(step.branch, [])
        part = owners.find(step.branch, step.position)
        is_full = bool(numbers) and self._sizes[numbers[-1]][0] == TURNS_PER_NUMBER
        if not numbers or is_full or self._branches[numbers[-1]] != part:
            number = len(self._branches) + 1
            numbers.append(number)
            self._branches[number] = part
            self._sizes[number] = [0, 0]
            self._positions[number] = []
        number = numbers[-1]
        size = self._sizes[number]
        id_ = number << TURN_BITS | size[0]
        size[0] += 1
        size[1] += text.length
        self._positions[number].append(step.position)
        speaker = self._speakers.setdefault(text.speaker.lower(), len(self._speakers) + 1) if text.speaker else 0
        self._facts[id_] = IndexedStep(step.id, step.created // 1000, speaker, text.flags, text.length)
        self._ids[step.id] = id_
        for stem, is_rest in _list_stems(text):
            self._places.setdefault(stem, []).append(id_ << 1 | is_rest)

    def find_parts(self, parts: Sequence[BranchPart]) -> list[IdSpan]:
        """Return the ids of the indexed turns in parts of branches."""
        found = []
        for branch, last in parts:
            for number in self._numbers.get(branch, ()):
                positions = self._positions[number]
                count = len(positions) if last is None else bisect_right(positions, last)
                if count:
                    found.append(self._span(number, count))
        return sorted(found)

    def find_directory(self, directory: str, *, below: bool = True) -> list[IdSpan]:
        """Return the ids of the turns that were made in a directory, or below it."""
        directory = clean_text(directory)  # as sessions store it
        start = directory.rstrip(os.sep) + os.sep
        numbers = [
            number
            for number, part in self._branches.items()
            if part.directory == directory or (below and part.directory.startswith(start))
        ]
        return [self._span(number, self._sizes[number][0]) for number in sorted(numbers)]

    def find_all(self) -> list[IdSpan]:
        """Return the ids of all turns: one range, or none."""
        sizes = self._sizes.values()
        turns, words = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        return [IdSpan(min(self._facts), max(self._facts), turns, words)] if self._facts else []

    def _span(self, number: int, turns: int) -> IdSpan:
        low, (all_turns, words) = number << TURN_BITS, self._sizes[number]
        return IdSpan(low, low + turns - 1, turns, words * turns // all_turns)

    def find_postings(self, stems: Sequence[str], spans: Sequence[IdSpan], limit: int) -> list[list[int]]:
        """Return the places of each stem in ranges, the newest `limit` of them."""
        found = ([place for place in self._places.get(stem, ()) if is_id_in_spans(place >> 1, spans)] for stem in stems)
        return [sorted(places, reverse=True)[:limit] for places in found]

    def read_facts(self, ranges: Sequence[tuple[int, int]]) -> dict[int, IndexedStep]:
        """Return the facts of the turns in ranges by id, each with its first and last id."""
        ids = (id_ for first, last in ranges for id_ in range(first, last + 1))
        return {id_: self._facts[id_] for id_ in ids if id_ in self._facts}

    def find_speakers(self) -> Mapping[str, int]:
        """Return the numbers of speakers by their names in lower case."""
        return self._speakers

    def find_branches(self, numbers: Collection[int]) -> dict[int, tuple[str, str]]:
        """Return branch and session name by the number of a branch."""
        parts = {number: self._branches[number] for number in numbers}
        return {number: (part.branch, self._labels.get(part.session, "")) for number, part in parts.items()}


class _BranchNumber(NamedTuple):
    """The branch of a number, the session that made its turns, and their directory."""

    branch: str
    session: str
    directory: str


class _StepOwners:
    """The sessions and directories of the steps of a ledger, as they are now."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._parents = _read_parents(ledger)
        records = sorted(ledger.sessions(status=None), key=lambda record: (record.created, record.label))
        tips = [(ledger.step(record.tip), record) for record in records if record.tip is not None]
        self._owned = find_branch_owners(
            [(tip.branch, tip.position, record) for tip, record in tips if tip is not None], self._parents
        )
        self._directories: dict[tuple[str, str], list[DirectorySteps]] = {}

    def find(self, branch: str, position: int) -> _BranchNumber:
        """Return session and directory of a step."""
        owned = self._owned.get(branch, [])
        part = find_owned_steps(owned, position) or (owned[-1] if owned else None)
        if part is None:
            return _BranchNumber(branch, "", "")
        record = part.session
        key = branch, record.label
        if key not in self._directories:
            self._directories[key] = find_step_directories(record.data, branch, self._find_place, lambda: self._parents)
        return _BranchNumber(branch, record.label, get_step_directory(self._directories[key], position).directory)

    def _find_place(self, name: str) -> tuple[str, int] | None:
        step = self._ledger.step(name)
        return None if step is None else (step.branch, step.position)


def _read_parents(ledger: Ledger) -> dict[str, tuple[str | None, int]]:
    """Return branch and position of the step that the first step of each forked branch follows."""
    if isinstance(ledger, StoreLedger) and (read_rows := getattr(ledger.store, "forked_branches", None)) is not None:
        return {row.id: (row.parent, row.position) for row in ledger.store.read(read_rows)}
    parents: dict[str, tuple[str | None, int]] = {}
    seen: set[str] = set()
    for step in ledger.steps():
        if step.branch not in seen:
            seen.add(step.branch)
            parent = None if step.parent is None else ledger.step(step.parent)
            if parent is not None:
                parents[step.branch] = parent.branch, parent.position
    return parents


def _read_step_text(step: Step) -> IndexedText | None:
    messages = (
        step.stored_messages if isinstance(step, StoredStep) else [message_to_json(each) for each in step.messages]
    )
    return read_indexed_text(step.kind, messages)


def _list_stems(text: IndexedText | None) -> Iterator[tuple[str, bool]]:
    """Yield the stems of a turn, each with True if it is one of the rest."""
    if text is not None:
        yield from ((stem, False) for stem in text.said)
        yield from ((stem, True) for stem in text.rest)
