"""Collector for readers of logs: entries in file order, subagents, compactions and unknown types.

Most programs write a conversation as a log without forks. Their readers differ in what a line means, and not in what
becomes of it: this is the common part.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.calls import parse_arguments
from nexus_core.dialects.media import parse_data_url
from nexus_core.errors import MessageError
from nexus_core.transcripts.base import (
    JsonLine,
    Transcript,
    TranscriptBranch,
    TranscriptCompaction,
    TranscriptEntry,
    find_text,
    locate_elements,
    require_shallow,
)
from nexus_core.types.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nexus_core.transcripts.base import EntryKind, LineAccount, LineOutcome, LocatedValue
    from nexus_core.types.messages import JSON, Part, ResultPart, Role, Stop


_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
_MAX_COMPARED_ENTRIES = 5
"""Entries that are searched for a text that a program repeats, so that a long file takes linear time."""


class _MutableEntry:
    """An entry to which later lines add parts."""

    def __init__(self, role: Role, lines: list[int], raw: list[JSON], fields: dict[str, Any]) -> None:
        self.role = role
        self.parts: list[Part] = []
        self.lines = lines
        self.raw = raw
        self.fields = fields

    def build(self) -> TranscriptEntry:
        return TranscriptEntry(
            message=Message(self.role, tuple(self.parts)),
            lines=tuple(dict.fromkeys(self.lines)),
            raw=tuple(self.raw),
            **self.fields,
        )


class _Path(NamedTuple):
    entries: list[_MutableEntry]
    start: int  # entries of the main path before the first one


class EntryCollector:
    """Collects the entries of a conversation without forks, in file order.

    Args:
        form: Name of the format.
        account: Collects the outcome of each line.
    """

    def __init__(self, form: str, account: LineAccount) -> None:
        self._form = form
        self._account = account
        self._main: list[_MutableEntry] = []
        self._agents: dict[str, _Path] = {}
        self._compactions: list[TranscriptCompaction] = []
        self._used: set[int] = set()

    def add(
        self,
        role: Role,
        parts: Sequence[Part] | str,
        record: JsonLine,
        *,
        agent: str = "",
        kind: EntryKind = "said",
        id: str = "",  # noqa: A002 - the field's name
        time: str = "",
        model: str = "",
        stop: Stop = "",
        usage: Usage | None = None,
        merge: bool = False,
        also: Sequence[JsonLine] = (),
    ) -> None:
        """Add an entry for a line. Without parts, the line is kept as metadata.

        Args:
            role: Role of the message.
            parts: Parts of the message, or its text.
            record: The line.
            agent: Name of the subagent that wrote it; "" for the main conversation.
            kind: Author of the entry.
            id: The program's id of the entry.
            time: Time in the program's format.
            model: Model of a reply.
            stop: Stop reason of a reply.
            usage: Token usage of a reply.
            merge: True to add the parts to the last entry if it has the same role.
            also: Further lines whose content is among the parts.
        """
        given: list[Part] = ([Text(parts)] if parts else []) if isinstance(parts, str) else list(parts)
        path = self._find_path(agent)
        if merge and path and path[-1].role == role:
            last = path[-1]
            last.parts += given
            last.lines.append(record.number)
            self._append_raw(last.raw, record)
            found = {"model": model, "stop": stop, "usage": usage}
            last.fields |= {name: value for name, value in found.items() if value}
            self._use("merged", record)
            return
        if not given:
            self.keep(record)
            return
        fields = {"ids": (id,) if id else (), "kind": kind, "time": time, "model": model, "stop": stop, "usage": usage}
        entry = _MutableEntry(role, [each.number for each in (*also, record)], [], fields)
        entry.parts += given
        for each in (*also, record):
            self._append_raw(entry.raw, each)
        for each in also:
            self._use("merged", each)
        path.append(entry)
        self._use("branch" if agent else "message", record)

    def add_compaction(
        self, record: JsonLine, summary: str, *, kept: int = 0, time: str = "", tokens_before: int | None = None
    ) -> None:
        """Add a compaction of the main conversation: a summary replaces all entries but the last `kept` ones.

        Without a summary, the model reads none of the earlier entries.
        """
        at = len(self._main)
        entry = TranscriptEntry(
            message=Message("user", summary), lines=(record.number,), kind="summary", time=time, raw=(record.value,)
        )
        self._compactions.append(
            TranscriptCompaction(
                line=record.number,
                at=at,
                kept_from=max(at - kept, 0),
                summary=summary,
                context=(entry,) if summary else (),
                time=time,
                tokens_before=tokens_before,
                raw=record.value,
            )
        )
        self._use("compaction", record)

    def keep(self, record: JsonLine, kind: str = "", outcome: LineOutcome = "metadata") -> None:
        """Keep a line that is not part of the conversation. A line that is part of an entry stays so."""
        if record.number not in self._used:
            self._used.add(record.number)
            self._account.keep(
                record.number, kind or find_text(record.value, "type") or "untyped", record.value, outcome
            )

    def keep_unknown(self, record: JsonLine, kind: str) -> None:
        """Keep a line of a type that the reader does not know. A note counts each type."""
        if record.number not in self._used:
            self._used.add(record.number)
            self._account.keep_unknown(record.number, kind, record.value)

    def mirror(self, record: JsonLine) -> None:
        """Mark a line as a copy of others."""
        self._use("mirror", record)

    def note(self, record: JsonLine, text: str) -> None:
        """Add a note about a line."""
        self._account.note(record.number, text)

    def find_role(self, record: JsonLine, name: str) -> Role:
        """Return the role with a name. An unknown one is shown as the user's, with a note."""
        if name not in _ROLES:
            self.note(record, f"unknown role {name!a}, shown as the user's")
        return _ROLES.get(name, "user")

    def has_text(self, role: Role, text: str) -> bool:
        """True if one of the last entries of the main conversation has the role and the text."""
        return any(
            each.role == role and text == "\n".join(part.text for part in each.parts if isinstance(part, Text))
            for each in self._main[-_MAX_COMPARED_ENTRIES:]
        )

    @property
    def last_role(self) -> str:
        """Role of the last entry of the main conversation, "" if there is none."""
        return self._main[-1].role if self._main else ""

    @property
    def entry_count(self) -> int:
        """Number of entries of the main conversation so far."""
        return len(self._main)

    def build(self, **fields: Any) -> Transcript:  # noqa: ANN401 - further fields of a transcript
        """Return the transcript with further fields of it: `id`, `cwd`, `system`, `tools` and others."""
        branches = tuple(
            TranscriptBranch(
                kind="subagent", entries=tuple(each.build() for each in path.entries), name=name, at=path.start
            )
            for name, path in self._agents.items()
            if path.entries
        )
        return Transcript(
            format=self._form,
            api=fields.pop("api", ""),
            entries=tuple(each.build() for each in self._main),
            report=self._account.report(),
            branches=branches,
            compactions=tuple(self._compactions),
            metadata=self._account.metadata,
            **fields,
        )

    def _find_path(self, agent: str) -> list[_MutableEntry]:
        if not agent:
            return self._main
        return self._agents.setdefault(agent, _Path([], 0)).entries

    def _use(self, outcome: LineOutcome, record: JsonLine) -> None:
        if record.number not in self._used:
            self._used.add(record.number)
            self._account.use(outcome, record.number)

    @staticmethod
    def _append_raw(raw: list[JSON], record: JsonLine) -> None:
        if not raw or raw[-1] is not record.value:
            raw.append(record.value)


