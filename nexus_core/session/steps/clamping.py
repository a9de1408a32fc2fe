"""Long results of tools: kept whole, sent as head and tail, cut once and for all."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.shorten import split_head_and_tail
from nexus_core.types.messages import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message

SOME_STEP = "0" * 26
"""As long as a step's name, which nobody knows before it is recorded."""


class Clamp(NamedTuple):
    """Where a text is cut.

    Attributes:
        message: The message, by its place in the step.
        part: The result, by its place in the message.
        text: The text, by its place in the result.
        head: How many characters stay of the beginning.
        tail: How many stay of the end.
    """

    message: int
    part: int
    text: int
    head: int
    tail: int


def find_clamps(messages: Sequence[Message], limit: int, count: Callable[[str], int]) -> list[Clamp]:
    """Where the results in messages must be cut so that the texts of none take more than a limit."""
    return [
        Clamp(at, place, *cut)
        for at, message in enumerate(messages)
        for place, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
        for cut in _cuts(part, limit, count)
    ]


def sent_messages(step: Step) -> tuple[Message, ...]:
    """The messages of a step as they are sent."""
    clamps = step.data.get("clamp")
    if not isinstance(clamps, list | tuple):
        return step.messages
    return apply_clamps(step.messages, (Clamp(*each) for each in clamps), step.id)


def apply_clamps(messages: Sequence[Message], clamps: Iterable[Clamp], step: str) -> tuple[Message, ...]:
    """The messages with long texts as head and tail, and a line between them that says where all of it is."""
    by_result: dict[tuple[int, int], list[Clamp]] = defaultdict(list)
    for clamp in clamps:
        by_result[clamp.message, clamp.part].append(clamp)
    clamped = list(messages)
    for (at, place), found in by_result.items():
        parts = list(clamped[at].parts)
        result = parts[place]
        if isinstance(result, ToolResult):
            parts[place] = _clamped(result, found, step)
        clamped[at] = replace(clamped[at], parts=tuple(parts))
    return tuple(clamped)


def _cuts(result: ToolResult, limit: int, count: Callable[[str], int]) -> Iterator[tuple[int, int, int]]:
    """The texts that must be cut, the longest; short ones among them stay as they are."""
    texts = {place: part.text for place, part in enumerate(result.parts) if isinstance(part, Text)}
    sizes = {place: count(text) for place, text in texts.items()}
    shortest_first = sorted(sizes, key=lambda place: (sizes[place], place))
    for number, place in enumerate(shortest_first):
        share = limit // (len(shortest_first) - number)
        cut = split_head_and_tail(texts[place], share, count, lambda left_out: _line(left_out, SOME_STEP))
        if cut is not None:
            yield place, *cut
        limit -= min(sizes[place], share)


def _clamped(result: ToolResult, clamps: Iterable[Clamp], step: str) -> ToolResult:
    parts = list(result.parts)
    for clamp in clamps:
        part = parts[clamp.text]
        if isinstance(part, Text):
            parts[clamp.text] = replace(part, text=_shortened(part.text, clamp.head, clamp.tail, step))
    return replace(result, parts=tuple(parts))


def _shortened(text: str, head: int, tail: int, step: str) -> str:
    line = _line(len(text) - head - tail, step)
    return f"{text[:head]}\n{line}\n{text[len(text) - tail :]}" if head + tail else line


def _line(left_out: int, step: str) -> str:
    return f"[… {left_out:,} characters left out; all of it is in step {step} …]"
