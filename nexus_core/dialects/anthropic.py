"""Dialect of Anthropic's Messages API: blocks, requests, replies and streams."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.cache_markers import build_anthropic_marker
from nexus_core.dialects.calls import assign_call_ids, get_call_arguments, parse_arguments
from nexus_core.dialects.fields import (
    ErrorPath,
    add_provider_fields,
    describe_json_value,
    format_for_error,
    get_count,
    get_object,
    get_optional_text,
    get_provider_fields,
    get_text,
    require_object,
    take_optional_text,
    take_text,
    to_json_dict,
    to_json_types,
    with_metadata,
)
from nexus_core.dialects.media import (
    build_media_placeholder,
    decode_text_base64,
    encode_text_base64,
    get_document_text,
    is_base64,
    normalize_mime,
    parse_data_url,
)
from nexus_core.dialects.registry import ApiDialect, Outline
from nexus_core.dialects.requests import read_each, read_request_arguments, require_list
from nexus_core.dialects.rules import ANTHROPIC_RULES, SILENT_ERROR_TEXT
from nexus_core.dialects.tools import read_tools, write_tools
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.types.api import BEFORE_MESSAGES
from nexus_core.types.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Reply,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.types.api import CacheMarkers, Dialect
    from nexus_core.types.messages import Part, ResultPart, Role, Stop, Tool

Block = dict[str, Any]

_PDF_MIME = "application/pdf"
_TEXT_MIMES = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})


def read_image(block: Block) -> Image | Opaque:
    """Parse an image block. One with an unknown source type becomes Opaque."""
    fields = _read_source(block)
    return Image(**fields) if fields else Opaque("anthropic", block)


def read_document(block: Block) -> File | Opaque:
    """Parse a document block.

    One whose source is blocks or of an unknown type becomes Opaque.
    """
    fields = _read_source(block)
    if not fields:
        return Opaque("anthropic", block)
    return File(name=take_optional_text(fields["extra"], "title"), **fields)


def write_media(part: Image | File, api: str) -> Block:
    """Return an image or document block.

    Media that Anthropic does not accept becomes a text placeholder.
    """
    if api == "anthropic":
        return _write_native_media(part)
    if isinstance(part, File) and part.mime.startswith("image/"):
        part = Image(mime=part.mime, data=part.data, url=part.url, file_id=part.file_id)
    source = _write_image_source(part, api) if isinstance(part, Image) else _write_document_source(part, api)
    if source is None:
        return {"type": "text", "text": build_media_placeholder(part).text}
    body: Block = {"type": "image" if isinstance(part, Image) else "document", "source": source}
    return body | ({"title": part.name} if isinstance(part, File) and part.name else {})


def _read_source(block: Block) -> dict[str, Any] | None:
    """Return the arguments of the part, or None if the source is empty or unknown."""
    source = dict(get_object(block, "source"))
    with ErrorPath("source"):
        kind = take_text(source, "type")
        found = _take_source_fields(source, kind)
    if not any(found.values()):
        return None
    rest = {key: value for key, value in block.items() if key not in ("type", "source")}
    return found | {"extra": with_metadata(rest, inner=source, source=kind if kind in ("text", "content") else "")}


def _take_source_fields(source: Block, kind: str) -> dict[str, str]:
    """Remove and return the fields of a source, {} for an unknown source type."""
    if kind == "url":
        return {"url": take_text(source, "url")}
    if kind == "file":
        return {"file_id": take_text(source, "file_id")}
    if kind == "base64" and source.get("data") != "":
        return {"mime": take_text(source, "media_type"), "data": take_text(source, "data")}
    if kind == "text" and source.get("data") != "":
        return {"mime": take_text(source, "media_type"), "data": encode_text_base64(take_text(source, "data"))}
    if kind == "content" and isinstance(source.get("content"), str) and source["content"]:
        return {"mime": "text/plain", "data": encode_text_base64(take_text(source, "content"))}
    return {}


def _write_native_media(part: Image | File) -> Block:
    inner: Any = part.extra.get("_inner", {})
    if isinstance(part, Image):
        return add_provider_fields({"type": "image", "source": _write_native_source(part) | inner}, part.extra)
    body: Block = {"type": "document", "source": _write_native_source(part) | inner}
    return add_provider_fields(body | ({"title": part.name} if part.name else {}), part.extra)


def _write_native_source(part: Image | File) -> Block:
    if part.url:
        return {"type": "url", "url": part.url}
    if part.file_id:
        return {"type": "file", "file_id": part.file_id}
    text = get_document_text(part)
    if text is None:
        return {"type": "base64", "media_type": part.mime, "data": part.data}
    return (
        {"type": "content", "content": text}
        if part.extra["_source"] == "content"
        else _write_text_source(text, part.mime)
    )


def _write_image_source(image: Image, api: str) -> Block | None:
    mime, data = parse_data_url(image.url) or (image.mime, image.data)
    mime = normalize_mime(mime)
    if data:
        is_shown = mime in ANTHROPIC_RULES.image_types and is_base64(data)
        return {"type": "base64", "media_type": mime, "data": data} if is_shown else None
    return _write_remote_source(image, api)


def _write_document_source(file: File, api: str) -> Block | None:
    mime, data = parse_data_url(file.url) or (file.mime, file.data)
    if data and mime == _PDF_MIME and is_base64(data):
        return {"type": "base64", "media_type": _PDF_MIME, "data": data}
    if data:
        text = decode_text_base64(data) if mime.startswith("text/") or mime in _TEXT_MIMES else None
        return _write_text_source(text) if text and text.strip() else None
    # By URL Anthropic reads only PDFs.
    return _write_remote_source(file, api) if mime in ("", _PDF_MIME) else None


def _write_remote_source(part: Image | File, api: str) -> Block | None:
    if part.url.startswith(("https://", "http://")):
        return {"type": "url", "url": part.url}
    # A file id is valid only at the provider that issued it.
    return {"type": "file", "file_id": part.file_id} if part.file_id and not api else None


def _write_text_source(text: str, mime: str = "text/plain") -> Block:
    return {"type": "text", "media_type": mime, "data": text}


if TYPE_CHECKING:
    BlockReaders = dict[str, Callable[["Block"], Any]]


def read_content(block: Block, readers: BlockReaders) -> tuple[list[Any], str]:
    """Remove and parse `content`. Also return `list` if it was a list."""
    content = block.get("content")
    if content is None:
        return [], ""
    del block["content"]
    if isinstance(content, str):
        return [Text(content)], ""
    return read_blocks(content, readers, "content"), "list"


def read_blocks(content: object, readers: BlockReaders, path: str) -> list[Any]:
    """Parse a list of blocks. Blocks of a type without a reader become Opaque."""
    if not isinstance(content, list):
        raise MessageError(f"expected text or a list of blocks, not {describe_json_value(content)}", path=path)

    def read_block(item: object) -> Any:  # noqa: ANN401 - any part, or any part of a result
        block = require_object(item)
        read = readers.get(get_text(block, "type"))
        return read(block) if read else Opaque("anthropic", block)

    return list(read_each(content, read_block, path))


def write_content(blocks: Sequence[Block], spelling: object) -> str | list[Block]:
    """Return a list of blocks, or plain text if that is enough.

    A list that was read stays a list.
    """
    if spelling != "list" and len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        text: str = blocks[0]["text"]
        return text
    return list(blocks)


def write_blocks(parts: Iterable[Part], api: str, *, media: bool = True) -> list[Block]:
    """Return the blocks of parts.

    Opaque blocks, reasoning and blank texts of other APIs are left out.

    Args:
        parts: The parts of a message or tool result.
        api: The dialect that the parts were read from.
        media: True to write images and documents of another API; False to replace them by placeholders.
    """
    shown = (
        build_media_placeholder(part) if not media and isinstance(part, Image | File) and api != "anthropic" else part
        for part in parts
    )
    blocks = (block for part in shown if (block := _write_block(part, api)) is not None)
    return [block for block in blocks if api == "anthropic" or not is_blank_block(block)]


def is_blank_block(block: Block) -> bool:
    """Return True for a blank text block, which Anthropic rejects."""
    # Opaque blocks may lack either field.
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _write_block(part: Part, api: str) -> Block | None:
    if isinstance(part, Opaque):
        return dict(part.block) if part.api == "anthropic" else None
    if isinstance(part, Image | File):
        return write_media(part, api)
    if isinstance(part, Reasoning):
        return _write_reasoning(part) if part.api == "anthropic" else None
    if isinstance(part, ToolResult):
        return _write_tool_result(part, api)
    if isinstance(part, ToolCall):
        body: Block = {"type": "tool_use", "id": part.id, "name": part.name, "input": get_call_arguments(part)}
    else:
        body = {"type": "text", "text": part.text}
    return add_provider_fields(body, part.extra) if api == "anthropic" else body


def _write_reasoning(reasoning: Reasoning) -> Block:
    if reasoning.encrypted:
        return add_provider_fields({"type": "redacted_thinking", "data": reasoning.encrypted}, reasoning.extra)
    body: Block = {"type": "thinking", "thinking": reasoning.text}
    if reasoning.signature:
        body["signature"] = reasoning.signature
    return add_provider_fields(body, reasoning.extra)


def _write_tool_result(result: ToolResult, api: str) -> Block:
    is_native = api == "anthropic"
    body: Block = {"type": "tool_result", "tool_use_id": result.call_id}
    blocks = write_blocks(result.parts, api)
    if result.is_error and not blocks and not is_native:
        blocks = [{"type": "text", "text": SILENT_ERROR_TEXT}]
    if blocks or result.parts or (is_native and "_content" in result.extra):
        body["content"] = write_content(blocks, result.extra.get("_content") if is_native else "")
    if result.is_error:
        body["is_error"] = True
    return add_provider_fields(body, result.extra) if is_native else body


def _read_text(block: Block) -> Text:
    del block["type"]
    return Text(take_text(block, "text"), with_metadata(block))


def _read_thinking(block: Block) -> Reasoning:
    del block["type"]
    text = take_text(block, "thinking")
    signature = take_optional_text(block, "signature")
    return Reasoning(text=text, signature=signature, api="anthropic", extra=with_metadata(block))


def _read_redacted_thinking(block: Block) -> Reasoning | Opaque:
    if not get_text(block, "data"):
        return Opaque("anthropic", block)
    del block["type"]
    return Reasoning(encrypted=take_text(block, "data"), api="anthropic", extra=with_metadata(block))


def _read_tool_use(block: Block) -> ToolCall:
    del block["type"]
    call_id, name = take_text(block, "id"), take_text(block, "name")
    arguments = get_object(block, "input")
    del block["input"]
    return ToolCall(call_id, name, arguments, extra=with_metadata(block))


def _read_tool_result(block: Block) -> ToolResult:
    del block["type"]
    call_id = take_text(block, "tool_use_id")
    failed = block.get("is_error")
    if failed is not None and not isinstance(failed, bool):
        raise MessageError(f"expected true or false, not {describe_json_value(failed)}", path="is_error")
    if failed:
        del block["is_error"]
    parts, spelling = read_content(block, _RESULT_BLOCK_READERS)
    return ToolResult(call_id, tuple(parts), is_error=bool(failed), extra=with_metadata(block, content=spelling))


_RESULT_BLOCK_READERS: dict[str, Callable[[Block], ResultPart]] = {
    "text": _read_text,
    "image": read_image,
    "document": read_document,
}
BLOCK_READERS: dict[str, Callable[[Block], Part]] = {
    **_RESULT_BLOCK_READERS,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted_thinking,
    "tool_use": _read_tool_use,
    "tool_result": _read_tool_result,
}
"""Readers by block type. Blocks of other types become Opaque and are sent back unchanged."""

CACHE_MARKER_FIELD = "cache_control"
MARKABLE_TYPES = frozenset(
    {
        "bash_code_execution_tool_result",
        "code_execution_tool_result",
        "container_upload",
        "document",
        "image",
        "search_result",
        "server_tool_use",
        "text",
        "text_editor_code_execution_tool_result",
        "tool_result",
        "tool_search_tool_result",
        "tool_use",
        "web_fetch_tool_result",
        "web_search_tool_result",
    }
)
"""Block types that allow a cache breakpoint. Reasoning does not, nor does an empty text: "cache_control cannot be set
for empty text blocks" (anthropics/claude-code#50082)."""


