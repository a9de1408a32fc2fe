"""What the steps of repair work on."""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, cast

from nexus_core.history.findings import CODES
from nexus_core.values.finding import Finding
from nexus_core.values.parts import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.values.api import ApiRules
    from nexus_core.values.message import Message, Role
    from nexus_core.values.parts import Part, ResultPart

    Change = Callable[[Part, Role], Part | None]


class Draft:
    """A message on its way through the steps.

    Attributes:
        index: The place of the message in the list that was given, or of the one it was made for.
        message: The message as it was given or made.
        role: Who speaks, as of now.
        parts: What is said, as of now. Steps replace parts; they never change one.
        placed: Whether repair put it there.
    """

    __slots__ = ("index", "message", "parts", "placed", "role")

    def __init__(self, index: int, message: Message, *, placed: bool = False) -> None:
        self.index = index
        self.message = message
        self.role: Role = message.role
        self.parts: list[Part] = list(message.parts)
        self.placed = placed

    @property
    def has_calls(self) -> bool:
        """Whether it asks for tools."""
        return any(isinstance(part, ToolCall) for part in self.parts)

    @property
    def results(self) -> list[ToolResult]:
        """The results it brings."""
        return [part for part in self.parts if isinstance(part, ToolResult)]

    @property
    def others(self) -> list[Part]:
        """Everything but results."""
        return [part for part in self.parts if not isinstance(part, ToolResult)]

    def holds(self, *kinds: type) -> bool:
        """True if a part is of one of these types; cheaper than to rewrite every part of every message."""
        for part in self.parts:  # noqa: SIM110 - `any` with a generator takes three times as long
            if type(part) in kinds:
                return True
        return False

    def copy(self, parts: Sequence[Part], role: Role) -> Draft:
        """A draft of the same message with other parts."""
        draft = Draft(self.index, self.message, placed=self.placed)
        draft.parts, draft.role = list(parts), role
        return draft

    def rewrite(self, change: Change) -> bool:
        """Change parts, those inside results first, and say whether any of them did change.

        Args:
            change: Gets a part and whose it is (the tool's, inside a result); returns the part, another one, or
                None to leave it out.
        """
        parts = [new for part in self.parts if (new := change(_rewritten(part, change), self.role)) is not None]
        if _are_same(parts, self.parts):
            return False
        self.parts = parts
        return True

    def finished(self) -> Message:
        """The message: the very same if no step changed it."""
        given = self.message
        if self.role == given.role and _are_same(self.parts, given.parts):
            return given
        return replace(given, role=self.role, parts=tuple(self.parts))


class Work:
    """Drafts, rules, findings.

    Args:
        messages: The list that was given.
        rules: What the API accepts.
        listed: Whether the list is the API's own, in which instructions that are a field have no place.
        marked: The lifetimes of marks for the cache that stand before the messages.
    """

    def __init__(
        self, messages: Sequence[Message], rules: ApiRules, *, listed: bool, marked: Sequence[str] = ()
    ) -> None:
        self.drafts = [Draft(index, message) for index, message in enumerate(messages)]
        self.rules = rules
        self.listed = listed
        self.marked = marked
        self.findings: list[Finding] = []

    def note(self, code: str, draft: Draft, what: str) -> None:
        """Remember something that was found and put right."""
        self.findings.append(Finding(CODES[code].code, what, index=draft.index))

    def owns(self, draft: Draft) -> bool:
        """Whether a message is the API's own, and so will be written as it stands.

        Others are converted, and what the conversion does anyway need not be repaired.
        """
        return draft.message.api == self.rules.name


def _rewritten(part: Part, change: Change) -> Part:
    if not isinstance(part, ToolResult):
        return part
    inner = [new for each in part.parts if (new := change(each, "tool")) is not None]
    # What stands inside a result is replaced by what may stand there.
    return part if _are_same(inner, part.parts) else replace(part, parts=cast("tuple[ResultPart, ...]", tuple(inner)))


def _are_same(mine: Sequence[object], theirs: Sequence[object]) -> bool:
    return len(mine) == len(theirs) and all(map(is_, mine, theirs))
