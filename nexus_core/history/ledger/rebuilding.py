"""A new ledger of what is whole in a damaged one."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError
from nexus_core.history.ledger.growing import Draft, placed
from nexus_core.history.ledger.media import address_of, references, refers_to_media
from nexus_core.history.ledger.rows import BranchRow, HistoryRow, Place, SessionRow, StepRow, digest_of
from nexus_core.history.ledger.sessions_kept import is_sealed, keep_sessions, newest_versions
from nexus_core.history.ledger.stored import why_unreadable
from nexus_core.history.ledger.texts import write_json
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nexus_core.history.ledger.rows import AliasRow
    from nexus_core.history.ledger.store import Store


RUNNING_SUMS = frozenset({"turns", "messages", "all_tokens", "spent"})
"""What sessions write down with each step about all steps before it; where it is missing, they read those steps."""
_READING = 0.7
"""The share of the work that is reading."""


class Salvaged(NamedTuple):
    """What was found in a damaged store, whole or not, in any order, some of it more than once."""

    steps: Iterable[StepRow]
    sessions: Iterable[SessionRow]
    aliases: Iterable[AliasRow]
    history: Iterable[HistoryRow]
    blobs: Iterable[tuple[str, bytes]]


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
    if target.read(target.session_rows) or any(True for _ in target.step_rows()):
        raise LedgerError(
            "there is something in it already", where=target.url, hint="name a file that is not there yet"
        )
    blobs = {digest: content for digest, content in found.blobs if address_of(content) == digest}
    advance(_READING / 4)
    steps, torn = _sorted_out(found.steps)
    advance(_READING / 2)
    versions = newest_versions(found.sessions, steps)
    history = [note for note in found.history if is_sealed(note)]
    named = {row.tip for row in versions} | {note.step for note in history}
    lost: list[Finding] = []
    kept = _whole_turns(steps, _ends(steps, named, torn), blobs, lost)
    rows = list(_placed(kept, steps, lost))
    sessions = keep_sessions(rows, versions, history, [*found.aliases], lost)
    advance(_READING / 4)
    if not rows and not sessions.sessions:
        raise LedgerError("there is nothing in it that is whole", hint="no new ledger was made")

    def fill() -> None:
        for digest, content in sorted(blobs.items()):
            target.add_blob(digest, content)
        places = {row.id: row for row in rows}
        for row in rows:
            if row.branch == row.id:
                before = places[row.parent] if row.parent else None
                target.add_branch(BranchRow(row.id, *((before.branch, before.position) if before else (None, -1))))
            target.add_steps([row])
            advance((1 - _READING) / len(rows))
        for session in sessions.sessions:
            target.save_session(session)
        target.add_history(sessions.history)
        for alias in sessions.aliases:
            target.add_alias(alias)

    target.write(fill)
    turns = sum(row.id == row.turn for row in rows)
    return Rebuilt(turns, len(rows), len(sessions.sessions), len(blobs), tuple(lost))


class Ends(NamedTuple):
    """What is known of where turns that are not closed went on.

    Attributes:
        named: Steps that sessions, and notes on their heads, stand at.
        is_missing: Whether one of these is gone.
        torn: Turns of which there are steps that are not whole.
        farthest: The last position of each branch.
    """

    named: set[str | None]
    is_missing: bool
    torn: set[str]
    farthest: Mapping[str, int]

    def goes_on(self, last: StepRow) -> bool:
        """Whether a turn may have had more steps than those up to one that does not close it.

        Where the records of its session are gone too, nothing says that it had: it was open.
        """
        if last.id in self.named:
            return False
        return self.is_missing or last.turn in self.torn or self.farthest[last.branch] > last.position


def _ends(steps: Mapping[str, StepRow], named: set[str | None], torn: set[str]) -> Ends:
    farthest: dict[str, int] = {}
    for row in steps.values():
        farthest[row.branch] = max(row.position, farthest.get(row.branch, -1))
    return Ends(named, any(name not in steps for name in named - {None}), torn, farthest)


def _sorted_out(rows: Iterable[StepRow]) -> tuple[dict[str, StepRow], set[str]]:
    """The steps that are whole, by their names, and the turns of the others."""
    steps: dict[str, StepRow] = {}
    others: list[StepRow] = []
    for row in rows:
        if _is_whole(row):
            steps[row.id] = row
        else:
            others.append(row)
    return steps, {row.turn for row in others if row.id not in steps}  # the log may have it whole


def _is_whole(row: StepRow) -> bool:
    place: tuple[object, object] = row.position, row.branch
    if not isinstance(place[0], int) or not isinstance(place[1], str):  # no part of the digest
        return False
    try:
        return digest_of(row) == row.digest
    except (LedgerError, UnicodeError):  # a value of a kind that is never stored
        return False


def _whole_turns(
    steps: dict[str, StepRow], ends: Ends, blobs: dict[str, bytes], lost: list[Finding]
) -> dict[str, StepRow]:
    """The steps of turns that have all of theirs, readable and with everything they refer to."""
    members: dict[str, dict[str | None, StepRow]] = defaultdict(dict)
    for row in steps.values():
        members[row.turn][row.parent if row.id != row.turn else None] = row
    kept: dict[str, StepRow] = {}
    for turn, rows in members.items():
        line = list(_line(rows))
        if len(line) != len(rows) or (not line[-1].closes and ends.goes_on(line[-1])):
            what = f"turn {turn} is not saved: of its steps, only {len(rows)} can be read"
        elif unread := next(((row, why) for row in line if (why := why_unreadable(row.messages))), None):
            what = f"turn {turn} is not saved: the messages of step {unread[0].id} cannot be read: {unread[1]}"
        else:
            kept.update((row.id, row) for row in line)
            continue
        lost.append(Finding("turn-lost", what, step=turn))
    while gone := {row.turn: why for row in kept.values() if (why := _lacks(row, kept, blobs))}:
        lost += [
            Finding("turn-lost", f"turn {turn} is not saved: {why}", step=turn) for turn, why in sorted(gone.items())
        ]
        kept = {name: row for name, row in kept.items() if row.turn not in gone}
    return kept


def _line(rows: dict[str | None, StepRow]) -> Iterator[StepRow]:
    """The steps of a turn in order, as far as each has the one before it."""
    row = rows.get(None)
    while row is not None:
        yield row
        row = rows.get(row.id)


def _lacks(row: StepRow, kept: dict[str, StepRow], blobs: dict[str, bytes]) -> str:
    """What a step cannot do without and is not there, "" for nothing."""
    if refers_to_media(row.messages):
        for digest in references(json.loads(row.messages)):
            if digest not in blobs:
                return f"the picture or document {digest} is gone"
    data = json.loads(row.data)
    pinned = data.get("pinned")
    needed = [data.get("first_kept"), *(pinned if isinstance(pinned, list) else [])]
    named = {"compaction": needed, "revert": [data.get("restores")]}.get(row.kind, [])
    gone = next((name for name in named if name is not None and name not in kept), None)
    return "" if gone is None else f"it refers to step {gone}, which is gone"


def _placed(kept: dict[str, StepRow], steps: dict[str, StepRow], lost: list[Finding]) -> Iterator[StepRow]:
    """The steps in an order in which they can be added, each behind the nearest that is left."""
    lines: dict[str, list[StepRow]] = defaultdict(list)
    known = _known_positions(steps.values())
    for row in sorted(kept.values(), key=lambda each: (each.position, each.id)):
        lines[row.branch].append(row)
    places: dict[str, Place] = {}
    taken: set[tuple[str, int]] = set()
    moved: set[str] = set()
    # Who goes on in a branch comes before who leaves it.
    for row in sorted(kept.values(), key=lambda each: (each.position, each.branch == each.id, each.id)):
        before = _parent(row, kept, lines)
        if before != row.parent:
            lost += _gone_before(row, kept.get(before or ""), known)
        if before != row.parent or before in moved:
            moved.add(row.id)
        parent = places.get(before or "")
        goes_on = parent is not None and (parent.branch, parent.position + 1) not in taken
        branch = parent.branch if parent is not None and goes_on else row.id
        draft = _draft(_without_sums(row) if row.id in moved else row)
        added = placed(draft, parent, turn=row.turn, branch=branch)
        taken.add((added.branch, added.position))
        places[row.id] = Place(*(getattr(added, field) for field in Place._fields))
        yield added


def _parent(row: StepRow, kept: dict[str, StepRow], lines: dict[str, list[StepRow]]) -> str | None:
    if row.parent in kept or row.parent is None:
        return row.parent
    before = [each.id for each in lines[row.branch] if each.position < row.position and each.closes]
    return before[-1] if before else None


def _known_positions(steps: Iterable[StepRow]) -> Mapping[str, Sequence[int]]:
    """The positions, by their branch, of which it is known whose they are.

    They are those of whole steps, and of steps that are gone but are certain to belong to a turn of which something is
    left, whose loss is told already.
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


def _gone_before(row: StepRow, before: StepRow | None, known: Mapping[str, Sequence[int]]) -> Iterator[Finding]:
    """What there was between two steps that are joined now, and nothing of it is left.

    Args:
        row: A step.
        before: The one it stands behind now.
        known: The positions of which it is known whose they are, by their branch.
    """
    first = before.position + 1 if before else 0
    left = bisect_left(known[row.branch], row.position) - bisect_left(known[row.branch], first)
    gone = row.position - first - left
    if gone <= 0:
        return
    steps = f"of {gone} step{'s' * (gone != 1)} nothing is left"
    what = f"between {before.id} and {row.id}: {steps}" if before else f"before {row.id}: {steps} that leads to it"
    yield Finding("steps-lost", what, step=row.id)


def _without_sums(row: StepRow) -> StepRow:
    """A step behind a loss: what it says about all before it, the lost ones included, is not true any more."""
    data = json.loads(row.data)
    return row._replace(data=write_json({key: value for key, value in data.items() if key not in RUNNING_SUMS}))


def _draft(row: StepRow) -> Draft:
    restores = json.loads(row.data).get("restores")
    return Draft(
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
