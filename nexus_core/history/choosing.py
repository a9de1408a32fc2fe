"""Which messages of a list stay, so that they fit and are valid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.asking import NEWEST, ask_truncation, smaller_room
from nexus_core.history.findings import UNREPAIRED
from nexus_core.history.groups import is_input
from nexus_core.history.hiding import RULE, count_media
from nexus_core.history.lazy import LazyGroups, Span, joined
from nexus_core.history.mending.steps import mend
from nexus_core.history.soundness import is_surely_sound
from nexus_core.values.budget import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nexus_core.history.window import Window
    from nexus_core.values.api import Dialect
    from nexus_core.values.budget import Truncation
    from nexus_core.values.finding import Finding
    from nexus_core.values.message import Message


class Chosen(NamedTuple):
    """What stays.

    Attributes:
        messages: Each with its place in the caller's list; None for one that was changed or made.
        tokens: What they take.
        bytes: How many bytes they have in a request.
        instructions: What of that the instructions at the beginning take.
        decisions: What was done.
        findings: What was wrong.
    """

    messages: list[tuple[int | None, Message]]
    tokens: int
    bytes: int
    instructions: int
    decisions: tuple[Decision, ...]
    findings: tuple[Finding, ...]


class Chooser:
    """Chooses from one list.

    Args:
        window: The list.
        speaking: The dialect it is written in.
        truncation: Says which groups stay.
        start_with_user: Whether the first message kept must be the user's, if something is left out before it.
        result_tokens: Where not all fits, results above this are shortened before anything is left out.
    """

    def __init__(
        self,
        window: Window,
        speaking: Dialect,
        truncation: Truncation,
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

    def choose(self, budget: int, most: int) -> Chosen:
        """What stays within a budget; what must stay is there even when it does not fit.

        Args:
            budget: The tokens there are.
            most: The bytes there are.
        """
        places, chosen = self._choose_tokens(budget)
        if chosen.bytes <= most:
            return chosen
        self._hide_oldest(places, chosen.bytes - most)
        sizes = self._groups(self._window.bytes)
        kept = self._places(sizes, most - sum(map(self._window.bytes, range(self._begin))))
        return self._mended(sorted(set(places) & set(kept)), chosen.instructions)

    def _choose_tokens(self, budget: int) -> tuple[list[int], Chosen]:
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
            room = smaller_room(room, self._taken(places), chosen.tokens - instructions, budget - instructions)

    def _hide_oldest(self, places: list[int], over: int) -> None:
        """Tell pictures and documents in words, oldest first; not those of the open question and the newest group."""
        newest = self._groups(self._window.bytes).group(-1)
        end = len(self._window) if newest is None else newest.first
        for place in places:
            if over <= 0 or place >= end:
                break
            if place != self._input and count_media(self._window.message(place)):
                before = self._window.bytes(place)
                self._window.hide_media(place)
                over -= before - self._window.bytes(place)

    # ---- which places -----------------------------------------------------------------------------------------

    def _places(self, groups: LazyGroups, room: int) -> list[int]:
        """The places that stay, instructions aside."""
        if self._all_fits(groups, room):
            return list(range(self._begin, len(self._window)))
        spans = self._spans(groups, room)
        if self._input is not None and not any(span.first <= self._input < span.end for span in spans):
            spans = [*self._spans(groups, room - groups.size(self._input)), Span(self._input, self._input + 1)]
        return self._begun([place for span in joined(spans) for place in range(*span)])

    def _spans(self, groups: LazyGroups, room: int) -> list[Span]:
        # Without room for anything, the newest group still goes.
        return groups.spans(ask_truncation(self._truncation, groups, room) if room > 0 else [NEWEST])

    def _begun(self, places: list[int]) -> list[int]:
        """Without what stands before the first word of the user, if that is wanted and there is one."""
        if not self._start_with_user or places[:1] == [self._begin]:
            return places
        first = next((at for at, place in enumerate(places) if is_input(self._window.given(place))), 0)
        return places[first:]

    def _all_fits(self, groups: LazyGroups, room: int) -> bool:
        return groups.group(-groups.newest(room, at_least=0) - 1) is None

    def _groups(self, size: Callable[[int], int]) -> LazyGroups:
        return LazyGroups(self._window.given, self._begin, len(self._window), size)

    def _spoken(self) -> Iterator[int]:
        """Where somebody speaks, instructions at the beginning aside."""
        return (place for place in range(len(self._window)) if self._window.given(place).role != "system")

    def _open_input(self) -> int | None:
        """The place of what the user said that is not answered yet."""
        is_reply = False  # whether what follows is the assistant's too, and so of the same reply
        for place in reversed(range(self._begin, len(self._window))):
            message = self._window.given(place)
            if is_input(message):
                return place
            if message.role == "assistant" and not message.tool_calls and not is_reply:
                return None
            is_reply = message.role == "assistant"
        return None

    # ---- what becomes of them ---------------------------------------------------------------------------------

    def _mended(self, kept: list[int], instructions: int) -> Chosen:
        window, rules = self._window, self._speaking.rules
        places = [*range(self._begin), *kept]
        sound = window.sound(places, rules)
        if sound and is_surely_sound(given := [known.message for known in sound], rules):
            tokens, size = sum([known.tokens for known in sound]), sum([known.size for known in sound])
            decisions = tuple(self._left_out(kept))
            return Chosen(list(zip(places, given, strict=True)), tokens, size, instructions, decisions, ())
        mended = mend([window.message(place) for place in places], rules, listed=True)
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
            if place is not None:  # what is found about one that is unchanged is about those around it
                window.note_sound(place, rules.name)
        # What repair adds is counted with what it is added to.
        size, decisions = sum(map(window.bytes, places)), (*self._left_out(kept), *self._done(kept, findings))
        return Chosen(messages, tokens, size, instructions, decisions, findings)

    def _left_out(self, kept: list[int]) -> Iterator[Decision]:
        """A decision for each gap between what stays."""
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
                    rule=RULE if is_hidden else "result_tokens",
                    first=place,
                    last=place,
                    tokens_before=window.whole(place),
                    tokens_after=window.tokens(place),
                )
        for finding in findings:
            if finding.code in UNREPAIRED:
                continue
            place = finding.index or 0
            yield Decision(action="repaired", rule=finding.code, first=place, last=place)

    def _taken(self, places: range | list[int]) -> int:
        return sum(map(self._window.tokens, places))
