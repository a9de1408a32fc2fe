"""The plain shape of a message of Converse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.plugin import Outline

if TYPE_CHECKING:
    from nexus_plugins.bedrock._fields import Block

_CALL = {"toolUseId", "name", "input"}
_RESULT = {"toolUseId", "content"}
_FINISHED = _RESULT | {"status"}


def outline_message(item: object) -> Outline | None:
    """Return the outline of an element of `messages`; None unless it has the plain shape."""
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
    kind, value = next(iter(block.items()))
    if kind == "text":
        return found.add_text(value)
    if type(value) is not dict:
        return False
    if kind == "toolUse":
        return value.keys() == _CALL and found.add_call(value["toolUseId"], value["name"], value["input"], dict)
    return kind == "toolResult" and _add_result(found, value)


def _add_result(found: Outline, result: Block) -> bool:
    if result.keys() != _RESULT and (result.keys() != _FINISHED or result["status"] not in ("success", "error")):
        return False
    content = result["content"]
    if type(content) is not list or not content or not found.add_result(result["toolUseId"], ""):
        return False
    for block in content:
        if type(block) is not dict or len(block) != 1 or not found.add_text(block.get("text")):
            return False
    return True
