"""Sessions as files of other agents, which then continue the conversation.

    session → Transcript → PortableConversation → the writer of a format → text

`read_session_transcript` reads a session in the form in which transcripts are read. `export_transcript` repairs what
would make the file invalid: every tool call gets one result, a result without a call becomes a message, ids and tool
names get characters that every API accepts. It leaves out reasoning and blocks of another provider, and everything else
that the format cannot contain; what was left out or changed is counted by kind.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.calls import serialize_compact_json
from nexus_core.dialects.media import encode_text_base64, get_document_text, parse_data_url
from nexus_core.errors import MessageError
from nexus_core.history.groups import UnansweredCalls, is_session_start
from nexus_core.text.safety import repair_surrogates
from nexus_core.text.secrets import redact, redact_json
from nexus_core.thread.cache import NullSizer
from nexus_core.thread.projection import project_steps
from nexus_core.transcripts.base import LineReport, Transcript, TranscriptCompaction, TranscriptEntry
from nexus_core.transcripts.writer import (
    ExportReport,
    PortableCompaction,
    PortableConversation,
    PortableMessage,
    PortableReply,
    format_iso_time,
    replace_media,
)
from nexus_core.transfer.transcript_steps import parse_timestamp
from nexus_core.types.base import blake2b, dataclass
from nexus_core.types.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from nexus_core.types.payloads import CompactionPayload, ReplyPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.history.truncation import HistoryItem
    from nexus_core.tokens.prices import PriceList
    from nexus_core.transcripts.base import EntryKind
    from nexus_core.transcripts.writer import PortableItem, ReplyPart, ResumeHint, TranscriptWriter
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.messages import JSON, Part, ResultPart, Stop, Tool, Usage

MAX_ISO_TIME_MS = 253_402_300_799_999
"""The end of the year 9999, the last that ISO 8601 writes with four digits."""
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Call ids that every API accepts; OpenAI's are the shortest."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MAX_NAME_CHARACTERS = 128
_NO_RESULT = "[no result: the tool call was interrupted]"
_KINDS: Mapping[str, EntryKind] = {
    "injected": "injected",
    "summary": "summary",
    "branch-summary": "branch-summary",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentExport:
    """A session as the file of another agent.

    Attributes:
        text: The content of the file.
        hint: Where the agent expects the file, and the command that continues the conversation.
        messages: Messages and replies in it.
        calls: Tool calls in it, each with a result.
        left_out: What the file lacks, by kind.
        changed: What the file has in another form, by kind.
    """

    text: str
    hint: ResumeHint
    messages: int
    calls: int
    left_out: Mapping[str, int]
    changed: Mapping[str, int]


def export_transcript(
    transcript: Transcript,
    writer: TranscriptWriter,
    *,
    name: str = "",
    cwd: str = "",
    with_secrets: bool = True,
    prices: PriceList | None = None,
) -> AgentExport:
    """Write the main path of a transcript in the format of another agent.

    Args:
        transcript: The transcript. Its branches are left out: each is a session of its own after an import.
        writer: The writer of the format.
        name: Name of the session, on which all ids depend; "" for the id of the transcript.
        cwd: Working directory, if the transcript does not name one.
        with_secrets: False to redact keys, tokens and passwords.
        prices: Prices of models; None for a file without costs.

    Raises:
        MessageError: There is no message to write.
    """
    report = ExportReport()
    report.count_left_out("branch", len(transcript.branches))
    if not with_secrets:
        redactor = _TranscriptRedactor()
        transcript, name, cwd = (
            redactor.redact_transcript(transcript),
            redactor.redact_text(name),
            redactor.redact_text(cwd),
        )
        report.count_changed("secret", redactor.counts.total())
    system = "\n\n".join(_repair_text(each.content, report) for each in transcript.system)
    if system and not writer.writes_prompt:
        report.count_left_out("system-prompt")
    conversation = PortableConversation(
        name=name or transcript.id,
        cwd=transcript.cwd or cwd,
        items=_ConversationBuilder(writer, report, prices).build(transcript),
        system=system,
        tools=transcript.tools,
    )
    if not conversation.items:
        raise MessageError(f"session {conversation.name!a} has no message that another agent could continue")
    replies = [item for item in conversation.items if isinstance(item, PortableReply)]
    _count_lost_usage(replies, writer, report)
    return AgentExport(
        text=writer.write(conversation, report),
        hint=writer.locate(conversation),
        messages=sum(not isinstance(item, PortableCompaction) for item in conversation.items),
        calls=sum(len(reply.results) for reply in replies),
        left_out=dict(sorted(report.left_out.items())),
        changed=dict(sorted(report.changed.items())),
    )


def _count_lost_usage(replies: Iterable[PortableReply], writer: TranscriptWriter, report: ExportReport) -> None:
    """Count the replies whose cost, or tokens that decide about it, the format has no field for."""
    for reply in replies:
        if reply.cost is not None and not writer.writes_cost:
            report.count_left_out("cost")
        counts = asdict(reply.usage) if reply.usage is not None else {}
        lost = {"cache_write_tokens", "cache_write_1h_tokens"} - writer.cache_write_counts
        if any(counts.get(name) for name in lost):
            report.count_left_out("cache-write-tokens")


# ---- sessions -----------------------------------------------------------------------------------------------------


def read_session_transcript(ledger: Ledger, record: SessionRecord) -> Transcript:
    """Return a session as a transcript, with all compacted messages.

    User messages are those that were typed, before Nexus rendered them; tool results are whole. Messages that were
    taken back, and the one about the session's start, are not in it.

    Raises:
        LedgerError: A part of it is missing or damaged.
    """
    steps = [] if record.tip is None else list(ledger.thread(record.tip))
    by_id = {step.id: step for step in steps}
    items = _drop_own_messages(project_steps(steps, NullSizer()))
    positions = [by_id[item.step].position for item in items]
    return Transcript(
        format="nexus",
        api="neutral",
        entries=tuple(_build_entry(item, by_id[item.step]) for item in items),
        report=LineReport(lines=len(steps), outcomes={}),
        id=record.label,
        cwd=record.payload.cwd or "",
        asked=record.payload.model or "",
        compactions=tuple(_build_compaction(each, by_id, positions) for each in _find_compactions(steps, by_id)),
    )


def _drop_own_messages(items: Sequence[HistoryItem]) -> list[HistoryItem]:
    """Return the items without what Nexus itself added.

    That is the message about the session's start, and all but one of a rendered input, whose original is one message.
    """
    found: list[HistoryItem] = []
    for item in items:
        is_repeated = item.original is not None and bool(found) and found[-1].original is item.original
        if not is_repeated and not is_session_start(item.message):
            found.append(item)
    return found


def _build_entry(item: HistoryItem, step: Step) -> TranscriptEntry:
    payload = step.payload
    message = item.original or step.messages[item.place]
    kind = str(payload.kinds[item.place]) if item.place < len(payload.kinds) else ""
    is_reply = isinstance(payload, ReplyPayload) and message.role == "assistant"
    is_last = not any(each.role == "assistant" for each in step.messages[item.place + 1 :])
    stop: Any = payload.stop if isinstance(payload, ReplyPayload) and is_reply and is_last else ""
    return TranscriptEntry(
        message=message,
        lines=(step.position + 1,),
        ids=(step.id,),
        kind=_KINDS.get(kind, "said"),
        time=format_iso_time(min(step.created, MAX_ISO_TIME_MS)),
        model=(payload.model or "") if is_reply else "",
        reply=step.id if step.kind == "reply" else "",
        stop=stop,
        usage=payload.usage if isinstance(payload, ReplyPayload) and is_reply and is_last else None,
    )


def _find_compactions(steps: Sequence[Step], by_id: Mapping[str, Step]) -> list[Step]:
    """Return the compactions that apply to the newest step, and before it to each other."""
    found: list[Step] = []
    name = steps[-1].compaction if steps else None
    while name is not None and name in by_id:
        step = by_id[name]
        found.append(step)
        before = by_id.get(step.parent or "")
        name = before.compaction if before else None
    return found[::-1]


def _build_compaction(step: Step, by_id: Mapping[str, Step], positions: Sequence[int]) -> TranscriptCompaction:
    payload = step.payload
    at = sum(position < step.position for position in positions)
    summary, kept_from, pinned = "", at, []
    if isinstance(payload, CompactionPayload):
        summary = payload.summary
        first = by_id.get(payload.first_kept or "")
        if first is not None:
            kept_from = min(at, sum(position < first.position for position in positions))
        pinned = [message for name in payload.pinned if name in by_id for message in by_id[name].messages]
    messages = step.messages or ((Message("user", summary),) if summary else ())
    line = step.position + 1
    context = [
        TranscriptEntry(message=each, lines=(line,), kind="summary" if summary and summary in each.content else "said")
        for each in (*messages, *pinned)
    ]
    return TranscriptCompaction(
        line=line,
        at=at,
        kept_from=kept_from,
        summary=summary,
        context=tuple(context),
        id=step.id,
        time=format_iso_time(min(step.created, MAX_ISO_TIME_MS)),
        tokens_before=payload.tokens_before if isinstance(payload, CompactionPayload) else None,
    )


# ---- redaction ----------------------------------------------------------------------------------------------------


class _TranscriptRedactor:
    """Removes secrets from everything that is text of a conversation. Media and signatures stay as they are.

    Attributes:
        counts: Secrets removed, by kind.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._ids: dict[str, str] = {}  # new ids of the calls whose id has a secret

    def redact_transcript(self, transcript: Transcript) -> Transcript:
        return replace(
            transcript,
            id=self.redact_text(transcript.id),
            cwd=self.redact_text(transcript.cwd),
            entries=tuple(map(self._redact_entry, transcript.entries)),
            compactions=tuple(map(self._redact_compaction, transcript.compactions)),
            system=tuple(map(self._redact_message, transcript.system)),
            tools=tuple(map(self._redact_tool, transcript.tools)),
        )

    def redact_text(self, text: str) -> str:
        redacted = redact(text)
        self.counts.update(redacted.counts)
        return redacted.text

    def _redact_entry(self, entry: TranscriptEntry) -> TranscriptEntry:
        return entry._replace(message=self._redact_message(entry.message), model=self.redact_text(entry.model))

    def _redact_compaction(self, compaction: TranscriptCompaction) -> TranscriptCompaction:
        context = tuple(map(self._redact_entry, compaction.context))
        return replace(compaction, summary=self.redact_text(compaction.summary), context=context)

    def _redact_tool(self, tool: Tool) -> Tool:
        return replace(
            tool,
            name=self.redact_text(tool.name),
            description=self.redact_text(tool.description),
            parameters=self._redact_fields(tool.parameters),
            extra=self._redact_fields(tool.extra),
        )

    def _redact_message(self, message: Message) -> Message:
        parts = tuple(map(self._redact_part, message.parts))
        name, extra = self.redact_text(message.name), self._redact_fields(message.extra)
        return replace(message, parts=parts, name=name, extra=extra)

    def _redact_part(self, part: Part) -> Part:
        if isinstance(part, Opaque):
            return replace(part, block=self._redact_fields(part.block))
        if isinstance(part, Image | File):
            return self._redact_media(part)
        extra = self._redact_fields(part.extra)
        if isinstance(part, Text):
            return replace(part, text=self.redact_text(part.text), extra=extra)
        if isinstance(part, Reasoning):
            text = self.redact_text(part.text)
            # A signature is valid for the exact text only.
            is_same = text == part.text and extra is part.extra
            return part if is_same else Reasoning(text=text, api=part.api)
        if isinstance(part, ToolCall):
            name, call_id = self.redact_text(part.name), self._redact_id(part.id)
            raw = part.raw if part.raw is None else self.redact_text(part.raw)
            return ToolCall(call_id, name, self._redact_fields(part.arguments), raw, extra)
        inner: Any = tuple(map(self._redact_part, part.parts))
        name, call_id = self.redact_text(part.name), self._redact_id(part.call_id)
        return ToolResult(call_id, inner, name, part.is_error, extra)

    def _redact_media(self, part: Image | File) -> Image | File:
        text = get_document_text(part)
        redacted: Image | File = replace(
            part,
            # Base64 that happens to look like a key is none.
            url=part.url if parse_data_url(part.url) else self.redact_text(part.url),
            data=part.data if text is None else encode_text_base64(self.redact_text(text)),
            file_id=self.redact_text(part.file_id),
            extra=self._redact_fields(part.extra),
        )
        return replace(redacted, name=self.redact_text(redacted.name)) if isinstance(redacted, File) else redacted

    def _redact_fields(self, fields: JSON) -> JSON:
        """Return an object without secrets; the same if it has none."""
        before = self.counts.total()
        redacted: JSON = redact_json(dict(fields), self.counts)
        return fields if self.counts.total() == before else redacted

    def _redact_id(self, call_id: str) -> str:
        """Return the id of a call without secrets, which stays different from all others."""
        if self.redact_text(call_id) == call_id:
            return call_id
        return self._ids.setdefault(call_id, f"call_redacted_{len(self._ids) + 1}")


