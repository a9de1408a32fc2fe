"""Which of Anthropic's blocks may be marked for its cache, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.blocks import is_blank
from nexus_core.dialects.marks import new_mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    Block = dict[str, Any]

MARK = "cache_control"
MARKABLE = frozenset(
    {
        "bash_code_execution_tool_result",
        "code_execution_tool_result",
        "container_upload",
        "document",
        "image",
        "search_result",
        "server_tool_use",
        "text",
        "text_editor_code_execution_tool_result",
        "tool_result",
        "tool_search_tool_result",
        "tool_use",
        "web_fetch_tool_result",
        "web_search_tool_result",
    }
)
"""Blocks that take a mark. Thoughts do not, nor does an empty text: "cache_control cannot be set for empty text blocks"
(anthropics/claude-code#50082)."""


def mark_last(blocks: Sequence[Block], lifetime: str) -> None:
    """Mark the last block that may be marked; one that is marked already stays as it is."""
    last = next((block for block in reversed(blocks) if _takes_mark(block)), None)
    if last is not None and last.get(MARK) is None:
        last[MARK] = new_mark(lifetime)


def mark_last_tool(tools: Sequence[Block], lifetime: str) -> None:
    """The same of tools; those that are only loaded when they are searched for are no part of what is cached."""
    last = next((tool for tool in reversed(tools) if not tool.get("defer_loading")), None)
    if last is not None and last.get(MARK) is None:
        last[MARK] = new_mark(lifetime)


def _takes_mark(block: Block) -> bool:
    return block.get("type") in MARKABLE and not is_blank(block)
