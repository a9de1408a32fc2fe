"""Takes secrets out of messages before they are summarised."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.text.secrets import redact, redact_json
from nexus_core.types.messages import Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Message, Part


def redact_message(message: Message, counts: Counter[str]) -> Message:
    """A message without secrets; the same object where it has none.

    Args:
        message: What was said.
        counts: Counts what was taken out.
    """
    before = counts.total()
    parts = tuple(_redacted(part, counts) for part in message.parts)
    return message if counts.total() == before else replace(message, parts=parts)


def redact_text(text: str, counts: Counter[str]) -> str:
    """A text without secrets."""
    redacted = redact(text)
    counts.update(redacted.counts)
    return redacted.text


def count_secrets(context: AssembledContext) -> Counter[str]:
    """How many secrets of which kind a call would tell: in its system prompt, and in what was said."""
    counts: Counter[str] = Counter()
    redact_text(context.system_prompt, counts)
    for message in context.messages:
        redact_message(message, counts)
    return counts


def told_secrets(counts: Mapping[str, int]) -> str:
    """How many of which kind, in words."""
    return ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))


def _redacted(part: Part, counts: Counter[str]) -> Part:
    if isinstance(part, Text | Reasoning):
        return replace(part, text=redact_text(part.text, counts))
    if isinstance(part, ToolCall):
        raw = part.raw if part.raw is None else redact_text(part.raw, counts)
        return replace(part, arguments=redact_json(dict(part.arguments), counts), raw=raw)
    if isinstance(part, ToolResult):
        texts = [_redacted(each, counts) if isinstance(each, Text) else each for each in part.parts]
        return replace(part, parts=tuple(texts))  # type: ignore[arg-type] # a text stays a text
    return replace(part, block=redact_json(dict(part.block), counts)) if isinstance(part, Opaque) else part
