"""Search in a session, and quotes of what was found, without secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import UsageError
from nexus_core.ledger.threads import find_message_texts, skip_reverted
from nexus_core.text.secrets import redact

if TYPE_CHECKING:
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.messages import Message, ToolCall

MAX_SEARCHED_STEPS = 10_000
"""How many steps of a session are looked through."""


class SearchQuote(NamedTuple):
    """Words in which something was found, and who said them."""

    role: str
    text: str


def search_session(ledger: Ledger, record: SessionRecord, text: str, *, limit: int) -> list[Step]:
    """The newest steps of a session in which a text occurs, as it is written; newest first.

    Args:
        ledger: Where it is.
        record: The session.
        text: What to look for.
        limit: So many are enough.

    Raises:
        UsageError: There is nothing to look for.
    """
    if not text:
        raise UsageError("there is nothing to look for", hint="text must not be empty")
    if record.tip is None:
        return []
    most = 2 * limit
    while True:
        found = ledger.scan(record.tip, text, limit=most, within=MAX_SEARCHED_STEPS)
        kept = _drop_reverted(ledger, record, found)
        asked = {step.turn for step in kept if step.kind == "input"}
        # How it was sent repeats what was said, and is a finding only where it says more.
        told = [step for step in kept if step.kind != "sealed" or step.turn not in asked][:limit]
        if len(told) == limit or len(found) < most or len(found) == len(kept):
            return told
        most *= 2


def _drop_reverted(ledger: Ledger, record: SessionRecord, found: list[Step]) -> list[Step]:
    """Return steps without those that an import took back; only imported sessions have any."""
    if not found or record.tip is None or "transcript" not in record.data:
        return found
    steps = ledger.thread(record.tip, first=found[-1].id)
    names = {step.id for step in skip_reverted(reversed(steps))}
    return [step for step in found if step.id in names]


def redacted_text(message: Message) -> str:
    """What a message says, without secrets: words, calls, results."""
    calls = [f"[calls {call.name} {_format_arguments(call)}]" for call in message.tool_calls]
    results = [f"[result of {result.name}] {result.text}" for result in message.tool_results]
    return redact("\n".join(filter(None, [message.content, *calls, *results]))).text


def excerpt(text: str, sought: str, most: int) -> str:
    """So many characters of a long text around something in it; its beginning where that is not there."""
    before = max(0, most - len(sought)) // 2
    at = max(0, min(text.find(sought) - before, len(text) - most))
    return ("…" if at else "") + text[at : at + most] + ("…" if at + most < len(text) else "")


def find_quote(step: Step, sought: str, most: int) -> SearchQuote:
    """The words of a step in which a text was found, without secrets, as many of them as there is room for."""
    for message in step.messages:
        for words in find_message_texts(message):
            if sought in words:
                return SearchQuote(message.role, excerpt(redact(words).text, sought, most))
    said = step.messages[0] if step.messages else None
    return SearchQuote("", "") if said is None else SearchQuote(said.role, excerpt(redacted_text(said), sought, most))


def _format_arguments(call: ToolCall) -> str:
    return json.dumps(call.arguments, ensure_ascii=False) if call.raw is None else call.raw