def build_tool_call(call_id: object, name: object, arguments: object, extra: JSON | None = None) -> ToolCall:
    """Return a tool call whose arguments are an object, JSON text, or any other value.

    A value that is neither becomes the text of the call, as the model wrote it.
    """
    given_id, given_name = call_id if isinstance(call_id, str) else "", name if isinstance(name, str) else ""
    if isinstance(arguments, dict):
        if is_shallow(arguments):
            return ToolCall(given_id, given_name, arguments, extra=dict(extra or {}))
        arguments = "(nested too deeply)"
    raw = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
    if not raw:
        return ToolCall(given_id, given_name, {}, extra=dict(extra or {}))
    return ToolCall(given_id, given_name, parse_arguments(raw), raw, extra=dict(extra or {}))


def build_tool_result(
    call_id: object, content: object, form: str, *, name: str = "", is_error: bool = False
) -> ToolResult:
    """Return a tool result whose content is a text, blocks, or any other value, which becomes JSON text."""
    parts: list[ResultPart] = [
        part for part in read_blocks(content, form) if isinstance(part, Text | Image | File | Opaque)
    ]
    return ToolResult(call_id if isinstance(call_id, str) else "", tuple(parts), name, is_error)


def read_blocks(content: object, form: str) -> list[Part]:
    """Return the parts of a text, a block, or a list of both. Unknown blocks become opaque.

    Reads the blocks that most programs share: `text`, `thinking`, `think` or `reasoning`, `tool_use`, `tool_result`,
    `image` and `image_url`. Empty texts are left out. Any other value becomes JSON text.
    """
    if isinstance(content, dict | list) and not is_shallow(content):
        return [Text("(nested too deeply)")]
    return list(_read_content(content, form))