def mark_last_block(blocks: Sequence[Block], lifetime: str) -> None:
    """Set a cache breakpoint on the last block that allows one, unless it has one."""
    last = next((block for block in reversed(blocks) if _can_be_marked(block)), None)
    if last is not None and last.get(CACHE_MARKER_FIELD) is None:
        last[CACHE_MARKER_FIELD] = build_anthropic_marker(lifetime)


def mark_last_tool(tools: Sequence[Block], lifetime: str) -> None:
    """Set a cache breakpoint on the last tool, unless it has one.

    Tools with `defer_loading` are skipped, because they are not part of the cached prefix.
    """
    last = next((tool for tool in reversed(tools) if not tool.get("defer_loading")), None)
    if last is not None and last.get(CACHE_MARKER_FIELD) is None:
        last[CACHE_MARKER_FIELD] = build_anthropic_marker(lifetime)


def _can_be_marked(block: Block) -> bool:
    return block.get("type") in MARKABLE_TYPES and not is_blank_block(block)


_READ_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_message(item: object) -> Message:
    """Parse one element of `messages`, or a reply, reduced to role and content."""
    block = to_json_dict(item)
    if block.get("type") == "message":
        block = {key: block[key] for key in ("role", "content") if key in block}
    return read_message_dict(block)


def read_message_dict(block: dict[str, Any]) -> Message:
    """Parse a message given as a dict, which is modified."""
    given = take_text(block, "role")
    role = _READ_ROLES.get(given)
    if role is None:
        hint = did_you_mean(given, _READ_ROLES) or f"Anthropic has the roles {', '.join(_READ_ROLES)}"
        raise MessageError(f"unknown role {given!a}", path="role", hint=hint)
    missing = "content" not in block
    # A system message in the list may have settings without content.
    if missing and role != "system":
        raise MessageError("there is no 'content'", path="content", hint="it must be text or a list of blocks")
    parts, spelling = read_content(block, BLOCK_READERS)
    speaker = "tool" if role == "user" and _has_only_results(parts) else role
    extra = with_metadata(block, content="missing" if missing else spelling)
    return Message(speaker, tuple(parts), api="anthropic", extra=extra)


