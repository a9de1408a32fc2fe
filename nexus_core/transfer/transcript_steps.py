"""Paths of a transcript, and the turns and steps they become.

A turn begins with a user message and ends with a reply that calls no tool, or with the next user message. Messages that
a program sent in the user's name belong to the turn before. Imported steps have `imported`, the lines of each message,
`time`, and `kinds` where not every message is a person's or a model's own. Steps that others may follow have the totals
up to them. A step was created when its first message was sent; one without messages, when the last message before it
was.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.history.groups import UnansweredCalls
from nexus_core.ledger.store import new_ids
from nexus_core.thread.cache import ThreadCache
from nexus_core.thread.state import (
    add_usages,
    continues_turn,
    count_tokens,
    count_turns,
    counts_as_turn,
    find_client_calls,
    get_step_usage,
    opens_turn,
    subtract_usage,
)
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.tokens.messages import count_messages
from nexus_core.transcripts.base import TranscriptCompaction
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import ToolResult, Usage
from nexus_core.types.payloads import (
    CompactionPayload,
    InterruptedPayload,
    RenderedPayload,
    ReplyPayload,
    ResultPayload,
    RevertPayload,
    StepPayload,
    ToolCallKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from nexus_core.thread.state import Turn
    from nexus_core.transcripts.base import BranchKind, Transcript, TranscriptBranch, TranscriptEntry
    from nexus_core.types.ledger import Ledger, Step, StepKind
    from nexus_core.types.messages import Message, ToolCall

    PathItem = TranscriptEntry | TranscriptCompaction
    PathKind = Literal["main"] | BranchKind
    _KeyedItem = tuple["ItemKey", PathItem]
    _RunKind = Literal["input", "reply", "result", "compaction"]

ItemKey = tuple[int, int]
"""The number of a path, and the index of an item in it."""

MAX_BRANCHES = 1000
"""Branches that become sessions. No person makes more by hand; the stored file has the others."""
MIN_REPEATED_TOKENS = 100_000
"""Tokens that branches may repeat in any case; a longer transcript allows as many as it has."""
ESTIMATE = SimpleTokenCounter()
"""Exact counts take longer, and most of a long session is never sent again. What is sent is counted then."""
MAX_TIME_MS = 1 << 50
"""The largest time that a ledger accepts, in milliseconds since 1970."""
_NO_STEP = ""
"""Instead of the step of a call, for a result that answers no call of its turn."""


# ---- paths --------------------------------------------------------------------------------------------------------


class TranscriptThread(NamedTuple):
    """The main path or a branch of a transcript.

    Attributes:
        kind: The main path, or the kind of the branch.
        name: The subagent's name.
        items: Entries and compactions, in their order.
        leaves: Number of the path that it forks from; None if nothing comes before it.
        at: Number of items of that path before the fork.
    """

    kind: PathKind
    name: str
    items: tuple[PathItem, ...]
    leaves: int | None = None
    at: int = 0


class TranscriptThreads:
    """The main path of a transcript, its branches, and the size of their items.

    Attributes:
        paths: The main path, then the branches in their order.
        order: Numbers of the paths, each after the one it forks from.
        advance: Called with the share of each item when it is measured; None for nothing.
    """

    def __init__(self, transcript: Transcript, advance: Callable[[float], None] | None = None) -> None:
        self.advance = advance
        self._indexes: list[int] = []  # of each entry of the main path among its items
        self._tokens: dict[ItemKey, int] = {}
        count = len(transcript.entries)
        # A compaction at the end without a summary is still being written.
        self._compactions = [each for each in transcript.compactions if each.at < count or each.context]
        self.paths = [TranscriptThread("main", transcript.agent, self._join_main_path(transcript.entries))]
        for branch in transcript.branches:
            leaves, at = self._find_fork(branch, transcript.branches)
            self.paths.append(TranscriptThread(branch.kind, branch.name, branch.entries, leaves, at))
        self.order = self._sort_paths()
        self._share = 1 / max(sum(len(path.items) for path in self.paths), 1)

    def get_item(self, key: ItemKey) -> PathItem:
        """Return an item of a path."""
        return self.paths[key[0]].items[key[1]]

    def find_first_kept(self, compaction: TranscriptCompaction) -> ItemKey | None:
        """Return the first item before a compaction that the model still reads."""
        is_kept = compaction.kept_from < min(compaction.at, len(self._indexes))
        return (0, self._indexes[compaction.kept_from]) if is_kept else None

    def walk_back(self, path: int | None, count: int) -> Iterator[ItemKey]:
        """Yield the items before an index, nearest first.

        After those of the path come those of the paths it forks from.
        """
        seen: set[int] = set()
        while path is not None and path not in seen:
            seen.add(path)
            for index in range(count - 1, -1, -1):
                yield path, index
            here = self.paths[path]
            path, count = here.leaves, here.at

    def count_tokens(self, key: ItemKey) -> int:
        """Estimate the tokens of an item. A compaction has none."""
        if key not in self._tokens:
            item = self.get_item(key)
            found = 0 if isinstance(item, TranscriptCompaction) else count_messages(ESTIMATE, (item.message,))
            self._tokens[key] = found
            if self.advance is not None:
                self.advance(self._share)
        return self._tokens[key]

    def select_sessions(self) -> list[int]:
        """Return the paths that become sessions: the main path and most branches.

        A session can only be forked where a turn ends. A branch that leaves inside a turn repeats the beginning of the
        turn, so that a crafted file could become a thousand times as large. The choice depends on nothing but the
        transcript, whatever the ledger has of it.
        """
        if len(self.order) == 1:
            return [0]
        keys = ((path, index) for path in self.order for index in range(len(self.paths[path].items)))
        room = max(MIN_REPEATED_TOKENS, sum(map(self.count_tokens, keys)))
        found = {0}
        for number in self.order:
            repeated = self._count_repeated_tokens(number, room) if number else 0
            if repeated <= room and len(found) <= MAX_BRANCHES:
                found.add(number)
                room -= repeated
        return [number for number in self.order if number in found]

    def _count_repeated_tokens(self, number: int, limit: int) -> int:
        """Count the tokens of the turn that a branch repeats, up to a limit."""
        path = self.paths[number]
        found = 0
        for key in self.walk_back(path.leaves, path.at):
            found += self.count_tokens(key)
            if _is_user_message(self.get_item(key)) or found > limit:
                break
        return found

    def _join_main_path(self, entries: Sequence[TranscriptEntry]) -> tuple[PathItem, ...]:
        items: list[PathItem] = []
        left = list(self._compactions)
        for number, entry in enumerate(entries):
            while left and left[0].at <= number:
                items.append(left.pop(0))
            self._indexes.append(len(items))
            items.append(entry)
        return (*items, *left)

    def _find_fork(self, branch: TranscriptBranch, branches: Sequence[TranscriptBranch]) -> tuple[int | None, int]:
        """Return the path that a branch leaves, and the items before the fork."""
        if branch.kind == "subagent" and (branch.leaves is None or branches[branch.leaves].name != branch.name):
            return None, 0  # it has a task of its own, and reads nothing of the conversation
        if not branch.at:
            return None, 0
        if branch.leaves is not None:
            return branch.leaves + 1, branch.at
        line = branch.entries[0].lines[0]
        before = sum(each.at == branch.at and each.line < line for each in self._compactions)
        return 0, self._indexes[branch.at - 1] + 1 + before

    def _sort_paths(self) -> list[int]:
        done: dict[int, None] = {}
        for number in range(len(self.paths)):
            waiting: dict[int, None] = {}
            here: int | None = number
            while here is not None and here not in done and here not in waiting:
                waiting[here] = None
                here = self.paths[here].leaves
            done.update(dict.fromkeys(reversed(waiting)))
        return list(done)


def list_replacements(compaction: TranscriptCompaction) -> tuple[Message, ...]:
    """Return what the model reads after a compaction, if more than the summary."""
    context = compaction.context
    is_plain = all(entry.kind == "summary" for entry in context) and len(context) <= 1
    return () if is_plain else tuple(entry.message for entry in context)


def _is_user_message(item: PathItem) -> bool:
    """True if the user wrote it, and no program in the user's name."""
    return not isinstance(item, TranscriptCompaction) and item.kind == "said" and item.message.role == "user"


