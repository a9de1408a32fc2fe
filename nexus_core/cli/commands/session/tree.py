"""`nexus session tree`: branches of conversations, drawn as text."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, islice, takewhile
from sys import maxsize
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.commands.session.overview import DamagedSession, collect_damage, find_maker, report_damage
from nexus_core.cli.options import ALL_ITEMS, JsonOption, build_limit_option
from nexus_core.cli.session_lookup import (
    EMPTY_LEDGER_HINT,
    LedgerOption,
    OptionalSessionArgument,
    find_session,
    open_ledger_nexus,
)
from nexus_core.errors import LedgerError
from nexus_core.ledger.ledger import STEPS_PER_READ, missing_step_error, skip_reverted, walk_back
from nexus_core.ledger.queries import find_tip_branches
from nexus_core.ledger.url import without_secret
from nexus_core.memory.statements import strip_command_elements
from nexus_core.text.console import format_count
from nexus_core.text.layout import measure_width, shorten_to_words
from nexus_core.text.safety import visible_line
from nexus_core.text.secrets import redact_beginning
from nexus_core.thread.state import (
    MARKER_KINDS,
    continues_turn,
    is_session_start_step,
    is_unanswered_input,
    opens_turn,
)
from nexus_core.types.payloads import CompactionPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

app = typer.Typer()

_MAX_LINES = 200
"""Lines that are drawn by default."""

LimitOption = Annotated[int, build_limit_option("Draw at most N lines; all also unfolds every turn.")]

EXAMPLES = """
\b
Examples:
  nexus session tree              all sessions
  nexus session tree auth-bug     the conversation it is part of, with all its forks
"""


@app.command(epilog=EXAMPLES)
def tree(
    ctx: typer.Context,
    label: OptionalSessionArgument = None,
    *,
    limit: LimitOption = _MAX_LINES,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Draw the turns and forks of sessions as a tree.

    `-` is the start of a session or a system message, `*` a turn, `o` one that is open, `#` a compaction, `~` one taken
    back, `:` turns about which there is nothing to say, `!` what is damaged; that is named on standard error, and the
    exit code is 3.
    With NAME, its workers are drawn too. `nexus session fork NAME NEW --at TURN` begins at any closed turn, and
    --limit all lists them all.
    """
    cli: CliContext = ctx.obj
    everything = limit == ALL_ITEMS
    with open_ledger_nexus(ctx, ledger) as nexus:
        records = nexus.ledger.sessions(status=None)
        found, damaged = find_trees(nexus.ledger, records)
        trees = _choose_trees(nexus.ledger, found, label)
        chosen = {name for each in trees for name in each.labels}
        if label is not None:
            chosen.add(find_session(nexus.ledger, label).label)
            damaged = [each for each in damaged if each.label in chosen]
        tips = group_labels_by_tip(records)
        read = _collect_line_damage(
            ((each, [*read_branch_lines(nexus.ledger, each, tips, damaged, unfolded=everything)]) for each in trees),
            damaged,
        )
        if json:
            some = [*_limit_trees(read, None if everything else limit)]
            document = [_tree_to_json(each, lines) for each, lines in some if lines]
            listing = {"trees": document, "more_trees": len(trees) - len(some)}
            cli.console.json({"schema": 1, **listing, "damaged": [each._asdict() for each in damaged]})
        elif trees:
            _print_trees(cli, read, len(trees), None if everything else limit)
        elif damaged:
            pass
        elif label is None:
            cli.console.message(f"No sessions in {without_secret(nexus.ledger.url)}. {EMPTY_LEDGER_HINT}")
        else:
            cli.console.message("The session has no turns yet.")
        report_damage(cli, damaged)


def _choose_trees(ledger: Ledger, trees: list[StepTree], label: str | None) -> list[StepTree]:
    if label is None:
        return trees
    record: SessionRecord = find_session(ledger, label)
    return select_with_workers(trees, record.label)


def _collect_line_damage(
    read: Iterable[tuple[StepTree, list[BranchLine]]], damaged: list[DamagedSession]
) -> Iterator[tuple[StepTree, list[BranchLine]]]:
    """Yield lines, and note damage. Damage of a conversation counts once, for its first session."""
    for each, lines in read:
        damaged += [DamagedSession(each.labels[0], what) for line in lines for what in line.damage]
        yield each, lines


