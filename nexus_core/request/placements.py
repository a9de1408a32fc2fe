"""Where each piece of a call comes from, what it takes, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.history.items import split_history
from nexus_core.history.media_placeholders import REQUEST_BYTES_RULE
from nexus_core.rendering import render_section
from nexus_core.tokens.messages import count_tools
from nexus_core.types.budget import Decision
from nexus_core.types.digest import blake2b
from nexus_core.types.prompt import Placement, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.history.items import HistoryItem
    from nexus_core.request.tools import ToolOffer
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.prompt import Section

ALWAYS_RULE = "always"
"""The rule of what is never left out for want of room."""
MAX_CACHED_PLACEMENTS = 100_000
"""So many placements are remembered."""
CLAMP_RULE = "truncation.tool_result_tokens"


class SectionEntry(NamedTuple):
    """A section of the current zone, as it is written down with the message that tells it.

    Attributes:
        id, title, kind: The section's.
        source: Where it comes from.
        tokens: What it takes, or would take.
        digest: The address of its text.
        refusal: The rule by which it was left out; "" where it is told.
    """

    id: str
    title: str
    kind: str
    source: Source
    tokens: int
    digest: str
    refusal: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is written down."""
        source = {"uri": self.source.uri, "plugin": self.source.plugin, "trust": self.source.trust}
        return {**self._asdict(), "source": source}


def read_section_entries(value: object) -> list[SectionEntry]:
    """What was written down about the sections of a message."""
    written = value if isinstance(value, list) else []
    return [SectionEntry(**{**each, "source": Source(**each["source"])}) for each in written]


def build_section_entry(section: Section, tokens: int, refusal: str = "") -> SectionEntry:
    """A section that is told, or left out by a rule."""
    source = section.source or Source(uri="plugin:nexus")
    return SectionEntry(section.id, section.title, section.kind, source, tokens, section.digest, refusal)


def place_static(
    sections: Iterable[Section], offered: Iterable[ToolOffer], counter: CachingCounter
) -> tuple[Placement, ...]:
    """Sections and tools of an epoch; of the tools also those that do not reach the model."""
    placed = [
        Placement(
            zone="static",
            kind=section.kind,
            name=section.id,
            title=section.title,
            source=section.source or Source(uri="plugin:nexus"),
            tokens=counter.count(render_section(section)),
            digest=section.digest,
            decision=_kept(ALWAYS_RULE, place),
        )
        for place, section in enumerate(sections)
    ]
    for place, each in enumerate(offered, len(placed)):
        tokens = count_tools(counter, [each.tool])
        decision = _kept(ALWAYS_RULE, place) if not each.refusal else _dropped(each.refusal, place, tokens)
        placed.append(
            Placement(
                zone="static",
                kind="tool",
                name=each.tool.name,
                source=each.source,
                tokens=0 if each.refusal else tokens,
                digest=_digest(repr(each.tool)),
                decision=decision,
            )
        )
    return tuple(placed)


def place_pieces(
    prefix: tuple[Placement, ...],
    items: Sequence[HistoryItem],
    turn: str,
    *,
    dropped: Iterable[Decision],
    entries: Sequence[SectionEntry],
    known: dict[tuple[str, int, int], Placement],
) -> tuple[Placement, ...]:
    """Return the placements of a call in its order; dropped pieces where they would have been.

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
        *map(_left_out, dropped),
        *_place_messages(history, 0, known),
        *_place_current(current, entries),
        *_place_messages(progress, len(history), known),
    )


def _place_messages(
    sent: Sequence[HistoryItem], first: int, known: dict[tuple[str, int, int], Placement]
) -> Iterator[Placement]:
    """Most messages stand where they stood in the call before."""
    if len(known) > MAX_CACHED_PLACEMENTS:
        known.clear()
    for place, each in enumerate(sent, first):
        key = each.step, each.place, place
        placement = known.get(key) if each.step and not each.masked_media else None
        if placement is None:
            placement = _placed(each, place)
            if not each.masked_media:  # it was shown before, or will be for another model
                known[key] = placement
        yield placement


def _place_current(current: HistoryItem | None, entries: Sequence[SectionEntry]) -> Iterator[Placement]:
    for place, each in enumerate(entries):
        yield Placement(
            zone="current",
            kind=each.kind,
            name=each.id,
            title=each.title,
            source=each.source,
            tokens=0 if each.refusal else each.tokens,
            digest=each.digest,
            decision=_dropped(each.refusal, place, each.tokens) if each.refusal else _kept(ALWAYS_RULE, place),
        )
    told = sum(each.tokens for each in entries if not each.refusal)
    if current is not None:
        yield Placement(
            zone="current",
            kind="event",
            name=current.step,
            title=current.message.role,
            source=Source(uri=f"step:{current.step}") if current.step else Source(uri="caller:"),
            tokens=max(current.tokens - current.margin - told, 0),
            decision=_kept(ALWAYS_RULE, len(entries)),
        )


def _placed(sent: HistoryItem, place: int) -> Placement:
    decision = _kept("fits", place)
    if sent.masked_media:
        decision = Decision(action="masked", rule=REQUEST_BYTES_RULE, first=place, last=place, tokens_after=sent.tokens)
    elif sent.is_shortened:
        decision = Decision(action="shortened", rule=CLAMP_RULE, first=place, last=place, tokens_after=sent.tokens)
    return Placement(
        zone="history",
        kind="session",
        name=sent.step,
        title=sent.message.role,
        source=Source(uri=f"step:{sent.step}", trust=sent.trust) if sent.step else Source(uri="plugin:nexus"),
        tokens=sent.tokens,
        decision=decision,
    )


def _left_out(decision: Decision) -> Placement:
    title = f"{decision.last - decision.first + 1:,} earlier steps"
    source = Source(uri="step:")
    return Placement(zone="history", kind="session", name="", title=title, source=source, tokens=0, decision=decision)


def _kept(rule: str, place: int) -> Decision:
    return Decision(action="kept", rule=rule, first=place, last=place)


def _dropped(rule: str, place: int, tokens: int) -> Decision:
    return Decision(action="dropped", rule=rule, first=place, last=place, tokens_before=tokens)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
