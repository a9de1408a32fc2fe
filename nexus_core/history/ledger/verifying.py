"""What was changed, deleted, reordered or damaged since it was recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError, UnreachableError
from nexus_core.history.ledger.growing import compaction_of, total_of
from nexus_core.history.ledger.media import address_of, references, refers_to_media
from nexus_core.history.ledger.rows import SessionRow, StepRow, chain_of, digest_of, is_sealed
from nexus_core.history.ledger.stored import why_unreadable
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nexus_core.history.ledger.store import Store


_ANOTHER = "misplaced: its branch begins with another"


class Seen(NamedTuple):
    """What the steps that were looked at leave to be compared.

    Attributes:
        ends: The last step of each branch.
        forked: Steps that other branches begin behind.
        begins: Where each branch begins: that it leaves, and its position there.
        blobs: What messages refer to, and one step that does.
    """

    ends: dict[str, StepRow]
    forked: set[str]
    begins: dict[str, tuple[str | None, int]]
    blobs: dict[str, str]


def verify(store: Store, advance: Callable[[int], None]) -> Iterator[Finding]:
    """Everything that is not as it was recorded; each finding names the step, session or blob.

    Args:
        store: Where the rows are.
        advance: Called with 1 for every step that was looked at.

    Raises:
        UnreachableError: It cannot be looked at.
    """
    seen = Seen({}, set(), {}, {})
    try:
        with store.snapshot() as still:
            yield from still.damage()
            yield from _check_steps(still, seen, advance)
            yield from _check_blobs(still, seen)
            yield from _check_sessions(still, seen)
    except UnreachableError:  # nothing is known to be damaged
        raise
    except LedgerError as error:
        yield Finding("ledger-unreadable", f"the rest cannot be read: {error.what}")
    except TypeError:
        yield Finding("ledger-unreadable", "the rest cannot be compared: something is of a kind that is never stored")


def _check_steps(store: Store, seen: Seen, advance: Callable[[int], None]) -> Iterator[Finding]:
    before: StepRow | None = None
    for row in store.step_rows():
        if before is None or before.branch != row.branch:
            parent = None if row.parent is None else store.step(row.parent)
            seen.begins[row.branch] = (parent.branch, parent.position) if parent else (None, -1)
            if parent is not None:
                seen.forked.add(parent.id)
            fault = _fault_of(row, parent) or _ANOTHER * (row.branch != row.id)
        else:
            fault = _fault_of(row, before)
        if not fault and (why := why_unreadable(row.messages)):
            fault = f"unreadable: its messages cannot be read: {why}"
        if fault:
            yield _about_step(row, fault)
        elif refers_to_media(row.messages):
            seen.blobs.update((digest, row.id) for digest in references(json.loads(row.messages)))
        seen.ends[row.branch] = before = row
        advance(1)


def _fault_of(row: StepRow, before: StepRow | None) -> str:
    """What is wrong with a step that stands behind another, "" for nothing."""
    try:
        return _fault(row, before)
    except TypeError:  # one of them has a value of a kind that is never stored
        return "changed: it, or the step before it, is not what was recorded"


def _fault(row: StepRow, before: StepRow | None) -> str:
    try:
        digest = digest_of(row)
    except (LedgerError, UnicodeError):  # a value of a kind that is never stored
        digest = ""
    if digest != row.digest:
        return "changed: its content is not what was recorded"
    if row.parent != (before.id if before else None):
        return "missing: the step before it is gone, or another stands there"
    parent = before.place if before else None
    if chain_of(before.chain if before else "", row.digest) != row.chain:
        return "changed: the chain of digests breaks here"
    if row.position != (before.position + 1 if before else 0):
        return "misplaced: its position does not follow the one before"
    opens = before is None or bool(before.closes)
    if row.turn != (row.id if opens or before is None else before.turn):
        return "misplaced: it is not of the turn that was open"
    restores = json.loads(row.data).get("restores") if row.kind == "revert" else None
    derived = total_of(row.tokens, row.counter, parent), compaction_of(row.id, row.kind, restores, parent)
    return "" if derived == (row.total, row.compaction) else "changed: what was derived from it does not fit it"


def _about_step(row: StepRow, fault: str) -> Finding:
    kind, _, what = fault.partition(": ")
    where = f"step {row.id} of turn {row.turn} ({row.kind}, position {row.position})"
    return Finding(f"step-{kind}", f"{where}: {what}", step=str(row.id))


def _check_blobs(store: Store, seen: Seen) -> Iterator[Finding]:
    missing = dict(seen.blobs)
    for digest, content in store.blob_rows():
        missing.pop(digest, None)
        if address_of(content) != digest:
            yield Finding("blob-changed", f"blob {digest}: its content is not what was recorded")
    for digest, name in sorted(missing.items()):
        yield Finding("blob-missing", f"blob {digest} is gone; step {name} refers to it", step=name)


def _check_sessions(store: Store, seen: Seen) -> Iterator[Finding]:
    known = {row.id: row for row in sorted(store.session_rows(), key=repr)}
    heads: dict[str, tuple[int, str]] = {}
    for note in store.history_rows():
        place = store.place(note.step)
        if not is_sealed(note) or note.session not in known:
            yield Finding("session-changed", f"the note that session {note.session} was put on {note.step} was changed")
        elif place is None:
            label = known[note.session].label
            yield Finding("step-missing", f"step {note.step} is gone; session {label!r} stood there", step=note.step)
        else:
            heads[note.session] = max(heads.get(note.session, (-1, "")), (place.position, note.step))
    for row in known.values():
        for fault in _session_faults(store, row, heads.get(row.id, (-1, None))[1]):
            yield Finding("session-changed", f"session {row.label!r}: {fault}")
    for alias in sorted(store.alias_rows(), key=repr):
        if not is_sealed(alias) or alias.session not in known:
            yield Finding("session-changed", f"the alias {alias.alias!r} was changed")
    yield from _check_branches(store, seen)
    tips = {row.tip for row in known.values()} | seen.forked
    for end in seen.ends.values():
        if end.id not in tips:
            yield Finding("step-stray", f"step {end.id} of turn {end.turn}: no session leads to it", step=end.id)


def _session_faults(store: Store, row: SessionRow, head: str | None) -> Iterator[str]:
    if not is_sealed(row):
        yield "its record was changed"
        return
    if head != row.head:
        yield f"its head is {row.head}, but it was put on {head}"
    tip = None if row.tip is None else store.place(row.tip)
    if (tip is None) != (row.tip is None):
        yield f"step {row.tip} is gone, which is its newest"
    elif tip is not None and (row.open_turn, row.head) != ((None, tip.id) if tip.closes else (tip.turn, row.head)):
        yield f"its newest step is {row.tip}, which does not fit its turn"


def _check_branches(store: Store, seen: Seen) -> Iterator[Finding]:
    recorded = {row.id: (row.parent, row.position) for row in store.branch_rows()}
    for name in sorted(recorded.keys() | seen.begins.keys(), key=repr):
        if name not in seen.begins:
            yield Finding("step-missing", f"step {name} is gone, with its whole branch", step=name)
        elif recorded.get(name) != seen.begins[name]:
            what = f"step {name}: the record of the branch that begins with it was changed"
            yield Finding("step-misplaced", what, step=name)
