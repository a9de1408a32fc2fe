"""Which messages of a conversation in memory are summarised, and which stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import UsageError
from nexus_core.history.groups import group_newest_first
from nexus_core.types.base import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.messages import Message

DEFAULT_PRESERVE_RATIO = 0.25
"""The share of a budget that recent messages may keep."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """A conversation in memory after its beginning was summarised.

    Attributes:
        summary_message: The summary as a message of the user.
        preserved_messages: The messages that stay.
        original_token_count: What the conversation took.
        new_token_count: What summary and preserved messages take.
    """

    summary_message: Message
    preserved_messages: list[Message]
    original_token_count: int
    new_token_count: int


def select_messages_for_compaction(
    messages: Sequence[Message],
    token_counter: TokenCounter,
    available_budget: int,
    recent_preserve_ratio: float = DEFAULT_PRESERVE_RATIO,
) -> tuple[list[Message], list[Message]]:
    """The messages to summarise, and those to preserve: from the newest on, as many as a share of the budget holds.

    A message with calls of tools and their results stay together. The newest group is preserved in any case, because a
    question that is not answered or a call that waits for its result cannot go on as a summary.

    Args:
        messages: The conversation, oldest first.
        token_counter: Who counts.
        available_budget: The tokens there are for messages.
        recent_preserve_ratio: The share of them for what is preserved.
    """
    if not 0 <= recent_preserve_ratio <= 1:
        raise UsageError(
            f"recent_preserve_ratio must be between 0 and 1, not {recent_preserve_ratio}", hint="0.25 is usual"
        )
    room = int(max(available_budget, 0) * recent_preserve_ratio)
    first = len(messages)
    for group in group_newest_first(messages.__getitem__, len(messages)):
        room -= token_counter.count_messages(list(messages[group.first : group.last + 1]))
        if room < 0 and first < len(messages):
            break
        first = group.first
    return list(messages[:first]), list(messages[first:])
