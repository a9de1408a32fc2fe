"""The blocks of a message's content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.media import read_document, read_image, write_media
from nexus_core.dialects.arguments import as_object
from nexus_core.dialects.fields import mapping_in, mapping_of, named, take_text, take_words, text_in
from nexus_core.dialects.media import absent
from nexus_core.dialects.notes import filled, noted
from nexus_core.dialects.requests import read_each
from nexus_core.dialects.rules import SILENT_ERROR
from nexus_core.errors import MessageError
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.values.parts import Part, ResultPart

    Readers = dict[str, Callable[["Block"], Any]]

Block = dict[str, Any]


def read_content(block: Block, readers: Readers) -> tuple[list[Any], str]:
    """The parts of a content, taken out of what holds it; and `list` where they stood in one."""
    content = block.get("content")
    if content is None:
        return [], ""
    del block["content"]
    if isinstance(content, str):
        return [Text(content)], ""
    return read_blocks(content, readers, "content"), "list"


def read_blocks(content: object, readers: Readers, path: str) -> list[Any]:
    """The parts of a list of blocks, which is there."""
    if not isinstance(content, list):
        raise MessageError(f"expected text or a list of blocks, not {named(content)}", path=path)

    def read_block(item: object) -> Any:  # noqa: ANN401 - any part, or any part of a result
        block = mapping_of(item)
        read = readers.get(text_in(block, "type"))
        return read(block) if read else Opaque("anthropic", block)

    return list(read_each(content, read_block, path))


def write_content(blocks: Sequence[Block], spelling: object) -> str | list[Block]:
    """A text where one is enough and Anthropic did not have a list, otherwise a list of blocks."""
    if spelling != "list" and len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        text: str = blocks[0]["text"]
        return text
    return list(blocks)


def write_blocks(parts: Iterable[Part], api: str, *, media: bool = True) -> list[Block]:
    """The blocks of parts that `api` read: of another API no blocks, no thoughts and no empty texts.

    Args:
        parts: What to write.
        api: Who read it.
        media: Whether pictures and documents of another API may stand here; otherwise they are named.
    """
    shown = (
        absent(part) if not media and isinstance(part, Image | File) and api != "anthropic" else part for part in parts
    )
    blocks = (block for part in shown if (block := _write(part, api)) is not None)
    return [block for block in blocks if api == "anthropic" or not is_blank(block)]


def is_blank(block: Block) -> bool:
    """Whether it is a text that says nothing; Anthropic refuses those."""
    # A block that somebody made by hand may lack either.
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _write(part: Part, api: str) -> Block | None:
    if isinstance(part, Opaque):
        return dict(part.block) if part.api == "anthropic" else None
    if isinstance(part, Image | File):
        return write_media(part, api)
    if isinstance(part, Reasoning):
        return _write_thought(part) if part.api == "anthropic" else None
    if isinstance(part, ToolResult):
        return _write_result(part, api)
    if isinstance(part, ToolCall):
        body: Block = {"type": "tool_use", "id": part.id, "name": part.name, "input": as_object(part)}
    else:
        body = {"type": "text", "text": part.text}
    return filled(body, part.extra) if api == "anthropic" else body


def _write_thought(thought: Reasoning) -> Block:
    if thought.encrypted:
        return filled({"type": "redacted_thinking", "data": thought.encrypted}, thought.extra)
    body: Block = {"type": "thinking", "thinking": thought.text}
    if thought.signature:
        body["signature"] = thought.signature
    return filled(body, thought.extra)


def _write_result(result: ToolResult, api: str) -> Block:
    own = api == "anthropic"
    body: Block = {"type": "tool_result", "tool_use_id": result.call_id}
    blocks = write_blocks(result.parts, api)
    if result.is_error and not blocks and not own:
        blocks = [{"type": "text", "text": SILENT_ERROR}]
    if blocks or result.parts or (own and "_content" in result.extra):
        body["content"] = write_content(blocks, result.extra.get("_content") if own else "")
    if result.is_error:
        body["is_error"] = True
    return filled(body, result.extra) if own else body


def _read_text(block: Block) -> Text:
    del block["type"]
    return Text(take_text(block, "text"), noted(block))


def _read_thinking(block: Block) -> Reasoning:
    del block["type"]
    text = take_text(block, "thinking")
    signature = take_words(block, "signature")
    return Reasoning(text=text, signature=signature, api="anthropic", extra=noted(block))


def _read_redacted(block: Block) -> Reasoning | Opaque:
    if not text_in(block, "data"):
        return Opaque("anthropic", block)
    del block["type"]
    return Reasoning(encrypted=take_text(block, "data"), api="anthropic", extra=noted(block))


def _read_call(block: Block) -> ToolCall:
    del block["type"]
    call_id, name = take_text(block, "id"), take_text(block, "name")
    arguments = mapping_in(block, "input")
    del block["input"]
    return ToolCall(call_id, name, arguments, extra=noted(block))


def _read_result(block: Block) -> ToolResult:
    del block["type"]
    call_id = take_text(block, "tool_use_id")
    failed = block.get("is_error")
    if failed is not None and not isinstance(failed, bool):
        raise MessageError(f"expected true or false, not {named(failed)}", path="is_error")
    if failed:
        del block["is_error"]
    parts, spelling = read_content(block, _RESULT_READERS)
    return ToolResult(call_id, tuple(parts), is_error=bool(failed), extra=noted(block, content=spelling))


_RESULT_READERS: dict[str, Callable[[Block], ResultPart]] = {
    "text": _read_text,
    "image": read_image,
    "document": read_document,
}
READERS: dict[str, Callable[[Block], Part]] = {
    **_RESULT_READERS,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
    "tool_use": _read_call,
    "tool_result": _read_result,
}
"""Who reads which type of block. Others go back as they came: they are the provider's own business."""
