"""What a call may hold, in tokens and in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.assembly.sent import BYTES, TOKENS
from nexus_core.history.groups import group_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from nexus_core.assembly.cut import Cut
    from nexus_core.assembly.sent import Sent
    from nexus_core.history.groups import MessageGroup
    from nexus_core.history.sums import RunningSums
    from nexus_core.types.budget import TruncationStrategy

LOW_WATER = 0.6
"""When something has to be left out, what stays takes no more than this share of the room."""


class Grouped(NamedTuple):
    """Messages that live or die together, and what they take."""

    groups: list[MessageGroup]
    sums: RunningSums


class Scale(NamedTuple):
    """One of the two ways in which messages may be too much.

    Attributes:
        room: What there is for them.
        of: What a message takes of it.
    """

    room: int
    of: Callable[[Sent], int]


class Fitting(NamedTuple):
    """What a call may hold.

    Attributes:
        room: Tokens there are for messages.
        bytes: Bytes there are for them.
        limit: Tokens that the whole request may use.
        byte_limit: Bytes that it may have.
        hide: Says a message with its pictures and documents in words; the same where it has none.
        truncation: Chooses what stays when not all fits.
        turn: The open turn.
        compaction: The compaction that counts.
        known: The groups of messages that were looked at before, as one counter counts them.
        pinned: Steps that stay, and what lives or dies with them.
    """

    room: int
    bytes: int
    limit: int
    byte_limit: int
    hide: Callable[[Sent], Sent]
    truncation: TruncationStrategy
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
            and (not cut.byte_limit or cut.byte_limit >= self.byte_limit)
        )

    def fixed(self, sent: Sequence[Sent]) -> set[int]:
        """The places of what stays in any case: a summary, what the open turn is about, what is pinned."""
        turn = self.turn
        fixed = {place for place, each in enumerate(sent) if not each.turn or (each.is_input and each.turn == turn)}
        return fixed | _pinned(sent, self.pinned)

    @property
    def tokens_scale(self) -> Scale:
        """What there is room for in tokens."""
        return Scale(self.room, TOKENS)

    @property
    def bytes_scale(self) -> Scale:
        """The same in bytes."""
        return Scale(self.bytes, BYTES)


def _pinned(sent: Sequence[Sent], pins: Collection[str]) -> set[int]:
    """The places of what is pinned, with what lives or dies with it."""
    if not pins:
        return set()
    whole = [range(group.first, group.last + 1) for group in group_messages([each.message for each in sent])]
    return {place for group in whole if any(sent[at].is_among(pins) for at in group) for place in group}
