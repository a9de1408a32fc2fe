"""Search in a session, and redacted excerpts of the matches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import UsageError
from nexus_core.ledger.ledger import find_message_texts, skip_reverted
from nexus_core.text.secrets import redact, redact_json
from nexus_core.types.payloads import ForgetPayload

if TYPE_CHECKING:
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.messages import Message, ToolCall

MAX_SEARCHED_STEPS = 10_000
"""Maximum steps of a session that are searched, the newest first."""


class SearchQuote(NamedTuple):
    """An excerpt of a message that matches, and the message's role."""

    role: str
    text: str


def search_session(
    ledger: Ledger, record: SessionRecord, text: str, *, limit: int, with_forgotten: bool = True
) -> list[Step]:
    """Return the newest steps of a session that contain a text, newest first.

    Args:
        ledger: The ledger of the session.
        record: The session.
        text: The text; case matters.
        limit: The maximum number of steps.
        with_forgotten: False to leave out forgotten steps, and rendered messages with a forgotten memory.

    Raises:
        UsageError: The text is empty.
    """
    if not text:
        raise UsageError("there is nothing to look for", hint="text must not be empty")
    if record.tip is None:
        return []
    most = 2 * limit
    while True:
        found = ledger.scan(record.tip, text, limit=most, within=MAX_SEARCHED_STEPS)
        kept = _drop_reverted(ledger, record, found)
        with_input = {step.turn for step in kept if step.kind == "input"}
        kept = kept if with_forgotten else _drop_forgotten(ledger, record.tip, kept)
        # The rendered message repeats the user's input, and is a match only where that is not.
        matches = [step for step in kept if step.kind != "sealed" or step.turn not in with_input][:limit]
        if len(matches) == limit or len(found) < most or len(found) == len(kept):
            return matches
        most *= 2


def _drop_reverted(ledger: Ledger, record: SessionRecord, found: list[Step]) -> list[Step]:
    """Return steps without those that an import reverted."""
    if not found or record.tip is None or record.payload.transcript is None:
        return found
    steps = ledger.thread(record.tip, first=found[-1].id)
    names = {step.id for step in skip_reverted(reversed(steps))}
    return [step for step in found if step.id in names]


def _drop_forgotten(ledger: Ledger, tip: str, found: list[Step]) -> list[Step]:
    """Return steps without those that are forgotten, and without rendered messages that have such a memory."""
    if not found:
        return found
    steps = ledger.thread(tip, first=found[-1].id)
    payloads = [step.payload for step in steps if step.kind == "forget"]  # to read those of all steps takes longer
    names = {name for each in payloads if isinstance(each, ForgetPayload) for name in each.forgotten_steps}
    # `unsent_memories` has `<turn>/<id of the memory>`.
    turns = names | {key.partition("/")[0] for key in steps[-1].payload.unsent_memories}
    return [step for step in found if step.id not in names and (step.kind != "sealed" or step.turn not in turns)]


def redacted_text(message: Message) -> str:
    """Return the text, tool calls and tool results of a message, redacted."""
    calls = [f"[calls {call.name} {_format_arguments(call)}]" for call in message.tool_calls]
    results = [f"[result of {result.name}] {result.text}" for result in message.tool_results]
    return redact("\n".join(filter(None, [message.content, *calls, *results]))).text


def excerpt(text: str, sought: str, most: int) -> str:
    """Return an excerpt of a text around `sought`, or its beginning."""
    before = max(0, most - len(sought)) // 2
    at = max(0, min(text.find(sought) - before, len(text) - most))
    return ("…" if at else "") + text[at : at + most] + ("…" if at + most < len(text) else "")


def find_quote(step: Step, sought: str, most: int) -> SearchQuote:
    """Return a redacted excerpt around a text, of at most `most` characters."""
    for message in step.messages:
        # The value of an argument is redacted with its name, which may be the only evidence for a password.
        shown = find_message_texts(message, redact_json)
        for text, redacted in zip(find_message_texts(message), shown, strict=False):
            if sought in text:
                return SearchQuote(message.role, excerpt(redact(redacted).text, sought, most))
    if not step.messages:
        return SearchQuote("", "")
    first = step.messages[0]
    return SearchQuote(first.role, excerpt(redacted_text(first), sought, most))


def _format_arguments(call: ToolCall) -> str:
    return json.dumps(call.arguments, ensure_ascii=False) if call.raw is None else call.raw