def _limit_trees(
    read: Iterator[tuple[StepTree, list[BranchLine]]], most: int | None
) -> Iterator[tuple[StepTree, list[BranchLine]]]:
    """Yield whole trees up to a number of lines. Later ones are not read."""
    left = most
    for each, lines in read:
        yield each, lines
        if left is not None:
            left -= sum(len(line.items) for line in lines)
            if left <= 0:
                return


def _print_trees(
    cli: CliContext, read: Iterator[tuple[StepTree, list[BranchLine]]], trees: int, most: int | None
) -> None:
    drawn = shown = 0
    for each, lines in _limit_trees(read, most):
        shown += 1
        if not lines:  # none of its ends can be read
            continue
        if drawn:
            cli.console.text("")
        cli.console.table([(_format_heading(each, lines),)], styles=["bold"])
        text = list(
            draw_tree(
                {line.branch.id: line for line in lines}, each.root, cli.console.width, is_tight=cli.console.is_terminal
            )
        )
        room = None if most is None else max(most - drawn, 1)
        for line in islice(text, room):
            cli.console.text(line, wrap=True)
        if room is not None and len(text) > room:
            cli.console.message(f"({format_count(len(text) - room, 'more line')}; --limit all shows them)", style="dim")
        drawn += len(text)
    if shown < trees:
        cli.console.message(f"({format_count(trees - shown, 'more tree')}; --limit all shows them)", style="dim")


def _format_heading(each: StepTree, lines: Sequence[BranchLine]) -> str:
    turns = sum(line.turns for line in lines)
    facts = (
        format_count(turns, "turn"),
        f"{len(lines):,} branch{'es' * (len(lines) != 1)}",
        format_count(len(each.labels), "session"),
        *([f"worker of {each.maker}"] if each.maker else []),
    )
    return visible_line(", ".join(facts))


def _tree_to_json(each: StepTree, lines: Sequence[BranchLine]) -> dict[str, object]:
    return {
        "root": each.root,
        "sessions": list(each.labels),
        "worker_of": each.maker,
        "branches": [
            {
                "id": line.branch.id,
                "left_from": line.branch.parent.id if line.branch.parent else None,
                "turns": line.turns,
                "items": [_item_to_json(item) for item in line.items],
            }
            for line in lines
        ],
    }


def _item_to_json(item: BranchItem) -> dict[str, object]:
    if isinstance(item, int):
        return {"folded": item}
    facts = item._asdict()
    return {**facts, "sessions": list(item.sessions), "forks": list(item.forks)}


DAMAGED_KIND = "damaged"
START_KIND = "start"
SYSTEM_KIND = "system"
MAX_UNFOLDED_TURNS = 2
"""Ordinary turns in a row to list before the rest is folded."""
_EXCERPT_CHARACTERS = 200


class StepBranch(NamedTuple):
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


class TreeTurn(NamedTuple):
    """A turn that is worth a line.

    Attributes:
        turn: Its name; of one that was kept in several pieces, that of the last.
        said: The start of its text in one line; if it is damaged, the damage.
        kind: What it is: a turn, or a compaction, a revert or a pin by itself; `start` for the time at which the
            session started and `system` for system messages, which are not counted; `damaged` where it cannot be read.
        is_open: True if the turn is open.
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


BranchItem = TreeTurn | int
"""A turn, or how many there are of which none is remarkable."""


class BranchLine(NamedTuple):
    """A branch to draw: its items, oldest first, its number of turns, and its damage."""

    branch: StepBranch
    items: tuple[BranchItem, ...]
    turns: int
    damage: tuple[str, ...] = ()


class StepTree(NamedTuple):
    """All that grew from one first step.

    Attributes:
        root: The first branch, by its id.
        sessions: The sessions that point into it.
        maker: The session whose worker it is; "" for none.
    """

    root: str
    sessions: tuple[SessionRecord, ...]
    maker: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the sessions."""
        return tuple(record.label for record in self.sessions)


