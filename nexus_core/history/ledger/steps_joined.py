"""The steps that are kept of a damaged ledger, each put behind the nearest before it that is left."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from nexus_core.history.ledger.growing import Draft, placed
from nexus_core.history.ledger.rows import chain_of
from nexus_core.history.ledger.texts import write_json
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.history.ledger.rows import Place, StepRow

RUNNING_SUMS = frozenset({"turns", "messages", "all_tokens", "spent"})
"""What sessions write down with each step about all steps before it; where it is missing, they read those steps."""


def join_steps(
    kept: dict[str, StepRow], steps: dict[str, StepRow], lost: list[Finding], erased: Collection[str]
) -> Iterator[StepRow]:
    """The steps in an order in which they can be added, each behind the nearest that is left.

    Args:
        kept: The steps of turns that are whole.
        steps: All steps that are whole.
        lost: Where to say what is gone between two steps.
        erased: The steps whose content was deleted: they keep the digest of what they had.
    """
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
        draft = _draft(_without_sums(row) if row.id in moved and row.id not in erased else row)
        added = placed(draft, parent, turn=row.turn, branch=branch)
        if row.id in erased:
            chain = chain_of(parent.chain if parent else "", row.digest)
            added = added._replace(compaction=row.compaction, digest=row.digest, chain=chain)
        taken.add((added.branch, added.position))
        places[row.id] = added.place
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
