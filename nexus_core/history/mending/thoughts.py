"""Reasoning of others, unsigned, or without what it led to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.history.mending.texts import is_blank, is_sealed
from nexus_core.values.parts import Reasoning

if TYPE_CHECKING:
    from nexus_core.history.mending.work import Work
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part


def drop_foreign_reasoning(work: Work) -> None:
    """Leave reasoning out that another API made: it means nothing here."""
    name = work.rules.name

    def known(part: Part, _role: Role) -> Part | None:
        return None if isinstance(part, Reasoning) and part.api != name else part

    for draft in work.drafts:
        if draft.rewrite(known):
            work.note("foreign-reasoning", draft, f"it holds reasoning from another API than {name}")


def drop_unsigned_reasoning(work: Work) -> None:
    """Leave reasoning out that has no signature."""
    for draft in work.drafts:
        if draft.rewrite(lambda part, _role: None if _is_unsigned(part) else part):
            work.note("unsigned-reasoning", draft, "it holds reasoning without a signature")


def drop_dangling_reasoning(work: Work) -> None:
    """Leave reasoning out that is followed by nothing the assistant said or did."""
    # Where neighbours are read as one turn, the next message may be what it led to.
    across = work.rules.results != "each"
    follows = False
    for draft in reversed(work.drafts):
        follows = follows and across and draft.role == "assistant"
        kept: list[Part] = []
        for part in reversed(draft.parts):
            follows = follows or not (isinstance(part, Reasoning) or is_blank(part))
            if follows or not isinstance(part, Reasoning):
                kept.append(part)
        if len(kept) < len(draft.parts):
            work.note("dangling-reasoning", draft, "reasoning is not followed by what it led to")
            draft.parts = kept[::-1]
        follows = follows and draft.role == "assistant"


def _is_unsigned(part: Part) -> bool:
    return isinstance(part, Reasoning) and not is_sealed(part)
