"""Sections of a prompt, their sources, placements and renderers."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from nexus_core.types.base import (
    blake2b,
    dataclass,
    require_absolute,
    require_fields,
    require_json,
    require_text,
    require_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nexus_core.types.budget import Decision
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.messages import JSON, Message, Tool, ToolScope
    from nexus_core.types.request import Request

TrustLevel = Literal["user", "project", "foreign"]
"""The trust in the author of a text: the user or Nexus, the project, or anyone else (`foreign`), such as the author of
a page that a tool has read."""

TRUST_LEVELS: tuple[TrustLevel, ...] = get_args(TrustLevel)
_COMPUTED_SCHEMES = ("plugin:", "settings:", "step:", "caller:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of a text.

    Attributes:
        uri: The path of a file; `plugin:<name>` for text that a plugin computed, `settings:` for merged settings,
            `step:<id>` for a message of a session, `caller:` for text that the caller passed.
        layer: The name of its layer, "" for none.
        plugin: The name of the plugin that contributed it; set by the host.
        lines: The first and the last line; None for the whole file.
        trust: The trust in its author.
    """

    uri: str
    layer: str = ""
    plugin: str = ""
    lines: tuple[int, int] | None = None
    trust: TrustLevel = "user"

    def __post_init__(self) -> None:
        require_fields(self, texts=("uri",), choices={"trust": TRUST_LEVELS}, layer=str, plugin=str)

    def __str__(self) -> str:
        """Return the URI for display, as `format_source` does."""
        return format_source(self.uri)

    @property
    def is_file(self) -> bool:
        """True if the text was read from a file rather than computed."""
        return not self.uri.startswith(_COMPUTED_SCHEMES)


def format_source(uri: str) -> str:
    """Return a source's URI for display: `settings:` and `caller:` lose their final colon."""
    return uri.removesuffix(":")


def lowest_trust(trusts: Iterable[TrustLevel]) -> TrustLevel:
    """Return the trust in a text that was made from several: that of the least trusted author."""
    return max(trusts, key=TRUST_LEVELS.index, default="user")


SectionKind = Literal["workspace", "persona", "session", "memory", "event"]
"""The subject of a section."""

Zone = Literal["static", "history", "current"]
"""The part of a call: the frozen prefix, the history that only grows, or the content that is new in each turn."""

SECTION_KINDS: tuple[SectionKind, ...] = get_args(SectionKind)
KIND_ZONES: dict[SectionKind, Zone] = {
    "workspace": "static",
    "persona": "static",
    "session": "history",
    "memory": "current",
    "event": "current",
}
"""The zone of each kind."""

DEFAULT_SECTION_ORDER = 500


