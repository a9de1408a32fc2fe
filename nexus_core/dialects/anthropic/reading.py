"""From a message of Anthropic's to a neutral one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.blocks import READERS, read_blocks, read_content
from nexus_core.dialects.fields import take_text
from nexus_core.dialects.notes import noted
from nexus_core.dialects.plain import plain, plain_mapping
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.values.message import Message
from nexus_core.values.parts import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_message(item: object) -> Message:
    """One element of `messages`. Of a whole reply, which is none yet, it is what may be sent back."""
    block = plain_mapping(item)
    if block.get("type") == "message":
        block = {key: block[key] for key in ("role", "content") if key in block}
    return read_plain(block)


def read_plain(block: dict[str, Any]) -> Message:
    """The same of a dict that may be taken apart."""
    given = take_text(block, "role")
    role = _ROLES.get(given)
    if role is None:
        hint = did_you_mean(given, _ROLES) or f"Anthropic knows {', '.join(_ROLES)}"
        raise MessageError(f"unknown role {given!a}", path="role", hint=hint)
    missing = "content" not in block
    # An instruction may be a setting alone.
    if missing and role != "system":
        raise MessageError("there is no 'content'", path="content", hint="it must be text or a list of blocks")
    parts, spelling = read_content(block, READERS)
    speaker = "tool" if role == "user" and _only_results(parts) else role
    extra = noted(block, content="missing" if missing else spelling)
    return Message(speaker, tuple(parts), api="anthropic", extra=extra)


def read_system(given: Any) -> Message:  # noqa: ANN401 - a text, or a list of blocks
    """The field beside the messages."""
    content = plain(given, "system")
    parts = [Text(content)] if isinstance(content, str) else read_blocks(content, READERS, "system")
    spelling = "" if isinstance(content, str) else "list"
    return Message("system", tuple(parts), api="anthropic", extra=noted({}, field=True, content=spelling))


def _only_results(parts: Sequence[Part]) -> bool:
    return {*map(type, parts)} == {ToolResult}
