"""The word index on a PostgreSQL server: posting lists, which are the places of a stem in a block of places.

The stems are those of Nexus, so that a server finds what a file finds, whatever its text search configuration. A search
wants the newest places of a word. A GIN index of tsvectors has no order: it reads and sorts all places of a frequent
word, while the rows of a stem are read from the newest block on until there are enough.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger._step_index import OWNERS, TABLES, IndexableStep, SqlStepIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nexus_core.plugin.ledgers import BranchPart
    from nexus_plugins.ledger.postgres.store import PostgresStore

_CREATE_STATEMENTS = (
    # Rows grow at their end: with space left in a page, a new version needs no entry in the index.
    """create table search_words (
        stem text collate "C",
        block bigint,
        parts integer[] not null,
        primary key (stem, block)
    ) with (fillfactor = 85)""",
    """create table search_steps (
        id bigint primary key,
        step text collate "C" not null,
        created bigint not null,
        speaker bigint not null,
        flags bigint not null,
        length bigint not null
    )""",
    'create table search_forgotten (step text collate "C" primary key)',
    "create table search_speakers (number bigint primary key, name text not null unique)",
    """create table search_branches (
        number bigint primary key,
        branch text collate "C" not null,
        session text collate "C" not null,
        directory bigint not null,
        turns bigint not null,
        words bigint not null,
        position bigint not null
    )""",
    "create index search_branch on search_branches (branch)",
    """create table search_blocks (
        first bigint primary key,
        size bigint not null,
        used bigint not null,
        directory bigint not null,
        turns bigint not null,
        words bigint not null
    )""",
    """create table search_directories (number bigint primary key, path text collate "C" not null unique)""",
    'create table search_sessions (session text collate "C" primary key, tip text collate "C" not null)',
    "create table search_state (name text primary key, value text not null)",
)
_LOCK_KEY = 0x4E785365
"""The key of the advisory lock for programs that index."""
_LOCK = "select pg_advisory_xact_lock(?)"
_HAS_TABLES = (
    "select exists (select from pg_catalog.pg_tables where schemaname = 'nexus'"  # noqa: S608 - a constant
    f" and tablename = '{TABLES[-1]}')"
)
_STALE_SESSIONS = (
    "select s.id, s.tip from sessions s left join search_sessions i on i.session = s.id"
    " where s.tip is not null and i.tip is distinct from s.tip order by s.id limit ?"
)
_NOTE_SESSION = (
    "insert into search_sessions (session, tip) values (?, ?) on conflict (session) do update set tip = excluded.tip"
)
_INDEXED_POSITION = "select coalesce(max(position), -1) from search_branches where branch = ?"
_LAST_DELETION = "select coalesce(max(number), 0) from deletions"
_NEW_STEPS = (
    "select id, branch, position, kind, created, messages from steps"
    " where branch = ? and position > ? and position <= ? order by position limit ?"
)
_NAMED_STEPS = "select id, branch, position, kind, created, messages from steps where id = any(?::text[])"
_STEP_ROWS = sql.STEP.replace("where id = ?", "where id = any(?::text[])")
_OWNERS = OWNERS + "= any(?::bigint[])"
_BLOCK_BITS = 18
"""Bits of a place that are its part of a block: 128 numbers of branches have one row for each stem."""
_BLOCK_PARTS = "unnest(?::text[], ?::bigint[], ?::text[]) as new (stem, block, parts)"
_ADD_WORDS = (
    f"insert into search_words as old (stem, block, parts) select stem, block, parts::integer[] from {_BLOCK_PARTS}"  # noqa: S608 - constants
    " on conflict (stem, block) do update set parts = old.parts || excluded.parts"
)
_DROP_WORDS = (
    "update search_words as old set parts = array(select part from unnest(old.parts) as kept (part)"  # noqa: S608 - constants
    f" where part <> all (new.parts::integer[])) from {_BLOCK_PARTS}"
    " where (old.stem, old.block) = (new.stem, new.block)"
)
_DROP_EMPTY_WORDS = (
    f"delete from search_words as old using {_BLOCK_PARTS}"  # noqa: S608 - constants
    " where (old.stem, old.block) = (new.stem, new.block) and old.parts = '{}'"
)
_PLACE = f"(block << {_BLOCK_BITS} | part)"
_PLACES = (
    f"select array(select {_PLACE} from search_words cross join unnest(parts) as each (part)"  # noqa: S608 - constants
    f" where stem = wanted.stem and block between ? >> {_BLOCK_BITS} and ? >> {_BLOCK_BITS}"
    f" and {_PLACE} between ? and ?"
    " order by block desc, part desc limit ?)"
    " from unnest(?::text[]) with ordinality as wanted (stem, number) order by number"
)
_FACTS = (
    "select id, step, created, speaker, flags, length from unnest(?::bigint[], ?::bigint[]) as ids (first, last)"
    " join search_steps on id between ids.first and ids.last"
)
_SESSIONS_PER_QUERY = 100
_CHECK_SECONDS = 1.0
"""Seconds for which the index counts as current, unless this program appends: comparing the newest step of each
session takes longer than a search. What others append meanwhile is found that much later."""


class PostgresStepIndex(SqlStepIndex):
    """The index on the server.

    New steps are those of sessions whose newest step is another than the one that was indexed last.
    """

    def __init__(self, rows: PostgresStore) -> None:
        super().__init__(rows)
        self._checked = 0.0

    def note_change(self) -> None:
        """Note that this program has appended steps."""
        self._checked = 0.0

    def create_tables(self) -> None:
        """Create the tables, inside `write`."""
        for statement in _CREATE_STATEMENTS:
            self.rows.run(statement)

    def drop_tables(self) -> None:
        """Drop the tables, inside `write`."""
        self._checked = 0.0
        super().drop_tables()
        self.rows.run("drop table if exists search_sessions")

    def has_tables(self) -> bool:
        """Return True if the server has the tables, inside `read` or `write`."""
        return bool(self.rows.fetch(_HAS_TABLES)[0][0])

    def is_current(self, state: Mapping[str, str], unsearched: Sequence[BranchPart]) -> bool:  # noqa: ARG002 - it compares sessions
        """Return True if the index has all steps, and none that was erased since, inside `read`.

        Raises:
            LedgerError: Turns are missing.
        """
        if int(state["deletions"]) != self.count_deletions():
            return False
        now = time.monotonic()
        if self._checked and now - self._checked < _CHECK_SECONDS:
            return True
        self.require_turns()
        if self.rows.fetch(_STALE_SESSIONS, 1):
            return False
        self._checked = now
        return True

    def find_new_steps(self, state: dict[str, str], limit: int) -> list[IndexableStep]:  # noqa: ARG002 - no position is kept here
        """Return steps of sessions that have changed, branch by branch."""
        found: list[IndexableStep] = []
        while not found:
            stale = self.rows.fetch(_STALE_SESSIONS, _SESSIONS_PER_QUERY)
            if not stale:
                break
            taken: dict[str, int] = {}
            for session, tip in stale:
                found += self._find_steps_of(tip, taken, limit - len(found))
                if len(found) >= limit:
                    return found  # the session is not noted: the next call continues there
                self.rows.run(_NOTE_SESSION, session, tip)
        return found

    def _find_steps_of(self, tip: str, taken: dict[str, int], limit: int) -> Iterator[IndexableStep]:
        """Yield steps of a session that are not indexed.

        Args:
            tip: The session's newest step.
            taken: The last position by branch that this batch has; updated.
            limit: The maximum number of steps.
        """
        place = self.rows.place(tip)
        branch, last = (place.branch, place.position) if place else (None, -1)
        while branch is not None and limit > 0:
            indexed = taken.get(branch)
            if indexed is None:
                indexed = int(self.rows.fetch(_INDEXED_POSITION, branch)[0][0])
            if indexed < last:
                rows = self.rows.fetch(_NEW_STEPS, branch, indexed, last, limit)
                taken[branch] = rows[-1][2] if rows else last
                limit -= len(rows)
                yield from (IndexableStep(*row) for row in rows)
            row = self.rows.branch(branch)
            branch, last = (row.parent, row.position) if row else (None, -1)

    def count_deletions(self) -> int:
        """Return the number of the last recorded deletion."""
        ((number,),) = self.rows.fetch(_LAST_DELETION)
        return int(number)

    def add_words(self, places: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Insert the stems of places."""
        self.rows.run(_ADD_WORDS, *_write_blocks(places))

    def drop_words(self, places: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Remove the stems of places."""
        blocks = _write_blocks(places)
        self.rows.run(_DROP_WORDS, *blocks)
        self.rows.run(_DROP_EMPTY_WORDS, *blocks)

    def fetch_postings(self, stems: Sequence[str], low: int, high: int, limit: int) -> list[list[int]]:
        """Return the places of each stem between two, the newest `limit`."""
        found = self.rows.fetch(_PLACES, low, high, low, high, limit, _write_array(stems)) if stems else []
        return [places for (places,) in found]

    def fetch_facts(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[Any, ...]]:
        """Return id, step, created, speaker, flags and length of the turns in ranges of ids."""
        return self.rows.fetch(
            _FACTS, _write_array(first for first, _ in ranges), _write_array(last for _, last in ranges)
        )

    def read_steps(self, steps: Sequence[Any]) -> dict[Any, tuple[Any, ...]]:
        """Return the rows of steps by their ids, without missing ones."""
        return {row[0]: row for row in self.rows.fetch(_STEP_ROWS, _write_array(steps))}

    def fetch_owners(self, numbers: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Return number, branch and session name of branches."""
        return self.rows.fetch(_OWNERS, _write_array(map(str, numbers)))

    def find_erased(self, names: Sequence[str]) -> list[IndexableStep]:
        """Return the steps with these ids as they are before they are erased."""
        return [IndexableStep(*row) for row in self.rows.fetch(_NAMED_STEPS, _write_array(names))]

    def write_index(self, work: Callable[[], int]) -> int:
        """Call a function in a transaction, while no other program indexes."""

        def locked() -> int:
            self.rows.fetch(_LOCK, _LOCK_KEY)
            return work()

        return self.rows.write(locked)


def _write_blocks(places: Sequence[tuple[int, Sequence[str]]]) -> tuple[str, str, str]:
    """Return stems, blocks, and the parts of each block that have the stem, as the literals of three arrays."""
    parts: dict[tuple[str, int], list[int]] = {}
    for place, stems in places:
        block, part = place >> _BLOCK_BITS, place & (1 << _BLOCK_BITS) - 1
        for stem in stems:
            parts.setdefault((stem, block), []).append(part)
    return (
        _write_array(stem for stem, _ in parts),
        _write_array(block for _, block in parts),
        _write_array("{" + ",".join(map(str, each)) + "}" for each in parts.values()),
    )


def _write_array(values: Any) -> str:  # noqa: ANN401 - strings of letters and digits, iterable
    """Return the literal of an array."""
    return "{" + ",".join(f'"{value}"' for value in values) + "}"
