"""How much room there is, and what takes room besides messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nexus_core.errors import UsageError
from nexus_core.values.budget import TokenBudget
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.host.host import Host
    from nexus_core.values.counting import TokenCounter

RESERVE = 8000
"""What is kept free for an answer, if the window is large enough."""
RESERVED_SHARE = 4
"""No more than this fraction of a window is kept free for an answer."""


def allowance_for(model: str, budget: int | TokenBudget | None, host: Host) -> TokenBudget:
    """The budget that was given, or the model's window without room for an answer."""
    if isinstance(budget, TokenBudget):
        return budget
    if budget is not None:
        if budget < 0:
            raise UsageError(f"a budget of {budget} tokens is none", hint="give a positive number")
        return TokenBudget(limit=budget)
    from nexus_core.tokens.counters import open_model  # noqa: PLC0415 - only without a budget

    window = open_model(model, host=host).window
    return TokenBudget(limit=window, reserve_response=min(RESERVE, window // RESERVED_SHARE))


def count_fixed(counter: TokenCounter, system: object, tools: Iterable[object]) -> dict[str, int]:
    """What instructions and tools take that are sent beside the messages."""
    words = system if isinstance(system, str) else _compact(system) if system else ""
    return {
        "system": counter.count_messages([Message("system", words)]) if words else 0,
        "tools": sum(counter.count(_compact(tool)) for tool in tools),
    }


def _compact(value: object) -> str:
    from nexus_core.dialects.plain import plain  # noqa: PLC0415 - not every call has tools

    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