def read_system(given: Any) -> Message:  # noqa: ANN401 - a text, or a list of blocks
    """Parse the `system` field of a request."""
    content = to_json_types(given, "system")
    parts = [Text(content)] if isinstance(content, str) else read_blocks(content, BLOCK_READERS, "system")
    spelling = "" if isinstance(content, str) else "list"
    return Message("system", tuple(parts), api="anthropic", extra=with_metadata({}, field=True, content=spelling))


def _has_only_results(parts: Sequence[Part]) -> bool:
    return {*map(type, parts)} == {ToolResult}


Body = dict[str, Any]

_WRITTEN_ROLES = {"tool": "user"}


class _WrittenMessage(NamedTuple):
    """An element of `messages`, with the facts that decide about merging.

    Attributes:
        body: The element.
        is_native: True if it is one message that was read from Anthropic.
        has_tools: True if it has tool calls or tool results.
    """

    body: Body
    is_native: bool
    has_tools: bool


def write_messages(messages: Iterable[Message], marks: CacheMarkers | None = None) -> list[Body]:
    """Return the `messages` of a request, with breakpoints at the indices of `marks`.

    A reply with tool calls becomes one message. All of its tool results come first in the next one.
    """
    elements: list[_WrittenMessage] = []
    for index, message in enumerate(assign_call_ids(messages, "anthropic")):
        element = _write_message(message)
        if element is None:
            continue
        if marks and index in marks:
            _mark_message(element, marks[index])
        if elements and _should_merge(elements[-1], element):
            element = _merge_messages(elements.pop(), element)
        elements.append(element)
    return [element.body for element in elements]


