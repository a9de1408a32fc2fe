"""Results where the API wants them, made up where none was recorded."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from nexus_core.dialects.fields import shown
from nexus_core.dialects.openai.calls import FORMER
from nexus_core.history.mending.naming import name_calls
from nexus_core.history.mending.pairing import Pairing
from nexus_core.history.mending.work import Draft
from nexus_core.values.message import Message
from nexus_core.values.parts import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from nexus_core.history.mending.pairing import Batch, Spot
    from nexus_core.history.mending.work import Work
    from nexus_core.values.parts import Part

    Additions = dict[int, list[Draft]]
    """Results to be added, by the identity of the draft that they belong to."""

NO_RESULT = "[No result was recorded for this tool call.]"


def pair_results(work: Work) -> None:
    """Leave one result for every call, named as the call is, right where it belongs."""
    pairing = Pairing(work)
    name_calls(work, pairing)
    apart = [] if work.rules.results == "anywhere" else pairing.late
    for code, spots, what in (
        ("late-result", apart, "does not follow its call"),
        ("early-result", pairing.early, "stands before its call"),
        ("duplicate-result", pairing.duplicates, "answers a call that has a result already"),
        ("orphan-result", pairing.orphans, "answers no call"),
    ):
        for spot in spots:
            work.note(code, spot.draft, f"the result {_named(spot.result.call_id, spot.result.name)} {what}")
    moved = {id(spot) for spot in (*apart, *pairing.early)}
    behind: Additions = {}
    inside: Additions = {}
    for batch in pairing.batches:
        additions = list(_additions(work, batch, moved))
        (behind if batch.mixed is None else inside)[id(batch.mixed or batch.home)] = additions
    _lay_out(work, behind, inside, [*apart, *pairing.early, *pairing.duplicates, *pairing.orphans])


def order_results(work: Work) -> None:
    """Put results before anything else in their message."""
    for draft in work.drafts:
        ordered = [*draft.results, *draft.others]
        if any(a is not b for a, b in zip(ordered, draft.parts, strict=True)):
            work.note("results-not-first", draft, "something comes before the results")
            draft.parts = ordered


def join_results(work: Work) -> None:
    """Put the results of a turn into one message; messages of other APIs are joined when they are converted."""
    drafts: list[Draft] = []
    for brings, neighbours in groupby(work.drafts, key=lambda draft: bool(draft.results)):
        turn = list(neighbours)
        owned = next(filter(work.owns, turn), None)
        if not brings or len(turn) == 1 or owned is None:
            drafts += turn
            continue
        for draft in turn[1:]:
            if not draft.placed:
                work.note("split-results", draft, "the results of one turn are split across several messages")
        others = turn[-1].others  # whatever came after it would not have been a result of this turn
        results = [result for draft in turn for result in draft.results]
        drafts.append(owned.copy([*results, *others], "user" if others else "tool"))
    work.drafts = drafts


def part_results(work: Work) -> None:
    """Put what stands beside results into a message of its own."""
    drafts: list[Draft] = []
    for draft in work.drafts:
        results, others = draft.results, draft.others
        if results and others and work.owns(draft):
            work.note("results-not-alone", draft, "there is something besides the results")
            drafts += [draft.copy(results, "tool"), draft.copy(others, "user")]
        else:
            drafts.append(draft)
    work.drafts = drafts


def _additions(work: Work, batch: Batch, moved: set[int]) -> Iterator[Draft]:
    """The results that must be added behind a batch, in the order of its calls."""
    for spot in batch.calls:
        if spot.partner is None:
            if batch.closed:  # otherwise its result may still come
                work.note(
                    "missing-result", spot.draft, f"the call {_named(spot.call.id, spot.call.name)} has no result"
                )
                yield _made_up(spot, spot.call.name if work.rules.result_names else "")
        elif id(spot.partner) in moved:
            moved_draft = spot.partner.draft.copy([spot.partner.result], "tool")
            moved_draft.placed = True
            yield moved_draft


def _named(identity: str, tool: str) -> str:
    # Gemini's calls often have no id; then the tool is all that tells them apart.
    return shown(identity) if identity or not tool else f"of {shown(tool)}"


def _made_up(spot: Spot, name: str) -> Draft:
    result = ToolResult(spot.call.id, (Text(NO_RESULT),), name, is_error=True)
    if FORMER in spot.call.extra:  # without an id, it is found by its name
        result = replace(result, name=spot.call.name, extra={FORMER: True})
    return Draft(spot.draft.index, Message("tool", (result,), api=spot.draft.message.api), placed=True)


def _lay_out(work: Work, behind: Additions, inside: Additions, gone: list[Spot]) -> None:
    """Take the results that are gone out of their messages; put in what is added behind or inside a message."""
    places: dict[int, set[int]] = {}
    for spot in gone:
        places.setdefault(id(spot.draft), set()).add(spot.place)
    drafts: list[Draft] = []
    for draft in work.drafts:
        without, more = places.get(id(draft), ()), inside.get(id(draft), ())
        if without or more:
            draft.parts = _replaced(draft, without, more)
        if draft.parts:
            drafts.append(draft)
        drafts += behind.get(id(draft), ())
    work.drafts = drafts


def _replaced(draft: Draft, without: Collection[int], more: Iterable[Draft]) -> list[Part]:
    parts = [part for place, part in enumerate(draft.parts) if place not in without]
    last = max((place for place, part in enumerate(parts) if isinstance(part, ToolResult)), default=-1)
    return [*parts[: last + 1], *(result for each in more for result in each.results), *parts[last + 1 :]]
