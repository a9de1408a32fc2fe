"""fit(): the messages that fit a model's context window, in any API's format."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from nexus_core.dialects.registry import DEFAULT_DIALECT_NAME, get_default_registry
from nexus_core.dialects.requests import build_not_a_list_error
from nexus_core.dialects.tools import find_invalid_tools
from nexus_core.errors import UnknownNameError
from nexus_core.history.budget import (
    build_allowance,
    measure_fixed_cost,
    require_result_limit,
    require_within_budget,
)
from nexus_core.history.chooser import MessageChooser
from nexus_core.history.counted_messages import CountedMessages
from nexus_core.host.manager import get_installed_host
from nexus_core.tokens.counters import find_model_finding, get_model, open_counter
from nexus_core.types.base import dataclass
from nexus_core.types.budget import TokenCalibration
from nexus_core.types.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.history.budget import FixedCost
    from nexus_core.history.chooser import ChosenMessages
    from nexus_core.history.counted_messages import IndexedItems
    from nexus_core.host.manager import Host
    from nexus_core.types.api import Dialect
    from nexus_core.types.budget import Decision, TokenBudget, TokenCounter
    from nexus_core.types.plugins import Finding
    from nexus_core.types.settings import Settings


class DialectDetected(Exception):  # noqa: N818 - not an error: it ends an attempt in the wrong dialect
    """Signal that an element was read which identifies its dialect.

    Args:
        name: The name of the dialect.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class UndetectedMessages:
    """A list whose dialect is checked element by element, because only one in the middle may identify it.

    Args:
        items: The list.
        assumed: The name of the dialect that is assumed until an element identifies another.
        dialects: All dialects.
    """

    def __init__(self, items: Sequence[object], assumed: str, dialects: DialectRegistry) -> None:
        self._items = items
        self._assumed = assumed
        self._dialects = dialects

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> object:
        item = self._items[index]
        name = self._dialects.told((item,), index)
        if name and name != self._assumed:
            raise DialectDetected(name)
        return item


T = TypeVar("T")

MAX_DETECTION_MESSAGES = 100
"""The dialect of a list is detected from this many of its newest messages; older ones are checked when read."""


@dataclass(frozen=True, slots=True)
class FitResult(Generic[T]):
    """The messages that fit, with the decisions behind the choice.

    Attributes:
        messages: The caller's own objects, oldest first; repaired and shortened messages are new objects.
        decisions: What was left out, shortened or repaired, and by which rule.
        budget: The model's context window, and the tokens of each part.
        findings: Problems of the kept messages, which were repaired, and of the tools, which were not.
    """

    messages: list[T]
    decisions: tuple[Decision, ...]
    budget: TokenBudget
    findings: tuple[Finding, ...] = ()


class FitOptions(TypedDict, total=False):
    """The keyword arguments of `fit` other than model, host and settings."""

    tools: Iterable[object] | None
    system: object
    budget: int | TokenBudget | None
    api: str | None
    strategy: str | None
    start_with_user: bool
    omission_notice: bool
    result_tokens: int | None
    counter: TokenCounter | None


