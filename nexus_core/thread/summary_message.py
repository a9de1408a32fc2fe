"""The message that stands for what was said before."""

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
"""Who says a summary, unless `compaction.summary_role` says otherwise."""
SUMMARY_FIELD = "_summary"
"""The field by which a summary is known, whatever it says: the compaction that wrote it, or when it was written."""

_MARKER = "[CONTEXT SUMMARY - Generated: {now:%Y-%m-%d %H:%M}]"
_EXPLAINED = """\
The following is a summary of our previous conversation. It was automatically
generated when the context window needed compaction. Treat this as established
context - you don't need to re-confirm decisions already made."""


def create_summary_message(summary_text: str, now: datetime | None = None) -> Message:
    """A summary as a message of the user, with the time it was made, for a conversation in memory.

    Args:
        summary_text: The summary.
        now: When it was made, in local time.
    """
    now = now or datetime.now()  # noqa: DTZ005 - the user's own clock is what is shown
    text = f"{_MARKER.format(now=now)}\n{_EXPLAINED}\n\n---\n{neutralize(summary_text.strip())}"
    return Message("user", text, extra={SUMMARY_FIELD: now.isoformat(timespec="minutes")})


def build_session_summary(
    text: str, compaction: str, *, marker: str = DEFAULT_MARKER, role: SummaryRole = DEFAULT_SUMMARY_ROLE
) -> Message:
    """A summary as the first message of a session's history.

    Args:
        text: What `compose_summary` gave.
        compaction: The step that has it.
        marker: The first line; "" for none.
        role: Who says it.
    """
    return Message(role, f"{marker}\n{text}" if marker else text, extra={SUMMARY_FIELD: compaction})


def restore_summary_message(data: Mapping[str, object], compaction: str) -> Message | None:
    """Return the summary of a compaction's data as it was sent when it was written; None if it has none.

    Args:
        data: What the step says about itself; marker and role are there where they were not the default.
        compaction: The id of the step.
    """
    summary, marker = data.get("summary"), data.get("marker", DEFAULT_MARKER)
    if not summary:
        return None
    role: SummaryRole = "system" if data.get("role") == "system" else DEFAULT_SUMMARY_ROLE
    return build_session_summary(str(summary), compaction, marker=str(marker), role=role)


def build_summary_fields(marker: str, role: SummaryRole) -> dict[str, str]:
    """Return what a compaction's data must say so that `restore_summary_message` gives the same message again."""
    own = {"marker": marker} if marker != DEFAULT_MARKER else {}
    return own | ({"role": role} if role != DEFAULT_SUMMARY_ROLE else {})


def is_summary(message: Message) -> bool:
    """Whether a message stands for what was said before."""
    return SUMMARY_FIELD in message.extra


def get_summary_trust(messages: Iterable[Message], previous: TrustLevel = "user") -> TrustLevel:
    """Whose word a summary of messages is: whoever is trusted least among those who speak in them.

    Args:
        messages: What is summarised.
        previous: Whose word the summary is that they begin with.
    """
    said: list[TrustLevel] = ["foreign" if message.tool_results else "user" for message in messages]
    return lowest_trust([previous, *said])