# ---- repair -------------------------------------------------------------------------------------------------------


class _ReplyDraft:
    """A reply whose results are not complete yet, and its index among the items."""

    def __init__(self, entry: TranscriptEntry, time: int, index: int) -> None:
        self.index = index
        self.key = (entry.reply, entry.model)
        self.time = time
        self.parts: list[ReplyPart] = []
        self.results: dict[str, ToolResult] = {}  # by call id
        self.model = entry.model
        self.api = self.stop = ""
        self.usage: Usage | None = None

    def add(self, entry: TranscriptEntry, parts: Iterable[ReplyPart], api: str) -> None:
        self.parts += parts
        self.api = self.api or api
        self.stop = entry.stop or self.stop
        if entry.usage is not None and entry.usage.total_tokens:  # other programs write 0 for unknown
            self.usage = entry.usage

    def build(self, report: ExportReport, prices: PriceList | None) -> PortableReply:
        results = []
        for part in self.parts:
            if isinstance(part, ToolCall):
                if part.id not in self.results:
                    report.count_changed("open-call")
                results.append(self.results.get(part.id) or ToolResult(part.id, _NO_RESULT, part.name, is_error=True))
        stop: Stop = self.stop  # type: ignore[assignment] # it is that of an entry
        cost = prices.compute(self.model, self.usage) if prices is not None and self.usage is not None else None
        return PortableReply(
            tuple(self.parts),
            tuple(results),
            self.time,
            self.model,
            self.api,
            "tools" if results else stop,
            self.usage,
            None if cost is None or cost.unpriced_calls else cost,
        )


