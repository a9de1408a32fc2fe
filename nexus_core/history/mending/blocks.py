"""A provider's own blocks: calls that it answers itself, and marks for its cache."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.values.parts import Opaque

if TYPE_CHECKING:
    from nexus_core.history.mending.work import Draft, Work
    from nexus_core.values.parts import Part

_MARK = "cache_control"


def drop_unpaired_blocks(work: Work) -> None:
    """Leave calls of the provider's own tools out that have no result, and results that have no call."""
    calls: dict[str, Draft] = {}
    answered: set[str] = set()
    for draft in work.drafts:
        for kind, name in (_paired(part, work) for part in draft.parts):
            if kind == "call":
                calls.setdefault(name, draft)
            elif kind == "result" and name in calls:
                answered.add(name)
    last = work.drafts[-1] if work.drafts else None  # it may be sent back as it is, to be gone on with
    for draft in work.drafts:
        kept = [
            part
            for part in draft.parts
            if (name := _paired(part, work)[1]) == "" or name in answered or (draft is last and name in calls)
        ]
        if len(kept) < len(draft.parts):
            work.note("unpaired-block", draft, "a tool that the provider runs was called without result, or not called")
            draft.parts = kept


def limit_cache_marks(work: Work) -> None:
    """Keep the last marks and take the others away."""
    marked = [
        (draft, place)
        for draft in filter(work.owns, work.drafts)
        for place, part in enumerate(draft.parts)
        if _MARK in _fields(part)
    ]
    for draft, place in marked[: -work.rules.cache_marks]:
        work.note("too-many-cache-marks", draft, f"more than {work.rules.cache_marks} blocks are marked {_MARK}")
        draft.parts[place] = _unmarked(draft.parts[place])


def _paired(part: Part, work: Work) -> tuple[str, str]:
    """Whether a block is a provider's call or result, and the id by which they belong together."""
    if not isinstance(part, Opaque) or part.api != work.rules.name:
        return "", ""
    if part.block.get("type") in work.rules.server_calls:
        return "call", str(part.block.get("id"))
    answered = part.block.get("tool_use_id")
    return ("result", answered) if isinstance(answered, str) else ("", "")


def _fields(part: Any) -> Any:  # noqa: ANN401 - any part; what it holds beside what Nexus has words for
    return part.block if isinstance(part, Opaque) else part.extra


def _unmarked(part: Any) -> Any:  # noqa: ANN401 - as above
    rest = {key: value for key, value in _fields(part).items() if key != _MARK}
    return replace(part, block=rest) if isinstance(part, Opaque) else replace(part, extra=rest)
