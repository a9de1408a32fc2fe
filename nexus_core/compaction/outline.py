"""A thread in turns and groups, as it is looked at when a part of it has to go."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from nexus_core.history.groups import group_messages
from nexus_core.types.compaction import ThreadGroup, ThreadOutline, ThreadTurn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from nexus_core.types.compaction import ThreadMessage


def outline_thread(
    messages: Iterable[ThreadMessage],
    *,
    open_turn: str = "",
    first_kept: str | None = None,
    carried: Iterable[ThreadMessage] = (),
    pinned: Collection[str] = frozenset(),
    summary_tokens: int = 0,
) -> ThreadOutline:
    """The turns of a thread.

    Args:
        messages: As a model reads them, oldest first, without the summary at their beginning.
        open_turn: The turn that goes on, "" for none.
        first_kept: Where what the latest compaction kept begins; None without one.
        carried: Pinned messages from before that place.
        pinned: Steps whose messages must stay; what lives or dies with them stays too.
        summary_tokens: What the summary takes that stands before all of them.
    """
    turns = [
        _turn(name, list(each), first_kept, pinned, is_open=name == open_turn)
        for name, each in groupby(messages, key=lambda message: message.turn)
    ]
    return ThreadOutline(tuple(turns), tuple(_groups(list(carried), pinned)), summary_tokens)


def _turn(
    name: str, messages: Sequence[ThreadMessage], first_kept: str | None, pinned: Collection[str], *, is_open: bool
) -> ThreadTurn:
    begins_inside = first_kept != name and any(each.step == first_kept for each in messages if not each.is_input)
    first = first_kept if begins_inside and first_kept is not None else name
    return ThreadTurn(name, tuple(_groups(messages, pinned)), first, is_open)


def _groups(messages: Sequence[ThreadMessage], pinned: Collection[str]) -> Iterator[ThreadGroup]:
    """Groups of whole steps: what one step says belongs together, since only whole steps can be kept."""
    joined: list[list[ThreadMessage]] = []
    for group in group_messages([each.message for each in messages]):
        found = list(messages[group.first : group.last + 1])
        if joined and joined[-1][-1].step == found[0].step:
            joined[-1] += found
        else:
            joined.append(found)
    for found in joined:
        yield ThreadGroup(tuple(found), pinned=any(each.step in pinned for each in found))
