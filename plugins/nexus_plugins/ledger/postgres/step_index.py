"""The word index on a PostgreSQL server: a tsvector of stems for each place, with a GIN index.

The stems are those of Nexus, so that a server finds what a file finds, whatever its text search configuration.
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
    "create table search_words (place bigint primary key, words tsvector not null)",
    # Without the pending list, which every query would read from its start to its end.
    "create index search_word on search_words using gin (words) with (fastupdate = off)",
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
    "create table search_directories (number bigint primary key, path text not null unique)",
    'create table search_sessions (session text collate "C" primary key, tip text collate "C" not null)',
    "create table search_state (name text primary key, value text not null)",
)
_LOCK_KEY = 0x4E785365
"""The key of the advisory lock for programs that index."""
_LOCK = "select pg_advisory_xact_lock(?)"
_COUNT_TABLES = (
    "select count(*) from pg_catalog.pg_tables where schemaname = 'nexus' and tablename like 'search#_%' escape '#'"
)
_STALE_SESSIONS = (
    "select s.id, s.tip, s.data from sessions s left join search_sessions i on i.session = s.id"
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
_ADD_WORDS = "insert into search_words (place, words) values (?, array_to_tsvector(?::text[]))"
_DROP_WORDS = "delete from search_words where place = ?"
_PLACES = (
    "select place from search_words where words @@ ?::tsquery and place between ? and ? order by place desc limit ?"
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
        self._branch_owners: dict[str, tuple[str, str]] = {}

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
        return int(self.rows.fetch(_COUNT_TABLES)[0][0]) == len(TABLES) + 1

    def is_current(self, state: Mapping[str, str], unsearched: Sequence[BranchPart]) -> bool:  # noqa: ARG002 - it compares sessions
        """Return True if the index has all steps, and none that was erased since, inside `read`."""
        if int(state["deletions"]) != self.count_deletions():
            return False
        now = time.monotonic()
        if self._checked and now - self._checked < _CHECK_SECONDS:
            return True
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
            for session, tip, data in stale:
                found += self._find_steps_of(session, tip, data, taken, limit - len(found))
                if len(found) >= limit:
                    return found  # the session is not noted: the next call continues there
                self.rows.run(_NOTE_SESSION, session, tip)
        return found

    def _find_steps_of(
        self, session: str, tip: str, data: str, taken: dict[str, int], limit: int
    ) -> Iterator[IndexableStep]:
        """Yield steps of a session that are not indexed.

        Args:
            session: The session's id.
            tip: Its newest step.
            data: Its data.
            taken: The last position by branch that this batch has; updated.
            limit: The maximum number of steps.
        """
        place = self.rows.place(tip)
        branch, last = (place.branch, place.position) if place else (None, -1)
        while branch is not None and limit > 0:
            self._branch_owners.setdefault(branch, (session, data))
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

    def _find_owner(self, branch: str) -> tuple[str, str]:
        return self._branch_owners.get(branch) or super()._find_owner(branch)

    def count_deletions(self) -> int:
        """Return the number of the last recorded deletion."""
        ((number,),) = self.rows.fetch(_LAST_DELETION)
        return int(number)

    def add_words(self, places: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Insert the stems of places."""
        self.rows.run_many(_ADD_WORDS, [(place, _write_array(stems)) for place, stems in places])

    def drop_words(self, places: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Delete places."""
        self.rows.run_many(_DROP_WORDS, [(place,) for place, _ in places])

    def fetch_postings(self, stem: str, low: int, high: int, limit: int) -> list[int]:
        """Return places of a stem between two, the newest `limit`."""
        return [place for (place,) in self.rows.fetch(_PLACES, f"'{stem}'", low, high, limit)]

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
            self._branch_owners.clear()
            self.rows.fetch(_LOCK, _LOCK_KEY)
            return work()

        return self.rows.write(locked)


def _write_array(values: Any) -> str:  # noqa: ANN401 - strings of letters and digits, iterable
    """Return the literal of an array."""
    return "{" + ",".join(f'"{value}"' for value in values) + "}"
