"""The message that replaces summarized turns."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from nexus_core.text.safety import neutralize
from nexus_core.types.messages import Message
from nexus_core.types.prompt import lowest_trust

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nexus_core.types.compaction import SummaryRole
    from nexus_core.types.prompt import TrustLevel

DEFAULT_MARKER = "[Previous conversation summary]"
"""The first line of a summary in a session."""
DEFAULT_SUMMARY_ROLE: Final = "user"
"""The role of a summary message, unless `compaction.summary_role` sets another."""
SUMMARY_FIELD = "_summary"
"""The extra field that marks a message as a summary: the id of its compaction, or the time it was created."""

_MARKER = "[CONTEXT SUMMARY - Generated: {now:%Y-%m-%d %H:%M}]"
_EXPLANATION = """\
The following is a summary of our previous conversation. It was automatically
generated when the context window needed compaction. Treat this as established
context - you don't need to re-confirm decisions already made."""


def create_summary_message(summary_text: str, now: datetime | None = None) -> Message:
    """Return a summary as a user message, for a conversation in memory.

    Args:
        summary_text: The summary.
        now: The creation time, in local time; None for the current time.
    """
    now = now or datetime.now()  # noqa: DTZ005 - shown to the user in local time
    text = f"{_MARKER.format(now=now)}\n{_EXPLANATION}\n\n---\n{neutralize(summary_text.strip())}"
    return Message("user", text, extra={SUMMARY_FIELD: now.isoformat(timespec="minutes")})


def build_session_summary(
    text: str, compaction: str, *, marker: str = DEFAULT_MARKER, role: SummaryRole = DEFAULT_SUMMARY_ROLE
) -> Message:
    """Return a summary as the first message of a session's history.

    Args:
        text: The summary as `compose_summary` returns it.
        compaction: The id of the compaction step.
        marker: The first line; "" for none.
        role: The role of the message.
    """
    return Message(role, f"{marker}\n{text}" if marker else text, extra={SUMMARY_FIELD: compaction})


def restore_summary_message(data: Mapping[str, object], compaction: str) -> Message | None:
    """Return the summary message of a stored compaction; None if it has no summary.

    Args:
        data: The data of the step, with marker and role if they were not the defaults.
        compaction: The id of the step.
    """
    summary, marker = data.get("summary"), data.get("marker", DEFAULT_MARKER)
    if not summary:
        return None
    role: SummaryRole = "system" if data.get("role") == "system" else DEFAULT_SUMMARY_ROLE
    return build_session_summary(str(summary), compaction, marker=str(marker), role=role)


def build_summary_fields(marker: str, role: SummaryRole) -> dict[str, str]:
    """Return the marker and role that a compaction has to store.

    Defaults are not stored; `restore_summary_message` knows them.
    """
    fields = {"marker": marker} if marker != DEFAULT_MARKER else {}
    return fields | ({"role": role} if role != DEFAULT_SUMMARY_ROLE else {})


def is_summary(message: Message) -> bool:
    """True if a message is a summary."""
    return SUMMARY_FIELD in message.extra


def get_summary_trust(messages: Iterable[Message], previous: TrustLevel = "user") -> TrustLevel:
    """Return the trust level of a summary: the lowest among the summarized messages.

    Args:
        messages: The messages that are summarized.
        previous: The trust level of the summary that they start with.
    """
    levels: list[TrustLevel] = ["foreign" if message.tool_results else "user" for message in messages]
    return lowest_trust([previous, *levels])
