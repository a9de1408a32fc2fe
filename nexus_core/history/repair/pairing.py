"""Repair rules for tool calls and results: pairing, ids, names and positions."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.calls import LEGACY_CALL_KEY, build_legacy_call_id
from nexus_core.dialects.fields import format_for_error
from nexus_core.history.groups import UnansweredCalls
from nexus_core.history.repair.draft import MessageDraft
from nexus_core.types.messages import Message, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from nexus_core.history.repair.draft import RepairWork
    from nexus_core.types.messages import Part


class PartPosition:
    """The position of a call or result: its draft, its index there, and its partner."""

    __slots__ = ("batch", "draft", "index", "partner")

    def __init__(self, draft: MessageDraft, index: int) -> None:
        self.draft = draft
        self.index = index
        self.partner: PartPosition | None = None
        self.batch: CallBatch | None = None

    @property
    def call(self) -> ToolCall:
        """The call at this position."""
        part = self.draft.parts[self.index]
        assert isinstance(part, ToolCall)  # noqa: S101 - positions are made for them only
        return part

    @property
    def result(self) -> ToolResult:
        """The result at this position."""
        part = self.draft.parts[self.index]
        assert isinstance(part, ToolResult)  # noqa: S101 - positions are made for them only
        return part


class CallBatch:
    """The calls of one turn, and where their results belong.

    Attributes:
        calls: The calls in their order.
        home: The draft after which another result belongs: the last of the turn, or of its results.
        mixed: The draft into which it belongs instead, because results are followed by other parts there.
        closed: True if other messages follow, so that missing results will not come any more.
        waiting: The calls without a result.
    """

    def __init__(self) -> None:
        self.calls: list[PartPosition] = []
        self.home: MessageDraft | None = None
        self.mixed: MessageDraft | None = None
        self.closed = False
        self.waiting = UnansweredCalls()

    def add(self, position: PartPosition) -> None:
        """Add a call."""
        position.batch = self
        self.calls.append(position)
        self.waiting.add(position.call)

    def answer(self, result: PartPosition) -> bool:
        """Pair a result with its call; return False if that is not waiting here."""
        index = self.waiting.take(result.result)
        if index is None:
            return False
        call = self.calls[index]
        call.partner, result.partner, result.batch = result, call, self
        return True


class CallPairing:
    """The calls and results of a conversation, matched with each other.

    Attributes:
        batches: The calls, turn by turn.
        late: Results separated from their call by other messages.
        early: Results before their call.
        duplicates: Results of calls that already have one.
        orphans: Results without a call.
    """

    def __init__(self, work: RepairWork) -> None:
        self.batches: list[CallBatch] = []
        self.late: list[PartPosition] = []
        self.early: list[PartPosition] = []
        self.duplicates: list[PartPosition] = []
        self.orphans: list[PartPosition] = []
        self._by_id: dict[str, deque[CallBatch]] = {}
        self._batch: CallBatch | None = None  # calls of the current turn
        self._zone: CallBatch | None = None  # calls whose results may come here
        before = None
        for draft in work.drafts:
            # Where results must follow at once, every reply has its own; conversion joins replies of other APIs.
            is_alone = work.rules.results == "each" and (
                work.is_native(draft) or (before is not None and work.is_native(before))
            )
            if self._enter(draft, is_alone=is_alone, moves_late=work.rules.results != "anywhere"):
                before = draft
        self._close_abandoned(before)
        for position in self.early:
            self._match_later(position)
        self.early = [position for position in self.early if position.partner]

    def _enter(self, draft: MessageDraft, *, is_alone: bool, moves_late: bool) -> bool:
        """Process the next message; return False if repair will remove all of it from its position.

        Such a message does not end a turn, because the repaired list is read without it.
        """
        if draft.role == "assistant":
            if is_alone or self._batch is None:
                self._close()
            self._open(draft)
            return True
        results = list(_find_positions(draft, ToolResult))
        for position in results:
            self._match(position)
        is_mixed = len(results) < len(draft.parts)
        if results and not is_mixed and all(self._is_removed(position, moves_late=moves_late) for position in results):
            return False
        if self._zone is not None and any(position.batch is self._zone for position in results):
            self._zone.home, self._zone.mixed = (self._zone.home, draft) if is_mixed else (draft, None)
        if is_mixed:
            self._close()
        self._batch = None
        return True

    def _is_removed(self, position: PartPosition, *, moves_late: bool) -> bool:
        """Return True if a result will be moved or dropped."""
        return position.batch is None or (moves_late and position.batch is not self._zone)

    def _open(self, draft: MessageDraft) -> None:
        calls = list(_find_positions(draft, ToolCall))
        if self._batch is None:
            self._batch = CallBatch()
        if calls and not self._batch.calls:
            self.batches.append(self._batch)
        for position in calls:
            self._batch.add(position)
            self._by_id.setdefault(position.call.id, deque()).append(self._batch)
        self._batch.home = draft
        self._zone = self._batch

    def _close(self) -> None:
        if self._zone is not None:
            self._zone.closed = True
        self._zone = self._batch = None

    def _close_abandoned(self, last: MessageDraft | None) -> None:
        """Close the last turn if it ends with a reply in text: earlier calls do not wait any longer."""
        batch = self._batch
        if batch is None or last is None or not batch.calls or last.has_calls:
            return
        if any(isinstance(part, Text) and part.text.strip() for part in last.parts):
            batch.closed, batch.home = True, batch.calls[-1].draft

    def _match(self, position: PartPosition) -> None:
        if self._zone is not None and self._zone.answer(position):
            return
        name = position.result.call_id
        batches = self._by_id.get(name) if name else None
        while batches and not batches[-1].waiting.has(name):
            batches.pop()  # its calls with this id have their results
        if batches:
            batches[-1].answer(position)
            self.late.append(position)
        elif batches is not None:
            self.duplicates.append(position)
        else:
            self.early.append(position)

    def _match_later(self, position: PartPosition) -> None:
        name = position.result.call_id
        batches = self._by_id.get(name) if name else None
        while batches and not batches[0].waiting.has(name):
            batches.popleft()
        if batches:
            batches[0].answer(position)
        else:
            self.orphans.append(position)


def _find_positions(draft: MessageDraft, kind: type) -> Iterator[PartPosition]:
    return (PartPosition(draft, index) for index, part in enumerate(draft.parts) if isinstance(part, kind))


UNKNOWN_TOOL_NAME = "unknown_tool"
_DEFAULT_CALL_ID = "call"


def name_calls(work: RepairWork, pairing: CallPairing) -> None:
    """Give every call an id and a name that the API accepts, and its result the same.

    New ids and names do not depend on later messages, so that a growing conversation keeps its ids.
    """
    ids = _CallIds(work)
    for batch in pairing.batches:
        ids.begin_batch()
        # The placeholder of a missing result has the API of its call.
        joins_native = any(
            work.is_native(position.partner.draft if position.partner else position.draft) for position in batch.calls
        )
        for position in batch.calls:
            _repair_name(work, position)
            ids.identify(position)
            _repair_result(work, position, joins_native=joins_native)


def _repair_name(work: RepairWork, position: PartPosition) -> None:
    rules, call = work.rules, position.call
    name = call.name
    if not name.strip():
        name = (position.partner.result.name.strip() if position.partner else "") or UNKNOWN_TOOL_NAME
        work.add_finding("blank-tool-name", position.draft, "a call names no tool")
        name = sanitize_name(name, rules.name_pattern, rules.name_length)
    elif not is_valid_name(name, rules.name_pattern, rules.name_length):
        name = sanitize_name(name, rules.name_pattern, rules.name_length)
        work.add_finding(
            "invalid-tool-name",
            position.draft,
            f"the {rules.name} API does not allow the tool name {format_for_error(call.name)}",
        )
    if name != call.name:
        if position.partner and position.partner.result.name:
            _change_result(position.partner, name=name)
        _change_call(position, name=name)
        if LEGACY_CALL_KEY in call.extra:
            _assign_legacy_id(position)


def _assign_legacy_id(position: PartPosition) -> None:
    """Give a legacy function call, and its result, the id that the dialect derives from its new name."""
    given = position.call.id
    _change_call(position, id=build_legacy_call_id(position.call.name))
    if position.partner and position.partner.result.call_id == given:
        _change_result(position.partner, call_id=position.call.id)


def _repair_result(work: RepairWork, position: PartPosition, *, joins_native: bool) -> None:
    """Make a result repeat the id and the name of its call.

    Args:
        work: The repair.
        position: The call.
        joins_native: True if its result may be joined with results that were read from the API itself.
    """
    rules, call = work.rules, position.call
    if position.partner is None:
        return
    result = position.partner.result
    # Conversion finds a missing name by the id, but only for results of other APIs.
    is_unlinked = not result.call_id and not _needs_id(work, position)
    if rules.result_names and (result.name or joins_native or is_unlinked) and result.name != call.name:
        work.add_finding(
            "wrong-result-name",
            position.partner.draft,
            f"a result does not repeat the name {format_for_error(call.name)}",
        )
        _change_result(position.partner, name=call.name)
    is_named = (
        bool(result.name)
        and result.name != call.name
        and rules.speaker_names
        and work.is_native(position.partner.draft)
    )
    if is_named and not is_valid_name(result.name, rules.name_pattern, rules.name_length):
        what = f"the {rules.name} API does not allow the name {format_for_error(result.name)}"
        work.add_finding("invalid-speaker-name", position.partner.draft, what)
        _change_result(position.partner, name=call.name)
    if result.call_id != call.id and (result.call_id or _needs_id(work, position)):
        work.add_finding(
            "unmatched-id",
            position.partner.draft,
            f"a result for {format_for_error(call.name)} does not have the id of its call",
        )
        _change_result(position.partner, call_id=call.id)


def _needs_id(work: RepairWork, position: PartPosition) -> bool:
    """Return True if a call needs an id, because the API or the conversion matches results by it."""
    return work.rules.call_ids or not work.is_native(position.draft)


class _CallIds:
    """The ids in use, and the choice of new ones."""

    def __init__(self, work: RepairWork) -> None:
        self._work = work
        self._taken: set[str] = set()
        self._batch: set[str] = set()
        self._counts: dict[str, int] = {}

    def begin_batch(self) -> None:
        """Start a new batch, in which ids may repeat unless they must be unique in the whole list."""
        self._batch.clear()

    def identify(self, position: PartPosition) -> None:
        """Replace the id of a call, and of its result, if it is missing, invalid or in use."""
        rules, given = self._work.rules, position.call.id
        answered = position.partner.result.call_id if position.partner else ""
        if (not given and not _needs_id(self._work, position)) or self._is_unsent(position):
            return
        if not given:
            self._work.add_finding(
                "missing-id", position.draft, f"a call of {format_for_error(position.call.name)} has no id"
            )
            new = self._free(sanitize_name(answered or _DEFAULT_CALL_ID, rules.id_pattern, rules.id_length))
        elif rules.call_ids and not is_valid_name(given, rules.id_pattern, rules.id_length):
            self._work.add_finding(
                "invalid-id", position.draft, f"the {rules.name} API does not allow the id {format_for_error(given)}"
            )
            new = self._free(sanitize_name(given, rules.id_pattern, rules.id_length))
        elif given in (self._taken if self._is_unique(position) else self._batch):
            self._work.add_finding(
                "duplicate-id", position.draft, f"an earlier call already has the id {format_for_error(given)}"
            )
            new = self._free(given)
        else:
            new = given
        self._taken.add(new)
        self._batch.add(new)
        if new != given:
            # A legacy function call is written without an id: one that needs an id becomes a tool call.
            _change_call(position, id=new, extra=_drop_legacy_mark(position.call))
            if position.partner and answered == given:
                _change_result(position.partner, call_id=new, extra=_drop_legacy_mark(position.partner.result))

    def _is_unsent(self, position: PartPosition) -> bool:
        """Return True for a legacy function call, whose id exists only inside of the dialect."""
        return LEGACY_CALL_KEY in position.call.extra and self._work.is_native(position.draft)

    def _is_unique(self, position: PartPosition) -> bool:
        """Return True if an id must be unique in the list, also because conversion finds the tool's name by it."""
        return self._work.rules.unique_ids or (
            self._work.rules.result_names and not self._work.is_native(position.draft)
        )

    def _free(self, wanted: str) -> str:
        """Return the wanted id, or the first one with a number appended that is not in use."""
        name, number = wanted, self._counts.get(wanted, 1)
        while name in self._taken:
            number += 1
            ending = f"_{number}"
            length = self._work.rules.id_length
            name = wanted[: length - len(ending)] + ending if length else wanted + ending
        self._counts[wanted] = number
        return name