class _PendingCall(NamedTuple):
    """A tool call in a draft that waits for its result."""

    draft: _ReplyDraft
    call: ToolCall


class _ConversationBuilder:
    """Builds the items of a conversation for a writer."""

    def __init__(self, writer: TranscriptWriter, report: ExportReport, prices: PriceList | None) -> None:
        self._writer = writer
        self._report = report
        self._prices = prices
        self._items: list[PortableMessage | PortableCompaction | _ReplyDraft] = []
        self._time = 0
        self._ids: set[str] = set()  # call ids in the file
        self._answered: set[str] = set()  # call ids in the transcript that have a result
        self._batch = UnansweredCalls()  # calls since the last message that is not a reply
        self._batch_calls: list[_PendingCall] = []
        self._older: defaultdict[str, deque[_PendingCall]] = defaultdict(deque)  # earlier calls, by their id
        self._is_batch_open = False
        self._compacted = 0  # items up to the last compaction, which no later one keeps

    def build(self, transcript: Transcript) -> tuple[PortableItem, ...]:
        times = (parse_timestamp(entry.time) for entry in transcript.entries)
        self._time = min(next((time for time in times if time is not None), 0), MAX_ISO_TIME_MS)
        indexes: list[int] = []  # the item of each entry
        compactions = deque(sorted(transcript.compactions, key=lambda each: each.at))
        for number, entry in enumerate(transcript.entries):
            while compactions and compactions[0].at <= number:
                self._add_compaction(compactions.popleft(), transcript.entries, indexes)
            indexes.append(self._add_entry(entry))
        for compaction in compactions:
            self._add_compaction(compaction, transcript.entries, indexes)
        return tuple(
            item.build(self._report, self._prices) if isinstance(item, _ReplyDraft) else item for item in self._items
        )

    def _advance_time(self, text: str) -> int:
        found = parse_timestamp(text) or 0
        self._time = min(max(self._time, found), MAX_ISO_TIME_MS)
        return self._time

    def _add_entry(self, entry: TranscriptEntry) -> int:
        """Add the items of an entry. Returns the index of the first, or of that of its first tool call."""
        index = len(self._items)
        if entry.message.role == "assistant":
            return self._add_reply(entry)
        self._is_batch_open = False
        rest: list[Part] = []
        for part in entry.message.parts:
            if isinstance(part, ToolResult):
                draft = self._add_result(part)
                if draft is None:
                    rest += self._describe_orphan(part)
                else:
                    index = min(index, draft.index)
            else:
                rest.append(part)
        if rest:
            self._add_message(entry, rest)
        return index

    def _add_message(self, entry: TranscriptEntry, given: Sequence[Part]) -> None:
        is_system = entry.message.role == "system"
        if is_system and not self._writer.writes_system:
            self._report.count_changed("system-message")
        parts = self._clean_input(given)
        if not parts:
            return
        kind: EntryKind = entry.kind
        if kind == "said" and (entry.message.role != "user"):
            kind = "injected"
        role: Any = "system" if is_system and self._writer.writes_system else "user"
        self._items.append(PortableMessage(role, tuple(parts), kind, self._advance_time(entry.time)))

    def _add_reply(self, entry: TranscriptEntry) -> int:
        time = self._advance_time(entry.time)
        is_native = entry.message.api in self._writer.block_apis
        parts: list[ReplyPart] = []
        pending: list[tuple[ToolCall, ToolCall]] = []
        for part in entry.message.parts:
            if isinstance(part, ToolCall):
                call = self._clean_call(part, is_native=is_native)
                pending.append((part, call))
                parts.append(call)
            else:
                parts += self._clean_reply_part(part, is_native=is_native)
        if not parts:
            if all(isinstance(part, Text) for part in entry.message.parts):  # others are counted as what they are
                self._report.count_left_out("empty-reply")
            return len(self._items)
        last = self._items[-1] if self._items else None
        if not isinstance(last, _ReplyDraft) or last.key != (entry.reply, entry.model) or last.results:
            last = _ReplyDraft(entry, time, len(self._items))
            self._items.append(last)
        elif any(isinstance(part, Text) for part in last.parts):
            self._report.count_changed("merged-reply")
        reasoning = next((part.api for part in parts if isinstance(part, Reasoning)), "")
        last.add(entry, parts, entry.message.api or reasoning)
        self._open_calls(last, pending)
        return len(self._items) - 1

    # ---- tool calls -------------------------------------------------------------------------------------------

    def _open_calls(self, draft: _ReplyDraft, calls: Iterable[tuple[ToolCall, ToolCall]]) -> None:
        """Add calls that wait for their results: each as it is in the transcript, and as it is written."""
        if not self._is_batch_open:
            self._batch, self._batch_calls, self._is_batch_open = UnansweredCalls(), [], True
        for given, call in calls:
            pending = _PendingCall(draft, call)
            self._batch.add(given)
            self._batch_calls.append(pending)
            if given.id:
                self._older[given.id].append(pending)

    def _add_result(self, result: ToolResult) -> _ReplyDraft | None:
        """Add a result to the reply with its call. Returns None if there is no call without a result."""
        index = self._batch.take(result)
        pending = None if index is None else self._batch_calls[index]
        if pending is None:
            pending = next((each for each in self._older[result.call_id] if not _is_answered(each)), None)
            if pending is None:
                return None
            self._report.count_changed("late-result")
        call = pending.call
        parts: Any = tuple(self._clean_input(result.parts))
        extra = dict(result.extra) if "responses" in self._writer.block_apis else {}
        pending.draft.results[call.id] = ToolResult(call.id, parts, call.name, result.is_error, extra)
        self._answered.add(result.call_id)
        return pending.draft

    def _describe_orphan(self, result: ToolResult) -> list[Part]:
        """Return a result without a call as parts of a message."""
        self._report.count_changed("duplicate-result" if result.call_id in self._answered else "orphan-result")
        name = result.name or result.call_id or "unknown"
        return [Text(f"[result of a tool call that is not in this conversation: {name}]"), *result.parts]

    def _clean_call(self, call: ToolCall, *, is_native: bool) -> ToolCall:
        """Return a call with a valid and unique id and a valid name."""
        name = call.name
        if not _TOOL_NAME.fullmatch(name):
            self._report.count_changed("tool-name")
            name = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_MAX_NAME_CHARACTERS] or "unknown"
        call_id = call.id
        if not _CALL_ID.fullmatch(call_id) or call_id in self._ids:
            if call_id:
                self._report.count_changed("call-id")
            call_id = f"call_{_digest_text(f'{len(self._ids)} {call.id} {call.name}')}"
        self._ids.add(call_id)
        raw = call.raw if call.raw is None else _repair_text(call.raw, self._report)
        arguments = _repair_json(dict(call.arguments), self._report)
        return ToolCall(call_id, name, arguments, raw, dict(call.extra) if is_native else {})

    # ---- parts ------------------------------------------------------------------------------------------------

    def _clean_reply_part(self, part: Part, *, is_native: bool) -> list[ReplyPart]:
        """Return a part of a reply as the program can send it back, [] if it cannot."""
        writer = self._writer
        if isinstance(part, Text):
            text = _repair_text(part.text, self._report)
            return [Text(text, dict(part.extra) if is_native else {})] if text.strip() else []
        if isinstance(part, Reasoning):
            if writer.keeps_reasoning_text and part.text:
                return [Reasoning(text=_repair_text(part.text, self._report), api=part.api)]
            is_signed = bool(part.signature or part.encrypted) or not writer.needs_signature
            if part.api in writer.reasoning_apis and is_signed:
                return [part]
            self._report.count_left_out("reasoning")
        elif isinstance(part, Opaque):
            if part.api in writer.block_apis:
                return [part]
            self._report.count_left_out("block")
        elif isinstance(part, Image | File):  # no format has images of the model
            cleaned = replace_media([part], self._report, lambda _part: False)
            return [each for each in cleaned if isinstance(each, Text)]
        elif isinstance(part, ToolResult):  # of a tool that the provider ran
            self._report.count_left_out("provider-tool-result")
        return []

    def _clean_input(self, given: Iterable[Part | ResultPart]) -> list[Any]:
        """Return the parts of a message or a tool result as the format can contain them."""
        found: list[Any] = []
        for part in given:
            if isinstance(part, Text):
                text = _repair_text(part.text, self._report)
                found += [Text(text)] if text.strip() else []
            elif isinstance(part, Image | File):
                found += replace_media([part], self._report, self._writer.accepts)
            elif isinstance(part, Opaque):
                if part.api in self._writer.block_apis:
                    found.append(part)
                else:
                    self._report.count_changed("block")
                    found.append(Text(_repair_text(serialize_compact_json(part.block), self._report)))
            elif isinstance(part, Reasoning):
                self._report.count_left_out("reasoning")
            elif isinstance(part, ToolCall):
                self._report.count_changed("misplaced-call")
                found.append(Text(f"[tool call: {part.name} {serialize_compact_json(part.arguments)}]"))
        return found

    # ---- compactions ------------------------------------------------------------------------------------------

    def _add_compaction(
        self, compaction: TranscriptCompaction, entries: Sequence[TranscriptEntry], indexes: Sequence[int]
    ) -> None:
        """Add a compaction whose context is one summary, and the items that the model still reads."""
        at = min(compaction.at, len(indexes))
        context = list(compaction.context)
        kept_from = min(compaction.kept_from, at)
        if kept_from == at:
            copied = _count_copies(context, entries[:at])
            kept_from, context = at - copied, context[: len(context) - copied]
        texts = [text for entry in context for text in self._describe_context(entry.message)]
        summary = "\n\n".join(texts) or _repair_text(compaction.summary, self._report)
        here = len(self._items)
        self._is_batch_open = False
        if not summary:
            if kept_from == at:
                self._report.count_left_out("compaction-without-summary")
            return
        before = max(
            (index + 1 for index, each in enumerate(self._items) if isinstance(each, PortableCompaction)), default=0
        )
        kept = min(max(indexes[kept_from], before), here) if kept_from < at else here
        time = self._advance_time(compaction.time)
        self._items.append(PortableCompaction(summary, kept, time, compaction.tokens_before))

    def _describe_context(self, message: Message) -> list[str]:
        """Return the texts of a message in a compaction. Calls, results and media become texts."""
        found = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                found += [each.text for each in self._clean_input(part.parts) if isinstance(each, Text)]
            else:
                found += [each.text for each in self._clean_input([part]) if isinstance(each, Text)]
        return found


