"""How much room there is, and what takes room besides messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.fields import named, without
from nexus_core.errors import BudgetError, UsageError
from nexus_core.values.budget import TokenBudget
from nexus_core.values.message import Message
from nexus_core.values.parts import Opaque, Text

if TYPE_CHECKING:
    from nexus_core.dialects.finding import Dialects
    from nexus_core.host.host import Host
    from nexus_core.values.conversation import Tool
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.parts import Part
    from nexus_core.values.settings import Settings

RESERVE = 8000
"""What is kept free for an answer, if the window is large enough."""
RESERVED_SHARE = 4
"""No more than this fraction of a window is kept free for an answer."""
RESERVE_TOOLS = 8000
"""Tokens that a session keeps free for tool results, if the window is large enough."""
RESERVED_TOOLS_SHARE = 8
"""No more than this fraction of a window is kept free for tool results."""


def allowance_for(
    model: str, budget: int | TokenBudget | None, host: Host, settings: Settings | None = None
) -> TokenBudget:
    """The budget that was given, or the model's window without room for an answer."""
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
    from nexus_core.tokens.counters import open_model  # noqa: PLC0415 - only without a budget

    window = open_model(model, host=host, settings=settings).window
    wanted = settings.get("budget.reserve_response") if settings else None
    reserve = wanted if isinstance(wanted, int) else RESERVE
    return TokenBudget(limit=window, reserve_response=min(reserve, window // RESERVED_SHARE))


class Fixed(NamedTuple):
    """What is sent beside the messages: its tokens and its bytes, by what they are for, and the tools themselves."""

    tokens: dict[str, int]
    bytes: dict[str, int]
    tools: tuple[Tool, ...] = ()


def weigh_fixed(
    counter: TokenCounter, system: object, tools: Iterable[object] | None, api: str, dialects: Dialects
) -> Fixed:
    """What instructions and tools take that are sent beside the messages; `api` is the dialect of both."""
    from nexus_core.dialects.sizes import measure_message, measure_options, measure_tools  # noqa: PLC0415 - only to fit
    from nexus_core.tokens.messages import count_tools  # noqa: PLC0415 - as above

    instructions, defined = read_instructions(system), read_definitions(tools, api, dialects)
    return Fixed(
        tokens={
            "system": counter.count_messages([instructions]) if instructions else 0,
            "tools": count_tools(counter, defined) if defined else 0,
        },
        bytes={
            "system": measure_message(instructions) if instructions else 0,
            "tools": measure_tools(defined),
            "options": measure_options({}),
        },
        tools=defined,
    )


def read_instructions(system: object) -> Message | None:
    """Instructions that are sent beside the messages: text, a `Message`, or blocks as an API has them.

    Raises:
        UsageError: It is something else.
        MessageError: There is something in it that JSON has no word for.
    """
    if not system:
        return None
    if isinstance(system, Message):
        return system
    if isinstance(system, str):
        return Message("system", system)
    from nexus_core.dialects.plain import plain  # noqa: PLC0415 - most instructions are a text

    given = plain(system, "system")
    if isinstance(given, dict):
        given = given.get("parts") or given.get("content") or [given]  # Gemini's, a message of chat, or one block
    return Message("system", map(_read_block, given if isinstance(given, list) else [given]))


def _read_block(block: object) -> Part:
    """What a block says, and the rest of it; one without words as it is."""
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        raise UsageError(f"expected instructions as text or blocks, not {named(block)}", hint='system="Be brief."')
    text = block.get("text")
    return Text(text, without(block, "type", "text")) if isinstance(text, str) else Opaque("", block)


def read_definitions(tools: Iterable[object] | None, api: str, dialects: Dialects) -> tuple[Tool, ...]:
    """Definitions of tools, in whichever API's shape they are given.

    Raises:
        UsageError: It is one definition, or anything else but several.
        MessageError: One of them is no definition of a tool.
    """
    if tools is None:
        return ()
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        raise UsageError("expected a list of definitions of tools", hint="tools=[{…}], also where there is only one")
    return dialects.read_tools(tools, api)


def require_limit(result_tokens: int | None) -> None:
    """Refuse a limit for results that is none."""
    if result_tokens is not None and (type(result_tokens) is not int or result_tokens < 0):  # True would pass for 1
        raise UsageError(
            f"result_tokens is a number of tokens, 0 or more, not {result_tokens!r}",
            hint="result_tokens=2000, for example",
        )


def require_room(budget: TokenBudget, measured: Mapping[str, int]) -> None:
    """Refuse a request that does not fit.

    Args:
        budget: The window and what takes it up.
        measured: Its bytes, by what they are for.

    Raises:
        BudgetError: It has more tokens or more bytes than it may have; lists what it consists of.
    """
    if budget.remaining < 0:
        raise BudgetError(budget.high, budget.available, budget.used)
    if budget.remaining_bytes < 0:
        raise BudgetError(budget.bytes, budget.byte_limit, measured, unit="bytes")
