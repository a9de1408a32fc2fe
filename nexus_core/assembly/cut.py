"""Where the history of a call begins, as it is written down with a step."""

from __future__ import annotations

from typing import Any, NamedTuple

from nexus_core.assembly.sent import Key


class Span(NamedTuple):
    """Messages from one to another, both included.

    Attributes:
        first, last: The messages.
        until: The step up to which they are read, where that is not the last one's: an input stands as it was sealed.
    """

    first: Key
    last: Key
    until: str = ""

    def to_json(self) -> list[Any]:
        """As it is written down."""
        return [list(self.first), list(self.last), *([self.until] if self.until else [])]


class Cut(NamedTuple):
    """What stays of a thread.

    Attributes:
        rule: The truncation that chose it.
        since: The message from which on everything stays.
        spans: What stays of what was said before that.
        compaction: The compaction whose kept history it is about; None where there is none.
        limit: The tokens that a request could use when it was made; a larger window deserves another look.
        hidden: The message up to which pictures and documents are told in words; None where all are shown.
        byte_limit: The bytes that a request could have, where it was made for want of them.
    """

    rule: str
    since: Key
    spans: tuple[Span, ...] = ()
    compaction: str | None = None
    limit: int = 0
    hidden: Key | None = None
    byte_limit: int = 0

    def to_json(self) -> dict[str, Any]:
        """As it is written down with a step."""
        spans = [span.to_json() for span in self.spans]
        written: dict[str, Any] = {"rule": self.rule, "since": list(self.since), "limit": self.limit}
        hidden = list(self.hidden) if self.hidden else None
        others = {"spans": spans, "of": self.compaction, "hidden": hidden, "bytes": self.byte_limit}
        return written | {name: value for name, value in others.items() if value}


def read_cut(value: object) -> Cut | None:
    """A cut as it was written down; None where there is none."""
    if not isinstance(value, dict):
        return None
    spans = tuple(Span(Key(*first), Key(*last), *until) for first, last, *until in value.get("spans", ()))
    hidden = Key(*value["hidden"]) if value.get("hidden") else None
    limits = {"limit": value.get("limit", 0), "byte_limit": value.get("bytes", 0)}
    return Cut(value["rule"], Key(*value["since"]), spans, value.get("of"), hidden=hidden, **limits)