# ---- totals -------------------------------------------------------------------------------------------------------


class ThreadTotals(NamedTuple):
    """Totals of a thread, as `import`, `list` and `stats` print them.

    Attributes:
        turns: Turns with messages; a compaction between two turns does not count.
        steps: All steps.
        messages: Messages; a rendered input counts once.
        tokens: Tokens of the messages, by whichever counter.
    """

    turns: int = 0
    steps: int = 0
    messages: int = 0
    tokens: int = 0


def add_up_steps(steps: Iterable[NewStep]) -> ThreadTotals:
    """Return the totals of consecutive steps from the first of a thread on."""
    turns = count = messages = tokens = 0
    is_open = False
    for step in steps:
        turns += not is_open and counts_as_turn(step) and not continues_turn(step)
        count += 1
        messages += _count_new_messages(step.kind, len(step.messages))
        tokens += step.tokens
        is_open = not step.closes
    return ThreadTotals(turns, count, messages, tokens)


def read_totals(ledger: Ledger, tip: str | None) -> ThreadTotals:
    """Return the totals of a stored thread.

    Reads only the steps since the last one that has totals.
    """
    if tip is None:
        return ThreadTotals()
    tail = ThreadCache(ledger)
    step = tail.get_step(tip)
    messages = _count_messages_until(tail, step)
    return ThreadTotals(count_turns(tail, step), step.position + 1, messages, count_tokens(tail, step))


