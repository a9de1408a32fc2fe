"""The SQLite file: connections, error messages, creation, migration and its log.

Nothing else may open the file while this process has a connection to it: when any descriptor of a file is closed, POSIX
drops every lock that the process has on it, and another program would assume that it owns the log. SQLite handles that
for its own descriptors by closing them later. On a network file system the write-ahead log is not safe, because its
index is in memory that programs on two machines do not share. There SQLite's rollback journal is used instead.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from functools import partial
from logging import getLogger
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.plugin.ledgers import LedgerError, LedgerUnreachableError
from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger.sqlite import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite; UnicodeDecodeError occurs when its message quotes a damaged file."""

_INTACT_NOTE = "what was recorded before is intact"
_MESSAGES_AND_HINTS = {
    "SQLITE_FULL": ("the disk is full", f"free some space and try again; {_INTACT_NOTE}"),
    "SQLITE_IOERR": (
        "the disk refuses to read or write",
        f"free some space or check the disk, and try again; {_INTACT_NOTE}",
    ),
    "SQLITE_READONLY": ("it cannot be written", "make the file and its directory writable"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "create its directory, and make it readable and writable"),
    "SQLITE_PERM": ("it may not be opened", "make the file and its directory readable and writable"),
    "SQLITE_BUSY": ("another program keeps it locked", "try again; `fuser` shows which programs have it open"),
    "SQLITE_CORRUPT": (
        "it is damaged",
        "`nexus ledger verify` shows where, `nexus ledger repair NEW` saves what is intact into a new file",
    ),
    "SQLITE_NOTADB": ("it is not a ledger", "name another file; this one is left as it is"),
}

_UNREACHABLE_ERRORS = ("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")
"""Errors that do not depend on the file's content."""


def build_sqlite_error(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> LedgerError:
    """Return the ledger error for an error of SQLite."""
    name = getattr(error, "sqlite_errorname", "") or "SQLITE_CORRUPT" * isinstance(error, UnicodeDecodeError)
    for known, (what, hint) in _MESSAGES_AND_HINTS.items():
        if name.startswith(known):
            why = (
                _describe_free_space(path)
                if known in ("SQLITE_FULL", "SQLITE_IOERR")
                else _describe_write_protection(path)
            )
            kind = LedgerUnreachableError if known in _UNREACHABLE_ERRORS else LedgerError
            return kind(f"the ledger cannot be used: {what}{why} ({error})", where=str(path), hint=hint)
    return LedgerError(f"the ledger cannot be used: {error}", where=str(path))


def build_system_error(error: OSError, path: Path) -> LedgerUnreachableError:
    """Return the ledger error for an error of the operating system."""
    hint = "check that the directory exists, and can be read and written"
    return LedgerUnreachableError(f"the ledger cannot be used: {error.strerror}", where=str(path), hint=hint)


def _describe_free_space(path: Path) -> str:
    try:
        return f", {shutil.disk_usage(path.parent).free:,} bytes are free"
    except OSError:
        return ""


def _describe_write_protection(path: Path) -> str:
    """Describe why a file cannot be written, to append to a sentence, or return ""."""
    try:
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            return ", its file system is read only"
    except (OSError, AttributeError):  # no such directory, or a platform without statvfs
        return ""
    return "" if os.access(path.parent, os.W_OK) else ", its directory may not be written"


LOCK_TIMEOUT_SECONDS = 60.0
"""Seconds to wait for the lock while other programs write."""

_IMMUTABLE_MODE = "ro&immutable=1"
_CONNECTION_PRAGMAS = (
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma trusted_schema = off",
    "pragma cell_size_check = on",
    "pragma mmap_size = 0",  # damage of a mapped file would change memory before it can be checked
    "pragma wal_autocheckpoint = 0",  # checkpoints are explicit, under the write lock: see WriteAheadLog
)


def connect_to_file(path: Path, *, mode: str = "rw") -> sqlite3.Connection:
    """Open a connection to an existing file."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        for statement in _CONNECTION_PRAGMAS:
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_immutable(path: Path) -> sqlite3.Connection:
    """Open a connection that takes no lock, ignores the log and changes nothing.

    It does so even if other programs write.
    """
    return connect_to_file(path, mode=_IMMUTABLE_MODE)


def read_application_id(path: Path) -> int:
    """Return the application id in the header of a SQLite file."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={_IMMUTABLE_MODE}", uri=True)) as connection:
        ((application,),) = connection.execute("pragma application_id").fetchall()
        return int(application)


