"""Memories, and the queries and sources that find them."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.types.base import blake2b, dataclass, require_one_of, require_text, require_type, require_types
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nexus_core.types.plugins import Finding

MemoryKind = Literal["episode", "note", "preference", "skill"]
"""The kind of a memory: a turn of a conversation, a note in a file, a rule of the user, or a guide."""
MemoryOrigin = Literal["user", "assistant", "tool", "file", "web"]
"""The author of a memory. Text of a tool, a file or the web is quoted, and never becomes a rule."""

StepFacet = Literal["rule", "decision", "rejected", "file", "command", "error"]
"""A fact that a step has: a lasting rule of the user, a decision, a rejected attempt, a changed file, a command, or an
error."""

MEMORY_KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
MEMORY_ORIGINS: tuple[MemoryOrigin, ...] = get_args(MemoryOrigin)
STEP_FACETS: tuple[StepFacet, ...] = get_args(StepFacet)
QUOTED_ORIGINS: tuple[MemoryOrigin, ...] = ("tool", "file", "web")
"""Origins whose text is fenced as quoted material."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """A question to all memory sources.

    Attributes:
        text: The user message, or the words of a search.
        entities: Paths, identifiers and names in it.
        facets: The facts that it asks for: a question that begins with "why" asks for a decision.
        required_facets: Only memories with one of these facts; () for all.
        session: The name of the session that asks; "" for none. Its own turns are no memories.
        directory: Only memories of this directory; None for those of any.
        identity: The sender of the message; "" if it has none. What others sent is no memory, unless those of any
            directory are asked for.
        permissions: The permissions of the agent.
        min_score: The lowest score of a memory that is used: a source need not read others. 0 for all.
        limit: Most memories that a source should return.
    """

    text: str
    entities: tuple[str, ...] = ()
    facets: tuple[StepFacet, ...] = ()
    required_facets: tuple[StepFacet, ...] = ()
    session: str = ""
    directory: Path | None = None
    identity: str = ""
    permissions: tuple[str, ...] = ()
    min_score: float = 0.0
    limit: int = 20

    def __post_init__(self) -> None:
        require_types(self, text=str, session=str, identity=str, limit=int)
        require_types(self, entities=tuple, facets=tuple, required_facets=tuple, permissions=tuple)
        require_type(self.min_score, "MemoryQuery.min_score", float, int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A text that may be relevant, with its origin.

    Attributes:
        text: The text, verbatim.
        kind: The kind of memory.
        source: The step (`step:<id>`) or the file with its lines.
        origin: The author of the text.
        title: A few words for its heading; "" for none.
        session: The name of the session of a step; "" for a file.
        time: When it was written, in milliseconds since 1970; 0 if unknown.
        score: The share of the query that it covers, from 0 to 1. Below 0.2, nothing is injected by itself.
        reason: Why it was found, in a few words: `matches "auth", "middleware"`.
    """

    text: str
    kind: MemoryKind
    source: Source
    origin: MemoryOrigin = "user"
    title: str = ""
    session: str = ""
    time: int = 0
    score: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        require_text(self.text, "Memory.text")
        require_one_of(self.kind, "Memory.kind", MEMORY_KINDS)
        require_one_of(self.origin, "Memory.origin", MEMORY_ORIGINS)
        require_types(self, title=str, session=str, source=Source, time=int, reason=str)
        require_type(self.score, "Memory.score", float, int)

    @property
    def id(self) -> str:
        """The digest by which commands name the memory.

        An episode's depends on its step only, because its text differs by query.
        """
        return compute_memory_id(self.source.uri, "" if self.kind == "episode" else self.text)

    @property
    def is_quoted(self) -> bool:
        """True if the text is fenced as quoted material.

        Programs may speak in the name of a user elsewhere.
        """
        return self.kind == "episode" or self.origin in QUOTED_ORIGINS

    @property
    def place(self) -> str:
        """The step or the file with its lines, for display: `notes/auth.md:4-9`."""
        lines = self.source.lines
        return self.source.uri if lines is None else f"{self.source.uri}:{lines[0]}-{lines[1]}"


@lru_cache(maxsize=1024)  # each turn asks about ten times for the id of each memory
def compute_memory_id(uri: str, text: str = "") -> str:
    """Return the id of a memory by its source and text."""
    return blake2b(f"{uri}\n{text}".encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """A named place where memories are found.

    Attributes:
        name: Its name in the setting `memory.sources`.
        search: Returns the memories for a query, the best first.
        list_all: Returns all its memories for a query's scope, the newest first; None if it cannot.
        add: Stores a memory and returns its place: in the user's directory, or in the project's if the layer of its
            source is `local`. None if it cannot.
        remove: Deletes the file of a memory and returns its path; None if there is none to delete.
        diagnose: Returns findings about memories that are not used, such as a note with a broken head, or one that was
            forgotten; None for none.
        facets: The facts that its memories may have. A query that requires others is not sent to it.
        plugin: The plugin that offers it; set by the host.
    """

    name: str
    search: Callable[[MemoryQuery], list[Memory]]
    list_all: Callable[[MemoryQuery], list[Memory]] | None = None
    add: Callable[[Memory], str] | None = None
    remove: Callable[[Memory], str] | None = None
    diagnose: Callable[[], list[Finding]] | None = None
    facets: tuple[StepFacet, ...] = ()
    plugin: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        require_text(self.name, "MemorySource.name")
        if not callable(self.search):
            raise ValueError("MemorySource.search must be a function")  # noqa: TRY004 - values raise ValueError only
        require_types(self, facets=tuple)
        for facet in self.facets:
            require_one_of(facet, "MemorySource.facets", STEP_FACETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """A model that turns texts into vectors.

    Attributes:
        name: Its name in the setting `memory.embedder`.
        embed: Returns a vector for each text, all of the same length.
        plugin: The plugin that offers it; set by the host.
    """

    name: str
    embed: Callable[[Sequence[str]], Sequence[Sequence[float]]]
    plugin: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        require_text(self.name, "Embedder.name")
        if not callable(self.embed):
            raise ValueError("Embedder.embed must be a function")  # noqa: TRY004 - values raise ValueError only
