"""A ledger without some of its sessions: all that others lead to stays, and nothing else does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError, UnknownNameError
from nexus_core.history.ledger.sessions_kept import Kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.history.ledger.rows import SessionRow, StepRow

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Rest(NamedTuple):
    """What stays.

    Attributes:
        rows: The steps.
        kept: The sessions, and what belongs to them.
        blobs: What these refer to.
        left_out: The sessions that do not: those that were named, and their workers.
        sharing: Sessions that stay, and with them the steps that they have in common with the others.
    """

    rows: list[StepRow]
    kept: Kept
    blobs: dict[str, bytes]
    left_out: tuple[str, ...]
    sharing: tuple[str, ...]


def leave_out(labels: Iterable[str], rows: Sequence[StepRow], kept: Kept, blobs: Mapping[str, bytes]) -> Rest:
    """What stays of a ledger without the sessions of these names and their workers.

    Raises:
        UnknownNameError: There is no such session.
        LedgerError: Nothing would stay.
    """
    gone = _with_workers(labels, kept)
    sessions = [row for row in kept.sessions if row.id not in gone]
    if not sessions:
        raise LedgerError("nothing would be left without these sessions", hint="delete the ledger itself")
    steps = {row.id: row for row in rows}
    reached = _reached(sessions, steps)
    left = [row for row in rows if row.id in reached]
    rest = Kept(
        sessions,
        [note for note in kept.history if note.session not in gone],
        [alias for alias in kept.aliases if alias.session not in gone],
    )
    roots = {_root(row, steps) for row in kept.sessions if row.id in gone} - {None}
    sharing = sorted(row.label for row in sessions if _root(row, steps) in roots)
    return Rest(left, rest, _referred(left, sessions, blobs), tuple(sorted(gone.values())), tuple(sharing))


def _with_workers(labels: Iterable[str], kept: Kept) -> dict[str, str]:
    """The labels of sessions by their lasting names: of those that are meant, of their workers, and so on."""
    known = {row.label: row for row in kept.sessions}
    lasting = {row.id: row for row in kept.sessions}
    named = known | {alias.alias: lasting[alias.session] for alias in kept.aliases}
    found: dict[str, str] = {}
    for label in labels:
        if label not in named:
            raise UnknownNameError("session", label, sorted(known))
        found[named[label].id] = named[label].label
    makers = {row.id: named.get(json.loads(row.data).get("parent")) for row in kept.sessions}
    while new := [
        row for row in kept.sessions if (maker := makers[row.id]) and maker.id in found and row.id not in found
    ]:
        found |= {row.id: row.label for row in new}
    return found


def _reached(sessions: Iterable[SessionRow], steps: Mapping[str, StepRow]) -> set[str]:
    """The steps that sessions lead to."""
    found: set[str] = set()
    for session in sessions:
        for end in (session.tip, session.head):
            name = end
            while name is not None and name not in found:
                found.add(name)
                name = steps[name].parent
    return found


def _root(session: SessionRow, steps: Mapping[str, StepRow]) -> str | None:
    """The first step of a session's thread, and so of all threads that have one in common with it."""
    name, first = session.tip, None
    while name is not None:
        first = steps[steps[name].branch]
        name = first.parent
    return first.id if first else None


def _referred(rows: Iterable[StepRow], sessions: Iterable[SessionRow], blobs: Mapping[str, bytes]) -> dict[str, bytes]:
    """The blobs whose addresses stand in steps, in what is known of sessions, or in such blobs."""
    found: dict[str, bytes] = {}
    texts = [*(text for row in rows for text in (row.messages, row.data)), *(row.data for row in sessions)]
    while texts:
        new = {name for text in texts for name in _DIGEST.findall(text) if name in blobs and name not in found}
        found |= {name: blobs[name] for name in new}
        texts = [blobs[name].decode(errors="replace") for name in new]
    return found
