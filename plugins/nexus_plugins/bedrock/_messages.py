"""Messages of Converse, read into neutral messages and written back."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import Message, MessageError
from nexus_core.plugin import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from nexus_core.plugin.dialects import (
    Outline,
    assign_call_ids,
    call_arguments,
    inline_data,
    json_kind,
    media_note,
    provider_fields,
    read_each,
    to_json_dict,
    with_metadata,
)
from nexus_plugins.bedrock._fields import (
    API,
    decode_base64,
    drop_fields,
    get_text,
    join_path,
    require_list,
    require_mapping,
    require_object,
    require_text,
    restore_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.plugin import Part, ResultPart
    from nexus_plugins.bedrock._fields import Block

_IMAGE_FORMATS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_OFFICE_MIME = "application/vnd.openxmlformats-officedocument"
_DOCUMENT_FORMATS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    f"{_OFFICE_MIME}.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    f"{_OFFICE_MIME}.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
_DOCUMENT_MIMES = {spelled: mime for mime, spelled in _DOCUMENT_FORMATS.items()}
_TEXT_MIMES = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})
_FORBIDDEN_NAME_CHARACTERS = re.compile(r"[^a-zA-Z0-9\-()\[\]]+")
_FILE_SUFFIX = re.compile(r"\.[a-zA-Z0-9]{1,5}$")
_MAX_NAME_CHARACTERS = 200
_S3_SCHEME = "s3://"


class DocumentNames:
    """Unique names of documents in a request, with the characters that Bedrock allows."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def reserve(self, name: str) -> None:
        """Reserve a name that the request already has."""
        self._used.add(name)

    def create(self, name: str) -> str:
        """Return an unused name that is similar to a file name, and reserve it."""
        plain = (
            _FORBIDDEN_NAME_CHARACTERS.sub(" ", _FILE_SUFFIX.sub("", name)).strip()[: _MAX_NAME_CHARACTERS - 10].strip()
            or "document"
        )
        found, count = plain, 1
        while found in self._used:
            count += 1
            found = f"{plain} {count}"
        self._used.add(found)
        return found


def read_image(block: Block, rest: Block) -> Image | Opaque:
    """Read an image, as Opaque if its source is of an unknown kind."""
    kind = require_text(block, "format", "image")
    source, others = _read_source(block, "image")
    if not source or "text" in source:
        return Opaque(API, {"image": block, **rest})
    extra = with_metadata(rest, inner=drop_fields(block, "format", "source"), source=others)
    return Image(mime=f"image/{kind}", extra=extra, **source)


def read_document(block: Block, rest: Block) -> File | Opaque:
    """Read a document, as Opaque if its source is blocks or of an unknown kind."""
    name, format_ = require_text(block, "name", "document"), get_text(block, "format", "document")
    source, others = _read_source(block, "document")
    if not source:
        return Opaque(API, {"document": block, **rest})
    is_text = "text" in source
    if is_text:
        source = {"data": b64encode(source["text"].encode("utf-8", "surrogatepass")).decode("ascii")}
    mime = _DOCUMENT_MIMES.get(format_, "text/plain" if is_text else "")
    # Empty and null fields stay in `inner`, to distinguish them from missing ones.
    inner = drop_fields(block, "name", "source", "format" if format_ else "")
    unusual = format_ if _DOCUMENT_FORMATS.get(mime) != format_ else ""
    extra = with_metadata(rest, inner=inner, source=others, text=is_text, format=unusual, bare=not format_)
    return File(name=name, mime=mime, extra=extra, **source)


def write_own_media(part: Image | File) -> Block:
    """Write an image or document that was read from Bedrock, unchanged."""
    extra: Any = part.extra
    rest = provider_fields(extra)
    inner: Block = {"source": _write_own_source(part) | extra.get("_source", {}), **extra.get("_inner", {})}
    if isinstance(part, Image):
        return {"image": {"format": part.mime.partition("/")[2], **inner}, **rest}
    format_ = {} if "_bare" in extra else {"format": extra.get("_format", _DOCUMENT_FORMATS.get(part.mime, "txt"))}
    return {"document": {**format_, "name": part.name, **inner}, **rest}


