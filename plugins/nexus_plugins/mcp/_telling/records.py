"""What is known of the tools of a server, so that nothing has to be started to tell a model about them.

The definitions that a server gave first count as approved along with the server. What it says later is kept beside
them: a tool that is new, renamed or described otherwise is withheld until the user approves it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import ConfigError, FileError
from nexus_core.plugin import canonical, locked, make_directories, read_bytes, write_text_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from nexus_core.plugin import MCPServerWithOrigin

LARGEST = 4 * 1024 * 1024
"""Bytes of what is known of one server."""
DEEPEST = 100
"""Levels of a schema: nobody writes so many, and whoever walks through it must not run out of stack."""
_VERSION = 1


class Definition(NamedTuple):
    """A tool as its server describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The same for definitions that mean the same."""
        return hashlib.sha256(canonical(list(self)).encode()).hexdigest()


class Unusable(NamedTuple):
    """A tool that a server lists in a way that cannot be used, and why."""

    name: str
    reason: str


class Record(NamedTuple):
    """What is known of a server.

    Attributes:
        approved: The definitions that the user relies on.
        current: Those that the server gave last.
        seen: When that was, in seconds since 1970.
        unusable: What it listed besides that is none.
    """

    approved: tuple[Definition, ...]
    current: tuple[Definition, ...]
    seen: float
    unusable: tuple[Unusable, ...] = ()

    @property
    def usable(self) -> tuple[Definition, ...]:
        """The approved tools that the server still has, unchanged, in the words that were approved.

        Of a name that the server gives to something else as well, nobody knows what it would run: it is not among them.
        """
        current = {each.digest for each in self.current}
        doubtful = {each.name for each in self.withheld} | {each.name for each in self.unusable}
        return tuple(each for each in self.approved if each.digest in current and each.name not in doubtful)

    @property
    def withheld(self) -> tuple[Definition, ...]:
        """The tools that are new, or not what was approved."""
        approved = {each.digest for each in self.approved}
        return tuple(each for each in self.current if each.digest not in approved)

    @property
    def gone(self) -> tuple[Definition, ...]:
        """The approved tools that the server has no longer, under that name."""
        names = {each.name for each in self.current}
        return tuple(each for each in self.approved if each.name not in names)


def read_record(home: Path, server: MCPServerWithOrigin) -> Record | None:
    """What is known of a server; None when it was never asked.

    Raises:
        ConfigError: The file is damaged.
    """
    path = _path(home, server)
    data = read_bytes(path, max_bytes=LARGEST)
    if data is None:
        return None
    try:
        document = json.loads(data)
        _ = {_VERSION: None}[document["version"]]
        approved, current = (tuple(map(_definition, document[key])) for key in ("approved", "current"))
        unusable = tuple(Unusable(str(name), str(reason)) for name, reason in document.get("unusable", ()))
        return Record(approved, current, float(document["seen"]), unusable)
    except (ValueError, TypeError, KeyError, RecursionError):
        hint = "remove it, then look at the tools again: nexus mcp tools"
        raise ConfigError("what is known of a server's tools is damaged", where=str(path), hint=hint) from None


def keep_listing(
    home: Path, server: MCPServerWithOrigin, listed: Iterable[Definition], unusable: tuple[Unusable, ...] = ()
) -> Record:
    """Keep what a server says about its tools; the first time, it counts as approved.

    Raises:
        FileError: It says more than anybody could read.
    """
    definitions: list[Definition] = []
    for each in listed:
        try:
            definitions.append(each._replace(schema=_plain(each.schema)))
        except RecursionError:
            unusable += (Unusable(each.name, f"its schema has more than {DEEPEST} levels"),)
    current = tuple(definitions)

    def change(record: Record | None) -> Record:
        return Record(current if record is None else record.approved, current, time.time(), unusable)

    return _update(home, server, change)


def approve(home: Path, server: MCPServerWithOrigin) -> Record:
    """Approve what the server said last.

    Raises:
        ConfigError: It never said anything.
    """

    def change(record: Record | None) -> Record:
        if record is None:
            raise ConfigError("nothing is known of its tools yet", hint=f"nexus mcp tools {server.config.name}")
        return record._replace(approved=record.current)

    return _update(home, server, change)


def _update(home: Path, server: MCPServerWithOrigin, change: Any) -> Record:  # noqa: ANN401 - a function on records
    path = _path(home, server)
    make_directories(path.parent, mode=0o700)
    with locked(path.parent / "lock"):
        record: Record = change(read_record(home, server))
        document = {
            "version": _VERSION,
            "server": server.config.name,
            "file": str(server.source_path),
            "seen": record.seen,
            "approved": [each._asdict() for each in record.approved],
            "current": [each._asdict() for each in record.current],
            "unusable": record.unusable,
        }
        text = json.dumps(document, indent=1) + "\n"
        if len(text) > LARGEST:
            raise FileError(f"server {server.config.name!r} describes its tools in more than 4 MiB")
        write_text_atomically(path, text, mode=0o600)
    return record


def _path(home: Path, server: MCPServerWithOrigin) -> Path:
    place = f"{os.path.realpath(server.source_path)}\0{server.config.name}"
    return home / "mcp" / f"{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"


def _plain(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """The same value in the one way to write it: 1.0 is 1, and what JSON does not have is null."""
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, float):
        return (int(value) if value.is_integer() else value) if math.isfinite(value) else None
    return value


def _definition(entry: Any) -> Definition:  # noqa: ANN401 - any JSON value
    name, description, schema = entry["name"], entry["description"], entry["schema"]
    if not isinstance(name, str) or not isinstance(description, str) or not isinstance(schema, dict):
        raise TypeError("not a definition")
    return Definition(name, description, schema)
