"""Token budgets, and the fixed cost of instructions and tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.fields import describe_json_value, omit_keys, to_json_types
from nexus_core.dialects.requests import count_message_bytes, count_option_bytes, count_tool_bytes
from nexus_core.errors import BudgetError, UsageError
from nexus_core.tokens.counters import get_model
from nexus_core.tokens.messages import count_tools
from nexus_core.types.budget import TokenBudget
from nexus_core.types.messages import Message, Opaque, Text

if TYPE_CHECKING:
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.host.manager import Host
    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.messages import Part, Tool
    from nexus_core.types.settings import Settings

MAX_RESPONSE_RESERVE_TOKENS = 8000
"""Tokens reserved for the reply, if the context window is large enough."""
RESPONSE_RESERVE_DIVISOR = 4
"""At most this fraction of the context window is reserved for the reply."""
MAX_TOOL_RESERVE_TOKENS = 8000
"""Tokens that a session reserves for tool results, if the context window is large enough."""
TOOL_RESERVE_DIVISOR = 8
"""At most this fraction of the context window is reserved for tool results."""


def build_allowance(
    model: str, budget: int | TokenBudget | None, host: Host, settings: Settings | None = None
) -> TokenBudget:
    """Return the given budget, or the model's context window with a reserve for the reply.

    Raises:
        UsageError: The budget is not a number of tokens, or negative.
    """
    if isinstance(budget, TokenBudget):
        return budget
    if budget is not None:
        if type(budget) is not int:  # True would pass for 1
            raise UsageError(
                f"a budget is a number of tokens or a TokenBudget, not {budget!r}", hint="budget=8000, for example"
            )
        if budget < 0:
            raise UsageError(f"a budget cannot be negative: {budget}", hint="budget=8000, for example")
        return TokenBudget(limit=budget)
    window = get_model(model, host=host, settings=settings).window
    wanted = settings.get("budget.reserve_response") if settings else None
    reserve = wanted if isinstance(wanted, int) else MAX_RESPONSE_RESERVE_TOKENS
    return TokenBudget(limit=window, reserve_response=min(reserve, window // RESPONSE_RESERVE_DIVISOR))


class FixedCost(NamedTuple):
    """Tokens and bytes of a request besides its messages, by part (`system`, `tools`, …), and the tools."""

    tokens: dict[str, int]
    bytes: dict[str, int]
    tools: tuple[Tool, ...] = ()


def measure_fixed_cost(
    counter: TokenCounter, system: object, tools: Iterable[object] | None, api: str, dialects: DialectRegistry
) -> FixedCost:
    """Return the size of instructions and tools that are sent beside the messages; `api` is the tools' dialect."""
    instructions, defined = read_instructions(system), read_definitions(tools, api, dialects)
    return FixedCost(
        tokens={
            "system": counter.count_messages([instructions]) if instructions else 0,
            "tools": count_tools(counter, defined) if defined else 0,
        },
        bytes={
            "system": count_message_bytes(instructions) if instructions else 0,
            "tools": count_tool_bytes(defined),
            "options": count_option_bytes({}),
        },
        tools=defined,
    )


def read_instructions(system: object) -> Message | None:
    """Read instructions that are sent beside the messages: a text, a `Message`, or blocks of an API.

    Raises:
        UsageError: It is something else.
        MessageError: It contains a value that JSON does not have.
    """
    if not system:
        return None
    if isinstance(system, Message):
        return system
    if isinstance(system, str):
        return Message("system", system)
    given = to_json_types(system, "system")
    if isinstance(given, dict):
        given = given.get("parts") or given.get("content") or [given]  # of Gemini, of a chat message, or one block
    return Message("system", map(_read_block, given if isinstance(given, list) else [given]))


def _read_block(block: object) -> Part:
    """Read a block with a text, its other fields in `extra`; any other block stays opaque."""
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        raise UsageError(
            f"expected instructions as text or blocks, not {describe_json_value(block)}", hint='system="Be brief."'
        )
    text = block.get("text")
    return Text(text, omit_keys(block, "type", "text")) if isinstance(text, str) else Opaque("", block)


def read_definitions(tools: Iterable[object] | None, api: str, dialects: DialectRegistry) -> tuple[Tool, ...]:
    """Read tool definitions in the format of any API.

    Raises:
        UsageError: It is not a list, for example a single definition.
        MessageError: One of them is not a tool definition.
    """
    if tools is None:
        return ()
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        raise UsageError("expected a list of tool definitions", hint="tools=[{…}], even for a single tool")
    return dialects.read_tools(tools, api)


def require_result_limit(result_tokens: int | None) -> None:
    """Raise a UsageError if a limit for tool results is not a number of tokens."""
    if result_tokens is not None and (type(result_tokens) is not int or result_tokens < 0):  # True would pass for 1
        raise UsageError(
            f"result_tokens is a number of tokens, 0 or more, not {result_tokens!r}",
            hint="result_tokens=2000, for example",
        )


def require_model_name(model: object) -> None:
    """Raise a UsageError if the name of a model is not a text."""
    if not isinstance(model, str):
        raise UsageError(f"a model is given by its name, not {model!r}", hint='model="gpt-4o", or "" for any model')


def require_counter(counter: object) -> None:
    """Raise a UsageError if an object has no methods of a token counter, or is only the class of one."""
    methods = (getattr(counter, name, None) for name in ("count", "count_messages"))
    if isinstance(counter, type) or not all(map(callable, methods)):
        raise UsageError(
            f"a counter is an object with count(text) and count_messages(messages), not {counter!r}",
            hint="counter=get_token_counter(model), for example, or None for that of the model",
        )


def require_within_budget(budget: TokenBudget, measured: Mapping[str, int]) -> None:
    """Raise an error if a request does not fit.

    Args:
        budget: The context window and the tokens of each part.
        measured: The bytes of each part.

    Raises:
        BudgetError: It exceeds the limit of tokens or of bytes; lists the size of each part.
    """
    if budget.remaining < 0:
        raise BudgetError(budget.high, budget.available, budget.used)
    if budget.remaining_bytes < 0:
        raise BudgetError(budget.bytes, budget.byte_limit, measured, unit="bytes")