def is_valid_name(name: str, pattern: str, length: int) -> bool:
    """Return True if an id or a name matches the API's pattern and maximum length."""
    return (not length or len(name) <= length) and (not pattern or bool(re.fullmatch(pattern, name)))


def sanitize_name(name: str, pattern: str, length: int) -> str:
    """Return a name with `_` for every invalid character, truncated to the maximum length."""
    if pattern:
        name = "".join(letter if re.fullmatch(pattern, f"_{letter}") else "_" for letter in name)
        name = name if re.fullmatch(pattern, name) else f"_{name}"
    return name[:length] if length else name


def _drop_legacy_mark(part: ToolCall | ToolResult) -> Mapping[str, Any]:
    if LEGACY_CALL_KEY not in part.extra:
        return part.extra
    return {key: value for key, value in part.extra.items() if key != LEGACY_CALL_KEY}


def _change_call(position: PartPosition, **changes: Any) -> None:  # noqa: ANN401 - fields of a call
    position.draft.parts[position.index] = replace(position.call, **changes)


def _change_result(position: PartPosition, **changes: Any) -> None:  # noqa: ANN401 - fields of a result
    position.draft.parts[position.index] = replace(position.result, **changes)


if TYPE_CHECKING:
    AddedResults = dict[int, list[MessageDraft]]
    """Results to add, by the `id()` of the draft that they belong to."""

