"""The beginning of a message in one line, as its author wrote it: without the time that Nexus puts before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexus_core.text.redaction import redact_beginning
from nexus_core.tokens.messages import compact_json
from nexus_core.values.parts import Reasoning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.session.session import Session
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.message import Message
    from nexus_core.values.parts import ToolCall

MAX_EXCERPT = 200
"""Characters of each part; no line of a table is longer."""
_MAX_ARGUMENT = 60
"""Characters of an argument, so that those behind a long one are seen too."""
_CLOCK = re.compile(r"Current time: [0-9T:-]+Z\nTimezone: [^\n]*\n(?:[^\n]+\n)*\n")


def excerpt(message: Message) -> str:
    """Return the beginning of a message: its text and tool calls with their arguments, else results, else thoughts.

    Without secrets.
    """
    text = _CLOCK.sub("", message.content, count=1) if _CLOCK.match(message.content) else message.content
    parts = [redact_beginning(text, MAX_EXCERPT), *map(_call, message.tool_calls)]
    if not any(parts):
        parts = [redact_beginning(result.text, MAX_EXCERPT) for result in message.tool_results]
    if not any(parts):
        parts = [redact_beginning(part.text, MAX_EXCERPT) for part in message.parts if isinstance(part, Reasoning)]
    return " ".join("; ".join(filter(None, parts)).split())


def restore_user_inputs(context: AssembledContext, session: Session) -> Sequence[Message]:
    """Return the messages of a call, user messages as passed to `ask`, without what the renderer put before them."""
    originals = {
        sent.content: said
        for sent, said in zip(session.messages, session.said, strict=True)
        if sent.content != said.content
    }
    asked = [said for said in session.said if said.role == "user"]
    return [_original(message, originals, asked[-1:]) for message in context.messages]


def _original(message: Message, originals: dict[str, Message], newest: Iterable[Message]) -> Message:
    if message.role != "user":
        return message
    known = originals.get(message.content)
    if known is not None:
        return known
    # A turn that was imported open is rendered only now.
    return next((said for said in newest if said.content and message.content.endswith(said.content)), message)


def _call(call: ToolCall) -> str:
    if call.raw and not call.arguments:  # it is not an object in JSON
        return f"{call.name}({redact_beginning(call.raw, MAX_EXCERPT)})"
    arguments = (_shortened(name, compact_json(value)) for name, value in call.arguments.items())
    return f"{call.name}({', '.join(arguments)})"


def _shortened(name: str, value: str) -> str:
    """Return an argument by its name, without secrets; redacted before it is cut, and cut as it was long before."""
    text = redact_beginning(f"{name}={value}", MAX_EXCERPT)
    most = len(name) + 1 + _MAX_ARGUMENT
    return text if len(text) <= most else f"{text[: most - 1]}…"
