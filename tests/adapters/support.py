"""Items as the OpenAI Agents SDK hands them to a session."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

PICTURE = "data:image/png;base64," + "iVBORw0K" * 400


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"content": text, "role": role}


def answered(text: str, name: str = "msg_1") -> dict[str, Any]:
    return {
        "id": name,
        "content": [{"annotations": [], "text": text, "type": "output_text", "logprobs": []}],
        "role": "assistant",
        "status": "completed",
        "type": "message",
    }


def called(name: str) -> dict[str, Any]:
    return {
        "arguments": '{"path": "a"}',
        "call_id": name,
        "name": "look",
        "type": "function_call",
        "id": f"fc_{name}",
        "status": "completed",
    }


def brought(name: str, output: Any = "nothing") -> dict[str, Any]:
    return {"call_id": name, "output": output, "type": "function_call_output"}


ODD: dict[str, dict[str, Any]] = {
    "reasoning that is sealed": {
        "id": "rs_1",
        "summary": [],
        "type": "reasoning",
        "content": None,
        "encrypted_content": "gAAAAABo+/==",
    },
    "a picture": brought("c", [{"type": "input_image", "image_url": PICTURE, "detail": "auto"}]),
    "an item of no known type": {"type": "from_the_future", "x": [1, 1.0, True, None, {"y": "\u0000 \U0001f600"}]},
    "an item without a type": {"x": {}},
    "an unknown role": said("Hm.", "critic"),
    "content that is no content": {"role": "user", "content": 7},
    "a call without an id": {"type": "function_call", "name": "look", "arguments": "{"},
    "a result without a call": {"type": "function_call_output", "output": None},
    "a reference": {"type": "item_reference", "id": "msg_1"},
    "a computer's screen": {
        "type": "computer_call_output",
        "call_id": "c",
        "output": {"type": "computer_screenshot", "image_url": PICTURE},
        "acknowledged_safety_checks": [],
    },
    "an approval": {"type": "mcp_approval_response", "approve": False, "approval_request_id": "r", "reason": ""},
    "nothing at all": {},
}

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_known = ("type", "role", "content", "call_id", "name", "arguments", "output", "id", "summary", "encrypted_content")
_words = st.sampled_from(
    ["message", "user", "assistant", "function_call", "function_call_output", "reasoning", "shell_call", "x", "{}"]
)

ITEMS = st.one_of(
    st.text(max_size=20).map(said),
    st.text(max_size=20).map(answered),
    st.sampled_from(["c1", "c2"]).map(called),
    st.sampled_from(["c1", "c2"]).map(brought),
    st.sampled_from(list(ODD.values())),
    st.dictionaries(st.sampled_from(_known), _words | _values, max_size=5),
    st.dictionaries(st.text(max_size=4), _values, max_size=3),
)
"""Whatever might be an item, of this SDK or of a later one."""
