"""A dialect made of its functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.dialects.outline import Outline
    from nexus_core.values.api import ApiRules, Marks
    from nexus_core.values.conversation import Conversation, Reply, Tool
    from nexus_core.values.message import Message


class WriteRequest(Protocol):
    """Writes a whole request, as a `Dialect` does."""

    def __call__(self, conversation: Conversation, marks: Marks | None = None) -> dict[str, Any]:
        """The arguments of the SDK's call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDialect:
    """The dialect of one API: its rules, and how its shapes are read and written.

    Attributes:
        rules: What the API accepts; its name is the dialect's.
        recognises, read, write, read_request, write_request, read_reply, read_tools, write_tools: As a `Dialect` has
            them.
        outline: Returns what is in an element of the plain shape of the API, without reading it, so that `check` and
            `repair` are quick about it; None if every element has to be read.
    """

    rules: ApiRules
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[object], Message]
    write: Callable[[Iterable[Message]], list[dict[str, Any]]]
    read_request: Callable[[object], Conversation]
    write_request: WriteRequest
    read_reply: Callable[[object], Reply]
    read_tools: Callable[[Iterable[object]], tuple[Tool, ...]]
    write_tools: Callable[[Sequence[Tool]], list[dict[str, Any]]]
    outline: Callable[[object], Outline | None] | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.rules.name
