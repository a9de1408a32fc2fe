"""Parts that stand in a message of the wrong role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.values.parts import Reasoning, ToolCall

if TYPE_CHECKING:
    from nexus_core.history.mending.work import Draft, Work


def move_misplaced_parts(work: Work) -> None:
    """Calls and reasoning are the assistant's, results the tool's or the user's, and a tool brings nothing else."""
    drafts: list[Draft] = []
    for draft in work.drafts:
        sorted_out = list(_sort_out(draft))
        if len(sorted_out) > 1 or sorted_out[0] is not draft:
            work.note("misplaced-part", draft, f"a part has no place in a message of the role {draft.role!r}")
        drafts += sorted_out
    work.drafts = drafts


def _sort_out(draft: Draft) -> list[Draft]:
    """The draft, or what it becomes."""
    if draft.role == "assistant":
        return _without_results(draft)
    allowed = [part for part in draft.parts if not isinstance(part, ToolCall | Reasoning)]
    if draft.role == "system":
        same = len(allowed) == len(draft.parts)
        return _without_results(draft if same else draft.copy(allowed, "system"))
    role = draft.role
    if role == "tool" and len(draft.results) < len(allowed):
        role = "user"  # so are messages called that hold both
    return [draft] if role == draft.role and len(allowed) == len(draft.parts) else [draft.copy(allowed, role)]


def _without_results(draft: Draft) -> list[Draft]:
    results = draft.results
    if not results:
        return [draft]
    return [draft.copy(draft.others, draft.role), draft.copy(results, "tool")]
