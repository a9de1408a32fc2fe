"""Events show what stands in items as well; whether one does, or says something that no item has."""

from __future__ import annotations

from bisect import bisect
from typing import TYPE_CHECKING

from nexus_core.dialects.transcripts.lines import objects_in, word_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.dialects.transcripts.codex.items import Item
    from nexus_core.values.message import Role

SHOWN: dict[str, Role] = {"user_message": "user", "agent_message": "assistant"}
"""Events that show what somebody said."""
_REASONING = frozenset({"agent_reasoning", "agent_reasoning_raw_content"})
_UNNAMED = frozenset({"web_search_begin", "web_search_end", "image_generation_begin", "image_generation_end"})
"""Events of calls whose items are written without their ids."""
_MIRRORS = frozenset(
    {
        *SHOWN,
        *_REASONING,
        *_UNNAMED,
        "exec_command_begin",
        "exec_command_end",
        "item_completed",
        "item_started",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "patch_apply_begin",
        "patch_apply_end",
        "view_image_tool_call",
    }
)
"""Events that show what stands in an item as well."""
_STATES = frozenset(
    {
        "background_event",
        "context_compacted",
        "deprecation_notice",
        "entered_review_mode",
        "error",
        "exited_review_mode",
        "plan_update",
        "session_configured",
        "stream_error",
        "task_complete",
        "task_started",
        "thread_name_updated",
        "thread_rolled_back",
        "token_count",
        "turn_aborted",
        "turn_complete",
        "turn_diff",
        "turn_started",
        "undo_completed",
        "warning",
    }
)
"""Events that say how the program is doing, in words or without, and nothing to the model."""
_WORDS = ("message", "text", "content", "input", "output", "arguments")
_NEAR = 8
"""How many messages apart an event and its item may be."""
_BEGINNING = 80
"""So many characters of a text are compared: the rest may be shown otherwise than it was sent."""


class Events:
    """Tells which events are copies.

    Args:
        items: All lines of the file.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._calls: set[str] = set()
        self._has_reasoning = False
        self._said: dict[str, tuple[list[int], list[str]]] = {role: ([], []) for role in SHOWN.values()}
        self._remarked: set[str] = set()
        for item in items:
            if item.kind == "response_item":
                self._send(item)

    def is_sent(self, role: Role) -> bool:
        """Whether an item of that role is in the file at all."""
        return bool(self._said[role][0])

    def is_copy(self, item: Item) -> bool:
        """Whether an event shows what an item has."""
        return item.inner_kind in _MIRRORS and not self._alone(item)

    def remark(self, item: Item) -> str:
        """What a person should know of an event that looks like a part of the conversation and is none; once each."""
        kind = item.inner_kind
        what = self._alone(item) if kind not in _STATES else ""
        if not what and kind not in _MIRRORS | _STATES and any(item.body.get(key) for key in _WORDS):
            what = f"an event that is new ({kind or 'untyped'})"
        subject = word_in(item.body, "call_id") or (kind if kind not in SHOWN else str(item.record.number))
        if not what or subject in self._remarked:
            return ""
        self._remarked.add(subject)
        return f"{what}; it is kept as it is, and no part of the session"

    def _send(self, item: Item) -> None:
        self._calls.update(filter(None, (word_in(item.body, "call_id"), word_in(item.body, "id"))))
        self._has_reasoning |= item.inner_kind == "reasoning"
        role = word_in(item.body, "role")
        if item.inner_kind == "message" and role in self._said:
            content = item.body.get("content")
            text = (
                content
                if isinstance(content, str)
                else "\n".join(word_in(part, "text") for part in objects_in(content))
            )
            numbers, texts = self._said[role]
            numbers.append(item.record.number)
            texts.append(text)

    def _alone(self, item: Item) -> str:
        """What an event shows that no item has; "" where one has it."""
        kind, call = item.inner_kind, word_in(item.body, "call_id")
        if kind in SHOWN:
            is_near = self._is_near(item, SHOWN[kind], word_in(item.body, "message"))
            return "" if is_near else "a message that is only shown, not among what was sent"
        if kind in _REASONING:
            return "" if self._has_reasoning else "reasoning that is only shown, not among what was sent"
        if call and kind not in _UNNAMED and call not in self._calls:
            name = word_in(item.body, "name")
            return f"a call{f' of {name!r}' if name else ''} that is only shown, not among what was sent"
        return ""

    def _is_near(self, item: Item, role: Role, shown: str) -> bool:
        beginning = shown.strip().partition("\n")[0][:_BEGINNING]
        numbers, texts = self._said[role]
        place = bisect(numbers, item.record.number)
        return any(beginning in text for text in texts[max(place - _NEAR, 0) : place + _NEAR])
