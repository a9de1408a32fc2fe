"""Makes a list of messages fit a model's window, whatever API it is written for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypedDict, TypeVar

from nexus_core.dialects.finding import UNTOLD, default_dialects
from nexus_core.dialects.requests import no_list
from nexus_core.errors import UnknownNameError
from nexus_core.history.allowance import allowance_for, require_limit, require_room, weigh_fixed
from nexus_core.history.telling import Told, Untold
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.dialects.finding import Dialects
    from nexus_core.history.allowance import Fixed
    from nexus_core.history.choosing import Chosen
    from nexus_core.history.window import Items
    from nexus_core.host.host import Host
    from nexus_core.values.api import Dialect
    from nexus_core.values.budget import Decision, TokenBudget, Truncation
    from nexus_core.values.counting import Model, TokenCounter
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
        findings: What was wrong with the messages that are kept, and what is wrong with the tools.
    """

    messages: list[T]
    decisions: tuple[Decision, ...]
    budget: TokenBudget
    findings: tuple[Finding, ...] = ()


class FitOptions(TypedDict, total=False):
    """The arguments of `fit` that do not say who is asked."""

    tools: Iterable[object] | None
    system: object
    budget: int | TokenBudget | None
    api: str | None
    strategy: str | None
    start_with_user: bool | None
    result_tokens: int | None
    counter: TokenCounter | None


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
    Where the request would have more bytes than its API takes, older pictures and documents are told in words first.
    Calls and their results stay together. What is never left out: instructions at the beginning, the newest group, and
    the user's message that an unfinished tool loop is about.

    Args:
        messages: Dicts or SDK objects of any API, or `Message`.
        model: Whose window and tokeniser count.
        tools: Definitions of tools that are sent along, in any API's shape.
        system: Instructions that are sent along beside the messages: a text, blocks as an API has them, or a `Message`.
        budget: Tokens for all of it. By default the model's window without room for an answer.
        api: The API that the list is written for; told from the messages otherwise.
        strategy: What is left out: `oldest_first` (the default), `middle_out`, or what a plugin offers.
        start_with_user: Whether the first message kept must be the user's; by default where the API wants it.
        result_tokens: Where not all fits, results of tools above this are shortened before anything is left out.
        counter: Who counts, instead of the model's own counter.
        host: Whose plugins to ask; the user's own by default.
        settings: What the settings of a directory say about models, budget and truncation; `Nexus.fit` gives both.

    Raises:
        BudgetError: What must not be left out does not fit; lists what it consists of.
        MessageError: Something in the list is no message; names it.
        UnknownNameError: There is no such strategy or API.
    """
    newest, dialects = _newest(messages), default_dialects(host)
    name = api or dialects.told(newest, len(messages) - len(newest))
    speaking = dialects.get(name or UNTOLD)
    require_limit(result_tokens)
    from nexus_core.host.default import default_host  # noqa: PLC0415 - plugins are looked for when needed
    from nexus_core.tokens.counters import find_unknown, open_counter, open_model  # noqa: PLC0415 - as above

    plugins = host or default_host()
    counting = counter or open_counter(model, host=plugins, settings=settings)
    allowance = allowance_for(model, budget, plugins, settings)
    fixed = weigh_fixed(counting, system, tools, speaking.name, dialects)
    known = open_model(model, host=plugins, settings=settings)
    truncation = plugins.truncations().get(strategy or _configured(settings))
    wish = _Wish(counting, truncation, start_with_user, result_tokens, allowance, fixed, known, dialects)
    limited = wish.limited(name)
    try:
        items = messages if name or len(messages) == len(newest) else Untold(messages, UNTOLD, dialects)
        chosen = wish.choose(items, speaking, limited)
    except Told as other:
        speaking, limited = dialects.get(other.name), wish.limited(other.name)
        chosen = wish.choose(messages, speaking, limited)
    taken = _taken_up(limited, fixed, chosen, counting)
    unknown = find_unknown(model, host=plugins, settings=settings)
    findings = chosen.findings if unknown is None else (unknown, *chosen.findings)
    if fixed.tools:
        from nexus_core.dialects.tools.validity import find_invalid_tools  # noqa: PLC0415 - not every call has tools

        findings = (*findings, *find_invalid_tools(fixed.tools, speaking.rules))
    return Fitted(_written(chosen, messages, speaking), chosen.decisions, taken, findings)


def require_options(options: Mapping[str, object]) -> None:
    """Refuse what `fit` has no argument for, for whoever gives it arguments later.

    Raises:
        UnknownNameError: Names the first.
    """
    known = fit.__kwdefaults__ or {}
    for name in options:
        if name not in known:
            raise UnknownNameError("argument of fit", name, known)


class _Wish(NamedTuple):
    """What is wanted of the messages that stay, in whichever dialect they turn out to be; fields as those of `fit`."""

    counter: TokenCounter
    truncation: Truncation
    start_with_user: bool | None
    result_tokens: int | None
    allowance: TokenBudget
    fixed: Fixed
    model: Model
    dialects: Dialects

    def limited(self, api: str) -> TokenBudget:
        """The budget, with the bytes that the API takes where nobody says otherwise; "" is one that nobody told."""
        limit = self.allowance.byte_limit or self.dialects.request_limit(self.model, api)
        return replace(self.allowance, byte_limit=limit)

    def choose(self, items: Items, speaking: Dialect, limited: TokenBudget) -> Chosen:
        from nexus_core.history.choosing import Chooser  # noqa: PLC0415 - with the rules of repair, for a list to fit
        from nexus_core.history.window import Window  # noqa: PLC0415 - as above

        begin = "assistant" not in speaking.rules.first if self.start_with_user is None else self.start_with_user
        window = Window(items, speaking, self.counter)
        chooser = Chooser(window, speaking, self.truncation, start_with_user=begin, result_tokens=self.result_tokens)
        room = limited.available - sum(self.fixed.tokens.values())
        return chooser.choose(room, limited.byte_limit - sum(self.fixed.bytes.values()))


def _taken_up(allowance: TokenBudget, fixed: Fixed, chosen: Chosen, counter: TokenCounter) -> TokenBudget:
    """The budget with what takes it up.

    Raises:
        BudgetError: That is more than there is.
    """
    used = {
        "system": fixed.tokens["system"] + chosen.instructions,
        "tools": fixed.tokens["tools"],
        "history": chosen.tokens - chosen.instructions,
    }
    measured = fixed.bytes | {"history": chosen.bytes}
    taken = replace(allowance, used=used, bytes=sum(measured.values()), estimated=not getattr(counter, "exact", False))
    require_room(taken, measured)
    return taken


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