def fit_messages(
    messages: Sequence[T],
    *,
    model: str = "",
    tools: Iterable[object] | None = (),
    system: object = None,
    budget: int | TokenBudget | None = None,
    api: str | None = None,
    strategy: str | None = None,
    start_with_user: bool = True,
    omission_notice: bool = True,
    result_tokens: int | None = None,
    counter: TokenCounter | None = None,
    host: Host | None = None,
    settings: Settings | None = None,
) -> FitResult[T]:
    """Return the messages that fit a model's context window, valid for their API. The input is not changed.

    The list is read from its end until the budget is used up, so a long list costs no more than a short one. If the
    request body would have more bytes than the API accepts, text placeholders replace images and documents, the oldest
    first. Tool calls and their results stay together. Instructions at the beginning, the newest group and the user
    message of an unfinished tool loop are never left out.

    Args:
        messages: Dicts or SDK objects of any API, or `Message`.
        model: The model whose context window and tokenizer apply.
        tools: Definitions of the tools in the same call, in any API's format.
        system: Instructions beside the messages: a text, blocks of an API, or a `Message`.
        budget: Tokens for the whole call. None for the model's context window minus a reserve for the reply, and minus
            the error of the count where the model table states one.
        api: The API that the list is written for; None to detect it from the messages.
        strategy: The truncation strategy: `oldest_first` (the default), `middle_out`, or one of a plugin.
        start_with_user: Whether a user message comes first if messages are left out.
        omission_notice: Whether a short user message is put in front of a reply that would be the first. Otherwise the
            messages before the next user message are left out too.
        result_tokens: If not everything fits, tool results above this many tokens are shortened before messages are
            left out; None for a quarter of the budget, except in the newest group.
        counter: The token counter; None for that of the model.
        host: The plugin manager; None for that of the installed plugins.
        settings: Settings for models, budget and truncation; `Nexus.fit` passes its own, and its host.

    Raises:
        BudgetError: Messages that must not be left out do not fit; lists the size of each part.
        MessageError: An element of the list is not a message; the error names it.
        UnknownNameError: There is no such strategy or API.
    """
    newest, dialects = _slice_newest(messages), get_default_registry(host)
    name = api or dialects.told(newest, len(messages) - len(newest))
    dialect = dialects.get(name or DEFAULT_DIALECT_NAME)
    require_result_limit(result_tokens)
    plugins = host or get_installed_host()
    counting = counter or open_counter(model, host=plugins, settings=settings, stored=host is not None)
    allowance = build_allowance(model, budget, plugins, settings)
    error = getattr(counting, "error", 0.0)
    if budget is None and error:  # the window is the provider's, which may count more
        allowance = replace(allowance, calibration=TokenCalibration(0, 1 - error, 1.0, 1 + error))
    fixed = measure_fixed_cost(counting, system, tools, dialect.name, dialects)
    known = get_model(model, host=plugins, settings=settings)
    truncation = plugins.truncations().get(strategy or _read_strategy(settings))

    def choose(items: IndexedItems, dialect: Dialect, name: str) -> tuple[TokenBudget, ChosenMessages]:
        # An API that is not known yet is "".
        limits = replace(allowance, byte_limit=allowance.byte_limit or dialects.request_limit(known, name))
        available = limits.available
        if limits.calibration is not None:
            available = limits.calibration.compute_available(available)
        chooser = MessageChooser(
            CountedMessages(items, dialect, counting),
            dialect,
            truncation,
            start_with_user=start_with_user is not False,  # None meant the rule of the API
            omission_notice=omission_notice,
            result_tokens=result_tokens,
        )
        fixed_tokens, fixed_bytes = sum(fixed.tokens.values()), sum(fixed.bytes.values())
        return limits, chooser.choose(available - fixed_tokens, limits.byte_limit - fixed_bytes)

    is_known = bool(name) or len(messages) == len(newest)
    try:
        items = messages if is_known else UndetectedMessages(messages, DEFAULT_DIALECT_NAME, dialects)
        limits, chosen = choose(items, dialect, name)
    except DialectDetected as other:
        dialect = dialects.get(other.name)
        limits, chosen = choose(messages, dialect, other.name)
    used_budget = _build_used_budget(limits, fixed, chosen, counting)
    unknown = find_model_finding(model, host=plugins, settings=settings)
    findings = chosen.findings if unknown is None else (unknown, *chosen.findings)
    if fixed.tools:
        findings = (*findings, *find_invalid_tools(fixed.tools, dialect.rules))
    return FitResult(_write_chosen(chosen, messages, dialect), chosen.decisions, used_budget, findings)


def require_fit_options(options: Mapping[str, object]) -> None:
    """Validate the names of options that are passed to `fit` later.

    Raises:
        UnknownNameError: `fit` has no such argument; the error names the first.
    """
    known = fit_messages.__kwdefaults__ or {}
    for name in options:
        if name not in known:
            raise UnknownNameError("argument of fit", name, known)


def _build_used_budget(
    allowance: TokenBudget, fixed: FixedCost, chosen: ChosenMessages, counter: TokenCounter
) -> TokenBudget:
    """Return the budget with the tokens and bytes that are used.

    Raises:
        BudgetError: They exceed the budget.
    """
    used = {
        "system": fixed.tokens["system"] + chosen.instructions,
        "tools": fixed.tokens["tools"],
        "history": chosen.tokens - chosen.instructions,
    }
    measured = fixed.bytes | {"history": chosen.bytes}
    used_budget = replace(
        allowance, used=used, bytes=sum(measured.values()), estimated=not getattr(counter, "exact", False)
    )
    require_within_budget(used_budget, measured)
    return used_budget


def _read_strategy(settings: Settings | None) -> str:
    name = settings.get("truncation.strategy") if settings else None
    return name if isinstance(name, str) else "oldest_first"


def _slice_newest(messages: Sequence[T]) -> Sequence[T]:
    """Return the end of the list.

    Raises:
        MessageError: It is not a list.
    """
    if isinstance(messages, str | bytes):
        raise build_not_a_list_error(messages)
    try:
        return messages[-MAX_DETECTION_MESSAGES:]
    except (TypeError, KeyError):
        raise build_not_a_list_error(messages) from None


def _write_chosen(chosen: ChosenMessages, given: Sequence[T], dialect: Dialect) -> list[T]:
    """Return the chosen messages as the caller's own objects, and changed ones in the caller's format."""
    neutral = bool(given) and isinstance(given[0], Message)
    written: list[Any] = []
    for index, message in chosen.messages:
        if index is not None:
            written.append(given[index])
        else:
            written += [message] if neutral else dialect.write([message])
    return written