def _count_messages_until(tail: ThreadCache, tip: Step) -> int:
    def is_numbered(steps: Sequence[Step]) -> bool:
        return any(step.payload.total_messages is not None for step in steps)

    found = 0
    for step in reversed(tail.read_newest(tip.id, is_numbered)):
        if step.payload.total_messages is not None:
            return found + step.payload.total_messages
        found += _count_new_messages(step.kind, len(step.messages))
    return found


def _count_new_messages(kind: StepKind, count: int) -> int:
    """Return how many of a step's messages count. `sealed` repeats the input."""
    return 0 if kind == "sealed" else count


# ---- steps --------------------------------------------------------------------------------------------------------


class StepBuilder:
    """Builds the steps of consecutive items.

    Attributes:
        totals: Totals and usage of the thread up to each step that others may follow, by the step's id.

    Args:
        paths: The transcript.
        api: The dialect of the messages.
        count_tokens: Returns the tokens of an item.
        find_step: Returns the step of an item that is in the thread already; None if there is none.
        turn: The thread's open turn; None if there is none.
        totals: Totals of the thread so far.
        spent: Usage of the thread so far.
    """

    def __init__(
        self,
        paths: TranscriptThreads,
        api: str,
        count_tokens: Callable[[ItemKey], int],
        find_step: Callable[[ItemKey], str | None],
        *,
        turn: Turn | None,
        totals: ThreadTotals,
        spent: Usage,
    ) -> None:
        self._paths = paths
        self._api = api
        self._count_tokens = count_tokens
        self._find_step = find_step
        self._is_open = turn is not None
        self._has_begun = turn is not None and any(step.kind in ("reply", "result") for step in turn.steps)
        self._turns, self._count, self._messages, self._all_tokens = totals
        self._spent = spent
        self._time: int | None = None
        self._continues = False
        self._forget_calls()
        for each in turn.pending if turn is not None else ():
            self._add_call(each.call, each.key)
        self._ids = new_ids()
        self._built: list[tuple[NewStep, tuple[ItemKey, ...]]] = []
        self._kept: set[ItemKey] = set()
        self._kept_steps: dict[ItemKey, str] = {}
        self.totals: dict[str, tuple[ThreadTotals, Usage]] = {}

    def revert(self, steps: Sequence[Step], compaction: str | None) -> None:
        """Take back the newest steps with messages, which the transcript has replaced.

        The totals from here on are those of a thread that never had them.

        Args:
            steps: The steps to take back, with all of their messages.
            compaction: The compaction in effect at the end of the thread.
        """
        if self._is_open:  # calls of a reply that no longer counts wait for no result
            self._append("interrupted", (), _encode_interruption(), (), closes=True)
        for step in steps:
            self._spent = subtract_usage(self._spent, get_step_usage(step) or Usage())
            self._messages -= _count_new_messages(step.kind, len(step.messages))
            self._all_tokens -= step.tokens
            self._turns -= opens_turn(step)
        count = sum(len(step.messages) for step in steps)
        data = RevertPayload.encode(restores=compaction, popped=count, imported=[])
        self._append("revert", (), data, (), closes=True)
        first = steps[0]
        self._continues = continues_turn(first) or first.id != first.turn  # else a turn begins again

    def build(self, keys: Iterable[ItemKey]) -> list[tuple[NewStep, tuple[ItemKey, ...]]]:
        """Return the steps of `revert` and of consecutive items, with their items."""
        items = [(key, self._paths.get_item(key)) for key in keys]
        first_kept = [self._paths.find_first_kept(item) for _, item in items if isinstance(item, TranscriptCompaction)]
        self._kept = set(filter(None, first_kept))
        runs = _find_runs(items, self._kept)
        self._time = next(filter(None, (parse_timestamp(item.time) for _, item in items)), None)
        for run in runs:
            is_last = run is runs[-1]
            if run.kind == "compaction":
                self._add_compaction(run, is_last=is_last)
            elif run.kind == "input":
                self._add_inputs(run, is_last=is_last)
            elif run.kind == "reply":
                self._add_reply(run, is_last=is_last)
            else:
                self._add_results(run, is_last=is_last)
        if self._is_open and self._has_begun:  # the input was sent as it is
            self._append("sealed", (), RenderedPayload.encode(imported=[]), (), closes=False, is_last=True)
        return self._built

    def _add_inputs(self, run: _Run, *, is_last: bool) -> None:
        """Open a turn with the user's messages.

        Messages of a program before them belong to the turn before.
        """
        count = run.first_user_message
        if self._is_open and not self._has_begun:  # more input of the same turn
            count = len(run.items)
        before, own = run.items[:count], run.items[count:]
        # Messages of a program alone wait for no reply, unless there is one.
        ends = bool(own) or not run.is_continued
        ends = ends and not self._waiting and (self._has_begun or not self._is_open)
        self._add_input(before, closes=ends, is_last=is_last and not own)
        if own and self._is_open:
            self._append("interrupted", (), _encode_interruption(), (), closes=True)
        self._add_input(own, closes=False, is_last=is_last)

    def _add_input(self, items: Sequence[_KeyedItem], *, closes: bool, is_last: bool) -> None:
        """Add messages as one step, or as two if they open a turn.

        The first step of a turn has one message.
        """
        first = len(items) if self._is_open else 1
        parts = [part for part in (items[:first], items[first:]) if part]
        for part in parts:
            ends = part is parts[-1]
            is_end = is_last and ends
            self._add("input", part, _list_entries(part), {}, closes=closes and ends, is_last=is_end)

    def _add_reply(self, run: _Run, *, is_last: bool) -> None:
        entries = _list_entries(run.items)
        last = entries[-1]
        model = last.model or next((entry.model for entry in entries if entry.model), "")
        fields: dict[str, Any] = {}
        usages = [entry.usage for entry in entries if entry.usage]
        if usages:
            fields["usage"] = usage = add_usages(usages) if len(usages) > 1 else usages[0]
            self._spent += usage
        if self._continues:
            fields["continues"] = True
            self._continues = False
        data = ReplyPayload.encode(id=last.reply, stop=last.stop, model=model, api=self._api, **fields)
        step_id = next(self._ids)
        calls = find_client_calls([entry.message for entry in entries])
        for index, call in enumerate(calls):
            self._add_call(call, ToolCallKey(step_id, index))
        self._newest_calls = len(calls)
        closes = not (self._waiting or last.stop == "pause" or run.is_continued or run.is_followed_by_program)
        self._add("reply", run.items, entries, data, closes=closes, is_last=is_last, step_id=step_id)
        self._has_begun = not closes

    def _add_results(self, run: _Run, *, is_last: bool) -> None:
        entries = _list_entries(run.items)
        results = [result for entry in entries for result in entry.message.tool_results]
        data = ResultPayload.encode(answers=[self._take_call(result) for result in results])
        self._add("result", run.items, entries, data, closes=False, is_last=is_last)
        self._has_begun = True

    def _add_compaction(self, run: _Run, *, is_last: bool) -> None:
        key, compaction = run.items[0]
        assert isinstance(compaction, TranscriptCompaction)  # noqa: S101 - the kind of the run
        first = self._paths.find_first_kept(compaction)
        data = CompactionPayload.encode(
            summary=compaction.summary,
            first_kept=None if first is None else self._kept_steps.get(first) or self._find_step(first),
            tokens_before=compaction.tokens_before,
            imported=[[compaction.line]],
        )
        data |= self._read_time(compaction.time)
        replacements = list_replacements(compaction)
        self._append("compaction", replacements, data, (key,), closes=not self._is_open, is_last=is_last)

    # ---- tool calls ------------------------------------------------------------------------------------------

    def _forget_calls(self) -> None:
        self._waiting = UnansweredCalls()
        self._call_keys: list[ToolCallKey] = []
        self._newest_calls = 0

    def _add_call(self, call: ToolCall, key: ToolCallKey) -> None:
        self._waiting.add(call)
        self._call_keys.append(key)

    def _take_call(self, result: ToolResult) -> ToolCallKey:
        """Return the call that a result answers.

        A result without a call is sent after all others.
        """
        index = self._waiting.take(result)
        return ToolCallKey(_NO_STEP, self._newest_calls) if index is None else self._call_keys[index]

    # ---- one step --------------------------------------------------------------------------------------------

    def _add(
        self,
        kind: StepKind,
        items: Sequence[_KeyedItem],
        entries: Sequence[TranscriptEntry],
        data: dict[str, Any],
        *,
        closes: bool,
        is_last: bool,
        step_id: str = "",
    ) -> None:
        data |= {"context": [None] * len(entries), "imported": [[*entry.lines] for entry in entries]}
        data |= self._read_time(entries[0].time)
        kinds = [entry.kind for entry in entries]
        if kinds.count("said") < len(kinds):
            data["kinds"] = kinds
        messages, keys = tuple([entry.message for entry in entries]), tuple([key for key, _ in items])
        self._append(kind, messages, data, keys, closes=closes, is_last=is_last, step_id=step_id)

    def _read_time(self, time: str) -> dict[str, str]:
        """Return the field of a step that stores a time; steps are created at that time from here on."""
        if not time:
            return {}
        self._time = parse_timestamp(time) or self._time
        return {"time": time}

    def _append(
        self,
        kind: StepKind,
        messages: tuple[Message, ...],
        data: dict[str, Any],
        keys: tuple[ItemKey, ...],
        *,
        closes: bool,
        is_last: bool = False,
        step_id: str = "",
    ) -> None:
        if kind == "compaction":  # its messages are not items of their own
            sizes = [ESTIMATE.count_messages((message,)) for message in messages]
        else:
            sizes = [self._count_tokens(key) for key in keys]
        step_id = step_id or next(self._ids)
        tokens = sum(sizes)
        if not self._is_open:
            first = NewStep(kind=kind, closes=closes, messages=messages, data=data)
            self._turns += counts_as_turn(first) and not continues_turn(first)
        self._count += 1
        self._messages += _count_new_messages(kind, len(messages))
        self._all_tokens += tokens
        if len(sizes) > 1:
            data["sizes"] = sizes
        if closes or is_last:  # others may follow it
            totals = ThreadTotals(self._turns, self._count, self._messages, self._all_tokens)
            self.totals[step_id] = totals, self._spent
            data |= StepPayload.encode(
                total_usage=self._spent,
                turns=totals.turns,
                total_messages=totals.messages,
                total_tokens=totals.tokens,
            )
        step = NewStep(
            kind=kind,
            closes=closes,
            messages=messages,
            tokens=tokens,
            counter=ESTIMATE.name,
            data=data,
            id=step_id,
            created=self._time,
        )
        self._built.append((step, keys))
        self._kept_steps.update(dict.fromkeys(self._kept.intersection(keys), step.id))
        self._is_open = not closes
        if closes:
            self._has_begun = False
            self._forget_calls()