def write_other_media(part: Image | File, names: DocumentNames) -> Block:
    """Write an image or document of another API, as a text placeholder if Bedrock does not support it."""
    mime, data = inline_data(part.url) or (part.mime, part.data)
    is_image = isinstance(part, Image) or mime.startswith("image/")
    format_ = _IMAGE_FORMATS.get(mime) if is_image else _DOCUMENT_FORMATS.get(mime) or _get_text_format(mime)
    source = _write_other_source(part, data)
    if format_ is None or source is None:
        return {"text": media_note(part).text}
    if is_image:
        return {"image": {"format": format_, "source": source}}
    return {"document": {"format": format_, "name": names.create(getattr(part, "name", "")), "source": source}}


def _read_source(block: Block, path: str) -> tuple[dict[str, str], Block]:
    """Return `data`, `text` or `file_id` of a source, and its other fields, or both empty if it is of another kind."""
    source, source_path = require_mapping(block, "source", path), join_path(path, "source")
    if source.get("bytes") not in (None, ""):
        return {"data": require_text(source, "bytes", source_path)}, drop_fields(source, "bytes")
    if source.get("text") not in (None, ""):
        return {"text": require_text(source, "text", source_path)}, drop_fields(source, "text")
    if source.get("s3Location") is not None:
        location = require_mapping(source, "s3Location", source_path)
        uri = require_text(location, "uri", join_path(source_path, "s3Location"))
        return ({"file_id": uri} if uri else {}), source
    return {}, {}


def _write_own_source(part: Image | File) -> Block:
    if part.file_id:
        return {"s3Location": {"uri": part.file_id}}
    data = decode_base64(part.data)
    if "_text" in part.extra and isinstance(data, bytes):
        return {"text": data.decode("utf-8", "surrogatepass")}
    return {"bytes": data}


def _write_other_source(part: Image | File, data: str) -> Block | None:
    if part.file_id.startswith(_S3_SCHEME) and not data:
        return {"s3Location": {"uri": part.file_id}}
    decoded = decode_base64(data)
    return {"bytes": decoded} if decoded and isinstance(decoded, bytes) else None


def _get_text_format(mime: str) -> str | None:
    return "txt" if mime.startswith("text/") or mime in _TEXT_MIMES else None


if TYPE_CHECKING:
    Reader = Callable[[Any, Block], Part]


def read_blocks(content: list[Any], path: str) -> tuple[Part, ...]:
    """Return the parts of a list of blocks."""
    return read_each(content, lambda item: _read_block(item, _BLOCK_READERS), path)


