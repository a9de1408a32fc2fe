"""Paths of a transcript, and the turns and steps they become, as a session would have recorded them.

A turn begins with a user message and ends with a reply that calls no tool, or with the next user message. Messages that
a program sent in the user's name belong to the turn before. `recording/new_steps.py` lists the data of a step; imported
ones have `imported`, the lines of each message, `time`, and `kinds` where not every message is a person's or a model's
own. Steps that others may follow have the totals up to them: `spent`, `turns`, `messages` and `all_tokens`. A step was
created when its first message was sent; one without messages, when the last message before it was.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.history.groups import UnansweredCalls
from nexus_core.ledger.store import new_ids
from nexus_core.session.steps.numbering import (
    CONTINUES,
    TOKENS,
    continues,
    is_counted,
    opens_turn,
    tokens_until,
    turns_until,
)
from nexus_core.session.steps.recorded import CallKey
from nexus_core.session.steps.spending import added, subtract_usage, written
from nexus_core.session.steps.tail import Tail
from nexus_core.session.steps.turns import client_calls, read_usage
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.tokens.messages import count_messages
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from nexus_core.session.steps.recorded import RecordedCall
    from nexus_core.transcripts.base import (
        BranchKind,
        Transcript,
        TranscriptBranch,
        TranscriptCompaction,
        TranscriptEntry,
    )
    from nexus_core.types.ledger import Ledger, Step, StepKind
    from nexus_core.types.messages import Message

if TYPE_CHECKING:
    PathKind = Literal["main"] | BranchKind

Key = tuple[int, int]
"""An item of a transcript: its path, and its place there."""


class Summed(NamedTuple):
    """A compaction at its place.

    Attributes:
        compaction: What the transcript says of it.
        kept: The first item of the path that the model still read; None where it read none of them any more.
    """

    compaction: TranscriptCompaction
    kept: int | None


class Path(NamedTuple):
    """Items that follow each other.

    Attributes:
        kind: Why it is one of its own.
        name: The subagent's name.
        items: What was said, and where it was compacted.
        leaves: The path it leaves, by its place in the list; None where nothing comes before it.
        at: How many items of that path come before it.
    """

    kind: PathKind
    name: str
    items: tuple[TranscriptEntry | Summed, ...]
    leaves: int | None = None
    at: int = 0


def time_of(item: TranscriptEntry | Summed) -> str:
    """When it was, as the transcript has it."""
    return item.compaction.time if isinstance(item, Summed) else item.time


def read_paths(transcript: Transcript) -> list[Path]:
    """The main path, then the branches in their order."""
    main = _Main(transcript)
    paths = [Path("main", transcript.agent, main.items)]
    for branch in transcript.branches:
        leaves, at = _start(branch, transcript.branches, main)
        paths.append(Path(branch.kind, branch.name, branch.entries, leaves, at))
    return paths


def in_order(paths: Sequence[Path]) -> list[int]:
    """The paths, each behind the one it leaves; else as they come."""
    done: dict[int, None] = {}
    for number in range(len(paths)):
        waiting: dict[int, None] = {}
        here: int | None = number
        while here is not None and here not in done and here not in waiting:
            waiting[here] = None
            here = paths[here].leaves
        done.update(dict.fromkeys(reversed(waiting)))
    return list(done)


def backwards(paths: Sequence[Path], path: int, count: int) -> Iterator[Key]:
    """The items before a place, the nearest first: of the path, and of those it leaves."""
    seen: set[int] = set()
    here: int | None = path
    while here is not None and here not in seen:
        seen.add(here)
        for place in range(count - 1, -1, -1):
            yield here, place
        left = paths[here]
        here, count = left.leaves, left.at


class _Main:
    """The main path, with its compactions among the entries."""

    def __init__(self, transcript: Transcript) -> None:
        self.places: list[int] = []  # of each entry among the items
        count = len(transcript.entries)
        # One at the end that does not say anything yet is still being written.
        self._compactions = [each for each in transcript.compactions if each.at < count or each.context]
        items: list[TranscriptEntry | Summed] = []
        left = list(self._compactions)
        for number, entry in enumerate(transcript.entries):
            while left and left[0].at <= number:
                items.append(self._summed(left.pop(0)))
            self.places.append(len(items))
            items.append(entry)
        items += [self._summed(each) for each in left]
        self.items = tuple(items)

    def until(self, at: int, line: int) -> int:
        """How many items come before a line that follows so many entries."""
        count = self.places[at - 1] + 1
        return count + sum(each.at == at and each.line < line for each in self._compactions)

    def _summed(self, compaction: TranscriptCompaction) -> Summed:
        is_kept = compaction.kept_from < min(compaction.at, len(self.places))
        return Summed(compaction, self.places[compaction.kept_from] if is_kept else None)


def _start(branch: TranscriptBranch, branches: Sequence[TranscriptBranch], main: _Main) -> tuple[int | None, int]:
    if branch.kind == "subagent" and (branch.leaves is None or branches[branch.leaves].name != branch.name):
        return None, 0  # it has its own task, and reads nothing of what was said before
    if not branch.at:
        return None, 0
    if branch.leaves is None:
        return 0, main.until(branch.at, branch.entries[0].lines[0])
    return branch.leaves + 1, branch.at


MESSAGES = "messages"
"""Where steps write down how many messages there are up to them."""


class Tally(NamedTuple):
    """What a thread consists of.

    Attributes:
        turns: How many in which something was said; a compaction between two is none.
        steps: How many.
        messages: How many; an input that was sealed counts once.
        tokens: What they take, whoever counted.
    """

    turns: int = 0
    steps: int = 0
    messages: int = 0
    tokens: int = 0


def messages_of(kind: StepKind, count: int) -> int:
    """How many messages a step adds, of so many that stand in it; one that is sealed repeats the input."""
    return 0 if kind == "sealed" else count


def tally(steps: Iterable[NewStep]) -> Tally:
    """What steps consist of that follow each other from the first on."""
    turns = count = messages = tokens = 0
    is_open = False
    for step in steps:
        turns += not is_open and is_counted(step) and not continues(step)
        count += 1
        messages += messages_of(step.kind, len(step.messages))
        tokens += step.tokens
        is_open = not step.closes
    return Tally(turns, count, messages, tokens)


def tally_until(ledger: Ledger, tip: str | None) -> Tally:
    """What a thread in a ledger consists of; of a long one, no more is read than it takes to know."""
    if tip is None:
        return Tally()
    tail = Tail(ledger)
    step = tail.step(tip)
    return Tally(turns_until(tail, step), step.position + 1, _messages_until(tail, step), tokens_until(tail, step))


def _messages_until(tail: Tail, tip: Step) -> int:
    def is_numbered(steps: Sequence[Step]) -> bool:
        return any(MESSAGES in step.data for step in steps)

    found = 0
    for step in reversed(tail.newest(tip.id, is_numbered)):
        if isinstance(number := step.data.get(MESSAGES), int):
            return found + number
        found += messages_of(step.kind, len(step.messages))
    return found


_LATEST = 1 << 50
"""Milliseconds that a ledger takes for a time."""


def read_moment(text: str) -> int | None:
    """Milliseconds since 1970; None where a text is no time, or one that no clock ever showed.

    Args:
        text: As ISO 8601 has it, in UTC where no zone is named, or seconds since 1970.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return _read_seconds(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    try:
        return _within(time.timestamp())
    except (OverflowError, ValueError):  # in the year 0, or after 9999, once the zone is taken off
        return None


def _read_seconds(text: str) -> int | None:
    try:
        return _within(float(text))
    except (OverflowError, ValueError):
        return None


def _within(seconds: float) -> int | None:
    moment = round(seconds * 1000)
    return moment if 0 <= moment < _LATEST else None


UNASKED = ""
"""In the place of a step, for a result that answers no call of its turn."""


class OpenCalls:
    """The calls of a turn that wait for a result; true as long as there are any.

    Args:
        pending: Those that are recorded.
    """

    def __init__(self, pending: Iterable[RecordedCall] = ()) -> None:
        self._waiting = UnansweredCalls()
        self._keys: list[CallKey] = []
        self._asked = 0
        for each in pending:
            self._waiting.add(each.call)
            self._keys.append(each.key)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ask(self, step: str, messages: Sequence[Message]) -> None:
        """What a reply asks for."""
        calls = client_calls(messages)
        for place, call in enumerate(calls):
            self._waiting.add(call)
            self._keys.append(CallKey(step, place))
        self._asked = len(calls)

    def answer(self, result: ToolResult) -> CallKey:
        """The call that a result answers; one that answers none stands behind all others."""
        place = self._waiting.take(result)
        return CallKey(UNASKED, self._asked) if place is None else self._keys[place]


if TYPE_CHECKING:
    Placed = tuple[Key, TranscriptEntry | Summed]
    RunKind = Literal["said", "reply", "result", "compaction"]


class ImportRun(NamedTuple):
    """Items of one kind.

    Attributes:
        kind: Who speaks: the user or a program in the user's name, the model, tools; or where it was compacted.
        items: The items.
        prompt: How many of them come before the first that the user said.
        goes_on: Whether the model goes on by itself behind them, before the user says anything.
        is_followed: Whether a program says something behind them, in the user's name.
    """

    kind: RunKind
    items: Sequence[Placed]
    prompt: int
    goes_on: bool = False
    is_followed: bool = False


def entries_of(items: Sequence[Placed]) -> list[TranscriptEntry]:
    """What was said in items, compactions left out."""
    return [item for _, item in items if not isinstance(item, Summed)]


def find_runs(items: Sequence[Placed]) -> list[ImportRun]:
    """The runs of items that follow each other; what a compaction keeps begins with one."""
    kept = {(key[0], item.kept) for key, item in items if isinstance(item, Summed)}
    kinds = [_kind(item) for _, item in items]
    ends = [0]
    while ends[-1] < len(items):
        ends.append(_end(items, kinds, ends[-1], kept))
    runs: list[ImportRun] = []  # the last first, because each says what follows it
    for end, start in pairwise(reversed(ends)):
        runs.append(_run(kinds[start], items[start:end], runs[-1] if runs else None))
    return runs[::-1]


def _run(kind: RunKind, items: Sequence[Placed], following: ImportRun | None) -> ImportRun:
    prompt = next((place for place, (_, item) in enumerate(items) if is_prompt(item)), len(items))
    if following is None:
        return ImportRun(kind, items, prompt)
    is_answered = following.kind in ("reply", "result")
    goes_on = is_answered or (following.goes_on and following.prompt == len(following.items))
    return ImportRun(kind, items, prompt, goes_on, is_followed=following.kind == "said" and following.prompt > 0)


def _end(items: Sequence[Placed], kinds: Sequence[RunKind], start: int, kept: Container[tuple[int, int | None]]) -> int:
    kind, end = kinds[start], start + 1
    if kind == "compaction":
        return end
    reply = _reply_of(items[start][1])
    while end < len(items) and kinds[end] == kind and items[end][0] not in kept:
        if kind == "reply" and _reply_of(items[end][1]) != reply:
            break
        end += 1
    return end


def _kind(item: TranscriptEntry | Summed) -> RunKind:
    if isinstance(item, Summed):
        return "compaction"
    message = item.message
    if message.role == "assistant":
        return "reply"
    return "result" if any(type(part) is ToolResult for part in message.parts) else "said"


def is_prompt(item: TranscriptEntry | Summed) -> bool:
    """Whether it is something that the user said."""
    return not isinstance(item, Summed) and item.kind == "said" and item.message.role == "user"


def _reply_of(item: TranscriptEntry | Summed) -> str:
    return "" if isinstance(item, Summed) else item.reply


MOST_BRANCHES = 1000
"""So many branches become sessions; of more, which nobody ever made by hand, the file alone tells."""
LEAST_ROOM = 100_000
"""Tokens that may be there twice in any case; else as many as the transcript has."""
ESTIMATE = SimpleTokenCounter()
"""Counting as a model does takes longer, and most of a long session is never sent again; what is, is counted then."""


class Weights:
    """What the items of a transcript take.

    Args:
        paths: The transcript.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._known: dict[Key, int] = {}

    def of(self, key: Key) -> int:
        """What an item takes; nothing for a compaction."""
        if key not in self._known:
            item = self._paths[key[0]].items[key[1]]
            self._known[key] = 0 if isinstance(item, Summed) else count_messages(ESTIMATE, (item.message,))
        return self._known[key]

    def worthy(self, order: Sequence[int]) -> set[int]:
        """The paths that become sessions: the main one, and as many branches as there is room for.

        The same for the same transcript, whatever of it is in the ledger already.

        Args:
            order: The paths, each behind the one it leaves.
        """
        if len(order) == 1:
            return {0}
        every = ((path, place) for path in order for place in range(len(self._paths[path].items)))
        room = max(LEAST_ROOM, sum(map(self.of, every)))
        found = {0}
        for number in order:
            again = self._again(number, room) if number else 0
            if again <= room and len(found) <= MOST_BRANCHES:
                found.add(number)
                room -= again
        return found

    def _again(self, number: int, most: int) -> int:
        """What of the turn in which a branch leaves is there twice; more than `most` is not told apart."""
        path = self._paths[number]
        found = 0
        for key in backwards(self._paths, path.leaves, path.at) if path.leaves is not None else ():
            item = self._paths[key[0]].items[key[1]]
            found += self.of(key)
            if is_prompt(item) or found > most:
                break
        return found


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
        self._continues = continues(first) or first.id != first.turn  # else a turn begins again

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
            usage = added(usages) if len(usages) > 1 else usages[0]
            data["usage"] = written(usage)
            self._spent = added((self._spent, usage))
        if self._continues:
            data[CONTINUES] = True
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
        self._turns += not self._is_open and is_counted(step) and not continues(step)
        self._count += 1
        self._messages += messages_of(step.kind, len(step.messages))
        self._tokens += step.tokens
        if not is_end:
            return None
        data |= {"spent": written(self._spent), "turns": self._turns, MESSAGES: self._messages, TOKENS: self._tokens}
        return Sums(self._spent, Tally(self._turns, self._count, self._messages, self._tokens))


def replacements(item: Summed) -> tuple[Message, ...]:
    """What the model read in the place of a summary, where that was more than the summary."""
    context = item.compaction.context
    is_plain = all(entry.kind == "summary" for entry in context) and len(context) <= 1
    return () if is_plain else tuple(entry.message for entry in context)