class _Run(NamedTuple):
    """Consecutive items of one author, which become a step or two.

    Attributes:
        kind: The kind of their steps.
        items: The items.
        first_user_message: How many come before the first message of the user; a program sent those.
        is_continued: True if the model continues after them before the user's next message.
        is_followed_by_program: True if a program's message in the user's name follows.
    """

    kind: _RunKind
    items: Sequence[_KeyedItem]
    first_user_message: int
    is_continued: bool = False
    is_followed_by_program: bool = False


def _find_runs(items: Sequence[_KeyedItem], kept: Container[ItemKey]) -> list[_Run]:
    """Split items into runs. The first item that a compaction keeps begins one."""
    kinds = [_get_run_kind(item) for _, item in items]
    ends = [0]
    while ends[-1] < len(items):
        ends.append(_find_run_end(items, kinds, ends[-1], kept))
    runs: list[_Run] = []  # the last first, because each depends on the one after it
    for end, start in pairwise(reversed(ends)):
        runs.append(_build_run(kinds[start], items[start:end], runs[-1] if runs else None))
    return runs[::-1]


def _build_run(kind: _RunKind, items: Sequence[_KeyedItem], following: _Run | None) -> _Run:
    first = next((index for index, (_, item) in enumerate(items) if _is_user_message(item)), len(items))
    if following is None:
        return _Run(kind, items, first)
    is_answered = following.kind in ("reply", "result")
    is_by_program = following.first_user_message == len(following.items)
    is_continued = is_answered or (following.is_continued and is_by_program)
    follows_program = following.kind == "input" and following.first_user_message > 0
    return _Run(kind, items, first, is_continued, follows_program)