def find_trees(ledger: Ledger, records: Sequence[SessionRecord]) -> tuple[list[StepTree], list[DamagedSession]]:
    """Return the trees that sessions point into, in the order of the sessions, and what is damaged.

    Reads no steps if one query returns the branches of all sessions; `read_branches` reads those of a tree.
    """
    roots = _RootFinder(ledger)
    makers = _MakerFinder(ledger, records)
    found: dict[str, list[SessionRecord]] = defaultdict(list)
    made_by: dict[str, str] = {}
    damaged: list[DamagedSession] = []
    for record in records:
        for name in _list_ends(record):
            with collect_damage(damaged, record.label):
                root = roots.find(name)
                found[root].append(record)
                made_by[root] = made_by.get(root) or makers.find(record)
                break
    return [StepTree(root, tuple(sessions), made_by[root]) for root, sessions in found.items()], damaged


def _list_ends(record: SessionRecord) -> list[str]:
    """Return the tip of a session, and its head: where the tip is gone, its last turn may be left."""
    return [name for name in dict.fromkeys((record.tip, record.head)) if name is not None]


class _RootFinder:
    """Finds the first branch of the tree that a step is in."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known = find_tip_branches(ledger)
        self._roots: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the first branch of a step's tree, by its id.

        Raises:
            LedgerError: A step that leads there is missing.
        """
        branch = self._known.branches.get(name)
        if branch is None:
            branch = _require_step(self._ledger, name).branch
        passed: dict[str, None] = {}
        while branch not in self._roots:
            passed[branch] = None
            left = self._find_parent_branch(branch)
            if left is None:
                self._roots[branch] = branch
            elif left in passed:
                raise LedgerError(f"step {branch} is damaged: it comes before itself")
            else:
                branch = left
        root = self._roots[branch]
        self._roots |= dict.fromkeys(passed, root)
        return root

    def _find_parent_branch(self, branch: str) -> str | None:
        """Return the branch that a branch left."""
        if branch in self._known.origins:
            return self._known.origins[branch].branch
        first = _require_step(self._ledger, branch)
        return None if first.parent is None else _require_step(self._ledger, first.parent).branch


class _MakerFinder:
    """Finds the session that made a worker, and asks the ledger for former names only."""

    def __init__(self, ledger: Ledger, records: Iterable[SessionRecord]) -> None:
        self._ledger = ledger
        self._labels = {record.label for record in records}

    def find(self, record: SessionRecord) -> str:
        """Return the current name of the session that created a worker; "" for other sessions."""
        parent = record.payload.parent
        return parent if parent is not None and parent in self._labels else find_maker(self._ledger, record)


def read_branches(ledger: Ledger, tree: StepTree, damaged: list[DamagedSession]) -> list[StepBranch]:
    """Return the branches of a tree, each after its parent. Reads their first and last steps.

    Args:
        ledger: Where it is.
        tree: The tree.
        damaged: Where to add the sessions whose newest step cannot be read, unless they are in it.
    """
    branches: dict[str, StepBranch] = {}
    torn: list[DamagedSession] = []
    for record in tree.sessions:
        for name in _list_ends(record):
            with collect_damage(torn, record.label):
                _follow_branches(ledger, _require_step(ledger, name), branches)
                break
    damaged += [each for each in torn if each not in damaged]
    return sorted(branches.values(), key=_sort_key)


def _sort_key(branch: StepBranch) -> tuple[int, int, str]:
    """Return the sort key of a branch: the position of its start, then the time."""
    return branch.first.position, branch.first.created, branch.id


def select_with_workers(trees: Sequence[StepTree], label: str) -> list[StepTree]:
    """Return the tree that a session is in, those of its workers, of their workers, and so on."""
    made: dict[str, list[int]] = defaultdict(list)
    for index, tree in enumerate(trees):
        made[tree.maker].append(index)
    found = {index: None for index, tree in enumerate(trees) if any(each.label == label for each in tree.sessions)}
    waiting = [*found]
    for parent in waiting:  # it grows meanwhile
        workers = {index for name in trees[parent].labels for index in made.get(name, ())} - found.keys()
        found |= dict.fromkeys(sorted(workers))
        waiting += sorted(workers)
    return [trees[index] for index in found]


def group_labels_by_tip(records: Iterable[SessionRecord]) -> dict[str, list[str]]:
    """Return the sessions that point at each step, by its id."""
    labels: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.tip is not None:
            labels[record.tip].append(record.label)
    return dict(labels)