def join_cited_text(cited: Block) -> str:
    """Return the text of a `citationsContent` block."""
    content = cited.get("content")
    texts = [each.get("text") for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def _read_block(item: object, readers: dict[str, Reader]) -> Any:  # noqa: ANN401 - any part, or any part of a result
    block = require_object(item)
    kinds = [kind for kind in readers if block.get(kind) is not None]
    if len(kinds) > 1:
        raise MessageError(f"a block is one thing, not {' and '.join(kinds)}", hint="make two blocks of it")
    if not block:
        raise MessageError("a block is empty", hint='a block says what it is: {"text": "…"}')
    if "type" in block:
        hint = 'Converse has {"text": "…"}; this looks like a block of another API, which another dialect reads'
        raise MessageError("a block of Converse has no 'type'", path="type", hint=hint)
    return readers[kinds[0]](block[kinds[0]], drop_fields(block, *kinds)) if kinds else Opaque(API, block)


def _read_text(value: object, rest: Block) -> Text:
    return Text(require_text({"text": value}, "text"), with_metadata(rest))


def _read_citations(value: object, rest: Block) -> Part:
    """Read text with citations. The citations are kept as metadata for Bedrock only."""
    cited = require_mapping({"citationsContent": value}, "citationsContent")
    text = join_cited_text(cited)
    return Text(text, with_metadata(rest, cited=cited)) if text else Opaque(API, {"citationsContent": cited, **rest})


def _read_reasoning(value: object, rest: Block) -> Reasoning | Opaque:
    block = require_mapping({"reasoningContent": value}, "reasoningContent")
    if block.get("reasoningText") is not None:
        path = "reasoningContent.reasoningText"
        inner = require_mapping(block, "reasoningText", "reasoningContent")
        text, signature = require_text(inner, "text", path), get_text(inner, "signature", path)
        others = drop_fields(inner, "text", "signature") if signature else drop_fields(inner, "text")
        extra = with_metadata(rest, inner=others, beside=drop_fields(block, "reasoningText"))
        return Reasoning(text=text, signature=signature, api=API, extra=extra)
    encrypted = get_text(block, "redactedContent", "reasoningContent")
    if not encrypted:
        return Opaque(API, {"reasoningContent": block, **rest})
    return Reasoning(
        encrypted=encrypted, api=API, extra=with_metadata(rest, beside=drop_fields(block, "redactedContent"))
    )


def _read_call(value: object, rest: Block) -> ToolCall | Opaque:
    block = require_mapping({"toolUse": value}, "toolUse")
    if block.get("type") is not None:  # a tool that the provider runs
        return Opaque(API, {"toolUse": block, **rest})
    call_id, name = require_text(block, "toolUseId", "toolUse"), require_text(block, "name", "toolUse")
    if "input" not in block:
        raise MessageError("there is no 'input'", path="toolUse.input", hint="it must be an object")
    arguments = block["input"]
    inner = drop_fields(block, "toolUseId", "name", "input")
    if isinstance(arguments, dict):
        return ToolCall(call_id, name, arguments, extra=with_metadata(rest, inner=inner))
    raw = _dump_json(arguments, "toolUse.input")
    return ToolCall(call_id, name, raw=raw, extra=with_metadata(rest, inner=inner, input=[arguments]))


def _read_result(value: object, rest: Block) -> ToolResult | Opaque:
    block = require_mapping({"toolResult": value}, "toolResult")
    if block.get("type") is not None:  # the result of a tool that the provider ran
        return Opaque(API, {"toolResult": block, **rest})
    call_id, status = require_text(block, "toolUseId", "toolResult"), get_text(block, "status", "toolResult")
    content = require_list(block, "content", "toolResult")
    parts = read_each(content, lambda item: _read_block(item, _RESULT_READERS), join_path("toolResult", "content"))
    failed = status == "error"
    # An empty content stays in `inner`, to distinguish it from one that was removed later.
    inner = drop_fields(block, "toolUseId", "content" if content else "", "status" if failed else "")
    return ToolResult(call_id, parts, is_error=failed, extra=with_metadata(rest, inner=inner))


def _read_json(value: object, rest: Block) -> ResultPart:
    """Read a JSON block as its text, or as Opaque if it cannot be serialized."""
    try:
        return Text(_dump_json(value, "json"), with_metadata(rest, json=True))
    except MessageError:
        return Opaque(API, {"json": value, **rest})


def _dump_json(value: object, path: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise MessageError(f"{json_kind(value)} cannot be written as JSON: {error}", path=path) from None


_MEDIA_READERS: dict[str, Reader] = {
    "image": lambda value, rest: read_image(require_mapping({"image": value}, "image"), rest),
    "document": lambda value, rest: read_document(require_mapping({"document": value}, "document"), rest),
}
_RESULT_READERS: dict[str, Reader] = {"text": _read_text, "json": _read_json, **_MEDIA_READERS}
_BLOCK_READERS: dict[str, Reader] = {
    "text": _read_text,
    **_MEDIA_READERS,
    "toolUse": _read_call,
    "toolResult": _read_result,
    "reasoningContent": _read_reasoning,
    "citationsContent": _read_citations,
}
"""The reader of each kind of block. Others stay unchanged: video, audio, cache points, guardrail content."""

CACHE_POINT = "cachePoint"
_EMPTY_RESULT_TEXTS = {True: "[the tool failed and said nothing]", False: "[the tool said nothing]"}
"""The text of an empty result, by whether it is an error.

Claude accepts `[]` as content, other models reject it (strands-agents/harness-sdk#2123)."""


def write_blocks(parts: Iterable[Part], api: str, names: DocumentNames, *, media: bool = True) -> list[Block]:
    """Return the blocks of parts. Opaque blocks, reasoning and blank texts of other APIs are dropped.

    Args:
        parts: The parts to write.
        api: The API that they were read from.
        names: The names of documents in the request.
        media: False to replace images and documents of other APIs by a text placeholder.
    """
    replaced = (Image, File) if not media and api != API else ()
    written = (media_note(part) if isinstance(part, replaced) else part for part in parts)
    return [block for part in written if (block := _write_part(part, api, names)) is not None]


def reserve_names(parts: Iterable[Part], names: DocumentNames) -> None:
    """Reserve the names of documents that were read from Bedrock."""
    for part in parts:
        if isinstance(part, File):
            names.reserve(part.name)
        elif isinstance(part, ToolResult):
            reserve_names(part.parts, names)


def build_cache_point(lifetime: str) -> Block:
    """Return a cache point block, which ends the cached prefix."""
    return {CACHE_POINT: {"type": "default"} | ({"ttl": lifetime} if lifetime == "1h" else {})}


def is_blank_text(block: Block) -> bool:
    """Return True if a block is a blank text."""
    return "text" in block and not str(block["text"] or "").strip()


def fill_empty_result(block: Block) -> Block:
    """Return a block, with a placeholder text if it is a result without content."""
    result = block.get("toolResult")
    if not isinstance(result, dict) or result.get("content") != []:
        return block
    return block | {"toolResult": result | {"content": _build_empty_content(is_error=result.get("status") == "error")}}


def _build_empty_content(*, is_error: bool) -> list[Block]:
    return [{"text": _EMPTY_RESULT_TEXTS[is_error]}]


def _write_part(part: Part, api: str, names: DocumentNames) -> Block | None:
    if isinstance(part, Opaque):
        return _write_opaque(part) if part.api == API else None
    if isinstance(part, Reasoning):
        return _write_reasoning(part) if part.api == API else None
    own = api == API
    if isinstance(part, Image | File):
        return write_own_media(part) if own else write_other_media(part, names)
    if isinstance(part, ToolResult):
        return _write_result(part, api, names)
    if isinstance(part, ToolCall):
        return _write_call(part, own=own)
    return _write_own_text(part) if own else {"text": part.text} if part.text.strip() else None


def _write_opaque(part: Opaque) -> Block | None:
    mark = part.block.get(CACHE_POINT)
    if isinstance(mark, dict) and mark.get("type") == "ephemeral":  # a cache marker in the neutral form
        return build_cache_point(str(mark.get("ttl", "")))
    return restore_bytes(part.block) or None  # empty after its cache marker was removed


def _write_own_text(part: Text) -> Block:
    extra: Any = part.extra
    rest = provider_fields(extra)
    if "_cited" in extra and join_cited_text(extra["_cited"]) == part.text:
        return {"citationsContent": extra["_cited"], **rest}
    if "_json" in extra:
        try:
            return {"json": json.loads(part.text), **rest}
        except (ValueError, RecursionError):  # the text was truncated
            pass
    return {"text": part.text, **rest}


def _write_reasoning(part: Reasoning) -> Block:
    extra: Any = part.extra
    beside = extra.get("_beside", {})
    if part.encrypted:
        return {
            "reasoningContent": {"redactedContent": decode_base64(part.encrypted), **beside},
            **provider_fields(extra),
        }
    inner: Block = {"text": part.text} | ({"signature": part.signature} if part.signature else {})
    return {
        "reasoningContent": {"reasoningText": inner | extra.get("_inner", {}), **beside},
        **provider_fields(extra),
    }


def _write_call(call: ToolCall, *, own: bool) -> Block:
    extra: Any = call.extra if own else {}
    arguments = extra["_input"][0] if call.raw is not None and "_input" in extra else call_arguments(call)
    body = {"toolUseId": call.id, "name": call.name, "input": arguments}
    return {"toolUse": body | extra.get("_inner", {}), **provider_fields(extra)}


def _write_result(result: ToolResult, api: str, names: DocumentNames) -> Block:
    extra: Any = result.extra if api == API else {}
    content = write_blocks(result.parts, api, names) or _build_empty_content(is_error=result.is_error)
    body: Block = {"toolUseId": result.call_id, "content": content}
    status = {"status": "error"} if result.is_error else {}
    return {"toolResult": body | extra.get("_inner", {}) | status, **provider_fields(extra)}


ROLES = ("user", "assistant", "system")
_CACHEABLE_BLOCKS = frozenset({"text", "image", "toolUse", "toolResult", "guardContent", "citationsContent"})
"""Blocks that a cache point may follow. After a document, some formats reject it (pizza-bot-app/pizza-bot#6)."""


class _BedrockMessage(NamedTuple):
    """One element of the list of messages.

    Attributes:
        body: The message in the format of Converse.
        own: True if it is one unchanged message that was read from Bedrock.
    """

    body: Block
    own: bool


def read_message(item: object) -> Message:
    """Read one element of `messages`."""
    return parse_message(to_json_dict(item))


def parse_message(block: Block) -> Message:
    """Read one element of `messages` from a dict of JSON types, which may be kept without a copy."""
    role = require_text(block, "role")
    if role not in ROLES:
        raise MessageError(f"unknown role {role!a}", path="role", hint=f"Bedrock knows {', '.join(ROLES)}")
    if isinstance(block.get("content"), str):
        hint = 'Converse has a list of blocks: [{"text": "…"}]'
        raise MessageError(f"expected a list, not {json_kind(block['content'])}", path="content", hint=hint)
    parts = read_blocks(require_list(block, "content"), "content")
    speaker: Any = "tool" if role == "user" and {*map(type, parts)} == {ToolResult} else role
    return Message(speaker, parts, api=API, extra=with_metadata(drop_fields(block, "role", "content")))


def read_system_blocks(blocks: list[Any]) -> Message:
    """Read the field `system` as one message."""
    return Message("system", read_blocks(blocks, "system"), api=API, extra={"_field": True})


def write_messages(
    messages: Iterable[Message], marks: Mapping[int, str] | None = None, *, strictly: bool = False
) -> list[Block]:
    """Return `messages`: roles alternate, and all tool results come first in the message after their calls.

    Args:
        messages: The messages to write.
        marks: Lifetimes of cache points by the index of the message that they end.
        strictly: True to also make Bedrock's own messages valid for every model: neighbours with the same role are
            merged, and empty results get a text.
    """
    with_ids = assign_call_ids(messages, API)
    names = DocumentNames()
    for message in with_ids:
        if message.api == API:
            reserve_names(message.parts, names)
    elements: list[_BedrockMessage] = []
    for index, message in enumerate(with_ids):
        element = _write_message(message, names)
        if element is None:
            continue
        if marks and index in marks:
            element = _BedrockMessage(_mark_message(element.body, marks[index]), element.own)
        if elements and _must_merge(elements[-1], element, strictly=strictly):
            element = _merge_messages(elements.pop(), element)
        elements.append(element)
    return [element.body if element.own and not strictly else _add_required_text(element.body) for element in elements]


def write_system(messages: Iterable[Message], marks: Mapping[int, str] | None = None) -> list[Block]:
    """Return `system`: all system messages except those that Bedrock had in `messages`."""
    blocks: list[Block] = []
    for index, message in enumerate(messages):
        if message.role == "system" and not _is_in_list(message):
            blocks += write_blocks(message.parts, message.api, DocumentNames(), media=False)
            if marks and index in marks:
                blocks = add_cache_point(blocks, marks[index])
    return blocks


def add_cache_point(blocks: Sequence[Block], lifetime: str) -> list[Block]:
    """Return blocks with a cache point after the last cacheable one, unless it already has one."""
    last = next((index for index in reversed(range(len(blocks))) if _is_cacheable(blocks[index])), None)
    if last is None or (last + 1 < len(blocks) and CACHE_POINT in blocks[last + 1]):
        return list(blocks)
    return [*blocks[: last + 1], build_cache_point(lifetime), *blocks[last + 1 :]]


def _is_cacheable(block: Block) -> bool:
    return bool(_CACHEABLE_BLOCKS & block.keys()) and not is_blank_text(block)


def _is_in_list(message: Message) -> bool:
    return message.api == API and "_field" not in message.extra


def _write_message(message: Message, names: DocumentNames) -> _BedrockMessage | None:
    own = message.api == API
    if message.role == "system" and not _is_in_list(message):
        return None
    blocks = write_blocks(message.parts, message.api, names, media=message.role != "assistant")
    role = "user" if message.role == "tool" else message.role
    if own:
        return _BedrockMessage({"role": role, "content": blocks, **provider_fields(message.extra)}, own)
    return _BedrockMessage({"role": role, "content": _sort_results_first(blocks)}, own) if blocks else None


def _mark_message(body: Block, lifetime: str) -> Block:
    return body | {"content": add_cache_point(body["content"], lifetime)}


def _must_merge(before: _BedrockMessage, after: _BedrockMessage, *, strictly: bool) -> bool:
    # "A conversation must alternate between user and assistant roles" (Portkey-AI/gateway#748).
    is_same_role: bool = before.body["role"] == after.body["role"] != "system"
    return is_same_role and (strictly or not (before.own and after.own))


def _merge_messages(before: _BedrockMessage, after: _BedrockMessage) -> _BedrockMessage:
    blocks = [block for block in (*before.body["content"], *after.body["content"]) if not is_blank_text(block)]
    return _BedrockMessage(after.body | before.body | {"content": _sort_results_first(blocks)}, own=False)


def _sort_results_first(blocks: Sequence[Block]) -> list[Block]:
    return sorted(blocks, key=lambda block: "toolResult" not in block)


def _add_required_text(body: Block) -> Block:
    """Return a message with text beside documents and in empty results, which Bedrock requires."""
    content = [fill_empty_result(block) for block in body["content"]]
    documents = [each.get("name") for block in content if isinstance(each := block.get("document"), dict)]
    if not documents or any("text" in block for block in content):
        return body | {"content": content}
    return body | {"content": [*content, {"text": f"[documents: {', '.join(map(str, documents))}]"}]}


_CALL_FIELDS = 3
"""Number of fields of a plain call: toolUseId, name and input. Counting fields is faster than comparing their names,
and as strict where every value is checked, because the value of a missing field is None."""
_RESULT_FIELDS = 2
"""toolUseId and content; a status may come with them."""


def outline_message(item: object) -> Outline | None:
    """Return the outline of an element of `messages`, or None unless it has the plain shape."""
    if type(item) is not dict or len(item) != 2:  # noqa: PLR2004 - role and content
        return None
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant") or type(content) is not list or not content:
        return None
    found = Outline("assistant" if role == "assistant" else "user")
    for block in content:
        if type(block) is not dict or len(block) != 1 or not _add_block(found, block):
            return None
    return found.with_tool_role(len(content))


def _add_block(found: Outline, block: Block) -> bool:
    if "text" in block:
        return found.add_text(block["text"])
    call = block.get("toolUse")
    if type(call) is dict:
        if len(call) != _CALL_FIELDS:
            return False
        return found.add_call(call.get("toolUseId"), call.get("name"), call.get("input"), dict)
    result = block.get("toolResult")
    return type(result) is dict and _add_result(found, result)


def _add_result(found: Outline, result: Block) -> bool:
    if "status" in result and result["status"] not in ("success", "error"):
        return False
    content = result.get("content")
    if len(result) != _RESULT_FIELDS + ("status" in result) or not found.add_result(result.get("toolUseId"), ""):
        return False
    if type(content) is not list or not content:
        return False
    for block in content:
        if type(block) is not dict or len(block) != 1 or not found.add_text(block.get("text")):
            return False
    return True
