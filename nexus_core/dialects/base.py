"""Building blocks of dialects: `ApiDialect` and message outlines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from nexus_core.types.base import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.types.api import ApiRules, CacheMarkers
    from nexus_core.types.messages import Conversation, Message, Reply, Role, Tool

if TYPE_CHECKING:
    BlockAdder = Callable[["Outline", dict[str, Any]], bool]


class Outline:
    """Texts, tool calls and tool results of a message in its API's plain shape.

    A dialect returns one only if reading the element gives a message with exactly these parts and no other field.
    Rarer shapes are read in full. The `add_…` methods return False if a value has the wrong type.

    Attributes:
        role: The role of the message that `read` would return.
        texts: Every text in it, including those of tool results and signed reasoning.
        calls: Id, tool name and arguments of each tool call. Arguments are an object or JSON text; the id is "" if the
            API has none.
        results: Call id and tool name of each tool result; the name is "" if the API does not repeat it.
    """

    __slots__ = ("calls", "results", "role", "texts")

    def __init__(self, role: Role) -> None:
        self.role = role
        self.texts: list[str] = []
        self.calls: list[tuple[str, str, Any]] = []
        self.results: list[tuple[str, str]] = []

    def add_text(self, text: object) -> bool:
        """Add a text."""
        if type(text) is not str:
            return False
        self.texts.append(text)
        return True

    def add_texts(self, blocks: object, kind: str) -> bool:
        """Add a text, or the texts of blocks `{"type": kind, "text": …}`."""
        if type(blocks) is str:
            self.texts.append(blocks)
            return True
        if type(blocks) is not list or not blocks:
            return False
        for block in blocks:
            is_plain = type(block) is dict and len(block) == 2 and block.get("type") == kind  # noqa: PLR2004 - these two
            if not is_plain or not self.add_text(block.get("text")):
                return False
        return True

    def add_call(self, call_id: object, name: object, arguments: object, kind: type) -> bool:
        """Add a tool call whose arguments must have the type `kind`."""
        if type(call_id) is not str or type(name) is not str or type(arguments) is not kind:
            return False
        self.calls.append((call_id, name, arguments))
        return True

    def add_result(self, call_id: object, name: object) -> bool:
        """Add a tool result, without its texts."""
        if type(call_id) is not str or type(name) is not str:
            return False
        self.results.append((call_id, name))
        return True

    def with_tool_role(self, blocks: int) -> Outline | None:
        """Return the outline, with the role `tool` if all blocks are tool results.

        Returns None if tool results are mixed with other blocks or part of a reply, or if a user message has tool
        calls.
        """
        if self.results:
            is_alone = self.role == "user" and len(self.results) == blocks
            self.role = "tool"
            return self if is_alone else None
        return None if self.calls and self.role == "user" else self

    def add_blocks(self, blocks: Iterable[object], adders: Mapping[str, BlockAdder]) -> bool:
        """Add each block with the function that `adders` has for its `type`."""
        for block in blocks:
            if type(block) is not dict:
                return False
            kind = block.get("type")
            add = adders.get(kind) if type(kind) is str else None
            if add is None or not add(self, block):
                return False
        return True


class RequestWriter(Protocol):
    """Signature of `Dialect.write_request`."""

    def __call__(self, conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:
        """Return the arguments of the SDK's call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDialect:
    """A `Dialect` built from functions.

    Attributes:
        rules: The limits of the API. `rules.name` is the dialect's name.
        recognises, read, write, read_request, write_request, read_reply, read_tools, write_tools: The methods of the
            `Dialect` protocol.
        outline: Returns the outline of an element in the API's plain shape, and None for any other element. Makes
            `check` and `repair` fast, because they need not read the element. None if the dialect has no outlines.
    """

    rules: ApiRules
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[object], Message]
    write: Callable[[Iterable[Message]], list[dict[str, Any]]]
    read_request: Callable[[object], Conversation]
    write_request: RequestWriter
    read_reply: Callable[[object], Reply]
    read_tools: Callable[[Iterable[object]], tuple[Tool, ...]]
    write_tools: Callable[[Sequence[Tool]], list[dict[str, Any]]]
    outline: Callable[[object], Outline | None] | None = None

    @property
    def name(self) -> str:
        """The dialect's name."""
        return self.rules.name
