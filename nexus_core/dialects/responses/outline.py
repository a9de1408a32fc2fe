"""The plain shape of an item of Responses."""

from __future__ import annotations

from typing import Any

from nexus_core.dialects.outline import Outline

_MARKS = frozenset({"id", "status"})
"""Fields with a text that the API adds to what it returns, and takes back."""
_MESSAGE = frozenset({"type", "role", "content"}) | _MARKS
_CALL = frozenset({"type", "call_id", "name", "arguments"}) | _MARKS
_RESULT = frozenset({"type", "call_id", "output"}) | _MARKS
_TEXT = frozenset({"type", "text", "annotations", "logprobs"})


def outline_item(item: object) -> Outline | None:
    """Return the outline of an item of `input`; None unless it has the plain shape."""
    if type(item) is not dict:
        return None
    kind = item.get("type", "message")
    if kind == "message":
        found = Outline("assistant" if item.get("role") == "assistant" else "user")
        is_plain = item.get("role") in ("user", "assistant") and item.keys() <= _MESSAGE and _add_content(found, item)
    elif kind == "function_call":
        found = Outline("assistant")
        is_plain = item.keys() <= _CALL
        is_plain = is_plain and found.add_call(item.get("call_id"), item.get("name"), item.get("arguments"), str)
    else:
        found = Outline("tool")
        is_plain = kind == "function_call_output" and item.keys() <= _RESULT and found.add_text(item.get("output"))
        is_plain = is_plain and found.add_result(item.get("call_id"), "")
    return found if is_plain and all(found.add_text(item[name]) for name in _MARKS if name in item) else None


def _add_content(found: Outline, item: dict[str, Any]) -> bool:
    content = item.get("content")
    if found.add_text(content):
        return True
    if type(content) is not list or not content:
        return False
    said = "output_text" if found.role == "assistant" else "input_text"
    for part in content:
        if type(part) is not dict or part.get("type") != said or not part.keys() <= _TEXT:
            return False
        if part.get("annotations") or part.get("logprobs") or not found.add_text(part.get("text")):
            return False
    return True
