"""A provider's own blocks: calls that it answers itself, and marks for its cache."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.marks import LONG, SHORT, lifetime, marks_in, new_mark, rewrite_marks
from nexus_core.values.parts import Opaque, Reasoning

if TYPE_CHECKING:
    from nexus_core.history.mending.work import Draft, Work
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part


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
            work.note(
                "unpaired-block",
                draft,
                "a call of a tool that the provider runs has no result, or the result has no call",
            )
            draft.parts = kept


def drop_reasoning_cache_markers(work: Work) -> None:
    """Take marks for the cache away from reasoning, which takes none."""
    mark = work.rules.cache_mark

    def unmarked(part: Part, _role: Role) -> Part:
        if not isinstance(part, Reasoning) or mark not in part.extra:
            return part
        return replace(part, extra={key: value for key, value in part.extra.items() if key != mark})

    for draft in filter(work.owns, work.drafts):
        if draft.holds(Reasoning) and draft.rewrite(unmarked):
            work.note("misplaced-cache-mark", draft, f"reasoning is marked {mark}")


def limit_cache_marks(work: Work) -> None:
    """Keep the last marks, take the others away, and let none outlive one before it."""
    rules = work.rules
    found = [each for draft in work.drafts for each in marks_in(draft.parts, draft.message.api, rules)]
    sieve = _Sieve(work, surplus=len(work.marked) + len(found) - rules.cache_marks)
    if sieve.surplus > 0 or _is_outlived([*work.marked, *found]):
        for draft in work.drafts:
            sieve.pour(draft)


class _Sieve:
    """Mends marks in their order.

    Args:
        work: The messages.
        surplus: How many of the first marks are too many.
    """

    def __init__(self, work: Work, *, surplus: int) -> None:
        self.surplus = surplus
        self._work = work
        self._short = SHORT in work.marked

    def pour(self, draft: Draft) -> None:
        """Mend the marks of the next message."""
        rules, api = self._work.rules, draft.message.api
        draft.parts = [rewrite_marks(part, api, rules, lambda mark: self._mended(mark, draft)) for part in draft.parts]

    def _mended(self, mark: Any, draft: Draft) -> Any:  # noqa: ANN401 - what stands in the field
        rules = self._work.rules
        self.surplus -= 1
        if self.surplus >= 0:
            what = f"more than {rules.cache_marks} blocks are marked {rules.cache_mark}"
            self._work.note("too-many-cache-marks", draft, what)
            return None
        if lifetime(mark) == LONG and self._short:
            what = f"what is to be kept for {LONG} stands after what is to be kept for {SHORT}"
            self._work.note("cache-mark-order", draft, what)
            return new_mark(SHORT)
        self._short = self._short or lifetime(mark) == SHORT
        return mark


def _is_outlived(lifetimes: list[str]) -> bool:
    return SHORT in lifetimes and LONG in lifetimes[lifetimes.index(SHORT) :]


def _paired(part: Part, work: Work) -> tuple[str, str]:
    """Whether a block is a provider's call or result, and the id by which they belong together."""
    if not isinstance(part, Opaque) or part.api != work.rules.name:
        return "", ""
    if part.block.get("type") in work.rules.server_calls:
        return "call", str(part.block.get("id"))
    answered = part.block.get("tool_use_id")
    return ("result", answered) if isinstance(answered, str) else ("", "")
