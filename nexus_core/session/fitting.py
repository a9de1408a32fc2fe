"""Which messages of a thread stay, so that they fit: arithmetic on what is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.history.lazy import LazyGroups
from nexus_core.values.budget import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.session.projecting import Sent
    from nexus_core.values.budget import Truncation


def choose(sent: Sequence[Sent], room: int, truncation: Truncation, turn: str) -> list[int]:
    """The places that stay. Never left out: a summary, what the open turn is about, and its newest group.

    Args:
        sent: The messages of a thread.
        room: Tokens there are.
        truncation: Says which groups stay.
        turn: The open turn.
    """
    if sum(each.tokens for each in sent) <= room:
        return list(range(len(sent)))
    fixed = [place for place, each in enumerate(sent) if not each.turn or (each.is_input and each.turn == turn)]
    free = sorted(set(range(len(sent))).difference(fixed))
    room -= sum(sent[place].tokens for place in fixed)
    kept = _choose_groups([sent[place] for place in free], room, truncation)
    if sum(sent[free[at]].tokens for at in kept) > room:  # a truncation keeps the newest group in any case
        kept = [at for at in kept if sent[free[at]].turn == turn]
    return sorted({*_begun(sent, [free[at] for at in kept], turn), *fixed})


def _choose_groups(sent: Sequence[Sent], room: int, truncation: Truncation) -> list[int]:
    if not sent:
        return []
    groups = LazyGroups(lambda place: sent[place].message, 0, len(sent), lambda place: sent[place].tokens)
    spans = groups.spans(truncation.choose(groups, room) if room > 0 else [slice(-1, None)])
    return sorted({place for span in spans for place in range(*span)})


def left_out(sent: Sequence[Sent], places: Sequence[int], rule: str) -> list[Decision]:
    """A decision for each gap between what stays."""
    decisions = []
    expected = 0
    for place in [*places, len(sent)]:
        if place > expected:
            before = sum(each.tokens for each in sent[expected:place])
            decisions.append(
                Decision(action="dropped", rule=rule, first=expected, last=place - 1, tokens_before=before)
            )
        expected = place + 1
    return decisions


def _begun(sent: Sequence[Sent], kept: list[int], turn: str) -> list[int]:
    """Without the end of a turn whose beginning is left out, before the first word of the user."""
    if kept[:1] == [0]:
        return kept
    first = next((at for at, place in enumerate(kept) if _is_beginning(sent[place], turn)), len(kept))
    return kept[first:]


def _is_beginning(sent: Sent, turn: str) -> bool:
    return sent.turn == turn or (sent.message.role == "user" and not sent.message.tool_results)
