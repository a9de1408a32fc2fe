"""The decisions of a user, and the file that keeps them: read without believing it, because it decides what runs."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import ConfigError
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024
"""The largest file of decisions: thousands of approvals, or dozens that cover 2,000 files each."""

_VERSION = 2
# Version 1 has no anchor, and its approvals do not cover code: they are kept, and asked about once more.
_READABLE = frozenset({1, _VERSION})
_START_ANEW = "move it away, then allow again what you still want"


class Place(NamedTuple):
    """A setting, whatever it is set to: the real path of its file, and its JSON pointer."""

    path: str
    pointer: str


class Approval(NamedTuple):
    """What was allowed: a setting, exactly as it was."""

    place: Place
    content: str

    @property
    def key(self) -> str:
        """The name of this approval."""
        text = f"{self.place.path}\n{self.place.pointer}\n{self.content}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Decisions:
    """Everything that a user has decided.

    Attributes:
        approvals: What was allowed, by key.
        denials: What was denied, whatever its content.
        anchor: What only the machine on which they were made knows, where the file could have come from elsewhere.
    """

    approvals: Mapping[str, Approval] = field(default_factory=dict)
    denials: frozenset[Place] = frozenset()
    anchor: str = ""

    def approval_of(self, place: Place) -> Approval | None:
        """What was allowed at a place, however it looks now."""
        return next((approval for approval in self.approvals.values() if approval.place == place), None)

    def without(self, places: set[Place]) -> Decisions:
        """The same, with nothing decided about `places`."""
        kept = {key: approval for key, approval in self.approvals.items() if approval.place not in places}
        return Decisions(kept, self.denials - places, self.anchor)


def read_decisions(path: Path) -> Decisions:
    """The decisions in a file; none when there is no such file.

    Raises:
        ConfigError: It is damaged, or others could have written it. Then nothing in it counts.
    """
    # Neither a link nor a FIFO under the familiar name is followed or waited for.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return Decisions()
    except OSError as error:
        if error.errno == errno.ELOOP or path.is_symlink():
            raise _fault(path, "the trust store is a link", "put the file itself in its place") from None
        raise _fault(path, f"the trust store cannot be read: {error.strerror}", "make it readable for you") from error
    try:
        _check_status(path, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _fault(path, f"the trust store cannot be read: {error.strerror}", "make it readable for you") from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise _fault(path, f"the trust store is larger than {MAX_BYTES >> 20} MiB", _START_ANEW)
    return _parse(path, data)


def encode_decisions(path: Path, decisions: Decisions) -> str:
    """The text of the file; raises ConfigError when it could not be read again."""
    document = {
        "version": _VERSION,
        "allowed": {key: {**place._asdict(), "content": text} for key, (place, text) in decisions.approvals.items()},
        "denied": [place._asdict() for place in sorted(decisions.denials)],
        **({"anchor": decisions.anchor} if decisions.anchor else {}),
    }
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    if len(text) > MAX_BYTES:
        raise _fault(
            path, f"the trust store would grow beyond {MAX_BYTES >> 20} MiB", "remove from it what you no longer need"
        )
    return text


def _check_status(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _fault(path, "the trust store is not a regular file", "remove it")
    if not hasattr(os, "geteuid"):  # a system without owners and modes of this kind
        return
    if status.st_uid not in {os.geteuid(), 0}:
        raise _fault(path, "the trust store belongs to somebody else", _START_ANEW)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _fault(path, "others may write to the trust store", "look at what it allows, then chmod 600 it")


def _parse(path: Path, data: bytes) -> Decisions:
    try:
        document = json.loads(data)
        version = document["version"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise _fault(path, "the trust store is damaged", _START_ANEW) from None
    if version not in _READABLE:
        raise _fault(path, "the trust store was written by another version of Nexus", "update Nexus")
    try:
        approvals = {key: Approval(_place(each), _text(each, "content")) for key, each in document["allowed"].items()}
        denials = frozenset(map(_place, document["denied"]))
        anchor = _text({"anchor": "", **document}, "anchor")
    except (TypeError, KeyError, AttributeError):
        raise _fault(path, "the trust store is damaged", _START_ANEW) from None
    if any(approval.key != key for key, approval in approvals.items()):
        raise _fault(path, "the trust store is damaged: an approval has the name of another", _START_ANEW)
    return Decisions(approvals, denials, anchor)


def _place(record: Mapping[str, object]) -> Place:
    return Place(_text(record, "path"), _text(record, "pointer"))


def _text(record: Mapping[str, object], key: str) -> str:
    text = record[key]
    if not isinstance(text, str):
        raise TypeError(f"{key} is not text")
    return text


def _fault(path: Path, what: str, hint: str) -> ConfigError:
    return ConfigError(what, where=str(path), hint=hint)
