"""The trust store: the user's decisions about active settings, in trust.json.

The file decides what runs, so it is parsed as untrusted input: it must be a regular file of the user that no other user
may write to, and every approval is stored under its own digest.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import ConfigError
from nexus_core.files.places import find_home_repository
from nexus_core.files.write import file_lock, make_directories, write_text_atomically
from nexus_core.trust.coverage import add_code_digests, matches_quickly
from nexus_core.trust.fingerprint import HOME_POINTER, build_home_content
from nexus_core.types.base import dataclass
from nexus_core.types.mcp import ActiveSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from nexus_core.types.mcp import TrustDecision

MAX_STORE_BYTES = 16 * 1024 * 1024
"""Largest trust store that is read: thousands of approvals, or dozens that cover 2,000 files each."""

_FORMAT_VERSION = 2
# Version 1 has no anchor, and its approvals do not cover code: they are kept, and the user is asked once more.
_READABLE_VERSIONS = frozenset({1, _FORMAT_VERSION})
_RESET_HINT = "move it away, then allow again what you still want"


class SettingKey(NamedTuple):
    """A setting, regardless of its value: the real path of its file, and its JSON pointer."""

    path: str
    pointer: str


class TrustApproval(NamedTuple):
    """An approval of a setting with exactly this content."""

    place: SettingKey
    content: str

    @property
    def key(self) -> str:
        """The digest under which this approval is stored."""
        text = f"{self.place.path}\n{self.place.pointer}\n{self.content}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class TrustDecisions:
    """All decisions of a user.

    Attributes:
        approvals: Approvals by key.
        denials: Settings that were denied, regardless of their content.
        anchor: A value that only the machine of the decisions has; "" unless the file could have come from elsewhere.
    """

    approvals: Mapping[str, TrustApproval] = field(default_factory=dict)
    denials: frozenset[SettingKey] = frozenset()
    anchor: str = ""

    def find_approval(self, place: SettingKey) -> TrustApproval | None:
        """Return the approval of a setting, whatever its content is now."""
        return next((approval for approval in self.approvals.values() if approval.place == place), None)

    def without(self, places: set[SettingKey]) -> TrustDecisions:
        """Return the decisions except those about `places`."""
        kept = {key: approval for key, approval in self.approvals.items() if approval.place not in places}
        return TrustDecisions(kept, self.denials - places, self.anchor)


def read_decisions(path: Path) -> TrustDecisions:
    """Return the decisions in a file, or none if there is no such file.

    Raises:
        ConfigError: It is damaged, or other users could have written it. Then nothing in it counts.
    """
    # Do not follow a link, and do not block on a FIFO, under the well-known name.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return TrustDecisions()
    except OSError as error:
        if error.errno == errno.ELOOP or path.is_symlink():
            raise _store_error(path, "the trust store is a link", "put the file itself in its place") from None
        raise _store_error(
            path, f"the trust store cannot be read: {error.strerror}", "make it readable for you"
        ) from error
    try:
        _check_status(path, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_STORE_BYTES + 1)
    except OSError as error:
        raise _store_error(
            path, f"the trust store cannot be read: {error.strerror}", "make it readable for you"
        ) from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_STORE_BYTES:
        raise _store_error(path, f"the trust store is larger than {MAX_STORE_BYTES >> 20} MiB", _RESET_HINT)
    return _parse_decisions(path, data)


def encode_decisions(path: Path, decisions: TrustDecisions) -> str:
    """Return the text of the file, or raise ConfigError if it would be too large to be read again."""
    document = {
        "version": _FORMAT_VERSION,
        "allowed": {key: {**place._asdict(), "content": text} for key, (place, text) in decisions.approvals.items()},
        "denied": [place._asdict() for place in sorted(decisions.denials)],
        **({"anchor": decisions.anchor} if decisions.anchor else {}),
    }
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    if len(text) > MAX_STORE_BYTES:
        raise _store_error(
            path,
            f"the trust store would grow beyond {MAX_STORE_BYTES >> 20} MiB",
            "remove from it what you no longer need",
        )
    return text


def _check_status(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _store_error(path, "the trust store is not a regular file", "remove it")
    if not hasattr(os, "geteuid"):  # a system without POSIX owners and modes
        return
    if status.st_uid not in {os.geteuid(), 0}:
        raise _store_error(path, "the trust store belongs to another user", _RESET_HINT)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _store_error(
            path, "other users may write to the trust store", "look at what it allows, then chmod 600 it"
        )


def _parse_decisions(path: Path, data: bytes) -> TrustDecisions:
    try:
        document = json.loads(data)
        version = document["version"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise _store_error(path, "the trust store is damaged", _RESET_HINT) from None
    if version not in _READABLE_VERSIONS:
        raise _store_error(path, "the trust store was written by another version of Nexus", "update Nexus")
    try:
        approvals = {
            key: TrustApproval(_read_key(each), _read_text(each, "content"))
            for key, each in document["allowed"].items()
        }
        denials = frozenset(map(_read_key, document["denied"]))
        anchor = _read_text({"anchor": "", **document}, "anchor")
    except (TypeError, KeyError, AttributeError):
        raise _store_error(path, "the trust store is damaged", _RESET_HINT) from None
    if any(approval.key != key for key, approval in approvals.items()):
        raise _store_error(path, "the trust store is damaged: an approval has the name of another", _RESET_HINT)
    return TrustDecisions(approvals, denials, anchor)


def _read_key(record: Mapping[str, object]) -> SettingKey:
    return SettingKey(_read_text(record, "path"), _read_text(record, "pointer"))


def _read_text(record: Mapping[str, object], key: str) -> str:
    text = record[key]
    if not isinstance(text, str):
        raise TypeError(f"{key} is not text")
    return text


def _store_error(path: Path, what: str, hint: str) -> ConfigError:
    return ConfigError(what, where=str(path), hint=hint)


class TrustStore:
    """The user's decisions about active settings, in `trust.json` of the user's home and nowhere else.

    With a store that is damaged, or that other users could have written, nothing is trusted: `problem` says why, and
    every change is refused until the file has been fixed.

    Args:
        home: The user's own Nexus directory; created with the first decision.
        workspace: The project that asks. A home inside it would belong to the project, so nothing is trusted then.
    """

    def __init__(self, home: Path, *, workspace: Path | None = None) -> None:
        self.path = home / "trust.json"
        self._workspace = workspace
        self._decisions: TrustDecisions | None = None
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Why nothing is trusted and what to do about it, in one line. None without a problem."""
        self._read()
        return self._problem

    def check(self) -> None:
        """Raise the ConfigError that allowing, denying or forgetting anything would raise now."""
        self._read_again()

    def decide(self, part: ActiveSetting, *, is_quick: bool = False, is_fresh: bool = False) -> TrustDecision:
        """Return the user's decision about a setting with exactly this content.

        Args:
            part: The setting; the bytes of its code are read only if everything else is as approved.
            is_quick: True to skip the directories of its code, for callers that only list settings.
            is_fresh: True to read every byte again, for callers that are about to start something.
        """
        decisions = self._read()
        place = _part_key(part)
        if place in decisions.denials:
            return "denied"
        approval = decisions.find_approval(place)
        if approval is None:
            return "pending"
        if approval.content != part.content:
            if not matches_quickly(approval.content, part.content):
                return "changed"
            if not is_quick and approval.content != add_code_digests(part.content, is_fresh=is_fresh):
                return "changed"
        return "allowed"

    def approved_content(self, part: ActiveSetting) -> str | None:
        """Return the content that was allowed for a setting, or None. Secret values are in it as digests."""
        approval = self._read().find_approval(_part_key(part))
        return approval and approval.content

    def allow(self, parts: Iterable[ActiveSetting]) -> None:
        """Allow settings exactly as they are now, replacing earlier decisions about them."""
        approvals = {approval.key: approval for approval in map(_build_approval, parts)}

        def change(decisions: TrustDecisions) -> TrustDecisions:
            rest = decisions.without({approval.place for approval in approvals.values()})
            return TrustDecisions({**rest.approvals, **approvals}, rest.denials, rest.anchor)

        self._update(change, approvals)

    def deny(self, parts: Iterable[ActiveSetting]) -> None:
        """Deny settings regardless of their content, until they are allowed."""
        places = set(map(_part_key, parts))

        def change(decisions: TrustDecisions) -> TrustDecisions:
            rest = decisions.without(places)
            return TrustDecisions(rest.approvals, rest.denials | places, rest.anchor)

        self._update(change, places)

    def forget(self, parts: Iterable[ActiveSetting]) -> None:
        """Undo every decision about settings."""
        places = set(map(_part_key, parts))
        self._update(lambda decisions: decisions.without(places), places)

    def _read(self) -> TrustDecisions:
        if self._decisions is None:
            try:
                self._decisions = self._read_again()
            except ConfigError as error:
                self._decisions = TrustDecisions()
                self._problem = f"{error.what} ({error.where}); nothing is trusted; {error.hint}"
        return self._decisions

    def _read_again(self) -> TrustDecisions:
        if self._workspace is not None and _is_inside(self.path.parent, self._workspace):
            raise ConfigError(
                "the trust store lies inside the project that asks to be trusted",
                where=str(self.path),
                hint="set NEXUS_HOME to a directory outside it",
            )
        decisions = read_decisions(self.path)
        self._problem = None
        repository = self._repository
        if repository is None or decisions == TrustDecisions():
            return decisions
        if decisions.anchor and decisions.anchor == self._anchor():
            return decisions
        self._problem = (
            f"the approvals in the trust store do not count ({self.path}): your home directory lies in the repository "
            f"{repository}, so the file may have come with it; allow again what you still want"
        )
        return TrustDecisions()

    def _anchor(self) -> str:
        """Return the inode and change time of the lock file, which no file in a repository can predict."""
        try:
            status = os.lstat(self._lock)
        except OSError:
            return ""
        return f"{status.st_ino}:{status.st_ctime_ns}"

    @cached_property
    def _repository(self) -> Path | None:
        return find_home_repository(self.path.parent)

    @property
    def _lock(self) -> Path:
        return self.path.with_name("trust.lock")

    def _update(self, change: Callable[[TrustDecisions], TrustDecisions], subjects: Collection[object]) -> None:
        self.check()  # before anything is created on disk
        if not subjects:
            return
        make_directories(self.path.parent, mode=0o700)
        with file_lock(self._lock):
            # Read again, because another process may have decided something in the meantime.
            decisions = change(self._read_again())
            if self._repository is not None:
                decisions = replace(decisions, anchor=self._anchor())
            write_text_atomically(self.path, encode_decisions(self.path, decisions), mode=0o600)
        self._decisions, self._problem = decisions, None


def find_home_setting(home: Path) -> ActiveSetting | None:
    """Return the user's own settings as a setting that needs approval, or None if no repository holds them."""
    if find_home_repository(home) is None or not os.path.isdir(home):  # noqa: PTH112 - never fails
        return None
    summary = f"the settings in {home} as your own"
    return ActiveSetting(
        path=home, layer="global", pointer=HOME_POINTER, line=0, summary=summary, content=build_home_content(home)
    )


def is_home_trusted(home: Path) -> bool:
    """Return True if the settings in a home are the user's own: outside any repository, or approved."""
    part = find_home_setting(home)
    return part is None or TrustStore(home).decide(part) == "allowed"


def _build_approval(part: ActiveSetting) -> TrustApproval:
    return TrustApproval(_part_key(part), add_code_digests(part.content, is_fresh=True))


def _part_key(part: ActiveSetting) -> SettingKey:
    return SettingKey(os.path.realpath(part.path), part.pointer)


def _is_inside(directory: Path, workspace: Path) -> bool:
    return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(workspace))