MOUNT_TABLE = Path("/proc/self/mountinfo")
"""The list of mounts on Linux. On other systems every file counts as local."""

_NETWORK_KIND_NAMES = """
9p afs beegfs ceph cifs coda davfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs prl_fs pvfs2 smb3
smbfs vboxsf virtiofs vmhgfs fuse.blobfuse fuse.blobfuse2 fuse.ceph fuse.ceph-fuse fuse.curlftpfs fuse.davfs
fuse.gcsfuse fuse.glusterfs fuse.goofys fuse.grpcfuse fuse.gvfsd-fuse fuse.juicefs fuse.kio-fuse fuse.lizardfs fuse.mfs
fuse.moosefs fuse.rclone fuse.s3fs fuse.smbnetfs fuse.sshfs fuse.vmhgfs-fuse fuse.webdavfs
"""
_NETWORK_KINDS = frozenset(_NETWORK_KIND_NAMES.split())
_ESCAPED = re.compile(r"\\([0-7]{3})")


def find_network_kind(path: Path) -> str:
    """Return the type of a path's network file system, such as `nfs4`, or ""."""
    try:
        mounts = list(_read_mounts())
        if _NETWORK_KINDS.isdisjoint(mount.kind for mount in mounts):
            return ""
        directory = _find_nearest_directory(os.path.realpath(path))
        number = os.stat(directory).st_dev  # noqa: PTH116 - paths are strings here
    except OSError:
        return ""
    device = f"{os.major(number)}:{os.minor(number)}"
    there = [mount for mount in mounts if mount.device == device]
    there = there or sorted((each for each in mounts if each.holds(directory)), key=lambda mount: len(mount.point))
    return there[-1].kind if there and there[-1].kind in _NETWORK_KINDS else ""


def _find_nearest_directory(path: str) -> str:
    """Return the directory of a file, or the nearest parent that exists."""
    directory = os.path.dirname(path)  # noqa: PTH120 - paths are strings here
    return directory if directory in ("", "/") or os.path.isdir(directory) else _find_nearest_directory(directory)  # noqa: PTH112 - paths are strings here


def describe_network_file(kind: str) -> str:
    """Return a warning about a ledger on a network file system."""
    return (
        f"the ledger is on a network file system ({kind}), so SQLite uses no write-ahead log: it is slower, and readers"
        " and writers wait for each other; for many machines, use a server (postgresql://…)"
    )


class _Mount(NamedTuple):
    """An entry of the mount table: device number, mount point and file system type."""

    device: str
    point: str
    kind: str

    def holds(self, directory: str) -> bool:
        return f"{directory}/".startswith(f"{self.point.rstrip('/')}/")


def _read_mounts() -> Iterator[_Mount]:
    for line in MOUNT_TABLE.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.partition(" ")[0]
        if len(fields) > 4:  # noqa: PLR2004 - the mount point is the fifth field
            yield _Mount(fields[2], _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[4]), kind)


_MAX_LOG_BYTES = 4 * 1024 * 1024
_MAX_WRITES_BETWEEN_COPIES = 64
"""Writes before a log of unchanged length is copied again: after a checkpoint the file keeps its length and is
overwritten from the start, so its length does not show how much is in it."""


def disable_log(path: Path) -> bool:
    """Switch a file from the write-ahead log to a rollback journal.

    Return True if it had a log.

    Raises:
        sqlite3.OperationalError: The file cannot be written, or another program has it open.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        try:
            with closing(connect_to_file(path)) as connection:
                ((mode,),) = connection.execute("pragma journal_mode").fetchall()
                if mode == "wal":
                    connection.execute("pragma journal_mode = delete")
                return bool(mode == "wal")
        except sqlite3.OperationalError as error:  # two programs block each other here, and SQLite does not wait
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 - jitter, so that they retry at different times


def purge_erased_content(connection: sqlite3.Connection) -> bool:
    """Rebuild the file without erased content, and empty its log.

    Free pages and gaps inside pages keep their old content, so the whole file is rebuilt. A connection that still reads
    an older state prevents emptying the log: then the next program that opens the ledger does it.

    Returns:
        True if no erased content is left in the file or its log.

    Raises:
        sqlite3.Error: There is no space for a second copy, or the file is in use.
    """
    connection.execute("pragma secure_delete = on")
    connection.execute("vacuum")
    if not _empty_log(connection):
        return False
    connection.execute(sql.NOTE_PURGED)
    return _empty_log(connection)


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Copy the log into the file and truncate it.

    Return False if a reader prevents that.
    """
    ((is_busy, _, _),) = connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    return not is_busy


