"""Detection of rows that were changed, deleted, reordered or damaged."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError, LedgerUnreachableError
from nexus_core.ledger.codec import (
    compute_blob_digest,
    compute_running_total,
    describe_decode_error,
    find_active_compaction,
    find_nested_blobs,
    find_session_blobs,
    find_step_blobs,
)
from nexus_core.ledger.store import (
    ErasableStore,
    ErasedRow,
    HistoryRow,
    SessionRow,
    StepRow,
    compute_chain_digest,
    compute_erased_step_digest,
    compute_step_digest,
    has_valid_digest,
    is_erased,
)
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nexus_core.ledger.store import AliasRow, BranchRow, DeletionRow, LedgerStore, ParentRef


_WRONG_BRANCH = "misplaced: its branch begins with another"
_START_REASONS = ("create", "repair")
"""Reasons of the first head change of a session that began as a fork."""
_STEPS_PER_READ = 500
"""Maximum steps of one query when a single session is checked."""
_MAX_NAMED_SESSIONS = 3
"""Maximum sessions that a finding names; the others are counted."""


class BlobUse(NamedTuple):
    """A reference to a blob.

    Attributes:
        kind: The kind of the blob, such as `MEDIA_BLOB`.
        step: The first step that refers to it; None if a session does.
        session: The id of that session.
        number: The number of steps that refer to it.
    """

    kind: str
    step: StepRow | None
    session: str = ""
    number: int = 1


class VerifiedSteps:
    """Facts about verified steps that are compared once all have been read.

    Attributes:
        ends: The last step of each branch.
        forked: The ids of steps after which other branches begin.
        begins: The parent of each branch, and the position of the last common step.
        closers: The positions of steps that close a turn, by branch, in order.
        blobs: The references to blobs, by digest.
    """

    def __init__(self) -> None:
        self.ends: dict[str, StepRow] = {}
        self.forked: set[str] = set()
        self.begins: dict[str, tuple[str | None, int]] = {}
        self.closers: dict[str, list[int]] = defaultdict(list)
        self.blobs: dict[str, BlobUse] = {}

    def note_blobs(self, row: StepRow) -> None:
        """Record the blobs that a step refers to."""
        for digest, kind in find_step_blobs(row):
            known = self.blobs.get(digest)
            self.blobs[digest] = BlobUse(kind, row) if known is None else known._replace(number=known.number + 1)

    def note_source(self, row: SessionRow) -> None:
        """Record the blob that a session refers to."""
        for digest, kind in find_session_blobs(row):
            self.blobs.setdefault(digest, BlobUse(kind, None, row.id))

    def note_nested(self, digest: str, content: bytes) -> None:
        """Record the blobs that a blob refers to."""
        use = self.blobs.get(digest)
        for nested, kind in find_nested_blobs(use.kind, content) if use else ():
            assert use is not None  # noqa: S101 - a blob that is not referred to has nothing nested
            self.blobs.setdefault(nested, use._replace(kind=kind))


def verify_store(store: LedgerStore, advance: Callable[[int], None], label: str | None = None) -> Iterator[Finding]:
    """Yield a finding for each step, session or blob that is not as it was recorded.

    Args:
        store: The rows.
        advance: Called with 1 for every step that was checked.
        label: The session to check, with its names, its steps and the blobs they refer to; None for all.

    Raises:
        LedgerUnreachableError: The store cannot be read.
    """
    try:
        with store.snapshot() as snapshot:
            if label is None:
                yield from _check_everything(snapshot, advance)
            elif (session := snapshot.session(label)) is not None:
                yield from _check_single_session(snapshot, session, advance)
    except LedgerUnreachableError:  # does not mean that anything is damaged
        raise
    except LedgerError as error:
        yield Finding("ledger-unreadable", f"the rest cannot be read: {error.what}")
    except TypeError:
        yield Finding("ledger-unreadable", "the rest cannot be compared: something is of a kind that is never stored")


def _check_everything(store: LedgerStore, advance: Callable[[int], None]) -> Iterator[Finding]:
    seen = VerifiedSteps()
    yield from store.damage()
    yield from _check_steps(store, seen, advance)
    known = {row.id: row for row in sorted(store.session_rows(), key=repr)}
    branches = {row.id: row for row in store.branch_rows()}
    for row in known.values():
        if has_valid_digest(row):
            seen.note_source(row)
    yield from _check_blobs(store, seen, known, branches)
    yield from _check_head_changes(store, seen, known, branches)
    for alias in sorted(store.alias_rows(), key=repr):
        if not has_valid_digest(alias) or alias.session not in known:
            yield _build_changed_alias_finding(alias)
    yield from _check_branches(branches, seen)
    tips = {row.tip for row in known.values()} | seen.forked
    for end in seen.ends.values():
        if end.id not in tips and not is_erased(end):
            yield Finding("step-stray", f"step {end.id} of turn {end.turn}: no session leads to it", step=end.id)
    yield from _check_deletions(store)


# ---- steps --------------------------------------------------------------------------------------------------


def _check_steps(store: LedgerStore, seen: VerifiedSteps, advance: Callable[[int], None]) -> Iterator[Finding]:
    before: StepRow | None = None
    for row in store.step_rows():
        begins = before is None or before.branch != row.branch
        if begins:
            before = None if row.parent is None else store.step(row.parent)
            if before is not None:
                seen.forked.add(before.id)
        yield from _check_step(store, row, before, seen, begins=begins)
        before = row
        advance(1)


def _check_step(
    store: LedgerStore, row: StepRow, before: StepRow | None, seen: VerifiedSteps, *, begins: bool
) -> Iterator[Finding]:
    """Compare a step with the one before it, and record facts for later."""
    if begins:
        seen.begins[row.branch] = (before.branch, before.position) if before else (None, -1)
    erased = store.erased("step", row.id) if is_erased(row) and isinstance(store, ErasableStore) else []
    fault = _find_step_fault(row, before, erased) or _WRONG_BRANCH * (begins and row.branch != row.id)
    if not fault and (why := describe_decode_error(row.messages)):
        fault = f"unreadable: its messages cannot be read: {why}"
    if fault:
        yield _build_step_finding(row, fault)
    else:
        seen.note_blobs(row)
    seen.ends[row.branch] = row
    if row.closes:
        seen.closers[row.branch].append(row.position)


def _find_step_fault(row: StepRow, before: StepRow | None, erased: list[ErasedRow]) -> str:
    """Return the fault of a step as `kind: description`, "" for none."""
    try:
        return _compare_step(row, before, erased)
    except TypeError:  # one of them has a value of a type that is never stored
        return "changed: it, or the step before it, is not what was recorded"


def _compare_step(row: StepRow, before: StepRow | None, erased: list[ErasedRow]) -> str:
    try:
        digest = compute_step_digest(row)
    except (LedgerError, UnicodeError):  # a value of a type that is never stored
        digest = ""
    if erased and compute_erased_step_digest(row) not in {each.rest for each in erased}:
        return "changed: what a deletion left of it is not what was recorded"
    if digest != row.digest and not erased:
        return "changed: its content is not what was recorded"
    fault = _find_place_fault(row, before)
    if fault or erased:  # the digest in the deletion covers the other fields of an erased step
        return fault
    parent = before.place if before else None
    restores = json.loads(row.data).get("restores") if row.kind == "revert" else None
    derived = (
        compute_running_total(row.tokens, row.counter, parent),
        find_active_compaction(row.id, row.kind, restores, parent),
    )
    return "" if derived == (row.total, row.compaction) else "changed: what was derived from it does not fit it"


def _find_place_fault(row: StepRow, before: StepRow | None) -> str:
    if row.parent != (before.id if before else None):
        return "missing: the step before it is gone, or another stands there"
    if compute_chain_digest(before.chain if before else "", row.digest) != row.chain:
        return "changed: the chain of digests breaks here"
    if row.position != (before.position + 1 if before else 0):
        return "misplaced: its position does not follow the one before"
    opens = before is None or bool(before.closes)
    if row.turn != (row.id if opens or before is None else before.turn):
        return "misplaced: it is not of the turn that was open"
    return ""


def _build_step_finding(row: StepRow, fault: str) -> Finding:
    kind, _, what = fault.partition(": ")
    where = f"step {row.id} of turn {row.turn} ({row.kind}, position {row.position})"
    return Finding(f"step-{kind}", f"{where}: {what}", step=str(row.id))


def _check_branches(branches: Mapping[str, BranchRow], seen: VerifiedSteps) -> Iterator[Finding]:
    recorded = {row.id: (row.parent, row.position) for row in branches.values()}
    for name in sorted(recorded.keys() | seen.begins.keys(), key=repr):
        if name not in seen.begins:
            yield Finding("step-missing", f"step {name} is gone, with its whole branch", step=name)
        elif recorded.get(name) != seen.begins[name]:
            what = f"step {name}: the record of the branch that begins with it was changed"
            yield Finding("step-misplaced", what, step=name)


# ---- blobs --------------------------------------------------------------------------------------------------


def _check_blobs(
    store: LedgerStore, seen: VerifiedSteps, known: Mapping[str, SessionRow], branches: Mapping[str, BranchRow]
) -> Iterator[Finding]:
    there: set[str] = set()
    for digest, content in store.blob_rows():
        there.add(digest)
        if compute_blob_digest(content) != digest:
            yield _build_changed_blob_finding(digest)
        else:
            seen.note_nested(digest, content)
    for digest in sorted(seen.blobs.keys() - there):
        if not (isinstance(store, ErasableStore) and store.erased("blob", digest)):
            use = seen.blobs[digest]
            yield build_missing_blob_finding(digest, use, _find_session_labels(store, use, known, branches))


def _build_changed_blob_finding(digest: str) -> Finding:
    return Finding("blob-changed", f"blob {digest}: its content is not what was recorded")


def build_missing_blob_finding(digest: str, use: BlobUse, labels: list[str]) -> Finding:
    """Return the finding about a missing blob.

    Args:
        digest: Its digest.
        use: The reference to it.
        labels: The sessions that need it.
    """
    named = ", ".join(map(repr, labels[:_MAX_NAMED_SESSIONS])) + f" and {len(labels) - _MAX_NAMED_SESSIONS} more" * (
        len(labels) > _MAX_NAMED_SESSIONS
    )
    whose = f" of session {named}" if labels else ""
    what = f"blob {digest} is gone: the {use.kind}{whose}"
    if use.step is None:
        return Finding("blob-missing", what)
    others = f" and {use.number - 1} other step{'s' * (use.number != 2)}" * (use.number > 1)  # noqa: PLR2004 - plural
    return Finding("blob-missing", f"{what}; step {use.step.id}{others} refer to it", step=use.step.id)


def _find_session_labels(
    store: LedgerStore, use: BlobUse, known: Mapping[str, SessionRow], branches: Mapping[str, BranchRow]
) -> list[str]:
    """Return the labels of the sessions that need a blob."""
    if use.step is None:
        return [known[use.session].label] if use.session in known else []
    place = use.step.place
    return [row.label for row in known.values() if _is_in_thread(place, _find_tip(store, row), branches)]


def _find_tip(store: LedgerStore, row: SessionRow) -> ParentRef | None:
    return None if row.tip is None else store.place(row.tip)


def _is_in_thread(place: ParentRef, tip: ParentRef | None, branches: Mapping[str, BranchRow]) -> bool:
    """Return True if a step belongs to the thread of a tip, judged by their branches."""
    return tip is not None and any(
        branch == place.branch and place.position <= last for branch, last in _walk_branches(tip, branches)
    )


def _walk_branches(tip: ParentRef, branches: Mapping[str, BranchRow]) -> Iterator[tuple[str, int]]:
    """Yield the branches of a thread and their last positions in it, newest first."""
    branch, last = tip.branch, tip.position
    for _ in range(len(branches) + 1):  # damaged rows may form a cycle
        yield branch, last
        row = branches.get(branch)
        if row is None or row.parent is None:
            return
        branch, last = row.parent, row.position


# ---- sessions -----------------------------------------------------------------------------------------------


def _check_head_changes(
    store: LedgerStore, seen: VerifiedSteps, known: Mapping[str, SessionRow], branches: Mapping[str, BranchRow]
) -> Iterator[Finding]:
    noted = {row.id: HeadChanges(row) for row in known.values()}
    for note in store.history_rows():
        place = store.place(note.step)
        if not has_valid_digest(note) or note.session not in known:
            yield _build_changed_head_finding(note)
        elif place is None:
            label = known[note.session].label
            yield Finding("step-missing", f"step {note.step} is gone; session {label!r} stood there", step=note.step)
        else:
            noted[note.session].add(note, place)
    for heads in noted.values():
        yield from _check_session(store, heads, seen, branches)


class HeadChanges:
    """The head changes of a session.

    Attributes:
        session: The session.
        number: The number of head changes.
        first: The oldest head and the reason of its change.
        last: The newest head.
    """

    def __init__(self, session: SessionRow) -> None:
        self.session = session
        self.number = 0
        self.first: tuple[ParentRef, str] | None = None
        self.last: ParentRef | None = None

    def add(self, note: HistoryRow, place: ParentRef) -> None:
        """Add an intact head change."""
        self.number += 1
        if self.first is None or place.position < self.first[0].position:
            self.first = place, note.reason
        if self.last is None or (place.position, place.id) > (self.last.position, self.last.id):
            self.last = place

    def count_missing(self, seen: VerifiedSteps, branches: Mapping[str, BranchRow]) -> int:
        """Return the number of missing head changes.

        Each closed turn since the session began has one.
        """
        if self.first is None or self.last is None:
            return 0
        first, reason = self.first
        closed = _count_closed_turns(0, self.last, seen, branches)
        before = _count_closed_turns(0, first, seen, branches) - 1
        return closed - self.number - (before if reason in _START_REASONS else 0)


def _count_closed_turns(floor: int, last: ParentRef, seen: VerifiedSteps, branches: Mapping[str, BranchRow]) -> int:
    """Return the number of steps of a thread that close a turn, from a position on."""
    closed = 0
    for branch, end in _walk_branches(last, branches):
        positions = seen.closers.get(branch, [])
        closed += bisect_right(positions, end) - bisect_left(positions, floor)
    return closed


def _check_session(
    store: LedgerStore, heads: HeadChanges, seen: VerifiedSteps, branches: Mapping[str, BranchRow]
) -> Iterator[Finding]:
    row = heads.session
    for fault in _find_session_faults(store, row, heads.last.id if heads.last else None):
        yield Finding("session-changed", f"session {row.label!r}: {fault}")
    missing = heads.count_missing(seen, branches)
    if missing:
        what = f"{abs(missing)} of the notes on where it stood {'are gone' if missing > 0 else 'are too many'}"
        yield Finding("session-changed", f"session {row.label!r}: {what}")


def _find_session_faults(store: LedgerStore, row: SessionRow, head: str | None) -> Iterator[str]:
    if not has_valid_digest(row):
        yield "its record was changed"
        return
    if head != row.head:
        yield f"its head is {row.head}, but it was put on {head}"
    tip = _find_tip(store, row)
    if (tip is None) != (row.tip is None):
        yield f"step {row.tip} is gone, which is its newest"
    elif tip is not None and (row.open_turn, row.head) != ((None, tip.id) if tip.closes else (tip.turn, row.head)):
        yield f"its newest step is {row.tip}, which does not fit its turn"


def _build_changed_head_finding(note: HistoryRow) -> Finding:
    return Finding("session-changed", f"the note that session {note.session} was put on {note.step} was changed")


def _build_changed_alias_finding(alias: AliasRow) -> Finding:
    return Finding("session-changed", f"the alias {alias.alias!r} was changed")


# ---- deletions ----------------------------------------------------------------------------------------------


def _check_deletions(store: LedgerStore) -> Iterator[Finding]:
    if not isinstance(store, ErasableStore):
        return
    recorded = {row.id: row for row in store.deletion_rows()}
    erased = {name: list(rows) for name, rows in groupby(store.erased_rows(), key=lambda each: each.deletion)}
    before: DeletionRow | None = None
    for number, row in enumerate(recorded.values(), 1):
        fault = _find_deletion_fault(row, number, before, erased.get(row.id, []))
        if fault:
            yield Finding("deletion-changed", f"deletion {row.id}: {fault}")
        before = row
    for name in sorted(erased.keys() - recorded.keys()):
        yield Finding("deletion-changed", f"the record of deletion {name} is gone, which erased {len(erased[name])}")
    for rows in erased.values():
        yield from _check_erased(store, rows)


def _find_deletion_fault(row: DeletionRow, number: int, before: DeletionRow | None, erased: list[ErasedRow]) -> str:
    try:
        expected = row.with_chain(before, erased)
    except (LedgerError, UnicodeError):  # a value of a type that is never stored
        return "its record was changed"
    if row.number != number:
        return "one before it is gone"
    if expected.digest != row.digest:
        return "its record was changed, or something that it erased is not on its list"
    if expected.chain != row.chain:
        return "the chain of deletions breaks here"
    if row.purged != 1:
        return "what it erased may still lie in the file; the next program that writes to the ledger overwrites it"
    return ""


def _check_erased(store: LedgerStore, rows: Iterable[ErasedRow]) -> Iterator[Finding]:
    for row in rows:
        if row.kind != "step":
            continue
        step = store.step(row.name)
        if step is None:
            yield Finding("step-missing", f"step {row.name} is gone, which was erased by deletion {row.deletion}")
        elif not is_erased(step):
            what = f"step {row.name} has content again, which was erased by deletion {row.deletion}"
            yield Finding("step-changed", what, step=row.name)


# ---- one session --------------------------------------------------------------------------------------------


def _check_single_session(store: LedgerStore, session: SessionRow, advance: Callable[[int], None]) -> Iterator[Finding]:
    """Check one session, its steps and its blobs, without reading other steps."""
    seen = VerifiedSteps()
    yield from store.damage(session.id)
    yield from _check_thread(store, session, seen, advance)
    for positions in seen.closers.values():
        positions.reverse()  # they were read newest first
    if has_valid_digest(session):
        seen.note_source(session)
    yield from _check_session_blobs(store, session, seen)
    branches = {name: row for name in seen.begins if (row := store.branch(name)) is not None}
    heads = HeadChanges(session)
    for note in store.history_rows(session.id):
        place = store.place(note.step)
        if not has_valid_digest(note):
            yield _build_changed_head_finding(note)
        elif place is None:
            what = f"step {note.step} is gone; session {session.label!r} stood there"
            yield Finding("step-missing", what, step=note.step)
        else:
            heads.add(note, place)
    yield from _check_session(store, heads, seen, branches)
    for alias in store.alias_rows():
        if alias.session == session.id and not has_valid_digest(alias):
            yield _build_changed_alias_finding(alias)
    yield from _check_branches(branches, seen)


def _check_thread(
    store: LedgerStore, session: SessionRow, seen: VerifiedSteps, advance: Callable[[int], None]
) -> Iterator[Finding]:
    after: StepRow | None = None
    name = session.tip
    while name is not None:
        rows = [StepRow(*row) for row in store.tail(name, floor=0, limit=_STEPS_PER_READ)]
        for row in rows:
            if after is not None:
                yield from _check_step(store, after, row, seen, begins=after.branch != row.branch)
                if row.position >= after.position:  # damaged rows may form a cycle
                    return
            advance(1)
            after = row
        name = rows[-1].parent if rows else None
    if after is not None:
        yield from _check_step(store, after, None, seen, begins=True)


def _check_session_blobs(store: LedgerStore, session: SessionRow, seen: VerifiedSteps) -> Iterator[Finding]:
    checked: set[str] = set()
    while left := sorted(seen.blobs.keys() - checked):
        for digest in left:
            checked.add(digest)
            content = store.blob(digest)
            if content is None:
                if not (isinstance(store, ErasableStore) and store.erased("blob", digest)):
                    yield build_missing_blob_finding(digest, seen.blobs[digest], [session.label])
            elif compute_blob_digest(content) != digest:
                yield _build_changed_blob_finding(digest)
            else:
                seen.note_nested(digest, content)
