"""What a session consists of, in the same numbers wherever they are told: `import`, `list` and `stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.thread.cache import ThreadCache
from nexus_core.thread.totals import continues_turn, count_tokens, count_turns, counts_as_turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.types.ledger import Ledger, NewStep, Step, StepKind

MESSAGES = "messages"
"""Where steps write down how many messages there are up to them."""


class Tally(NamedTuple):
    """What a thread consists of.

    Attributes:
        turns: How many in which something was said; a compaction between two is none.
        steps: How many.
        messages: How many; an input that was sealed counts once.
        tokens: What they take, whoever counted.
    """

    turns: int = 0
    steps: int = 0
    messages: int = 0
    tokens: int = 0


def messages_of(kind: StepKind, count: int) -> int:
    """How many messages a step adds, of so many that stand in it; one that is sealed repeats the input."""
    return 0 if kind == "sealed" else count


def tally(steps: Iterable[NewStep]) -> Tally:
    """What steps consist of that follow each other from the first on."""
    turns = count = messages = tokens = 0
    is_open = False
    for step in steps:
        turns += not is_open and counts_as_turn(step) and not continues_turn(step)
        count += 1
        messages += messages_of(step.kind, len(step.messages))
        tokens += step.tokens
        is_open = not step.closes
    return Tally(turns, count, messages, tokens)


def tally_until(ledger: Ledger, tip: str | None) -> Tally:
    """What a thread in a ledger consists of; of a long one, no more is read than it takes to know."""
    if tip is None:
        return Tally()
    tail = ThreadCache(ledger)
    step = tail.get_step(tip)
    return Tally(count_turns(tail, step), step.position + 1, _messages_until(tail, step), count_tokens(tail, step))


def _messages_until(tail: ThreadCache, tip: Step) -> int:
    def is_numbered(steps: Sequence[Step]) -> bool:
        return any(MESSAGES in step.data for step in steps)

    found = 0
    for step in reversed(tail.read_newest(tip.id, is_numbered)):
        if isinstance(number := step.data.get(MESSAGES), int):
            return found + number
        found += messages_of(step.kind, len(step.messages))
    return found
