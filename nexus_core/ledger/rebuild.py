"""A new ledger from the intact turns of a damaged one, or without some sessions.

Gaps are closed: a step whose parent is lost gets the nearest earlier step that is left as its parent.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError, UnknownNameError
from nexus_core.ledger.codec import (
    EncodedStep,
    build_step_row,
    compute_blob_digest,
    describe_decode_error,
    find_media_blobs,
    refers_to_media,
)
from nexus_core.ledger.store import (
    AliasRow,
    BranchRow,
    ErasableStore,
    HistoryRow,
    SessionRow,
    StepRow,
    compute_chain_digest,
    compute_erased_step_digest,
    compute_step_digest,
    has_valid_digest,
    is_erased,
    write_json,
)
from nexus_core.ledger.verify import VerifiedSteps, build_missing_blob_finding
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.ledger.store import DeletionRow, ErasedRow, LedgerStore, ParentRef, Salvaged


class TurnEnds(NamedTuple):
    """Evidence of whether a turn that is not closed had more steps.

    Attributes:
        named: The tips and former heads of all sessions.
        is_missing: True if one of these is lost.
        torn: Turns with damaged steps.
        farthest: The last position of each branch.
    """

    named: set[str | None]
    is_missing: bool
    torn: set[str]
    farthest: Mapping[str, int]

    def may_continue(self, last: StepRow) -> bool:
        """Return True if an open turn may have had more steps after `last`.

        Without evidence, as when the rows of its session are lost too, the turn counts as open.
        """
        if last.id in self.named:
            return False
        return self.is_missing or last.turn in self.torn or self.farthest[last.branch] > last.position


def find_turn_ends(steps: Mapping[str, StepRow], named: set[str | None], torn: set[str]) -> TurnEnds:
    """Return the evidence of where turns ended.

    Args:
        steps: The intact steps.
        named: The tips and former heads of all sessions.
        torn: Turns with damaged steps.
    """
    farthest: dict[str, int] = {}
    for row in steps.values():
        farthest[row.branch] = max(row.position, farthest.get(row.branch, -1))
    return TurnEnds(named, any(name not in steps for name in named - {None}), torn, farthest)


def split_intact_steps(rows: Iterable[StepRow], erased: Mapping[str, str]) -> tuple[dict[str, StepRow], set[str]]:
    """Return the intact steps by id, and the turns of the damaged ones.

    Args:
        rows: All steps that were found.
        erased: The ids of deleted steps, each with the digest of what is left of it.
    """
    steps: dict[str, StepRow] = {}
    others: list[StepRow] = []
    for row in rows:
        if row.id in erased:
            if is_erased(row) and compute_erased_step_digest(row) == erased[row.id]:
                steps[row.id] = row
            continue  # an older version may still have the deleted content
        if _is_intact(row):
            steps[row.id] = row
        else:
            others.append(row)
    return steps, {row.turn for row in others if row.id not in steps}  # the log may have an intact version


def _is_intact(row: StepRow) -> bool:
    position: object = row.position
    branch: object = row.branch
    if not isinstance(position, int) or not isinstance(branch, str):  # not part of the digest
        return False
    try:
        return compute_step_digest(row) == row.digest
    except (LedgerError, UnicodeError):  # a value of a type that is never stored
        return False


def keep_intact_turns(
    steps: dict[str, StepRow], ends: TurnEnds, blobs: dict[str, bytes], lost: list[Finding], erased: Collection[str]
) -> dict[str, StepRow]:
    """Return the steps of complete, readable turns without missing references.

    Args:
        steps: The intact steps, by id.
        ends: Evidence of where turns ended.
        blobs: The intact blobs, by digest.
        lost: Findings about other turns are added here.
        erased: The ids of deleted steps.
    """
    members: dict[str, dict[str | None, StepRow]] = defaultdict(dict)
    for row in steps.values():
        members[row.turn][row.parent if row.id != row.turn else None] = row
    kept: dict[str, StepRow] = {}
    for turn, rows in members.items():
        ordered = list(_order_turn_steps(rows))
        if erased and all(row.id in erased for row in rows.values()):
            kept.update((row.id, row) for row in ordered)
            continue
        if len(ordered) != len(rows) or (not ordered[-1].closes and ends.may_continue(ordered[-1])):
            what = f"turn {turn} is not saved: of its steps, only {len(rows)} can be read"
        elif unread := next(((row, why) for row in ordered if (why := describe_decode_error(row.messages))), None):
            what = f"turn {turn} is not saved: the messages of step {unread[0].id} cannot be read: {unread[1]}"
        else:
            kept.update((row.id, row) for row in ordered)
            continue
        lost.append(Finding("turn-lost", what, step=turn))
    while gone := {row.turn: why for row in kept.values() if (why := _find_missing_reference(row, kept, blobs))}:
        lost += [
            Finding("turn-lost", f"turn {turn} is not saved: {why}", step=turn) for turn, why in sorted(gone.items())
        ]
        kept = {name: row for name, row in kept.items() if row.turn not in gone}
    return kept


def _order_turn_steps(rows: dict[str | None, StepRow]) -> Iterator[StepRow]:
    """Yield the steps of a turn in order, up to the first gap."""
    row = rows.get(None)
    while row is not None:
        yield row
        row = rows.get(row.id)


def _find_missing_reference(row: StepRow, kept: dict[str, StepRow], blobs: dict[str, bytes]) -> str:
    """Describe a missing step or blob that a step refers to, "" for none."""
    if refers_to_media(row.messages):
        for digest in find_media_blobs(json.loads(row.messages)):
            if digest not in blobs:
                return f"the picture or document {digest} is gone"
    data = json.loads(row.data)
    pinned = data.get("pinned")
    needed = [data.get("first_kept"), *(pinned if isinstance(pinned, list) else [])]
    named = {"compaction": needed, "revert": [data.get("restores")]}.get(row.kind, [])
    gone = next((name for name in named if name is not None and name not in kept), None)
    return "" if gone is None else f"it refers to step {gone}, which is gone"


RUNNING_TOTAL_FIELDS = frozenset({"turns", "messages", "all_tokens", "spent"})
"""Keys in the data of a step with totals over all steps before it. Sessions recompute missing ones."""


def join_steps(
    kept: dict[str, StepRow], steps: dict[str, StepRow], lost: list[Finding], erased: Collection[str]
) -> Iterator[StepRow]:
    """Yield steps in the order to append them, each after the nearest that is left.

    Args:
        kept: The steps of complete turns, by id.
        steps: All intact steps, by id.
        lost: Findings about gaps between steps are added here.
        erased: The ids of deleted steps, which keep the digest of their former content.
    """
    branches: dict[str, list[StepRow]] = defaultdict(list)
    known = _find_known_positions(steps.values())
    for row in sorted(kept.values(), key=lambda each: (each.position, each.id)):
        branches[row.branch].append(row)
    places: dict[str, ParentRef] = {}
    taken: set[tuple[str, int]] = set()
    moved: set[str] = set()
    # A step that continues a branch comes before one that forks from it.
    for row in sorted(kept.values(), key=lambda each: (each.position, each.branch == each.id, each.id)):
        before = _find_parent(row, kept, branches)
        if before != row.parent:
            lost += _find_gap(row, kept.get(before or ""), known)
        if before != row.parent or before in moved:
            moved.add(row.id)
        parent = places.get(before or "")
        is_free = parent is not None and (parent.branch, parent.position + 1) not in taken
        branch = parent.branch if parent is not None and is_free else row.id
        encoded = _encode_row(_drop_running_totals(row) if row.id in moved and row.id not in erased else row)
        added = build_step_row(encoded, parent, turn=row.turn, branch=branch)
        if row.id in erased:
            chain = compute_chain_digest(parent.chain if parent else "", row.digest)
            added = added._replace(compaction=row.compaction, digest=row.digest, chain=chain)
        taken.add((added.branch, added.position))
        places[row.id] = added.place
        yield added


def _find_parent(row: StepRow, kept: dict[str, StepRow], branches: dict[str, list[StepRow]]) -> str | None:
    """Return the parent of a step, or the last closed turn before it in its branch."""
    if row.parent in kept or row.parent is None:
        return row.parent
    before = [each.id for each in branches[row.branch] if each.position < row.position and each.closes]
    return before[-1] if before else None


def _find_known_positions(steps: Iterable[StepRow]) -> Mapping[str, Sequence[int]]:
    """Return the positions of each branch that belong to known turns.

    They are those of intact steps, and of lost steps of turns with other steps left, whose loss is reported already.
    """
    turns: dict[tuple[str, str], list[StepRow]] = defaultdict(list)
    for row in steps:
        turns[row.branch, row.turn].append(row)
    known: dict[str, set[int]] = defaultdict(set)
    for (branch, turn), rows in turns.items():
        first, last = (pick(rows, key=lambda row: row.position) for pick in (min, max))
        begin = first.position - (first.id != turn)
        known[branch].update(range(begin, last.position + 1 + (not last.closes)))
    return defaultdict(list, {branch: sorted(positions) for branch, positions in known.items()})


def _find_gap(row: StepRow, before: StepRow | None, known: Mapping[str, Sequence[int]]) -> Iterator[Finding]:
    """Yield a finding if steps are lost between a step and its new parent.

    Steps of known turns are reported elsewhere.

    Args:
        row: The step.
        before: Its new parent.
        known: The positions of each branch that belong to known turns.
    """
    first = before.position + 1 if before else 0
    left = bisect_left(known[row.branch], row.position) - bisect_left(known[row.branch], first)
    gone = row.position - first - left
    if gone <= 0:
        return
    steps = f"of {gone} step{'s' * (gone != 1)} nothing is left"
    what = f"between {before.id} and {row.id}: {steps}" if before else f"before {row.id}: {steps} that leads to it"
    yield Finding("steps-lost", what, step=row.id)


def _drop_running_totals(row: StepRow) -> StepRow:
    """Return a step after a gap without its totals, which include lost steps."""
    data = json.loads(row.data)
    return row._replace(data=write_json({key: value for key, value in data.items() if key not in RUNNING_TOTAL_FIELDS}))


def _encode_row(row: StepRow) -> EncodedStep:
    restores = json.loads(row.data).get("restores")
    return EncodedStep(
        id=row.id,
        created=row.created,
        kind=row.kind,
        closes=row.closes,
        messages=row.messages,
        tokens=row.tokens,
        counter=row.counter,
        data=row.data,
        restores=restores,
        blobs={},
    )


_START_REASONS = ("create", "repair")
"""Reasons of the first head change of a session that began as a fork."""


class KeptSessions(NamedTuple):
    """Sessions with their head changes and aliases."""

    sessions: list[SessionRow]
    history: list[HistoryRow]
    aliases: list[AliasRow]


def find_newest_versions(rows: Iterable[SessionRow], steps: Mapping[str, StepRow]) -> list[SessionRow]:
    """Return the newest version of each session.

    It is the one with the farthest tip, because tips only move forward.
    """
    newest: dict[str, tuple[tuple[int, int], SessionRow]] = {}
    for row in rows:
        if not has_valid_digest(row):
            continue
        tip = steps.get(row.tip or "")
        order = (tip.position if tip else -1, row.updated)
        if row.id not in newest or newest[row.id][0] < order:
            newest[row.id] = order, row
    return [row for _, row in sorted(newest.values(), key=lambda pair: pair[1].id)]


def keep_sessions(
    rows: Sequence[StepRow],
    versions: Sequence[SessionRow],
    history: Sequence[HistoryRow],
    aliases: Sequence[AliasRow],
    lost: list[Finding],
    *,
    erased: Collection[str] = (),
) -> KeptSessions:
    """Return the sessions, moved to steps that are left.

    A thread without a session gets a new one.

    Args:
        rows: The steps.
        versions: The newest version of each session.
        history: Intact head changes.
        aliases: Aliases, intact or not.
        lost: Findings about moved and new sessions are added here.
        erased: The ids of deleted steps.
    """
    steps = {row.id: row for row in rows}
    notes: dict[str, dict[str, HistoryRow]] = defaultdict(dict)
    for note in history:
        if note.step in steps:
            notes[note.session][note.step] = note
    kept = KeptSessions([], [], [])
    for version in versions:
        row = _move_to_existing_step(version, steps, [*notes[version.id]])
        if (row.head, row.tip) != (version.head, version.tip):
            lost.append(Finding("session-moved", _describe_move(version, row), step=row.head or ""))
        kept.sessions.append(row)
    _add_recovered_sessions([row for row in rows if row.id not in erased], kept, lost)
    known = {row.id: row for row in kept.sessions}
    for row in kept.sessions:
        kept.history.extend(sorted(_find_head_changes(row, steps, notes[row.id])))
    labels = {row.label for row in kept.sessions}
    for alias in sorted({each.alias: each for each in aliases if has_valid_digest(each)}.values()):
        if alias.session in known and alias.alias not in labels:
            kept.aliases.append(alias)
    return kept


def _find_head_changes(
    row: SessionRow, steps: Mapping[str, StepRow], notes: Mapping[str, HistoryRow]
) -> Iterator[HistoryRow]:
    """Yield the head changes of a session along its thread.

    Lost ones are created anew: each step that closes a turn has one, from the step at which the session began.
    """
    closed: list[str] = []
    name, left, is_begun = row.head, len(notes), False
    while name is not None and not (is_begun and left <= 0):
        if steps[name].closes:
            closed.append(name)
            left -= name in notes
            is_begun = name in notes and notes[name].reason in _START_REASONS
        name = steps[name].parent
    noted = [index for index, each in enumerate(closed) if each in notes]
    oldest = noted[-1] if noted else 0
    if noted and notes[closed[oldest]].reason not in _START_REASONS:
        oldest += 1  # the start of the session is lost: it is the end of the turn before, if there is one
    del closed[oldest + 1 :]
    for each in closed:
        yield notes[each] if each in notes else HistoryRow(row.id, each, "repair", row.updated).with_digest()


def _move_to_existing_step(row: SessionRow, steps: Mapping[str, StepRow], heads: Sequence[str]) -> SessionRow:
    """Return a session at its tip, or at the last of its heads that is left."""
    if (row.tip is None or row.tip in steps) and (row.head is None or row.head in steps):
        return row
    left = [steps[name] for name in (*heads, row.head or "") if name in steps]
    newest = max(left, key=lambda step: step.position, default=None)
    head = newest.id if newest else None
    is_open = row.tip in steps and row.open_turn is not None
    moved = row._replace(head=head, tip=row.tip if is_open else head, open_turn=row.open_turn if is_open else None)
    return moved.with_digest()


def _describe_move(before: SessionRow, now: SessionRow) -> str:
    gone = before.tip if now.tip != before.tip else before.head
    where = "has nothing left that was said" if now.tip is None else f"stands at {now.tip}"
    return f"session {now.label!r} {where}: step {gone} is gone"


def _add_recovered_sessions(rows: Sequence[StepRow], kept: KeptSessions, lost: list[Finding]) -> None:
    reached = {row.tip for row in kept.sessions} | {row.parent for row in rows}
    labels = {row.label for row in kept.sessions}
    steps = {row.id: row for row in rows}
    ends = [row for row in rows if row.id not in reached]
    for number, end in enumerate(ends, 1):
        label = f"recovered-{number}"
        while label in labels:
            label += "-again"
        labels.add(label)
        new = SessionRow(
            id=end.id,
            label=label,
            head=_find_last_closed_step(end, steps),
            tip=end.id,
            open_turn=None if end.closes else end.turn,
            status="active",
            origin="",
            created=end.created,
            updated=end.created,
            data="{}",
        )
        kept.sessions.append(new.with_digest())
        what = f"the session that led to step {end.id} is gone; it is called {label!r} now"
        what += "" if end.closes else ", and its turn is open: nothing says whether it went on"
        lost.append(Finding("session-lost", what, step=end.id))


def _find_last_closed_step(end: StepRow, steps: Mapping[str, StepRow]) -> str | None:
    """Return the newest step up to `end` that closes a turn, or None."""
    row: StepRow | None = end
    while row is not None and not row.closes:
        row = steps.get(row.parent or "")
    return row.id if row else None


_BLOB_DIGEST = re.compile(r"[0-9a-f]{64}")


class KeptRows(NamedTuple):
    """The rows of a rebuilt ledger.

    Attributes:
        rows: The steps.
        kept: The sessions, with their head changes and aliases.
        blobs: The blobs that these refer to.
        left_out: The excluded sessions and their workers.
        sharing: Sessions that stay, with the steps that they share with excluded ones.
    """

    rows: list[StepRow]
    kept: KeptSessions
    blobs: dict[str, bytes]
    left_out: tuple[str, ...]
    sharing: tuple[str, ...]


def exclude_sessions(
    labels: Iterable[str], rows: Sequence[StepRow], kept: KeptSessions, blobs: Mapping[str, bytes]
) -> KeptRows:
    """Return the rows of a ledger without some sessions and their workers.

    Raises:
        UnknownNameError: There is no such session.
        LedgerError: No session would be left.
    """
    gone = _add_workers(labels, kept)
    sessions = [row for row in kept.sessions if row.id not in gone]
    if not sessions:
        raise LedgerError("nothing would be left without these sessions", hint="delete the ledger itself")
    steps = {row.id: row for row in rows}
    reached = _find_reached_steps(sessions, steps)
    left = [row for row in rows if row.id in reached]
    rest = KeptSessions(
        sessions,
        [note for note in kept.history if note.session not in gone],
        [alias for alias in kept.aliases if alias.session not in gone],
    )
    roots = {_find_root_step(row, steps) for row in kept.sessions if row.id in gone} - {None}
    sharing = sorted(row.label for row in sessions if _find_root_step(row, steps) in roots)
    return KeptRows(
        left, rest, _find_referenced_blobs(left, sessions, blobs), tuple(sorted(gone.values())), tuple(sharing)
    )


def _add_workers(labels: Iterable[str], kept: KeptSessions) -> dict[str, str]:
    """Return the labels of sessions and all their workers, by session id."""
    known = {row.label: row for row in kept.sessions}
    sessions = {row.id: row for row in kept.sessions}
    named = known | {alias.alias: sessions[alias.session] for alias in kept.aliases}
    found: dict[str, str] = {}
    for label in labels:
        if label not in named:
            raise UnknownNameError("session", label, sorted(known))
        found[named[label].id] = named[label].label
    parents = {row.id: named.get(json.loads(row.data).get("parent")) for row in kept.sessions}
    while new := [
        row for row in kept.sessions if (parent := parents[row.id]) and parent.id in found and row.id not in found
    ]:
        found |= {row.id: row.label for row in new}
    return found


def _find_reached_steps(sessions: Iterable[SessionRow], steps: Mapping[str, StepRow]) -> set[str]:
    """Return the ids of all steps in the threads of sessions."""
    found: set[str] = set()
    for session in sessions:
        for end in (session.tip, session.head):
            name = end
            while name is not None and name not in found:
                found.add(name)
                name = steps[name].parent
    return found


def _find_root_step(session: SessionRow, steps: Mapping[str, StepRow]) -> str | None:
    """Return the first step of a session's thread.

    All threads that share steps with it have the same.
    """
    name, first = session.tip, None
    while name is not None:
        first = steps[steps[name].branch]
        name = first.parent
    return first.id if first else None


def _find_referenced_blobs(
    rows: Iterable[StepRow], sessions: Iterable[SessionRow], blobs: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Return the blobs whose digests occur in steps, sessions or such blobs."""
    found: dict[str, bytes] = {}
    texts = [*(text for row in rows for text in (row.messages, row.data)), *(row.data for row in sessions)]
    while texts:
        new = {name for text in texts for name in _BLOB_DIGEST.findall(text) if name in blobs and name not in found}
        found |= {name: blobs[name] for name in new}
        texts = [blobs[name].decode(errors="replace") for name in new]
    return found


