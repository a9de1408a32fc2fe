"""A second reading of transcripts, which shares no code with the readers.

It walks the JSON of a file and lists by key everything that was said, called or returned. The keys are a
table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from nexus_core.transcripts.base import Transcript
from nexus_core.types.messages import Message, Reasoning, Text, ToolCall, ToolResult

TEXT_KEYS: dict[str, tuple[str, ...]] = {
    "aider": (),
    "antigravity": ("content", "thinking"),
    "atif": ("message", "reasoning_content", "content", "text"),
    "chatgpt": ("parts", "text"),
    "claude-code": ("text", "thinking", "content", "output"),
    "codex": ("text", "output", "message", "content"),
    "copilot": ("content", "transformedContent", "reasoningText", "summaryContent"),
    "cursor": ("text", "thinking"),
    "droid": ("text", "thinking", "finalText", "content", "stdout"),
    "gemini-cli": ("content", "text", "output"),
    "grok": ("text", "content"),
    "hermes": ("content", "reasoning", "system_prompt"),
    "kimi": ("text", "think", "summary", "output", "content", "systemPrompt"),
    "opencode": ("text", "output", "error"),
    "messages": ("content", "text", "output"),
    "openhands": ("content", "text", "thinking", "thought", "final_thought"),
    "pi": ("text", "thinking", "content", "summary"),
    "qwen": ("text", "output"),
    "sharegpt": ("value", "system"),
}
"""By program, the keys whose texts were said or returned."""
CALL_KEYS = ("arguments", "args", "input", "parameters", "rawArgs")
"""Keys of the arguments of a call: an object, or JSON text."""
SILENT_KEYS = ("tools", "tool_definitions", "toolUseResult", "trajectory")
"""Keys of the tools that a model could call, and of copies of what other keys have."""
SILENT = {
    "claude-code": ("summary", "system", "queue-operation"),
    "gemini-cli": ("info", "error", "warning"),
    "copilot": ("hook.start", "session.error", "session.info"),
    "antigravity": ("CONVERSATION_HISTORY",),
    "kimi": ("turn.prompt", "turn.steer", "llm.tools_snapshot"),
}
"""By program, the types of entries that are no part of the conversation, or repeat another."""


def list_contents(program: str, text: str) -> list[str]:
    """Return the texts of a file, and the leaves of the arguments of its calls."""
    found: list[str] = []
    if program == "aider":  # Markdown; a quote is what Aider itself prints
        lines = [line.removeprefix("#### ").strip() for line in text.splitlines() if not line.startswith((">", "# "))]
        return list(dict.fromkeys(filter(None, lines)))
    for value in _parse(text):
        if isinstance(value, dict) and (value.get("type") in SILENT.get(program, ()) or _is_unsent(program, value)):
            continue
        found += _walk(value, TEXT_KEYS[program])
    return list(dict.fromkeys(each for each in found if each.strip()))


def _is_unsent(program: str, value: dict[str, Any]) -> bool:
    """True for what only the program and its user see: an error of the API, a command."""
    if program == "claude-code":
        return value.get("isApiErrorMessage") is True
    texts = list(_walk(value, TEXT_KEYS[program])) if program == "gemini-cli" else []
    return value.get("type") == "user" and "".join(texts).startswith("/")


def _parse(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return [each for line in text.splitlines() if (each := _parse_line(line)) is not None]
    return value if isinstance(value, list) else [value]


def _parse_line(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _walk(value: Any, keys: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _walk(each, keys)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in CALL_KEYS and not _is_message_list(each):
                yield from list_leaves(each)
            elif key in keys and isinstance(each, list) and all(isinstance(text, str) for text in each):
                yield from each
            elif key in keys and isinstance(each, str):
                yield from list_leaves(each) if value.get("from") == "function_call" else iter([each])
            elif key not in SILENT_KEYS:
                yield from _walk(each, keys)


def _is_message_list(value: Any) -> bool:
    """True for the `input` of a request to Responses."""
    return isinstance(value, list) and all(isinstance(each, dict) and {"role", "type"} & each.keys() for each in value)


def list_leaves(value: Any) -> Iterator[str]:
    """Yield the texts in the arguments of a call, which may be JSON text."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            yield value
        else:
            yield from list_leaves(inner) if isinstance(inner, dict | list) else iter([value])
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from list_leaves(each)


def find_missing(transcript: Transcript, contents: list[str]) -> list[str]:
    """Return the contents that no message of the transcript shows."""
    entries = [*transcript.entries, *(entry for branch in transcript.branches for entry in branch.entries)]
    entries += [entry for compaction in transcript.compactions for entry in compaction.context]
    shown = "\n".join(_show(message) for message in [*transcript.system, *(entry.message for entry in entries)])
    return [each for each in contents if each not in shown and json.dumps(each)[1:-1] not in shown]


def _show(message: Message) -> str:
    parts = [*message.parts, *(part for each in message.tool_results for part in each.parts)]
    texts = [part.text for part in parts if isinstance(part, Text | Reasoning)]
    texts += [f"{call.name} {json.dumps(call.arguments)} {call.raw or ''}" for call in message.tool_calls]
    texts += [leaf for call in message.tool_calls for leaf in list_leaves(dict(call.arguments))]
    assert all(isinstance(part, ToolCall) for part in message.tool_calls)
    assert all(isinstance(part, ToolResult) for part in message.tool_results)
    return "\n".join(texts)
