"""What two calls have in common, and the first thing by which they differ.

A provider's cache finds the beginning of a call, up to the first byte that is another one. So a call is looked at as a
row of pieces in the order in which it is read: the model, the tools, the system prompt, the messages.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.types.prompt import Source

_HEADINGS = "headings"
"""What stands around sections is not told apart."""
PieceKind = Literal["model", "tool", "section", "system", "message"]
Fate = Literal["changed", "new", "gone", "moved"]


class RequestPiece(NamedTuple):
    """Something that a call is made of.

    Attributes:
        kind: What it is.
        name: What a person calls it.
        digest: The address of what it says; equal ones are equal.
        tokens: What it takes.
        key: What makes it the same thing although it says something else; "" where nothing does.
        source: The file or plugin it comes from; None where nobody knows.
        text: What it says, as far as that is words.
    """

    kind: PieceKind
    name: str
    digest: str
    tokens: int = 0
    key: str = ""
    source: Source | None = None
    text: str = ""


class Side(NamedTuple):
    """One of two calls.

    Attributes:
        model: Whom it goes to; every model has a cache of its own.
        tools: What the model may ask for.
        system: The system prompt.
        sections: What that consists of; none where nobody knows.
        messages: What is said after it.
    """

    model: RequestPiece
    tools: tuple[RequestPiece, ...]
    system: RequestPiece
    sections: tuple[RequestPiece, ...]
    messages: tuple[RequestPiece, ...]


class Change(NamedTuple):
    """Something by which two calls differ; None where one of them does not have it."""

    before: RequestPiece | None
    after: RequestPiece | None

    @property
    def piece(self) -> RequestPiece:
        """It, as it is now, else as it was."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 - one of them has it
        return found

    @property
    def fate(self) -> Fate:
        """What became of it."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        return "moved" if self.before.digest == self.after.digest else "changed"


class Difference(NamedTuple):
    """By what a call differs from another.

    Attributes:
        first: The first thing; None where they are the same.
        common: How many pieces they begin with alike.
        stable: The tokens of these, which may come from a cache.
        again: The tokens of what the other call had as well, but which stand behind the first difference.
        new: The tokens of what only this one has.
        changes: Everything that only one of them has, in the order in which it is read; the first among it.
    """

    first: Change | None
    common: int
    stable: int
    again: int
    new: int
    changes: tuple[Change, ...]

    @property
    def goes_on(self) -> bool:
        """Whether the second call begins with all of the first."""
        return all(change.fate == "new" for change in self.changes) and self.again == 0


def compare(before: Side, after: Side) -> Difference:
    """By what a call differs from one before it."""
    # Where sections do not say why, the system prompt is one piece: what puts it into words has changed.
    by_section = _digests(before.sections) != _digests(after.sections) and bool(before.sections and after.sections)
    return compare_pieces([*_in_order(before, by_section=by_section)], [*_in_order(after, by_section=by_section)])


def compare_pieces(before: Sequence[RequestPiece], after: Sequence[RequestPiece]) -> Difference:
    """By what a row of pieces differs from one before it."""
    pairs = zip(before, after, strict=False)
    shorter = min(len(before), len(after))
    common = next((place for place, (old, new) in enumerate(pairs) if old.digest != new.digest), shorter)
    old, new = before[common:], after[common:]
    known = Counter(_digests(old))
    again = 0
    for piece in new:
        if known[piece.digest]:
            known[piece.digest] -= 1
            again += piece.tokens
    stable, total = (sum(piece.tokens for piece in row) for row in (after[:common], after))
    changes = [*_changes(old, new)]
    first = _first(old, new, changes)
    if first is not None and first.fate == "moved":
        changes.insert(0, first)
    return Difference(first, common, stable, again, total - stable - again, tuple(changes))


def _in_order(side: Side, *, by_section: bool) -> Iterator[RequestPiece]:
    yield side.model
    yield from side.tools
    if by_section:
        yield from side.sections
        left = side.system.tokens - sum(piece.tokens for piece in side.sections)
        yield RequestPiece("system", "headings", digest=_HEADINGS, tokens=max(left, 0))
    else:
        yield side.system
    yield from side.messages


def _first(before: Sequence[RequestPiece], after: Sequence[RequestPiece], changes: Sequence[Change]) -> Change | None:
    """What became of that with which two rows part; None where both have ended."""
    old, new = next(iter(before), None), next(iter(after), None)
    for change in changes:
        if new is not None and change.after is new:
            return change
    for change in changes:
        if old is not None and change.before is old:
            return change
    if new is None:
        return None
    return Change(next(piece for piece in before if piece.digest == new.digest), new)


def _changes(before: Sequence[RequestPiece], after: Sequence[RequestPiece]) -> Iterator[Change]:
    """What only one of two rows has; things that are known by a name are compared with themselves."""
    left = Counter(_digests(before)) - Counter(_digests(after))
    gone = [piece for piece in before if _take(left, piece)]
    added = Counter(_digests(after)) - Counter(_digests(before))
    for piece in after:
        if _take(added, piece):
            was = next((each for each in gone if _name(each) == _name(piece)), None)
            if was is not None:
                gone.remove(was)
            yield Change(was, piece)
    yield from (Change(piece, None) for piece in gone)


def _take(counts: Counter[str], piece: RequestPiece) -> bool:
    if not counts[piece.digest]:
        return False
    counts[piece.digest] -= 1
    return True


def _name(piece: RequestPiece) -> tuple[str, str]:
    return piece.kind, piece.key


def _digests(pieces: Sequence[RequestPiece]) -> list[str]:
    return [piece.digest for piece in pieces]
