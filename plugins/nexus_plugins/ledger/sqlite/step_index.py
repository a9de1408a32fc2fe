"""The word index in the SQLite file: an FTS5 table without content, and what its rows mean.

The words of a step are stems, and each occurs once: the table has no positions, no columns and no lengths.
"""

from __future__ import annotations

import json
import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any

from nexus_core.plugin.ledgers import LedgerError
from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger._step_index import OWNERS, TABLES, IndexableStep, SqlStepIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nexus_core.plugin.ledgers import BranchPart
    from nexus_plugins.ledger.sqlite.store import SqliteStore


# `ascii` splits at what is neither a letter nor a digit, and stems are made of these alone, in any script.
_WORDS_OPTIONS = "(words, content = '', columnsize = 0, detail = none, tokenize = 'ascii')"
_CREATE_STATEMENTS = (
    f"create virtual table search_words using fts5{_WORDS_OPTIONS}",
    """create table search_steps (
        id integer primary key,
        step integer not null,
        created integer not null,
        speaker integer not null,
        flags integer not null,
        length integer not null
    )""",
    "create table search_forgotten (step integer primary key)",
    "create table search_speakers (number integer primary key, name text not null unique)",
    """create table search_branches (
        number integer primary key,
        branch text not null,
        session text not null,
        directory integer not null,
        turns integer not null,
        words integer not null,
        position integer not null
    )""",
    "create index search_branch on search_branches (branch)",
    """create table search_blocks (
        first integer primary key,
        size integer not null,
        used integer not null,
        directory integer not null,
        turns integer not null,
        words integer not null
    )""",
    "create index search_block on search_blocks (directory, first)",
    "create table search_directories (number integer primary key, path text not null unique)",
    "create table search_state (name text primary key, value text not null) without rowid",
)
# SQLite drops a virtual table only if it can open it: the tables behind it are replaced by those of an empty one.
_EMPTY_WORDS = (
    "drop table if exists search_words_data",
    "drop table if exists search_words_idx",
    "drop table if exists search_words_config",
    f"create virtual table search_empty using fts5{_WORDS_OPTIONS}",
    "create table search_words_data (id integer primary key, block blob)",
    "insert into search_words_data select id, block from search_empty_data",
    "create table search_words_idx (segid, term, pgno, primary key (segid, term)) without rowid",
    "create table search_words_config (k primary key, v) without rowid",
    "insert into search_words_config select k, v from search_empty_config",
    "drop table search_empty",
)
_COUNT_TABLES = f"select count(*) from sqlite_master where type = 'table' and name in ({', '.join(map(repr, TABLES))})"  # noqa: S608 - constants
_OTHER_STEP = (
    "select 1 from steps where rowid > ?"
    " and (kind = 'forget' or not exists (select 1 from json_each(?) part"
    " where branch = json_extract(part.value, '$[0]') and position <= json_extract(part.value, '$[1]'))) limit 1"
)
_STEP_ID = "select id from steps where rowid = ?"
_LAST_DELETION = "select coalesce(max(number), 0) from deletions"
_ROWS = f"select (select max(rowid) from steps), ({_LAST_DELETION}), ({_STEP_ID})"  # noqa: S608 - constants
_NEW_STEPS = (
    "select rowid, branch, position, kind, created, messages, id from steps where rowid > ? order by rowid limit ?"
)
_NAMED_STEP = "select rowid, branch, position, kind, created, messages from steps where id = ?"
_STEP_ROWS = sql.STEP.replace(" from steps", ", rowid from steps").replace(
    "id = ?", "rowid in (select value from json_each(?))"
)
_OWNERS = OWNERS + "in (select value from json_each(?))"  # noqa: S608 - constants, both of them
_ADD_WORDS = "insert into search_words (rowid, words) values (?, ?)"
_DROP_WORDS = "insert into search_words (search_words, rowid, words) values ('delete', ?, ?)"
_MERGE_WORDS = "insert into search_words (search_words) values ('optimize')"
_MERGE_PAGES = "insert into search_words (search_words, rank) values ('merge', ?)"
_CHANGES = "select total_changes()"
_PLACES = "select rowid from search_words where search_words match ? and rowid between ? and ?"
_NEWEST_PLACES = _PLACES + " order by rowid desc limit ?"
_FACTS = (
    "select t.id, t.step, t.created, t.speaker, t.flags, t.length from json_each(?) ids cross join search_steps t"
    " where t.id between json_extract(ids.value, '$[0]') and json_extract(ids.value, '$[1]')"
)
_MAX_UNINDEXED_STEPS = 64
_PAGES_PER_MERGE = 500
"""Pages that one transaction of a merge writes, so that others wait for the lock as long as for a batch of steps."""
_MIN_CHANGES = 2
"""Changes of a merge that had something left to do."""
_MANY_PLACES = 5_000
"""A limit from which on places are read forwards, which is faster, and cut afterwards."""


