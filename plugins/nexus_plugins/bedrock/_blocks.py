"""The blocks of a message's content. A block is an object with one field, which says what it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError
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
    noted,
    read_each,
)
from nexus_plugins.bedrock._fields import (
    API,
    inside,
    list_in,
    mapping_in,
    mapping_of,
    named,
    text_in,
    unpacked,
    with_bytes,
    without,
    words_in,
)
from nexus_plugins.bedrock._media import read_document, read_image, write_foreign, write_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.plugin import Part, ResultPart
    from nexus_plugins.bedrock._fields import Block
    from nexus_plugins.bedrock._media import Names

    Reader = Callable[[Any, Block], Part]

MARK = "cachePoint"
SILENT = {True: "[the tool failed and said nothing]", False: "[the tool said nothing]"}
"""What a result says that says nothing, by whether it is an error."""


def read_blocks(content: list[Any], path: str) -> tuple[Part, ...]:
    """The parts of a list of blocks."""
    return read_each(content, lambda item: _read_block(item, _READERS), path)


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


# ---- reading --------------------------------------------------------------------------------------------------------


def _read_block(item: object, readers: dict[str, Reader]) -> Any:  # noqa: ANN401 - any part, or any part of a result
    block = mapping_of(item)
    kinds = [kind for kind in readers if block.get(kind) is not None]
    if len(kinds) > 1:
        raise MessageError(f"a block is one thing, not {' and '.join(kinds)}", hint="make two blocks of it")
    if not block:
        raise MessageError("a block is empty", hint='a block says what it is: {"text": "…"}')
    if "type" in block and not kinds:
        hint = 'Converse has {"text": "…"}; this looks like a block of another API, which another dialect reads'
        raise MessageError("a block of Converse has no 'type'", path="type", hint=hint)
    return readers[kinds[0]](block[kinds[0]], without(block, *kinds)) if kinds else Opaque(API, block)


def _read_text(value: object, rest: Block) -> Text:
    return Text(text_in({"text": value}, "text"), noted(rest))


def _read_cited(value: object, rest: Block) -> Part:
    """What was said with its sources; only Bedrock gets those back."""
    cited = mapping_in({"citationsContent": value}, "citationsContent")
    words = _cited_words(cited)
    return Text(words, noted(rest, cited=cited)) if words else Opaque(API, {"citationsContent": cited, **rest})


def _cited_words(cited: Block) -> str:
    content = cited.get("content")
    texts = [each.get("text") for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return "".join(text for text in texts if isinstance(text, str))


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
    inner = without(block, "toolUseId", "content", "status" if failed else "")
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
        raise MessageError(f"{named(value)} cannot be written as JSON: {error}", path=path) from None


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


# ---- writing --------------------------------------------------------------------------------------------------------


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
    if "_cited" in extra and _cited_words(extra["_cited"]) == part.text:
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
    content = write_blocks(result.parts, api, names)
    if not content and api != API:
        content = [{"text": SILENT[result.is_error]}]
    body: Block = {"toolUseId": result.call_id, "content": content}
    status = {"status": "error"} if result.is_error else {}
    return {"toolResult": body | extra.get("_inner", {}) | status, **fields_of(extra)}
