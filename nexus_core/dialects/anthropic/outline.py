"""The plain shape of one of Anthropic's messages."""

from __future__ import annotations

from typing import Any

from nexus_core.dialects.outline import Outline

_TEXT = {"type", "text"}
_CALL = {"type", "id", "name", "input"}
_RESULT = {"type", "tool_use_id", "content"}
_RESULT_WITH_STATUS = _RESULT | {"is_error"}
_THOUGHT = {"type", "thinking", "signature"}


def outline_message(item: object) -> Outline | None:
    """Return the outline of an element of `messages`; None unless it has the plain shape."""
    if type(item) is not dict or len(item) != 2:  # noqa: PLR2004 - role and content
        return None
    role, content = item.get("role"), item.get("content")
    if role == "assistant":
        found = Outline("assistant")
        is_plain = found.add_text(content) or (type(content) is list and found.add_blocks(content, _REPLY))
        # A thought must lead to something.
        return found if is_plain and not (type(content) is list and _is_thought(content[-1:])) else None
    if role != "user":
        return None
    if type(content) is list and content and type(content[0]) is dict and content[0].get("type") == "tool_result":
        found = Outline("tool")
        return found if found.add_blocks(content, _RESULTS) else None
    found = Outline("user")
    return found if found.add_texts(content, "text") else None


def _is_thought(last: list[Any]) -> bool:
    return not last or last[0]["type"] == "thinking"


def _add_text(found: Outline, block: dict[str, Any]) -> bool:
    return block.keys() == _TEXT and found.add_text(block["text"])


def _add_call(found: Outline, block: dict[str, Any]) -> bool:
    return block.keys() == _CALL and found.add_call(block["id"], block["name"], block["input"], dict)


def _add_thought(found: Outline, block: dict[str, Any]) -> bool:
    return block.keys() == _THOUGHT and found.add_text(block["signature"]) and found.add_text(block["thinking"])


def _add_result(found: Outline, block: dict[str, Any]) -> bool:
    if block.keys() != _RESULT and (block.keys() != _RESULT_WITH_STATUS or type(block["is_error"]) is not bool):
        return False
    return found.add_result(block["tool_use_id"], "") and found.add_texts(block["content"], "text")


_REPLY = {"text": _add_text, "tool_use": _add_call, "thinking": _add_thought}
_RESULTS = {"tool_result": _add_result}
