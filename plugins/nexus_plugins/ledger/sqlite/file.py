"""Whether a file is a ledger, and a new one where there is none."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from nexus_core.plugin import LedgerError
from nexus_plugins.ledger.sqlite import schema
from nexus_plugins.ledger.sqlite.connecting import application_of, connect, connect_as_it_is
from nexus_plugins.ledger.sqlite.failures import TROUBLE, refused
from nexus_plugins.ledger.sqlite.log import give_up_log
from nexus_plugins.ledger.sqlite.network import network_of, without_log

if TYPE_CHECKING:
    from collections.abc import Callable

_HEADER = 100
_KEPT = "name another file, or move this one away; it is left as it is"
_UNWRITABLE = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_FULL")
"""What SQLite says of a file that it could read."""


def connect_to_nothing() -> sqlite3.Connection:
    """A connection to an empty ledger that is nowhere: what somebody sees who looks where none is."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _make_tables(connection)
    return connection


def is_missing(path: Path) -> bool:
    """Whether there is nothing at a path, not even a link that leads nowhere."""
    return not os.path.lexists(path)


def connect_to_look(path: Path, trouble: sqlite3.OperationalError) -> sqlite3.Connection:
    """A connection to a file that cannot be written just now: its disk is full, or may only be read.

    SQLite makes a file beside it even to read. Where there is nothing but the file itself, nobody is writing to it and
    all is in it, so that it can be read without.

    Args:
        path: The file.
        trouble: Why it could not be opened as usual.

    Raises:
        sqlite3.OperationalError: The trouble, when it cannot be read either.
    """
    if not trouble.sqlite_errorname.startswith(_UNWRITABLE):
        raise trouble
    log = path.with_name(path.name + "-wal")
    is_alone = not log.exists() or log.stat().st_size == 0
    try:
        connection = connect_as_it_is(path) if is_alone else connect(path, mode="ro")
    except sqlite3.OperationalError:
        raise trouble from None
    prepare_to_look(path, connection)
    return connection


def prepare_to_look(path: Path, connection: sqlite3.Connection) -> None:
    """Let a connection that only reads use a file of an older schema; the file stays as it is."""
    for number in range(version_of(path, connection), schema.VERSION):
        for statement in schema.FOR_READERS.get(number, ()):
            connection.execute(statement)


def ensure(path: Path) -> None:
    """See that there is a ledger at a path: the one that is there, or a new one; without a log where none is safe.

    Raises:
        LedgerError: Something else is there, or nothing can be made there.
        sqlite3.OperationalError: It has a log, and cannot be freed from it.
    """
    kind, is_new = network_of(path), is_missing(path)
    try:
        if is_new:
            _make(path, with_log=not kind)
        _check(path)
    except OSError as error:
        raise refused(error, path) from error
    if kind and (give_up_log(path) or is_new):
        from logging import getLogger  # noqa: PLC0415 - few ledgers are on another machine

        getLogger("nexus_plugins.ledger").warning("%s: %s", path, without_log(kind))


def version_of(path: Path, connection: sqlite3.Connection) -> int:
    """The number of a file's schema.

    Raises:
        LedgerError: It is of a later Nexus, or of none.
    """
    ((version,),) = connection.execute("pragma user_version").fetchall()
    if version > schema.VERSION:
        what = f"the ledger was written by a newer Nexus: it has schema {version}, this one knows {schema.VERSION}"
        raise LedgerError(what, where=str(path), hint="update Nexus; the file is left as it is")
    if version < 1:
        hint = "`nexus session repair` saves what is whole into a new file; this one is left as it is"
        raise LedgerError(f"the ledger is damaged: it says it has schema {version}", where=str(path), hint=hint)
    return int(version)


def _make(path: Path, *, with_log: bool) -> None:
    for directory in reversed([parent for parent in path.parents if not parent.exists()]):
        directory.mkdir(mode=0o700, exist_ok=True)
    # Made beside its place and put there whole: whoever comes at the same time finds all of it or nothing.
    place_whole(path, partial(_fill, with_log=with_log))


def place_whole(path: Path, fill: Callable[[Path], None]) -> None:
    """Put a new file in its place once it is filled and on disk; one that is there already stays."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # nobody else may read it
    os.close(descriptor)
    try:
        fill(Path(temporary))
        _sync(Path(temporary))
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not path.exists():
                os.rename(temporary, path)  # noqa: PTH104 - both are names here
        _sync(path.parent)
    finally:
        for beside in ("", "-journal", "-wal", "-shm"):
            Path(temporary + beside).unlink(missing_ok=True)


def _fill(path: Path, *, with_log: bool) -> None:
    with closing(connect(path)) as connection:
        connection.execute("begin immediate")
        _make_tables(connection)
        connection.execute("commit")
        # Only now: what lies in a log comes into the file when it is closed, and nobody hears when that fails.
        if with_log:
            connection.execute("pragma journal_mode = wal")


def _make_tables(connection: sqlite3.Connection) -> None:
    # Pragmas take no bound values; these are numbers of ours.
    connection.execute("pragma application_id = " + str(schema.APPLICATION))
    connection.execute("pragma user_version = " + str(schema.VERSION))
    for statement in schema.SCHEMA:
        connection.execute(statement)


def _check(path: Path) -> None:
    about = path.stat()
    if not S_ISREG(about.st_mode):
        raise LedgerError("the ledger is not a regular file", where=str(path), hint=_KEPT)
    if not about.st_size:
        what = "the ledger is empty: it was cut off, or belongs to another program"
        raise LedgerError(what, where=str(path), hint="restore a backup, or move it away to start over")
    try:
        application = application_of(path)
    except TROUBLE as error:
        if about.st_size < _HEADER or getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
            what = "the file is not a ledger, and not a SQLite database at all"
            raise LedgerError(what, where=str(path), hint=_KEPT) from error
        return  # whoever uses it now hears what is wrong with it
    if application != schema.APPLICATION:
        raise LedgerError("the file is another program's database", where=str(path), hint=_KEPT)


def _sync(path: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
