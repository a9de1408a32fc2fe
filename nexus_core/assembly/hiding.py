"""Which pictures and documents of a thread are told in words, so that a request has no more bytes than its API takes.

All up to a message are, and stay so: a history that changes with every turn is never found in a cache. Shown in any
case is what the open turn is about, its newest group, what is pinned, and the newest of the others if it fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.assembly.fitting import LOW_WATER
from nexus_core.assembly.sent import BYTES
from nexus_core.dialects.requests import count_message_bytes
from nexus_core.history.groups import group_newest_first
from nexus_core.history.media_placeholders import count_media, replace_media

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.assembly.fitting import Fitting
    from nexus_core.assembly.sent import Key, Sent
    from nexus_core.types.messages import Message


def hide_media(sent: Sent, weigh: Callable[[Message], int]) -> Sent:
    """A message with its pictures and documents in words; the same where it has none.

    Args:
        sent: The message.
        weigh: Says what a message takes.
    """
    count = count_media(sent.message)
    if not count:
        return sent
    message = replace_media(sent.message)
    size = count_message_bytes(message)
    said, tokens = told_as_said(sent), weigh(message)
    return sent._replace(message=message, tokens=tokens, said=said, size=size, hidden=count, margin=0)


def told_as_said(sent: Sent) -> Message | None:
    """What was said before it was put into words, without pictures and documents as well."""
    return None if sent.said is None else replace_media(sent.said)


def hide_until(sent: Sequence[Sent], until: Key, fitting: Fitting) -> list[Sent]:
    """Messages, all up to one without their pictures and documents; all as they are where that one is not there."""
    end = next((place for place, each in enumerate(sent, 1) if each.step and each.key == until), 0)
    fixed = fitting.fixed(sent) if end else set()
    return [fitting.hide(each) if place < end and place not in fixed else each for place, each in enumerate(sent)]


def hide_oldest(sent: Sequence[Sent], fitting: Fitting) -> list[Sent]:
    """Messages, without as many pictures and documents as it takes that they fit."""
    until = find_hidden(sent, fitting) if sum(map(BYTES, sent)) > fitting.bytes else None
    return list(sent) if until is None else hide_until(sent, until, fitting)


def find_hidden(sent: Sequence[Sent], fitting: Fitting) -> Key | None:
    """The message up to which pictures and documents must be told in words; None where there are none to tell.

    Args:
        sent: Messages with too many bytes.
        fitting: What there is room for.
    """
    newest = next(group_newest_first(lambda place: sent[place].message, len(sent)))
    end = newest.first if sent[-1].turn == fitting.turn else len(sent)
    fixed, size = fitting.fixed(sent), sum(map(BYTES, sent))
    told = ((each, fitting.hide(each)) for place, each in enumerate(sent[:end]) if place not in fixed)
    gains = [(before.key, before.size - after.size) for before, after in told if after is not before]
    until: Key | None = None
    for number, (key, gain) in enumerate(gains, 1):
        if size <= fitting.bytes * (1 if number == len(gains) else LOW_WATER):
            break
        size, until = size - gain, key
    return until
