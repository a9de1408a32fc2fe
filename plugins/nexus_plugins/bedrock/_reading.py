"""From blocks to parts. A block is an object with one field, which says what it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError
from nexus_core.plugin import Opaque, Reasoning, Text, ToolCall, ToolResult, json_kind, noted, read_each
from nexus_plugins.bedrock._fields import (
    API,
    inside,
    list_in,
    mapping_in,
    mapping_of,
    text_in,
    without,
    words_in,
)
from nexus_plugins.bedrock._media import read_document, read_image

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.plugin import Part, ResultPart
    from nexus_plugins.bedrock._fields import Block

    Reader = Callable[[Any, Block], Part]


def read_blocks(content: list[Any], path: str) -> tuple[Part, ...]:
    """The parts of a list of blocks."""
    return read_each(content, lambda item: _read_block(item, _READERS), path)


def cited_words(cited: Block) -> str:
    """What was said, of what was said with its sources."""
    content = cited.get("content")
    texts = [each.get("text") for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def _read_block(item: object, readers: dict[str, Reader]) -> Any:  # noqa: ANN401 - any part, or any part of a result
    block = mapping_of(item)
    kinds = [kind for kind in readers if block.get(kind) is not None]
    if len(kinds) > 1:
        raise MessageError(f"a block is one thing, not {' and '.join(kinds)}", hint="make two blocks of it")
    if not block:
        raise MessageError("a block is empty", hint='a block says what it is: {"text": "…"}')
    if "type" in block:
        hint = 'Converse has {"text": "…"}; this looks like a block of another API, which another dialect reads'
        raise MessageError("a block of Converse has no 'type'", path="type", hint=hint)
    return readers[kinds[0]](block[kinds[0]], without(block, *kinds)) if kinds else Opaque(API, block)


def _read_text(value: object, rest: Block) -> Text:
    return Text(text_in({"text": value}, "text"), noted(rest))


def _read_cited(value: object, rest: Block) -> Part:
    """What was said with its sources; only Bedrock gets those back."""
    cited = mapping_in({"citationsContent": value}, "citationsContent")
    words = cited_words(cited)
    return Text(words, noted(rest, cited=cited)) if words else Opaque(API, {"citationsContent": cited, **rest})


def _read_thought(value: object, rest: Block) -> Reasoning | Opaque:
    block = mapping_in({"reasoningContent": value}, "reasoningContent")
    if block.get("reasoningText") is not None:
        path = "reasoningContent.reasoningText"
        inner = mapping_in(block, "reasoningText", "reasoningContent")
        text, signature = text_in(inner, "text", path), words_in(inner, "signature", path)
        others = without(inner, "text", "signature") if signature else without(inner, "text")
        extra = noted(rest, inner=others, beside=without(block, "reasoningText"))
        return Reasoning(text=text, signature=signature, api=API, extra=extra)
    sealed = words_in(block, "redactedContent", "reasoningContent")
    if not sealed:
        return Opaque(API, {"reasoningContent": block, **rest})
    return Reasoning(encrypted=sealed, api=API, extra=noted(rest, beside=without(block, "redactedContent")))


def _read_call(value: object, rest: Block) -> ToolCall | Opaque:
    block = mapping_in({"toolUse": value}, "toolUse")
    if block.get("type") is not None:  # the provider runs it itself
        return Opaque(API, {"toolUse": block, **rest})
    call_id, name = text_in(block, "toolUseId", "toolUse"), text_in(block, "name", "toolUse")
    if "input" not in block:
        raise MessageError("there is no 'input'", path="toolUse.input", hint="it must be an object")
    arguments = block["input"]
    inner = without(block, "toolUseId", "name", "input")
    if isinstance(arguments, dict):
        return ToolCall(call_id, name, arguments, extra=noted(rest, inner=inner))
    raw = _dumped(arguments, "toolUse.input")
    return ToolCall(call_id, name, raw=raw, extra=noted(rest, inner=inner, input=[arguments]))


def _read_result(value: object, rest: Block) -> ToolResult | Opaque:
    block = mapping_in({"toolResult": value}, "toolResult")
    if block.get("type") is not None:  # of a tool that the provider ran
        return Opaque(API, {"toolResult": block, **rest})
    call_id, status = text_in(block, "toolUseId", "toolResult"), words_in(block, "status", "toolResult")
    content = list_in(block, "content", "toolResult")
    parts = read_each(content, lambda item: _read_block(item, _RESULT_READERS), inside("toolResult", "content"))
    failed = status == "error"
    # No content at all stays inside, to be told from one that was taken away since.
    inner = without(block, "toolUseId", "content" if content else "", "status" if failed else "")
    return ToolResult(call_id, parts, is_error=failed, extra=noted(rest, inner=inner))


def _read_json(value: object, rest: Block) -> ResultPart:
    """Any JSON: for others its text; as it came where it cannot be written."""
    try:
        return Text(_dumped(value, "json"), noted(rest, json=True))
    except MessageError:
        return Opaque(API, {"json": value, **rest})


def _dumped(value: object, path: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise MessageError(f"{json_kind(value)} cannot be written as JSON: {error}", path=path) from None


_MEDIA: dict[str, Reader] = {
    "image": lambda value, rest: read_image(mapping_in({"image": value}, "image"), rest),
    "document": lambda value, rest: read_document(mapping_in({"document": value}, "document"), rest),
}
_RESULT_READERS: dict[str, Reader] = {"text": _read_text, "json": _read_json, **_MEDIA}
_READERS: dict[str, Reader] = {
    "text": _read_text,
    **_MEDIA,
    "toolUse": _read_call,
    "toolResult": _read_result,
    "reasoningContent": _read_thought,
    "citationsContent": _read_cited,
}
"""Who reads which block. Others go back as they came: films, sound, marks for the cache, what a guardrail is told."""
