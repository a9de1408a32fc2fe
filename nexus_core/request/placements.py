"""Placements: source, tokens and decision of each piece of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.history.shorten import REQUEST_BYTES_RULE
from nexus_core.history.truncation import split_history
from nexus_core.rendering import render_section
from nexus_core.request.input import get_recall_reason
from nexus_core.tokens.messages import count_tools
from nexus_core.types.base import blake2b
from nexus_core.types.budget import Decision
from nexus_core.types.prompt import Placement, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.history.truncation import HistoryItem
    from nexus_core.request.input import SectionEntry
    from nexus_core.request.prefix import ToolOffer
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.prompt import Section

ALWAYS_RULE = "always"
"""The rule of pieces that are never left out to save tokens."""
MAX_CACHED_PLACEMENTS = 100_000
"""Placements that are cached; then the cache is cleared."""
CLAMP_RULE = "truncation.tool_result_tokens"


def place_static(
    sections: Iterable[Section], offers: Iterable[ToolOffer], counter: CachingCounter
) -> tuple[Placement, ...]:
    """Return the placements of sections and tools, also of refused tools."""
    placed = [
        Placement(
            zone="static",
            kind=section.kind,
            name=section.id,
            title=section.title,
            source=section.source or Source(uri="plugin:nexus"),
            tokens=counter.count(render_section(section)),
            digest=section.digest,
            decision=_keep(ALWAYS_RULE, index),
        )
        for index, section in enumerate(sections)
    ]
    for index, each in enumerate(offers, len(placed)):
        tokens = count_tools(counter, [each.tool])
        decision = _keep(ALWAYS_RULE, index) if not each.refusal else _drop(each.refusal, index, tokens)
        placed.append(
            Placement(
                zone="static",
                kind="tool",
                name=each.tool.name,
                source=each.source,
                tokens=0 if each.refusal else tokens,
                digest=_compute_digest(repr(each.tool)),
                decision=decision,
            )
        )
    return tuple(placed)


def place_memories(sections: Iterable[Section], counter: CachingCounter) -> Iterator[Placement]:
    """Yield the placements of memories before the history."""
    for index, section in enumerate(sections):
        yield Placement(
            zone=section.zone,
            kind=section.kind,
            name=section.id,
            title=section.title,
            source=section.source or Source(uri="plugin:nexus"),
            tokens=counter.count(render_section(section)),
            digest=section.digest,
            decision=_keep(ALWAYS_RULE, index),
            reason=get_recall_reason(section),
        )


def place_pieces(
    prefix: tuple[Placement, ...],
    items: Sequence[HistoryItem],
    turn: str,
    *,
    dropped: Iterable[Decision],
    entries: Sequence[SectionEntry],
    known: dict[tuple[str, int, int], Placement],
) -> tuple[Placement, ...]:
    """Return the placements of a call in its order.

    Dropped pieces are placed where they would have been.

    Args:
        prefix: The placements of system prompt and tools.
        items: The messages that are sent.
        turn: The open turn.
        dropped: The parts of the history that were left out.
        entries: The sections of the input.
        known: Placements of earlier calls, by step, index in the step and index in the call.
    """
    history, current, progress = split_history(items, turn)
    return (
        *prefix,
        *map(_place_dropped, dropped),
        *_place_messages(history, 0, known),
        *_place_current(current, entries),
        *_place_messages(progress, len(history), known),
    )


def _place_messages(
    items: Sequence[HistoryItem], first: int, known: dict[tuple[str, int, int], Placement]
) -> Iterator[Placement]:
    """Yield the placements of messages; most are cached from the last call."""
    if len(known) > MAX_CACHED_PLACEMENTS:
        known.clear()
    for index, each in enumerate(items, first):
        key = each.step, each.place, index
        placement = known.get(key) if each.step and not each.masked_media else None
        if placement is None:
            placement = _place_message(each, index)
            if not each.masked_media:  # the media may be sent to another model
                known[key] = placement
        yield placement


def _place_current(current: HistoryItem | None, entries: Sequence[SectionEntry]) -> Iterator[Placement]:
    for index, each in enumerate(entries):
        yield Placement(
            zone="current",
            kind=each.kind,
            name=each.id,
            title=each.title,
            source=each.source,
            tokens=0 if each.refusal else each.tokens,
            digest=each.digest,
            decision=_drop(each.refusal, index, each.tokens) if each.refusal else _keep(ALWAYS_RULE, index),
            reason=each.reason,
        )
    section_tokens = sum(each.tokens for each in entries if not each.refusal)
    if current is not None:
        yield Placement(
            zone="current",
            kind="event",
            name=current.step,
            title=current.message.role,
            source=Source(uri=f"step:{current.step}") if current.step else Source(uri="caller:"),
            tokens=max(current.tokens - current.margin - section_tokens, 0),
            decision=_keep(ALWAYS_RULE, len(entries)),
        )


def _place_message(item: HistoryItem, index: int) -> Placement:
    decision = _keep("fits", index)
    if item.masked_media:
        decision = Decision(action="masked", rule=REQUEST_BYTES_RULE, first=index, last=index, tokens_after=item.tokens)
    elif item.is_shortened:
        decision = Decision(action="shortened", rule=CLAMP_RULE, first=index, last=index, tokens_after=item.tokens)
    return Placement(
        zone="history",
        kind="session",
        name=item.step,
        title=item.message.role,
        source=Source(uri=f"step:{item.step}", trust=item.trust) if item.step else Source(uri="plugin:nexus"),
        tokens=item.tokens,
        decision=decision,
    )


def _place_dropped(decision: Decision) -> Placement:
    title = f"{decision.last - decision.first + 1:,} earlier steps"
    source = Source(uri="step:")
    return Placement(zone="history", kind="session", name="", title=title, source=source, tokens=0, decision=decision)


def _keep(rule: str, index: int) -> Decision:
    return Decision(action="kept", rule=rule, first=index, last=index)


def _drop(rule: str, index: int, tokens: int) -> Decision:
    return Decision(action="dropped", rule=rule, first=index, last=index, tokens_before=tokens)


def _compute_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
