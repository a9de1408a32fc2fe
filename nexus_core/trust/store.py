"""Keeps what the user allowed and denied, where no project can reach it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import ConfigError
from nexus_core.files.lock import locked
from nexus_core.files.writing import make_directories, write_text_atomically
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

    def decide(self, part: ActivePart) -> Decision:
        """What the user has decided about a part with exactly this content."""
        decisions = self._read()
        approval = _approval(part)
        if approval.place in decisions.denials:
            return "denied"
        if decisions.approvals.get(approval.key) == approval:
            return "allowed"
        return "pending" if decisions.approval_of(approval.place) is None else "changed"

    def approved_content(self, part: ActivePart) -> str | None:
        """The content that was allowed at the place of a part, or None; secret values are in it as digests."""
        approval = self._read().approval_of(_approval(part).place)
        return approval and approval.content

    def allow(self, parts: Iterable[ActivePart]) -> None:
        """Allow parts exactly as they are now; what was decided about them before no longer counts."""
        approvals = {approval.key: approval for approval in map(_approval, parts)}

        def change(decisions: Decisions) -> Decisions:
            rest = decisions.without({approval.place for approval in approvals.values()})
            return Decisions({**rest.approvals, **approvals}, rest.denials)

        self._update(change, approvals)

    def deny(self, parts: Iterable[ActivePart]) -> None:
        """Deny parts whatever their content, until they are allowed."""
        places = {_approval(part).place for part in parts}

        def change(decisions: Decisions) -> Decisions:
            rest = decisions.without(places)
            return Decisions(rest.approvals, rest.denials | places)

        self._update(change, places)

    def forget(self, parts: Iterable[ActivePart]) -> None:
        """Undo every decision about parts."""
        places = {_approval(part).place for part in parts}
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
        return read_decisions(self.path)

    def _update(self, change: Callable[[Decisions], Decisions], subjects: Collection[object]) -> None:
        self.check()  # before anything is made on disk
        if not subjects:
            return
        make_directories(self.path.parent, mode=0o700)
        with locked(self.path.with_name("trust.lock")):
            # Again, because somebody else may have decided something in the meantime.
            decisions = change(self._read_again())
            write_text_atomically(self.path, encode_decisions(self.path, decisions), mode=0o600)
        self._decisions, self._problem = decisions, None


def _approval(part: ActivePart) -> Approval:
    return Approval(Place(os.path.realpath(part.path), part.pointer), part.content)


def _is_inside(directory: Path, workspace: Path) -> bool:
    return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(workspace))
