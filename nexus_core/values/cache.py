"""What became of a provider's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from nexus_core.values.source import Source

Verdict = Literal["hit", "miss", "unknown"]
"""Whether a call found in the cache what it could expect to find; unknown where nothing tells."""

Cause = Literal["section", "tool", "renderer", "model", "compaction", "cut", "time", "short", "first", "unknown"]
"""What came between two calls: a section or tool that is another now, another renderer or model, a compaction, history
that was left out, more time than a cache lasts; or the beginning is too short, or there was no call before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """The first thing that kept a call from finding its beginning in the cache.

    Attributes:
        cause: What it is.
        name: The section's title, the tool, the model; "" where the cause says it all.
        source: Where the section or tool comes from.
        message: The same in one sentence without a final period.
    """

    cause: Cause
    name: str = ""
    source: Source | None = None
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """What a call could expect to find in the provider's cache, and what it found.

    Attributes:
        expected: Tokens that the call before it began with as well, as we count; None where nobody can know.
        got: Tokens that came from the cache, as the provider says; None where it does not say.
        blame: What kept it from finding more; None for a hit, and where nothing tells.
    """

    expected: int | None = None
    got: int | None = None
    blame: Blame | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether it was a hit."""
        if self.expected is None or self.got is None:
            return "unknown"
        return "hit" if self.blame is None else "miss"

    def __str__(self) -> str:
        if self.verdict == "unknown":
            return "unknown" if self.blame is None else f"unknown: {self.blame}"
        counts = f"{self.got:,} of {self.expected:,} expected tokens came from the cache"
        return counts if self.blame is None else f"{counts}: {self.blame}"
