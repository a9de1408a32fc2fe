"""Mutable drafts of the messages under repair, and the findings so far."""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, cast

from nexus_core.history.repair.findings import FINDING_CODES
from nexus_core.types.messages import ToolCall, ToolResult
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.types.api import ApiRules
    from nexus_core.types.messages import Message, Part, ResultPart, Role

    PartChange = Callable[[Part, Role], Part | None]


class MessageDraft:
    """A message under repair.

    Attributes:
        index: The index of the message in the list that was given, or of the message that it was added for.
        message: The original message.
        role: The current role.
        parts: The current parts. Rules replace parts and never modify one.
        is_added: True if repair added or moved the message.
    """

    __slots__ = ("index", "is_added", "message", "parts", "role")

    def __init__(self, index: int, message: Message, *, is_added: bool = False) -> None:
        self.index = index
        self.message = message
        self.role: Role = message.role
        self.parts: list[Part] = list(message.parts)
        self.is_added = is_added

    @property
    def has_calls(self) -> bool:
        """True if it has tool calls."""
        return any(isinstance(part, ToolCall) for part in self.parts)

    @property
    def results(self) -> list[ToolResult]:
        """Its tool results."""
        return [part for part in self.parts if isinstance(part, ToolResult)]

    @property
    def others(self) -> list[Part]:
        """All parts but tool results."""
        return [part for part in self.parts if not isinstance(part, ToolResult)]

    def holds(self, *kinds: type) -> bool:
        """Return True if a part is of one of these types; cheaper than `rewrite` for most messages."""
        for part in self.parts:  # noqa: SIM110 - `any` with a generator is three times slower
            if type(part) in kinds:
                return True
        return False

    def copy(self, parts: Sequence[Part], role: Role) -> MessageDraft:
        """Return a draft of the same message with other parts and role."""
        draft = MessageDraft(self.index, self.message, is_added=self.is_added)
        draft.parts, draft.role = list(parts), role
        return draft

    def rewrite(self, change: PartChange) -> bool:
        """Apply a function to all parts, those inside results first, and return True if any of them changed.

        Args:
            change: Gets a part and its role (`tool` inside a result); returns the part, another one, or None to drop
                it.
        """
        parts = [new for part in self.parts if (new := change(_rewrite_result(part, change), self.role)) is not None]
        if _are_same(parts, self.parts):
            return False
        self.parts = parts
        return True

    def build_message(self) -> Message:
        """Return the message; the original object if no rule changed it."""
        given = self.message
        if self.role == given.role and _are_same(self.parts, given.parts):
            return given
        return replace(given, role=self.role, parts=tuple(self.parts))


class RepairWork:
    """The state of a repair: drafts, rules and findings.

    Args:
        messages: The list that was given.
        rules: The rules of the API.
        listed: True if the list is the API's own, which may not contain instructions that belong in a field.
        marked: The lifetimes of cache breakpoints before the messages.
    """

    def __init__(
        self, messages: Sequence[Message], rules: ApiRules, *, listed: bool, marked: Sequence[str] = ()
    ) -> None:
        self.drafts = [MessageDraft(index, message) for index, message in enumerate(messages)]
        self.rules = rules
        self.listed = listed
        self.marked = marked
        self.findings: list[Finding] = []

    def add_finding(self, code: str, draft: MessageDraft, what: str) -> None:
        """Record a problem that is repaired."""
        self.findings.append(Finding(FINDING_CODES[code].code, what, index=draft.index))

    def is_native(self, draft: MessageDraft) -> bool:
        """Return True if a message was read from this API, and so will be written as it is.

        Other messages are converted, so repair leaves to the conversion what it does anyway.
        """
        return draft.message.api == self.rules.name


def _rewrite_result(part: Part, change: PartChange) -> Part:
    if not isinstance(part, ToolResult):
        return part
    inner = [new for each in part.parts if (new := change(each, "tool")) is not None]
    # The cast is safe: changes replace a part inside a result only by one that is allowed there.
    return part if _are_same(inner, part.parts) else replace(part, parts=cast("tuple[ResultPart, ...]", tuple(inner)))


def _are_same(mine: Sequence[object], theirs: Sequence[object]) -> bool:
    return len(mine) == len(theirs) and all(map(is_, mine, theirs))
