"""What was said becomes turns and steps, as a session would have recorded them.

A turn begins with what the user said and ends with an answer that calls no tool, or when the user spoke again. What a
program said in the user's name belongs to the turn before. What a step knows besides its messages is listed in
`recording/new_steps.py`; imported ones have `imported`, the lines of each message, `time`, and `kinds` where not
everything was somebody's own word. Those that something may be put behind have the sums up to them: `spent`, `turns`,
`messages` and `all_tokens`. A step was made when its first message was said; one in which nobody says anything, when
the last one was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.ledger.store import new_ids
from nexus_core.session.importing.calls import OpenCalls
from nexus_core.session.importing.paths import Summed, time_of
from nexus_core.session.importing.runs import entries_of, find_runs
from nexus_core.session.importing.tallies import MESSAGES, Tally, messages_of
from nexus_core.session.importing.times import read_moment
from nexus_core.session.importing.weights import ESTIMATE
from nexus_core.thread.totals import (
    CONTINUES_FIELD,
    TOKENS_FIELD,
    add_usages,
    continues_turn,
    counts_as_turn,
    opens_turn,
    subtract_usage,
    usage_to_json,
)
from nexus_core.thread.turns import read_usage
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.session.importing.paths import Key
    from nexus_core.session.importing.runs import ImportRun, Placed
    from nexus_core.thread.turns import RecordedCall
    from nexus_core.transcripts.base import TranscriptEntry
    from nexus_core.types.ledger import Step, StepKind
    from nexus_core.types.messages import Message


class Sums(NamedTuple):
    """What a thread adds up to: what it cost, and what it consists of."""

    spent: Usage = Usage()
    tally: Tally = Tally()


class Woven(NamedTuple):
    """A step, the items it holds, and the sums up to it where something may be put behind it."""

    step: NewStep
    keys: tuple[Key, ...]
    sums: Sums | None


class ImportResumePoint(NamedTuple):
    """Where a thread stands to which something is added.

    Attributes:
        is_open: Whether a turn is open.
        has_begun: Whether anybody has answered in it.
        pending: What was called in it and waits for a result.
        sums: The sums up to there.
    """

    is_open: bool = False
    has_begun: bool = False
    pending: tuple[RecordedCall, ...] = ()
    sums: Sums = Sums()


class Weaver:
    """Makes steps of items.

    Args:
        standing: Where the thread stands.
        api: The dialect of the messages.
        weigh: What an item takes.
        kept: The step that has an item, which the model still read after a compaction.
    """

    def __init__(
        self, standing: ImportResumePoint, api: str, weigh: Callable[[Key], int], kept: Callable[[Key], str | None]
    ) -> None:
        self._is_open, self._has_begun = standing.is_open, standing.has_begun
        self._calls = OpenCalls(standing.pending)
        self._spent, (self._turns, self._count, self._messages, self._tokens) = standing.sums
        self._moment: int | None = None
        self._api = api
        self._weigh = weigh
        self._find_kept = kept
        self._continues = False
        self._woven: list[Woven] = []
        self._steps: dict[Key, str] = {}
        self._names = new_ids()

    def take_back(self, steps: Sequence[Step], compaction: str | None) -> None:
        """Leave out the newest steps with messages: the transcript has something else in their place.

        The sums that follow are those of a thread that never had them.

        Args:
            steps: The steps, with all of their messages.
            compaction: The compaction that holds where the thread ends.
        """
        if self._is_open:  # the calls of a reply that counts no more wait for nothing
            self._append("interrupted", (), {"answers": [], "imported": []}, (), closes=True)
        for step in steps:
            self._spent = subtract_usage(self._spent, read_usage(step.data.get("usage")) or Usage())
            self._messages -= messages_of(step.kind, len(step.messages))
            self._tokens -= step.tokens
            self._turns -= opens_turn(step)
        count = sum(len(step.messages) for step in steps)
        data: dict[str, Any] = {"restores": compaction, "popped": count, "imported": []}
        self._append("revert", (), data, (), closes=True)
        first = steps[0]
        self._continues = continues_turn(first) or first.id != first.turn  # else a turn begins again

    def weave(self, items: Sequence[Placed]) -> list[Woven]:
        """The steps of items that follow each other."""
        runs = find_runs(items)
        self._moment = next(filter(None, (read_moment(time_of(item)) for _, item in items)), None)
        for run in runs:
            is_last = run is runs[-1]
            if run.kind == "compaction":
                self._compact(run, is_last=is_last)
            elif run.kind == "said":
                self._say(run, is_last=is_last)
            elif run.kind == "reply":
                self._reply(run, is_last=is_last)
            else:
                self._answer(run, is_last=is_last)
        if self._is_open and self._has_begun:  # what it is about was sent as it stands
            self._append("sealed", (), {"imported": []}, (), closes=False, is_last=True)
        return self._woven

    # ---- kinds of steps -------------------------------------------------------------------------------------

    def _say(self, run: ImportRun, *, is_last: bool) -> None:
        """What the user said opens a turn; what was said in the user's name goes into the turn before."""
        prompt = run.prompt
        if self._is_open and not self._has_begun:  # more of what the turn is about
            prompt = len(run.items)
        told, said = run.items[:prompt], run.items[prompt:]
        # Nobody waits for an answer to what only a program said, unless there is one.
        ends = bool(said) or not run.goes_on
        ends = ends and not self._calls and (self._has_begun or not self._is_open)
        self._tell(told, closes=ends, is_last=is_last and not said)
        if said and self._is_open:
            self._append("interrupted", (), {"answers": [], "imported": []}, (), closes=True)
        self._tell(said, closes=False, is_last=is_last)

    def _tell(self, items: Sequence[Placed], *, closes: bool, is_last: bool) -> None:
        """Something said, in two steps where it opens a turn: a turn is about one message."""
        first = len(items) if self._is_open else 1
        parts = [part for part in (items[:first], items[first:]) if part]
        for part in parts:
            ends = part is parts[-1]
            self._add("input", part, entries_of(part), {}, closes=closes and ends, is_last=is_last and ends)

    def _reply(self, run: ImportRun, *, is_last: bool) -> None:
        entries = entries_of(run.items)
        last = entries[-1]
        model = last.model or next((entry.model for entry in entries if entry.model), "")
        data: dict[str, Any] = {"id": last.reply, "stop": last.stop, "model": model, "api": self._api}
        usages = [entry.usage for entry in entries if entry.usage]
        if usages:
            usage = add_usages(usages) if len(usages) > 1 else usages[0]
            data["usage"] = usage_to_json(usage)
            self._spent = add_usages((self._spent, usage))
        if self._continues:
            data[CONTINUES_FIELD] = True
            self._continues = False
        name = next(self._names)
        self._calls.ask(name, [entry.message for entry in entries])
        closes = not (self._calls or last.stop == "pause" or run.goes_on or run.is_followed)
        self._add("reply", run.items, entries, data, closes=closes, is_last=is_last, name=name)
        self._has_begun = not closes

    def _answer(self, run: ImportRun, *, is_last: bool) -> None:
        entries = entries_of(run.items)
        results = [result for entry in entries for result in entry.message.tool_results]
        answers = [list(self._calls.answer(result)) for result in results]
        self._add("result", run.items, entries, {"answers": answers}, closes=False, is_last=is_last)
        self._has_begun = True

    def _compact(self, run: ImportRun, *, is_last: bool) -> None:
        key, item = run.items[0]
        assert isinstance(item, Summed)  # noqa: S101 - the run says so
        compaction = item.compaction
        first_kept = None if item.kept is None else (key[0], item.kept)
        data: dict[str, Any] = {
            "summary": compaction.summary,
            "first_kept": None if first_kept is None else self._steps.get(first_kept) or self._find_kept(first_kept),
            "tokens_before": compaction.tokens_before,
            "imported": [[compaction.line]],
        }
        self._note_time(compaction.time, data)
        self._append("compaction", replacements(item), data, (key,), closes=not self._is_open, is_last=is_last)

    # ---- adding ---------------------------------------------------------------------------------------------

    def _add(
        self,
        kind: StepKind,
        items: Sequence[Placed],
        entries: Sequence[TranscriptEntry],
        data: dict[str, Any],
        *,
        closes: bool,
        is_last: bool,
        name: str = "",
    ) -> None:
        data["context"] = [None] * len(entries)
        data["imported"] = [[*entry.lines] for entry in entries]
        self._note_time(entries[0].time, data)
        kinds = [entry.kind for entry in entries]
        if kinds.count("said") < len(kinds):
            data["kinds"] = kinds
        messages, keys = tuple([entry.message for entry in entries]), tuple([key for key, _ in items])
        self._append(kind, messages, data, keys, closes=closes, is_last=is_last, name=name)

    def _note_time(self, time: str, data: dict[str, Any]) -> None:
        if time:
            data["time"] = time
            self._moment = read_moment(time) or self._moment

    def _append(
        self,
        kind: StepKind,
        messages: tuple[Message, ...],
        data: dict[str, Any],
        keys: tuple[Key, ...],
        *,
        closes: bool,
        is_last: bool = False,
        name: str = "",
    ) -> None:
        sizes = self._sizes(kind, messages, keys)
        if len(sizes) > 1:
            data["sizes"] = sizes
        step = NewStep(
            kind=kind,
            closes=closes,
            messages=messages,
            tokens=sum(sizes),
            counter=ESTIMATE.name,
            data=data,
            id=name or next(self._names),
            created=self._moment,
        )
        sums = self._added_up(step, data, is_end=closes or is_last)
        self._woven.append(Woven(step, keys, sums))
        self._steps.update(dict.fromkeys(keys, step.id))
        self._is_open = not closes
        if closes:
            self._has_begun = False
            self._calls = OpenCalls()

    def _sizes(self, kind: StepKind, messages: Sequence[Message], keys: Sequence[Key]) -> list[int]:
        """What each message takes; what stands in the place of a summary is no item of its own."""
        if kind == "compaction":
            return [ESTIMATE.count_messages((message,)) for message in messages]
        return [self._weigh(key) for key in keys]

    def _added_up(self, step: NewStep, data: dict[str, Any], *, is_end: bool) -> Sums | None:
        """The sums up to a step, written into its data, where something may be put behind it."""
        self._turns += not self._is_open and counts_as_turn(step) and not continues_turn(step)
        self._count += 1
        self._messages += messages_of(step.kind, len(step.messages))
        self._tokens += step.tokens
        if not is_end:
            return None
        data |= {
            "spent": usage_to_json(self._spent),
            "turns": self._turns,
            MESSAGES: self._messages,
            TOKENS_FIELD: self._tokens,
        }
        return Sums(self._spent, Tally(self._turns, self._count, self._messages, self._tokens))


def replacements(item: Summed) -> tuple[Message, ...]:
    """What the model read in the place of a summary, where that was more than the summary."""
    context = item.compaction.context
    is_plain = all(entry.kind == "summary" for entry in context) and len(context) <= 1
    return () if is_plain else tuple(entry.message for entry in context)
