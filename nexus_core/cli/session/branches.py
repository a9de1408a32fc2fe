"""The tree of steps that sessions point into: its branches, and on each the turns that are worth a line."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, takewhile
from sys import maxsize
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.session.damage import Damaged, noting
from nexus_core.cli.session.overview import maker_of
from nexus_core.history.ledger.reading import no_step, skip_reverted
from nexus_core.session.steps.numbering import SILENT, continues, is_session_start_step, opens_turn
from nexus_core.session.steps.walking import AT_ONCE, walk_back
from nexus_core.text.redaction import redact_beginning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nexus_core.values.ledger import Ledger, SessionRecord, Step

DAMAGED = "damaged"
START = "start"
SHORT = 2
"""So many turns in a row are listed though nothing is remarkable about them."""
_EXCERPT = 200


class Branch(NamedTuple):
    """A line of steps.

    Attributes:
        first: Its first step.
        end: The farthest step of it that something leads to.
        parent: The step it left from, in another branch; None for the first of a tree.
        root: The first branch of its tree, by its id.
    """

    first: Step
    end: Step
    parent: Step | None
    root: str

    @property
    def id(self) -> str:
        """Its name."""
        return self.first.branch


class Noted(NamedTuple):
    """A turn that is worth a line.

    Attributes:
        turn: Its name; of one that was kept in several pieces, that of the last.
        said: How it began, in one line; of what is damaged, how.
        kind: What it is: a turn, or a compaction, a revert or a pin by itself; `start` for the time at which the
            session started, which is not counted; `damaged` where it cannot be read.
        is_open: Whether it goes on.
        is_compacted: Whether something was compacted in the middle of it.
        sessions: Those that point at its end.
        forks: The branches that leave from its end.
    """

    turn: str
    said: str
    kind: str
    is_open: bool
    is_compacted: bool
    sessions: tuple[str, ...]
    forks: tuple[str, ...]


Item = Noted | int
"""A turn, or how many there are of which none is remarkable."""


class Line(NamedTuple):
    """A branch as it is drawn: its items, oldest first, how many turns it has, and what of it cannot be read."""

    branch: Branch
    items: tuple[Item, ...]
    turns: int
    damage: tuple[str, ...] = ()


class Tree(NamedTuple):
    """All that grew from one first step.

    Attributes:
        root: The first branch, by its id.
        branches: All branches, each behind the one it left.
        labels: The sessions that point into it.
        maker: The session whose worker it is; "" for none.
    """

    root: str
    branches: tuple[Branch, ...]
    labels: tuple[str, ...]
    maker: str = ""


def find_trees(ledger: Ledger, records: Sequence[SessionRecord]) -> tuple[list[Tree], list[Damaged]]:
    """The trees that sessions point into, in the order of the sessions, told from a few steps; what is damaged."""
    branches: dict[str, Branch] = {}
    labels: dict[str, list[str]] = defaultdict(list)
    makers: dict[str, str] = {}
    damaged: list[Damaged] = []
    for record in records:
        for name in dict.fromkeys((record.tip, record.head)):  # where the tip is gone, its last turn may be left
            if name is None:
                continue
            with noting(damaged, record.label):
                root = _follow(ledger, _known(ledger, name), branches)
                labels[root].append(record.label)
                makers[root] = makers.get(root) or maker_of(ledger, record)
                break
    members: dict[str, list[Branch]] = defaultdict(list)
    for branch in sorted(branches.values(), key=_beginning):
        members[branch.root].append(branch)
    trees = [Tree(root, tuple(members[root]), tuple(names), makers[root]) for root, names in labels.items()]
    return trees, damaged


def _beginning(branch: Branch) -> tuple[int, int, str]:
    """What sorts branches: how far down the tree they begin, then when; a clock that went back reorders no tree."""
    return branch.first.position, branch.first.created, branch.id


def with_workers(trees: Sequence[Tree], label: str) -> list[Tree]:
    """The tree that a session is in, those of its workers, of their workers, and so on."""
    found = [tree for tree in trees if label in tree.labels]
    for tree in found:  # it grows meanwhile
        found += [each for each in trees if each.maker in tree.labels and each not in found]
    return found


def read_lines(
    ledger: Ledger, tree: Tree, records: Iterable[SessionRecord], *, unfolded: bool = False
) -> Iterator[Line]:
    """The branches of a tree as they are drawn; reads all of its steps, a few at a time.

    Args:
        ledger: Where it is.
        tree: The tree.
        records: The sessions that may point into it.
        unfolded: Whether every turn is an item, however many there are.
    """
    sessions: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.tip is not None:
            sessions[record.tip].append(record.label)
    forks: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for branch in tree.branches:
        if branch.parent is not None:
            forks[branch.parent.branch][branch.parent.id].append(branch.id)
    for branch in tree.branches:
        yield _read_line(ledger, branch, sessions, forks[branch.id], maxsize if unfolded else SHORT)


def _follow(ledger: Ledger, step: Step, branches: dict[str, Branch]) -> str:
    """Note the branches that lead to a step; returns the first of them."""
    new: list[tuple[Step, Step, Step | None]] = []
    end: Step | None = step
    while end is not None and end.branch not in branches:
        first = _known(ledger, end.branch)
        parent = None if first.parent is None else _known(ledger, first.parent)
        new.append((first, end, parent))
        end = parent
    if end is None:
        root = new[-1][0].branch
    else:
        known = branches[end.branch]
        root = known.root
        if end.position > known.end.position:
            branches[end.branch] = known._replace(end=end)
    for first, last, parent in new:
        branches[first.branch] = Branch(first, last, parent, root)
    return root


def _read_line(
    ledger: Ledger,
    branch: Branch,
    sessions: Mapping[str, Sequence[str]],
    forks: Mapping[str, Sequence[str]],
    longest: int,
) -> Line:
    items: list[Item] = []
    run: list[Noted] = []
    plain = turns = 0
    damage: list[Damaged] = []

    def flush() -> None:
        items.extend(run if plain <= longest else [plain])
        run.clear()

    with noting(damage, ""):
        for steps in _turns_back(ledger, branch, forks):
            end, first = steps[0], steps[-1]
            turns += opens_turn(first)
            is_compacted = any(step.kind in ("compaction", "revert") for step in steps)
            named, left = (tuple(chain(*(each.get(step.id, ()) for step in steps))) for each in (sessions, forks))
            is_turn = first.kind not in SILENT
            begins = first.id == branch.first.id or (
                first.parent == branch.first.id and is_session_start_step(branch.first)
            )
            if is_turn and not (is_compacted or named or left or begins or not end.closes):
                plain += 1
                if plain <= longest:
                    run.append(_noted(steps, is_compacted=False))
                continue
            flush()
            plain = 0
            items.append(_noted(steps, is_compacted=is_compacted)._replace(sessions=named, forks=left))
    flush()
    items += [_torn(branch, each.what, items, forks) for each in damage]
    torn = [item.said for item in items if not isinstance(item, int) and item.kind == DAMAGED]
    return Line(branch, tuple(reversed(items)), turns, tuple(torn))


def _torn(branch: Branch, what: str, items: Sequence[Item], forks: Mapping[str, Sequence[str]]) -> Noted:
    """What stands for the turns of a branch that cannot be read any more; what left from there is drawn behind it."""
    drawn = {fork for item in items if not isinstance(item, int) for fork in item.forks}
    left = tuple(name for names in forks.values() for name in names if name not in drawn)
    return Noted(branch.first.turn, what, DAMAGED, is_open=False, is_compacted=False, sessions=(), forks=left)


def _turns_back(ledger: Ledger, branch: Branch, forks: Mapping[str, Sequence[str]]) -> Iterator[list[Step]]:
    """The turns of a branch, newest first, each with its steps in that order too.

    What an import took back is left out, unless another branch leaves from there.
    """
    steps: list[Step] = []
    length = branch.end.position - branch.first.position + 1
    walked = walk_back(ledger, branch.end.id, at_once=min(length, AT_ONCE))
    own = list(takewhile(lambda step: step.branch == branch.id, walked)) if forks else []
    kept = {step.id for step in skip_reverted(own)}
    is_drawn = any(step.id in forks and step.id not in kept for step in own)
    there = iter(own) if forks else takewhile(lambda step: step.branch == branch.id, walked)
    for step in there if is_drawn else skip_reverted(there):
        if steps and steps[-1].turn != step.turn and not continues(steps[-1]):
            yield steps
            steps = []
        steps.append(step)
    yield steps


def _noted(steps: Sequence[Step], *, is_compacted: bool) -> Noted:
    first = steps[-1]
    kind: str = START if is_session_start_step(first) else first.kind if first.kind in SILENT else "turn"
    said = ""
    damage: list[Damaged] = []
    with noting(damage, ""):
        said = _said(first)
    for each in damage:
        kind, said = DAMAGED, each.what
    return Noted(steps[0].turn, said, kind, not steps[0].closes, is_compacted and kind == "turn", (), ())


def _said(step: Step) -> str:
    if step.kind == "compaction":
        return redact_beginning(str(step.data.get("prose") or step.data.get("summary", "")), _EXCERPT)
    text = next((message.content for message in step.messages if message.content), "")
    return " ".join(redact_beginning(text, _EXCERPT).split())


def _known(ledger: Ledger, name: str) -> Step:
    step = ledger.step(name)
    if step is None:
        raise no_step(name)
    return step
