"""Placements: source, tokens and decision of each piece of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.requests import count_message_bytes, count_tool_bytes
from nexus_core.history.items import split_history
from nexus_core.history.media_placeholders import REQUEST_BYTES_RULE
from nexus_core.rendering import render_section
from nexus_core.tokens.messages import count_tools
from nexus_core.types.budget import Decision
from nexus_core.types.digest import blake2b
from nexus_core.types.messages import Message
from nexus_core.types.prompt import Placement, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.history.items import HistoryItem
    from nexus_core.request.prefix import Prefix
    from nexus_core.request.tools import ToolOffer
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.prompt import Section

ALWAYS_RULE = "always"
"""The rule of pieces that are never left out to save tokens."""
MAX_CACHED_PLACEMENTS = 100_000
"""Placements that are cached; then the cache is cleared."""
CLAMP_RULE = "truncation.tool_result_tokens"


class SectionEntry(NamedTuple):
    """A section of the input, as it is stored with the rendered message.

    Attributes:
        id, title, kind: As in the section.
        source: The file or plugin of the section.
        tokens: Tokens of the section, also if it was left out.
        digest: The digest of its text.
        refusal: The rule by which it was left out; "" if it is sent.
    """

    id: str
    title: str
    kind: str
    source: Source
    tokens: int
    digest: str
    refusal: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it is stored."""
        source = {"uri": self.source.uri, "plugin": self.source.plugin, "trust": self.source.trust}
        return {**self._asdict(), "source": source}


def read_section_entries(value: object) -> list[SectionEntry]:
    """Parse the stored entries of a rendered message."""
    rows = value if isinstance(value, list) else []
    return [SectionEntry(**{**each, "source": Source(**each["source"])}) for each in rows]


def build_section_entry(section: Section, tokens: int, refusal: str = "") -> SectionEntry:
    """Return the entry of a section that is sent, or left out by the rule `refusal`."""
    source = section.source or Source(uri="plugin:nexus")
    return SectionEntry(section.id, section.title, section.kind, source, tokens, section.digest, refusal)


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


MAX_CACHED_PREFIXES = 64
"""Prefixes of which sizes are cached; then the cache is cleared."""


class PrefixSizer:
    """Sizes of system prompts and tools by one counter, for all sessions.

    Args:
        counter: The token counter.
    """

    def __init__(self, counter: CachingCounter) -> None:
        self.counter = counter
        self._tokens: dict[str, dict[str, int]] = {}
        self._bytes: dict[str, dict[str, int]] = {}
        self._placements: dict[str, tuple[Sequence[ToolOffer], tuple[Placement, ...]]] = {}

    def count_tokens(self, prefix: Prefix) -> dict[str, int]:
        """Return the tokens of system prompt and tools."""
        cached = self._tokens.get(prefix.digest)
        if cached is None:
            _limit_cache(self._tokens)
            system = self.counter.count_messages([Message("system", prefix.system)]) if prefix.system else 0
            self._tokens[prefix.digest] = cached = {"system": system, "tools": count_tools(self.counter, prefix.tools)}
        return cached

    def count_bytes(self, prefix: Prefix) -> dict[str, int]:
        """Return the bytes of system prompt and tools in a request body."""
        cached = self._bytes.get(prefix.digest)
        if cached is None:
            _limit_cache(self._bytes)
            system = count_message_bytes(Message("system", prefix.system)) if prefix.system else 0
            self._bytes[prefix.digest] = cached = {"system": system, "tools": count_tool_bytes(prefix.tools)}
        return cached

    def place(self, digest: str, sections: Iterable[Section], offers: Sequence[ToolOffer]) -> tuple[Placement, ...]:
        """Return the placements of the static zone, cached by the digest of the prefix."""
        cached = self._placements.get(digest)
        if cached is None or cached[0] is not offers:
            _limit_cache(self._placements)
            self._placements[digest] = cached = offers, place_static(sections, offers, self.counter)
        return cached[1]


def _limit_cache(cache: dict[str, Any]) -> None:
    if len(cache) >= MAX_CACHED_PREFIXES:
        cache.clear()