class WriteAheadLog:
    """The write-ahead log of a file, kept short by checkpoints.

    SQLite itself makes checkpoints after a commit, while others commit: before 3.51.3, a writer that restarts the log
    at that moment can damage the file. Here a checkpoint holds the write lock, so that no other program can write.

    Args:
        path: The file of the ledger.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._length = 0
        self._writes = 0

    def shorten(self, connection: sqlite3.Connection) -> None:
        """Copy a long log into the file.

        Errors are ignored, because the next writer tries again.

        Args:
            connection: The connection that has just written.
        """
        self._writes += 1
        length = self._measure()
        if length < _MAX_LOG_BYTES or (length == self._length and self._writes < _MAX_WRITES_BETWEEN_COPIES):
            return
        self._length, self._writes = length, 0
        with suppress(sqlite3.Error):
            try:
                connection.execute("begin immediate")
                with closing(connect_to_file(self._path)) as other:  # a connection in a transaction cannot do it
                    other.execute("pragma wal_checkpoint(passive)")
            finally:
                if connection.in_transaction:
                    connection.execute("rollback")

    def _measure(self) -> int:
        try:
            return self._path.with_name(self._path.name + "-wal").stat().st_size
        except OSError:
            return 0


_HEADER_BYTES = 100
_UNTOUCHED_HINT = "name another file, or move this one away; it is left as it is"
_UNWRITABLE_ERRORS = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_FULL")
"""Errors of files that SQLite may still be able to read."""


def connect_to_empty_ledger() -> sqlite3.Connection:
    """Open an empty ledger in memory, for readers of a file that does not exist."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create_tables(connection)
    return connection


def is_missing(path: Path) -> bool:
    """Return True if there is nothing at a path, not even a dangling link."""
    return not os.path.lexists(path)


