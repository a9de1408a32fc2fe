"""A call as a row of pieces that can be compared with those of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.difference import RequestPiece, Side
from nexus_core.dialects.neutral import encode_value
from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.ledger.json_text import write_canonical_json, write_json
from nexus_core.types.digest import blake2b

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Message, Tool
    from nexus_core.types.prompt import Placement

_UNSENT = ("nexus", "api", "scope")
"""What no model reads: the version of our own form, who read something, what a tool reaches."""
MARKS = BUILT_IN_DIALECTS.cache_marks()
"""The fields by which providers are told what to keep in their caches, whose dialects are built in."""
_STEP, _CALLER = "step:", "caller:"


class Sendable(NamedTuple):
    """What goes to a model, whoever put it together.

    Attributes:
        model: Whom it goes to.
        system_prompt: What is read first.
        tools: What may be asked for.
        messages: What is said.
        tool_tokens, message_tokens: What each of these takes.
        system_tokens: What the system prompt takes.
        api: The dialect that its messages were read by; "" for those that were put together here.
        renderer: What put it into words; "" where nobody knows.
        placements: Where the pieces come from, as far as somebody knows.
    """

    model: str
    system_prompt: str
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    tool_tokens: tuple[int, ...]
    message_tokens: tuple[int, ...]
    system_tokens: int
    api: str = ""
    renderer: str = ""
    placements: tuple[Placement, ...] = ()


def sendable_of(context: AssembledContext) -> Sendable:
    """What goes to a model of what was put together for it."""
    placed = {each.name: each.tokens for each in context.placements if each.kind == "tool" and each.tokens}
    return Sendable(
        model=context.model,
        system_prompt=context.system_prompt,
        tools=context.tools,
        messages=context.messages,
        tool_tokens=tuple(placed.get(tool.name, 0) for tool in context.tools),
        message_tokens=context.message_tokens,
        system_tokens=context.token_budget.used.get("system", 0),
        renderer=context.renderer,
        placements=context.placements,
    )


def side_of(sendable: Sendable, marks: frozenset[str] = MARKS) -> Side:
    """A call, as one side of a comparison.

    Args:
        sendable: The call.
        marks: The fields by which providers are told what to keep in their caches.
    """
    placed = [each for each in sendable.placements if each.zone == "static" and each.kind != "tool"]
    words = sendable.system_prompt
    name = f"system prompt of the renderer {sendable.renderer}" if sendable.renderer else "system prompt"
    return Side(
        model=RequestPiece("model", sendable.model, _digest("model", sendable.model), text=sendable.model),
        tools=tuple(_tools(sendable, marks)),
        system=RequestPiece("system", name, _digest("system", words), sendable.system_tokens, text=words),
        sections=tuple(map(_section, placed)),
        messages=tuple(_messages(sendable, marks)),
    )


def _tools(sendable: Sendable, marks: frozenset[str]) -> Iterator[RequestPiece]:
    sources = {each.name: each.source for each in sendable.placements if each.kind == "tool" and each.tokens}
    for tool, tokens in zip(sendable.tools, sendable.tool_tokens, strict=True):
        written = write_json(_sent(encode_value(tool), marks), "a tool")  # a model reads its parameters in their order
        yield RequestPiece(
            "tool", tool.name, _digest("tool", written), tokens, tool.name, sources.get(tool.name), _told(tool)
        )


def _section(placed: Placement) -> RequestPiece:
    key = placed.source.uri if placed.source.is_file else placed.name
    written = write_canonical_json([placed.title, placed.source.uri, placed.digest])
    return RequestPiece(
        "section", placed.title, _digest("section", written), placed.tokens, f"{key} {placed.title}", placed.source
    )


def _messages(sendable: Sendable, marks: frozenset[str]) -> Iterator[RequestPiece]:
    messages, sizes = sendable.messages, sendable.message_tokens
    placed = [each for each in sendable.placements if _is_message(each)]
    sources = [each.source for each in placed] if len(placed) == len(messages) else [None] * len(messages)
    before = dict[str, int]()
    for place, (message, tokens, source) in enumerate(zip(messages, sizes, sources, strict=True)):
        step = source.uri.removeprefix(_STEP) if source is not None and source.uri.startswith(_STEP) else ""
        before[step] = before.get(step, 0) + 1
        yield RequestPiece(
            "message",
            f"message {place} ({message.role})",
            digest_of(message, marks),
            tokens,
            f"{step} {before[step]}" if step else "",
            source if step else None,
            message.content,
        )


def digest_of(message: Message, marks: frozenset[str] = MARKS) -> str:
    """The address of what a provider reads of a message."""
    return _digest("message", write_canonical_json(_sent(encode_value(message), marks)))


def _is_message(placed: Placement) -> bool:
    if placed.decision.action == "dropped":
        return False
    return placed.zone == "history" or (placed.zone == "current" and placed.source.uri.startswith((_STEP, _CALLER)))


def _sent(block: Mapping[str, Any], marks: frozenset[str]) -> dict[str, Any]:
    """Something in Nexus's own form without what is no part of what is said: marks for caches, notes."""
    sent = {name: value for name, value in block.items() if name not in _UNSENT}
    for name in ("extra", "block"):
        if name in sent:
            sent[name] = {key: value for key, value in sent[name].items() if key not in marks and key[:1] != "_"}
    if "parts" in sent:
        sent["parts"] = [_sent(part, marks) for part in sent["parts"]]
    return {name: value for name, value in sent.items() if name != "extra" or value}


def _told(tool: Tool) -> str:
    return f"{tool.description}\n{write_json(dict(tool.parameters), 'a tool')}"


def _digest(kind: str, text: str) -> str:
    return blake2b(f"{kind}:{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