def write_system(messages: Iterable[Message], marks: CacheMarkers | None = None) -> str | list[Body]:
    """Return the `system` field.

    System messages that Anthropic had in `messages` are left out.
    """
    found: list[Message] = []
    blocks: list[Body] = []
    for index, message in enumerate(messages):
        if message.role == "system" and not _is_system_in_list(message):
            found.append(message)
            blocks += write_blocks(message.parts, message.api, media=False)
            if marks and index in marks:
                mark_last_block(blocks, marks[index])
    is_native = len(found) == 1 and found[0].api == "anthropic"
    return write_content(blocks, found[0].extra.get("_content") if is_native else "")


def _is_system_in_list(message: Message) -> bool:
    return message.api == "anthropic" and "_field" not in message.extra


def _write_message(message: Message) -> _WrittenMessage | None:
    is_native = message.api == "anthropic"
    if message.role == "system" and not _is_system_in_list(message):
        return None
    blocks = write_blocks(message.parts, message.api, media=message.role != "assistant")
    if not is_native and not blocks:
        return None
    has_tools = any(block.get("type") in ("tool_use", "tool_result") for block in blocks)
    body: Body = {"role": _WRITTEN_ROLES.get(message.role, message.role)}
    if is_native:
        spelling = message.extra.get("_content")
        # A content that was null is in `extra`.
        if message.parts or not (spelling == "missing" or "content" in message.extra):
            body["content"] = write_content(blocks, spelling)
        return _WrittenMessage(add_provider_fields(body, message.extra), is_native, has_tools)
    return _WrittenMessage(body | {"content": write_content(_sort_results_first(blocks), "")}, is_native, has_tools)


