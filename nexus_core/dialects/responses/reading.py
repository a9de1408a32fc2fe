"""From an item of Responses to a neutral message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import mapping_of, named, take_text, take_words, text_in
from nexus_core.dialects.notes import noted
from nexus_core.dialects.plain import plain_mapping
from nexus_core.dialects.responses.calls import is_call, is_result, read_call, read_result
from nexus_core.dialects.responses.parts import read_parts
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.values.message import Message
from nexus_core.values.parts import Opaque, Reasoning

if TYPE_CHECKING:
    from nexus_core.values.message import Role

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
SENT_ITEMS: dict[str, Role] = {
    "additional_tools": "system",
    "compaction_trigger": "user",
    "configuration_update": "system",
    "item_reference": "user",
    "mcp_approval_response": "user",
}
"""Items that Nexus has no word for, and the client sends. The others come from the model."""


def read_item(item: object) -> Message:
    """One item of Responses' input or output."""
    block = plain_mapping(item)
    kind = block.get("type")
    if kind == "message" or (kind is None and "role" in block):
        return _read_message(block)
    if kind is None and "id" in block:
        return _opaque(block, "item_reference")
    text_in(block, "type")
    if is_call(block):
        return Message("assistant", (read_call(block),), api="responses")
    if is_result(block):
        return Message("tool", (read_result(block),), api="responses")
    if kind == "reasoning":
        return Message("assistant", (_read_reasoning(block),), api="responses")
    return _opaque(block, str(kind))


def said_by(role: str) -> str:
    """The type of a text in the content of a message."""
    return "output_text" if role == "assistant" else "input_text"


def _read_message(block: dict[str, Any]) -> Message:
    role = take_text(block, "role")
    if role not in ROLES:
        hint = did_you_mean(role, ROLES) or f"Responses knows {', '.join(ROLES)}"
        raise MessageError(f"unknown role {role!a}", path="role", hint=hint)
    if "content" not in block:
        raise MessageError("there is no 'content'", path="content", hint="it must be text or a list of parts")
    parts, spelling = read_parts(block, "content", said=said_by(role))
    untyped = not block.get("type")  # null stays, to be told from nothing at all
    if not untyped:
        del block["type"]
    speaker = ROLES[role]
    notes = noted(block, content=spelling, role="" if role == speaker else role, untyped=untyped)
    return Message(speaker, tuple(parts), api="responses", extra=notes)


def _read_reasoning(block: dict[str, Any]) -> Reasoning:
    """A thought. What the provider wrote stays in `extra` as it is; the text is for readers."""
    del block["type"]
    sealed = take_words(block, "encrypted_content")
    texts = [text for key in ("summary", "content") for text in _texts_in(block, key)]
    return Reasoning(text="\n\n".join(texts), encrypted=sealed, api="responses", extra=noted(block, whole=True))


def _texts_in(block: dict[str, Any], key: str) -> list[str]:
    given = block.get(key)
    if given is None:
        return []
    if not isinstance(given, list):
        raise MessageError(f"expected a list, not {named(given)}", path=key)
    found = (mapping_of(part).get("text") for part in given)
    return [text for text in found if isinstance(text, str)]


def _opaque(block: dict[str, Any], kind: str) -> Message:
    role = block.get("role")
    speaker = ROLES.get(role, "assistant") if isinstance(role, str) else SENT_ITEMS.get(kind, "assistant")
    return Message(speaker, (Opaque("responses", block),), api="responses")
