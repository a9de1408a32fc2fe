"""The parts of a content: text and thoughts, media, calls of functions and what they brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.arguments import as_object
from nexus_core.dialects.fields import at, mapping_of
from nexus_core.dialects.gemini.media import read_file, read_inline, write_media
from nexus_core.dialects.gemini.results import read_result, write_result
from nexus_core.dialects.gemini.spelling import Fields, camel, respelled
from nexus_core.dialects.media import absent
from nexus_core.dialects.notes import filled, noted
from nexus_core.errors import MessageError
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core.values.parts import Part

Block = dict[str, Any]

SIGNATURE = "thoughtSignature"


def is_part(block: Mapping[str, Any]) -> bool:
    """Whether a dict is surely a part."""
    return "type" not in block and any(block[key] is not None and camel(key) in _KINDS for key in block)


def read_part(block: Block) -> Part:
    """One part. What Gemini runs itself, and what is new, goes back as it came."""
    fields = Fields(block)
    kinds = [kind for kind in _KINDS if kind in fields]
    if len(kinds) > 1:
        raise MessageError(f"a part is one thing, not {' and '.join(kinds)}", hint="make two parts of it")
    read = _KINDS[kinds[0]] if kinds else None
    return (read(fields) if read else None) or Opaque("gemini", block)


def write_part(part: Part, api: str, names: Mapping[str, str]) -> Block | None:
    """One part that `api` read; None for another API's blocks and thoughts, and for an empty text of it.

    Args:
        part: What to write.
        api: Who read it.
        names: The functions that were called, by the id of the call.
    """
    own = api == "gemini"
    if isinstance(part, Opaque | Reasoning):
        return _write_sealed(part) if part.api == "gemini" else None
    if isinstance(part, ToolResult):
        return write_result(part, api, part.name if own else part.name or names.get(part.call_id) or "unknown")
    if isinstance(part, ToolCall):
        return _write_call(part, own=own)
    if isinstance(part, Image | File):
        return write_media(part, api) or {"text": absent(part).text}
    if own:
        return filled({"text": part.text}, part.extra)
    return {"text": part.text} if part.text.strip() else None


def _read_text(fields: Fields) -> Text | Reasoning:
    text = fields.text("text")
    if fields.rest.get("thought") is not True:
        return Text(text, noted(fields.rest))
    fields.take("thought")
    signature = fields.words(SIGNATURE)
    extra = noted(fields.rest, snake=fields.spelled)
    return Reasoning(text=text, signature=signature, api="gemini", extra=extra)


def _write_sealed(part: Opaque | Reasoning) -> Block:
    """What goes back to Gemini just as it came."""
    if isinstance(part, Opaque):
        return dict(part.block)
    signed = {SIGNATURE: part.signature} if part.signature else {}
    return respelled({"text": part.text, "thought": True} | signed, part.extra)


def _read_call(fields: Fields) -> ToolCall:
    inner = fields.opened("functionCall")
    call_id, name = inner.words("id"), inner.text("name")
    missing = "args" not in inner.rest
    arguments: Block = {}
    if "args" in inner:
        with at(inner.path("args")):
            arguments = mapping_of(inner.take("args"))
    extra = noted(fields.rest, snake=fields.spelled, inner=inner.rest, missing=missing)
    return ToolCall(call_id, name, arguments, extra=extra)


def _write_call(call: ToolCall, *, own: bool) -> Block:
    rest: Any = call.extra.get("_inner", {}) if own else {}
    inner: Block = ({"id": call.id} if call.id else {}) | {"name": call.name}
    arguments = as_object(call)
    # Where there were none, the field was missing or null.
    if arguments or not (own and ("_missing" in call.extra or "args" in rest)):
        inner["args"] = arguments
    body: Block = {"functionCall": inner}
    return respelled(body, call.extra) if own else body


_KINDS: dict[str, Callable[[Fields], Part | None] | None] = {
    "text": _read_text,
    "inlineData": read_inline,
    "fileData": read_file,
    "functionCall": _read_call,
    "functionResponse": read_result,
    "executableCode": None,
    "codeExecutionResult": None,
    "toolCall": None,
    "toolResponse": None,
}
"""What a part may be, one thing at a time, and who reads it."""
