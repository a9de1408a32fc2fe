"""Lines become messages; the lines of one answer become one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.dialect import DIALECT
from nexus_core.dialects.transcripts.lines import mapping_under, word_in
from nexus_core.dialects.transcripts.transcript import Entry
from nexus_core.dialects.transcripts.unreadable import attempt, kept
from nexus_core.values.conversation import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.claude.nodes import Node
    from nexus_core.dialects.transcripts.transcript import EntryKind, Outcome

FORMAT = "claude-code"
_READ = ("id", "role", "model", "content", "stop_reason")
_COSTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens_details",
)
"""What is read of an answer, and of what it cost; all of it stands in `Entry.raw`."""


def read_entries(nodes: Iterable[Node], account: Account, outcome: Outcome) -> list[Entry]:
    """The messages of a path, each at the place of its first line; other lines are passed over."""
    groups: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        if node.is_message:
            key = (node.reply, "") if node.reply else ("", node.id)
            groups.setdefault(key, []).append(node)
    return [read_entry(group, account, outcome) for group in groups.values()]


def read_entry(nodes: Sequence[Node], account: Account, outcome: Outcome) -> Entry:
    """One message, of one line or more."""
    account.use(outcome, nodes[0].record.number)
    value = nodes[0].record.value
    said = _said if value["type"] == "user" else _answered
    return said(nodes, account)


def _said(nodes: Sequence[Node], account: Account) -> Entry:
    """What a user said, or a tool; always on one line."""
    number, value = nodes[0].record
    body: dict[str, Any] = value["message"]
    message = attempt(DIALECT.read, body, account, number) or kept("user", FORMAT, body)
    return Entry(
        message=message,
        lines=(number,),
        ids=_names(nodes),
        parent=word_in(value, "parentUuid"),
        kind=_kind(value),
        time=word_in(value, "timestamp"),
        raw=(value,),
    )


def _answered(nodes: Sequence[Node], account: Account) -> Entry:
    """What the assistant answered, on as many lines as it has blocks."""
    values = [node.record.value for node in nodes]
    numbers = tuple([node.record.number for node in nodes])
    account.use("merged", *numbers[1:])
    reply = _read_reply([value["message"] for value in values], account, numbers[0])
    return Entry(
        message=reply.messages[0],
        lines=numbers,
        ids=_names(nodes),
        parent=word_in(values[0], "parentUuid"),
        kind=_kind(values[0]),
        time=word_in(values[0], "timestamp"),
        model=reply.model,
        reply=reply.id,
        stop=reply.stop,
        usage=reply.usage,
        raw=tuple(values),
    )


def _names(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple([node.id for node in nodes if "uuid" in node.record.value])


def _read_reply(bodies: Sequence[dict[str, Any]], account: Account, line: int) -> Reply:
    body = {key: bodies[-1][key] for key in _READ if key in bodies[-1]}
    if len(bodies) > 1:
        body["content"] = _content(bodies)
    usage = next((given for each in reversed(bodies) if (given := each.get("usage"))), None)
    if isinstance(usage, dict):
        body["usage"] = {key: usage[key] for key in _COSTS if key in usage}
    whole = attempt(DIALECT.read_reply, body, account, line)
    if whole:
        return whole
    said = attempt(DIALECT.read, {"role": "assistant", "content": body.get("content")}, account, line)
    message = said or kept("assistant", FORMAT, body)
    return Reply(messages=(message,), id=word_in(body, "id"), model=word_in(body, "model"))


def _content(bodies: Sequence[dict[str, Any]]) -> list[Any]:
    """The blocks of all lines; a call that is repeated, with more of its arguments, only as it was last."""
    blocks: dict[object, Any] = {}
    for place, body in enumerate(bodies):
        given = body.get("content")
        listed = given if isinstance(given, list) else [{"type": "text", "text": given}]
        for index, block in enumerate(listed):
            is_call = isinstance(block, dict) and block.get("type") == "tool_use"
            blocks[word_in(block, "id") if is_call else (place, index)] = block
    return list(blocks.values())


def _kind(value: dict[str, Any]) -> EntryKind:
    if value.get("isCompactSummary") is True:
        return "summary"
    if value.get("isMeta") is True:
        return "injected"
    is_news = "origin" in value and mapping_under(value, "origin").get("kind") == "task-notification"
    return "injected" if is_news else "said"
