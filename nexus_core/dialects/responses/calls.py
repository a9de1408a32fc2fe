"""Calls of tools and their results, which in Responses are items by themselves.

Besides functions and custom tools there are calls that the provider defines and the client runs; they too must be
answered, so they are calls and results here as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.arguments import FREE_TEXT, written
from nexus_core.dialects.family import FAMILY
from nexus_core.dialects.fields import take_text, take_words
from nexus_core.dialects.notes import filled, noted
from nexus_core.dialects.openai.calls import arguments_in
from nexus_core.dialects.responses.parts import read_parts, write_part, write_parts
from nexus_core.errors import MessageError
from nexus_core.values.parts import Image, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

FUNCTION, CUSTOM = "function_call", "custom_tool_call"
OUTPUTS = {
    FUNCTION: "function_call_output",
    CUSTOM: "custom_tool_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
"""Every call that wants an answer, and what its answer is called."""

_ANSWERS = {output: call for call, output in OUTPUTS.items()}
TYPED_OUTPUTS = (OUTPUTS[FUNCTION], OUTPUTS[CUSTOM])
"""Answers that are a text or a list of parts which say what they are."""
_CONTENTS = {"tool_search_output": "tools"}
_ARGUMENTS = ("action", "actions", "operation", "arguments")
"""What the provider's own calls say is to be done."""


def is_call(block: Mapping[str, Any]) -> bool:
    """Whether an item is a call that the client answers."""
    kind = block.get("type")
    # A search for tools has an id only when the client is to do it.
    return kind in OUTPUTS and (kind != "tool_search_call" or bool(block.get("call_id")))


def is_result(block: Mapping[str, Any]) -> bool:
    """Whether an item answers such a call."""
    kind = block.get("type")
    return kind in _ANSWERS and (kind != "tool_search_output" or bool(block.get("call_id")))


def read_call(block: dict[str, Any]) -> ToolCall:
    """A call."""
    kind = block.pop("type")
    call_id = take_text(block, "call_id")
    if kind == FUNCTION:
        name = take_text(block, "name")
        arguments, raw = arguments_in(block)
        return ToolCall(call_id, name, arguments, raw, noted(block))
    if kind == CUSTOM:
        name, text = take_text(block, "name"), take_text(block, "input")
        return ToolCall(call_id, name, {FREE_TEXT: text}, None, noted(block, custom=True))
    given = {key: block.pop(key) for key in _ARGUMENTS if key in block}
    return ToolCall(call_id, kind.removesuffix("_call"), given, None, noted(block, type=kind))


def write_call(call: ToolCall, api: str) -> dict[str, Any]:
    """A call, read by `api`."""
    own = api == "responses"
    kind = kind_of(call, api)
    body: dict[str, Any] = {"type": kind, "call_id": call.id}
    if kind == FUNCTION:
        body |= {"name": call.name, "arguments": written(call)}
    elif kind == CUSTOM:
        body |= {"name": call.name, "input": call.arguments.get(FREE_TEXT, "")}
    else:
        body |= call.arguments
    return filled(body, call.extra) if own else body


def kind_of(call: ToolCall, api: str) -> str:
    """The type of a call's item."""
    if api == "responses" and "_type" in call.extra:
        return str(call.extra["_type"])
    return CUSTOM if api in FAMILY and "_custom" in call.extra else FUNCTION


def read_result(block: dict[str, Any]) -> ToolResult:
    """An answer to a call."""
    kind = block.pop("type")
    # A local shell's answer has the call's id as its own.
    key = "id" if kind == "local_shell_call_output" and "call_id" not in block else "call_id"
    call_id = take_words(block, key) if kind == OUTPUTS[FUNCTION] else take_text(block, key)
    name = take_words(block, "name")
    content = _CONTENTS.get(kind, "output")
    if content not in block and kind != OUTPUTS["apply_patch_call"]:
        raise MessageError(f"there is no {content!r}", path=content, hint="it must be text or a list of parts")
    parts, spelling = read_parts(block, content, said="input_text", typed=kind in TYPED_OUTPUTS)
    notes = noted(block, type=kind, content=spelling, key="" if key == "call_id" else key)
    return ToolResult(call_id, tuple(parts), name, extra=notes)


def write_result(result: ToolResult, api: str, kind: str) -> dict[str, Any]:
    """An answer to a call of some kind; as it was read where it was read here."""
    if api != "responses" or "_type" not in result.extra:
        return _new_result(result, api, kind)
    output = str(result.extra["_type"])
    key: Any = result.extra.get("_key", "call_id")
    body: dict[str, Any] = {"type": output}
    if result.call_id or output != OUTPUTS[FUNCTION]:
        body[key] = result.call_id
    if result.name:
        body["name"] = result.name
    spelling = result.extra.get("_content")
    if result.parts or spelling != "nothing":
        body[_CONTENTS.get(output, "output")] = write_parts(result.parts, api, spelling=spelling, said="input_text")
    return filled(body, result.extra)


def _new_result(result: ToolResult, api: str, kind: str) -> dict[str, Any]:
    body: dict[str, Any] = {"type": OUTPUTS[kind], "call_id": result.call_id}
    if kind == "local_shell_call":
        return {"type": OUTPUTS[kind], "id": result.call_id, "output": result.text}
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": int(result.is_error)}
        return body | {"output": [{"stdout": result.text, "stderr": "", "outcome": outcome}]}
    if kind == "apply_patch_call":
        return body | {"status": "failed" if result.is_error else "completed", "output": result.text}
    if kind == "tool_search_call":
        return body | {"tools": []}
    if kind == "computer_call":
        shown = next((part for part in result.parts if isinstance(part, Image)), Image())
        return body | {"output": _screenshot(shown, api)}
    return body | {"output": write_parts(result.parts, api, spelling="", said="input_text")}


def _screenshot(image: Image, api: str) -> dict[str, Any]:
    seen = write_part(image, api, said="input_text") or {}
    return {"type": "computer_screenshot"} | {key: seen[key] for key in ("image_url", "file_id") if key in seen}
