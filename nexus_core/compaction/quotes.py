"""Facts as a block of text: by class, each with the step it stands in, no longer than there is room for."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.history.groups import is_session_start, is_user_input
from nexus_core.history.shorten import split_head_and_tail
from nexus_core.text.safety import neutralize, visible_line
from nexus_core.thread.summary_message import is_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.types.compaction import Fact, ThreadMessage

STEP_SUFFIX_CHARACTERS = 6
"""So many characters of a step's name are shown, its last: they are chance, and the first ones are its time."""
_AHEAD = 8
"""Tokens that a line takes besides its facts."""
_ROUNDS = 4
_MISSES = 8
"""So many facts may be too long before no more are tried."""

# What is shown under which heading, in this order. Commands and errors have a line each.
_HEADINGS = ("Files changed", "Commands", "Errors", "Files", "Identifiers", "Links", "Numbers")
_OF_CLASS = {
    "path": "Files",
    "command": "Commands",
    "identifier": "Identifiers",
    "url": "Links",
    "number": "Numbers",
    "error": "Errors",
}
_LINES = ("Commands", "Errors", "Links")


class FactBlock(NamedTuple):
    """Facts in words.

    Attributes:
        text: The block; "" where nothing is in it.
        facts: Those that are in it.
    """

    text: str
    facts: tuple[Fact, ...]


def render_facts(facts: Sequence[Fact], limit: int, count: Callable[[str], int]) -> FactBlock:
    """The facts that there is room for.

    Every class has an equal share of the room first; what one does not need goes to the most important facts of all.

    Args:
        facts: The most important first.
        limit: Tokens there are.
        count: Who counts.
    """
    block, room = FactBlock("", ()), limit
    # Facts of one step share a line, so that together they take less than one by one; what is left is given out again.
    for _ in range(_ROUNDS):
        chosen = _choose(facts, room, count)
        text = _render(chosen)
        tokens = count(text)
        if tokens <= limit and len(chosen) > len(block.facts):
            block = FactBlock(text, tuple(chosen))
        if len(chosen) == len(facts) or tokens == limit:
            break
        room += limit - tokens
    return block


def shorten_step_id(step: str) -> str:
    """A step's name as it is shown to a model."""
    return step[-STEP_SUFFIX_CHARACTERS:]


def _choose(facts: Sequence[Fact], limit: int, count: Callable[[str], int]) -> list[Fact]:
    places: dict[str, list[int]] = {}
    for place, fact in enumerate(facts):
        places.setdefault(_heading(fact), []).append(place)
    room = limit - sum(count(f"{heading}:\n") for heading in places)
    share = room // max(len(places), 1)
    chosen: set[int] = set()
    for each in places.values():
        found, taken = _within(facts, each, share, count)
        chosen.update(found)
        room -= taken
    found, _ = _within(facts, (place for place in range(len(facts)) if place not in chosen), room, count)
    return [facts[place] for place in sorted(chosen.union(found))]


def _within(
    facts: Sequence[Fact], places: Iterable[int], room: int, count: Callable[[str], int]
) -> tuple[list[int], int]:
    """The places of the first facts that there is room for, and what they take."""
    found: list[int] = []
    taken = misses = 0
    for place in places:
        tokens = count(_words(facts[place])) + _AHEAD
        if taken + tokens <= room:
            taken += tokens
            found.append(place)
        else:
            misses += 1
        if misses > _MISSES or room - taken < _AHEAD:
            break
    return found, taken


def _render(facts: Sequence[Fact]) -> str:
    lines: list[str] = []
    for heading in _HEADINGS:
        under = sorted((fact for fact in facts if _heading(fact) == heading), key=lambda fact: -fact.position)
        if under:
            lines += [f"{heading}:", *_lines(heading, under)]
    return neutralize("\n".join(lines))


def _lines(heading: str, facts: Sequence[Fact]) -> Iterable[str]:
    for step, group in groupby(facts, key=lambda fact: fact.step):
        lead = f"- [{shorten_step_id(step)}] " if step else "- "
        if heading in _LINES:
            yield from (lead + _words(fact) for fact in group)
        else:
            yield lead + ", ".join(map(_words, group))


def _words(fact: Fact) -> str:
    note = "" if fact.kind == "path" or not fact.note else f" ({fact.note})"
    return visible_line(fact.text) + note


def _heading(fact: Fact) -> str:
    return "Files changed" if fact.note == "changed" else _OF_CLASS[fact.kind]


MAX_QUOTE_SHARE = 4
"""No message takes more than this fraction of the room, so that there are always several."""
_LEAST = 24
"""Tokens below which a message is not worth showing in part."""
_HEADING = "What the user said, oldest first:"


class UserQuote(NamedTuple):
    """What the user said in a step."""

    step: str
    position: int
    text: str


class QuoteBlock(NamedTuple):
    """What the user said, as a text.

    Attributes:
        text: The text; "" where nothing is in it.
        words: What is in it, whole; it is to be carried to the next compaction.
    """

    text: str
    words: tuple[UserQuote, ...]


def find_user_quotes(messages: Iterable[ThreadMessage]) -> tuple[UserQuote, ...]:
    """Return the texts of the user; summaries and the start of a session speak in the user's place and are left out."""
    return tuple(
        UserQuote(each.step, each.position, each.message.content.strip())
        for each in messages
        if is_user_input(each.message)
        and not is_summary(each.message)
        and not is_session_start(each.message)
        and each.message.content.strip()
    )


def render_user_quotes(words: Iterable[UserQuote], limit: int, count: Callable[[str], int]) -> QuoteBlock:
    """The newest of them that there is room for, and the very first, which says what it is all about.

    Long ones are shortened, with a line that says in which step all of it is.
    """
    known = sorted({(each.step, each.text): each for each in words}.values(), key=lambda each: each.position)
    room = limit - count(f"{_HEADING}\n")
    most = max(limit // MAX_QUOTE_SHARE, room // max(len(known), 1))
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
    return QuoteBlock(text, tuple(known[place] for place in sorted(chosen)))


def quotes_to_json(words: Iterable[UserQuote]) -> list[list[Any]]:
    """As they are written down with a compaction."""
    return [list(each) for each in words]


def read_quotes(value: object) -> tuple[UserQuote, ...]:
    """What was written down; whatever is no such thing is left out."""
    rows = value if isinstance(value, list | tuple) else ()
    return tuple(UserQuote(*row) for row in rows if _is_row(row))


def _quote(words: UserQuote, limit: int, count: Callable[[str], int]) -> str:
    lead = f"- [{shorten_step_id(words.step)}] " if words.step else "- "
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
