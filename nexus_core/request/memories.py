"""Memories in calls: recalled for new input, kept, and removed if forgotten."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import FileError
from nexus_core.history.truncation import HistoryItem
from nexus_core.ledger.codec import compute_blob_digest
from nexus_core.memory.forgotten_memories import read_forgotten_memories
from nexus_core.memory.recall import (
    MAX_MEMORIES,
    MEMORY_ID_PREFIX,
    MIN_MEMORY_SCORE,
    SOURCE_FINDING,
    RecallExclusions,
    build_memory_query,
    build_memory_sections,
    read_memory_options,
    recall_memories,
)
from nexus_core.rendering import render_current_section
from nexus_core.request.input import MAX_MEMORY_TOKENS, choose_memories, get_recall_reason, read_section_entries
from nexus_core.request.prefix import read_sections, write_sections
from nexus_core.types.ledger import NewStep
from nexus_core.types.memory import compute_memory_id
from nexus_core.types.messages import Message, Text
from nexus_core.types.payloads import ForgetPayload, RenderedPayload
from nexus_core.types.plugins import Finding
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from nexus_core.history.truncation import FitLimits, KeptItems
    from nexus_core.host.manager import Host
    from nexus_core.memory.recall import MemoryOptions
    from nexus_core.request.input import SectionEntry
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_context import StaticContext
    from nexus_core.thread.cache import MessageSizer, ThreadCache
    from nexus_core.thread.state import SessionState
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.memory import MemoryQuery
    from nexus_core.types.prompt import Section
    from nexus_core.types.request import Request

_EPISODE_TITLE = "Recalled episode"


class RecalledSections(NamedTuple):
    """The memories for an input as sections, and findings about sources that failed."""

    sections: Sequence[Section]
    findings: tuple[Finding, ...]


class EarlierMemories(NamedTuple):
    """Memories of earlier calls: the lead before the history, and removed ones."""

    lead: Sequence[Section] = ()
    unsent: Collection[str] = ()


def recall_sections(
    runtime: SessionRuntime,
    cache: ThreadCache | None,
    request: Request,
    static: StaticContext,
    history: Sequence[HistoryItem],
    *,
    known: EarlierMemories,
    count: Callable[[str], int],
) -> RecalledSections:
    """Recall memories for the message of a request.

    Args:
        runtime: Shared by all sessions of the Nexus.
        cache: The session's thread; None for a conversation that is not stored.
        request: The request of the turn.
        static: The static context of the session.
        history: The messages that the model reads before the input.
        known: The memories of earlier calls.
        count: Counts the tokens of a text.
    """
    text = request.message.content if request.message else ""
    options = read_memory_options(static.settings)
    if not text.strip() or not options.max_tokens:
        return RecalledSections((), ())
    try:
        forgotten = read_forgotten_memories(runtime.home)
    except FileError as error:
        what = f"nothing is recalled: {error.what} ({error.where})"
        return RecalledSections((), (Finding(SOURCE_FINDING, what),))
    query = _build_injection_query(text, options, request, static.permissions)
    context = find_known_context(cache, static, history, known)._replace(forgotten=forgotten.has)
    found = recall_memories(
        runtime.host,
        request,
        static.loaded,
        runtime.ledger,
        query,
        names=options.sources,
        embedder=options.embedder,
        known=context,
    )
    return RecalledSections(build_memory_sections(found.memories, options, count), found.findings)


def _build_injection_query(
    text: str, options: MemoryOptions, request: Request, permissions: Sequence[str] = ()
) -> MemoryQuery:
    query = build_memory_query(text, options, request, permissions)
    return replace(query, min_score=MIN_MEMORY_SCORE, limit=MAX_MEMORIES)


def find_injectable_ids(
    host: Host, request: Request, loaded: LoadedLayers, ledger: Ledger, text: str, *, count: Callable[[str], int]
) -> set[str]:
    """Return the ids of the memories that would be sent with a message of this text, if the rest of the call is small.

    Args:
        host: The plugin manager.
        request: The request of a session that has read no memory yet.
        loaded: The layers.
        ledger: The ledger.
        text: The text.
        count: Counts the tokens of a text.

    Raises:
        FileError: The list of forgotten memories cannot be read.
    """
    options = read_memory_options(loaded.settings)
    if not options.enabled or not options.max_tokens:
        return set()
    found = recall_memories(
        host,
        request,
        loaded,
        ledger,
        _build_injection_query(text, options, request),
        names=options.sources,
        embedder=options.embedder,
        known=RecallExclusions(forgotten=read_forgotten_memories(request.home).has),
    )
    sections = build_memory_sections(found.memories, options, count)
    limit = loaded.settings.get_number("budget.memory", MAX_MEMORY_TOKENS)
    return {each.id.removeprefix(MEMORY_ID_PREFIX) for each in choose_memories(sections, limit, count).sections}


def find_known_context(
    cache: ThreadCache | None, static: StaticContext, history: Sequence[HistoryItem], known: EarlierMemories
) -> RecallExclusions:
    """Return the files, steps and memories that the model has already read."""
    uris = {section.source.uri for section in static.sections if section.source and section.source.is_file}
    uris |= {f"step:{each.step}" for each in history if each.step}
    # A rendered input has another step than the message as it was given.
    uris |= {f"step:{each.turn}" for each in history if each.is_input and each.turn}
    sent = [(each.id, each.title, each.source.uri if each.source else "") for each in known.lead]
    if cache is not None:
        sent += [
            (entry["id"], entry["title"], entry["source"]["uri"])
            for item, entry in _list_injected_entries(cache, history)
            if build_unsent_key(item.turn, entry["id"]) not in known.unsent
        ]
    memories = {
        # Older versions made another id of an episode.
        compute_memory_id(uri) if title.startswith(_EPISODE_TITLE) else id_.removeprefix(MEMORY_ID_PREFIX)
        for id_, title, uri in sent
    }
    return RecallExclusions(uris, memories)


# ---- memories of earlier turns --------------------------------------------------------------------------------------


def find_injected_memories(
    cache: ThreadCache, items: Sequence[HistoryItem]
) -> Iterator[tuple[HistoryItem, SectionEntry]]:
    """Yield the memories in user messages, each with its message."""
    for item, stored in _list_injected_entries(cache, items):
        yield item, read_section_entries([stored])[0]


def _list_injected_entries(
    cache: ThreadCache, items: Sequence[HistoryItem]
) -> Iterator[tuple[HistoryItem, Mapping[str, Any]]]:
    """Yield the stored, unparsed entries of memories in user messages.

    Parsing them costs more than everything else.
    """
    for item in items:
        if item.is_input and item.step:
            payload = cache.get_step(item.step).payload
            for entry in payload.section_entries if isinstance(payload, RenderedPayload) else ():
                if str(entry["id"]).startswith(MEMORY_ID_PREFIX) and not entry.get("refusal"):
                    yield item, entry


def build_unsent_key(turn: str, section_id: str) -> str:
    """Return the name of a memory in a user message, as `unsent_memories` has it."""
    return f"{turn}/{section_id.removeprefix(MEMORY_ID_PREFIX)}"


def strip_unsent_memories(
    cache: ThreadCache, items: Sequence[HistoryItem], unsent: Collection[str], sizer: MessageSizer
) -> list[HistoryItem]:
    """Return the messages without the memories that are not sent any more.

    Args:
        cache: The session's thread.
        items: The messages.
        unsent: The memories to take out, as `unsent_memories` has them.
        sizer: Counts tokens and bytes of messages.
    """
    if not unsent:
        return [*items]
    stripped: dict[int, list[SectionEntry]] = {}
    for item, entry in find_injected_memories(cache, items):
        if build_unsent_key(item.turn, entry.id) in unsent:
            stripped.setdefault(id(item), []).append(entry)
    return [_strip_item(each, stripped[id(each)], sizer) if id(each) in stripped else each for each in items]


def list_sent_entries(entries: Sequence[SectionEntry], turn: str, unsent: Collection[str]) -> Sequence[SectionEntry]:
    """Return the entries of a user message without the unsent memories.

    Args:
        entries: The sections of the message.
        turn: Its turn.
        unsent: The memories to take out, as `unsent_memories` has them.
    """
    removed = [each for each in entries if not each.refusal and build_unsent_key(turn, each.id) in unsent]
    if any(each.span is None for each in removed):  # only the user's own text is left of the message
        return [each for each in entries if each.refusal]
    return [each for each in entries if each not in removed]


def list_recalled_entries(
    rendered: Step, unsent: Collection[str]
) -> tuple[Sequence[SectionEntry], Sequence[SectionEntry]]:
    """Return the memories that were sent with a rendered user message, and those of them that are not sent any more.

    Args:
        rendered: The step with the rendered message.
        unsent: The memories that later calls do not have, as `unsent_memories` has them.
    """
    payload = rendered.payload
    entries = [
        each
        for each in read_section_entries(list(payload.section_entries) if isinstance(payload, RenderedPayload) else [])
        if each.id.startswith(MEMORY_ID_PREFIX) and not each.refusal
    ]
    removed = [each for each in entries if build_unsent_key(rendered.turn, each.id) in unsent]
    return [each for each in entries if each not in removed], removed


def _strip_item(item: HistoryItem, entries: Sequence[SectionEntry], sizer: MessageSizer) -> HistoryItem:
    message, first = item.message, item.message.parts[0]
    spans = [each.span for each in entries if each.span is not None]
    if len(spans) < len(entries) or not isinstance(first, Text):
        message = item.original or message  # the renderer rewrote a memory: only the user's own text is certain
    else:
        text = first.text
        for start, end in sorted(spans, reverse=True):
            text = text[:start].rstrip("\n") + "\n\n" + text[end:].lstrip("\n")
        message = replace(message, parts=(replace(first, text=text), *message.parts[1:]))
    return item._replace(message=message, tokens=sizer.count_tokens(message), size=sizer.count_bytes(message))


# ---- memories before the history ------------------------------------------------------------------------------------

LEAD_TITLE = "# Recalled memories"


def build_memory_item(sections: Sequence[Section], role: str, sizer: MessageSizer) -> HistoryItem:
    """Return the message with the memories that come before the history.

    It belongs to no turn, so that no truncation leaves out a part of it.

    Args:
        sections: The memories.
        role: `system` or `user`.
        sizer: Counts tokens and bytes of messages.
    """
    text = "\n\n".join([LEAD_TITLE, *map(render_current_section, sections)])
    message = Message("system" if role == "system" else "user", text)
    return HistoryItem(message, sizer.count_tokens(message), size=sizer.count_bytes(message))


def prepend_memories(
    kept: KeptItems,
    stored: Sequence[Section],
    new: Sequence[Section],
    *,
    role: str,
    limits: FitLimits,
    sizer: MessageSizer,
) -> tuple[KeptItems, tuple[Section, ...]]:
    """Prepend as many memories to a call's messages as fit.

    Args:
        kept: The messages that fit.
        stored: The memories of earlier calls, which stay together: all or none.
        new: The memories that are recalled now, the best first.
        role: The role of their message.
        limits: The limits of the call.
        sizer: Counts tokens and bytes of messages.
    """
    for count in range(len(new), -1, -1):
        sections = (*stored, *new[:count])
        if not sections:
            break
        item = build_memory_item(sections, role, sizer)
        if kept.tokens + item.tokens <= limits.room and kept.bytes + item.size <= limits.bytes:
            return kept._replace(sent=[item, *kept.sent], taken=kept.taken + item.tokens), sections
    return kept, ()


# ---- forgetting -----------------------------------------------------------------------------------------------------


class InjectedMemory(NamedTuple):
    """A memory that a session has sent.

    Attributes:
        id: The id of the memory.
        title: Its heading.
        source: The step or file it came from.
        reason: Why it was recalled.
        session: The name of the session.
        step: The step that recorded it.
        turn: The turn of that step; "" for a memory before the history.
        is_sent: False if later calls do not have it any more.
        tokens: Its tokens in the user message; None for a memory before the history, which is counted with each call.
    """

    id: str
    title: str
    source: Source
    reason: str
    session: str
    step: str
    turn: str
    is_sent: bool
    tokens: int | None = None

    @property
    def section_id(self) -> str:
        """The id of the section that has it in a call."""
        return f"{MEMORY_ID_PREFIX}{self.id}"

    @property
    def place(self) -> str:
        """The step or the file with its lines."""
        lines = self.source.lines
        return self.source.uri if lines is None else f"{self.source.uri}:{lines[0]}-{lines[1]}"

    def to_json(self) -> dict[str, object]:
        """Return the memory as commands print it."""
        lines = None if self.source.lines is None else list(self.source.lines)
        return {**self._asdict(), "source": self.source.uri, "lines": lines}


def list_injected_memories(ledger: Ledger, record: SessionRecord) -> list[InjectedMemory]:
    """Return the memories that a session has sent, oldest first."""
    found: dict[tuple[str, str], InjectedMemory] = {}
    steps = [] if record.tip is None else ledger.thread(record.tip)
    unsent = set(steps[-1].payload.unsent_memories) if steps else set()
    # A step of another kind may have left some out.
    sent_lead = _read_lead(ledger, steps[-1].payload.memories) if steps else set()
    lead: set[str] = set()
    for step in steps:
        payload = step.payload
        if not isinstance(payload, RenderedPayload):
            continue
        for entry in read_section_entries(list(payload.section_entries)):
            if entry.id.startswith(MEMORY_ID_PREFIX) and not entry.refusal:
                is_sent = build_unsent_key(step.turn, entry.id) not in unsent
                name = entry.id.removeprefix(MEMORY_ID_PREFIX)
                found[step.turn, name] = InjectedMemory(
                    name,
                    entry.title,
                    entry.source,
                    entry.reason,
                    record.label,
                    step.id,
                    step.turn,
                    is_sent,
                    entry.tokens,
                )
        if payload.memories and payload.memories not in lead:
            lead.add(payload.memories)
            content = ledger.blob(payload.memories)
            for section in () if content is None else read_sections(content):
                is_sent = section.id in sent_lead
                name = section.id.removeprefix(MEMORY_ID_PREFIX)
                source, reason = section.source or Source(uri="plugin:nexus"), get_recall_reason(section)
                known = found.get(("", name))
                first = step.id if known is None else known.step
                found["", name] = InjectedMemory(name, section.title, source, reason, record.label, first, "", is_sent)
    return list(found.values())


def find_forgotten_since(ledger: Ledger, thread: Sequence[Step]) -> tuple[set[str], set[str]]:
    """Return the memories and steps that were forgotten after the first step of a thread."""
    ids: set[str] = set()
    steps: set[str] = set()
    for before, step in pairwise(thread):
        if isinstance(step.payload, ForgetPayload):
            steps.update(step.payload.forgotten_steps)
            # A compaction leaves out memories, too, which were not forgotten.
            unsent = {*step.payload.unsent_memories} - {*before.payload.unsent_memories}
            ids.update(key.rpartition("/")[2] for key in unsent)
            lead = _read_lead(ledger, before.payload.memories) - _read_lead(ledger, step.payload.memories)
            ids.update(name.removeprefix(MEMORY_ID_PREFIX) for name in lead)
    return ids, steps


def _read_lead(ledger: Ledger, digest: str) -> set[str]:
    """Return the ids of the sections before the history."""
    content = ledger.blob(digest) if digest else None
    return set() if content is None else {section.id for section in read_sections(content)}


def build_forget_step(
    ledger: Ledger, state: SessionState, forgotten: Collection[str], steps: Sequence[str] = ()
) -> tuple[NewStep, bytes] | None:
    """Return the step and blob by which a session stops sending memories.

    Args:
        ledger: The ledger of the session.
        state: Its state.
        forgotten: The ids of the memories.
        steps: The ids of steps of the session that no search finds any more.

    Returns:
        None if no later call would have one of them, and no step is named.
    """
    if state.record is None:
        return None
    injected = [each for each in list_injected_memories(ledger, state.record) if each.is_sent and each.id in forgotten]
    if not injected and not steps:
        return None
    unsent = {*state.newest.unsent_memories, *(build_unsent_key(each.turn, each.id) for each in injected if each.turn)}
    payload, blob = ForgetPayload(unsent_memories=tuple(sorted(unsent))), b""
    if steps:
        payload = payload.replace(forgotten_steps=tuple(steps))
    content = ledger.blob(state.newest.memories) if state.newest.memories else None
    if content is not None:
        ids = {f"{MEMORY_ID_PREFIX}{each}" for each in forgotten}
        kept = [section for section in read_sections(content) if section.id not in ids]
        blob = write_sections(kept) if kept else b""
        payload = payload.replace(memories=compute_blob_digest(blob) if blob else "")
    return NewStep(kind="forget", closes=state.open_turn is None, data=payload.to_json()), blob
