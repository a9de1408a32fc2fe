"""Tables and migrations of the ledger on a server, in a schema of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.plugin.ledgers import LedgerError

if TYPE_CHECKING:
    import psycopg

SCHEMA_VERSION = 2
"""The version of the schema, stored in the table `about`."""

SCHEMA_LOCK_KEY = 0x4E784C67
"""The key of the advisory lock for creating and migrating tables."""

_CREATE_RECORD_TABLES = (
    'create table nexus.names (name text collate "C" primary key, session text collate "C" not null)',
    """create table nexus.deletions (
        id text collate "C" primary key,
        number bigint not null unique,
        session text collate "C" not null,
        reason text not null,
        created bigint not null,
        steps bigint not null,
        blobs bigint not null,
        digest text not null,
        chain text not null,
        purged bigint not null
    )""",
    """create table nexus.erased (
        deletion text collate "C" not null references nexus.deletions,
        kind text collate "C" not null,
        name text collate "C" not null,
        rest text not null,
        primary key (kind, name, deletion)
    )""",
)
_FILL_NAMES = (
    "insert into nexus.names select label, id from nexus.sessions union all select alias, session from nexus.aliases"
)
_CREATE_TRIGGER_FUNCTION = """create or replace function nexus.refuse() returns trigger language plpgsql as $$
    begin
        if tg_op = 'UPDATE' then
            old.messages := '[]';
            old.data := '{}';
            if new is not distinct from old
                and exists (select from nexus.erased where kind = 'step' and name = old.id) then
                return new;
            end if;
        end if;
        raise exception 'steps are only ever added';
    end
$$"""

# collate "C": names sort by their bytes, as in SQLite and in Python.
CREATE_STATEMENTS = (
    "create schema if not exists nexus",
    "create table if not exists nexus.about (version bigint not null)",
    """create table nexus.branches (
        id text collate "C" primary key,
        parent text collate "C" references nexus.branches,
        position bigint not null
    )""",
    """create table nexus.steps (
        id text collate "C" primary key,
        parent text collate "C" references nexus.steps,
        turn text collate "C" not null,
        branch text collate "C" not null references nexus.branches,
        position bigint not null,
        kind text not null,
        closes smallint not null,
        tokens bigint not null,
        counter text not null,
        total bigint not null,
        compaction text collate "C" references nexus.steps,
        created bigint not null,
        digest text not null,
        chain text not null,
        data text not null,
        messages text not null,
        unique (branch, position)
    )""",
    """create table nexus.sessions (
        id text collate "C" primary key,
        label text collate "C" not null unique,
        head text collate "C" references nexus.steps,
        tip text collate "C" references nexus.steps,
        open_turn text collate "C" references nexus.steps,
        status text not null,
        origin text not null,
        created bigint not null,
        updated bigint not null,
        data text not null,
        seal text not null
    )""",
    """create table nexus.aliases (
        alias text collate "C" primary key,
        session text collate "C" not null references nexus.sessions,
        created bigint not null,
        seal text not null
    )""",
    """create table nexus.history (
        session text collate "C" not null references nexus.sessions,
        step text collate "C" not null references nexus.steps,
        reason text not null,
        changed bigint not null,
        seal text not null,
        primary key (session, step)
    )""",
    'create table nexus.blobs (digest text collate "C" primary key, content bytea not null)',
    *_CREATE_RECORD_TABLES,
    _CREATE_TRIGGER_FUNCTION,
    """create trigger steps_never_change before update or delete on nexus.steps
        for each row execute function nexus.refuse()""",
)

# Not `to_regclass`: its cache misses tables that were created while the connection waited for a lock.
FIND_VERSION_TABLE = (
    "select exists (select from pg_catalog.pg_tables where schemaname = 'nexus' and tablename = 'about')"
)
READ_VERSION = "select version from nexus.about"
NOTE_VERSION = "insert into nexus.about (version) values (%s)"
MIGRATIONS: dict[int, tuple[str, ...]] = {1: (*_CREATE_RECORD_TABLES, _FILL_NAMES, _CREATE_TRIGGER_FUNCTION)}
"""The statements that migrate the schema from each version to the next."""


def prepare_tables(connection: psycopg.Connection[Any], where: str) -> None:
    """Create or migrate the tables, under a lock against concurrent programs.

    Raises:
        LedgerError: A newer Nexus wrote the tables.
    """
    if read_schema_version(connection) == SCHEMA_VERSION:
        return
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (SCHEMA_LOCK_KEY,))
        version = read_schema_version(connection)  # again: another program may have migrated it meanwhile
        require_known_version(version, where)
        if version == SCHEMA_VERSION:
            return
        if version > 0:
            # Every writer reads this table first, so the lock waits for running writers and blocks new ones.
            connection.execute("lock table nexus.about in access exclusive mode")
            _require_tables_of_version(connection, version, where)
            _copy_tables(connection, version)
        for statement in _find_statements(version):
            connection.execute(statement)
        connection.execute("delete from nexus.about")
        connection.execute(NOTE_VERSION, (SCHEMA_VERSION,))


def require_known_version(version: int, where: str) -> None:
    """Reject the schema of a newer Nexus.

    Raises:
        LedgerError: The version is newer than this Nexus.
    """
    if version > SCHEMA_VERSION:
        what = f"the ledger was written by a newer Nexus: it has schema {version}, this one knows {SCHEMA_VERSION}"
        raise LedgerError(what, where=where, hint="update Nexus; nothing on the server was changed")


def read_schema_version(connection: psycopg.Connection[Any]) -> int:
    """Return the version of the schema, 0 if there is none."""
    if connection.execute(FIND_VERSION_TABLE).fetchall() != [(True,)]:
        return 0
    found = connection.execute(READ_VERSION).fetchall()
    return int(found[0][0]) if found else 0


def _require_tables_of_version(connection: psycopg.Connection[Any], version: int, where: str) -> None:
    """Reject a schema that has tables of a later version than it states.

    Raises:
        LedgerError: It has.
    """
    found = re.compile(r"create table nexus\.(\w+)").match
    added = {table[1] for table in map(found, _find_statements(version)) if table}
    tables = connection.execute("select tablename from pg_catalog.pg_tables where schemaname = 'nexus'").fetchall()
    if later := sorted(added & {name for (name,) in tables}):
        what = f"the ledger is damaged: its schema version is {version}, but it has a later schema's table {later[0]!r}"
        raise LedgerError(what, where=where, hint="set the version in the table nexus.about back; nothing was changed")


def _find_statements(version: int) -> list[str]:
    if version == 0:
        return list(CREATE_STATEMENTS)
    return [statement for number in range(version, SCHEMA_VERSION) for statement in MIGRATIONS[number]]


def _copy_tables(connection: psycopg.Connection[Any], version: int) -> None:
    """Copy the tables into a schema named after their version.

    An existing copy is kept.
    """
    copy = "nexus_v" + str(version)
    if connection.execute("select 1 from pg_catalog.pg_namespace where nspname = %s", (copy,)).fetchall():
        return
    # Identifiers cannot be parameters; these names are constants of ours.
    connection.execute("create schema " + copy)
    tables = connection.execute("select tablename from pg_catalog.pg_tables where schemaname = 'nexus'").fetchall()
    for (table,) in tables:
        there = copy + "." + table
        connection.execute("create table " + there + " (like nexus." + table + " including all)")
        connection.execute("insert into " + there + " table nexus." + table)
