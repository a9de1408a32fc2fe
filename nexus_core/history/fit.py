"""Makes a list of messages fit a model's window, whatever API it is written for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nexus_core.dialects.finding import UNTOLD, dialect, told
from nexus_core.dialects.requests import no_list
from nexus_core.errors import BudgetError, UnknownNameError
from nexus_core.history.allowance import allowance_for, count_fixed, require_limit
from nexus_core.history.choosing import Chooser
from nexus_core.history.telling import Told, Untold
from nexus_core.history.window import Window
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.history.choosing import Chosen
    from nexus_core.history.window import Items
    from nexus_core.host.host import Host
    from nexus_core.values.api import Dialect
    from nexus_core.values.budget import Decision, TokenBudget
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.finding import Finding
    from nexus_core.values.settings import Settings

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
    tools: Iterable[object] | None = (),
    system: object = None,
    budget: int | TokenBudget | None = None,
    api: str | None = None,
    strategy: str | None = None,
    start_with_user: bool | None = None,
    result_tokens: int | None = None,
    counter: TokenCounter | None = None,
    host: Host | None = None,
    settings: Settings | None = None,
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
        strategy: What is left out: `oldest_first` (the default), `middle_out`, or what a plugin offers.
        start_with_user: Whether the first message kept must be the user's; by default where the API wants it.
        result_tokens: Where not all fits, results of tools above this are shortened before anything is left out.
        counter: Who counts, instead of the model's own counter.
        host: Whose plugins to ask; the user's own by default.
        settings: What a directory's config.json say about models, budget and truncation; `Nexus.fit` gives both.

    Raises:
        BudgetError: What must not be left out does not fit; lists what it consists of.
        MessageError: Something in the list is no message; names it.
        UnknownNameError: There is no such strategy or API.
    """
    newest = _newest(messages)
    name = api or told(newest, len(messages) - len(newest))
    speaking = dialect(name or UNTOLD)
    require_limit(result_tokens)
    from nexus_core.host.default import default_host  # noqa: PLC0415 - plugins are looked for when needed
    from nexus_core.tokens.counters import open_counter  # noqa: PLC0415 - as above

    plugins = host or default_host()
    counting = counter or open_counter(model, host=plugins, settings=settings)
    allowance = allowance_for(model, budget, plugins, settings)
    fixed = count_fixed(counting, system, tools, speaking.name)
    truncation = plugins.truncations().get(strategy or _configured(settings))
    room = allowance.available - sum(fixed.values())

    def choose(items: Items, speaking: Dialect) -> Chosen:
        begin = "assistant" not in speaking.rules.first if start_with_user is None else start_with_user
        window = Window(items, speaking, counting)
        return Chooser(window, speaking, truncation, start_with_user=begin, result_tokens=result_tokens).choose(room)

    try:
        chosen = choose(messages if name or len(messages) == len(newest) else Untold(messages, UNTOLD), speaking)
    except Told as other:
        speaking = dialect(other.name)
        chosen = choose(messages, speaking)
    used = {
        "system": fixed["system"] + chosen.instructions,
        "tools": fixed["tools"],
        "history": chosen.tokens - chosen.instructions,
    }
    taken = replace(allowance, used=used, estimated=not getattr(counting, "exact", False))
    if taken.remaining < 0:
        raise BudgetError(taken.total, taken.available, {name: tokens for name, tokens in used.items() if tokens})
    return Fitted(_written(chosen, messages, speaking), chosen.decisions, taken, chosen.findings)


def require_options(options: Mapping[str, object]) -> None:
    """Refuse what `fit` has no argument for, for whoever gives it arguments later.

    Raises:
        UnknownNameError: Names the first.
    """
    known = fit.__kwdefaults__ or {}
    for name in options:
        if name not in known:
            raise UnknownNameError("argument of fit", name, known)


def _configured(settings: Settings | None) -> str:
    name = settings.get("truncation.strategy") if settings else None
    return name if isinstance(name, str) else "oldest_first"


def _newest(messages: Sequence[T]) -> Sequence[T]:
    """The end of the list, if it is one; whatever else was given is named."""
    if isinstance(messages, str | bytes):
        raise no_list(messages)
    try:
        return messages[-TELLING:]
    except (TypeError, KeyError):
        raise no_list(messages) from None


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