def connect_read_only(path: Path, error: sqlite3.OperationalError) -> sqlite3.Connection:
    """Open a file that cannot be written, because its disk is full or read-only.

    SQLite creates a second file even for reading. If there is no log, no program is writing and the file is complete,
    so it can be opened as immutable, which needs no second file.

    Args:
        path: The file.
        error: The error of opening it for writing.

    Raises:
        sqlite3.OperationalError: `error`, if the file cannot be read either.
    """
    if not error.sqlite_errorname.startswith(_UNWRITABLE_ERRORS):
        raise error
    log = path.with_name(path.name + "-wal")
    has_log = log.exists() and log.stat().st_size != 0
    try:
        connection = connect_to_file(path, mode="ro") if has_log else connect_immutable(path)
    except sqlite3.OperationalError:
        raise error from None
    try:
        prepare_read_only(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare_read_only(path: Path, connection: sqlite3.Connection) -> None:
    """Let a read-only connection use a file of an older schema, unchanged."""
    for number in range(read_schema_version(path, connection), schema.SCHEMA_VERSION):
        for statement in schema.READER_STATEMENTS.get(number, ()):
            connection.execute(statement)


def ensure_file(path: Path) -> None:
    """Create the ledger's file if it is missing, else check it.

    On a network file system, disable its log.

    Raises:
        LedgerError: The path is something else, or cannot be created.
        sqlite3.OperationalError: The log cannot be disabled.
    """
    kind, is_new = find_network_kind(path), is_missing(path)
    try:
        if is_new:
            _create_file(path, with_log=not kind)
        _check_file(path)
    except OSError as error:
        raise build_system_error(error, path) from error
    if kind and (disable_log(path) or is_new):
        getLogger("nexus_plugins.ledger").warning("%s: %s", path, describe_network_file(kind))


_READ_VERSION = (
    "select (select user_version from pragma_user_version),"
    " (select group_concat(name) from main.sqlite_master where type = 'table')"
)


def read_schema_version(path: Path, connection: sqlite3.Connection) -> int:
    """Return the version of a file's schema.

    Raises:
        LedgerError: The version is newer than this Nexus, or invalid, or that of an older schema than the tables have.
    """
    # In one statement, because another program may migrate the file meanwhile.
    ((version, tables),) = connection.execute(_READ_VERSION).fetchall()
    if version > schema.SCHEMA_VERSION:
        what = (
            f"the ledger was written by a newer Nexus: it has schema {version}, this one knows {schema.SCHEMA_VERSION}"
        )
        raise LedgerError(what, where=str(path), hint="update Nexus; the file is left as it is")
    if version < 1:
        hint = "`nexus ledger repair NEW` saves what is intact into a new file; this one is left as it is"
        raise LedgerError(f"the ledger is damaged: its schema version is {version}", where=str(path), hint=hint)
    if version < schema.SCHEMA_VERSION and (later := schema.list_added_tables(version) & set(str(tables).split(","))):
        what = f"its schema version is {version}, but it has a later schema's table {min(later)!r}"
        hint = "`nexus ledger repair NEW` saves what is intact into a new file; this one is left as it is"
        raise LedgerError(f"the ledger is damaged: {what}", where=str(path), hint=hint)
    return int(version)


def _create_file(path: Path, *, with_log: bool) -> None:
    for directory in reversed([parent for parent in path.parents if not parent.exists()]):
        directory.mkdir(mode=0o700, exist_ok=True)
    # Created under another name and linked when complete, so that other programs see all of it or nothing.
    create_atomically(path, partial(_fill_file, with_log=with_log))


def create_atomically(path: Path, fill: Callable[[Path], None]) -> None:
    """Create a file atomically, after it is filled and synced to disk.

    An existing file is kept.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # only the owner can read it
    os.close(descriptor)
    try:
        fill(Path(temporary))
        _sync_to_disk(Path(temporary))
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not path.exists():
                os.rename(temporary, path)  # noqa: PTH104 - the first is a string
        _sync_to_disk(path.parent)
    finally:
        for beside in ("", "-journal", "-wal", "-shm"):
            Path(temporary + beside).unlink(missing_ok=True)


def _fill_file(path: Path, *, with_log: bool) -> None:
    with closing(connect_to_file(path)) as connection:
        connection.execute("begin immediate")
        _create_tables(connection)
        connection.execute("commit")
        # Only now: the content of a log is copied into the file on close, where errors are not reported.
        if with_log:
            connection.execute("pragma journal_mode = wal")


def _create_tables(connection: sqlite3.Connection) -> None:
    # Pragmas cannot have parameters; these numbers are constants of ours.
    connection.execute("pragma application_id = " + str(schema.APPLICATION_ID))
    connection.execute("pragma user_version = " + str(schema.SCHEMA_VERSION))
    for statement in schema.CREATE_STATEMENTS:
        connection.execute(statement)


def _check_file(path: Path) -> None:
    about = path.stat()
    if not S_ISREG(about.st_mode):
        raise LedgerError("the ledger is not a regular file", where=str(path), hint=_UNTOUCHED_HINT)
    if not about.st_size:
        what = "the ledger is empty: it was cut off, or belongs to another program"
        raise LedgerError(what, where=str(path), hint="restore a backup, or move it away to start over")
    try:
        application = read_application_id(path)
    except SQLITE_ERRORS as error:
        if about.st_size < _HEADER_BYTES or getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
            what = "the file is not a ledger, and not a SQLite database at all"
            raise LedgerError(what, where=str(path), hint=_UNTOUCHED_HINT) from error
        return  # the first use of the file reports the damage
    if application != schema.APPLICATION_ID:
        raise LedgerError("the file is another program's database", where=str(path), hint=_UNTOUCHED_HINT)


def _sync_to_disk(path: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def migrate_file(path: Path, connection: sqlite3.Connection) -> None:
    """Migrate a file to the current schema, under a lock against other programs."""
    if read_schema_version(path, connection) == schema.SCHEMA_VERSION:
        return
    connection.execute("begin immediate")
    try:
        version = read_schema_version(path, connection)  # again: another program may have migrated it meanwhile
        if version < schema.SCHEMA_VERSION:
            _copy_file(path, path.with_name(path.name + ".v" + str(version)))
        for number in range(version, schema.SCHEMA_VERSION):
            for statement in schema.MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute("pragma user_version = " + str(number + 1))
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _copy_file(path: Path, copy: Path) -> None:
    """Back up a file under another name. An existing copy is kept."""

    def fill(target: Path) -> None:
        with closing(connect_to_file(path, mode="ro")) as source, closing(sqlite3.connect(target)) as sink:
            source.backup(sink)

    create_atomically(copy, fill)
