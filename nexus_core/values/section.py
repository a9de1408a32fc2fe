"""A titled piece of the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from nexus_core.values.source import Source

Kind = Literal["workspace", "persona", "session", "memory", "event"]
"""What a section is about."""

DEFAULT_ORDER = 500


@dataclass(frozen=True, slots=True)
class Section:
    """One titled text that a plugin puts before the model.

    Sections stand in ascending `order`; equal orders are sorted by `id`, then by plugin. Layer texts
    use 100 to 199 and the environment uses 600, so that the default lands between them.

    Attributes:
        id: A short stable name, unique within its plugin; it is used to sort and to refer to it.
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
        for field in ("id", "title", "text"):
            value = getattr(self, field)
            if not isinstance(value, str):
                raise ValueError(f"Section.{field} must be a str, not {type(value).__name__}")  # noqa: TRY004 - see the package's docstring
        if not self.id:
            raise ValueError("Section.id must not be empty")
        if not isinstance(self.order, int):
            raise ValueError(f"Section.order must be an int, not {type(self.order).__name__}")  # noqa: TRY004 - as above

    @property
    def digest(self) -> str:
        """A content address of the text: equal texts have equal digests."""
        from hashlib import blake2b  # noqa: PLC0415 - OpenSSL takes longer to load than a prompt to print

        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
