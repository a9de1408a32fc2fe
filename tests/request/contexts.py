"""Contexts made by hand, and a provider's cache that forgets nothing and forgives nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nexus_core.request.write import CallWriter
from nexus_core.types.assembled import AssembledContext, Breakpoint
from nexus_core.types.budget import Model, TokenBudget
from nexus_core.types.messages import Message, Tool, ToolCall, ToolResult

Body = dict[str, Any]

CLAUDE = Model(
    name="claude-opus-5",
    window=1_000_000,
    max_output=128_000,
    cache_minimum=512,
    cache_breakpoints=4,
    api="anthropic",
)
SONNET = Model(name="claude-sonnet-4", window=200_000, cache_minimum=1024, cache_breakpoints=4, api="anthropic")
GPT = Model(name="gpt-5.6", window=922_000, cache_minimum=1024, cache_breakpoints=3, api="openai")
GPT_4O = Model(name="gpt-4o", window=128_000, cache_minimum=1024, api="openai")
GEMINI = Model(name="gemini-3-pro", window=1_000_000, cache_minimum=4096, api="gemini")
DEEPSEEK = Model(name="deepseek-v4", window=1_000_000, api="openai")
MODELS = {model.name: model for model in (CLAUDE, SONNET, GPT, GPT_4O, GEMINI, DEEPSEEK)}
FOR_API = {"anthropic": CLAUDE, "openai": GPT, "responses": GPT, "gemini": GEMINI}

LOOK = Tool(name="look", description="Look at a file.", parameters={"type": "object", "properties": {}})
SIZE = 2000
"""What each message takes, and system prompt and tools together."""


def find_model(name: str) -> Model:
    return MODELS.get(name, Model(name=name, window=128_000))


def context_of(
    messages: Sequence[Message] = (),
    *,
    past: int = 0,
    system: str = "Be brief.",
    tools: Sequence[Tool] = (LOOK,),
    model: Model = CLAUDE,
    size: int = SIZE,
    static: int = SIZE,
    enabled: bool = True,
    ttl: str = "5m",
    **fields: Any,
) -> AssembledContext:
    """A call; `past` says how many of the messages are of earlier turns."""
    given: Body = {
        "system_prompt": system,
        "history": tuple(messages[:past]),
        "current_message": messages[past] if past < len(messages) else None,
        "progress": tuple(messages[past + 1 :]),
        "tools": tuple(tools),
        "model": model.name,
        "message_tokens": (size,) * len(messages),
        "token_budget": TokenBudget(
            limit=model.window, reserve_response=8000, used={"system": static, "history": size * len(messages)}
        ),
        "workspace_path": Path("/work"),
        "session_label": "auth-bug",
        "epoch": "f00d",
        "writer": CallWriter(model, find_model, enabled=enabled, ttl=ttl),
    }
    return AssembledContext(**given | fields)


def user(text: str = "Why?") -> Message:
    return Message("user", text)


def says(text: str = "Because.") -> Message:
    return Message("assistant", text)


def asks(*ids: str) -> Message:
    return Message("assistant", [ToolCall(each, "look", {"path": each}) for each in ids])


def brings(*ids: str) -> Message:
    return Message("tool", [ToolResult(each, f"what is in {each}") for each in ids])


def marked(breakpoints: Sequence[Breakpoint]) -> dict[str, int]:
    """The places that are marked, and behind which message."""
    return {each.place: each.after for each in breakpoints if not each.skipped}


class Block(NamedTuple):
    """A block as Anthropic reads it, one after another: tools, system, messages."""

    text: str
    mark: Mapping[str, str] | None
    path: str


def blocks_of(body: Body) -> list[Block]:
    found = [_block(tool, f"tools[{place}]") for place, tool in enumerate(body.get("tools", ()))]
    found += [_block(block, f"system[{place}]") for place, block in enumerate(_listed(body.get("system", [])))]
    for place, message in enumerate(body["messages"]):
        for inner, block in enumerate(_listed(message["content"])):
            found.append(_block({"role": message["role"], **block}, f"messages[{place}].content[{inner}]"))
    return found


def marked_paths(body: Body) -> list[str]:
    return [block.path for block in blocks_of(body) if block.mark is not None]


def _listed(content: Any) -> list[Body]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block(block: Body, path: str) -> Block:
    return Block(
        json.dumps({key: value for key, value in block.items() if key != "cache_control"}),
        block.get("cache_control"),
        path,
    )


class Cache:
    """Finds a beginning only where one ended that it was told to keep, and looks only where it is told to."""

    def __init__(self) -> None:
        self._kept: set[tuple[str, ...]] = set()

    def read(self, body: Body) -> int:
        """How many blocks of a call are found; then it keeps what it is told to keep."""
        prefixes = list(self._prefixes(body))
        found = max((len(prefix) for prefix in prefixes if prefix in self._kept), default=0)
        self._kept.update(prefixes)
        return found

    def _prefixes(self, body: Body) -> Iterator[tuple[str, ...]]:
        blocks = blocks_of(body)
        for end, block in enumerate(blocks, 1):
            if block.mark is not None:
                yield tuple(each.text for each in blocks[:end])
