"""Lines become messages; the lines of one answer become one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic import DIALECT
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
_COSTS = frozenset(
    {
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens_details",
    }
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
    numbers = [node.record.number for node in nodes]
    account.use(outcome, numbers[0])
    account.use("merged", *numbers[1:])
    value = nodes[0].record.value
    reply = _read_reply(nodes, account) if value["type"] == "assistant" else _read_said(nodes[0], account)
    return Entry(
        message=reply.messages[0],
        lines=tuple(numbers),
        ids=tuple(node.id for node in nodes if word_in(node.record.value, "uuid")),
        parent=word_in(value, "parentUuid"),
        kind=_kind(value),
        time=word_in(value, "timestamp"),
        model=reply.model,
        reply=reply.id,
        stop=reply.stop,
        usage=reply.usage,
        raw=tuple(node.record.value for node in nodes),
    )


def _read_said(node: Node, account: Account) -> Reply:
    body = node.record.value["message"]
    message = attempt(lambda: DIALECT.read(body), account, node.record.number)
    return Reply(messages=(message or kept("user", FORMAT, body),))


def _read_reply(nodes: Sequence[Node], account: Account) -> Reply:
    bodies: list[dict[str, Any]] = [node.record.value["message"] for node in nodes]
    body = {key: bodies[-1][key] for key in _READ if key in bodies[-1]}
    if len(bodies) > 1:
        body |= {"content": _content(bodies)}
    usage = next((given for each in reversed(bodies) if (given := each.get("usage"))), None)
    if isinstance(usage, dict):
        body["usage"] = {key: value for key, value in usage.items() if key in _COSTS}
    line = nodes[0].record.number
    whole = attempt(lambda: DIALECT.read_reply(body), account, line)
    if whole:
        return whole
    said = attempt(lambda: DIALECT.read({"role": "assistant", "content": body.get("content")}), account, line)
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
    is_meta = value.get("isMeta") is True or mapping_under(value, "origin").get("kind") == "task-notification"
    return "injected" if is_meta else "said"
