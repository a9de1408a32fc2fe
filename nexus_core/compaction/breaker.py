"""Keeps compaction from going round in circles."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.ledger import Step

LEAST_GAIN = 0.1
"""A compaction that takes away less than this share was not worth it."""
MOST_SMALL = 2
"""So many of those in a row are enough."""
MOST_BETWEEN = 2
"""So many compactions there may be without a reply between them."""


class Gain(NamedTuple):
    """What a compaction brought: tokens before and after."""

    before: int
    after: int

    @property
    def share(self) -> float:
        """The share that it took away; negative where it made things worse."""
        return (self.before - self.after) / self.before if self.before > 0 else 0.0

    @property
    def is_small(self) -> bool:
        """Whether it was not worth it."""
        return self.share < LEAST_GAIN


def why_to_stop(recent: Sequence[Gain], *, since_reply: int, turns_since: int, keep_turns: int = 3) -> str:
    """Why a conversation must not be compacted now; "" where nothing speaks against it.

    Args:
        recent: What the latest compactions of the thread brought, the newest last; none where it cannot go on without
            another, however little that brings.
        since_reply: How many compactions there were since the last recorded reply.
        turns_since: How many turns were closed since the last compaction.
        keep_turns: How many turns a compaction keeps: with that many new ones, there is something to take away again.
    """
    if since_reply >= MOST_BETWEEN:
        return f"there were {since_reply} compactions since the last reply"
    last = recent[-MOST_SMALL:]
    if len(last) == MOST_SMALL and all(gain.is_small for gain in last) and turns_since < keep_turns:
        shares = " and ".join(f"{max(gain.share, 0):.0%}" for gain in last)
        return f"the last two compactions saved only {shares}"
    return ""


def gains_of(compaction: Step | None) -> tuple[tuple[int, int], ...]:
    """What a compaction and those before it brought, as it is written down."""
    gains = None if compaction is None else compaction.data.get("gains")
    return tuple((int(before), int(after)) for before, after in gains) if isinstance(gains, list) else ()
