"""Where each piece of a call comes from, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from nexus_core.values.budget import Decision
    from nexus_core.values.section import Kind, Zone
    from nexus_core.values.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A section, a tool or a message in its place.

    Attributes:
        zone: Where it lands in the call.
        kind: What it is about; "tool" for a tool.
        name: The section's id, the tool's name, or the step of the message.
        title: The section's heading, or who speaks.
        source: Where it comes from.
        tokens: What it takes in the call; 0 when it is left out.
        digest: The address of its text; "" where nobody needed it.
        decision: What became of it, and by which rule; its `first` and `last` are its place in its zone.
    """

    zone: Zone
    kind: Kind | str
    name: str
    title: str = ""
    source: Source
    tokens: int
    digest: str = ""
    decision: Decision
