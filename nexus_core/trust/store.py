"""Keeps what the user allowed and denied, where no project can reach it."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import ConfigError
from nexus_core.files.lock import locked
from nexus_core.files.places import home_repository
from nexus_core.files.writing import make_directories, write_text_atomically
from nexus_core.trust.coverage import is_alike, measure
from nexus_core.trust.decisions import Approval, Decisions, Place, encode_decisions, read_decisions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from nexus_core.values.trust import ActivePart, Decision


class TrustStore:
    """The user's decisions about active parts, in `trust.json` of the user's home and nowhere else.

    What cannot be relied upon is not used: with a store that is damaged, or that others could have written, nothing is
    trusted, `problem` says why, and deciding is refused until it has been put right.

    Args:
        home: The user's own Nexus directory; made when something is decided.
        workspace: The project that asks. A home inside it would be the project's own, and trusts nothing.
    """

    def __init__(self, home: Path, *, workspace: Path | None = None) -> None:
        self.path = home / "trust.json"
        self._workspace = workspace
        self._decisions: Decisions | None = None
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Why nothing is trusted and what to do about it, in one line; None when all is well."""
        self._read()
        return self._problem

    def check(self) -> None:
        """Raise the ConfigError that allowing, denying or forgetting anything would raise now."""
        self._read_again()

    def decide(self, part: ActivePart, *, is_quick: bool = False, is_fresh: bool = False) -> Decision:
        """What the user has decided about a part with exactly this content.

        Args:
            part: The part; the bytes of its code are looked at only if everything else is as approved.
            is_quick: Whether the directories of its code are left out: for those who only list parts.
            is_fresh: Whether every byte is read again: for those who are about to start something.
        """
        decisions = self._read()
        place = _place(part)
        if place in decisions.denials:
            return "denied"
        approval = decisions.approval_of(place)
        if approval is None:
            return "pending"
        if approval.content != part.content:
            if not is_alike(approval.content, part.content):
                return "changed"
            if not is_quick and approval.content != measure(part.content, is_fresh=is_fresh):
                return "changed"
        return "allowed"

    def approved_content(self, part: ActivePart) -> str | None:
        """The content that was allowed at the place of a part, or None; secret values are in it as digests."""
        approval = self._read().approval_of(_place(part))
        return approval and approval.content

    def allow(self, parts: Iterable[ActivePart]) -> None:
        """Allow parts exactly as they are now; what was decided about them before no longer counts."""
        approvals = {approval.key: approval for approval in map(_approval, parts)}

        def change(decisions: Decisions) -> Decisions:
            rest = decisions.without({approval.place for approval in approvals.values()})
            return Decisions({**rest.approvals, **approvals}, rest.denials, rest.anchor)

        self._update(change, approvals)

    def deny(self, parts: Iterable[ActivePart]) -> None:
        """Deny parts whatever their content, until they are allowed."""
        places = set(map(_place, parts))

        def change(decisions: Decisions) -> Decisions:
            rest = decisions.without(places)
            return Decisions(rest.approvals, rest.denials | places, rest.anchor)

        self._update(change, places)

    def forget(self, parts: Iterable[ActivePart]) -> None:
        """Undo every decision about parts."""
        places = set(map(_place, parts))
        self._update(lambda decisions: decisions.without(places), places)

    def _read(self) -> Decisions:
        if self._decisions is None:
            try:
                self._decisions = self._read_again()
            except ConfigError as fault:
                self._decisions = Decisions()
                self._problem = f"{fault.what} ({fault.where}); nothing is trusted; {fault.hint}"
        return self._decisions

    def _read_again(self) -> Decisions:
        if self._workspace is not None and _is_inside(self.path.parent, self._workspace):
            raise ConfigError(
                "the trust store lies inside the project that asks to be trusted",
                where=str(self.path),
                hint="set NEXUS_HOME to a directory outside it",
            )
        decisions = read_decisions(self.path)
        self._problem = None
        repository = self._repository
        if repository is None or decisions == Decisions():
            return decisions
        if decisions.anchor and decisions.anchor == self._anchor():
            return decisions
        self._problem = (
            f"nothing that the trust store allows counts ({self.path}): your home directory lies in the repository "
            f"{repository}, so the file may have come with it; allow again what you still want"
        )
        return Decisions()

    def _anchor(self) -> str:
        """Return the inode and change time of the lock file, which no file in a repository can predict."""
        try:
            facts = os.lstat(self._lock)
        except OSError:
            return ""
        return f"{facts.st_ino}:{facts.st_ctime_ns}"

    @cached_property
    def _repository(self) -> Path | None:
        return home_repository(self.path.parent)

    @property
    def _lock(self) -> Path:
        return self.path.with_name("trust.lock")

    def _update(self, change: Callable[[Decisions], Decisions], subjects: Collection[object]) -> None:
        self.check()  # before anything is made on disk
        if not subjects:
            return
        make_directories(self.path.parent, mode=0o700)
        with locked(self._lock):
            # Again, because somebody else may have decided something in the meantime.
            decisions = change(self._read_again())
            if self._repository is not None:
                decisions = replace(decisions, anchor=self._anchor())
            write_text_atomically(self.path, encode_decisions(self.path, decisions), mode=0o600)
        self._decisions, self._problem = decisions, None


def home_part(home: Path) -> ActivePart | None:
    """The user's own settings as a part that waits for approval; None unless they may have come with a repository."""
    if home_repository(home) is None or not os.path.isdir(home):  # noqa: PTH112 - never fails
        return None
    from nexus_core.trust.fingerprint import HOME, home_content  # noqa: PLC0415 - most homes lie in no repository
    from nexus_core.values.trust import ActivePart  # noqa: PLC0415 - as above

    summary = f"the settings in {home} as your own"
    return ActivePart(path=home, layer="global", pointer=HOME, line=0, summary=summary, content=home_content(home))


def is_home_own(home: Path) -> bool:
    """Return True if the settings in a home are the user's own: outside of any repository, or approved."""
    part = home_part(home)
    return part is None or TrustStore(home).decide(part) == "allowed"


def _approval(part: ActivePart) -> Approval:
    return Approval(_place(part), measure(part.content, is_fresh=True))


def _place(part: ActivePart) -> Place:
    return Place(os.path.realpath(part.path), part.pointer)


def _is_inside(directory: Path, workspace: Path) -> bool:
    return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(workspace))
