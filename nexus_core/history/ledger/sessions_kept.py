"""Which sessions a rebuilt ledger has, and where they stand."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.ledger.rows import AliasRow, HistoryRow, SessionRow, StepRow, is_sealed
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


_BEGINNINGS = ("create", "repair")
"""Why a session has a first head that is not the first of its thread."""


class Kept(NamedTuple):
    """Sessions, and what belongs to them."""

    sessions: list[SessionRow]
    history: list[HistoryRow]
    aliases: list[AliasRow]


def newest_versions(rows: Iterable[SessionRow], steps: Mapping[str, StepRow]) -> list[SessionRow]:
    """Of each session the record with the tip that is farthest on; tips only ever go on."""
    newest: dict[str, tuple[tuple[int, int], SessionRow]] = {}
    for row in rows:
        if not is_sealed(row):
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
) -> Kept:
    """The sessions with heads that are there; ends that no session leads to any more get one.

    Args:
        rows: The steps.
        versions: The record of each session.
        history: Notes on heads, as they were written.
        aliases: Other names of sessions.
        lost: Where to say what is not as it was.
        erased: Steps whose content was deleted with their session.
    """
    steps = {row.id: row for row in rows}
    notes: dict[str, dict[str, HistoryRow]] = defaultdict(dict)
    for note in history:
        if note.step in steps:
            notes[note.session][note.step] = note
    kept = Kept([], [], [])
    for version in versions:
        row = _standing(version, steps, [*notes[version.id]])
        if (row.head, row.tip) != (version.head, version.tip):
            lost.append(Finding("session-moved", _moved(version, row), step=row.head or ""))
        kept.sessions.append(row)
    _name_ends([row for row in rows if row.id not in erased], kept, lost)
    known = {row.id: row for row in kept.sessions}
    for row in kept.sessions:
        kept.history.extend(sorted(_on_its_way(row, steps, notes[row.id])))
    labels = {row.label for row in kept.sessions}
    for alias in sorted({each.alias: each for each in aliases if is_sealed(each)}.values()):
        if alias.session in known and alias.alias not in labels:
            kept.aliases.append(alias)
    return kept


def _on_its_way(row: SessionRow, steps: Mapping[str, StepRow], notes: Mapping[str, HistoryRow]) -> Iterator[HistoryRow]:
    """The notes on heads that a session had on its way to where it stands now; others do not lead there any more.

    Notes that are gone are written anew: each end of a turn has one, from the step at which the session began.
    """
    closed: list[str] = []
    name, left, is_begun = row.head, len(notes), False
    while name is not None and not (is_begun and left <= 0):
        if steps[name].closes:
            closed.append(name)
            left -= name in notes
            is_begun = name in notes and notes[name].reason in _BEGINNINGS
        name = steps[name].parent
    noted = [index for index, each in enumerate(closed) if each in notes]
    oldest = noted[-1] if noted else 0
    if noted and notes[closed[oldest]].reason not in _BEGINNINGS:
        oldest += 1  # where it began is not known any more: at the end of the turn before, if there is one
    del closed[oldest + 1 :]
    for each in closed:
        yield notes[each] if each in notes else HistoryRow(row.id, each, "repair", row.updated).sealed()


def _standing(row: SessionRow, steps: Mapping[str, StepRow], heads: Sequence[str]) -> SessionRow:
    """A session at its tip, or at the last of its heads that is left."""
    if (row.tip is None or row.tip in steps) and (row.head is None or row.head in steps):
        return row
    left = [steps[name] for name in (*heads, row.head or "") if name in steps]
    newest = max(left, key=lambda step: step.position, default=None)
    head = newest.id if newest else None
    is_open = row.tip in steps and row.open_turn is not None
    moved = row._replace(head=head, tip=row.tip if is_open else head, open_turn=row.open_turn if is_open else None)
    return moved.sealed()


def _moved(before: SessionRow, now: SessionRow) -> str:
    gone = before.tip if now.tip != before.tip else before.head
    where = "has nothing left that was said" if now.tip is None else f"stands at {now.tip}"
    return f"session {now.label!r} {where}: step {gone} is gone"


def _name_ends(rows: Sequence[StepRow], kept: Kept, lost: list[Finding]) -> None:
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
            head=_last_closed(end, steps),
            tip=end.id,
            open_turn=None if end.closes else end.turn,
            status="active",
            origin="",
            created=end.created,
            updated=end.created,
            data="{}",
        )
        kept.sessions.append(new.sealed())
        what = f"the session that led to step {end.id} is gone; it is called {label!r} now"
        what += "" if end.closes else ", and its turn is open: nothing says whether it went on"
        lost.append(Finding("session-lost", what, step=end.id))


def _last_closed(end: StepRow, steps: Mapping[str, StepRow]) -> str | None:
    """The newest step up to an end that closes a turn."""
    row: StepRow | None = end
    while row is not None and not row.closes:
        row = steps.get(row.parent or "")
    return row.id if row else None
