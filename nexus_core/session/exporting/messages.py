"""What was said in a session, in the shape of an API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.thread.projection import project_steps
from nexus_core.thread.sizes import NullSizer
from nexus_core.types.messages import Conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.types.ledger import Ledger
    from nexus_core.types.messages import Message


def everything_said(ledger: Ledger, tip: str | None) -> tuple[Message, ...]:
    """The messages of a thread, compacted or not."""
    return () if tip is None else tuple(sent.message for sent in project_steps(ledger.thread(tip), NullSizer()))


def write_messages(messages: Sequence[Message], api: str, dialects: DialectRegistry) -> list[Any] | dict[str, Any]:
    """Messages as an API's own list, with nothing in it that the API would refuse.

    Where they begin with instructions, which the API takes only beside the list, it is a request that has both.
    """
    speaking = dialects.get(api)
    mended = [message for _, message in apply_repair_rules(messages, speaking.rules).messages]
    if speaking.rules.system == "field" and mended and mended[0].role == "system":
        return speaking.write_request(Conversation(messages=tuple(mended), extra={"_body": True}))  # as REST takes it
    return speaking.write(mended)