@dataclass(frozen=True, slots=True)
class Section:
    """One titled text that a plugin contributes to the prompt.

    Sections are sorted by `order`, then by `id`, then by plugin. Layer texts use 100 to 299, the persona 300 to 399 and
    the environment 600, so the default comes between them. An order below 0 puts a section before everything else,
    under a heading of the first level.

    Attributes:
        id: A short stable name.
        title: The heading that the model reads.
        text: The body. A section with a blank body is left out.
        kind: The subject, which decides the zone.
        order: The sort key; lower comes first.
        source: The origin of the text; None for computed text.
        priority: If memories do not fit, those with the lowest priority are left out first.
        required: True if it must never be left out.
        data: Machine-readable data in groups: `{"persona": {"id": "atlas"}}`. It is not sent to the model.
        files: The files that a computed text quotes in part, each with the command that reads the rest:
            `` `nexus skill show x` ``.
    """

    id: str
    title: str
    text: str
    kind: SectionKind = "workspace"
    order: int = DEFAULT_SECTION_ORDER
    source: Source | None = None
    priority: int = 0
    required: bool = False
    data: JSON = field(default_factory=dict, hash=False)
    files: Mapping[Path, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        require_fields(
            self,
            texts=("id", "title"),
            choices={"kind": SECTION_KINDS},
            text=str,
            order=int,
            source=(Source, type(None)),
            priority=int,
            required=bool,
            files=dict,
        )
        if self.data != {}:
            require_json(self.data, "Section.data")
        for path, how in self.files.items():
            require_absolute(path, "Section.files")
            require_type(how, "Section.files", str)

    @property
    def zone(self) -> Zone:
        """The part of the call that contains it."""
        return KIND_ZONES[self.kind]

    @property
    def digest(self) -> str:
        """The digest of the text."""
        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def merge_section_data(sections: Iterable[Section]) -> JSON:
    """Return the data of all sections, merged by group; for equal names the later section wins."""
    merged: dict[str, object] = {}
    for section in sections:
        for group, values in section.data.items():
            before = merged.get(group)
            merged[group] = before | values if isinstance(before, dict) and isinstance(values, dict) else values
    return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The provenance of a section, a tool or a message in a call.

    Attributes:
        zone: The part of the call that contains it.
        kind: The section's kind; "tool" for a tool.
        name: The id of the section, the name of the tool, or the step of the message.
        title: The heading of the section, or the role of the message.
        source: Its origin.
        tokens: Its tokens in the call; 0 if it is left out.
        digest: The digest of its text; "" if it was not computed.
        decision: Whether it was kept, and by which rule; `first` and `last` are its index in its zone.
        reason: Why a memory was recalled; "" for everything else.
    """

    zone: Zone
    kind: SectionKind | str
    name: str
    title: str = ""
    source: Source
    tokens: int
    digest: str = ""
    decision: Decision
    reason: str = ""


class PastMessage(NamedTuple):  # a NamedTuple, because a history has many
    """A message of the history.

    Attributes:
        message: The message as it was sent.
        created: When it was recorded, in milliseconds since 1970; 0 if unknown.
        is_input: True for input to the agent, False for replies and tool results.
        said: For an input, the message before rendering; else the same as `message`.
    """

    message: Message
    created: int
    is_input: bool
    said: Message


class ArrangedMessages(NamedTuple):
    """The messages between the system prompt and the model's work of this turn so far."""

    history: tuple[Message, ...]
    current: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrangeRequest:
    """The messages that a renderer may rearrange.

    Attributes:
        request: The options of the turn.
        history: The messages of earlier turns that fit.
        current: The input of this turn, as returned by the renderer's `current`.
        tools: The tools that the model may call.
    """

    request: Request
    history: tuple[PastMessage, ...]
    current: Message | None
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """A set of functions that turn sections and messages into the texts of a call.

    All of them are pure: equal arguments give equal results.

    Attributes:
        name: Its name in the setting `renderer`.
        system: Returns the sections of the static zone, which come sorted, as one text. Called once per epoch.
        current: Returns the user message of a turn, rendered with the options of the turn and the sections of the
            current zone; the last argument is the time in milliseconds since 1970. Called once per turn: the result is
            stored and sent again. It must not be empty for a message with content.
        arrange: Rewrites history and input for each call; None sends them unchanged, so that every call starts with all
            of the previous one and the provider's prompt cache can be used. It must depend on nothing that changes
            besides its argument, because it is called again to show a past call.
        sections: Sections of its own for the static zone, such as an identity; `system` gets them with the others.
        configure: Returns the renderer for the settings and files of a directory. Called for every turn, so that it
            notices changes. None if there is nothing to configure.
        plugin: The plugin that offers it; set by the host.
    """

    name: str
    system: Callable[[Sequence[Section]], str]
    current: Callable[[Request, Sequence[Section], int], Message]
    arrange: Callable[[ArrangeRequest], ArrangedMessages] | None = None
    sections: tuple[Section, ...] = ()
    configure: Callable[[LoadedLayers], Renderer] | None = None
    plugin: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        require_text(self.name, "Renderer.name")
        require_type(self.sections, "Renderer.sections", tuple)
        for name in ("system", "current"):
            if not callable(getattr(self, name)):
                raise ValueError(f"Renderer.{name} must be a function")  # noqa: TRY004 - values raise ValueError only


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRole:
    """A role that an agent can have.

    Attributes:
        name: Its name in `Request.role`.
        scopes: The scopes of its tools.
        sees_platform: True if its prompt contains the user's platform and the actions possible there.
    """

    name: str
    scopes: tuple[ToolScope, ...] = ("general", "messaging", "spawn")
    sees_platform: bool = False

    def __post_init__(self) -> None:
        require_text(self.name, "AgentRole.name")
        require_type(self.scopes, "AgentRole.scopes", tuple)
