"""A new ledger of what is whole in a damaged one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError
from nexus_core.history.ledger.media import address_of
from nexus_core.history.ledger.rows import BranchRow, is_sealed
from nexus_core.history.ledger.sessions_kept import keep_sessions, newest_versions
from nexus_core.history.ledger.steps_joined import join_steps
from nexus_core.history.ledger.turns_kept import find_ends, keep_whole_turns, sort_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nexus_core.history.ledger.rows import Salvaged, StepRow
    from nexus_core.history.ledger.sessions_kept import Kept
    from nexus_core.history.ledger.store import Store
    from nexus_core.values.finding import Finding

_READING = 0.7
"""The share of the work that is reading."""


class Rebuilt(NamedTuple):
    """What became of it.

    Attributes:
        turns, steps, sessions, blobs: How many are in the new ledger.
        lost: What is not, and why.
    """

    turns: int
    steps: int
    sessions: int
    blobs: int
    lost: tuple[Finding, ...]


def rebuild(found: Salvaged, target: Store, advance: Callable[[float], None]) -> Rebuilt:
    """Fill an empty store with every turn that is whole. What a lost turn stood between is joined.

    Args:
        found: What was found.
        target: The empty store.
        advance: Called with shares of the work, which together are 1.

    Raises:
        LedgerError: There is something in the target already, or nothing to put there.
    """
    _require_empty(target)
    blobs = {digest: content for digest, content in found.blobs if address_of(content) == digest}
    advance(_READING / 4)
    steps, torn = sort_out(found.steps)
    advance(_READING / 2)
    versions = newest_versions(found.sessions, steps)
    history = [note for note in found.history if is_sealed(note)]
    named = {row.tip for row in versions} | {note.step for note in history}
    lost: list[Finding] = []
    kept = keep_whole_turns(steps, find_ends(steps, named, torn), blobs, lost)
    rows = list(join_steps(kept, steps, lost))
    sessions = keep_sessions(rows, versions, history, [*found.aliases], lost)
    advance(_READING / 4)
    if not rows and not sessions.sessions:
        raise LedgerError("there is nothing in it that is whole", hint="no new ledger was made")
    target.write(partial(_fill, target, blobs, rows, sessions, advance))
    turns = sum(row.id == row.turn for row in rows)
    return Rebuilt(turns, len(rows), len(sessions.sessions), len(blobs), tuple(lost))


def _require_empty(target: Store) -> None:
    if target.read(target.session_rows) or any(True for _ in target.step_rows()):
        raise LedgerError(
            "there is something in it already", where=target.url, hint="name a file that is not there yet"
        )


def _fill(
    target: Store,
    blobs: Mapping[str, bytes],
    rows: Sequence[StepRow],
    kept: Kept,
    advance: Callable[[float], None],
) -> None:
    """Put everything into a store, in an order in which what is referred to is there before."""
    for digest, content in sorted(blobs.items()):
        target.add_blob(digest, content)
    steps = {row.id: row for row in rows}
    for row in rows:
        if row.branch == row.id:
            target.add_branch(BranchRow.behind(steps.get(row.parent or ""), row.id))
        target.add_steps([row])
        advance((1 - _READING) / len(rows))
    for session in kept.sessions:
        target.save_session(session)
    target.add_history(kept.history)
    for alias in kept.aliases:
        target.add_alias(alias)
