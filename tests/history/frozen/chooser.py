"""Choice of the messages that fit a budget and are valid for an API."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.media_placeholders import REQUEST_BYTES_RULE, count_media
from nexus_core.history.repair.findings import UNREPAIRED_CODES
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.history.repair.validity import looks_valid_together
from nexus_core.types.budget import Decision
from tests.history.frozen.groups import IndexRange, LazyGroups, is_user_input, join_ranges
from tests.history.frozen.select import NEWEST_GROUP, call_strategy, shrink_budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nexus_core.history.counted_messages import CountedMessages
    from nexus_core.types.api import Dialect
    from nexus_core.types.budget import TruncationStrategy
    from nexus_core.types.messages import Message
    from nexus_core.types.plugins import Finding


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
        result_tokens: If not everything fits, tool results above this many tokens are shortened before messages are
            left out; None to shorten none.
    """

    def __init__(
        self,
        window: CountedMessages,
        speaking: Dialect,
        truncation: TruncationStrategy,
        *,
        start_with_user: bool,
        result_tokens: int | None,
    ) -> None:
        self._window = window
        self._speaking = speaking
        self._truncation = truncation
        self._start_with_user = start_with_user
        self._result_tokens = result_tokens
        self._begin = next(self._spoken(), len(window))
        self._input = self._open_input()

    def choose(self, budget: int, most: int) -> ChosenMessages:
        """Return the messages that fit. Those that must be kept are included even if they do not fit.

        Args:
            budget: Available tokens.
            most: Available bytes.
        """
        places, chosen = self._choose_tokens(budget)
        if chosen.bytes <= most:
            return chosen
        self._hide_oldest(places, chosen.bytes - most)
        sizes = self._groups(self._window.bytes)
        kept = self._places(sizes, most - sum(map(self._window.bytes, range(self._begin))))
        return self._mended(sorted(set(places) & set(kept)), chosen.instructions)

    def _choose_tokens(self, budget: int) -> tuple[list[int], ChosenMessages]:
        instructions = self._taken(range(self._begin))
        room = budget - instructions
        groups = self._groups(self._window.tokens)
        if not self._all_fits(groups, room) and self._result_tokens is not None:
            self._window.shorten_results(self._result_tokens)
            groups = self._groups(self._window.tokens)
        while True:
            places = self._places(groups, room)
            chosen = self._mended(places, instructions)
            if chosen.tokens <= budget or len(places) <= len(self._places(groups, -1)):
                return places, chosen
            room = shrink_budget(room, self._taken(places), chosen.tokens - instructions, budget - instructions)

    def _hide_oldest(self, places: list[int], over: int) -> None:
        """Replace images and documents by placeholders, oldest first, except in the open input and the newest group."""
        newest = self._groups(self._window.bytes).group(-1)
        end = len(self._window) if newest is None else newest.first
        for place in places:
            if over <= 0 or place >= end:
                break
            if place != self._input and count_media(self._window.message(place)):
                before = self._window.bytes(place)
                self._window.hide_media(place)
                over -= before - self._window.bytes(place)

    # ---- selection of indices ---------------------------------------------------------------------------------

    def _places(self, groups: LazyGroups, room: int) -> list[int]:
        """Return the indices of the messages to keep, without the instructions at the beginning."""
        if self._all_fits(groups, room):
            return list(range(self._begin, len(self._window)))
        spans = self._spans(groups, room)
        if self._input is not None and not any(span.first <= self._input < span.end for span in spans):
            spans = [*self._spans(groups, room - groups.size(self._input)), IndexRange(self._input, self._input + 1)]
        return self._begun([place for span in join_ranges(spans) for place in range(*span)])

    def _spans(self, groups: LazyGroups, room: int) -> list[IndexRange]:
        # The newest group is kept even if nothing fits.
        return groups.spans(call_strategy(self._truncation, groups, room) if room > 0 else [NEWEST_GROUP])

    def _begun(self, places: list[int]) -> list[int]:
        """Return the indices from the first user message on, if `start_with_user` is set and there is one."""
        if not self._start_with_user or places[:1] == [self._begin]:
            return places
        first = next((at for at, place in enumerate(places) if is_user_input(self._window.given(place))), 0)
        return places[first:]

    def _all_fits(self, groups: LazyGroups, room: int) -> bool:
        return groups.group(-groups.newest(room, at_least=0) - 1) is None

    def _groups(self, size: Callable[[int], int]) -> LazyGroups:
        return LazyGroups(self._window.given, self._begin, len(self._window), size)

    def _spoken(self) -> Iterator[int]:
        """Yield the indices of all messages but instructions."""
        return (place for place in range(len(self._window)) if self._window.given(place).role != "system")

    def _open_input(self) -> int | None:
        """Return the index of the user message that has no final reply yet, or None."""
        is_reply = False  # True if the next message is the assistant's too, and so belongs to the same reply
        for place in reversed(range(self._begin, len(self._window))):
            message = self._window.given(place)
            if is_user_input(message):
                return place
            if message.role == "assistant" and not message.tool_calls and not is_reply:
                return None
            is_reply = message.role == "assistant"
        return None

    # ---- repair, sizes and decisions --------------------------------------------------------------------------

    def _mended(self, kept: list[int], instructions: int) -> ChosenMessages:
        window, rules = self._window, self._speaking.rules
        places = [*range(self._begin), *kept]
        sound = window.sound(places, rules)
        if sound and looks_valid_together(given := [known.message for known in sound], rules):
            tokens, size = sum([known.tokens for known in sound]), sum([known.size for known in sound])
            decisions = tuple(self._left_out(kept))
            return ChosenMessages(list(zip(places, given, strict=True)), tokens, size, instructions, decisions, ())
        mended = apply_repair_rules([window.message(place) for place in places], rules, listed=True)
        messages: list[tuple[int | None, Message]] = []
        tokens = 0
        for index, message in mended.messages:
            place = None if index is None else places[index]
            tokens += window.size(message) if place is None else window.tokens(place)
            is_given = place is not None and message is window.given(place)
            messages.append((place if is_given else None, message))
        findings = tuple(
            finding if finding.index is None else replace(finding, index=places[finding.index])
            for finding in mended.findings
        )
        for place, _ in messages:
            if place is not None:  # findings about an unchanged message concern its neighbours
                window.note_sound(place, rules.name)
        # The byte count of a message already includes what repair may add to it.
        size, decisions = sum(map(window.bytes, places)), (*self._left_out(kept), *self._done(kept, findings))
        return ChosenMessages(messages, tokens, size, instructions, decisions, findings)

    def _left_out(self, kept: list[int]) -> Iterator[Decision]:
        """Yield a decision for each gap between the kept messages."""
        expected = self._begin
        for place in [*kept, len(self._window)]:
            if place > expected:
                before = self._window.known(range(expected, place))
                yield Decision(
                    action="dropped", rule=self._truncation.name, first=expected, last=place - 1, tokens_before=before
                )
            expected = place + 1

    def _done(self, kept: list[int], findings: tuple[Finding, ...]) -> Iterator[Decision]:
        window = self._window
        for place in kept:
            if window.message(place) is not window.given(place):
                is_hidden = count_media(window.given(place)) > count_media(window.message(place))
                yield Decision(
                    action="masked" if is_hidden else "shortened",
                    rule=REQUEST_BYTES_RULE if is_hidden else "result_tokens",
                    first=place,
                    last=place,
                    tokens_before=window.whole(place),
                    tokens_after=window.tokens(place),
                )
        for finding in findings:
            if finding.code in UNREPAIRED_CODES:
                continue
            place = finding.index or 0
            yield Decision(action="repaired", rule=finding.code, first=place, last=place)

    def _taken(self, places: range | list[int]) -> int:
        return sum(map(self._window.tokens, places))