def _mark_message(element: _WrittenMessage, lifetime: str) -> None:
    blocks = _list_blocks(element.body)
    if blocks:
        mark_last_block(blocks, lifetime)
        element.body["content"] = write_content(blocks, "list")


def _should_merge(before: _WrittenMessage, after: _WrittenMessage) -> bool:
    # Anthropic joins neighbours of one role itself, but looks for tool results only in the next element.
    alike = before.body["role"] == after.body["role"] != "system"
    return alike and (before.has_tools or after.has_tools) and not (before.is_native and after.is_native)


def _merge_messages(before: _WrittenMessage, after: _WrittenMessage) -> _WrittenMessage:
    blocks = _sort_results_first([*_list_blocks(before.body), *_list_blocks(after.body)])
    body = after.body | before.body | {"content": write_content(blocks, "list")}
    return _WrittenMessage(body, is_native=False, has_tools=True)


def _list_blocks(body: Body) -> list[Body]:
    content = body.get("content") or []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [block for block in blocks if not is_blank_block(block)]


def _sort_results_first(blocks: Sequence[Body]) -> list[Body]:
    return sorted(blocks, key=lambda block: block.get("type") != "tool_result")


_TEXT_FIELDS = 2
"""Number of fields of a plain block: type and text. Counting fields is faster than comparing their names, and as strict
where every value is checked, because the value of a missing field is None."""
_CALL_FIELDS = 4
"""type, id, name and input."""
_RESULT_FIELDS = 3
"""type, tool_use_id and content; is_error may come with them."""
_THINKING_FIELDS = 3
"""type, thinking and signature."""


