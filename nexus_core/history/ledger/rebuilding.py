"""A new ledger of what is whole in a damaged one."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError
from nexus_core.history.groups import SESSION_START
from nexus_core.history.ledger.leaving_out import Rest, leave_out
from nexus_core.history.ledger.media import address_of
from nexus_core.history.ledger.rows import BranchRow, is_sealed, rest_of
from nexus_core.history.ledger.sessions_kept import keep_sessions, newest_versions
from nexus_core.history.ledger.steps_joined import join_steps
from nexus_core.history.ledger.store import ErasableStore
from nexus_core.history.ledger.turns_kept import find_ends, keep_whole_turns, sort_out
from nexus_core.history.ledger.verifying import VerifiedSteps, blob_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from nexus_core.history.ledger.rows import DeletionRow, ErasedRow, Salvaged, StepRow
    from nexus_core.history.ledger.store import Store
    from nexus_core.values.finding import Finding

_READING = 0.7
"""The share of the work that is reading."""


class Rebuilt(NamedTuple):
    """What became of it.

    Attributes:
        turns, steps, sessions, blobs: How many are in the new ledger.
        lost: What is not, and why.
        left_out: The sessions that were to be left out, and their workers.
        sharing: Sessions that are there, and have steps in common with these.
    """

    turns: int
    steps: int
    sessions: int
    blobs: int
    lost: tuple[Finding, ...]
    left_out: tuple[str, ...] = ()
    sharing: tuple[str, ...] = ()


def rebuild(found: Salvaged, target: Store, advance: Callable[[float], None], without: Collection[str] = ()) -> Rebuilt:
    """Fill an empty store with every turn that is whole. What a lost turn stood between is joined.

    Args:
        found: What was found.
        target: The empty store.
        advance: Called with shares of the work, which together are 1.
        without: Sessions to leave out, with their workers and all that only they lead to.

    Raises:
        LedgerError: There is something in the target already, or nothing to put there; or sessions are to be left out
            and something is lost, so that nobody can tell what was theirs.
        UnknownNameError: There is no such session to leave out.
    """
    _require_empty(target)
    blobs = {digest: content for digest, content in found.blobs if address_of(content) == digest}
    advance(_READING / 4)
    erased = {row.name: row.rest for row in found.erased if row.kind == "step"}
    steps, torn = sort_out(found.steps, erased)
    advance(_READING / 2)
    versions = newest_versions(found.sessions, steps)
    history = [note for note in found.history if is_sealed(note)]
    named = {row.tip for row in versions} | {note.step for note in history}
    lost: list[Finding] = []
    kept = keep_whole_turns(steps, find_ends(steps, named, torn), blobs, lost, erased)
    rows = list(join_steps(kept, steps, lost, erased))
    sessions = keep_sessions(rows, versions, history, [*found.aliases], lost, erased=erased)
    advance(_READING / 4)
    if not rows and not sessions.sessions:
        raise LedgerError("there is nothing in it that is whole", hint="no new ledger was made")
    rest = Rest(rows, sessions, blobs, (), ())
    if without:
        if lost:
            hint = "`nexus session repair NEW` saves what is whole; leave them out of a copy of that"
            raise LedgerError("the ledger is damaged, so nobody can tell what belongs to these sessions", hint=hint)
        rest = leave_out(without, rows, sessions, blobs)
    lost += _missing_blobs(rest)
    target.write(partial(_fill, target, rest, _keep_deletions(found, rest.rows), advance))
    saved = [row for row in rest.rows if row.id not in erased]
    turns = sum(row.id == row.turn and not _is_start(row) for row in saved)
    numbers = turns, len(saved), len(rest.kept.sessions), len(rest.blobs)
    return Rebuilt(*numbers, tuple(lost), rest.left_out, rest.sharing)


def _missing_blobs(rest: Rest) -> list[Finding]:
    """The blobs that what is kept refers to, and that are not there; no copy brings them back."""
    seen = VerifiedSteps()
    for row in rest.rows:
        seen.note_blobs(row)
    for session in rest.kept.sessions:
        seen.note_source(session)
    for digest, content in rest.blobs.items():
        seen.note_nested(digest, content)
    gone = {digest: use for digest, use in seen.blobs.items() if digest not in rest.blobs}
    if not gone:
        return []
    steps = {row.id: row for row in rest.rows}
    labels: dict[str, list[str]] = {digest: [] for digest in gone}
    for session in rest.kept.sessions:
        thread = _thread_ids(session.tip, steps)
        for digest, use in gone.items():
            if session.id == use.session or (use.step is not None and use.step.id in thread):
                labels[digest].append(session.label)
    return [blob_missing(digest, use, labels[digest]) for digest, use in sorted(gone.items())]


def _thread_ids(tip: str | None, steps: Mapping[str, StepRow]) -> set[str]:
    found: set[str] = set()
    while tip is not None:
        found.add(tip)
        tip = steps[tip].parent
    return found


def _is_start(row: StepRow) -> bool:
    """True for the step that says when a session started, which is no turn of the conversation."""
    return row.parent is None and bool(row.closes) and f'"{SESSION_START}"' in str(row.messages)


def _require_empty(target: Store) -> None:
    if target.read(target.session_rows) or any(True for _ in target.step_rows()):
        raise LedgerError(
            "there is something in it already", where=target.url, hint="name a file that is not there yet"
        )


def _keep_deletions(found: Salvaged, rows: Sequence[StepRow]) -> list[tuple[DeletionRow, list[ErasedRow]]]:
    """The deletions, chained anew, each with what it erased; without the steps that are not there."""
    steps = {row.id: row for row in rows}
    lists: dict[str, list[ErasedRow]] = defaultdict(list)
    for row in found.erased:
        lists[row.deletion].append(row)
    kept: list[tuple[DeletionRow, list[ErasedRow]]] = []
    for deletion in sorted(found.deletions, key=lambda each: each.number):
        left = [row for row in lists[deletion.id] if row.kind != "step" or row.name in steps]
        erased = [row._replace(rest=rest_of(steps[row.name])) if row.kind == "step" else row for row in left]
        number = sum(row.kind == "step" for row in erased)
        again = deletion._replace(number=len(kept) + 1, steps=number, purged=1)
        kept.append((again.chained(kept[-1][0] if kept else None, erased), erased))
    return kept


def _fill(
    target: Store,
    rest: Rest,
    deletions: Sequence[tuple[DeletionRow, list[ErasedRow]]],
    advance: Callable[[float], None],
) -> None:
    """Put everything into a store, in an order in which what is referred to is there before."""
    rows, kept = rest.rows, rest.kept
    for digest, content in sorted(rest.blobs.items()):
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
    if deletions and isinstance(target, ErasableStore):
        for deletion, erased in deletions:
            target.add_deletion(deletion, erased)
