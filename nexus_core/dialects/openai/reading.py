"""From a chat message to a neutral one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import take_text, take_words, text_in
from nexus_core.dialects.notes import noted
from nexus_core.dialects.openai.calls import former_id, read_calls
from nexus_core.dialects.openai.parts import read_content
from nexus_core.dialects.openai.reasoning import read_reasoning
from nexus_core.dialects.plain import plain_mapping
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.values.message import Message
from nexus_core.values.parts import Opaque, Text, ToolResult

if TYPE_CHECKING:
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part

_SPEAKERS: dict[str, Role] = {"system": "system", "developer": "system", "user": "user"}
_ROLES = (*_SPEAKERS, "assistant", "tool", "function")
AUDIO = "audio"


def read_message(item: object) -> Message:
    """One message of chat completions."""
    block = plain_mapping(item)
    if "role" not in block:
        raise MessageError("there is no 'role'", path="role", hint=_what_it_may_be(block))
    role = text_in(block, "role")
    if role not in _ROLES:
        hint = did_you_mean(role, _ROLES) or f"chat completions knows {', '.join(_ROLES)}"
        raise MessageError(f"unknown role {role!a}", path="role", hint=hint)
    del block["role"]
    if role == "assistant":
        return _read_assistant(block)
    if "content" not in block:
        raise MessageError("there is no 'content'", path="content", hint="it must be text or a list of parts")
    return _read_said(block, role) if role in _SPEAKERS else _read_result(block, role)


def _what_it_may_be(block: dict[str, Any]) -> str:
    """What somebody gave instead of a message, if that can be told, and what to do about it."""
    if "choices" in block:
        return "this is a whole reply; append its message: reply.choices[0].message"
    others = {"type": "an item of OpenAI Responses", "parts": "a content of Gemini's"}
    other = next((what for field, what in others.items() if field in block), None)
    if other:
        return f"this looks like {other}; convert one list to the API of the other before you join them"
    return f"it must be one of {', '.join(_ROLES)}"


def _read_said(block: dict[str, Any], role: str) -> Message:
    parts, spelling = read_content(block)
    name = take_words(block, "name")
    speaker = _SPEAKERS[role]
    extra = noted(block, content=spelling, role="" if role == speaker else role)
    return Message(speaker, tuple(parts), name=name, api="openai", extra=extra)


def _read_result(block: dict[str, Any], role: str) -> Message:
    former = role == "function"
    name = take_text(block, "name") if former else take_words(block, "name")
    call_id = former_id(name) if former else take_text(block, "tool_call_id")
    parts, spelling = read_content(block)
    result = ToolResult(call_id, tuple(parts), name, extra=noted(block, content=spelling, former=former))
    return Message("tool", (result,), api="openai")


def _read_assistant(block: dict[str, Any]) -> Message:
    thoughts = read_reasoning(block)
    said, spelling = read_content(block)
    parts: list[Part] = [*thoughts, *said]
    if refusal := take_words(block, "refusal"):
        parts.append(Text(refusal, {"_refusal": "field"}))
    parts += _read_voice(block)
    parts += read_calls(block)
    name = take_words(block, "name")
    return Message("assistant", tuple(parts), name=name, api="openai", extra=noted(block, content=spelling))


def _read_voice(block: dict[str, Any]) -> list[Part]:
    """What the model said aloud: its words where they are given."""
    voice = block.get(AUDIO)
    if not isinstance(voice, dict) or not voice:
        return []
    del block[AUDIO]
    words = voice.get("transcript")
    if isinstance(words, str) and words:
        return [Text(words, {"_voice": {key: value for key, value in voice.items() if key != "transcript"}})]
    return [Opaque("openai", {AUDIO: voice})]
