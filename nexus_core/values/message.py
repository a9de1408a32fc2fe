"""One message of a conversation, in no API's shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.values.checks import require_one_of, require_type
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.parts import PARTS, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.parts import JSON, Part

Role = Literal["system", "user", "assistant", "tool"]
"""Who speaks. A result of a tool is the tool's own word, in whichever message an API puts it."""

ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Message:
    """One element of a conversation, as long as one element of the API's own list it was read from.

    Attributes:
        role: Who speaks. Messages that hold nothing but results of tools have the role `tool`.
        parts: What is said, in order. A string is taken as one text.
        name: Who of several speakers with one role, where an API says so.
        api: The dialect it was read by, "" for one made here.
        extra: Fields that Nexus has no word for, and notes (`_` in front) on how the dialect wrote it where it had a
            choice; both go back only to that dialect.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str = ""
    api: str = ""
    extra: JSON = field(default_factory=dict)

    if TYPE_CHECKING:  # what may be given is more than what is kept

        def __init__(
            self, role: Role, parts: str | Iterable[Part] = (), name: str = "", api: str = "", extra: JSON = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            require_one_of(self.role, "Message.role", ROLES)
        given: object = self.parts
        if type(given) is not tuple:
            object.__setattr__(self, "parts", (Text(given),) if isinstance(given, str) else tuple(self.parts))
        for part in self.parts:
            if type(part) not in PARTS:
                raise ValueError(f"Message.parts must hold parts such as Text or ToolCall, not {type(part).__name__}")
        if type(self.name) is not str or type(self.api) is not str or type(self.extra) is not dict:
            require_type(self.name, "Message.name", str)
            require_type(self.api, "Message.api", str)
            require_type(self.extra, "Message.extra", Mapping)

    @property
    def content(self) -> str:
        """Its words, without media, reasoning and tools."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools it asks for."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results it brings."""
        return tuple([part for part in self.parts if isinstance(part, ToolResult)])
