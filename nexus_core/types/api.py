"""Rules of an API, and the protocol of a dialect that reads and writes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, Protocol

from nexus_core.types.base import dataclass, require_one_of, require_text, require_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from nexus_core.types.messages import Conversation, Message, Reply, Role, Tool

    CacheMarkers = Mapping[int, str]

BEFORE_MESSAGES = -1
"""Index that refers to the tools where indices of messages are expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRules:
    """The rules by which an API accepts or rejects a list of messages.

    `repair` and `check` depend on nothing else.

    Attributes:
        name: The name of the dialect.
        system: Where instructions belong: in a `field` beside the messages, `first` in the list, or `anywhere` in it.
        later_system: True if instructions may also be in the list although they are a field, between a user message and
            a reply.
        first: Roles that the first message after the instructions may have.
        last: Roles that the last message may have.
        results: Where tool results belong: `each` in a message right after the calls, all `together` at the beginning
            of the next message, or `anywhere` after the calls.
        results_alone: True if a message with tool results may contain nothing else.
        calls_after_user: True if tool calls may only follow a user message or tool results, not another message of the
            assistant.
        call_ids: True if calls and results are matched by id, False if by order and tool name.
        unique_ids: True if an id may occur only once in the whole list.
        id_pattern: Regular expression for ids; "" allows every text that is not empty.
        id_length: Maximum characters of an id; 0 for no limit.
        name_pattern: Regular expression for tool names; "" allows every text that is not blank.
        name_length: Maximum characters of a tool name; 0 for no limit.
        result_names: True if a result must repeat the tool's name.
        schemas: Parameter schemas of tools: of `any` type, of type `object` if there is one, or `required` and of type
            `object`.
        object_arguments: True if arguments must be a JSON object, or the text of one.
        blank_text: True if a text may be empty or only whitespace.
        silent_errors: True if the result of a failed tool may have no content.
        filled_lists: Fields of a message that may be missing, but not be an empty list.
        text_types: True if the type of a text must match the role of its message.
        speaker_names: True if a message may have a `name`, with the characters and length of a tool name.
        final_blanks: True if the last message may end in whitespace when it is the assistant's.
        signed_reasoning: True if reasoning needs the provider's signature.
        reasoning_keeps_next: True if reasoning must be followed by its output.
        foreign: True if the list may contain reasoning and blocks of other APIs.
        server_calls: Types of blocks that call a tool which the provider runs; each call needs its result.
        media: Roles whose messages may contain images and documents; those in a tool result count as `tool`.
        image_types: Accepted media types of inline images, whose data must be base64; empty for any.
        file_types: Accepted media types of inline documents, whose data must be base64; empty for any.
        image_size: Maximum base64 characters of an image; 0 for no limit.
        file_size: Maximum base64 characters of a document; 0 for no limit.
        request_bytes: Maximum bytes of a request body; 0 for no limit.
        cache_mark: The field of a block that sets a cache breakpoint; "" if the API has none.
        cache_marks: Maximum number of cache breakpoints, tools and instructions included; 0 for no limit. Breakpoints
            with a longer lifetime must come first.
        serves: Other dialects whose models this API offers as well.
    """

    name: str
    system: Literal["field", "first", "anywhere"] = "anywhere"
    later_system: bool = False
    first: frozenset[Role] = frozenset({"user", "assistant"})
    last: frozenset[Role] = frozenset({"user", "assistant", "tool"})
    results: Literal["each", "together", "anywhere"] = "each"
    results_alone: bool = False
    calls_after_user: bool = False
    call_ids: bool = True
    unique_ids: bool = False
    id_pattern: str = ""
    id_length: int = 0
    name_pattern: str = ""
    name_length: int = 0
    result_names: bool = False
    schemas: Literal["any", "object", "required"] = "any"
    object_arguments: bool = True
    blank_text: bool = True
    filled_lists: frozenset[str] = frozenset()
    text_types: bool = False
    speaker_names: bool = False
    silent_errors: bool = True
    final_blanks: bool = True
    signed_reasoning: bool = False
    reasoning_keeps_next: bool = False
    foreign: bool = False
    server_calls: frozenset[str] = frozenset()
    media: frozenset[Role] = frozenset({"system", "user", "assistant", "tool"})
    image_types: frozenset[str] = frozenset()
    file_types: frozenset[str] = frozenset()
    image_size: int = 0
    file_size: int = 0
    request_bytes: int = 0
    cache_mark: str = ""
    cache_marks: int = 0
    serves: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        require_text(self.name, "ApiRules.name")
        require_one_of(self.system, "ApiRules.system", ("field", "first", "anywhere"))
        require_one_of(self.results, "ApiRules.results", ("each", "together", "anywhere"))
        require_one_of(self.schemas, "ApiRules.schemas", ("any", "object", "required"))
        for name in ("first", "last", "media", "server_calls", "filled_lists", "image_types", "file_types"):
            require_type(getattr(self, name), f"ApiRules.{name}", frozenset)
        for name in ("id_pattern", "name_pattern"):
            _require_pattern(getattr(self, name), f"ApiRules.{name}")


def _require_pattern(value: object, field: str) -> None:
    require_type(value, field, str)
    try:
        re.compile(str(value))
    except re.error as error:
        raise ValueError(f"{field} must be a regular expression: {error}") from None


class Dialect(Protocol):
    """Parser and writer of one API's format. Writing what was read gives an equal value.

    Messages that it reads have its name in `api`, and in `extra` the fields that the neutral format does not have.
    Those are written back to this API only. All methods are pure: equal arguments give equal results, and none is
    changed.
    """

    @property
    def name(self) -> str:
        """The name of the dialect."""

    @property
    def rules(self) -> ApiRules:
        """The rules of its API."""

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Return True if an element of a list is certainly of this format and of no other.

        A plugin's dialect is also called with replies and with events of a stream.
        """

    def read(self, item: object) -> Message:
        """Parse one element of the API's list, a dict or an object of the API's SDK.

        Raises:
            MessageError: The API has no such element; the error names the value and its path.
        """

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Write messages as the API's list.

        A message that was read by this dialect becomes one element, others become as many as necessary. Instructions
        are left out where they are a field beside the list.
        """

    def read_request(self, body: object) -> Conversation:
        """Parse a request body, the arguments of the SDK's call: instructions first, then one message per element."""

    def write_request(self, conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:
        """Write a request body: the arguments of the SDK's call.

        Args:
            conversation: The messages, tools and other fields to write.
            marks: The lifetime of each cache breakpoint, by the index of the message that it follows;
                `BEFORE_MESSAGES` sets one after the tools. Ignored by an API without cache breakpoints.
        """

    def read_reply(self, reply: object) -> Reply:
        """Parse a response: a dict, an object of the SDK, or the list of a stream's events.

        Raises:
            MessageError: It is not a response of this API.
        """

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Parse definitions of tools.

        Raises:
            MessageError: One of them is not a tool definition of this API.
        """

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Write definitions of tools in the API's format."""
