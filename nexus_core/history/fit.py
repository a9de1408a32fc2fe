"""fit(): the messages that fit a model's context window, in any API's format."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypedDict, TypeVar

from nexus_core.dialects.registry import DEFAULT_DIALECT_NAME, get_default_registry
from nexus_core.dialects.requests import build_not_a_list_error
from nexus_core.dialects.tools import find_invalid_tools
from nexus_core.errors import UnknownNameError
from nexus_core.history.budget import (
    build_allowance,
    measure_fixed_cost,
    require_counter,
    require_model_name,
    require_result_limit,
    require_within_budget,
)
from nexus_core.history.counted_messages import MIN_SHORTENED_TOKENS, CountedMessages
from nexus_core.history.groups import IndexRange, LazyGroups, find_gaps, to_ranges
from nexus_core.history.repair.findings import UNREPAIRED_CODES
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.history.repair.validity import looks_valid_in_sequence
from nexus_core.history.select import select, shrink_budget
from nexus_core.history.shorten import REQUEST_BYTES_RULE, count_media
from nexus_core.host.manager import get_installed_host
from nexus_core.tokens.counters import find_model_finding, get_model, open_counter
from nexus_core.types.base import dataclass
from nexus_core.types.budget import Decision, TokenCalibration
from nexus_core.types.messages import Message, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.history.budget import FixedCost
    from nexus_core.history.counted_messages import IndexedItems
    from nexus_core.history.select import Selection
    from nexus_core.host.manager import Host
    from nexus_core.types.api import Dialect
    from nexus_core.types.budget import TokenBudget, TokenCounter, TruncationStrategy
    from nexus_core.types.messages import Role
    from nexus_core.types.plugins import Finding
    from nexus_core.types.settings import Settings


OMISSION_NOTICE = Message("user", (Text("[Earlier messages omitted]"),))
"""The user message in front of a reply that would be first because the messages before it are left out."""
OMISSION_RULE = "omission-notice"
RESULT_TOKENS_RULE = "result_tokens"
"""The rule in decisions about messages that are shortened to fit the tokens."""
NOTICE_PLACE = -1
"""The index of the notice among the counted messages."""
MAX_RESULT_SHARE = 4
"""If not everything fits, a tool result before the newest group may take one part in this many of the budget."""

MAX_SHORTENING_ATTEMPTS = 3
"""How often the first group that does not fit is shortened: the notice before it, or repair, may make it longer."""


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
        UsageError: Another argument has a wrong type, such as a model that is not a text.
    """
    newest, dialects = _slice_newest(messages), get_default_registry(host)
    name = api or dialects.told(newest, len(messages) - len(newest))
    dialect = dialects.get(name or DEFAULT_DIALECT_NAME)
    require_result_limit(result_tokens)
    require_model_name(model)
    plugins = host or get_installed_host()
    if counter is None:
        counting: TokenCounter = open_counter(model, host=plugins, settings=settings, stored=host is not None)
    else:
        require_counter(counter)
        counting = counter
    allowance = build_allowance(model, budget, plugins, settings)
    error = getattr(counting, "error", 0.0)
    if budget is None and error:  # the window is the provider's, which may count more
        allowance = replace(allowance, calibration=TokenCalibration(0, 1 - error, 1.0, 1 + error))
    fixed = measure_fixed_cost(counting, system, tools, dialect.name, dialects)
    known = get_model(model, host=plugins, settings=settings)
    truncation = plugins.truncations().get(strategy or _read_strategy(settings))

    def choose(items: IndexedItems, dialect: Dialect, name: str) -> tuple[int, _FittedMessages]:
        # An API that is not known yet is "".
        byte_limit = allowance.byte_limit or dialects.request_limit(known, name)
        available = allowance.available
        if allowance.calibration is not None:
            available = allowance.calibration.compute_available(available)
        message_fit = _MessageFitter(
            CountedMessages(items, dialect, counting),
            dialect,
            truncation,
            start_with_user=start_with_user is not False,  # None meant the rule of the API
            omission_notice=omission_notice,
            result_tokens=result_tokens,
        )
        fixed_tokens, fixed_bytes = sum(fixed.tokens.values()), sum(fixed.bytes.values())
        return byte_limit, message_fit.choose(available - fixed_tokens, byte_limit - fixed_bytes)

    is_known = bool(name) or len(messages) == len(newest)
    try:
        items = messages if is_known else UndetectedMessages(messages, DEFAULT_DIALECT_NAME, dialects)
        byte_limit, chosen = choose(items, dialect, name)
    except DialectDetected as other:
        dialect = dialects.get(other.name)
        byte_limit, chosen = choose(messages, dialect, other.name)
    used_budget = _build_used_budget(allowance, byte_limit, fixed, chosen, counting)
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
    allowance: TokenBudget, byte_limit: int, fixed: FixedCost, chosen: _FittedMessages, counter: TokenCounter
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
        allowance,
        byte_limit=byte_limit,
        used=used,
        bytes=sum(measured.values()),
        estimated=not getattr(counter, "exact", False),
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


