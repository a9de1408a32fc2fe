"""What was said becomes turns and steps, as a session would have recorded them.

A turn begins with what the user said and ends with an answer that calls no tool, or when the user spoke again. What a
program said in the user's name belongs to the turn before which, or in which, it stands. What a step knows besides its
messages is listed in `session/recording.py`; imported ones have `imported`, the lines of each message, `time`, and
`kinds` where not everything was somebody's own word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.history.ledger.ids import new_id
from nexus_core.session.importing.calls import OpenCalls
from nexus_core.session.importing.paths import Summed
from nexus_core.session.spending import added
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.values.conversation import Usage
from nexus_core.values.ledger import NewStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.transcript import Entry
    from nexus_core.session.importing.paths import Key
    from nexus_core.session.recorded import RecordedCall
    from nexus_core.values.ledger import StepKind
    from nexus_core.values.message import Message

    Placed = tuple[Key, Entry | Summed]

ESTIMATE = SimpleTokenCounter()
"""Counting as a model does takes longer than all the rest; whoever asks a session counts what it sends, once."""


class Woven(NamedTuple):
    """A step, and the items it holds."""

    step: NewStep
    keys: tuple[Key, ...] = ()


class Standing(NamedTuple):
    """Where a thread stands to which something is added.

    Attributes:
        is_open: Whether a turn is open.
        has_begun: Whether anybody has answered in it.
        pending: What was called in it and waits for a result.
        spent: What the thread has cost.
    """

    is_open: bool = False
    has_begun: bool = False
    pending: tuple[RecordedCall, ...] = ()
    spent: Usage = Usage()


class Weaver:
    """Makes steps of items.

    Args:
        standing: Where the thread stands.
        api: The dialect of the messages.
        kept: The step that has an item, which the model still read after a compaction.
    """

    def __init__(self, standing: Standing, api: str, kept: Callable[[Key], str | None]) -> None:
        self._is_open, self._has_begun = standing.is_open, standing.has_begun
        self._calls = OpenCalls(standing.pending)
        self._spent = standing.spent
        self._api = api
        self._find_kept = kept
        self._woven: list[Woven] = []
        self._steps: dict[Key, str] = {}

    def weave(self, items: Sequence[Placed]) -> list[Woven]:
        """The steps of items that follow each other."""
        place = 0
        while place < len(items):
            kind = _kind(items[place][1])
            end = _end(items, place, kind)
            run = items[place:end]
            if kind == "compaction":
                self._compact(run[0])
            elif kind == "said":
                self._say(run, is_last=end == len(items))
            elif kind == "reply":
                self._reply(run, goes_on=_goes_on(items, end))
            else:
                self._answer(run)
            place = end
        if self._woven:
            newest = self._woven[-1]
            data = {**newest.step.data, "spent": asdict(self._spent)}
            self._woven[-1] = newest._replace(step=replace(newest.step, data=data))
        return self._woven

    # ---- kinds of steps -------------------------------------------------------------------------------------

    def _say(self, run: Sequence[Placed], *, is_last: bool) -> None:
        """What the user said opens a turn; what was only said in the user's name goes into the one that is open."""
        is_new = any(_is_prompt(item) for _, item in run)
        if self._is_open and self._has_begun and is_new:
            self._give_up()
        # Nobody waits for an answer to what only a program said at the end.
        self._add("input", run, {}, closes=is_last and not is_new and not self._calls)

    def _reply(self, run: Sequence[Placed], *, goes_on: bool) -> None:
        entries = [item for _, item in run if not isinstance(item, Summed)]
        last = entries[-1]
        data: dict[str, Any] = {
            "id": last.reply,
            "stop": last.stop,
            "model": last.model or next((entry.model for entry in entries if entry.model), ""),
            "api": self._api,
        }
        usages = [entry.usage for entry in entries if entry.usage]
        if usages:
            usage = added(usages) if len(usages) > 1 else usages[0]
            data["usage"] = asdict(usage)
            self._spent = added([self._spent, usage])
        name = new_id()
        self._calls.ask(name, [entry.message for entry in entries])
        closes = not self._calls and last.stop != "pause" and not goes_on
        self._add("reply", run, data, closes=closes, name=name)
        self._has_begun = True

    def _answer(self, run: Sequence[Placed]) -> None:
        messages = [item.message for _, item in run if not isinstance(item, Summed)]
        keys = [self._calls.answer(result) for message in messages for result in message.tool_results]
        self._add("result", run, {"answers": [list(key) for key in keys]})
        self._has_begun = True

    def _compact(self, placed: Placed) -> None:
        key, item = placed
        assert isinstance(item, Summed)  # noqa: S101 - the caller has looked
        compaction = item.compaction
        first_kept = None if item.kept is None else (key[0], item.kept)
        data = {
            "summary": compaction.summary,
            "first_kept": None if first_kept is None else self._steps.get(first_kept) or self._find_kept(first_kept),
            "tokens_before": compaction.tokens_before,
            "imported": [[compaction.line]],
            **({"time": compaction.time} if compaction.time else {}),
        }
        self._append("compaction", replacements(item), data, (key,), closes=not self._is_open)

    def _give_up(self) -> None:
        """End a turn that nobody finished; what was called and not answered stays so."""
        self._append("interrupted", (), {"answers": [], "imported": []}, (), closes=True)

    # ---- adding ---------------------------------------------------------------------------------------------

    def _add(
        self, kind: StepKind, run: Sequence[Placed], data: dict[str, Any], *, closes: bool = False, name: str = ""
    ) -> None:
        entries = [item for _, item in run if not isinstance(item, Summed)]
        messages = tuple([entry.message for entry in entries])
        data["context"] = [None] * len(messages)
        data["imported"] = [list(entry.lines) for entry in entries]
        if entries[0].time:
            data["time"] = entries[0].time
        if any(entry.kind != "said" for entry in entries):
            data["kinds"] = [entry.kind for entry in entries]
        self._append(kind, messages, data, tuple([key for key, _ in run]), closes=closes, name=name)

    def _append(
        self,
        kind: StepKind,
        messages: tuple[Message, ...],
        data: dict[str, Any],
        keys: tuple[Key, ...],
        *,
        closes: bool,
        name: str = "",
    ) -> None:
        sizes = [ESTIMATE.count_messages([message]) for message in messages]
        if len(sizes) > 1:
            data["sizes"] = sizes
        if closes:  # whoever goes on from here need not add it up
            data["spent"] = asdict(self._spent)
        step = NewStep(
            kind=kind,
            closes=closes,
            messages=messages,
            tokens=sum(sizes),
            counter=ESTIMATE.name,
            data=data,
            id=name or new_id(),
        )
        self._woven.append(Woven(step, keys))
        self._steps.update(dict.fromkeys(keys, step.id))
        self._is_open = not closes
        if closes:
            self._has_begun = False
            self._calls = OpenCalls()


