"""A titled piece of the prompt."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.values.checks import require_absolute, require_json, require_one_of, require_type, require_words
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from nexus_core.values.parts import JSON

Kind = Literal["workspace", "persona", "session", "memory", "event"]
"""What a section is about."""

Zone = Literal["static", "history", "current"]
"""Where something lands in a call: in what never changes, in what only grows, in what is new each turn."""

KINDS: tuple[Kind, ...] = get_args(Kind)
ZONES: dict[Kind, Zone] = {
    "workspace": "static",
    "persona": "static",
    "session": "history",
    "memory": "current",
    "event": "current",
}
"""The zone of each kind."""

DEFAULT_ORDER = 500


@dataclass(frozen=True, slots=True)
class Section:
    """One titled text that a plugin puts before the model.

    Sections stand in ascending `order`; equal orders are sorted by `id`, then by plugin. Layer texts
    use 100 to 299, the persona uses 300 to 399 and the environment 600, so that the default lands between them. An
    order below 0 puts a section before everything else, under a heading of the first level.

    Attributes:
        id: A short stable name, by which it is sorted and referred to.
        title: The heading the model sees.
        text: The body. A section with a blank body is left out.
        kind: What the section is about.
        order: Where it stands among the others; lower comes first.
        source: Where the text comes from. Leave it out for computed text.
        priority: What is left out first when there is too little room for memories: the lowest.
        required: Whether it must not be left out at all.
        data: Facts beside the text, for programs, in groups: `{"persona": {"id": "atlas"}}`. No model reads them.
        files: The files that a computed text has a part of, each with how the rest is read: `` `nexus skill use x` ``.
    """

    id: str
    title: str
    text: str
    kind: Kind = "workspace"
    order: int = DEFAULT_ORDER
    source: Source | None = None
    priority: int = 0
    required: bool = False
    data: JSON = field(default_factory=dict, hash=False)
    files: Mapping[Path, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        require_words(self.id, "Section.id")
        require_words(self.title, "Section.title")
        require_type(self.text, "Section.text", str)
        require_one_of(self.kind, "Section.kind", KINDS)
        require_type(self.order, "Section.order", int)
        require_type(self.source, "Section.source", Source, type(None))
        require_type(self.priority, "Section.priority", int)
        require_type(self.required, "Section.required", bool)
        require_json(self.data, "Section.data")
        require_type(self.files, "Section.files", dict)
        for path, how in self.files.items():
            require_absolute(path, "Section.files")
            require_type(how, "Section.files", str)

    @property
    def zone(self) -> Zone:
        """Where it lands in a call."""
        return ZONES[self.kind]

    @property
    def digest(self) -> str:
        """A content address of the text: equal texts have equal digests."""
        from nexus_core.values.hashing import blake2b  # noqa: PLC0415 - a prompt is printed without it

        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def gather_data(sections: Iterable[Section]) -> JSON:
    """The facts of all sections, group by group; of two facts with one name, that of the later section."""
    gathered: dict[str, object] = {}
    for section in sections:
        for group, facts in section.data.items():
            before = gathered.get(group)
            gathered[group] = before | facts if isinstance(before, dict) and isinstance(facts, dict) else facts
    return gathered
