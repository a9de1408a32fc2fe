"""Word index of a ledger in an SQL database.

The tables are created by the first search and belong to no version of the schema: older programs ignore them, and what
those append is indexed by the next search. Steps are indexed by a search, not when they are appended, so
that appending costs nothing and an index never prevents it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin.ledgers import (
    IdSpan,
    IndexedStep,
    IndexedText,
    LedgerError,
    LedgerUnreachableError,
    StepRow,
    clean_text,
    find_branch_owners,
    find_owned_steps,
    find_step_directories,
    get_step_directory,
    read_forgotten_steps,
    read_indexed_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from nexus_core.plugin.ledgers import BranchPart, OwnedSteps
    from nexus_plugins.ledger._rows import ConnectedRows

TABLES_VERSION = 6
INDEX_VERSION = f"{TABLES_VERSION}.{IndexedText.get_version()}"
"""The version of tables and stems; an index of another version is dropped and built anew."""

TURN_BITS = IdSpan.get_turn_bits()
TURNS_PER_NUMBER = IdSpan.get_turns_per_number()
STEPS_PER_BATCH = 500
"""Steps that one transaction indexes: others wait for the lock no longer than for a large append."""
_MERGED_STEPS = 5_000
"""New steps after which the stems of all batches are merged: it costs a hundredth of the time of indexing them."""
_FIRST_BLOCK_SIZE, _BLOCK_GROWTH, _MAX_BLOCK_SIZE = 16, 4, 4096
"""Branch numbers are given to a directory in blocks, so that its turns are a few ranges of ids."""
_MAX_SPANS_PER_WORD = 24
"""Ranges that are queried one by one; of more, everything between the first and the last is read and filtered."""

_MAX_DIRECTORIES = 1_000
"""Directories whose ranges are kept until the index changes."""

_STATE = "select name, value from search_state"
_SAVE_STATE = (
    "insert into search_state (name, value) values (?, ?) on conflict (name) do update set value = excluded.value"
)
_DIRECTORY = "select number from search_directories where path = ?"
_ADD_DIRECTORY = "insert into search_directories (number, path) values (?, ?)"
_BLOCK = "select first, size, used from search_blocks where directory = ? order by first desc limit 1"
_ADD_BLOCK = "insert into search_blocks (first, size, used, directory, turns, words) values (?, ?, 0, ?, 0, 0)"
_USE_BLOCK = "update search_blocks set used = ? where first = ?"
_GROW_BLOCK = "update search_blocks set turns = turns + ?, words = words + ? where first <= ? and ? < first + size"
_BLOCKS_OF = (
    "select b.first, b.used, b.turns, b.words from search_directories d join search_blocks b on b.directory = d.number"
    " where b.used > 0 and d.path = ? order by b.first"
)
_BLOCKS_BELOW = (
    "select b.first, b.used, b.turns, b.words from search_directories d join search_blocks b on b.directory = d.number"
    " where b.used > 0 and (d.path = ? or d.path >= ? and d.path < ?) order by b.first"
)
_WHOLE = (
    "select coalesce(min(first), 0), coalesce(max(first + used), 0), coalesce(sum(turns), 0), coalesce(sum(words), 0)"
    " from search_blocks"
)
_COUNT_TURNS = "select coalesce(sum(turns), 0) from search_blocks"
# One statement, because another program may index between two.
_COMPARE_TURNS = (
    f"select (select value from search_state where name = 'turns'), ({_COUNT_TURNS}),"  # noqa: S608 - constants
    " exists (select 1 from search_branches), exists (select 1 from search_steps)"
)
_BRANCH = (
    "select number, session, directory, turns, words, position from search_branches where branch = ?"
    " order by position, number"
)
_ADD_BRANCH = (
    "insert into search_branches (number, branch, session, directory, turns, words, position) values (?, ?, ?, ?, 0, 0,"
    " -1)"
)
_SAVE_BRANCH = "update search_branches set turns = ?, words = ?, position = ? where number = ?"
_GIVE_BRANCH = (
    "update search_branches set session = ? where branch = ? and not exists (select 1 from sessions where id = session)"
)
_LAST_POSITION = "select position from search_branches where number = ?"
_SHRINK_BRANCH = "update search_branches set words = words - ? where number = ?"
# A join would make some databases read all sessions.
OWNERS = (
    "select number, branch, (select label from sessions where id = search_branches.session) from search_branches"
    " where number "
)
_SPEAKERS = "select name, number from search_speakers"
_ADD_SPEAKER = "insert into search_speakers (number, name) values (?, ?)"
_ADD_TURN = "insert into search_steps (id, step, created, speaker, flags, length) values (?, ?, ?, ?, ?, ?)"
_TURNS_BETWEEN = "select id, step, length from search_steps where id between ? and ? order by id"
_NEXT_TURN = "select id, step from search_steps where id between ? and ? order by id limit 1"
_DROP_TURN = "delete from search_steps where id = ?"
_DROP_SPEAKERS = "delete from search_speakers where number not in (select speaker from search_steps)"
_DROP_DIRECTORIES = (
    "delete from search_directories where number not in (select directory from search_blocks where turns > 0)"
)
_EMPTY_BLOCKS = "select first, first + size from search_blocks where turns = 0 and directory <> 0"
_DROP_BLOCK_DIRECTORIES = "update search_blocks set directory = 0 where turns = 0"
_DROP_BRANCH_DIRECTORIES = "update search_branches set directory = 0 where number >= ? and number < ?"
_FORGOTTEN = "select step from search_forgotten"
_ADD_FORGOTTEN = "insert into search_forgotten (step) values (?) on conflict (step) do nothing"
_ANY_STEP = "select 1 from steps limit 1"
_IS_AT_END = "tip = (select id from steps where branch = ? order by position desc limit 1)"
_SESSION_AT_END = f"select data from sessions where {_IS_AT_END} and id = ?"  # noqa: S608 - constants
_ENDING_IN = (
    "select id, tip, data from sessions where tip in (select id from steps where branch = ? and position >= ?)"
    " order by id"
)
_SESSION_NAME = "select label from sessions where id = ?"
_TIPS = "select t.branch, t.position, s.id, s.data from sessions s join steps t on t.id = s.tip order by s.id"

_FAILURE = "failure"
"""The name of the state with the error that a search had in an index that was just built."""
_NUMBERS = frozenset({"batches", "deletions", "directories", "last", "next", "turns"})
"""Names of the state whose values are numbers."""
_MAX_DIGITS = 15
TABLES = (
    "search_words",
    "search_steps",
    "search_speakers",
    "search_branches",
    "search_blocks",
    "search_directories",
    "search_forgotten",
    "search_state",
)
"""The tables of an index; the last one is created last and dropped first, so that others are found only complete."""

_DROP_TABLES = tuple(f"drop table if exists {name}" for name in reversed(TABLES))
_POSITION_COLUMN = StepRow._fields.index("position")
_DATA_COLUMN = StepRow._fields.index("data")


class IndexableStep(NamedTuple):
    """A step to index: its reference in the index, and fields of its row."""

    ref: Any
    branch: str
    position: int
    kind: str
    created: int
    messages: str


@dataclass
class _OpenBranch:
    """The newest number of a branch while steps are added to it.

    Steps after the position `until` may have another session or directory; None if they have not.
    """

    number: int
    session: str
    directory: int
    turns: int = 0
    words: int = 0
    position: int = -1
    until: int | None = None
    new_turns: int = 0
    new_words: int = 0

    def add(self, length: int) -> int:
        """Return the id of a new turn with so many words."""
        id_ = self.number << TURN_BITS | self.turns
        self.turns += 1
        self.words += length
        self.new_turns += 1
        self.new_words += length
        return id_


class SqlStepIndex(ABC):
    """The tables of an index, over the rows of a store.

    Args:
        rows: The store.
    """

    def __init__(self, rows: ConnectedRows[Any]) -> None:
        self.rows = rows
        self._speakers: dict[str, int] | None = None
        self._whole: IdSpan | None = None
        self._directories: dict[tuple[str, bool], list[IdSpan]] = {}
        self._current_at: tuple[object, Sequence[BranchPart]] | None = None
        self._owners: dict[str, list[OwnedSteps[tuple[str, str]]]] | None = None
        self._parents: dict[str, tuple[str | None, int]] | None = None
        self._seen: dict[str, str] = {}

    # What differs between databases.

    @abstractmethod
    def create_tables(self) -> None:
        """Create the tables, inside `write`."""

    @abstractmethod
    def has_tables(self) -> bool:
        """Return True if the database has the tables, inside `read` or `write`."""

    @abstractmethod
    def is_current(self, state: Mapping[str, str], unsearched: Sequence[BranchPart]) -> bool:
        """True if the index has all steps and no erased one, inside `read`.

        Args:
            state: The state of the index.
            unsearched: Parts of branches of which a few new steps may be missing.
        """

    def read_version(self) -> object:
        """Return a value that changes with the database, None if it is costly."""
        return None

    @abstractmethod
    def find_new_steps(self, state: dict[str, str], limit: int) -> list[IndexableStep]:
        """Return unindexed steps in branch order, inside `write`.

        `state` is updated, so that it says how far the index is with them.
        """

    def is_pending(self, step: IndexableStep, state: Mapping[str, str]) -> bool:  # noqa: ARG002 - some can tell
        """True if a step is certainly not indexed yet."""
        return False

    @abstractmethod
    def count_deletions(self) -> int:
        """Return the number of the last recorded deletion, inside `read` or `write`."""

    @abstractmethod
    def add_words(self, places: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Insert the stems of places."""

    @abstractmethod
    def drop_words(self, places: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Remove the stems of places, with nothing left of them."""

    def merge_words(self) -> None:  # noqa: B027 - most databases need not
        """Put the stems of many batches in order, after an index was built."""

    @abstractmethod
    def fetch_postings(self, stems: Sequence[str], low: int, high: int, limit: int) -> list[list[int]]:
        """Return the places of each stem between two, the newest `limit`."""

    @abstractmethod
    def fetch_facts(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[Any, ...]]:
        """Return the metadata columns of the steps in id ranges."""

    @abstractmethod
    def fetch_owners(self, numbers: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Return number, branch and session name of branches, by `OWNERS`."""

    @abstractmethod
    def read_steps(self, steps: Sequence[Any]) -> dict[Any, tuple[Any, ...]]:
        """Return the rows of steps by their references, without missing ones."""

    @abstractmethod
    def find_erased(self, names: Sequence[str]) -> list[IndexableStep]:
        """Return the steps with these ids as they are before they are erased."""

    @abstractmethod
    def write_index(self, work: Callable[[], int]) -> int:
        """Run a function in a transaction that need not be durable.

        The index can be built again.
        """

    # Catching up.

    def catch_up(self, advance: Callable[[int], None], unsearched: Sequence[BranchPart] = ()) -> bool:
        """Index the steps that are new. Return False if the index cannot be used.

        Args:
            advance: Called with the number of steps that were indexed since its last call.
            unsearched: Parts of branches whose new steps may be left for later.
        """
        if self.rows.read(partial(self._is_current, unsearched)):
            return True
        if not self.rows.read(lambda: self.rows.fetch(_ANY_STEP)):
            return False  # an empty ledger is not created by a search
        try:
            self._index_new(advance)
        except LedgerUnreachableError:
            self.rows.read(lambda: self.rows.fetch(_ANY_STEP))  # raises unless only writing fails: a read-only disk
            return False
        return True

    def read_failure(self) -> str:
        """Return the last recorded search error, or ""."""
        try:
            return str(self.rows.read(self._load_state_if_any).get(_FAILURE, ""))
        except LedgerError:  # the table is damaged, too
            return ""

    def note_failure(self, what: str) -> None:
        """Note an error of a search in an index that was just built."""
        self.rows.write(lambda: self.rows.run(_SAVE_STATE, _FAILURE, what))

    def _index_new(self, advance: Callable[[int], None]) -> None:
        self._owners = self._parents = None
        total = 0
        try:
            while indexed := self.write_index(self._index_batch):
                total += indexed
                advance(indexed)
            if total >= _MERGED_STEPS:
                self.merge_words()
        except BaseException:
            self._clear_cache()  # some of it was rolled back
            raise
        finally:
            self._owners = self._parents = None

    def _clear_cache(self) -> None:
        """Drop what was read from the tables, which have changed."""
        self._speakers = self._whole = self._current_at = None
        self._directories.clear()

    def drop(self) -> None:
        """Drop the index. The next `catch_up` builds it anew."""
        self._clear_cache()
        self.rows.write(self.drop_tables)

    def drop_tables(self) -> None:
        """Drop the tables, inside `write`."""
        for statement in _DROP_TABLES:
            self.rows.run(statement)

    def _is_current(self, unsearched: Sequence[BranchPart]) -> bool:
        version = self.read_version()
        if version is not None and self._current_at == (version, unsearched):
            return True  # another source of the same turn has just asked
        if not self.has_tables():
            return False
        state = self._load_state()
        if state != self._seen:  # another program has indexed more
            self._seen = state
            self._clear_cache()
        if not state or not self.is_current(state, unsearched):
            return False
        self._current_at = version, unsearched
        return True

    def require_turns(self) -> None:
        """Raise if a table has lost its rows, inside `read` or `write`.

        Raises:
            LedgerError: The index has other turns than it has counted.
        """
        if not self._has_turns():
            raise LedgerError("the search index is damaged: turns are missing")

    def _has_turns(self) -> bool:
        ((counted, turns, has_branches, has_steps),) = self.rows.fetch(_COMPARE_TURNS)
        return counted == str(turns) and (turns == 0 or bool(has_branches and has_steps))

    def _count_turns(self) -> str:
        return str(self.rows.fetch(_COUNT_TURNS)[0][0])

    def _load_state_if_any(self) -> dict[str, str]:
        return self._load_state() if self.has_tables() else {}

    def _load_state(self) -> dict[str, str]:
        """Return the state of the tables, {} if outdated or damaged."""
        state: dict[str, str] = dict(self.rows.fetch(_STATE))
        numbers = [str(value) for name, value in state.items() if name in _NUMBERS]
        is_valid = all(number.isdecimal() and len(number) <= _MAX_DIGITS for number in numbers)
        return state if is_valid and state.get("version") == INDEX_VERSION and "deletions" in state else {}

    def _read_state(self) -> dict[str, str]:
        """Return the state of the index, created if missing or outdated."""
        state = self._load_state() if self.has_tables() else {}
        if not state or int(state["deletions"]) != self.count_deletions():
            # What another version erased is still in the index, and only a new one is surely without it.
            self._clear_cache()
            self.drop_tables()
            self.create_tables()
            state = {"version": INDEX_VERSION, "deletions": str(self.count_deletions()), "next": "1", "turns": "0"}
        return state

    def _index_batch(self) -> int:
        state = self._read_state()
        steps = self.find_new_steps(state, STEPS_PER_BATCH)
        forgotten = self._note_forgotten([step.ref for step in steps if step.kind == "forget"])
        self._add_steps(steps, state, forgotten)
        if steps:
            # Every change of the tables changes the state, so that other programs read them again.
            state["batches"] = str(int(state.get("batches", 0)) + 1)
            state["turns"] = self._count_turns()
            self._whole = None
            self._directories.clear()
        self.rows.run_many(_SAVE_STATE, [*state.items()])
        return len(steps)

    def _add_steps(self, steps: Sequence[IndexableStep], state: dict[str, str], forgotten: Collection[Any]) -> None:
        open_branches: dict[str, _OpenBranch] = {}
        turns: list[tuple[Any, ...]] = []
        words: list[tuple[int, Sequence[str]]] = []
        self._load_speakers()
        if len({step.branch for step in steps}) > _FIRST_BLOCK_SIZE and self._owners is None:
            self._owners = self._load_owners()
        for step in steps:
            branch = open_branches.get(step.branch)
            if branch is None or (branch.until is not None and step.position > branch.until):
                if branch is not None:
                    self._save_branch(branch)
                    if self._owners is None:  # there may be many parts
                        self._owners = self._load_owners()
                branch = open_branches[step.branch] = self._open_branch(step.branch, step.position, state)
            if step.position <= branch.position:
                continue
            branch.position = step.position
            text = None if step.ref in forgotten else read_indexed_text(step.kind, step.messages)
            if text is None:
                continue
            if branch.turns == TURNS_PER_NUMBER:
                self._save_branch(branch)
                until = branch.until
                branch = open_branches[step.branch] = self._add_branch(
                    step.branch, branch.session, branch.directory, state
                )
                branch.position, branch.until = step.position, until
            id_ = branch.add(text.length)
            speaker = self._number_speaker(text.speaker.lower())
            turns.append((id_, step.ref, step.created // 1000, speaker, text.flags, text.length))
            words += _list_postings(id_, text)
        self.rows.run_many(_ADD_TURN, turns)
        self.add_words(words)
        for branch in open_branches.values():
            self._save_branch(branch)

    def _number_speaker(self, name: str) -> int:
        speakers = self._load_speakers() if self._speakers is None else self._speakers
        if name and name not in speakers:
            speakers[name] = max(speakers.values(), default=0) + 1
            self.rows.run(_ADD_SPEAKER, speakers[name], name)
        return speakers.get(name, 0)

    def _save_branch(self, branch: _OpenBranch) -> None:
        self.rows.run(_SAVE_BRANCH, branch.turns, branch.words, branch.position, branch.number)
        if branch.new_turns:
            self.rows.run(_GROW_BLOCK, branch.new_turns, branch.new_words, branch.number, branch.number)

    def _open_branch(self, name: str, position: int, state: dict[str, str]) -> _OpenBranch:
        """Return the number of a branch for a step, a new one if its directory or its owner changed."""
        rows = self.rows.fetch(_BRANCH, name)
        branch = _OpenBranch(*rows[-1]) if rows else None
        if branch is not None and position <= branch.position:  # it is indexed
            branch.until = branch.position
            return branch
        until: int | None = None
        if branch is not None and (found := self.rows.fetch(_SESSION_AT_END, name, branch.session)):
            session, data = branch.session, found[0][0]
        else:  # it is new, its session was deleted, or a fork goes on in it
            session, data, until = self._find_owner(name, position)
            if branch is not None:
                if not session:
                    return branch
                self.rows.run(_GIVE_BRANCH, session, name)
        part = get_step_directory(find_step_directories(data, name, self._find_place, self._load_parents), position)
        until = part.last if until is None else until if part.last is None else min(until, part.last)
        directory = self._number_directory(part.directory, state)
        if branch is None or (session, directory) != (branch.session, branch.directory):
            before, branch = branch, self._add_branch(name, session, directory, state)
            branch.position = -1 if before is None else before.position
        branch.until = until
        return branch

    def _add_branch(self, name: str, session: str, directory: int, state: dict[str, str]) -> _OpenBranch:
        found = self.rows.fetch(_BLOCK, directory)
        first, size, used = found[0] if found else (0, 0, 0)
        if used == size:
            size = min(size * _BLOCK_GROWTH or _FIRST_BLOCK_SIZE, _MAX_BLOCK_SIZE)
            first, used = int(state["next"]), 0
            state["next"] = str(first + size)
            self.rows.run(_ADD_BLOCK, first, size, directory)
        number = first + used
        self.rows.run(_USE_BLOCK, used + 1, first)
        self.rows.run(_ADD_BRANCH, number, name, session, directory)
        return _OpenBranch(number, session, directory)

    def _find_owner(self, branch: str, position: int) -> tuple[str, str, int | None]:
        """Return id and data of the session that owns a step, or "", and the position up to which it does.

        The position is None for all steps that follow.
        """
        owned = find_owned_steps((self._owners or {}).get(branch, ()), position)
        if owned is not None:
            return *owned.session, owned.last
        # Another program may have made it since all were loaded.
        for session, tip, data in self.rows.fetch(_ENDING_IN, branch, position):
            place = self._find_place(tip)
            return session, data, None if place is None else place[1]
        if self._owners is None:
            self._owners = self._load_owners()
        parts = self._owners.get(branch, [])
        owned = find_owned_steps(parts, position)
        if owned is not None:
            return *owned.session, owned.last
        return (*parts[-1].session, None) if parts else ("", "", None)

    def _find_place(self, name: str) -> tuple[str, int] | None:
        """Return branch and position of a step."""
        place = self.rows.place(name)
        return None if place is None else (place.branch, place.position)

    def _load_parents(self) -> dict[str, tuple[str | None, int]]:
        """Return branch and position of the step that each forked branch follows."""
        if self._parents is None:
            self._parents = {row.id: (row.parent, row.position) for row in self.rows.forked_branches()}
        return self._parents

    def _load_owners(self) -> dict[str, list[OwnedSteps[tuple[str, str]]]]:
        """Return id and data of the sessions that own each branch."""
        self._parents = None
        tips = self.rows.fetch(_TIPS)
        return find_branch_owners(
            [(branch, position, (session, data)) for branch, position, session, data in tips], self._load_parents()
        )

    def _number_directory(self, path: str, state: dict[str, str]) -> int:
        """Return the number of a directory, 0 for none.

        A number is never given twice: that of a forgotten directory may still be somewhere.
        """
        if not path:
            return 0
        found = self.rows.fetch(_DIRECTORY, path)
        if found:
            return int(found[0][0])
        number = int(state.get("directories", 0)) + 1
        state["directories"] = str(number)
        self.rows.run(_ADD_DIRECTORY, number, path)
        return number

    def _load_speakers(self) -> dict[str, int]:
        self._speakers = dict(self.rows.fetch(_SPEAKERS))
        return self._speakers

    # Forgetting.

    def _note_forgotten(self, refs: Sequence[Any]) -> set[Any]:
        """Remove the steps named by `forget` steps. Return all ever named."""
        if refs:
            rows = self.read_steps(refs).values()
            names = dict.fromkeys(name for row in rows for name in read_forgotten_steps(row[_DATA_COLUMN]))
            steps = self.find_erased([*names])
            self.rows.run_many(_ADD_FORGOTTEN, [(step.ref,) for step in steps])
            self._remove_steps(steps)
        return {ref for (ref,) in self.rows.fetch(_FORGOTTEN)}

    def forget(self, names: Sequence[str]) -> None:
        """Inside `write`, remove the words of steps that are about to be erased."""
        state = self._load_state_if_any()
        if not state or not self._has_turns():
            self.drop_tables()
            return
        steps = [step for step in self.find_erased(names) if not self.is_pending(step, state)]
        gone = self._remove_steps(steps) | {ref for (ref,) in self.rows.fetch(_FORGOTTEN)}
        if any(step.ref not in gone and read_indexed_text(step.kind, step.messages) for step in steps):
            # Damaged: then only a new index is surely without its words.
            self.drop_tables()
            return
        self.rows.run_many(_SAVE_STATE, [("deletions", str(self.count_deletions())), ("turns", self._count_turns())])

    def _remove_steps(self, steps: Sequence[IndexableStep]) -> set[Any]:
        """Remove the words of steps, and return the references of those that had any."""
        by_branch: dict[str, dict[Any, IndexableStep]] = {}
        for step in steps:
            by_branch.setdefault(step.branch, {})[step.ref] = step
        places: list[tuple[int, Sequence[str]]] = []
        found: set[Any] = set()
        for branch, erased in by_branch.items():
            for number, *_ in self.rows.fetch(_BRANCH, branch):
                low = number << TURN_BITS
                rows = self.rows.fetch(_TURNS_BETWEEN, low, low + TURNS_PER_NUMBER - 1)
                gone = [(id_, erased[ref], length) for id_, ref, length in rows if ref in erased]
                for id_, step, _ in gone:
                    text = read_indexed_text(step.kind, step.messages)
                    if text is not None:
                        places += _list_postings(id_, text)
                self.rows.run_many(_DROP_TURN, [(id_,) for id_, _, _ in gone])
                words = sum(length for _, _, length in gone)
                self.rows.run(_SHRINK_BRANCH, words, number)
                self.rows.run(_GROW_BLOCK, -len(gone), -words, number, number)
                found.update(step.ref for _, step, _ in gone)
        if places:
            self.drop_words(places)
        # A session that goes on gets a new number, in a block of its directory.
        self.rows.run_many(_DROP_BRANCH_DIRECTORIES, self.rows.fetch(_EMPTY_BLOCKS))
        for statement in (_DROP_SPEAKERS, _DROP_DIRECTORIES, _DROP_BLOCK_DIRECTORIES):
            self.rows.run(statement)
        self._clear_cache()
        return found

    # Answers, inside `read`.

    def find_parts(self, parts: Sequence[BranchPart]) -> list[IdSpan]:
        """Return the ids of the indexed turns in parts of branches."""
        found = []
        for name, last in parts:
            for number, _, _, turns, words, position in self.rows.fetch(_BRANCH, name):
                low, count = number << TURN_BITS, turns
                if last is not None and position > last:
                    count = self._count_turns_to(low, turns, last)
                if count:
                    found.append(IdSpan(low, low + count - 1, count, words * count // turns))
        return sorted(found)

    def _count_turns_to(self, low: int, turns: int, last: int) -> int:
        """Return how many turns of a number are at positions up to `last`, by bisection."""
        first, end = 0, turns
        while first < end:
            middle = (first + end) // 2
            found = self.rows.fetch(_NEXT_TURN, low + middle, low + end - 1)  # a deleted turn has no row
            rows = self.read_steps([found[0][1]]) if found else {}
            if rows and rows[found[0][1]][_POSITION_COLUMN] <= last:
                first = found[0][0] - low + 1
            else:
                end = middle
        return first

    def find_directory(self, directory: str, *, below: bool = True) -> list[IdSpan]:
        """Return the ids of the turns that were made in a directory, or below it."""
        key = directory, below
        if key not in self._directories:
            path = clean_text(directory)  # as sessions store it
            parent = path.rstrip(os.sep)
            range_below = path, parent + os.sep, parent + chr(ord(os.sep) + 1)
            blocks = self.rows.fetch(_BLOCKS_BELOW, *range_below) if below else self.rows.fetch(_BLOCKS_OF, path)
            if len(self._directories) >= _MAX_DIRECTORIES:
                self._directories.clear()
            self._directories[key] = [*_merge_spans([_block_span(*block) for block in blocks])]
        return self._directories[key]

    def find_all(self) -> list[IdSpan]:
        """Return the ids of all turns: one range, or none."""
        if self._whole is None:
            ((first, end, turns, words),) = self.rows.fetch(_WHOLE)
            self._whole = IdSpan(first << TURN_BITS, (end << TURN_BITS) - 1, int(turns), int(words))
        return [self._whole] if self._whole.turns else []

    def find_postings(self, stems: Sequence[str], spans: Sequence[IdSpan], limit: int) -> list[list[int]]:
        """Return the places of each stem in ranges, the newest `limit` of them."""
        if len(spans) > _MAX_SPANS_PER_WORD:
            lows = [span.low for span in spans]
            everything = self.fetch_postings(stems, spans[0].low << 1, spans[-1].high << 1 | 1, limit * 4)
            return [
                [place for place in places if place >> 1 <= spans[bisect_right(lows, place >> 1) - 1].high][:limit]
                for places in everything
            ]
        found: dict[str, list[int]] = {stem: [] for stem in stems}
        for span in reversed(spans):
            wanted = [stem for stem in stems if len(found[stem]) < limit]
            if not wanted:
                break
            for stem, places in zip(
                wanted, self.fetch_postings(wanted, span.low << 1, span.high << 1 | 1, limit), strict=True
            ):
                found[stem] += places[: limit - len(found[stem])]
        return [found[stem] for stem in stems]

    def read_facts(self, ranges: Sequence[tuple[int, int]]) -> dict[int, IndexedStep]:
        """Return the facts of the turns in ranges by id, each with its first and last id."""
        return {row[0]: IndexedStep(*row[1:]) for row in self.fetch_facts(ranges)} if ranges else {}

    def find_speakers(self) -> Mapping[str, int]:
        """Return the numbers of speakers by their names in lower case."""
        return self._load_speakers() if self._speakers is None else self._speakers

    def find_branches(self, numbers: Collection[int]) -> dict[int, tuple[str, str]]:
        """Return branch and session name by branch number."""
        found = self.fetch_owners(list(numbers))
        # The session that made a branch may be deleted, and others go on from it.
        owners = self._load_owners() if any(label is None for _, _, label in found) else {}
        return {
            number: (branch, self._name_owner(number, owners.get(branch, [])) if label is None else label)
            for number, branch, label in found
        }

    def _name_owner(self, number: int, owned: Sequence[OwnedSteps[tuple[str, str]]]) -> str:
        """Return the name of the session that has the last step of a number, or ""."""
        ((last,),) = self.rows.fetch(_LAST_POSITION, number)
        owner = find_owned_steps(owned, last) or (owned[-1] if owned else None)
        named = self.rows.fetch(_SESSION_NAME, owner.session[0]) if owner else []
        return str(named[0][0]) if named else ""


def _list_postings(id_: int, text: IndexedText) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the places of a turn with their stems."""
    if text.said:
        yield id_ << 1, text.said
    if text.rest:
        yield id_ << 1 | 1, text.rest


def _block_span(first: int, used: int, turns: int, words: int) -> IdSpan:
    return IdSpan(first << TURN_BITS, (first + used << TURN_BITS) - 1, turns, words)


def _merge_spans(spans: Sequence[IdSpan]) -> Iterator[IdSpan]:
    """Yield ranges with those joined that follow each other."""
    last: IdSpan | None = None
    for span in spans:
        if last is None:
            last = span
        elif span.low == last.high + 1:
            last = IdSpan(last.low, span.high, last.turns + span.turns, last.words + span.words)
        else:
            yield last
            last = span
    if last is not None:
        yield last