NO_RESULT_TEXT = "[No result was recorded for this tool call.]"


def pair_results(work: RepairWork) -> None:
    """Give every call exactly one result, with its id and name, in the position that the API requires."""
    pairing = CallPairing(work)
    name_calls(work, pairing)
    late = [] if work.rules.results == "anywhere" else pairing.late
    for code, positions, what in (
        ("late-result", late, "does not follow its call"),
        ("early-result", pairing.early, "stands before its call"),
        ("duplicate-result", pairing.duplicates, "answers a call that has a result already"),
        ("orphan-result", pairing.orphans, "answers no call"),
    ):
        for position in positions:
            work.add_finding(
                code,
                position.draft,
                f"the result {_describe_call(position.result.call_id, position.result.name)} {what}",
            )
    moved = {id(position) for position in (*late, *pairing.early)}
    behind: AddedResults = {}
    inside: AddedResults = {}
    for batch in pairing.batches:
        additions = list(_build_added_results(work, batch, moved))
        (behind if batch.mixed is None else inside)[id(batch.mixed or batch.home)] = additions
    _move_results(work, behind, inside, [*late, *pairing.early, *pairing.duplicates, *pairing.orphans])


def order_results(work: RepairWork) -> None:
    """Put results before anything else in their message."""
    for draft in work.drafts:
        ordered = [*draft.results, *draft.others]
        if any(a is not b for a, b in zip(ordered, draft.parts, strict=True)):
            work.add_finding("results-not-first", draft, "something comes before the results")
            draft.parts = ordered