def _write_chosen(chosen: _FittedMessages, given: Sequence[T], dialect: Dialect) -> list[T]:
    """Return the chosen messages as the caller's own objects, and changed ones in the caller's format."""
    neutral = bool(given) and isinstance(given[0], Message)
    written: list[Any] = []
    for index, message in chosen.messages:
        if index is not None:
            written.append(given[index])
        else:
            written += [message] if neutral else dialect.write([message])
    return written


class _FittedMessages(NamedTuple):
    """The messages that fit, with their size and the decisions behind the choice.

    Attributes:
        messages: Each with its index in the caller's list; None for a changed or added message.
        tokens: Tokens of all messages.
        bytes: Bytes of all messages in a request body.
        instructions: The part of `tokens` for the instructions at the beginning.
        decisions: What was left out, shortened, masked or repaired.
        findings: The problems that were repaired, or cannot be.
    """

    messages: list[tuple[int | None, Message]]
    tokens: int
    bytes: int
    instructions: int
    decisions: tuple[Decision, ...]
    findings: tuple[Finding, ...]


class _MessageFitter:
    """One list of messages that is fitted into a budget.

    Args:
        window: The list.
        speaking: The dialect of the list.
        truncation: The strategy that selects groups.
        start_with_user: True if the first message kept must be a user message when earlier ones are left out.
        omission_notice: Whether a user message is put in front of a reply that would be the first. Otherwise the
            messages before the next user message are left out too.
        result_tokens: If not everything fits, tool results above this many tokens are shortened before messages are
            left out; None for a quarter of the budget, except in the newest group.
    """

    def __init__(
        self,
        window: CountedMessages,
        speaking: Dialect,
        truncation: TruncationStrategy,
        *,
        start_with_user: bool,
        omission_notice: bool,
        result_tokens: int | None,
    ) -> None:
        self._window = window
        self._speaking = speaking
        self._truncation = truncation
        self._first_role: Role | None = "user" if start_with_user and not omission_notice else None
        self._adds_notice = start_with_user and omission_notice
        self._result_tokens = result_tokens
        self._masked_for_bytes: set[int] = set()
        self._begin = next(self._spoken(), len(window))
        self._pinned = self._find_open_input()

    def choose(self, budget: int, most: int) -> _FittedMessages:
        """Return the messages that fit. Those that must be kept are included even if they do not fit.

        Args:
            budget: Available tokens.
            most: Available bytes.
        """
        selection, chosen = self._choose_tokens(budget)
        if chosen.bytes <= most:
            return chosen
        self._hide_oldest(selection.indices, chosen.bytes - most)
        sizes = self._groups(self._window.bytes)
        smaller = self._select(sizes, most - sum(map(self._window.bytes, range(self._begin))))
        both = to_ranges(index for index in selection.indices if index in smaller)
        return self._mended(both, chosen.instructions)

    def _choose_tokens(self, budget: int) -> tuple[Selection, _FittedMessages]:
        instructions = sum(map(self._window.tokens, range(self._begin)))
        room = budget - instructions
        groups = self._groups(self._window.tokens)
        if not groups.fits(room):
            groups = self._shorten_long_results(groups, room)
        while True:
            selection = self._select(groups, room)
            chosen = self._mended(selection.kept, instructions)
            if chosen.tokens <= budget:
                selection, chosen = self._add_shortened_group(groups, selection, chosen, room, budget)
                return self._replace_notice(groups, selection, chosen, budget)
            if len(selection) <= len(self._select(groups, -1)):
                return selection, self._mended(selection.kept, instructions, with_notice=False)
            room = shrink_budget(room, selection.size, chosen.tokens - instructions, budget - instructions)

    def _shorten_long_results(self, groups: LazyGroups, room: int) -> LazyGroups:
        """Shorten the longest tool results, so that fewer messages are left out; return the groups with their sizes."""
        window, newest = self._window, groups.group(-1)
        if self._result_tokens is not None:
            return self._groups(window.tokens) if window.shorten_results(self._result_tokens) else groups
        limit = max(room // MAX_RESULT_SHARE, MIN_SHORTENED_TOKENS)
        if newest is None or room <= 0 or not window.shorten_results(limit, end=newest.first):
            return groups
        shorter = self._groups(window.tokens)
        if shorter.fits(room) and window.changed:  # then the results can share what is left
            spare = room - shorter.measure([shorter.bounds])
            window.shorten_results(limit + spare // len(window.changed), end=newest.first)
            longer = self._groups(window.tokens)
            if longer.fits(room):
                return longer
            window.shorten_results(limit, end=newest.first)
        return self._groups(window.tokens)

    def _add_shortened_group(
        self, groups: LazyGroups, selection: Selection, chosen: _FittedMessages, room: int, budget: int
    ) -> tuple[Selection, _FittedMessages]:
        """Add the newest group that was left out, if it fits with shortened texts and the strategy chooses it then."""
        spare, dropped = budget - chosen.tokens, selection.dropped
        group = groups.find_before(dropped[-1].end) if dropped else None
        if group is None:
            return selection, chosen
        for _ in range(MAX_SHORTENING_ATTEMPTS):
            if spare < MIN_SHORTENED_TOKENS or not self._window.shorten_together(range(*group), spare):
                break
            groups.measure_again(group)
            longer = self._select(groups, room)
            added = self._mended(longer.kept, chosen.instructions)
            if len(longer) > len(selection) and added.tokens <= budget:
                return longer, added
            self._window.restore(range(*group))
            groups.measure_again(group)
            spare -= added.tokens - budget if added.tokens > budget else spare // 4
        return selection, chosen

    def _replace_notice(
        self, groups: LazyGroups, selection: Selection, chosen: _FittedMessages, budget: int
    ) -> tuple[Selection, _FittedMessages]:
        """Keep the user message before the first reply instead of the notice, if it fits."""
        if self._needs_notice(selection.kept):
            longer = self._select(groups, budget - chosen.instructions)
            if len(longer) > len(selection):
                replaced = self._mended(longer.kept, chosen.instructions)
                if replaced.tokens <= budget:
                    return longer, replaced
        return selection, chosen

    def _hide_oldest(self, places: list[int], over: int) -> None:
        """Replace images and documents by placeholders, oldest first, except in the open input and the newest group."""
        newest = self._groups(self._window.bytes).group(-1)
        end = len(self._window) if newest is None else newest.first
        for place in places:
            if over <= 0 or place >= end:
                break
            if place not in self._pinned and count_media(self._window.sent(place).message):
                before = self._window.bytes(place)
                self._window.hide_media(place)
                self._masked_for_bytes.add(place)
                over -= before - self._window.bytes(place)

    # ---- selection ----------------------------------------------------------------------------------------------

    def _select(self, groups: LazyGroups, budget: int) -> Selection:
        """Return the messages to keep, without the instructions at the beginning."""
        return select(groups, budget, self._truncation, self._pinned, first_role=self._first_role)

    def _groups(self, size: Callable[[int], int]) -> LazyGroups:
        return LazyGroups(self._window.get_given, self._begin, len(self._window), size)

    def _spoken(self) -> Iterator[int]:
        """Yield the indices of all messages but instructions."""
        return (place for place in range(len(self._window)) if self._window.get_given(place).role != "system")

    def _find_open_input(self) -> tuple[int, ...]:
        """Return the index of the user message that has no final reply yet, if there is one."""
        is_reply = False  # True if the next message is the assistant's too, and so belongs to the same reply
        for place in reversed(range(self._begin, len(self._window))):
            message = self._window.get_given(place)
            if message.role == "user" and not message.results:
                return (place,)
            if message.role == "assistant" and not message.calls and not is_reply:
                break
            is_reply = message.role == "assistant"
        return ()

    # ---- repair, sizes and decisions --------------------------------------------------------------------------

    def _mended(self, kept: Sequence[IndexRange], instructions: int, *, with_notice: bool = True) -> _FittedMessages:
        window, rules = self._window, self._speaking.rules
        has_notice = with_notice and self._needs_notice(kept)
        if has_notice and NOTICE_PLACE not in window.changed:
            window.add(NOTICE_PLACE, OMISSION_NOTICE)
        places = [*range(self._begin), *([NOTICE_PLACE] if has_notice else ())]
        for span in kept:
            places += range(*span)
        left_out = tuple(self._left_out(kept, has_notice=has_notice))
        sound = window.sound(places)
        if sound and looks_valid_in_sequence(sound, rules):
            given = [known.message for known in sound]
            tokens, size = sum([known.tokens for known in sound]), sum([known.size for known in sound])
            indices = [None if place in window.changed else place for place in places] if window.changed else places
            decisions = (*left_out, *self._list_changes(places))
            return _FittedMessages(list(zip(indices, given, strict=True)), tokens, size, instructions, decisions, ())
        mended = apply_repair_rules([window.sent(place).message for place in places], rules, listed=True)
        messages: list[tuple[int | None, Message]] = []
        tokens = 0
        for index, message in mended.messages:
            place = None if index is None else places[index]
            tokens += window.size(message) if place is None else window.tokens(place)
            is_given = place is not None and place != NOTICE_PLACE and message is window.get_given(place).message
            messages.append((place if is_given else None, message))
        findings = tuple(
            finding if finding.index is None else replace(finding, index=places[finding.index])
            for finding in mended.findings
        )
        for place, _ in messages:
            if place is not None:  # findings about an unchanged message concern its neighbours
                window.mark_sound(place)
        # The byte count of a message already includes what repair may add to it.
        size, decisions = (
            sum(map(window.bytes, places)),
            (*left_out, *self._list_changes(places), *_list_repairs(findings)),
        )
        return _FittedMessages(messages, tokens, size, instructions, decisions, findings)

    def _needs_notice(self, kept: Sequence[IndexRange]) -> bool:
        """Return True if messages are left out before a message that is not the user's."""
        if not self._adds_notice or not kept or kept[0].first == self._begin:
            return False
        first = self._window.get_given(kept[0].first)
        return first.role != "user" or bool(first.results)

    def _left_out(self, kept: Sequence[IndexRange], *, has_notice: bool) -> Iterator[Decision]:
        """Yield a decision for each gap between the kept messages, and for the notice in front of them."""
        for first, end in find_gaps(IndexRange(self._begin, len(self._window)), kept):
            before = self._window.known(range(first, end))
            yield Decision(
                action="dropped", rule=self._truncation.name, first=first, last=end - 1, tokens_before=before
            )
        if has_notice:
            place, tokens = kept[0].first, self._window.tokens(NOTICE_PLACE)
            yield Decision(action="added", rule=OMISSION_RULE, first=place, last=place, tokens_after=tokens)

    def _list_changes(self, places: list[int]) -> Iterator[Decision]:
        """Yield a decision for each message that is sent otherwise than it was given."""
        window = self._window
        for place in places:
            if place in window.changed and place != NOTICE_PLACE:
                is_hidden = count_media(window.get_given(place).message) > count_media(window.sent(place).message)
                yield Decision(
                    action="masked" if is_hidden else "shortened",
                    rule=REQUEST_BYTES_RULE if place in self._masked_for_bytes else RESULT_TOKENS_RULE,
                    first=place,
                    last=place,
                    tokens_before=window.whole(place),
                    tokens_after=window.tokens(place),
                )


def _list_repairs(findings: tuple[Finding, ...]) -> Iterator[Decision]:
    for finding in findings:
        if finding.code not in UNREPAIRED_CODES:
            place = max(finding.index or 0, 0)
            yield Decision(action="repaired", rule=finding.code, first=place, last=place)
