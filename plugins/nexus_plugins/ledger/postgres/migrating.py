"""Makes the tables of a ledger on a server, or brings older ones up to date, with a copy of them beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.plugin import LedgerError
from nexus_plugins.ledger.postgres import schema

if TYPE_CHECKING:
    import psycopg


def prepare(connection: psycopg.Connection[Any], where: str) -> None:
    """Make the tables, or bring them up to date; of many machines that begin at once, one does it.

    Raises:
        LedgerError: They are of a later Nexus.
    """
    if version_of(connection) == schema.VERSION:
        return
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (schema.LOCK,))
        version = version_of(connection)  # of those who waited, the first has done it
        ensure_known(version, where)
        if version == schema.VERSION:
            return
        if version > 0:
            # Whoever writes looks at this table first: they are waited for, and wait.
            connection.execute("lock table nexus.about in access exclusive mode")
            _copy(connection, version)
        for statement in _statements(version):
            connection.execute(statement)
        connection.execute("delete from nexus.about")
        connection.execute(schema.NOTE, (schema.VERSION,))


def ensure_known(version: int, where: str) -> None:
    """Refuse what a later Nexus has made.

    Raises:
        LedgerError: It has.
    """
    if version > schema.VERSION:
        what = f"the ledger was written by a newer Nexus: it has schema {version}, this one knows {schema.VERSION}"
        raise LedgerError(what, where=where, hint="update Nexus; nothing on the server was changed")


def version_of(connection: psycopg.Connection[Any]) -> int:
    """The number of the schema, 0 where there is none."""
    if connection.execute(schema.FIND).fetchall() != [(True,)]:
        return 0
    found = connection.execute(schema.KNOWN).fetchall()
    return int(found[0][0]) if found else 0


def _statements(version: int) -> list[str]:
    if version == 0:
        return list(schema.SCHEMA)
    return [statement for number in range(version, schema.VERSION) for statement in schema.MIGRATIONS[number]]


def _copy(connection: psycopg.Connection[Any], version: int) -> None:
    """What is in the tables now, in a schema of its own; an earlier copy of that name stays."""
    copy = "nexus_v" + str(version)
    if connection.execute("select 1 from pg_catalog.pg_namespace where nspname = %s", (copy,)).fetchall():
        return
    # Names cannot be bound; these are ours.
    connection.execute("create schema " + copy)
    tables = connection.execute("select tablename from pg_catalog.pg_tables where schemaname = 'nexus'").fetchall()
    for (table,) in tables:
        there = copy + "." + table
        connection.execute("create table " + there + " (like nexus." + table + " including all)")
        connection.execute("insert into " + there + " table nexus." + table)
