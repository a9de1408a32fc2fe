"""Makes a list of messages fit a model's window, whatever API it is written for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nexus_core.dialects.finding import dialect, recognise
from nexus_core.errors import BudgetError
from nexus_core.history.allowance import allowance_for, count_fixed
from nexus_core.history.choosing import Chooser
from nexus_core.history.window import Window
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.history.choosing import Chosen
    from nexus_core.host.host import Host
    from nexus_core.values.api import Dialect
    from nexus_core.values.budget import Decision, TokenBudget
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.finding import Finding

T = TypeVar("T")

TELLING = 100
"""So many of the newest messages tell which dialect a list is written in."""


@dataclass(frozen=True, slots=True)
class Fitted(Generic[T]):
    """What fits.

    Attributes:
        messages: The caller's own objects, oldest first; only what had to be mended or shortened is written anew.
        decisions: What was left out, shortened or mended, and by which rule.
        budget: The window and what takes it up.
        findings: What was wrong with the messages that are kept.
    """

    messages: list[T]
    decisions: tuple[Decision, ...]
    budget: TokenBudget
    findings: tuple[Finding, ...] = ()


def fit(
    messages: Sequence[T],
    *,
    model: str = "",
    tools: Iterable[object] = (),
    system: object = None,
    budget: int | TokenBudget | None = None,
    api: str | None = None,
    strategy: str = "oldest_first",
    start_with_user: bool | None = None,
    result_tokens: int | None = None,
    counter: TokenCounter | None = None,
    host: Host | None = None,
) -> Fitted[T]:
    """The messages that fit, as valid as the API wants them. Nothing that is given is changed.

    It reads the list from its end and stops when the budget is used up: a long list costs no more than a short one.
    Calls and their results stay together. What is never left out: instructions at the beginning, the newest group, and
    the user's message that an unfinished tool loop is about.

    Args:
        messages: Dicts or SDK objects of any API, or `Message`.
        model: Whose window and tokeniser count.
        tools: Definitions of tools that are sent along, in any API's shape.
        system: Instructions that are sent along beside the messages.
        budget: Tokens for all of it. By default the model's window without room for an answer.
        api: The API that the list is written for; told from the messages otherwise.
        strategy: What is left out: `oldest_first`, `middle_out`, or what a plugin offers.
        start_with_user: Whether the first message kept must be the user's; by default where the API wants it.
        result_tokens: Where not all fits, results of tools above this are shortened before anything is left out.
        counter: Who counts, instead of the model's own counter.
        host: Whose plugins to ask (`nexus.host`); the user's own by default.

    Raises:
        BudgetError: What must not be left out does not fit; lists what it consists of.
        MessageError: Something in the list is no message; names it.
        UnknownNameError: There is no such strategy or API.
    """
    speaking = dialect(api) if api else recognise(messages[-TELLING:])
    from nexus_core.host.default import default_host  # noqa: PLC0415 - plugins are looked for when needed
    from nexus_core.tokens.counters import open_counter  # noqa: PLC0415 - as above

    plugins = host or default_host()
    counting = counter or open_counter(model, host=plugins)
    allowance = allowance_for(model, budget, plugins)
    fixed = count_fixed(counting, system, tools)
    chooser = Chooser(
        Window(messages, speaking, counting),
        speaking,
        plugins.truncations().get(strategy),
        start_with_user="assistant" not in speaking.rules.first if start_with_user is None else start_with_user,
        result_tokens=result_tokens,
    )
    chosen = chooser.choose(allowance.available - sum(fixed.values()))
    used = {
        "system": fixed["system"] + chosen.instructions,
        "tools": fixed["tools"],
        "history": chosen.tokens - chosen.instructions,
    }
    taken = replace(allowance, used=used, estimated=not getattr(counting, "exact", False))
    if taken.remaining < 0:
        raise BudgetError(taken.total, taken.available, {name: tokens for name, tokens in used.items() if tokens})
    return Fitted(_written(chosen, messages, speaking), chosen.decisions, taken, chosen.findings)


def _written(chosen: Chosen, given: Sequence[T], speaking: Dialect) -> list[T]:
    """What was chosen, in the caller's own objects."""
    neutral = bool(given) and isinstance(given[0], Message)
    written: list[Any] = []
    for place, message in chosen.messages:
        if place is not None:
            written.append(given[place])
        else:
            written += [message] if neutral else speaking.write([message])
    return written