class SqliteStepIndex(SqlStepIndex):
    """The index in the file.

    Steps are never deleted, so that new ones have the highest rowids. The id of the last indexed step is kept, too: if
    the file was rebuilt with other rowids, it differs.
    """

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self._store = store

    def create_tables(self) -> None:
        """Create the tables, inside `write`."""
        for statement in _CREATE_STATEMENTS:
            self.rows.run(statement)

    def drop_tables(self) -> None:
        """Drop the tables, inside `write`, even if SQLite cannot open the damaged table of words."""
        try:
            super().drop_tables()
        except sqlite3.DatabaseError:
            for statement in _EMPTY_WORDS:
                self.rows.run(statement)
            super().drop_tables()

    def has_tables(self) -> bool:
        """Return True if the file has the tables, inside `read` or `write`."""
        return int(self.rows.fetch(_COUNT_TABLES)[0][0]) == len(TABLES)

    def is_current(self, state: Mapping[str, str], unsearched: Sequence[BranchPart]) -> bool:
        """Return True if the index has all steps, and none that was erased since, inside `read`.

        Args:
            state: The state of the index.
            unsearched: Parts of branches of which a few new steps may be missing: a session that searches after each
                of its turns does not find them anyway, and indexing some at once costs little more than one.

        Raises:
            LedgerError: Turns are missing.
        """
        self.require_turns()
        indexed = int(state.get("last", 0))
        ((last, deletions, indexed_id),) = self.rows.fetch(_ROWS, indexed)
        if indexed != (last or 0):
            is_small = 0 < (last or 0) - indexed <= _MAX_UNINDEXED_STEPS
            if not (is_small and unsearched) or self.rows.fetch(_OTHER_STEP, indexed, json.dumps(unsearched)):
                return False
        return (state["deletions"], state.get("last_id")) == (str(deletions), indexed_id)

    def read_version(self) -> object:
        """Return a value that differs after every change of the file, by this program or another one."""
        return self._store.read_version()

    def _is_same_file(self, state: Mapping[str, str]) -> bool:
        if "last" not in state:
            return True
        found = self.rows.fetch(_STEP_ID, int(state["last"]))
        return bool(found) and found[0][0] == state["last_id"]

    def find_new_steps(self, state: dict[str, str], limit: int) -> list[IndexableStep]:
        """Return steps that are not indexed yet, in the order in which they were appended."""
        if not self._is_same_file(state):
            raise LedgerError("the rows of the ledger have other numbers than those of its search index")
        found = self.rows.fetch(_NEW_STEPS, int(state.get("last", 0)), limit)
        if found:
            state["last"], state["last_id"] = str(found[-1][0]), found[-1][-1]
        return [IndexableStep(*row[:-1]) for row in found]

    def is_pending(self, step: IndexableStep, state: Mapping[str, str]) -> bool:
        """Return True if a step was appended after the last one that is indexed."""
        return int(step.ref) > int(state.get("last", 0))

    def count_deletions(self) -> int:
        """Return the number of the last recorded deletion."""
        ((number,),) = self.rows.fetch(_LAST_DELETION)
        return int(number)

    def add_words(self, places: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Insert the stems of places."""
        self.rows.run_many(_ADD_WORDS, [(place, " ".join(stems)) for place, stems in places])

    def drop_words(self, places: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Remove the stems of places, and merge the table: until then it only notes that they are gone."""
        self.rows.run_many(_DROP_WORDS, [(place, " ".join(stems)) for place, stems in places])
        self.rows.run(_MERGE_WORDS)

    def merge_words(self) -> None:
        """Merge the segments of the table, in short transactions: a query looks a word up in each of them."""
        pages = -_PAGES_PER_MERGE  # a negative number begins to merge all segments, a positive one continues
        while self.write_index(partial(self._merge_pages, pages)) >= _MIN_CHANGES:
            pages = _PAGES_PER_MERGE

    def _merge_pages(self, pages: int) -> int:
        """Merge so many pages, and return the number of changes."""
        ((before,),) = self.rows.fetch(_CHANGES)
        self.rows.run(_MERGE_PAGES, pages)
        ((after,),) = self.rows.fetch(_CHANGES)
        return int(after) - int(before)

    def fetch_postings(self, stems: Sequence[str], low: int, high: int, limit: int) -> list[list[int]]:
        """Return the places of each stem between two, the newest `limit`."""
        if limit < _MANY_PLACES:
            found = (self.rows.fetch(_NEWEST_PLACES, f'"{stem}"', low, high, limit) for stem in stems)
        else:
            found = (self.rows.fetch(_PLACES, f'"{stem}"', low, high)[-limit:] for stem in stems)
        return [[place for (place,) in rows] for rows in found]

    def fetch_facts(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[Any, ...]]:
        """Return id, step, created, speaker, flags and length of the turns in ranges of ids."""
        return self.rows.fetch(_FACTS, json.dumps(ranges))

    def read_steps(self, steps: Sequence[Any]) -> dict[Any, tuple[Any, ...]]:
        """Return the rows of steps by their rowids, without missing ones."""
        return {row[-1]: row[:-1] for row in self.rows.fetch(_STEP_ROWS, json.dumps(steps))}

    def fetch_owners(self, numbers: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Return number, branch and session name of branches."""
        return self.rows.fetch(_OWNERS, json.dumps(numbers))

    def find_erased(self, names: Sequence[str]) -> list[IndexableStep]:
        """Return the steps with these ids as they are before they are erased."""
        return [IndexableStep(*row) for name in names for row in self.rows.fetch(_NAMED_STEP, name)]

    def write_index(self, work: Callable[[], int]) -> int:
        """Call a function in a transaction that need not be durable: the index can be built again."""
        return self._store.write_without_sync(work)