def replacements(item: Summed) -> tuple[Message, ...]:
    """What the model read in the place of a summary, where that was more than the summary."""
    context = item.compaction.context
    is_plain = all(entry.kind == "summary" for entry in context) and len(context) <= 1
    return () if is_plain else tuple(entry.message for entry in context)


def _kind(item: Entry | Summed) -> str:
    if isinstance(item, Summed):
        return "compaction"
    if item.message.role == "assistant":
        return "reply"
    return "result" if item.message.tool_results else "said"


def _end(items: Sequence[Placed], start: int, kind: str) -> int:
    """Where a step ends that begins with an item."""
    end = start + 1
    while kind != "compaction" and end < len(items) and _kind(items[end][1]) == kind:
        if kind == "reply" and _reply_of(items[end][1]) != _reply_of(items[start][1]):
            break
        end += 1
    return end


def _reply_of(item: Entry | Summed) -> str:
    return "" if isinstance(item, Summed) else item.reply


def _goes_on(items: Sequence[Placed], place: int) -> bool:
    """Whether the model goes on by itself from a place, before the user says anything."""
    for at in range(place, len(items)):
        item = items[at][1]
        kind = _kind(item)
        if kind in ("reply", "result"):
            return True
        if kind == "said" and _is_prompt(item):
            return False
    return False


def _is_prompt(item: Entry | Summed) -> bool:
    return not isinstance(item, Summed) and item.kind == "said" and item.message.role == "user"
