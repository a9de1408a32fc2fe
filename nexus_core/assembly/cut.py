"""Where the history of a call begins. A cut stays where it is until what it leaves does not fit any more.

Then it moves far enough that it can stay for a while: a beginning that moves with every turn is never found in a cache.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.sent import Key
from nexus_core.history.asking import NEWEST, ask_truncation
from nexus_core.history.groups import groups
from nexus_core.history.sums import RunningSums

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from nexus_core.assembly.sent import Sent
    from nexus_core.history.groups import Group
    from nexus_core.values.budget import Truncation

MOST_KNOWN = 8
"""So many lists of messages are remembered with their groups."""
LOW_WATER = 0.6
"""When a cut has to move, what stays takes no more than this share of the room."""


class Span(NamedTuple):
    """Messages from one to another, both included.

    Attributes:
        first, last: The messages.
        until: The step up to which they are read, where that is not the last one's: an input stands as it was sealed.
    """

    first: Key
    last: Key
    until: str = ""

    def to_json(self) -> list[Any]:
        """As it is written down."""
        return [list(self.first), list(self.last), *([self.until] if self.until else [])]


class Cut(NamedTuple):
    """What stays of a thread.

    Attributes:
        rule: The truncation that chose it.
        since: The message from which on everything stays.
        spans: What stays of what was said before that.
        compaction: The compaction whose kept history it is about; None where there is none.
        limit: The tokens that a request could use when it was made; a larger window deserves another look.
    """

    rule: str
    since: Key
    spans: tuple[Span, ...] = ()
    compaction: str | None = None
    limit: int = 0

    def to_json(self) -> dict[str, Any]:
        """As it is written down with a step."""
        spans = [span.to_json() for span in self.spans]
        written: dict[str, Any] = {"rule": self.rule, "since": list(self.since), "limit": self.limit}
        return written | ({"spans": spans} if spans else {}) | ({"of": self.compaction} if self.compaction else {})


def read_cut(value: object) -> Cut | None:
    """A cut as it was written down; None where there is none."""
    if not isinstance(value, dict):
        return None
    spans = tuple(Span(Key(*first), Key(*last), *until) for first, last, *until in value.get("spans", ()))
    return Cut(value["rule"], Key(*value["since"]), spans, value.get("of"), value.get("limit", 0))


class Grouped(NamedTuple):
    """Messages that live or die together, and what they take."""

    groups: list[Group]
    sums: RunningSums


class Fitting(NamedTuple):
    """What a call may hold.

    Attributes:
        room: Tokens there are for messages.
        limit: Tokens that the whole request may use.
        truncation: Chooses what stays when not all fits.
        turn: The open turn.
        compaction: The compaction that counts.
        known: The groups of messages that were looked at before, as one counter counts them.
        pinned: Steps that stay, and what lives or dies with them.
    """

    room: int
    limit: int
    truncation: Truncation
    turn: str
    compaction: str | None
    known: dict[object, Grouped]
    pinned: Collection[str] = ()

    def still_holds(self, cut: Cut | None) -> bool:
        """Whether a cut is about this thread as it is now, and was made for as large a window."""
        return (
            cut is not None
            and cut.compaction == self.compaction
            and cut.rule == self.truncation.name
            and cut.limit >= self.limit
        )


class Kept(NamedTuple):
    """What stays of messages.

    Attributes:
        sent: The messages that stay.
        cut: What says so; None where all of them do.
        taken: The tokens of those that could have stayed.
    """

    sent: list[Sent]
    cut: Cut | None
    taken: int = 0


def fit(sent: Sequence[Sent], cut: Cut | None, fitting: Fitting) -> Kept:
    """The messages that stay. Never left out: a summary, what is pinned, what the open turn is about, its newest group.

    Args:
        sent: The messages of a thread: all that could stay.
        cut: Where they were cut before.
        fitting: What there is room for.
    """
    pieces = None if cut is None else _pieces(sent, cut)
    if pieces is None:
        cut, pieces = None, [list(sent)]
    left = [each for piece in pieces for each in piece]
    taken = sum(each.tokens for each in left)
    if taken <= fitting.room:
        return Kept(left, cut, taken)
    places = _choose(left, fitting)
    if len(places) == len(left):  # there is nothing more to leave out
        return Kept(left, cut, taken)
    ends = set(accumulate(map(len, pieces)))
    return Kept([left[place] for place in places], _cut(left, places, ends, fitting), taken)


def apply_cut(sent: Sequence[Sent], cut: Cut) -> list[Sent] | None:
    """What a cut leaves; None where it names a message that is not there."""
    pieces = _pieces(sent, cut)
    return None if pieces is None else [each for piece in pieces for each in piece]


def _pieces(sent: Sequence[Sent], cut: Cut) -> list[Sequence[Sent]] | None:
    """What a cut leaves, piece by piece: a summary, what stays of the beginning, and the rest."""
    keys = {cut.since, *(key for span in cut.spans for key in (span.first, span.last))}
    found = {each.key: place for place, each in enumerate(sent) if each.step and each.key in keys}
    if len(found) != len(keys):
        return None
    early = [sent[found[span.first] : found[span.last] + 1] for span in cut.spans]
    return [[each for each in sent if not each.turn], *early, sent[found[cut.since] :]]


def _choose(sent: Sequence[Sent], fitting: Fitting) -> list[int]:
    """The places that stay, up to the low-water mark."""
    turn = fitting.turn
    fixed = {place for place, each in enumerate(sent) if not each.turn or (each.is_input and each.turn == turn)}
    fixed |= _pinned(sent, fitting.pinned)
    free = sorted(set(range(len(sent))).difference(fixed))
    taken = sum(sent[place].tokens for place in fixed)
    kept = _choose_groups([sent[place] for place in free], int(fitting.room * LOW_WATER) - taken, fitting)
    # A truncation keeps the newest group in any case; that of a turn which is over is not worth an error.
    if sum(sent[free[at]].tokens for at in kept) > fitting.room - taken:
        kept = [at for at in kept if sent[free[at]].turn == turn]
    return sorted({*_begun(sent, [free[at] for at in kept], turn), *fixed})


def _pinned(sent: Sequence[Sent], pins: Collection[str]) -> set[int]:
    """The places of what is pinned, with what lives or dies with it."""
    if not pins:
        return set()
    whole = [range(group.first, group.last + 1) for group in groups([each.message for each in sent])]
    return {place for group in whole if any(sent[at].is_among(pins) for at in group) for place in group}


def _choose_groups(sent: Sequence[Sent], room: int, fitting: Fitting) -> list[int]:
    if not sent:
        return []
    found, sums = _grouped(sent, fitting.known)
    slices = ask_truncation(fitting.truncation, sums, room) if room > 0 else [NEWEST]
    chosen = sorted({at for part in slices for at in range(len(found))[part]})
    return [place for at in chosen for place in range(found[at].first, found[at].last + 1)]


def _grouped(sent: Sequence[Sent], known: dict[object, Grouped]) -> Grouped:
    """The groups of messages; the same messages are often asked about again."""
    key = sent[0].key, sent[-1].key, len(sent)
    grouped = known.get(key)
    if grouped is None:
        found = groups([each.message for each in sent])
        sizes = (sum(each.tokens for each in sent[group.first : group.last + 1]) for group in found)
        grouped = Grouped(found, RunningSums(sizes))
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[key] = grouped
    return grouped


def _begun(sent: Sequence[Sent], kept: list[int], turn: str) -> list[int]:
    """Without the end of a turn whose beginning is left out, before the first word of the user."""
    if kept[:1] == [0]:
        return kept
    first = next((at for at, place in enumerate(kept) if _is_beginning(sent[place], turn)), len(kept))
    return kept[first:]


def _is_beginning(sent: Sent, turn: str) -> bool:
    return sent.turn == turn or (sent.message.role == "user" and not sent.message.tool_results)


def _cut(sent: Sequence[Sent], places: Sequence[int], ends: set[int], fitting: Fitting) -> Cut | None:
    """The cut that leaves some places: the last run of them is open, what stays before it is closed.

    Args:
        sent: The messages.
        places: Those that stay.
        ends: Where pieces end behind which something was left out before.
        fitting: What there is room for.
    """
    runs = list(_runs([place for place in places if sent[place].turn], ends))
    if not runs:
        return None
    spans = tuple(_span(sent[run[0]], sent[run[-1]]) for run in runs[:-1])
    return Cut(fitting.truncation.name, sent[runs[-1][0]].key, spans, fitting.compaction, fitting.limit)


def _span(first: Sent, last: Sent) -> Span:
    return Span(first.key, last.key, "" if last.step == last.key.step else last.step)


def _runs(places: Sequence[int], ends: set[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for place in places:
        if run and (place != run[-1] + 1 or place in ends):
            yield run
            run = []
        run.append(place)
    if run:
        yield run
