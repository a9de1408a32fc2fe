"""Conversations in the form that writers get them, and the tools that writers share.

A writer turns a conversation into the file of another program, so that this program continues it. It gets a
`PortableConversation`: every tool call has one result, ids and names are valid for every API, texts are valid Unicode,
and reasoning that the program could not send back is left out. Same conversation, same bytes: ids are digests of the
session's name, and times are those of the messages.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

from nexus_core.dialects.calls import get_call_arguments, has_invalid_arguments
from nexus_core.dialects.media import build_data_url, build_media_placeholder, parse_data_url
from nexus_core.text.safety import repair_surrogates, visible_json
from nexus_core.types.base import blake2b, dataclass
from nexus_core.types.messages import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.tokens.prices import Cost
    from nexus_core.transcripts.base import EntryKind
    from nexus_core.types.messages import ResultPart, Stop, Tool, Usage

    InputPart = Text | Image | File | Opaque
    ReplyPart = Text | Reasoning | Opaque | ToolCall
    CacheWriteCount = Literal["cache_write_tokens", "cache_write_1h_tokens"]


class PortableMessage(NamedTuple):
    """A message of the user, of a program in the user's name, or with instructions.

    Attributes:
        role: `user`, or `system` if the writer has `writes_system`.
        parts: Texts, images, files, and blocks of an API in `block_apis`; never empty.
        kind: Author of the message.
        time: Milliseconds since 1970, never less than that of the item before.
    """

    role: Literal["user", "system"]
    parts: tuple[InputPart, ...]
    kind: EntryKind
    time: int


class PortableReply(NamedTuple):
    """A reply of the model, with the results of its tool calls.

    Attributes:
        parts: Texts, tool calls, and the reasoning and blocks that the program can send back; never empty.
        results: One result for each call, in the same order.
        time: As above.
        model: The model that replied; "" if unknown.
        api: Dialect of its reasoning and blocks; "" for a reply without them.
        stop: Stop reason.
        usage: Token usage of the call; None if unknown.
        cost: Cost of the call at list prices; None if unknown.
    """

    parts: tuple[ReplyPart, ...]
    results: tuple[ToolResult, ...]
    time: int
    model: str = ""
    api: str = ""
    stop: Stop = ""
    usage: Usage | None = None
    cost: Cost | None = None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def texts(self) -> tuple[str, ...]:
        """Its texts."""
        return tuple(part.text for part in self.parts if isinstance(part, Text))


class PortableCompaction(NamedTuple):
    """A summary that replaces the items before it.

    Attributes:
        summary: The summary.
        kept_from: Index of the first item before it that the model still reads; its own index if there is none.
        time: As above.
        tokens_before: Tokens before the compaction; None if unknown.
    """

    summary: str
    kept_from: int
    time: int
    tokens_before: int | None = None


if TYPE_CHECKING:
    PortableItem = PortableMessage | PortableReply | PortableCompaction


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableConversation:
    """A conversation for writers.

    Attributes:
        name: Name of the session. It determines all ids.
        cwd: Working directory.
        items: Messages, replies and compactions, oldest first; never empty.
        system: The system prompt; "" if it is unknown.
        tools: Tools that the model could call.
    """

    name: str
    cwd: str
    items: tuple[PortableItem, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()

    @property
    def started(self) -> int:
        """Time of the first item."""
        return self.items[0].time

    @property
    def model(self) -> str:
        """Model of the last reply, "" if unknown."""
        models = (item.model for item in reversed(self.items) if isinstance(item, PortableReply))
        return next(filter(None, models), "")

    def derive_uuid(self, *names: object) -> str:
        """Return a UUID that depends on the session's name and on further names."""
        digest = blake2b("\0".join(map(str, (self.name, *names))).encode(errors="replace"), digest_size=16)
        return str(UUID(bytes=digest.digest(), version=4))

    def derive_hex(self, length: int, *names: object) -> str:
        """Return hexadecimal digits that depend on the session's name and on further names."""
        return self.derive_uuid(*names).replace("-", "")[:length]


