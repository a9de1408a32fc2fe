"""What a message is made of: text, media, reasoning, tool calls and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING

from nexus_core.values.checks import require_type
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

JSON = Mapping[str, object]
"""An object as it stands in JSON. Treat it as read-only."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str
    extra: JSON = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Such parts are made by the thousand: what is as it should be is not looked at any closer.
        if not (type(self.text) is str and type(self.extra) is dict):
            _require_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture: its bytes, or where to find them.

    Attributes:
        mime: What kind of picture: `image/png`.
        data: The bytes in base64.
        url: Where it can be fetched.
        file_id: What the provider calls an uploaded file.
        detail: How closely to look, where the API lets one choose.
        extra: What else the API said about it.
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
    """A document: its bytes, or where to find them; fields as for an image."""

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
    """What the model thought, in the words of its provider.

    Attributes:
        text: The thought or its summary; may be empty when it is encrypted.
        signature: The provider's seal; without it the provider refuses the thought.
        encrypted: A thought that only the provider can read.
        api: The dialect it was read by. It means nothing to another provider.
        extra: What else the API said about it.
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
    """A block Nexus has no word for; it goes back as it came, and only to the API it came from."""

    api: str
    block: JSON

    def __post_init__(self) -> None:
        _require_fields(self)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool to be run.

    Attributes:
        id: What the result will refer to; "" where the API has no ids.
        name: The tool.
        arguments: What to run it with.
        raw: The arguments as the model wrote them, where an API hands over text; may not be valid JSON.
        extra: What else the API said about it.
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
    """What running a tool brought.

    Attributes:
        call_id: The id of the call it answers.
        parts: Text, images, files, or blocks of the API's own.
        name: The tool, where the API wants it repeated.
        is_error: Whether the tool failed.
        extra: What else the API said about it.
    """

    call_id: str
    parts: tuple[ResultPart, ...] = ()
    name: str = ""
    is_error: bool = False
    extra: JSON = field(default_factory=dict)

    if TYPE_CHECKING:  # what may be given is more than what is kept

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
        for part in self.parts:
            if type(part) not in _RESULT_PARTS:
                raise ValueError(f"ToolResult.parts must hold texts, pictures or files, not {type(part).__name__}")
        is_usual = type(self.call_id) is type(self.name) is str and type(self.extra) is dict
        if not is_usual or type(self.is_error) is not bool:
            _require_fields(self)

    @property
    def text(self) -> str:
        """Its words, without media."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "bool": (bool,),
    "JSON": (Mapping,),
}


def _require_fields(part: Part) -> None:
    """Refuse fields of another type than they are declared with; a ValueError names the first."""
    for each in fields(part):
        if kinds := _TYPES.get(str(each.type)):
            require_type(getattr(part, each.name), f"{type(part).__name__}.{each.name}", *kinds)


ResultPart = Text | Image | File | Opaque
Part = Text | Image | File | Reasoning | Opaque | ToolCall | ToolResult
_RESULT_PARTS = frozenset({Text, Image, File, Opaque})
PARTS = frozenset({Text, Image, File, Reasoning, Opaque, ToolCall, ToolResult})
