"""What was said, put into words with all that belongs to the moment; done once for a turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.asking_renderer import write_current
from nexus_core.assembly.cutting import fit
from nexus_core.assembly.memories import (
    MEMORY_TOKENS,
    choose_memories,
    is_optional,
    weigh_section,
    without_memories,
)
from nexus_core.assembly.placements import mention
from nexus_core.session.asking.inputs import as_kept, message_context
from nexus_core.session.place import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.assembly.cut import Cut
    from nexus_core.assembly.cutting import Kept
    from nexus_core.assembly.fitting import Fitting
    from nexus_core.assembly.memories import Told
    from nexus_core.assembly.placements import Mention
    from nexus_core.assembly.sent import Sent
    from nexus_core.assembly.static_context import StaticContext
    from nexus_core.session.asking.window import Window
    from nexus_core.types.messages import JSON, Message
    from nexus_core.types.prompt import Section
    from nexus_core.types.request import Request


class Worded(NamedTuple):
    """A message as it is sent.

    Attributes:
        message: The message.
        mentions: The sections it tells, and those it leaves out.
        context: What it was put together from, as it is written down.
        plain: The same without memories, which are told only where nothing else needs the room.
    """

    message: Message
    mentions: list[Mention]
    context: JSON
    plain: Sent


class Wording:
    """Puts what was said into words.

    Args:
        request: All circumstances of the turn.
        standing: What stands around the session.
        sections: What is to be told besides, in its order.
        window: The model's window.
        now: The time, in milliseconds since 1970.
    """

    def __init__(
        self, request: Request, standing: StaticContext, sections: Sequence[Section], window: Window, now: int
    ) -> None:
        self._request = request
        self._standing = standing
        self._sections = sections
        self._window = window
        self._now = now

    def fit(self, said: Sent, before: Sequence[Sent], cut: Cut | None, fitting: Fitting) -> tuple[Kept, Worded]:
        """The messages that stay, with the one that was said in words: memories only where nothing else needs the room.

        Args:
            said: What was said.
            before: The history.
            cut: Where it was cut before.
            fitting: What there is room for.
        """
        plain = self._said(said, without_memories(self._sections))
        kept = fit([*before, plain], cut, fitting)
        limit = number(self._standing.settings, "budget.memory", MEMORY_TOKENS)
        left, spare = fitting.room - kept.tokens, fitting.bytes - kept.bytes
        room = min(limit, left)
        told = choose_memories(self._sections, room, self._window.scales.counter.count)
        worded = self._said(said, told.sections)
        # A renderer may have put more around them.
        while worded.tokens - plain.tokens > max(left, 0) or worded.size - plain.size > max(spare, 0):
            told = self._one_less(told)
            worded = self._said(said, told.sections)
        rule = "budget.memory" if room == limit else "room"
        mentions = [*map(self._mention, told.sections), *(self._mention(each, rule) for each in told.left_out)]
        hooks = sum(each.source is not None and bool(each.source.plugin) for each in told.sections)
        context = message_context(self._event, hooks=hooks, now=self._now)
        sent = [worded if each is plain else each for each in kept.sent]
        return kept._replace(sent=sent), Worded(worded.message, mentions, context, plain)

    def _one_less(self, told: Told) -> Told:
        """What is told without the memory that goes first."""
        count = self._window.scales.counter.count
        taken = sum(weigh_section(each, count) for each in told.sections if is_optional(each))
        return choose_memories(self._sections, taken - 1, count)

    @property
    def _event(self) -> dict[str, Any]:
        request = self._request
        return {
            "platform": request.platform or None,
            "hook_data": request.hook_data,
            "attachments": list(request.attachments),
        }

    def _said(self, said: Sent, sections: Sequence[Section]) -> Sent:
        request = self._request
        if not self._standing.role.sees_platform:
            request = replace(request, platform="", platform_actions=())
        message = as_kept(write_current(self._standing.renderer, request, sections, self._now))
        return self._window.weigh_event(said._replace(message=message, said=said.message))

    def _mention(self, section: Section, refusal: str = "") -> Mention:
        return mention(section, weigh_section(section, self._window.scales.counter.count), refusal)