def outline_message(item: object) -> Outline | None:
    """Return the outline of an element of `messages`, or None if it is not plain."""
    if type(item) is not dict or len(item) != 2:  # noqa: PLR2004 - role and content
        return None
    role, content = item.get("role"), item.get("content")
    if role == "assistant":
        found = Outline("assistant")
        is_plain = found.add_text(content) or (type(content) is list and found.add_blocks(content, _REPLY_OUTLINERS))
        # Reasoning must be followed by another block.
        return found if is_plain and not (type(content) is list and _is_empty_or_thinking(content[-1:])) else None
    if role != "user":
        return None
    if type(content) is list and content and type(content[0]) is dict and content[0].get("type") == "tool_result":
        found = Outline("tool")
        return found if found.add_blocks(content, _RESULT_OUTLINERS) else None
    found = Outline("user")
    return found if found.add_texts(content, "text") else None


def _is_empty_or_thinking(last: list[Any]) -> bool:
    return not last or last[0]["type"] == "thinking"


def _outline_text(found: Outline, block: dict[str, Any]) -> bool:
    return len(block) == _TEXT_FIELDS and found.add_text(block.get("text"))


def _outline_tool_use(found: Outline, block: dict[str, Any]) -> bool:
    if len(block) != _CALL_FIELDS:
        return False
    return found.add_call(block.get("id"), block.get("name"), block.get("input"), dict)


def _outline_thinking(found: Outline, block: dict[str, Any]) -> bool:
    if len(block) != _THINKING_FIELDS:
        return False
    return found.add_text(block.get("signature")) and found.add_text(block.get("thinking"))


def _outline_tool_result(found: Outline, block: dict[str, Any]) -> bool:
    if len(block) != _RESULT_FIELDS + ("is_error" in block) or type(block.get("is_error", False)) is not bool:
        return False
    return found.add_result(block.get("tool_use_id"), "") and found.add_texts(block.get("content"), "text")


_REPLY_OUTLINERS = {"text": _outline_text, "tool_use": _outline_tool_use, "thinking": _outline_thinking}
_RESULT_OUTLINERS = {"tool_result": _outline_tool_result}


def read_request(body: object) -> Conversation:
    """Parse a request: the arguments of the SDK's call, or the request body."""
    given = read_request_arguments(body)
    if "messages" not in given:
        raise MessageError("there is no 'messages'", path="messages", hint="it must be a list of messages")
    messages = read_each(require_list(given.pop("messages"), "messages"), read_message, "messages")
    # An empty or null field stays in `extra`, so that it differs from a missing one when written back.
    if given.get("system"):
        messages = (read_system(given.pop("system")), *messages)
    tools: tuple[Tool, ...] = ()
    if given.get("tools"):
        tools = read_tools(require_list(given.pop("tools"), "tools"), "anthropic")
    return Conversation(messages=messages, tools=tools, api="anthropic", extra=given)


def write_request(conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:
    """Return the arguments of the SDK's call.

    Arguments of another provider's request are left out, because they may mean something else here.
    """
    body: dict[str, Any] = get_provider_fields(conversation.extra) if conversation.api in ("anthropic", "") else {}
    if system := write_system(conversation.messages, marks):
        body["system"] = system
    body["messages"] = write_messages(conversation.messages, marks)
    if tools := write_tools(conversation.tools, "anthropic"):
        if marks and BEFORE_MESSAGES in marks:
            mark_last_tool(tools, marks[BEFORE_MESSAGES])
        body["tools"] = tools
    return body


_DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}
"""Fields with a piece of text, by delta type."""


