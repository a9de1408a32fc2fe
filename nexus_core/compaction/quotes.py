"""Facts and the user's own words as text blocks of limited length."""

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
"""The last characters of a step's id, which a summary shows: they are random, and the first ones are its time."""
_LINE_TOKENS = 8
"""Tokens of a line besides its facts."""
_MAX_ROUNDS = 4
_MAX_MISSES = 8
"""Facts that do not fit before no more are tried."""

# In the order in which they are shown.
_HEADINGS = ("Files changed", "Commands", "Errors", "Files", "Identifiers", "Links", "Numbers")
_CLASS_HEADINGS = {
    "path": "Files",
    "command": "Commands",
    "identifier": "Identifiers",
    "url": "Links",
    "number": "Numbers",
    "error": "Errors",
}
_ONE_PER_LINE = ("Commands", "Errors", "Links")


class FactBlock(NamedTuple):
    """Facts as text.

    Attributes:
        text: The text; "" without facts.
        facts: The facts in it.
    """

    text: str
    facts: tuple[Fact, ...]


def render_facts(facts: Sequence[Fact], limit: int, count: Callable[[str], int]) -> FactBlock:
    """Render the facts that fit.

    Each class gets an equal share of the tokens; what one does not need goes to the most important facts of all.

    Args:
        facts: The facts, most important first.
        limit: Maximum tokens.
        count: Counts the tokens of a text.
    """
    block, available = FactBlock("", ()), limit
    # Facts of one step share a line, so that they have fewer tokens than one by one; the rest is distributed again.
    for _ in range(_MAX_ROUNDS):
        chosen = _choose_facts(facts, available, count)
        text = _render_facts(chosen)
        tokens = count(text)
        if tokens <= limit and len(chosen) > len(block.facts):
            block = FactBlock(text, tuple(chosen))
        if len(chosen) == len(facts) or tokens == limit:
            break
        available += limit - tokens
    return block


def shorten_step_id(step: str) -> str:
    """Return the part of a step's id that is shown to a model."""
    return step[-STEP_SUFFIX_CHARACTERS:]


def _choose_facts(facts: Sequence[Fact], limit: int, count: Callable[[str], int]) -> list[Fact]:
    by_heading: dict[str, list[int]] = {}
    for index, fact in enumerate(facts):
        by_heading.setdefault(_find_heading(fact), []).append(index)
    available = limit - sum(count(f"{heading}:\n") for heading in by_heading)
    share = available // max(len(by_heading), 1)
    chosen: set[int] = set()
    for indexes in by_heading.values():
        found, used = _choose_fitting(facts, indexes, share, count)
        chosen.update(found)
        available -= used
    others = (index for index in range(len(facts)) if index not in chosen)
    found, _ = _choose_fitting(facts, others, available, count)
    return [facts[index] for index in sorted(chosen.union(found))]


def _choose_fitting(
    facts: Sequence[Fact], indexes: Iterable[int], limit: int, count: Callable[[str], int]
) -> tuple[list[int], int]:
    """Return the indexes of the first facts that fit, and their tokens."""
    found: list[int] = []
    used = misses = 0
    for index in indexes:
        tokens = count(_render_fact(facts[index])) + _LINE_TOKENS
        if used + tokens <= limit:
            used += tokens
            found.append(index)
        else:
            misses += 1
        if misses > _MAX_MISSES or limit - used < _LINE_TOKENS:
            break
    return found, used


def _render_facts(facts: Sequence[Fact]) -> str:
    lines: list[str] = []
    for heading in _HEADINGS:
        under = sorted((fact for fact in facts if _find_heading(fact) == heading), key=lambda fact: -fact.position)
        if under:
            lines += [f"{heading}:", *_render_lines(heading, under)]
    return neutralize("\n".join(lines))


def _render_lines(heading: str, facts: Sequence[Fact]) -> Iterable[str]:
    for step, group in groupby(facts, key=lambda fact: fact.step):
        lead = f"- [{shorten_step_id(step)}] " if step else "- "
        if heading in _ONE_PER_LINE:
            yield from (lead + _render_fact(fact) for fact in group)
        else:
            yield lead + ", ".join(map(_render_fact, group))


