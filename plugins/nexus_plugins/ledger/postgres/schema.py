"""The tables of a ledger on a server, in a schema of their own: those of the file, in the server's words."""

from __future__ import annotations

VERSION = 2
"""The number of the schema, in the table `about`."""

LOCK = 0x4E784C67
"""The advisory lock under which tables are made."""

_RECORDS = (
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
_ALL_NAMES = (
    "insert into nexus.names select label, id from nexus.sessions union all select alias, session from nexus.aliases"
)
_REFUSE = """create or replace function nexus.refuse() returns trigger language plpgsql as $$
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

# Names sort by their bytes, as everywhere else.
SCHEMA = (
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
    *_RECORDS,
    _REFUSE,
    """create trigger steps_never_change before update or delete on nexus.steps
        for each row execute function nexus.refuse()""",
)

# Not `to_regclass`: it answers from a cache, which does not hear of tables that were made while one waited for a lock.
FIND = "select exists (select from pg_catalog.pg_tables where schemaname = 'nexus' and tablename = 'about')"
KNOWN = "select version from nexus.about"
NOTE = "insert into nexus.about (version) values (%s)"
MIGRATIONS: dict[int, tuple[str, ...]] = {1: (*_RECORDS, _ALL_NAMES, _REFUSE)}
"""What brings a server of one schema to the next: the statements by the number it has before."""