class StreamedMessage(NamedTuple):
    """A reply, possibly merged from a stream that was interrupted.

    Attributes:
        message: The reply as the API returns it without streaming.
        unfinished: Raw arguments of tool calls that are not complete JSON, by the index of their block.
        error: Type of the error that ended the stream, "" for none.
        is_streamed: True if the reply was merged from events.
    """

    message: dict[str, Any]
    unfinished: Mapping[int, str] = {}
    error: str = ""
    is_streamed: bool = False


def merge_events(events: Sequence[object]) -> StreamedMessage:
    """Merge the events of a stream.

    Events that the SDK's stream helper adds are ignored.
    """
    merger = _EventMerger()
    for index, event in enumerate(events):
        with ErrorPath(f"[{index}]"):
            merger.add(to_json_dict(event))
    return merger.build_reply()


class _EventMerger:
    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, _StreamedBlock] = {}
        self._error = ""

    def add(self, event: dict[str, Any]) -> None:
        kind = get_text(event, "type")
        if kind == "error":
            self._error = _get_error_type(event)
        elif kind == "message_start":
            self._message = get_object(event, "message")
        elif self._message is None:
            if kind != "ping":
                raise MessageError(f"a stream starts with 'message_start', not {format_for_error(kind)}", path="type")
        elif kind == "content_block_start":
            self._blocks[get_count(event, "index")] = _StreamedBlock(get_object(event, "content_block"))
        elif kind == "content_block_delta":
            self._add_delta(event)
        elif kind == "message_delta":
            self._finish(event)

    def build_reply(self) -> StreamedMessage:
        if self._message is None:
            if self._error:
                return StreamedMessage({"content": []}, error=self._error)
            raise MessageError("the events contain no reply", hint="a stream starts with the event 'message_start'")
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        content = [block.join() for block in blocks]
        unfinished = {index: block.unfinished for index, block in enumerate(blocks) if block.unfinished}
        return StreamedMessage(self._message | {"content": content}, unfinished, self._error, is_streamed=True)

    def _add_delta(self, event: dict[str, Any]) -> None:
        block = self._blocks.get(get_count(event, "index"))
        if block is None:
            raise MessageError(f"no block has started at {format_for_error(event.get('index'))}", path="index")
        delta = get_object(event, "delta")
        with ErrorPath("delta"):
            block.add(delta)

    def _finish(self, event: dict[str, Any]) -> None:
        """Add stop reason and usage.

        The counts are totals that replace the earlier ones. Null changes nothing.
        """
        message = self._message or {}
        message |= {key: value for key, value in get_object(event, "delta").items() if value is not None}
        if event.get("usage") is not None:
            before = {} if message.get("usage") is None else get_object(message, "usage")
            now = {key: value for key, value in get_object(event, "usage").items() if value is not None}
            message["usage"] = before | now