def _render_fact(fact: Fact) -> str:
    note = "" if fact.kind == "path" or not fact.note else f" ({fact.note})"
    return visible_line(fact.text) + note


def _find_heading(fact: Fact) -> str:
    return "Files changed" if fact.note == "changed" else _CLASS_HEADINGS[fact.kind]


MAX_QUOTE_SHARE = 4
"""The longest quote has this fraction of the tokens, so that there are always several."""
_MIN_QUOTE_TOKENS = 24
"""Tokens below which a part of a message is not worth showing."""
_HEADING = "What the user said, oldest first:"


class UserQuote(NamedTuple):
    """The text of the user in a step."""

    step: str
    position: int
    text: str


class QuoteBlock(NamedTuple):
    """The user's words as text.

    Attributes:
        text: The text; "" without quotes.
        quotes: The complete quotes in it, for the next compaction.
    """

    text: str
    quotes: tuple[UserQuote, ...]


def find_user_quotes(messages: Iterable[ThreadMessage]) -> tuple[UserQuote, ...]:
    """Return the texts of the user, without summaries and the session's start."""
    return tuple(
        UserQuote(each.step, each.position, each.message.content.strip())
        for each in messages
        if is_user_input(each.message)
        and not is_summary(each.message)
        and not is_session_start(each.message)
        and each.message.content.strip()
    )


def render_user_quotes(quotes: Iterable[UserQuote], limit: int, count: Callable[[str], int]) -> QuoteBlock:
    """Render the newest quotes that fit, and the very first, which states the goal.

    Long ones are shortened, with a line that names the step of the whole text.
    """
    known = sorted({(each.step, each.text): each for each in quotes}.values(), key=lambda each: each.position)
    available = limit - count(f"{_HEADING}\n")
    longest = max(limit // MAX_QUOTE_SHARE, available // max(len(known), 1))
    chosen: dict[int, str] = {}
    for index in [0, *range(len(known) - 1, 0, -1)] if known else []:
        line = _render_quote(known[index], min(longest, available), count)
        tokens = count(f"{line}\n")
        if not line or tokens > available:
            break
        chosen[index] = line
        available -= tokens
    lines = [chosen[index] for index in sorted(chosen)]
    text = "\n".join([_HEADING, *lines]) if lines else ""
    return QuoteBlock(text, tuple(known[index] for index in sorted(chosen)))


def quotes_to_json(quotes: Iterable[UserQuote]) -> list[list[Any]]:
    """Return the stored form of quotes."""
    return [list(each) for each in quotes]


def read_quotes(value: object) -> tuple[UserQuote, ...]:
    """Return stored quotes; rows of another form are skipped."""
    rows = value if isinstance(value, list | tuple) else ()
    return tuple(UserQuote(*row) for row in rows if _is_row(row))


def _render_quote(quote: UserQuote, limit: int, count: Callable[[str], int]) -> str:
    """Return a quote as a line of at most `limit` tokens; "" if too little of it fits."""
    lead = f"- [{shorten_step_id(quote.step)}] " if quote.step else "- "
    text = neutralize(quote.text)
    available = limit - count(lead) - 1

    def describe_gap(characters: int) -> str:
        where = f"; all of it is in step {quote.step}" if quote.step else ""
        return f"[… {characters:,} characters left out{where} …]"

    if available <= 0:
        return ""
    kept = split_head_and_tail(text, available, count, describe_gap)
    if kept is None:
        return lead + text
    if sum(kept) == 0 or available < _MIN_QUOTE_TOKENS:
        return ""
    head, tail = kept
    return f"{lead}{text[:head]}\n{describe_gap(len(text) - head - tail)}\n{text[len(text) - tail :]}"


def _is_row(row: Sequence[object] | object) -> bool:
    if not isinstance(row, list | tuple) or len(row) != 3:  # noqa: PLR2004 - the fields
        return False
    return isinstance(row[0], str) and type(row[1]) is int and isinstance(row[2], str)
