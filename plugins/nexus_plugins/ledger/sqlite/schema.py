"""Tables, triggers and migrations of the SQLite file."""

from __future__ import annotations

import re

APPLICATION_ID = 0x4E784C67
"""`NxLg`, in the header of the SQLite file."""

SCHEMA_VERSION = 2
"""The version of the schema, stored in the file's `user_version`."""

_CREATE_RECORD_TABLES = (
    "create table names (name text primary key, session text not null) without rowid",
    """create table deletions (
        id text primary key,
        number integer not null unique,
        session text not null,
        reason text not null,
        created integer not null,
        steps integer not null,
        blobs integer not null,
        digest text not null,
        chain text not null,
        purged integer not null
    )""",
    """create table erased (
        deletion text not null references deletions,
        kind text not null,
        name text not null,
        rest text not null,
        primary key (kind, name, deletion)
    ) without rowid""",
)
_FILL_NAMES = "insert into names select label, id from sessions union all select alias, session from aliases"
_CREATE_UPDATE_TRIGGER = """create trigger steps_never_change before update on steps
    when not (
        new.messages = '[]' and new.data = '{}' and exists (select 1 from erased where kind = 'step' and name = old.id)
        and new.id is old.id and new.parent is old.parent and new.turn is old.turn and new.branch is old.branch
        and new.position is old.position and new.kind is old.kind and new.closes is old.closes
        and new.tokens is old.tokens and new.counter is old.counter and new.total is old.total
        and new.compaction is old.compaction and new.created is old.created and new.digest is old.digest
        and new.chain is old.chain
    ) begin
        select raise(abort, 'steps are only ever added');
    end"""

# Short columns first: SQLite must read through a long text to reach the columns after it.
CREATE_STATEMENTS = (
    """create table branches (
        id text primary key,
        parent text references branches,
        position integer not null
    ) without rowid""",
    """create table steps (
        id text primary key,
        parent text references steps,
        turn text not null,
        branch text not null references branches,
        position integer not null,
        kind text not null,
        closes integer not null,
        tokens integer not null,
        counter text not null,
        total integer not null,
        compaction text references steps,
        created integer not null,
        digest text not null,
        chain text not null,
        data text not null,
        messages text not null,
        unique (branch, position)
    )""",
    """create table sessions (
        id text primary key,
        label text not null unique,
        head text references steps,
        tip text references steps,
        open_turn text references steps,
        status text not null,
        origin text not null,
        created integer not null,
        updated integer not null,
        data text not null,
        seal text not null
    )""",
    """create table aliases (
        alias text primary key,
        session text not null references sessions,
        created integer not null,
        seal text not null
    ) without rowid""",
    """create table history (
        session text not null references sessions,
        step text not null references steps,
        reason text not null,
        changed integer not null,
        seal text not null,
        primary key (session, step)
    ) without rowid""",
    "create table blobs (digest text primary key, content blob not null)",
    *_CREATE_RECORD_TABLES,
    _CREATE_UPDATE_TRIGGER,
    """create trigger steps_are_never_deleted before delete on steps begin
        select raise(abort, 'steps are only ever added');
    end""",
)

MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: (*_CREATE_RECORD_TABLES, _FILL_NAMES, "drop trigger if exists steps_never_change", _CREATE_UPDATE_TRIGGER),
}
"""The statements that migrate the schema from each version to the next."""

READER_STATEMENTS: dict[int, tuple[str, ...]] = {
    1: (*(statement.replace("create table", "create temp table") for statement in _CREATE_RECORD_TABLES), _FILL_NAMES),
}
"""Temporary tables in memory, for reading a file of an older schema that cannot be migrated."""


def list_added_tables(version: int) -> set[str]:
    """Return the tables that migrations from a version to the current one create."""
    statements = [statement for number in range(version, SCHEMA_VERSION) for statement in MIGRATIONS[number]]
    return {found[1] for found in map(re.compile(r"create table (\w+)").match, statements) if found}