def _find_run_end(items: Sequence[_KeyedItem], kinds: Sequence[_RunKind], start: int, kept: Container[ItemKey]) -> int:
    kind, end = kinds[start], start + 1
    if kind == "compaction":
        return end
    reply = _get_reply_id(items[start][1])
    while end < len(items) and kinds[end] == kind and items[end][0] not in kept:
        if kind == "reply" and _get_reply_id(items[end][1]) != reply:
            break
        end += 1
    return end


def _get_run_kind(item: PathItem) -> _RunKind:
    if isinstance(item, TranscriptCompaction):
        return "compaction"
    message = item.message
    if message.role == "assistant":
        return "reply"
    return "result" if ToolResult in map(type, message.parts) else "input"


def _encode_interruption() -> dict[str, Any]:
    """Return the data of a step that ends a turn without results for its calls."""
    return InterruptedPayload.encode(answers=(), imported=[])


def _get_reply_id(item: PathItem) -> str:
    return "" if isinstance(item, TranscriptCompaction) else item.reply


def _list_entries(items: Sequence[_KeyedItem]) -> list[TranscriptEntry]:
    return [item for _, item in items if not isinstance(item, TranscriptCompaction)]


def parse_timestamp(text: str) -> int | None:
    """Return milliseconds since 1970, or None if there is no valid time.

    Args:
        text: ISO 8601, in UTC if it names no time zone, or seconds since 1970.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return _parse_seconds(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    try:
        return _check_time(time.timestamp())
    except (OverflowError, ValueError):  # in the year 0, or after 9999, once the zone is subtracted
        return None


def _parse_seconds(text: str) -> int | None:
    try:
        return _check_time(float(text))
    except (OverflowError, ValueError):
        return None


def _check_time(seconds: float) -> int | None:
    time = round(seconds * 1000)
    return time if 0 <= time < MAX_TIME_MS else None
