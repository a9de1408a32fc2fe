"""The plain shape of a chat message."""

from __future__ import annotations

from typing import Any

from nexus_core.dialects.outline import Outline

_MESSAGE = {"role", "content"}
_RESULT = {"role", "content", "tool_call_id"}
_NAMED_RESULT = _RESULT | {"name"}
_REPLY = frozenset({"role", "content", "tool_calls"})
_UNUSED = frozenset({"refusal", "annotations", "audio", "function_call"})
"""Fields of a reply that an SDK writes as null."""
_CALL = {"id", "type", "function"}
_FUNCTION = {"name", "arguments"}


def outline_message(item: object) -> Outline | None:
    """Return the outline of a chat message; None unless it has the plain shape."""
    if type(item) is not dict:
        return None
    role = item.get("role")
    if role == "user":
        found = Outline("user")
        return found if item.keys() == _MESSAGE and found.add_texts(item["content"], "text") else None
    if role == "assistant":
        found = Outline("assistant")
        return found if _add_reply(found, item) else None
    found = Outline("tool")
    is_result = role == "tool" and (item.keys() == _RESULT or item.keys() == _NAMED_RESULT)
    is_plain = is_result and found.add_result(item["tool_call_id"], item.get("name", ""))
    return found if is_plain and found.add_texts(item["content"], "text") else None


def _add_reply(found: Outline, item: dict[str, Any]) -> bool:
    if not item.keys() <= _REPLY and any(
        name not in _REPLY and (value is not None or name not in _UNUSED) for name, value in item.items()
    ):
        return False
    content, calls = item.get("content"), item.get("tool_calls")
    if calls is None and ("tool_calls" in item or content is None):
        return False
    if content and not found.add_texts(content, "text"):
        return False
    if calls is None:
        return bool(content)
    # Beside calls, an empty text is usual.
    return (content is None or type(content) in (str, list)) and content != [] and _add_calls(found, calls)


def _add_calls(found: Outline, calls: object) -> bool:
    if type(calls) is not list or not calls:
        return False
    for call in calls:
        if type(call) is not dict or call.keys() != _CALL or call["type"] != "function":
            return False
        function = call["function"]
        if type(function) is not dict or function.keys() != _FUNCTION:
            return False
        if not found.add_call(call["id"], function["name"], function["arguments"], str):
            return False
    return True
