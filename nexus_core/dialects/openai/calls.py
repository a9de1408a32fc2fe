"""Calls of tools in a chat message: functions, custom tools, and the single function call of former times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.arguments import FREE_TEXT, parsed, written
from nexus_core.dialects.family import FAMILY
from nexus_core.dialects.fields import at, mapping_in, mapping_of, named, take_text
from nexus_core.dialects.notes import filled, noted
from nexus_core.errors import MessageError
from nexus_core.values.parts import Opaque, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.parts import Part

FIELD = "tool_calls"
"""Where an Opaque block stands that is a call of a kind Nexus does not know: `{"tool_calls": block}`."""


FORMER = "_former"
"""The note on a call and a result of former times (`function_call`, role `function`), which have no id."""


def read_calls(block: dict[str, Any]) -> list[Part]:
    """The calls of an assistant's message, taken out of it. An empty list and null stay."""
    calls: list[Part] = []
    given = block.get(FIELD)
    if given:
        if not isinstance(given, list):
            raise MessageError(f"expected a list, not {named(given)}", path=FIELD)
        for index, item in enumerate(given):
            with at(f"{FIELD}[{index}]"):
                calls.append(_read_call(mapping_of(item)))
        del block[FIELD]
    if block.get("function_call") is not None:
        with at("function_call"):
            calls.append(_read_former(mapping_of(block["function_call"])))
        del block["function_call"]
    return calls


def write_calls(parts: Sequence[Part], api: str) -> dict[str, Any]:
    """The fields of a message that hold its calls."""
    own = api == "openai"
    calls: list[object] = []
    body: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Opaque) and part.api == "openai" and FIELD in part.block:
            calls.append(part.block[FIELD])
        elif isinstance(part, ToolCall) and own and FORMER in part.extra:
            body["function_call"] = filled({"name": part.name, "arguments": written(part)}, part.extra)
        elif isinstance(part, ToolCall):
            calls.append(_write_call(part, api))
    return body | ({FIELD: calls} if calls else {})


def former_id(name: str) -> str:
    """What a call without an id and its result are matched by: there was only ever one at a time."""
    return f"call_{name}"


def arguments_in(block: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Arguments and the text they were written in; some servers leave them out or write an object."""
    given = block.pop("arguments", None)
    if isinstance(given, str):
        return parsed(given), given
    if given is None or isinstance(given, dict):
        return given or {}, None
    raise MessageError(f"expected JSON in a text, not {named(given)}", path="arguments")


def _read_call(block: dict[str, Any]) -> Part:
    kind = block.get("type", "function")
    if kind not in ("function", "custom"):
        if not isinstance(kind, str):
            raise MessageError(f"expected text, not {named(kind)}", path="type")
        return Opaque("openai", {FIELD: block})
    name_of_call = take_text(block, "id")
    inner = mapping_in(block, kind)
    with at(kind):
        name = take_text(inner, "name")
        if kind == "custom":
            arguments: dict[str, Any] = {FREE_TEXT: take_text(inner, "input")}
            raw = None
        else:
            arguments, raw = arguments_in(inner)
    rest = {key: value for key, value in block.items() if key not in ("type", kind)}
    notes = noted(rest, custom=kind == "custom", untyped="type" not in block, inner=inner)
    return ToolCall(name_of_call, name, arguments, raw, notes)


def _read_former(block: dict[str, Any]) -> ToolCall:
    name = take_text(block, "name")
    arguments, raw = arguments_in(block)
    return ToolCall(former_id(name), name, arguments, raw, noted(block, former=True))


def _write_call(call: ToolCall, api: str) -> dict[str, Any]:
    own = api == "openai"
    inner: Any = call.extra.get("_inner", {}) if own else {}
    kind = "custom" if api in FAMILY and "_custom" in call.extra else "function"
    if kind == "custom":
        said = {"name": call.name, "input": call.arguments.get(FREE_TEXT, "")}
    else:
        said = {"name": call.name, "arguments": written(call)}
    head = {"id": call.id} | ({} if own and "_untyped" in call.extra else {"type": kind})
    body: dict[str, Any] = head | {kind: said | inner}
    return filled(body, call.extra) if own else body
