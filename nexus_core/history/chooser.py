"""Choice of the messages that fit a budget and are valid for an API."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.counted_messages import MIN_SHORTENED_TOKENS
from nexus_core.history.groups import (
    IndexRange,
    LazyGroups,
    find_gaps,
    to_ranges,
)
from nexus_core.history.repair.findings import UNREPAIRED_CODES
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.history.repair.validity import looks_valid_in_sequence
from nexus_core.history.select import select, shrink_budget
from nexus_core.history.shorten import REQUEST_BYTES_RULE, count_media
from nexus_core.types.budget import Decision
from nexus_core.types.messages import Message, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.history.counted_messages import CountedMessages
    from nexus_core.history.select import Selection
    from nexus_core.types.api import Dialect
    from nexus_core.types.budget import TruncationStrategy
    from nexus_core.types.messages import Role
    from nexus_core.types.plugins import Finding


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


class ChosenMessages(NamedTuple):
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


class MessageChooser:
    """Selection of the messages of one list that fit a budget.

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

    def choose(self, budget: int, most: int) -> ChosenMessages:
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

    def _choose_tokens(self, budget: int) -> tuple[Selection, ChosenMessages]:
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
        self, groups: LazyGroups, selection: Selection, chosen: ChosenMessages, room: int, budget: int
    ) -> tuple[Selection, ChosenMessages]:
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
        self, groups: LazyGroups, selection: Selection, chosen: ChosenMessages, budget: int
    ) -> tuple[Selection, ChosenMessages]:
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
        return LazyGroups(self._window.given, self._begin, len(self._window), size)

    def _spoken(self) -> Iterator[int]:
        """Yield the indices of all messages but instructions."""
        return (place for place in range(len(self._window)) if self._window.given(place).role != "system")

    def _find_open_input(self) -> tuple[int, ...]:
        """Return the index of the user message that has no final reply yet, if there is one."""
        is_reply = False  # True if the next message is the assistant's too, and so belongs to the same reply
        for place in reversed(range(self._begin, len(self._window))):
            message = self._window.given(place)
            if message.role == "user" and not message.results:
                return (place,)
            if message.role == "assistant" and not message.calls and not is_reply:
                break
            is_reply = message.role == "assistant"
        return ()

    # ---- repair, sizes and decisions --------------------------------------------------------------------------

    def _mended(self, kept: Sequence[IndexRange], instructions: int, *, with_notice: bool = True) -> ChosenMessages:
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
            return ChosenMessages(list(zip(indices, given, strict=True)), tokens, size, instructions, decisions, ())
        mended = apply_repair_rules([window.sent(place).message for place in places], rules, listed=True)
        messages: list[tuple[int | None, Message]] = []
        tokens = 0
        for index, message in mended.messages:
            place = None if index is None else places[index]
            tokens += window.size(message) if place is None else window.tokens(place)
            is_given = place is not None and place != NOTICE_PLACE and message is window.given(place).message
            messages.append((place if is_given else None, message))
        findings = tuple(
            finding if finding.index is None else replace(finding, index=places[finding.index])
            for finding in mended.findings
        )
        for place, _ in messages:
            if place is not None:  # findings about an unchanged message concern its neighbours
                window.note_sound(place)
        # The byte count of a message already includes what repair may add to it.
        size, decisions = (
            sum(map(window.bytes, places)),
            (*left_out, *self._list_changes(places), *_list_repairs(findings)),
        )
        return ChosenMessages(messages, tokens, size, instructions, decisions, findings)

    def _needs_notice(self, kept: Sequence[IndexRange]) -> bool:
        """Return True if messages are left out before a message that is not the user's."""
        if not self._adds_notice or not kept or kept[0].first == self._begin:
            return False
        first = self._window.given(kept[0].first)
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
                is_hidden = count_media(window.given(place).message) > count_media(window.sent(place).message)
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