_READ_SHARE = 0.7
"""The share of reading in the reported progress."""


class RebuildReport(NamedTuple):
    """The result of rebuilding a ledger.

    Attributes:
        steps, sessions, blobs: Their numbers in the new ledger.
        lost: Findings about everything that could not be saved.
        left_out: The excluded sessions and their workers.
        sharing: Sessions of the new ledger that share steps with excluded ones.
    """

    steps: int
    sessions: int
    blobs: int
    lost: tuple[Finding, ...]
    left_out: tuple[str, ...] = ()
    sharing: tuple[str, ...] = ()


def rebuild_ledger(
    found: Salvaged, target: LedgerStore, advance: Callable[[float], None], without: Collection[str] = ()
) -> RebuildReport:
    """Fill an empty store with every intact turn, closing the gaps between them.

    Args:
        found: The rows of the damaged store.
        target: The empty store.
        advance: Called with shares of the work, whose sum is 1.
        without: Sessions to leave out, with their workers and the rows that only they need.

    Raises:
        LedgerError: The target is not empty, or nothing is intact, or sessions are to be left out and rows are lost,
            so that it is unknown which rows were theirs.
        UnknownNameError: There is no such session to leave out.
    """
    _require_empty(target)
    blobs = {digest: content for digest, content in found.blobs if compute_blob_digest(content) == digest}
    advance(_READ_SHARE / 4)
    erased = {row.name: row.rest for row in found.erased if row.kind == "step"}
    steps, torn = split_intact_steps(found.steps, erased)
    advance(_READ_SHARE / 2)
    versions = find_newest_versions(found.sessions, steps)
    history = [note for note in found.history if has_valid_digest(note)]
    named = {row.tip for row in versions} | {note.step for note in history}
    lost: list[Finding] = []
    kept = keep_intact_turns(steps, find_turn_ends(steps, named, torn), blobs, lost, erased)
    rows = list(join_steps(kept, steps, lost, erased))
    sessions = keep_sessions(rows, versions, history, [*found.aliases], lost, erased=erased)
    advance(_READ_SHARE / 4)
    if not rows and not sessions.sessions:
        raise LedgerError("there is nothing in it that is whole", hint="no new ledger was made")
    rest = KeptRows(rows, sessions, blobs, (), ())
    if without:
        if lost:
            hint = "`nexus ledger repair NEW` saves what is whole; leave them out of a copy of that"
            raise LedgerError("the ledger is damaged, so nobody can tell what belongs to these sessions", hint=hint)
        rest = exclude_sessions(without, rows, sessions, blobs)
    lost += _find_missing_blobs(rest)
    target.write(partial(_fill_store, target, rest, _keep_deletions(found, rest.rows), advance))
    saved = [row for row in rest.rows if row.id not in erased]
    numbers = len(saved), len(rest.kept.sessions), len(rest.blobs)
    return RebuildReport(*numbers, tuple(lost), rest.left_out, rest.sharing)


