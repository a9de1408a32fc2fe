"""Which turns of a damaged ledger are whole, and so are kept."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError
from nexus_core.history.ledger.media import references, refers_to_media
from nexus_core.history.ledger.rows import digest_of, is_erased, rest_of
from nexus_core.history.ledger.stored import why_unreadable
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from nexus_core.history.ledger.rows import StepRow


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


def find_ends(steps: Mapping[str, StepRow], named: set[str | None], torn: set[str]) -> Ends:
    """What is known of where turns ended.

    Args:
        steps: The steps that are whole.
        named: Steps that sessions, and notes on their heads, stand at.
        torn: Turns of which there are steps that are not whole.
    """
    farthest: dict[str, int] = {}
    for row in steps.values():
        farthest[row.branch] = max(row.position, farthest.get(row.branch, -1))
    return Ends(named, any(name not in steps for name in named - {None}), torn, farthest)


def sort_out(rows: Iterable[StepRow], erased: Mapping[str, str]) -> tuple[dict[str, StepRow], set[str]]:
    """The steps that are whole, by their names, and the turns of the others.

    Args:
        rows: What was found.
        erased: The steps that were deleted, each with the digest of what is left of it.
    """
    steps: dict[str, StepRow] = {}
    others: list[StepRow] = []
    for row in rows:
        if row.id in erased:
            if is_erased(row) and rest_of(row) == erased[row.id]:
                steps[row.id] = row
            continue  # what was deleted does not come back
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


def keep_whole_turns(
    steps: dict[str, StepRow], ends: Ends, blobs: dict[str, bytes], lost: list[Finding], erased: Collection[str]
) -> dict[str, StepRow]:
    """The steps of turns that have all of theirs, readable and with everything they refer to."""
    members: dict[str, dict[str | None, StepRow]] = defaultdict(dict)
    for row in steps.values():
        members[row.turn][row.parent if row.id != row.turn else None] = row
    kept: dict[str, StepRow] = {}
    for turn, rows in members.items():
        line = list(_line(rows))
        if erased and all(row.id in erased for row in rows.values()):
            kept.update((row.id, row) for row in line)
            continue
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
