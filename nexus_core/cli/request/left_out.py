"""What is not in a request, or only in part, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.placement import Placement


class LeftOut(NamedTuple):
    """Something that a model does not read, or not all of it.

    Attributes:
        what: What it is.
        tokens: What it would take; None where nobody counted.
        rule: What decided it.
    """

    what: str
    tokens: int | None
    rule: str

    def __str__(self) -> str:
        size = "" if self.tokens is None else f" ({self.tokens:,} tokens)"
        return f"{self.what}{size}, by {self.rule}"


def left_out(context: AssembledContext) -> Iterator[LeftOut]:
    """Everything that is left out of a request, in its order."""
    for placed in context.placements:
        if placed.decision.action != "kept":
            yield LeftOut(_what(placed), placed.decision.tokens_before, placed.decision.rule)


def _what(placed: Placement) -> str:
    decision = placed.decision
    if placed.kind == "tool":
        return f"tool {placed.name}"
    if placed.zone != "history":
        return f"{placed.kind} {placed.title!r}"
    if decision.action == "masked":
        return f"pictures or documents in step {placed.name}"
    if decision.action == "shortened":
        return f"most of a result in step {placed.name}"
    return (
        f"steps {decision.first:,} to {decision.last:,}"
        if decision.last > decision.first
        else f"step {decision.first:,}"
    )