def _find_missing_blobs(rest: KeptRows) -> list[Finding]:
    """Return findings about blobs that kept rows refer to and that are missing."""
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
        thread = _collect_thread_ids(session.tip, steps)
        for digest, use in gone.items():
            if session.id == use.session or (use.step is not None and use.step.id in thread):
                labels[digest].append(session.label)
    return [build_missing_blob_finding(digest, use, labels[digest]) for digest, use in sorted(gone.items())]


def _collect_thread_ids(tip: str | None, steps: Mapping[str, StepRow]) -> set[str]:
    found: set[str] = set()
    while tip is not None:
        found.add(tip)
        tip = steps[tip].parent
    return found


def _require_empty(target: LedgerStore) -> None:
    if target.read(target.session_rows) or any(True for _ in target.step_rows()):
        raise LedgerError(
            "there is something in it already", where=target.url, hint="name a file that is not there yet"
        )


def _keep_deletions(found: Salvaged, rows: Sequence[StepRow]) -> list[tuple[DeletionRow, list[ErasedRow]]]:
    """Return the deletions with a new digest chain, each with its erased rows.

    Steps that are not kept are left out.
    """
    steps = {row.id: row for row in rows}
    lists: dict[str, list[ErasedRow]] = defaultdict(list)
    for row in found.erased:
        lists[row.deletion].append(row)
    kept: list[tuple[DeletionRow, list[ErasedRow]]] = []
    for deletion in sorted(found.deletions, key=lambda each: each.number):
        left = [row for row in lists[deletion.id] if row.kind != "step" or row.name in steps]
        erased = [
            row._replace(rest=compute_erased_step_digest(steps[row.name])) if row.kind == "step" else row
            for row in left
        ]
        number = sum(row.kind == "step" for row in erased)
        renumbered = deletion._replace(number=len(kept) + 1, steps=number, purged=1)
        kept.append((renumbered.with_chain(kept[-1][0] if kept else None, erased), erased))
    return kept


def _fill_store(
    target: LedgerStore,
    rest: KeptRows,
    deletions: Sequence[tuple[DeletionRow, list[ErasedRow]]],
    advance: Callable[[float], None],
) -> None:
    """Insert all rows into a store, each after the rows that it refers to."""
    rows, kept = rest.rows, rest.kept
    for digest, content in sorted(rest.blobs.items()):
        target.add_blob(digest, content)
    steps = {row.id: row for row in rows}
    for row in rows:
        if row.branch == row.id:
            target.add_branch(BranchRow.behind(steps.get(row.parent or ""), row.id))
        target.add_steps([row])
        advance((1 - _READ_SHARE) / len(rows))
    for session in kept.sessions:
        target.save_session(session)
    target.add_history(kept.history)
    for alias in kept.aliases:
        target.add_alias(alias)
    if deletions and isinstance(target, ErasableStore):
        for deletion, erased in deletions:
            target.add_deletion(deletion, erased)
