"""The plain shape of a content of Gemini's."""

from __future__ import annotations

from typing import Any

from nexus_core.dialects.outline import Outline

_CALL = {"name", "args"}
_RESULT = {"name", "response"}
_WHOLE = ("output", "error", "result")
"""Names of a single text in a response; a response with anything else is read as JSON."""
_SIGNATURE = "thoughtSignature"


def outline_content(item: object) -> Outline | None:
    """Return the outline of an element of `contents`; None unless it has the plain shape."""
    if type(item) is not dict or len(item) != 2:  # noqa: PLR2004 - role and parts
        return None
    role, parts = item.get("role"), item.get("parts")
    if role not in ("user", "model") or type(parts) is not list or not parts:
        return None
    found = Outline("assistant" if role == "model" else "user")
    for part in parts:
        if type(part) is not dict or not _add_part(found, part):
            return None
    return found.with_tool_role(len(parts))


def _add_part(found: Outline, part: dict[str, Any]) -> bool:
    """Add a part with one field, or with a signature beside it; False for any other."""
    if len(part) != 1 and (len(part) != 2 or not found.add_text(part.get(_SIGNATURE))):  # noqa: PLR2004 - these two
        return False
    if "text" in part:
        return found.add_text(part["text"])
    call = part.get("functionCall")
    if type(call) is dict:
        return call.keys() == _CALL and found.add_call("", call["name"], call["args"], dict)
    result = part.get("functionResponse")
    if type(result) is not dict or result.keys() != _RESULT or not found.add_result("", result["name"]):
        return False
    response = result["response"]
    if type(response) is not dict or len(response) != 1:
        return False
    name, text = next(iter(response.items()))
    return name in _WHOLE and found.add_text(text)