def read_branch_lines(
    ledger: Ledger,
    tree: StepTree,
    sessions: Mapping[str, Sequence[str]],
    damaged: list[DamagedSession],
    *,
    unfolded: bool = False,
) -> Iterator[BranchLine]:
    """Yield the branches of a tree to draw. Reads all of its steps, a few at a time.

    Args:
        ledger: Where it is.
        tree: The tree.
        sessions: The sessions that point at each step, by its id.
        damaged: As for `read_branches`.
        unfolded: Whether every turn is an item, however many there are.
    """
    branches = read_branches(ledger, tree, damaged)
    forks: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for branch in branches:
        if branch.parent is not None:
            forks[branch.parent.branch][branch.parent.id].append(branch.id)
    for branch in branches:
        yield _read_branch_line(ledger, branch, sessions, forks[branch.id], maxsize if unfolded else MAX_UNFOLDED_TURNS)


def _follow_branches(ledger: Ledger, step: Step, branches: dict[str, StepBranch]) -> str:
    """Note the branches that lead to a step, and return the first of them."""
    new: list[tuple[Step, Step, Step | None]] = []
    end: Step | None = step
    while end is not None and end.branch not in branches:
        first = _require_step(ledger, end.branch)
        parent = None if first.parent is None else _require_step(ledger, first.parent)
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
        branches[first.branch] = StepBranch(first, last, parent, root)
    return root


def _read_branch_line(
    ledger: Ledger,
    branch: StepBranch,
    sessions: Mapping[str, Sequence[str]],
    forks: Mapping[str, Sequence[str]],
    longest: int,
) -> BranchLine:
    items: list[BranchItem] = []
    run: list[TreeTurn] = []
    plain = turns = 0
    damage: list[DamagedSession] = []

    def flush() -> None:
        items.extend(run if plain <= longest else [plain])
        run.clear()

    with collect_damage(damage, ""):
        for steps in _walk_turns(ledger, branch, forks):
            end, first = steps[0], steps[-1]
            turns += opens_turn(first)
            is_compacted = any(step.kind in ("compaction", "revert") for step in steps)
            named, left = (tuple(chain(*(each.get(step.id, ()) for step in steps))) for each in (sessions, forks))
            is_turn = first.kind not in MARKER_KINDS and not is_unanswered_input(first)
            begins = first.id == branch.first.id or (
                first.parent == branch.first.id and is_unanswered_input(branch.first)
            )
            if is_turn and not (is_compacted or named or left or begins or not end.closes):
                plain += 1
                if plain <= longest:
                    run.append(_build_turn(steps, is_compacted=False))
                continue
            flush()
            plain = 0
            items.append(_build_turn(steps, is_compacted=is_compacted)._replace(sessions=named, forks=left))
    flush()
    items += [_build_damaged_turn(branch, each.what, items, forks) for each in damage]
    torn = [item.said for item in items if not isinstance(item, int) and item.kind == DAMAGED_KIND]
    return BranchLine(branch, tuple(reversed(items)), turns, tuple(torn))


def _build_damaged_turn(
    branch: StepBranch, what: str, items: Sequence[BranchItem], forks: Mapping[str, Sequence[str]]
) -> TreeTurn:
    """Return the placeholder for unreadable turns of a branch. Their forks are drawn after it."""
    drawn = {fork for item in items if not isinstance(item, int) for fork in item.forks}
    left = tuple(name for names in forks.values() for name in names if name not in drawn)
    return TreeTurn(branch.first.turn, what, DAMAGED_KIND, is_open=False, is_compacted=False, sessions=(), forks=left)


def _walk_turns(ledger: Ledger, branch: StepBranch, forks: Mapping[str, Sequence[str]]) -> Iterator[list[Step]]:
    """Yield the turns of a branch, newest first, each with its steps in that order.

    What an import took back is left out, unless another branch leaves from there.
    """
    steps: list[Step] = []
    length = branch.end.position - branch.first.position + 1
    walked = walk_back(ledger, branch.end.id, batch_size=min(length, STEPS_PER_READ))
    own = list(takewhile(lambda step: step.branch == branch.id, walked)) if forks else []
    kept = {step.id for step in skip_reverted(own)}
    is_drawn = any(step.id in forks and step.id not in kept for step in own)
    there = iter(own) if forks else takewhile(lambda step: step.branch == branch.id, walked)
    for step in there if is_drawn else skip_reverted(there):
        if steps and steps[-1].turn != step.turn and not continues_turn(steps[-1]):
            yield steps
            steps = []
        steps.append(step)
    yield steps