class _StreamedBlock:
    """A content block that is being streamed. Pieces are joined once, at the end."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._block = start
        self._pieces: dict[str, list[str]] = {}
        self.unfinished = ""

    def add(self, delta: dict[str, Any]) -> None:
        kind = get_text(delta, "type")
        if kind in _DELTA_FIELDS:
            self._pieces.setdefault(_DELTA_FIELDS[kind], []).append(get_optional_text(delta, _DELTA_FIELDS[kind]))
        if kind == "citations_delta":
            self._block["citations"] = [*(self._block.get("citations") or []), delta.get("citation")]
        elif kind == "signature_delta":
            self._block["signature"] = get_text(delta, "signature")
        elif kind == "compaction_delta" and delta.get("encrypted_content") is not None:
            self._block["encrypted_content"] = delta["encrypted_content"]

    def join(self) -> dict[str, Any]:
        for key, pieces in self._pieces.items():
            text = "".join(pieces)
            if key == "partial_json":
                self._read_input(text)
            else:
                self._block[key] = get_optional_text(self._block, key) + text
        return self._block

    def _read_input(self, text: str) -> None:
        if not text:
            return  # a tool call without arguments
        self._block["input"] = parse_arguments(text)
        if not self._block["input"] and "".join(text.split()) != "{}":
            self.unfinished = text


def _get_error_type(event: dict[str, Any]) -> str:
    error = event.get("error")
    kind = error.get("type") if isinstance(error, dict) else None
    return kind if isinstance(kind, str) and kind else "error"


_STOP_REASONS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
}


def read_reply(reply: object) -> Reply:
    """Parse a reply, or the list of its stream events."""
    streamed = merge_events(reply) if isinstance(reply, list | tuple) else StreamedMessage(to_json_dict(reply))
    body = streamed.message
    if body.get("type") == "error":
        raise MessageError(
            f"the server answered with an error: {format_for_error(_get_error_message(body))}", path="error"
        )
    block = {"role": body.get("role", "assistant")}
    if "content" in body:
        block["content"] = body["content"]
    message = read_message_dict(block)
    if streamed.unfinished:
        parts = tuple(
            _restore_raw_arguments(part, streamed.unfinished.get(index)) for index, part in enumerate(message.parts)
        )
        message = replace(message, parts=parts)
    reason = streamed.error or get_optional_text(body, "stop_reason")
    return Reply(
        messages=(message,),
        stop=_classify_stop(reason, streamed),
        stop_reason=reason,
        usage=_read_usage(body),
        id=get_optional_text(body, "id"),
        model=get_optional_text(body, "model"),
        api="anthropic",
    )


def _classify_stop(reason: str, streamed: StreamedMessage) -> Stop:
    if streamed.error:
        return "error"
    return "broken" if streamed.is_streamed and not reason else _STOP_REASONS.get(reason, "")


def _get_error_message(body: dict[str, Any]) -> object:
    error = body.get("error")
    return error.get("message") if isinstance(error, dict) else error


def _restore_raw_arguments(part: Part, raw: str | None) -> Part:
    """Set the raw text of a tool call whose arguments were cut off."""
    return replace(part, raw=raw) if raw is not None and isinstance(part, ToolCall) else part


def _read_usage(body: dict[str, Any]) -> Usage | None:
    if body.get("usage") is None:
        return None
    usage = get_object(body, "usage")
    with ErrorPath("usage"):
        read, written = get_count(usage, "cache_read_input_tokens"), get_count(usage, "cache_creation_input_tokens")
        details, lifetimes = (
            {} if usage.get(key) is None else get_object(usage, key)
            for key in ("output_tokens_details", "cache_creation")
        )
        return Usage(
            # Anthropic's input_tokens exclude cached tokens.
            input_tokens=get_count(usage, "input_tokens") + read + written,
            output_tokens=get_count(usage, "output_tokens"),
            cached_input_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=get_count(details, "thinking_tokens"),
            cache_write_1h_tokens=min(get_count(lifetimes, "ephemeral_1h_input_tokens"), written),
        )


_ANTHROPIC_BLOCK_TYPES = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "search_result", "container_upload"}
)
_ANTHROPIC_TYPE_SUFFIXES = ("_tool_use", "_tool_result")


def is_anthropic_message(item: Mapping[str, Any]) -> bool:
    """Return True if the message has a block type that only Anthropic uses."""
    content = item.get("content")
    return isinstance(content, list) and "parts" not in item and any(map(_is_anthropic_block, content))


def _is_anthropic_block(block: object) -> bool:
    if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
        return False
    return (
        kind in _ANTHROPIC_BLOCK_TYPES
        or kind.endswith(_ANTHROPIC_TYPE_SUFFIXES)
        or (kind in ("image", "document") and "source" in block)
    )


DIALECT: Dialect = ApiDialect(
    rules=ANTHROPIC_RULES,
    recognises=is_anthropic_message,
    read=read_message,
    write=write_messages,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    read_tools=partial(read_tools, api="anthropic"),
    write_tools=partial(write_tools, api="anthropic"),
    outline=outline_message,
)
