"""Ids and names of calls, the same in the results that answer them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import shown
from nexus_core.dialects.openai.calls import FORMER, former_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.history.mending.pairing import Pairing, Spot
    from nexus_core.history.mending.work import Work
    from nexus_core.values.parts import ToolCall, ToolResult

UNKNOWN_TOOL = "unknown_tool"
_ID = "call"


def name_calls(work: Work, pairing: Pairing) -> None:
    """Give every call an id and a name that the API accepts, and its result the same.

    What a call is renamed to depends on nothing that comes after it, so that a conversation that grows keeps its ids.
    """
    ids = _Ids(work)
    for batch in pairing.batches:
        ids.begin_batch()
        # What stands for a result that is missing is in the words of its call.
        joins_own = any(work.owns(spot.partner.draft if spot.partner else spot.draft) for spot in batch.calls)
        for spot in batch.calls:
            _name(work, spot)
            ids.identify(spot)
            _follow(work, spot, joins_own=joins_own)


def _name(work: Work, spot: Spot) -> None:
    rules, call = work.rules, spot.call
    name = call.name
    if not name.strip():
        name = (spot.partner.result.name.strip() if spot.partner else "") or UNKNOWN_TOOL
        work.note("blank-tool-name", spot.draft, "a call names no tool")
        name = sanitize_name(name, rules.name_pattern, rules.name_length)
    elif not is_valid(name, rules.name_pattern, rules.name_length):
        name = sanitize_name(name, rules.name_pattern, rules.name_length)
        work.note(
            "invalid-tool-name", spot.draft, f"the {rules.name} API does not allow the tool name {shown(call.name)}"
        )
    if name != call.name:
        if spot.partner and spot.partner.result.name:
            _change_result(spot.partner, name=name)
        _change_call(spot, name=name)
        if FORMER in call.extra:
            _identify_former(spot)


def _identify_former(spot: Spot) -> None:
    """Give a call that has no id of its own the one that its new name is read with, and its result too."""
    given = spot.call.id
    _change_call(spot, id=former_id(spot.call.name))
    if spot.partner and spot.partner.result.call_id == given:
        _change_result(spot.partner, call_id=spot.call.id)


def _follow(work: Work, spot: Spot, *, joins_own: bool) -> None:
    """Make a result repeat what the call says.

    Args:
        work: What is mended.
        spot: The call.
        joins_own: Whether its result may get into one message with results in the API's own words.
    """
    rules, call = work.rules, spot.call
    if spot.partner is None:
        return
    result = spot.partner.result
    # Where others leave the name out, the conversion finds it by the id; the API's own words it leaves alone.
    is_unlinked = not result.call_id and not _needs_id(work, spot)
    if rules.result_names and (result.name or joins_own or is_unlinked) and result.name != call.name:
        work.note("wrong-result-name", spot.partner.draft, f"a result does not repeat the name {shown(call.name)}")
        _change_result(spot.partner, name=call.name)
    is_named = bool(result.name) and result.name != call.name and rules.speaker_names and work.owns(spot.partner.draft)
    if is_named and not is_valid(result.name, rules.name_pattern, rules.name_length):
        what = f"the {rules.name} API does not allow the name {shown(result.name)}"
        work.note("invalid-speaker-name", spot.partner.draft, what)
        _change_result(spot.partner, name=call.name)
    if result.call_id != call.id and (result.call_id or _needs_id(work, spot)):
        work.note(
            "unmatched-id", spot.partner.draft, f"a result for {shown(call.name)} does not have the id of its call"
        )
        _change_result(spot.partner, call_id=call.id)


def _needs_id(work: Work, spot: Spot) -> bool:
    """Whether a call must have an id: where the API matches by it, and where conversion does."""
    return work.rules.call_ids or not work.owns(spot.draft)


class _Ids:
    """Which ids are taken."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._taken: set[str] = set()
        self._batch: set[str] = set()
        self._counts: dict[str, int] = {}

    def begin_batch(self) -> None:
        """From now on, ids may occur again where they need not be unique in the whole list."""
        self._batch.clear()

    def identify(self, spot: Spot) -> None:
        """Give a call another id if it needs one, and its result with it."""
        rules, given = self._work.rules, spot.call.id
        answered = spot.partner.result.call_id if spot.partner else ""
        if (not given and not _needs_id(self._work, spot)) or self._is_unsent(spot):
            return
        if not given:
            self._work.note("missing-id", spot.draft, f"a call of {shown(spot.call.name)} has no id")
            new = self._free(sanitize_name(answered or _ID, rules.id_pattern, rules.id_length))
        elif rules.call_ids and not is_valid(given, rules.id_pattern, rules.id_length):
            self._work.note("invalid-id", spot.draft, f"the {rules.name} API does not allow the id {shown(given)}")
            new = self._free(sanitize_name(given, rules.id_pattern, rules.id_length))
        elif given in (self._taken if self._is_unique(spot) else self._batch):
            self._work.note("duplicate-id", spot.draft, f"an earlier call already has the id {shown(given)}")
            new = self._free(given)
        else:
            new = given
        self._taken.add(new)
        self._batch.add(new)
        if new != given:
            # A former call is written without an id: one that needs another id becomes a call of today.
            _change_call(spot, id=new, extra=_modern(spot.call))
            if spot.partner and answered == given:
                _change_result(spot.partner, call_id=new, extra=_modern(spot.partner.result))

    def _is_unsent(self, spot: Spot) -> bool:
        """True if the id is the dialect's own, for the function call of former times, which has none."""
        return FORMER in spot.call.extra and self._work.owns(spot.draft)

    def _is_unique(self, spot: Spot) -> bool:
        """Whether an id may occur only once in the list: also where conversion finds the name of a tool by it."""
        return self._work.rules.unique_ids or (self._work.rules.result_names and not self._work.owns(spot.draft))

    def _free(self, wanted: str) -> str:
        """The id that is wanted, or the first with a number behind it that is not taken."""
        name, number = wanted, self._counts.get(wanted, 1)
        while name in self._taken:
            number += 1
            ending = f"_{number}"
            length = self._work.rules.id_length
            name = wanted[: length - len(ending)] + ending if length else wanted + ending
        self._counts[wanted] = number
        return name


def is_valid(name: str, pattern: str, length: int) -> bool:
    """Whether an id or a name is what the API allows."""
    return (not length or len(name) <= length) and (not pattern or bool(re.fullmatch(pattern, name)))


def sanitize_name(name: str, pattern: str, length: int) -> str:
    """Return a name with `_` for every character that is not allowed, and no longer than allowed."""
    if pattern:
        name = "".join(letter if re.fullmatch(pattern, f"_{letter}") else "_" for letter in name)
        name = name if re.fullmatch(pattern, name) else f"_{name}"
    return name[:length] if length else name


def _modern(part: ToolCall | ToolResult) -> Mapping[str, Any]:
    if FORMER not in part.extra:
        return part.extra
    return {key: value for key, value in part.extra.items() if key != FORMER}


def _change_call(spot: Spot, **changes: Any) -> None:  # noqa: ANN401 - fields of a call
    spot.draft.parts[spot.place] = replace(spot.call, **changes)


def _change_result(spot: Spot, **changes: Any) -> None:  # noqa: ANN401 - fields of a result
    spot.draft.parts[spot.place] = replace(spot.result, **changes)
