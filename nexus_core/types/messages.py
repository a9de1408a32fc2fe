"""Messages, their parts, tools, usage and replies in the neutral format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.types.base import dataclass, require_one_of, require_type

if TYPE_CHECKING:
    from collections.abc import Iterable

JSON = Mapping[str, object]
"""A JSON object. Treat it as read-only."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text part of a message."""

    text: str
    extra: JSON = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A fast path, because such parts are made by the thousand.
        if not (type(self.text) is str and type(self.extra) is dict):
            _require_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image: its data, a URL, or the id of an uploaded file.

    Attributes:
        mime: The media type: `image/png`.
        data: The bytes in base64.
        url: The URL of the image.
        file_id: The provider's id of an uploaded file.
        detail: The level of detail, in APIs that let the caller choose.
        extra: Other fields of the API.
    """

    mime: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    detail: str = ""
    extra: JSON = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A document: its data, a URL, or the id of an uploaded file, with the fields of an image."""

    name: str = ""
    mime: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    extra: JSON = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Reasoning of the model.

    Attributes:
        text: The reasoning or its summary; may be empty if it is encrypted.
        signature: The provider's signature, without which the provider rejects the reasoning.
        encrypted: Reasoning that only the provider can decrypt.
        api: The dialect that read it. Other providers cannot use it.
        extra: Other fields of the API.
    """

    text: str = ""
    signature: str = ""
    encrypted: str = ""
    api: str = ""
    extra: JSON = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_fields(self)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block without a neutral form. It is sent back unchanged, and only to the API that it came from."""

    api: str
    block: JSON

    def __post_init__(self) -> None:
        _require_fields(self)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the model.

    Attributes:
        id: The id that the result refers to; "" if the API has no ids.
        name: The name of the tool.
        arguments: The arguments of the call.
        raw: The arguments as the model wrote them, in APIs that give text; may be invalid JSON.
        extra: Other fields of the API.
    """

    id: str
    name: str
    arguments: JSON = field(default_factory=dict)
    raw: str | None = None
    extra: JSON = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_usual = type(self.id) is type(self.name) is str and type(self.arguments) is type(self.extra) is dict
        if not (is_usual and (self.raw is None or type(self.raw) is str)):
            _require_fields(self)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call.

    Attributes:
        call_id: The id of the call.
        parts: Texts, images, files, or blocks that only the API knows. A string becomes one text.
        name: The name of the tool, in APIs that repeat it.
        is_error: True if the tool failed.
        extra: Other fields of the API.
    """

    call_id: str
    parts: tuple[ResultPart, ...] = ()
    name: str = ""
    is_error: bool = False
    extra: JSON = field(default_factory=dict)

    if TYPE_CHECKING:  # the constructor accepts more types than the fields have

        def __init__(
            self,
            call_id: str,
            parts: str | Iterable[ResultPart] = (),
            name: str = "",
            is_error: bool = False,
            extra: JSON = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        given: object = self.parts
        if type(given) is not tuple:
            object.__setattr__(self, "parts", (Text(given),) if isinstance(given, str) else tuple(self.parts))
        if not _RESULT_PART_TYPES.issuperset(map(type, self.parts)):
            wrong = next(type(part) for part in self.parts if type(part) not in _RESULT_PART_TYPES)
            raise ValueError(f"ToolResult.parts must contain texts, images or files, not {wrong.__name__}")
        is_usual = type(self.call_id) is type(self.name) is str and type(self.extra) is dict
        if not is_usual or type(self.is_error) is not bool:
            _require_fields(self)

    @property
    def text(self) -> str:
        """Its texts joined by newlines, without media."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


_FIELD_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "bool": (bool,),
    "JSON": (Mapping,),
}


def _require_fields(part: Part) -> None:
    """Raise a ValueError that names the first field whose value is not of the declared type."""
    for each in fields(part):
        if kinds := _FIELD_TYPES.get(str(each.type)):
            require_type(getattr(part, each.name), f"{type(part).__name__}.{each.name}", *kinds)


ResultPart = Text | Image | File | Opaque
Part = Text | Image | File | Reasoning | Opaque | ToolCall | ToolResult
_RESULT_PART_TYPES = frozenset({Text, Image, File, Opaque})
PART_TYPES = frozenset({Text, Image, File, Reasoning, Opaque, ToolCall, ToolResult})

Role = Literal["system", "user", "assistant", "tool"]
"""The role of a message. Tool results have the role `tool`, in whichever message an API puts them."""

ROLES: tuple[Role, ...] = get_args(Role)

SESSION_START = "_session_start"
"""The field of `Message.extra` that marks the message about a session's start, and contains the time."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, which corresponds to one element of the API's list that it was read from.

    Attributes:
        role: The role. Messages with nothing but tool results have the role `tool`.
        parts: The parts in order. A string becomes one text.
        name: The name of the speaker, in APIs that distinguish several with one role.
        api: The dialect that read it, "" for a message made here.
        extra: Fields without a neutral form, and the dialect's metadata (names with a leading `_`) on which of several
            notations was used. Only that dialect writes them back.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str = ""
    api: str = ""
    extra: JSON = field(default_factory=dict)

    if TYPE_CHECKING:  # the constructor accepts more types than the fields have

        def __init__(
            self, role: Role, parts: str | Iterable[Part] = (), name: str = "", api: str = "", extra: JSON = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            require_one_of(self.role, "Message.role", ROLES)
        given: object = self.parts
        if type(given) is not tuple:
            object.__setattr__(self, "parts", (Text(given),) if isinstance(given, str) else tuple(self.parts))
        if not PART_TYPES.issuperset(map(type, self.parts)):
            wrong = next(type(part) for part in self.parts if type(part) not in PART_TYPES)
            raise ValueError(f"Message.parts must contain parts such as Text or ToolCall, not {wrong.__name__}")
        if type(self.name) is not str or type(self.api) is not str or type(self.extra) is not dict:
            require_type(self.name, "Message.name", str)
            require_type(self.api, "Message.api", str)
            require_type(self.extra, "Message.extra", Mapping)

    @property
    def content(self) -> str:
        """Its texts joined by newlines, without media, reasoning and tools."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """Its tool results."""
        return tuple([part for part in self.parts if isinstance(part, ToolResult)])


ToolScope = Literal["general", "messaging", "spawn"]
"""The reach of a tool: the agent's own work, messages to people, or other agents."""
TOOL_SCOPES: tuple[ToolScope, ...] = get_args(ToolScope)

Stop = Literal["end", "tools", "length", "pause", "refusal", "error", "broken", ""]
"""The reason why a reply ended: complete, waiting for tools, length limit, paused by the provider (send it back to
continue), refused by the model, failed, or stream aborted; "" if the API does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a model may call.

    Attributes:
        name: The name for the model.
        description: The description for the model.
        parameters: A JSON Schema of its arguments.
        scope: The reach of the tool.
        api: The dialect that read it.
        extra: Other fields of the API. The whole definition, for a tool that the provider runs.
        origin: The server that runs it, if neither the caller nor the plugin that offers it does: `mcp:github`.
        permissions: The permissions that it needs. It is offered only to agents that have all of them, and to agents
            without a list of permissions.
    """

    name: str
    description: str = ""
    parameters: JSON = field(default_factory=dict)
    scope: ToolScope = "general"
    api: str = ""
    extra: JSON = field(default_factory=dict)
    origin: str = ""
    permissions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.scope not in TOOL_SCOPES:
            require_one_of(self.scope, f"the scope of the tool {self.name!r}", TOOL_SCOPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token usage of a call, as reported by the provider.

    Attributes:
        input_tokens: All input tokens, cached or not.
        output_tokens: All output tokens, reasoning included.
        cached_input_tokens: Input tokens read from the prompt cache.
        cache_write_tokens: Input tokens written to the prompt cache.
        reasoning_tokens: Output tokens of reasoning.
        cache_write_1h_tokens: The part of `cache_write_tokens` with a lifetime of an hour, which costs more.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_1h_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Return the usage of both calls together."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cache_write_1h_tokens=self.cache_write_1h_tokens + other.cache_write_1h_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The content of a request body.

    Attributes:
        messages: The messages, including system messages, wherever the API puts those.
        tools: The tools that the model may call.
        api: The dialect that read it.
        extra: The other fields of the request body: model, temperature, and so on.
    """

    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    api: str = ""
    extra: JSON = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's reply.

    Attributes:
        messages: One message, or several if the API replies in items.
        stop: The reason why it ended.
        stop_reason: The reason as the API names it.
        usage: Its token usage; None if the API does not report it.
        id: The API's id of the reply.
        model: The model that replied.
        api: The dialect that read it.
    """

    messages: tuple[Message, ...]
    stop: Stop = ""
    stop_reason: str = ""
    usage: Usage | None = None
    id: str = ""
    model: str = ""
    api: str = ""
