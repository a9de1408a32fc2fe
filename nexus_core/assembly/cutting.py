"""Which messages stay. A cut stays where it is until what it leaves does not fit any more.

Then it moves far enough that it can stay for a while: a beginning that moves with every turn is never found in a cache.
What has too many bytes loses pictures and documents first, the oldest before the others.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.assembly.cut import Cut, Span
from nexus_core.assembly.fitting import LOW_WATER, Grouped, Scale
from nexus_core.assembly.hiding import find_hidden, hide_until
from nexus_core.assembly.sent import BYTES, TOKENS
from nexus_core.history.groups import group_messages
from nexus_core.history.sums import RunningSums
from nexus_core.history.truncation import NEWEST_GROUP, ask_truncation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.assembly.fitting import Fitting
    from nexus_core.assembly.sent import Sent

MOST_KNOWN = 8
"""So many lists of messages are remembered with their groups."""


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

    @property
    def tokens(self) -> int:
        """What they take."""
        return sum(map(TOKENS, self.sent))

    @property
    def bytes(self) -> int:
        """How many bytes they have in a request."""
        return sum(map(BYTES, self.sent))


def fit(sent: Sequence[Sent], cut: Cut | None, fitting: Fitting) -> Kept:
    """The messages that stay. Never left out: a summary, what is pinned, what the open turn is about, its newest group.

    Args:
        sent: The messages of a thread: all that could stay.
        cut: Where they were cut before.
        fitting: What there is room for.
    """
    kept = _narrow(_shown(sent, cut, fitting), cut, fitting, fitting.tokens_scale)
    if kept.bytes <= fitting.bytes:
        return kept
    kept = _hide_more(kept, fitting)
    narrowed = _narrow(kept.sent, kept.cut, fitting, fitting.bytes_scale)
    if narrowed.cut is None:
        return narrowed._replace(taken=kept.taken)
    return Kept(narrowed.sent, narrowed.cut._replace(byte_limit=fitting.byte_limit), kept.taken)


def apply_cut(sent: Sequence[Sent], cut: Cut, fitting: Fitting) -> list[Sent] | None:
    """What a cut leaves; None where it names a message that is not there."""
    pieces = _pieces(_shown(sent, cut, fitting), cut)
    return None if pieces is None else [each for piece in pieces for each in piece]


def _shown(sent: Sequence[Sent], cut: Cut | None, fitting: Fitting) -> Sequence[Sent]:
    """Messages with their pictures and documents, as far as a cut shows them."""
    return sent if cut is None or cut.hidden is None else hide_until(sent, cut.hidden, fitting)


def _hide_more(kept: Kept, fitting: Fitting) -> Kept:
    """As much as has to be, and a while's worth more, told in words."""
    until = find_hidden(kept.sent, fitting)
    if until is None:
        return kept
    first = next(each.key for each in kept.sent if each.turn)
    cut = kept.cut or Cut(fitting.truncation.name, first, (), fitting.compaction, fitting.limit)
    cut = cut._replace(hidden=until, byte_limit=fitting.byte_limit)
    return Kept(hide_until(kept.sent, until, fitting), cut, kept.taken)


def _narrow(sent: Sequence[Sent], cut: Cut | None, fitting: Fitting, scale: Scale) -> Kept:
    """The messages that stay on one of the two scales, arguments as for `fit`."""
    pieces = None if cut is None else _pieces(sent, cut)
    if pieces is None:
        cut, pieces = None, [list(sent)]
    left = [each for piece in pieces for each in piece]
    taken = sum(map(scale.of, left))
    if taken <= scale.room:
        return Kept(left, cut, taken)
    places = _choose(left, fitting, scale)
    if len(places) == len(left):  # there is nothing more to leave out
        return Kept(left, cut, taken)
    ends = set(accumulate(map(len, pieces)))
    narrower = _cut(left, places, ends, fitting)
    if cut is not None and narrower is not None:
        narrower = narrower._replace(hidden=cut.hidden, byte_limit=cut.byte_limit)
    return Kept([left[place] for place in places], narrower, taken)


def _pieces(sent: Sequence[Sent], cut: Cut) -> list[Sequence[Sent]] | None:
    """What a cut leaves, piece by piece: a summary, what stays of the beginning, and the rest."""
    keys = {cut.since, *(key for span in cut.spans for key in (span.first, span.last))}
    found = {each.key: place for place, each in enumerate(sent) if each.step and each.key in keys}
    if len(found) != len(keys):
        return None
    early = [sent[found[span.first] : found[span.last] + 1] for span in cut.spans]
    return [[each for each in sent if not each.turn], *early, sent[found[cut.since] :]]


def _choose(sent: Sequence[Sent], fitting: Fitting, scale: Scale) -> list[int]:
    """The places that stay, up to the low-water mark."""
    turn, of = fitting.turn, scale.of
    fixed = fitting.fixed(sent)
    free = sorted(set(range(len(sent))).difference(fixed))
    taken = sum(of(sent[place]) for place in fixed)
    low = Scale(int(scale.room * LOW_WATER) - taken, of)
    kept = _choose_groups([sent[place] for place in free], fitting, low)
    # A truncation keeps the newest group in any case; that of a turn which is over is not worth an error.
    if sum(of(sent[free[at]]) for at in kept) > scale.room - taken:
        kept = [at for at in kept if sent[free[at]].turn == turn]
    return sorted({*_begun(sent, [free[at] for at in kept], turn), *fixed})


def _choose_groups(sent: Sequence[Sent], fitting: Fitting, scale: Scale) -> list[int]:
    if not sent:
        return []
    found, sums = _grouped(sent, fitting.known, scale.of)
    slices = ask_truncation(fitting.truncation, sums, scale.room) if scale.room > 0 else [NEWEST_GROUP]
    chosen = sorted({at for part in slices for at in range(len(found))[part]})
    return [place for at in chosen for place in range(found[at].first, found[at].last + 1)]


def _grouped(sent: Sequence[Sent], known: dict[object, Grouped], of: Callable[[Sent], int]) -> Grouped:
    """The groups of messages; the same messages are often asked about again."""
    # What is told in words takes less than it did before.
    key = sent[0].key, sent[-1].key, len(sent), sum(map(of, sent))
    grouped = known.get(key)
    if grouped is None:
        found = group_messages([each.message for each in sent])
        sizes = (sum(map(of, sent[group.first : group.last + 1])) for group in found)
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
