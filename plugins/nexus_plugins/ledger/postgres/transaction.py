"""What is done to a session under its lock, all of it or nothing, in few journeys to the server."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from nexus_core.plugin import Place, SessionRow
from nexus_plugins.ledger.postgres.line import Statement
from nexus_plugins.ledger.postgres.migrating import ensure_known

if TYPE_CHECKING:
    from nexus_plugins.ledger.postgres.line import Line

_BEGIN, _COMMIT, _ROLLBACK = Statement("begin"), Statement("commit"), Statement("rollback")
_LOCK = "select (select max(version) from about), pg_advisory_xact_lock(hashtextextended($1, 0))"
"""Two machines at one session wait for each other here, and not for those at others; all wait for a migration."""

# Not one statement with the lock: what a statement sees is settled before it waits.
_STANDING = (
    "select s.id, s.label, s.head, s.tip, s.open_turn, s.status, s.origin, s.created, s.updated, s.data, s.seal,"
    " exists (select from steps where branch = p.branch and position = p.position + 1),"
    " p.id, p.turn, p.branch, p.position, p.closes, p.counter, p.total, p.compaction, p.chain"
    " from sessions s left join steps p on p.id = s.tip where s.id ="
    " coalesce((select id from sessions where label = $1), (select session from aliases where alias = $1))"
)
_FIELDS = len(SessionRow._fields)

_MOST = 1 << 20
"""So many characters and bytes wait at most before they are sent."""


class Tip(NamedTuple):
    """Where a session stands, and whether a step of its branch follows there already."""

    place: Place
    is_followed: bool


class Transaction:
    """Changes wait until something is asked or all is done, and travel with that.

    So a step is added in two journeys: one takes the lock and finds where the session stands, the other adds the step,
    moves the session and commits.

    Args:
        line: Where to.
        session: The name of the session that is locked.
        where: What to call the server in errors.

    Attributes:
        tip: Where the session that was looked for last stands; nothing was changed since.
    """

    def __init__(self, line: Line, session: str, where: str) -> None:
        self._line = line
        self._where = where
        self._waiting = [_BEGIN, Statement(_LOCK, (session,))]
        self._size = 0
        self._has_begun = False
        self.tip: Tip | None = None

    def session(self, label: str) -> SessionRow | None:
        """The session of that name or alias; where it stands is known from then on."""
        found = self.fetch(Statement(_STANDING, (label,)))
        if not found:
            self.tip = None
            return None
        session, (is_followed, *place) = found[0][:_FIELDS], found[0][_FIELDS:]
        self.tip = None if place[0] is None else Tip(Place(*place), is_followed)
        return SessionRow(*session)

    def fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        """What a statement finds, after all changes so far."""
        self._waiting.append(statement)
        return self._send()

    def run(self, statement: Statement) -> None:
        """Change something before the next question."""
        self.tip = None
        self._waiting.append(statement)
        self._size += statement.size
        if self._size > _MOST:
            self._send()

    def commit(self) -> None:
        """Keep all changes; they are on the server's disk when this returns."""
        if not self._has_begun and len(self._waiting) > len((_BEGIN, _LOCK)):
            self._send()  # a later Nexus may have come, which is to be known before anything is kept
        if self._has_begun:
            self.fetch(_COMMIT)

    def roll_back(self) -> None:
        """Keep nothing; a server that is gone does so by itself."""
        self._waiting = [_ROLLBACK]
        if self._has_begun:
            with suppress(psycopg.Error):
                self._send()

    def _send(self) -> list[tuple[Any, ...]]:
        """Send what waits; what the last of it finds."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        has_begun, self._has_begun = self._has_begun, True
        answers = self._line.ask(waiting)
        if not has_begun:
            next(answers)
            ((version, _),) = next(answers)
            ensure_known(version or 0, self._where)
        return deque(answers, maxlen=1).pop()