def _is_answered(pending: _PendingCall) -> bool:
    return pending.call.id in pending.draft.results


def _count_copies(context: Sequence[TranscriptEntry], entries: Sequence[TranscriptEntry]) -> int:
    """Return how many entries at the end of a compaction's context are copies of the entries before it."""
    number = 0
    while number < min(len(context), len(entries)) and context[-1 - number].kind != "summary":
        if _outline_message(context[-1 - number].message) != _outline_message(entries[-1 - number].message):
            break
        number += 1
    return number


def _outline_message(message: Message) -> list[tuple[str, ...]]:
    """Return what identifies the content of a message: its texts, calls and results."""
    found: list[tuple[str, ...]] = []
    for part in message.parts:
        if isinstance(part, Text):
            found.append(("text", part.text))
        elif isinstance(part, ToolCall):
            found.append(("call", part.id, part.name))
        elif isinstance(part, ToolResult):
            found.append(("result", part.call_id, part.text))
    return found


def _repair_text(text: str, report: ExportReport) -> str:
    repaired = repair_surrogates(text)
    if repaired != text:
        report.count_changed("lone-surrogate")
    return repaired


def _repair_json(value: Any, report: ExportReport) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, str):
        return _repair_text(value, report)
    if isinstance(value, dict):
        return {_repair_text(str(key), report): _repair_json(each, report) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_repair_json(each, report) for each in value]
    return value


def _digest_text(text: str) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=12).hexdigest()