class ExportReport:
    """Counts of the content that a writer left out or changed, by kind.

    Attributes:
        left_out: What the file lacks, by kind.
        changed: What the file has in another form, by kind.
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()

    def count_left_out(self, kind: str, number: int = 1) -> None:
        """Count content that the file lacks."""
        if number:
            self.left_out[kind] += number

    def count_changed(self, kind: str, number: int = 1) -> None:
        """Count content that the file has in another form."""
        if number:
            self.changed[kind] += number


class ResumeHint(NamedTuple):
    """Place in which a program expects a file, and the command that continues the conversation.

    Attributes:
        file: Path of the file, with `~` for the home directory; "" if the command gets any file.
        command: The command, with FILE for the path of the file; "" if the program continues no conversation.
    """

    file: str
    command: str


class TranscriptWriter(NamedTuple):
    """A writer for a format.

    Attributes:
        write: Returns the text of the file.
        locate: Returns where the program expects the file.
        reasoning_apis: Dialects whose reasoning the program can send back.
        block_apis: Dialects whose other blocks it can send back.
        needs_signature: True if it must not contain reasoning without a signature, which the API would reject.
        keeps_reasoning_text: True if it has the text of all reasoning, because nothing is sent back.
        writes_system: True if a message can have the role `system`. Otherwise it is one of the user's.
        writes_prompt: True if it contains the system prompt. A program that continues a conversation has its own.
        accepts: True for an image or file that it can contain, with its data if there are any. Others are replaced by
            a text that names them.
        writes_cost: True if it has the cost of a reply.
        cache_write_counts: Counts of tokens written to the prompt cache that it has.
    """

    write: Callable[[PortableConversation, ExportReport], str]
    locate: Callable[[PortableConversation], ResumeHint]
    reasoning_apis: frozenset[str] = frozenset()
    block_apis: frozenset[str] = frozenset()
    needs_signature: bool = False
    keeps_reasoning_text: bool = False
    writes_system: bool = False
    writes_prompt: bool = False
    accepts: Callable[[Image | File], bool] = lambda _part: False
    writes_cost: bool = True
    cache_write_counts: frozenset[CacheWriteCount] = frozenset({"cache_write_tokens", "cache_write_1h_tokens"})


# ---- parts --------------------------------------------------------------------------------------------------------


def has_data(part: Image | File) -> bool:
    """True for an image or file that contains its data."""
    return bool(part.data)


def is_image_data(part: Image | File) -> bool:
    """True for an image that contains its data."""
    return isinstance(part, Image) and has_data(part)


def inline_media(part: Image | File) -> Image | File:
    """Return an image or file with its data as base64, if its URL contains the data."""
    found = parse_data_url(part.url) if part.url and not part.data else None
    return replace(part, mime=found[0], data=found[1], url="") if found else part


def format_media_url(part: Image | File) -> str:
    """Return the URL of an image or file, with its data if it has them."""
    default = "image/png" if isinstance(part, Image) else "application/octet-stream"
    return build_data_url(part.mime or default, part.data) if part.data else part.url


def replace_media(
    parts: Iterable[InputPart | ResultPart], report: ExportReport, accepts: Callable[[Image | File], bool]
) -> list[InputPart | ResultPart]:
    """Return parts with a text instead of each image or file that a format cannot contain."""
    found: list[InputPart | ResultPart] = []
    for part in parts:
        if isinstance(part, Image | File):
            media = inline_media(part)
            if not accepts(media):
                report.count_left_out("image" if isinstance(part, Image) else "file")
            found.append(media if accepts(media) else build_media_placeholder(media))
        else:
            found.append(part)
    return found


def write_arguments(call: ToolCall, report: ExportReport) -> dict[str, Any]:
    """Return the arguments of a call as an object. Text that is not JSON becomes a value in it."""
    if has_invalid_arguments(call):
        report.count_changed("malformed-arguments")
    return get_call_arguments(call)


# ---- text ---------------------------------------------------------------------------------------------------------


def format_iso_time(milliseconds: int) -> str:
    """Return a time as other programs write it: `2026-03-02T09:00:00.000Z`."""
    time = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


def format_json(value: object, *, indent: int | None = None) -> str:
    """Return JSON in which every hidden character is escaped.

    It has no number and no half of a character that the parsers of other languages reject.
    """
    separators = (",", ":") if indent is None else None
    try:
        text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent, allow_nan=False)
    except ValueError:  # NaN and infinity, which Python reads and no standard allows
        text = json.dumps(_replace_non_finite(value), ensure_ascii=False, separators=separators, indent=indent)
    return visible_json(repair_surrogates(text))


def _replace_non_finite(value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, dict):
        return {key: _replace_non_finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def format_json_lines(values: Iterable[object]) -> str:
    """Return JSON Lines."""
    return "".join(f"{format_json(value)}\n" for value in values)
