"""The file with address and token of the running server, in the Nexus home, and the lock that keeps it the only one."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import FileError, UsageError
from nexus_core.files.read import read_text
from nexus_core.files.write import make_directories, write_text_atomically
from nexus_core.rpc.protocol import RpcConnectionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform != "win32":
    import fcntl

SERVER_FILE = "server.json"
"""Address, token and process of the running server, in the Nexus home; only the user can read it."""
LOCK_FILE = "server.lock"
"""Held by the running server; the system releases it when the process ends, however it does."""


class ServerAddress(NamedTuple):
    """Where a server listens, and the token that it demands.

    Attributes:
        url: The address.
        token: The token.
        pid: The process of the server; 0 if it is not known.
    """

    url: str
    token: str
    pid: int = 0


@contextmanager
def lock_server_file(home: Path) -> Iterator[None]:
    """Be the only server of a home.

    Raises:
        UsageError: Another server of this home is running.
        FileError: The home cannot be written.
    """
    make_directories(home, mode=0o700)
    path = home / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FileError(f"cannot lock: {error.strerror}", where=str(path)) from error
    try:
        try:
            if sys.platform != "win32":
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _running_error(home) from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def write_server_file(home: Path, address: ServerAddress) -> Iterator[Path]:
    """Keep the address of a server in its file while it runs; yield the file. Call it under the lock."""
    path = home / SERVER_FILE
    write_text_atomically(path, json.dumps({"schema": 1, **address._asdict()}, indent=2) + "\n")
    try:
        yield path
    finally:
        # Without the lock file, which anyone may have removed, another server can have replaced it.
        with suppress(RpcConnectionError, FileError):
            if read_server_file(home).token == address.token:
                path.unlink(missing_ok=True)


def read_server_file(home: Path) -> ServerAddress:
    """Return the address of the server of a home.

    Raises:
        RpcConnectionError: No server has written one.
        FileError: The file is damaged.
    """
    path = home / SERVER_FILE
    text = read_text(path)
    if text is None:
        raise RpcConnectionError("no server is running", where=str(path), hint="`nexus serve` starts one")
    address: ServerAddress | None
    try:
        found = json.loads(text)
        address = ServerAddress(str(found["url"]), str(found["token"]), int(found.get("pid", 0)))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        address = None
    if address is None or not all(each.isascii() and each.isprintable() for each in (address.url, address.token)):
        hint = "remove it, and start `nexus serve` again"
        raise FileError("is not the file of a server", where=str(path), hint=hint)
    return address


def _running_error(home: Path) -> UsageError:
    hint = "use it with `nexus rpc`, or end it first: `nexus rpc shutdown`"
    try:
        running = read_server_file(home)
    except (RpcConnectionError, FileError):  # it is starting or ending
        return UsageError("another server of this home is running", where=str(home / LOCK_FILE), hint=hint)
    return UsageError(f"a server is running already: {running.url}, process {running.pid}", hint=hint)