def _read_content(content: object, form: str) -> Iterator[Part]:
    if isinstance(content, list):
        for each in content:
            yield from _read_content(each, form)
    elif isinstance(content, dict):
        part = _read_block(content, form)
        if part is not None:
            yield part
    elif content is not None and content != "":
        yield Text(content if isinstance(content, str) else json.dumps(content))


def _read_block(block: dict[str, Any], form: str) -> Part | None:
    kind = find_text(block, "type")
    text = find_text(block, "text")
    if kind in ("text", "input_text", "output_text") or (not kind and text):
        return Text(text) if text else None
    if kind in ("thinking", "think", "reasoning"):
        shown = find_text(block, "thinking") or find_text(block, "think") or text
        return Reasoning(text=shown, signature=find_text(block, "signature"), api=form)
    if kind == "tool_use":
        return build_tool_call(block.get("id"), block.get("name"), block.get("input"))
    if kind == "tool_result":
        return build_tool_result(
            block.get("tool_use_id"), block.get("content"), form, is_error=block.get("is_error") is True
        )
    image = _read_image(block) if kind in ("image", "image_url", "input_image") else None
    if not kind:  # a value such as `{"stdout": …}`, which has no text of its own
        return Text(json.dumps(block, ensure_ascii=False))
    return image or Opaque(form, block)


def _read_image(block: dict[str, Any]) -> Image | None:
    source, linked = block.get("source"), block.get("image_url")
    if isinstance(source, dict) and find_text(source, "data"):
        return Image(mime=find_text(source, "media_type"), data=find_text(source, "data"))
    url = (
        find_text(linked, "url")
        if isinstance(linked, dict)
        else linked
        if isinstance(linked, str)
        else find_text(block, "url")
    )
    if url:
        return read_image_url(url)
    data = find_text(block, "data")
    return Image(mime=find_text(block, "mimeType") or find_text(block, "mime_type"), data=data) if data else None


def read_image_url(url: str) -> Image:
    """Return an image with its data, if the URL contains it, else with the URL."""
    found = parse_data_url(url)
    return Image(mime=found[0], data=found[1]) if found else Image(url=url)


def is_shallow(value: dict[str, Any] | list[Any]) -> bool:
    """True if the nesting of an object or list cannot overflow the stack."""
    try:
        require_shallow(value)
    except MessageError:
        return False
    return True


def read_count(value: object) -> int:
    """Return a count of tokens, 0 for anything else."""
    return value if type(value) is int and value >= 0 else 0


def read_time(value: object) -> str:
    """Return a time: a text as it is, a number of seconds or milliseconds since 1970 in ISO format, else ""."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float) or isinstance(value, bool):
        return ""
    try:
        seconds = float(value) if value < _MIN_MILLISECONDS else float(value) / 1000
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return ""


_MIN_MILLISECONDS = 1e11
"""As seconds, a time in the year 5138; as milliseconds, one in 1973."""


def find_folder(name: str, file: str, levels: int = 1) -> str:
    """Return the name of a folder above a file of a certain name, "" if the file is another.

    Some programs name the conversation only by the folder that its file is in.

    Args:
        name: Path of the file, as the user wrote it.
        file: Name that the file must have.
        levels: 1 for the folder of the file, 2 for the one above, and so on.
    """
    path = PurePath(name)
    if path.name != file or len(path.parents) < levels:
        return ""
    return path.parents[levels - 1].name


def read_document_records(
    text: str, found: Mapping[str, LocatedValue], key: str, account: LineAccount
) -> tuple[JsonLine, list[JsonLine]]:
    """Return the fields of a document as record 1, and the objects of one of its lists as the records after it."""
    listed = found.get(key)
    has_list = listed is not None and isinstance(listed.value, list)
    values = [piece.value for piece in locate_elements(text, listed)] if has_list else []
    account.lines = len(values) + 1
    header = JsonLine(1, {name: piece.value for name, piece in found.items() if name != key})
    return header, split_records(values, account, start=2)


def split_records(values: Iterable[Any], account: LineAccount, start: int = 1) -> list[JsonLine]:
    """Return the objects of a list as numbered records. Other elements are skipped with a note."""
    records = []
    for number, value in enumerate(values, start):
        if isinstance(value, dict):
            records.append(JsonLine(number, value))
        else:
            account.keep(number, "broken", value, "skipped")
            account.note(number, "expected an object")
    return records
