"""Up to where a provider is told to keep a call in its cache."""

from __future__ import annotations

from typing import Literal, NamedTuple

BreakpointPlace = Literal["static", "history", "sent", "newest"]
"""What ends at a breakpoint: system prompt and tools, the turns before, the call before, this call."""


class Breakpoint(NamedTuple):
    """A place of a call that is marked for the provider's cache, or could be.

    Attributes:
        place: What ends there.
        after: The message behind which it stands, by its place in `context.messages`; -1 for system prompt and tools.
        tokens: What stands before it, tools and system prompt included.
        lifetime: How long the provider keeps it; "" where that is not said.
        skipped: Why it is not marked; "" where it is.
    """

    place: BreakpointPlace
    after: int
    tokens: int
    lifetime: str = ""
    skipped: str = ""
