"""Compaction of a conversation that is only in memory."""

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
"""The share of the budget for recent messages."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """A conversation in memory after its beginning was summarized.

    Attributes:
        summary_message: The summary as a user message.
        preserved_messages: The messages that stay.
        original_token_count: Tokens of the conversation before.
        new_token_count: Tokens of the summary and the preserved messages.
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
    """Return the messages to summarize, and the newest ones to preserve.

    As many are preserved as fit into a share of the budget. Tool calls and their results stay together. The newest
    group is always preserved, because a message without a reply or a call without its result cannot be continued from a
    summary.

    Args:
        messages: The conversation, oldest first.
        token_counter: Counts tokens.
        available_budget: Tokens available for messages.
        recent_preserve_ratio: The share of them for preserved messages.

    Raises:
        UsageError: The ratio is not between 0 and 1.
    """
    if not 0 <= recent_preserve_ratio <= 1:
        raise UsageError(
            f"recent_preserve_ratio must be between 0 and 1, not {recent_preserve_ratio}", hint="0.25 is usual"
        )
    available = int(max(available_budget, 0) * recent_preserve_ratio)
    first = len(messages)
    for group in group_newest_first(messages.__getitem__, len(messages)):
        available -= token_counter.count_messages(list(messages[group.first : group.last + 1]))
        if available < 0 and first < len(messages):
            break
        first = group.first
    return list(messages[:first]), list(messages[first:])