def join_results(work: RepairWork) -> None:
    """Join the results of a turn in one message; conversion joins those of other APIs."""
    drafts: list[MessageDraft] = []
    for has_results, neighbours in groupby(work.drafts, key=lambda draft: bool(draft.results)):
        turn = list(neighbours)
        native = next(filter(work.is_native, turn), None)
        if not has_results or len(turn) == 1 or native is None:
            drafts += turn
            continue
        for draft in turn[1:]:
            if not draft.is_added:
                work.add_finding("split-results", draft, "the results of one turn are split across several messages")
        others = turn[-1].others  # only the last can have other parts: after them, no result is of this turn
        results = [result for draft in turn for result in draft.results]
        drafts.append(native.copy([*results, *others], "user" if others else "tool"))
    work.drafts = drafts


def separate_results(work: RepairWork) -> None:
    """Move the parts beside results into a message of their own."""
    drafts: list[MessageDraft] = []
    for draft in work.drafts:
        results, others = draft.results, draft.others
        if results and others and work.is_native(draft):
            work.add_finding("results-not-alone", draft, "there is something besides the results")
            drafts += [draft.copy(results, "tool"), draft.copy(others, "user")]
        else:
            drafts.append(draft)
    work.drafts = drafts


def _build_added_results(work: RepairWork, batch: CallBatch, moved: set[int]) -> Iterator[MessageDraft]:
    """Yield the results to add after a batch, in the order of its calls."""
    for position in batch.calls:
        if position.partner is None:
            if batch.closed:  # otherwise the result may still come
                work.add_finding(
                    "missing-result",
                    position.draft,
                    f"the call {_describe_call(position.call.id, position.call.name)} has no result",
                )
                yield _build_missing_result(position, position.call.name if work.rules.result_names else "")
        elif id(position.partner) in moved:
            moved_draft = position.partner.draft.copy([position.partner.result], "tool")
            moved_draft.is_added = True
            yield moved_draft


