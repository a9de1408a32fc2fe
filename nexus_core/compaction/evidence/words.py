"""What the user said, word for word, as far as there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.compaction.evidence.rendering import short_step
from nexus_core.compaction.summary import is_summary
from nexus_core.history.groups import is_session_start, is_user_input
from nexus_core.history.shorten import split_head_and_tail
from nexus_core.text.safety import neutralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.types.compaction import ThreadMessage

SHARE = 4
"""No message takes more than this fraction of the room, so that there are always several."""
_LEAST = 24
"""Tokens below which a message is not worth showing in part."""
_HEADING = "What the user said, oldest first:"


class Words(NamedTuple):
    """What the user said in a step."""

    step: str
    position: int
    text: str


class Quoted(NamedTuple):
    """What the user said, as a text.

    Attributes:
        text: The text; "" where nothing is in it.
        words: What is in it, whole; it is to be carried to the next compaction.
    """

    text: str
    words: tuple[Words, ...]


def user_words(messages: Iterable[ThreadMessage]) -> tuple[Words, ...]:
    """Return the texts of the user; summaries and the start of a session speak in the user's place and are left out."""
    return tuple(
        Words(each.step, each.position, each.message.content.strip())
        for each in messages
        if is_user_input(each.message)
        and not is_summary(each.message)
        and not is_session_start(each.message)
        and each.message.content.strip()
    )


def quote_words(words: Iterable[Words], limit: int, count: Callable[[str], int]) -> Quoted:
    """The newest of them that there is room for, and the very first, which says what it is all about.

    Long ones are shortened, with a line that says in which step all of it is.
    """
    known = sorted({(each.step, each.text): each for each in words}.values(), key=lambda each: each.position)
    room = limit - count(f"{_HEADING}\n")
    most = max(limit // SHARE, room // max(len(known), 1))
    chosen: dict[int, str] = {}
    for place in [0, *range(len(known) - 1, 0, -1)] if known else []:
        quote = _quote(known[place], min(most, room), count)
        tokens = count(f"{quote}\n")
        if not quote or tokens > room:
            break
        chosen[place] = quote
        room -= tokens
    quotes = [chosen[place] for place in sorted(chosen)]
    text = "\n".join([_HEADING, *quotes]) if quotes else ""
    return Quoted(text, tuple(known[place] for place in sorted(chosen)))


def words_to_json(words: Iterable[Words]) -> list[list[Any]]:
    """As they are written down with a compaction."""
    return [list(each) for each in words]


def read_words(value: object) -> tuple[Words, ...]:
    """What was written down; whatever is no such thing is left out."""
    rows = value if isinstance(value, list | tuple) else ()
    return tuple(Words(*row) for row in rows if _is_row(row))


def _quote(words: Words, limit: int, count: Callable[[str], int]) -> str:
    lead = f"- [{short_step(words.step)}] " if words.step else "- "
    text = neutralize(words.text)
    room = limit - count(lead) - 1

    def line(left_out: int) -> str:
        where = f"; all of it is in step {words.step}" if words.step else ""
        return f"[… {left_out:,} characters left out{where} …]"

    if room <= 0:
        return ""
    kept = split_head_and_tail(text, room, count, line)
    if kept is None:
        return lead + text
    if sum(kept) == 0 or room < _LEAST:
        return ""
    head, tail = kept
    return f"{lead}{text[:head]}\n{line(len(text) - head - tail)}\n{text[len(text) - tail :]}"


def _is_row(row: Sequence[object] | object) -> bool:
    if not isinstance(row, list | tuple) or len(row) != 3:  # noqa: PLR2004 - the fields
        return False
    return isinstance(row[0], str) and type(row[1]) is int and isinstance(row[2], str)
