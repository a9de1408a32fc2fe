"""Deletion of a session: erasing what only it refers to, and recording that.

Steps keep their id, parent, position, digest and chain, so that the chain of what remains can still be verified. A
`DeletionRow` says what was erased, and why. It can name any step or blob: a part of a session is deleted the same way.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from nexus_core.errors import LedgerError, UnknownNameError
from nexus_core.ledger.codec import find_nested_blobs, find_session_blobs, find_step_blobs
from nexus_core.ledger.store import (
    DeletionRow,
    ErasableStore,
    ErasedRow,
    StepRow,
    compute_erased_step_digest,
    erase_content,
    is_erased,
)
from nexus_core.ledger.url import without_secret
from nexus_core.types.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from nexus_core.ledger.store import LedgerStore, SessionRow

_STEPS_PER_READ = 500
"""Steps that are read at a time."""


class DeletionReport(NamedTuple):
    """The result of deleting a session.

    Attributes:
        labels: The sessions that were deleted.
        steps: The number of erased steps.
        blobs: The number of erased blobs.
        sharing: Sessions that stay, with the steps that they share with the deleted ones.
        workers: Workers of the deleted sessions that stay.
        ids: The ids of the recorded deletions; none for a dry run.
        is_purged: False if the erased bytes may still be in the file, because another program is reading it.
        copies: Backups that migrations left, which still contain erased content.
        note: The store's `erasure_note`.
    """

    labels: tuple[str, ...]
    steps: int
    blobs: int
    sharing: tuple[str, ...]
    workers: tuple[str, ...]
    ids: tuple[str, ...] = ()
    is_purged: bool = False
    copies: tuple[str, ...] = ()
    note: str = ""


class SessionErasure(NamedTuple):
    """The steps and blobs that are erased with one session.

    Attributes:
        session: The session.
        steps: The ids of the steps that no other session has, each with the digest of what is left of it.
        blobs: The digests of the blobs that nothing else refers to.
    """

    session: SessionRow
    steps: dict[str, str]
    blobs: list[str]

    def rows(self, name: str) -> list[ErasedRow]:
        """Return the rows of everything that the deletion with that id erases."""
        return [
            ErasedRow(name, "session", self.session.id),
            *(ErasedRow(name, "step", step, rest) for step, rest in sorted(self.steps.items())),
            *(ErasedRow(name, "blob", digest) for digest in self.blobs),
        ]


@runtime_checkable
class DeletableLedger(Ledger, Protocol):
    """A ledger from which sessions can be deleted. A ledger need not support that."""

    def delete(self, label: str, *, reason: str = "", workers: bool = False, dry_run: bool = False) -> DeletionReport:
        """Delete a session and record the deletion."""

    def deletions(self) -> list[DeletionRow]:
        """Return all recorded deletions, oldest first."""


def undeletable_ledger_error(url: str) -> LedgerError:
    """Return the error for a ledger that cannot delete."""
    hint = "`nexus ledger copy NEW --without NAME` makes a ledger without it"
    return LedgerError("nothing can be deleted from this ledger", where=without_secret(url), hint=hint)


def ensure_erasable(store: LedgerStore) -> ErasableStore:
    """Return a store from which sessions can be deleted.

    Raises:
        LedgerError: Its plugin does not offer that.
    """
    if isinstance(store, ErasableStore):
        return store
    raise undeletable_ledger_error(store.url)


def plan_deletion(
    store: ErasableStore, label: str, *, workers: bool
) -> tuple[list[SessionErasure], tuple[str, ...], tuple[str, ...]]:
    """Plan a deletion: the erased rows, sessions that share steps, workers that stay.

    Args:
        store: The rows.
        label: The session, by its label or alias.
        workers: True to delete the workers of the session, too.

    Raises:
        UnknownNameError: There is no such session.
    """
    sessions = store.session_rows()
    found = store.session(label)
    if found is None:
        raise UnknownNameError("session", label, [row.label for row in sessions])
    all_workers = _find_workers(found, sessions, store)
    deleted = [found, *(all_workers if workers else ())]
    ids = {row.id for row in deleted}
    others = [row for row in sessions if row.id not in ids]
    reached = _find_reached_positions(store, others)
    steps: dict[str, dict[str, str]] = {}
    needed: dict[str, dict[str, str]] = {}
    sharing: set[str] = set()
    erased: set[str] = set()
    for session in deleted:
        steps[session.id], needed[session.id] = {}, dict(find_session_blobs(session))
        for row in _find_own_steps(store, session, reached, erased):
            steps[session.id][row.id] = compute_erased_step_digest(erase_content(row))
            needed[session.id].update(find_step_blobs(row))
            erased.add(row.id)
        sharing.update(_find_sharing_sessions(store, session, others))
    unused = _find_unused_blobs(store, needed.values(), erased, others)
    plan = []
    for session in deleted:
        blobs = sorted(unused & _add_nested_blobs(store, needed[session.id]).keys())
        unused -= set(blobs)
        plan.append(SessionErasure(session, steps[session.id], blobs))
    left = () if workers else tuple(row.label for row in all_workers)
    return plan, tuple(sorted(sharing)), left


def delete_session(
    store: ErasableStore, label: str, names: Sequence[str], *, reason: str, created: int, workers: bool
) -> DeletionReport:
    """Erase a session inside a transaction, and record the deletion.

    Args:
        store: The rows.
        label: The session, by its label or alias.
        names: Ids for the deletions of the session and its workers; may be more than are needed.
        reason: The reason that the user gave.
        created: The time, in milliseconds since 1970.
        workers: True to delete the workers of the session, too.
    """
    store.wait_for_writers()
    recorded = store.deletion_rows()
    if done := [
        row for row in recorded if row.id in names
    ]:  # an earlier attempt was committed, and only the response was lost
        return _report_finished_deletion(label, done)
    plan, sharing, left = plan_deletion(store, label, workers=workers)
    before = recorded[-1] if recorded else None
    for name, erasure in zip(names, plan, strict=False):
        number = before.number + 1 if before else 1
        counts = len(erasure.steps), len(erasure.blobs)
        rows = erasure.rows(name)
        row = DeletionRow(name, number, erasure.session.id, reason, created, *counts).with_chain(before, rows)
        store.add_deletion(row, rows)
        store.erase_steps([*erasure.steps])
        store.drop_session(erasure.session.id)
        store.drop_blobs(erasure.blobs)
        before = row
    return describe_plan(plan, sharing, left)._replace(ids=tuple(names[: len(plan)]))


def describe_plan(plan: Sequence[SessionErasure], sharing: tuple[str, ...], workers: tuple[str, ...]) -> DeletionReport:
    """Return the report of a planned deletion."""
    labels = tuple(each.session.label for each in plan)
    steps, blobs = (sum(len(getattr(each, part)) for each in plan) for part in ("steps", "blobs"))
    return DeletionReport(labels, steps, blobs, sharing, workers)


def _report_finished_deletion(label: str, done: Sequence[DeletionRow]) -> DeletionReport:
    steps, blobs = sum(row.steps for row in done), sum(row.blobs for row in done)
    return DeletionReport((label,), steps, blobs, (), (), tuple(row.id for row in done))


def _find_workers(session: SessionRow, sessions: Iterable[SessionRow], store: LedgerStore) -> list[SessionRow]:
    """Return the workers of a session, their workers, and so on."""
    parents = {row.id: parent.id for row in sessions if (parent := _find_parent_session(row, store)) is not None}
    found = {session.id: session}
    rows = sorted(sessions)
    while new := [row for row in rows if row.id not in found and parents.get(row.id) in found]:
        found |= {row.id: row for row in new}
    return [row for row in found.values() if row.id != session.id]


def _find_parent_session(row: SessionRow, store: LedgerStore) -> SessionRow | None:
    parent = json.loads(row.data).get("parent") if '"parent"' in row.data else None
    return store.session(parent) if isinstance(parent, str) else None


def _find_reached_positions(store: LedgerStore, sessions: Iterable[SessionRow]) -> dict[str, int]:
    """Return the last position of each branch in the threads of sessions."""
    branches = {row.id: row for row in store.branch_rows()}
    reached: dict[str, int] = {}
    for session in sessions:
        place = None if session.tip is None else store.place(session.tip)
        branch, last = (place.branch, place.position) if place else (None, -1)
        while branch is not None and reached.get(branch, -1) < last:
            reached[branch] = last
            row = branches.get(branch)
            branch, last = (row.parent, row.position) if row else (None, -1)
    return reached


def _find_own_steps(
    store: LedgerStore, session: SessionRow, reached: dict[str, int], erased: Collection[str]
) -> Iterator[StepRow]:
    """Yield the steps that only this session has, newest first."""
    name = session.tip
    while name is not None:
        rows = [StepRow(*row) for row in store.tail(name, floor=0, limit=_STEPS_PER_READ)]
        for row in rows:
            if row.position <= reached.get(row.branch, -1) or row.id in erased:
                return  # another session has it, and so all steps before it
            if not is_erased(row):
                yield row
        name = rows[-1].parent if rows else None


def _find_sharing_sessions(store: LedgerStore, session: SessionRow, others: Iterable[SessionRow]) -> Iterator[str]:
    """Yield the labels of the sessions that have the first step in common with one."""
    root = _find_root_branch(store, session)
    if root is not None:
        yield from (row.label for row in others if _find_root_branch(store, row) == root)


def _find_root_branch(store: LedgerStore, session: SessionRow) -> str | None:
    place = None if session.tip is None else store.place(session.tip)
    branch = store.branch(place.branch) if place else None
    while branch is not None and branch.parent is not None:
        branch = store.branch(branch.parent)
    return branch.id if branch else None


def _add_nested_blobs(store: LedgerStore, needed: dict[str, str]) -> dict[str, str]:
    """Return blobs with those that they refer to: kinds by digest."""
    found: dict[str, str] = {}
    left = dict(needed)
    while left:
        found |= left
        contents = {digest: store.blob(digest) for digest in left}
        nested = {
            inner: inner_kind
            for digest, kind in left.items()
            for inner, inner_kind in find_nested_blobs(kind, contents[digest] or b"")
        }
        left = {digest: kind for digest, kind in nested.items() if digest not in found}
    return found


def _find_unused_blobs(
    store: LedgerStore, needed: Iterable[dict[str, str]], erased: Collection[str], others: Iterable[SessionRow]
) -> set[str]:
    """Return the blobs of erased rows that nothing else refers to."""
    candidates: set[str] = set()
    for each in needed:
        candidates |= _add_nested_blobs(store, each).keys()
    candidates = {digest for digest in candidates if store.blob(digest) is not None}
    used: dict[str, str] = {}
    for row in store.step_rows() if candidates else ():
        if row.id not in erased:
            used.update(find_step_blobs(row))
    for session in others:
        used.update(find_session_blobs(session))
    return candidates - _add_nested_blobs(store, used).keys() if candidates else set()
