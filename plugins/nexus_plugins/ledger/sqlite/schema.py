"""The tables of a ledger."""

from __future__ import annotations

APPLICATION = 0x4E784C67
"""`NxLg`, in the place where SQLite files say whose they are."""

VERSION = 1
"""The number of the schema, in the file's `user_version`."""

# Short columns first: what follows a long text can only be read through it.
SCHEMA = (
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
    """create trigger steps_never_change before update on steps begin
        select raise(abort, 'steps are only ever added');
    end""",
    """create trigger steps_are_never_deleted before delete on steps begin
        select raise(abort, 'steps are only ever added');
    end""",
)

MIGRATIONS: dict[int, tuple[str, ...]] = {}
"""What brings a file of one schema to the next: the statements by the number it has before."""
