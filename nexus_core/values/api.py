"""What an API accepts, and the dialect that speaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from nexus_core.values.conversation import Conversation, Reply, Tool
    from nexus_core.values.message import Message, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRules:
    """What makes an API refuse a list of messages; `repair` and `check` go by nothing else.

    Attributes:
        name: The dialect's name.
        system: Whether instructions are a `field` beside the messages, `first` among them, or allowed `anywhere`.
        first: Who may speak first, instructions aside.
        last: Who may have the last word.
        results: Whether each result is a message of its own (`each`), or all results of a message's calls stand in the
            next message (`together`), before anything else in it.
        call_ids: Whether calls and results are matched by id; otherwise by order and name.
        unique_ids: Whether an id may occur only once in the whole list.
        id_pattern: What an id must look like, as a regular expression; "" for anything that is not empty.
        name_pattern: What the name of a tool must look like.
        blank_text: Whether a text may be empty or all blanks.
        empty_message: Whether a message may say nothing at all.
        result_names: Whether a result must repeat the tool's name.
        signed_reasoning: Whether reasoning needs the provider's own seal.
        reasoning_keeps_next: Whether reasoning must be followed by what it led to.
        object_arguments: Whether arguments must be a JSON object rather than text.
        alternates: Whether user and assistant must take turns strictly; where they need not, neighbours are merged.
    """

    name: str
    system: Literal["field", "first", "anywhere"] = "anywhere"
    first: frozenset[Role] = frozenset({"user", "assistant"})
    last: frozenset[Role] = frozenset({"user", "assistant", "tool"})
    results: Literal["each", "together"] = "each"
    call_ids: bool = True
    unique_ids: bool = False
    id_pattern: str = ""
    name_pattern: str = ""
    blank_text: bool = True
    empty_message: bool = False
    result_names: bool = False
    signed_reasoning: bool = False
    reasoning_keeps_next: bool = False
    object_arguments: bool = False
    alternates: bool = False


class Dialect(Protocol):
    """Reads and writes one API's shape. What it reads and writes back is equal to what it read."""

    name: str
    rules: ApiRules

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Whether one element of a list is surely of this shape and of no other's."""

    def read(self, item: object) -> Message:
        """One element of the API's list, a dict or an object of the API's SDK.

        Raises:
            DialectError: It is nothing the API knows; says what and where inside it.
        """

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """The API's list: one element for each message of its own, as many as it takes for others.

        Instructions are left out where they are a field beside the list.
        """

    def read_request(self, body: object) -> Conversation:
        """A whole request: the arguments of the SDK's call."""

    def write_request(self, conversation: Conversation) -> dict[str, Any]:
        """The arguments of the SDK's call."""

    def read_reply(self, reply: object) -> Reply:
        """A response: a dict, an object of the SDK, or the list of what a stream brought."""

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Definitions of tools."""

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Definitions of tools."""
