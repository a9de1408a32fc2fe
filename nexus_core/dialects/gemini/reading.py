"""From a content of Gemini's to a neutral message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import mapping_of, named, optional_text_in, without
from nexus_core.dialects.gemini.parts import is_part, read_part
from nexus_core.dialects.notes import noted
from nexus_core.dialects.plain import plain
from nexus_core.dialects.requests import read_each
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.values.message import Message
from nexus_core.values.parts import Text, ToolResult

if TYPE_CHECKING:
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part

Block = dict[str, Any]

_ROLES: dict[str, Role] = {"": "user", "user": "user", "model": "assistant", "function": "user", "tool": "user"}


def read_message(item: object) -> Message:
    """One element of `contents`; the SDK takes a text, a part or a list of parts for a content as well."""
    return read_content(content_of(plain(item)))


def read_content(block: Block) -> Message:
    """A content, a dict that may be taken apart."""
    given = optional_text_in(block, "role")
    if given not in _ROLES:
        raise MessageError(f"unknown role {given!a}", path="role", hint=_hint(given))
    parts = _read_parts(block)
    role = _ROLES[given]
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        role = "tool"
    missing = [key for key in ("role", "parts") if key not in block]
    # An empty role and null stay, to be told from what is missing.
    rest = without(block, "role" if given else "", "" if block.get("parts") is None else "parts")
    spelling = "" if given in ("user", "model") else given
    return Message(role, tuple(parts), api="gemini", extra=noted(rest, role=spelling, missing=missing))


def read_system(given: object) -> Message:
    """The instructions beside the contents: a text, a content, a part or a list of parts."""
    value = plain(given)
    if isinstance(value, str):
        return Message("system", (Text(value),), api="gemini")
    block = content_of(value)
    parts = _read_parts(block)
    return Message("system", tuple(parts), api="gemini", extra=noted(without(block, "parts"), content="list"))


def content_of(value: Any) -> Block:  # noqa: ANN401 - JSON has many types
    """What the SDK makes of a shorthand; anything else must be a content already."""
    if isinstance(value, str):
        return {"role": "user", "parts": [{"text": value}]}
    if isinstance(value, list):
        return {
            "role": "user",
            "parts": [{"text": each} if isinstance(each, str) else _part_of(each) for each in value],
        }
    block = mapping_of(value)
    if "content" in block and "parts" not in block:  # read as empty, what it says would be lost without a word
        hint = "Gemini has `parts`; this looks like a message of another API, which another dialect reads"
        raise MessageError("there is 'content' instead of 'parts'", path="content", hint=hint)
    if "role" in block or "parts" in block:
        return block
    part = _part_of(block)
    if not is_part(part):
        raise MessageError("there is no 'parts'", path="parts", hint="it must be a list of parts")
    # As the SDK does it: only a model calls functions.
    return {"role": "model" if "functionCall" in part or "function_call" in part else "user", "parts": [part]}


def _part_of(value: Any) -> Any:  # noqa: ANN401 - as above
    """A part; of an uploaded file, where it is."""
    if isinstance(value, dict) and isinstance(value.get("uri"), str) and not is_part(value):
        mime = value.get("mimeType") or value.get("mime_type")
        return {"fileData": {"fileUri": value["uri"]} | ({"mimeType": mime} if mime else {})}
    return value


def _read_parts(block: Block) -> list[Part]:
    given = block.get("parts")
    if given is None:
        return []
    if not isinstance(given, list):
        raise MessageError(f"expected a list of parts, not {named(given)}", path="parts")
    return list(read_each(given, lambda item: read_part(mapping_of(item)), "parts"))


def _hint(role: str) -> str:
    if role == "system":
        return "instructions stand in systemInstruction"
    return did_you_mean(role, _ROLES) or f"Gemini knows {', '.join(filter(None, _ROLES))}"
