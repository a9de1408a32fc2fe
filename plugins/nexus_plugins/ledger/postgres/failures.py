"""What a server says went wrong, in words that help, and whether to try again."""

from __future__ import annotations

import psycopg
from psycopg import errors

from nexus_core.plugin import LedgerError, UnreachableError

AGAIN = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
"""Somebody else was faster; what was begun is taken back, and the next attempt sees what they did."""

STALE = (
    errors.InvalidSqlStatementName,
    errors.DuplicatePreparedStatement,
    errors.FeatureNotSupported,
    errors.UndefinedTable,
)
"""What was prepared on a connection is not there, or is about tables as they were; a new connection knows better."""

GONE = (psycopg.OperationalError, psycopg.InterfaceError)
"""The server went away, or does not answer."""


def failure(error: psycopg.Error, where: str) -> LedgerError:
    """The error to raise for what a server said."""
    said = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, errors.DiskFull):
        hint = "free some space on the server and try again; what was recorded before is intact"
    elif isinstance(error, (errors.InsufficientPrivilege, errors.InvalidPassword)):
        hint = "allow this user to create and use the schema `nexus`"
    elif isinstance(error, GONE):
        hint = "check that the server is running and reachable from here; what was recorded before is intact"
    else:
        hint = "what was recorded before is intact"
    kind = UnreachableError if isinstance(error, (*GONE, errors.InsufficientPrivilege)) else LedgerError
    return kind(f"the ledger cannot be used: {said}", where=where, hint=hint)
