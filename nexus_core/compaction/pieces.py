"""Histories that are larger than what a summarizer can read: in pieces, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.compaction.prompts import write_transcript
from nexus_core.history.groups import group_messages
from nexus_core.history.shorten import shorten_text
from nexus_core.types.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_PIECES = 16
"""More would cost more than the conversation is worth; then what is too long is shortened."""
OVERHEAD = 400
"""Tokens of a prompt besides what is summarised."""
LEAST = 64
"""Tokens that a piece has in any case; a smaller window is none."""
SAFETY = 0.9
"""The share of a window that is used: its owner may count otherwise than we do."""


def room_in(window: int, *, beside: int) -> int:
    """The tokens that a summarizer can read of a conversation at once; arguments as below."""
    return max(int(window * SAFETY) - OVERHEAD - beside, LEAST)


def cut_pieces(
    messages: Sequence[Message], window: int, *, beside: int, count: Callable[[str], int]
) -> list[tuple[Message, ...]]:
    """A conversation in pieces that a summarizer can read, groups whole; one piece where it can read everything.

    Args:
        messages: The conversation.
        window: How many tokens it reads at once; 0 for any number.
        beside: What else must fit: the summary so far, and the one it writes.
        count: Who counts.
    """
    if not window or not messages:
        return [tuple(messages)]
    room = room_in(window, beside=beside)
    whole = [tuple(messages[group.first : group.last + 1]) for group in group_messages(messages)]
    sizes = [count(write_transcript(group)) + 2 for group in whole]
    if sum(sizes) <= room:
        return [tuple(messages)]
    # Neighbours that do not fit into one piece together fill at least half of two.
    if sum(sizes) > room * (MOST_PIECES - 1) // 2:
        return _chunks(write_transcript(messages), room, count)
    readable = [
        each if size <= room else _as_text(write_transcript(each), room, count)
        for each, size in zip(whole, sizes, strict=True)
    ]
    return _packed(readable, sizes, room)


def _packed(whole: Sequence[tuple[Message, ...]], sizes: Sequence[int], room: int) -> list[tuple[Message, ...]]:
    pieces: list[list[Message]] = []
    left = 0
    for group, size in zip(whole, sizes, strict=True):
        if not pieces or size > left:
            pieces.append([])
            left = room
        pieces[-1] += group
        left -= min(size, room)
    return [tuple(piece) for piece in pieces]


def _chunks(text: str, room: int, count: Callable[[str], int]) -> list[tuple[Message, ...]]:
    """A text in as many pieces as there may be, of each its beginning and its end."""
    length = -(-len(text) // MOST_PIECES)
    return [_as_text(text[start : start + length], room, count) for start in range(0, len(text), length)]


def _as_text(text: str, room: int, count: Callable[[str], int]) -> tuple[Message, ...]:
    # Whoever reads it as text reads the same; a call without its result would be a riddle.
    return (Message("user", shorten_text(text, room, count)),)
