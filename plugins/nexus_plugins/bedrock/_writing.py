"""From parts to blocks, and marks for the cache between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core.plugin import (
    File,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    call_arguments,
    fields_of,
    media_note,
)
from nexus_plugins.bedrock._fields import API, unpacked, with_bytes
from nexus_plugins.bedrock._media import write_foreign, write_own
from nexus_plugins.bedrock._reading import cited_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.plugin import Part
    from nexus_plugins.bedrock._fields import Block
    from nexus_plugins.bedrock._media import Names

MARK = "cachePoint"
_SILENT = {True: "[the tool failed and said nothing]", False: "[the tool said nothing]"}
"""What a result says that says nothing, by whether it is an error.

Claude takes `[]` as its content, other models refuse it (strands-agents/harness-sdk#2123)."""


def write_blocks(parts: Iterable[Part], api: str, names: Names, *, media: bool = True) -> list[Block]:
    """The blocks of parts that `api` read: of another API no blocks, no thoughts and no empty texts.

    Args:
        parts: What to write.
        api: Who read it.
        names: The names of documents in the request.
        media: Whether pictures and documents of another API may stand here; otherwise they are named.
    """
    hidden = (Image, File) if not media and api != API else ()
    shown = (media_note(part) if isinstance(part, hidden) else part for part in parts)
    return [block for part in shown if (block := _write(part, api, names)) is not None]


def note_names(parts: Iterable[Part], names: Names) -> None:
    """Take the names that documents of Bedrock's own have."""
    for part in parts:
        if isinstance(part, File):
            names.take(part.name)
        elif isinstance(part, ToolResult):
            note_names(part.parts, names)


def new_mark(lifetime: str) -> Block:
    """A block that ends what the provider is to keep."""
    return {MARK: {"type": "default"} | ({"ttl": lifetime} if lifetime == "1h" else {})}


def is_blank(block: Block) -> bool:
    """Whether it is a text that says nothing."""
    return "text" in block and not str(block["text"] or "").strip()


def with_words(block: Block) -> Block:
    """The same, where a result without content says that it has none."""
    result = block.get("toolResult")
    if not isinstance(result, dict) or result.get("content") != []:
        return block
    return block | {"toolResult": result | {"content": _no_words(is_error=result.get("status") == "error")}}


def _no_words(*, is_error: bool) -> list[Block]:
    return [{"text": _SILENT[is_error]}]


def _write(part: Part, api: str, names: Names) -> Block | None:
    if isinstance(part, Opaque):
        return _write_opaque(part) if part.api == API else None
    if isinstance(part, Reasoning):
        return _write_thought(part) if part.api == API else None
    own = api == API
    if isinstance(part, Image | File):
        return write_own(part) if own else write_foreign(part, names)
    if isinstance(part, ToolResult):
        return _write_result(part, api, names)
    if isinstance(part, ToolCall):
        return _write_call(part, own=own)
    return _write_own_text(part) if own else {"text": part.text} if part.text.strip() else None


def _write_opaque(part: Opaque) -> Block | None:
    mark = part.block.get(MARK)
    if isinstance(mark, dict) and mark.get("type") == "ephemeral":  # as Nexus itself writes marks
        return new_mark(str(mark.get("ttl", "")))
    return with_bytes(part.block) or None  # a mark that was taken away leaves nothing


def _write_own_text(part: Text) -> Block:
    extra: Any = part.extra
    rest = fields_of(extra)
    if "_cited" in extra and cited_words(extra["_cited"]) == part.text:
        return {"citationsContent": extra["_cited"], **rest}
    if "_json" in extra:
        try:
            return {"json": json.loads(part.text), **rest}
        except (ValueError, RecursionError):  # it was cut since
            pass
    return {"text": part.text, **rest}


def _write_thought(thought: Reasoning) -> Block:
    extra: Any = thought.extra
    beside = extra.get("_beside", {})
    if thought.encrypted:
        return {"reasoningContent": {"redactedContent": unpacked(thought.encrypted), **beside}, **fields_of(extra)}
    inner: Block = {"text": thought.text} | ({"signature": thought.signature} if thought.signature else {})
    return {"reasoningContent": {"reasoningText": inner | extra.get("_inner", {}), **beside}, **fields_of(extra)}


def _write_call(call: ToolCall, *, own: bool) -> Block:
    extra: Any = call.extra if own else {}
    given = extra["_input"][0] if call.raw is not None and "_input" in extra else call_arguments(call)
    body = {"toolUseId": call.id, "name": call.name, "input": given}
    return {"toolUse": body | extra.get("_inner", {}), **fields_of(extra)}


def _write_result(result: ToolResult, api: str, names: Names) -> Block:
    extra: Any = result.extra if api == API else {}
    content = write_blocks(result.parts, api, names) or _no_words(is_error=result.is_error)
    body: Block = {"toolUseId": result.call_id, "content": content}
    status = {"status": "error"} if result.is_error else {}
    return {"toolResult": body | extra.get("_inner", {}) | status, **fields_of(extra)}
