"""What an API accepts, and the dialect that speaks it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, Protocol

from nexus_core.values.checks import require_one_of, require_type, require_words
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from nexus_core.values.conversation import Conversation, Reply, Tool
    from nexus_core.values.message import Message, Role

    Marks = Mapping[int, str]

BEFORE_MESSAGES = -1
"""Stands for the tools, where places of messages are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRules:
    """What makes an API refuse a list of messages; `repair` and `check` go by nothing else.

    Attributes:
        name: The dialect's name.
        system: Whether instructions are a `field` beside the messages, `first` among them, or allowed `anywhere`.
        later_system: Whether instructions that are a field may also stand in the list, after the user's word and before
            the assistant's.
        first: Who may speak first, instructions aside.
        last: Who may have the last word.
        results: Whether each result is a message of its own right after the calls (`each`), all results of a message's
            calls stand in the next message before anything else (`together`), or they follow at any later place
            (`anywhere`).
        results_alone: Whether a message with results may hold nothing else.
        calls_after_user: Whether calls may only follow a user's message or results, not other words of the assistant.
        call_ids: Whether calls and results are matched by id; otherwise by order and name.
        unique_ids: Whether an id may occur only once in the whole list.
        id_pattern: What an id must look like, as a regular expression; "" for anything that is not empty.
        id_length: How long an id may be; 0 for no limit.
        name_pattern: What the name of a tool must look like; "" for anything that is not blank.
        name_length: How long the name of a tool may be; 0 for no limit.
        result_names: Whether a result must repeat the tool's name.
        schemas: Whether the schema of a tool may be of `any` type, must be that of an `object` unless there is none,
            or is `required` as well.
        object_arguments: Whether arguments must be a JSON object, or the text of one.
        blank_text: Whether a text may be empty or all blanks.
        silent_errors: Whether the result of a tool that failed may have no content.
        filled_lists: Fields of a message that may be missing, but not be an empty list.
        text_types: Whether the type of a text must be the one that goes with the role of its message.
        speaker_names: Whether a message may name its speaker, in the characters and the length of a tool's name.
        final_blanks: Whether the last message, if it is the assistant's, may end in blanks.
        signed_reasoning: Whether reasoning needs the provider's own seal.
        reasoning_keeps_next: Whether reasoning must be followed by what it led to.
        foreign: Whether reasoning and blocks of other APIs may stand in the list.
        server_calls: Blocks by which a provider calls a tool of its own; each must have its result.
        media: Whose messages may hold pictures and documents; a result's are the tool's.
        image_types: The media types of pictures inside a request, whose data must be base64; empty for any.
        file_types: The same for documents.
        image_size: How many characters of base64 a picture may have; 0 for no limit.
        file_size: The same for a document.
        request_bytes: How many bytes the body of a request may have; 0 for no limit.
        cache_mark: The field that tells the provider to keep all up to a block in its cache; "" where there is none.
        cache_marks: How many blocks may have it, tools and instructions included; 0 for no limit. Of those that are
            kept for different times, the longer must come first.
        serves: The dialects whose models can be asked through this API as well.
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
        require_words(self.name, "ApiRules.name")
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
    """Reads and writes one API's shape. What it reads and writes back is equal to what it read.

    What it has read says so (`api`), and has in `extra` what Nexus has no word for, which goes back to no other API.
    The same arguments get the same answer, and are not changed.
    """

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def rules(self) -> ApiRules:
        """What its API accepts."""

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Whether something is surely of this shape and of no other's: one element of a list.

        A plugin's dialect is asked about a reply and a piece of a stream as well.
        """

    def read(self, item: object) -> Message:
        """One element of the API's list, a dict or an object of the API's SDK.

        Raises:
            MessageError: It is nothing the API knows; says what and where inside it.
        """

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """The API's list: one element for each message of its own, as many as it takes for others.

        Instructions are left out where they are a field beside the list.
        """

    def read_request(self, body: object) -> Conversation:
        """A whole request, the arguments of the SDK's call: instructions first, then a message for each element."""

    def write_request(self, conversation: Conversation, marks: Marks | None = None) -> dict[str, Any]:
        """The arguments of the SDK's call.

        Args:
            conversation: What to write.
            marks: The messages at whose ends the provider is told to keep all before in its cache, by their places, and
                for how long; `BEFORE_MESSAGES` is the end of the tools. An API that has no such marks gets none.
        """

    def read_reply(self, reply: object) -> Reply:
        """A response: a dict, an object of the SDK, or the list of what a stream brought.

        Raises:
            MessageError: It is none.
        """

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Definitions of tools.

        Raises:
            MessageError: One of them is none of the API's.
        """

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Definitions of tools."""
