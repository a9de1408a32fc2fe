"""What takes most of a call that does not fit, by name: whose section, which tool, which message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.text.safety import visible_line
from nexus_core.types.prompt import format_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.errors import BudgetError
    from nexus_core.types.prompt import Placement

SHARE = 10
"""What takes less than this fraction of all is not worth naming."""
MOST = 3
"""So many are named."""


def name_large_pieces(error: BudgetError, placements: Iterable[Placement]) -> BudgetError:
    """An error that also says which pieces of the call are large; as it was where they are counted otherwise.

    Args:
        error: What does not fit.
        placements: All pieces.
    """
    if error.unit != "tokens":
        return error
    large = [each for each in placements if each.tokens * SHARE >= error.needed]
    large.sort(key=lambda each: (-each.tokens, each.name))
    return error.naming((_name(each), each.tokens) for each in large[:MOST])


def _name(placement: Placement) -> str:
    if placement.kind == "session":
        return f"step {placement.name}"
    if placement.zone == "current" and placement.source.uri.startswith(("step:", "caller:")):
        return "the message itself"
    what = "tool" if placement.kind == "tool" else "section"
    return visible_line(f"{what} {placement.title or placement.name!r} of {format_source(placement.source.uri)}")