def _describe_call(identity: str, tool: str) -> str:
    # Calls of Gemini often have no id; then only the tool's name distinguishes them.
    return format_for_error(identity) if identity or not tool else f"of {format_for_error(tool)}"


def _build_missing_result(position: PartPosition, name: str) -> MessageDraft:
    result = ToolResult(position.call.id, (Text(NO_RESULT_TEXT),), name, is_error=True)
    if LEGACY_CALL_KEY in position.call.extra:  # without an id, it is matched by its name
        result = replace(result, name=position.call.name, extra={LEGACY_CALL_KEY: True})
    return MessageDraft(position.draft.index, Message("tool", (result,), api=position.draft.message.api), is_added=True)


def _move_results(work: RepairWork, behind: AddedResults, inside: AddedResults, gone: list[PartPosition]) -> None:
    """Remove results from their messages, and add others behind or inside a message."""
    removed: dict[int, set[int]] = {}
    for position in gone:
        removed.setdefault(id(position.draft), set()).add(position.index)
    drafts: list[MessageDraft] = []
    for draft in work.drafts:
        without, more = removed.get(id(draft), ()), inside.get(id(draft), ())
        if without or more:
            draft.parts = _replace_results(draft, without, more)
        if draft.parts:
            drafts.append(draft)
        drafts += behind.get(id(draft), ())
    work.drafts = drafts


def _replace_results(draft: MessageDraft, without: Collection[int], more: Iterable[MessageDraft]) -> list[Part]:
    parts = [part for index, part in enumerate(draft.parts) if index not in without]
    last = max((index for index, part in enumerate(parts) if isinstance(part, ToolResult)), default=-1)
    return [*parts[: last + 1], *(result for each in more for result in each.results), *parts[last + 1 :]]