def _build_turn(steps: Sequence[Step], *, is_compacted: bool) -> TreeTurn:
    first = steps[-1]
    kind, excerpt = "turn", ""
    damage: list[DamagedSession] = []
    with collect_damage(damage, ""):
        kind = _get_turn_kind(first)
        excerpt = _excerpt_step(first)
    for each in damage:
        kind, excerpt = DAMAGED_KIND, each.what
    return TreeTurn(steps[0].turn, excerpt, kind, not steps[0].closes, is_compacted and kind == "turn", (), ())


def _get_turn_kind(first: Step) -> str:
    if first.kind in MARKER_KINDS:
        return first.kind
    return START_KIND if is_session_start_step(first) else SYSTEM_KIND if is_unanswered_input(first) else "turn"


def _excerpt_step(step: Step) -> str:
    if isinstance(step.payload, CompactionPayload):
        return redact_beginning(step.payload.prose or step.payload.summary, _EXCERPT_CHARACTERS)
    text = next((message.content for message in step.messages if message.content), "")
    return " ".join(redact_beginning(strip_command_elements(text), _EXCERPT_CHARACTERS).split())


def _require_step(ledger: Ledger, name: str) -> Step:
    step = ledger.step(name)
    if step is None:
        raise missing_step_error(name)
    return step


_MAX_INDENT_LEVELS = 20
"""Maximum indentation of nested branches, in levels."""
_MIN_TIGHT_CELLS = 8
"""Cells of a message on a narrow terminal; fewer say nothing."""
_MIN_EXCERPT_CELLS = 20
_COLUMN_GAP = "  "
_KIND_SIGNS = {
    "turn": "*",
    "compaction": "#",
    "revert": "~",
    "pin": "^",
    "forget": "x",
    "state": ".",
    "start": "-",
    "system": "-",
    "damaged": "!",
}


def draw_tree(lines: Mapping[str, BranchLine], root: str, width: int, *, is_tight: bool = False) -> Iterator[str]:
    """Yield the lines of a tree, oldest first. A fork is drawn before the rest of its parent.

    Args:
        lines: The branches, by their names.
        root: The first of them.
        width: Columns there are.
        is_tight: True to leave a message out rather than make a line longer than that.
    """
    # Not by calling itself: a conversation may be a fork of a fork of a fork, deeper than Python goes.
    stack = [(0, iter(lines[root].items))]
    while stack:
        depth, items = stack[-1]
        item = next(items, None)
        if item is None:
            stack.pop()
            if stack and stack[-1][0] == depth:  # another that left from the same turn
                yield f"{_format_indent(depth - 1)}|\\"
            continue
        yield _format_indent(depth) + _format_item(item, width - len(_format_indent(depth)), is_tight=is_tight)
        forks = () if isinstance(item, int) else item.forks
        if forks:
            yield f"{_format_indent(depth)}|\\"
        stack += [(depth + 1, iter(lines[name].items)) for name in reversed(forks)]


def _format_indent(depth: int) -> str:
    return "| " * depth if depth <= _MAX_INDENT_LEVELS else "| " * _MAX_INDENT_LEVELS + f"({depth}) "


def _format_item(item: BranchItem, width: int, *, is_tight: bool) -> str:
    if isinstance(item, int):
        return f": {format_count(item, 'turn')}"
    sign = "o" if item.is_open else _KIND_SIGNS[item.kind]
    about = [f"({', '.join(words)})"] if (words := [*_list_item_remarks(item)]) else []
    about += [f"<- {visible_line(', '.join(item.sessions))}"] if item.sessions else []
    room = width - measure_width(_COLUMN_GAP.join((f"{sign} {item.turn}", "", *about)))
    excerpt = shorten_to_words(visible_line(item.said), max(room, _MIN_EXCERPT_CELLS))
    if is_tight and measure_width(excerpt) > room:
        excerpt = shorten_to_words(excerpt, room) if room >= _MIN_TIGHT_CELLS else ""
    return _COLUMN_GAP.join(filter(None, (f"{sign} {item.turn}", excerpt, *about)))


def _list_item_remarks(item: TreeTurn) -> Iterator[str]:
    if item.kind != "turn":
        yield item.kind
    if item.is_compacted:
        yield "compacted"
    if item.is_open:
        yield "open"
