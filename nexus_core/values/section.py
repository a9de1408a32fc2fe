"""A titled piece of the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from nexus_core.values.checks import require_one_of, require_type, require_words
from nexus_core.values.source import Source

Kind = Literal["workspace", "persona", "session", "memory", "event"]
"""What a section is about."""

KINDS: tuple[Kind, ...] = get_args(Kind)
DEFAULT_ORDER = 500


@dataclass(frozen=True, slots=True)
class Section:
    """One titled text that a plugin puts before the model.

    Sections stand in ascending `order`; equal orders are sorted by `id`, then by plugin. Layer texts
    use 100 to 299 and the environment uses 600, so that the default lands between them.

    Attributes:
        id: A short stable name, by which it is sorted and referred to.
        title: The heading the model sees.
        text: The body. A section with a blank body is left out.
        kind: What the section is about.
        order: Where it stands among the others; lower comes first.
        source: Where the text comes from. Leave it out for computed text.
    """

    id: str
    title: str
    text: str
    kind: Kind = "workspace"
    order: int = DEFAULT_ORDER
    source: Source | None = None

    def __post_init__(self) -> None:
        require_words(self.id, "Section.id")
        require_words(self.title, "Section.title")
        require_type(self.text, "Section.text", str)
        require_one_of(self.kind, "Section.kind", KINDS)
        require_type(self.order, "Section.order", int)
        require_type(self.source, "Section.source", Source, type(None))

    @property
    def digest(self) -> str:
        """A content address of the text: equal texts have equal digests."""
        from hashlib import blake2b  # noqa: PLC0415 - OpenSSL takes longer to load than a prompt to print

        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
