"""Which sessions there are, for a client that does not know their names: those of the directory that is served."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import UsageError
from nexus_core.plugin import redact_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core import Nexus
    from nexus_core.plugin import SessionRecord

MOST_SESSIONS = 50
"""How many sessions are told at once."""
USUAL = 20


class Place(NamedTuple):
    """Where a session stands in the list: those changed last first, then by a digest of the name (no secret)."""

    before: int
    digest: str

    def __str__(self) -> str:
        return f"{-self.before}:{self.digest}"


def list_sessions(nexus: Nexus, given: Mapping[str, Any]) -> object:
    """A page of sessions, and what to ask for the next one with; "" after the last.

    A session that changes in the meantime moves to the front: it may be told twice, but none is passed over that stays.

    Raises:
        UsageError: That is not a place to continue from.
    """
    after = _read(given["after"]) if given.get("after") else None
    limit = min(int(given.get("limit") or USUAL), MOST_SESSIONS)
    found = sorted((each for each in nexus.ledger.sessions() if _is_here(each, nexus.cwd)), key=_place)
    rest = [each for each in found if after is None or _place(each) > after]
    page = rest[:limit]
    following = str(_place(page[-1])) if len(rest) > len(page) else ""
    return {"total": len(found), "sessions": [redact_json(_told(each)) for each in page], "next": following}


def _place(session: SessionRecord) -> Place:
    return Place(-session.updated, hashlib.sha256(session.label.encode("utf-8", "surrogatepass")).hexdigest()[:16])


def _read(after: str) -> Place:
    match = re.fullmatch(r"(-?[0-9]{1,20}):([0-9a-f]{16})", after)
    if match is None:
        raise UsageError(
            f"{after!r} is not a place to continue from", hint="'after' takes the 'next' of the page before"
        )
    return Place(-int(match[1]), match[2])


def _is_here(session: SessionRecord, directory: Path) -> bool:
    """Whether it works in the directory, or further down."""
    cwd = session.data.get("cwd")
    return isinstance(cwd, str) and Path(cwd).is_relative_to(directory)


def _told(session: SessionRecord) -> dict[str, object]:
    parent = session.data.get("parent")
    return {
        "session": session.label,
        "directory": str(session.data.get("cwd")),
        "model": str(session.data.get("model") or ""),
        "begun": _moment(session.created),
        "changed": _moment(session.updated),
        "open": session.open_turn is not None,
        "forked_from": session.origin,
        "worker_of": parent if isinstance(parent, str) else "",
    }


def _moment(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # of a session from elsewhere, anything may be said
        return ""
