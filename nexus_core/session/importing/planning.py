"""What an import adds to which session: nothing that is there already, nothing where somebody has gone on otherwise."""

from __future__ import annotations

from itertools import groupby, islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.session.importing.labels import name_path
from nexus_core.session.importing.marks import START, compaction_mark, message_mark
from nexus_core.session.importing.paths import Summed, backwards, in_order
from nexus_core.session.importing.tallies import Tally, tally_until
from nexus_core.session.importing.threads import Fork, ImportedThread, count_reverted_messages, shape_of
from nexus_core.session.importing.weaving import ImportResumePoint, Sums, Weaver, replacements
from nexus_core.session.importing.weights import Weights
from nexus_core.thread.turns import Turn, read_usage
from nexus_core.types.messages import Reasoning, Text, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.session.importing.marks import Mark
    from nexus_core.session.importing.paths import Key, Path
    from nexus_core.session.importing.runs import Placed
    from nexus_core.session.importing.weaving import Woven
    from nexus_core.transcripts.base import TranscriptEntry
    from nexus_core.types.ledger import Ledger, NewStep, Step

    _Compared = tuple[str, tuple[str, bool, str], list[Mark]]
    """A step: its turn, its shape, its items."""

GONE_ON = "somebody has gone on with {label!r} since it was imported"
EARLIER = "the transcript goes on from an earlier place than {label!r} stands at"

_MOST_REPLACED = 200
"""Messages that are added again at once: a session must not grow by all of itself with every import."""


class Growth(NamedTuple):
    """What is added to a session, or what is there of a path already.

    Attributes:
        path: The path of the transcript.
        label: The session.
        is_new: Whether it is made.
        after: The step behind which the steps go; None for none.
        steps: What is added; nothing where all of it is there.
        note: Why it is not the session that one would expect.
        tally: What the session consists of with them.
    """

    path: Path
    label: str
    is_new: bool = False
    after: str | None = None
    steps: tuple[NewStep, ...] = ()
    note: str = ""
    tally: Tally = Tally()


class ImportPlanner:
    """Compares a transcript with what was imported of it before.

    Args:
        ledger: Where sessions are; it is only read.
        paths: The transcript.
        known: What was imported, the main session first.
        label: What the main session is called.
        api: The dialect of the messages.
    """

    def __init__(
        self, ledger: Ledger, paths: Sequence[Path], known: Sequence[ImportedThread], label: str, api: str
    ) -> None:
        self._ledger = ledger
        self._paths = paths
        self._known = known
        self._label = label
        self._api = api
        self._weights = Weights(paths)
        self._marks: list[list[Mark]] = [[] for _ in paths]
        self._threads: dict[Mark, ImportedThread] = {}  # who has an item first
        self._sums: dict[str, Sums] = {}
        self._tallies: dict[str, Tally] = {}  # of sessions, with what is added to them
        self._grown: set[str] = set()
        self._named: set[str] = set()
        for thread in known:
            for mark in thread.places:
                self._threads.setdefault(mark, thread)

    def plan(self) -> list[Growth]:
        """What is added, path by path, each behind the one it leaves."""
        order = in_order(self._paths)
        for number in order:
            self._mark(number)
        worthy = self._weights.worthy(order)
        return [self._grow(number) for number in order if number in worthy]

    def _grow(self, number: int) -> Growth:
        path, marks = self._paths[number], self._marks[number]
        there = next((place for place, mark in enumerate(marks) if mark not in self._threads), len(marks))
        before = marks[there - 1] if there else self._mark_before(path)
        thread = self._continued(before) if there or number == 0 else None
        if thread is None and there < len(marks):
            thread = self._half_written(before, path.items[there:]) or (self._left(before) if number == 0 else None)
            if thread is None:
                return self._leave(number, there, before)
        growth = None if thread is None else self._go_on(number, there, before, thread)
        if growth is not None:
            return growth
        label = self._threads[marks[-1]].label if marks else self._label
        return Growth(path, label, tally=self._tally_of(label))

    def _go_on(self, number: int, there: int, before: Mark, thread: ImportedThread) -> Growth | None:
        """Add to a session what it does not have yet; None if it has everything.

        Turns at its end are replaced if they are not what they would be had all of the transcript been imported at
        once: more of a reply has been written since, or its usage, or the transcript went back.
        """
        keys: list[Key] = [(number, place) for place in range(there, len(self._paths[number].items))]
        own = self._own_keys(thread, number, there)
        replaced = thread.newest_behind(before)
        changed = self._find_changed(thread, [*own, *keys], [*map(self._mark_of, own), *replaced])
        if self._may_replace(thread, changed):
            first = len(own) + len(replaced) - len(changed)
            replaced, keys = changed, [*own[first:], *keys]
        if not keys:
            return None
        after = thread.tip
        self._grown.add(thread.label)
        steps = self._weave(keys, self._standing(after), thread, replaced=replaced)
        return Growth(self._paths[number], thread.label, after=after, steps=steps, tally=self._tallies[thread.label])

    def _own_keys(self, thread: ImportedThread, number: int, there: int) -> list[Key]:
        """Return the last items that a path and a thread have in common, from the beginning of a turn on.

        Those that other threads have, too, are left out, and more than could be replaced.
        """
        keys = takewhile(lambda key: self._mark_of(key) in thread.places, backwards(self._paths, number, there))
        found = [*islice(keys, _MOST_REPLACED + 1)][::-1]
        if len(found) <= _MOST_REPLACED:
            return found
        names = [thread.places[self._mark_of(key)].step for key in found]
        starts = (at for at in range(1, len(names)) if names[at] != names[at - 1])
        return found[next((at for at in starts if thread.shapes[names[at]].turn == names[at]), len(found)) :]

    def _find_changed(self, thread: ImportedThread, keys: Sequence[Key], known: Sequence[Mark]) -> list[Mark]:
        """Return the items of a thread from the first turn on that would be another if all was imported at once.

        Args:
            thread: The thread.
            keys: What the transcript has from the thread's first own item on.
            known: What the thread has.
        """
        weaver = Weaver(ImportResumePoint(), self._api, lambda _: 0, lambda _: None)
        woven = [each for each in weaver.weave(self._placed(keys)) if each.keys]
        wanted = _join_results([("", shape_of(each.step), [*map(self._mark_of, each.keys)]) for each in woven])
        groups = groupby(known, key=lambda mark: thread.places[mark].step)
        there = _join_results([(*thread.shapes[name], [*marks]) for name, marks in groups])
        for at, (turn, content, marks) in enumerate(there):
            _, new, found = wanted[at] if at < len(wanted) else ("", None, [])
            is_growing = at == len(there) - 1 and content[0] == "result"  # each may come by itself
            if new != content or (found[: len(marks)] if is_growing else found) != marks:
                first = next(place for place in range(at + 1) if there[place][0] == turn)
                return [mark for _, _, each in there[first:] for mark in each]
        return []

    def _may_replace(self, thread: ImportedThread, marks: Sequence[Mark]) -> bool:
        """True if items can be added again: not too many, and no compaction among them."""
        kinds = {thread.shapes[thread.places[mark].step].content[0] for mark in marks}
        return 0 < len(marks) <= _MOST_REPLACED and "compaction" not in kinds

    def _leave(self, number: int, there: int, before: Mark) -> Growth:
        """A session that begins at the end of the nearest turn before; what follows that is added again."""
        path = self._paths[number]
        keys: list[Key] = [(number, place) for place in range(len(path.items) - 1, there - 1, -1)]
        fork = None
        for key in backwards(self._paths, number, there):
            fork = self._fork(self._marks[key[0]][key[1]])
            if fork is not None:
                break
            keys.append(key)
        label = self._name(path, number)
        after = fork.step if fork else None
        steps = self._weave(keys[::-1], ImportResumePoint(sums=self._sums_at(after)), ImportedThread(label, fork))
        note = self._why(before) if there or number == 0 else ""
        return Growth(path, label, True, after, steps, note, self._tallies[label])  # noqa: FBT003 - named

    def _weave(
        self, keys: Sequence[Key], standing: ImportResumePoint, thread: ImportedThread, *, replaced: Sequence[Mark] = ()
    ) -> tuple[NewStep, ...]:
        def kept(key: Key) -> str | None:
            place = thread.find(self._marks[key[0]][key[1]])
            return place.step if place else None

        weaver = Weaver(standing, self._api, self._weights.of, kept)
        if replaced:
            tip = self._ledger.step(thread.tip or "")
            weaver.take_back(self._steps_of(thread, replaced), tip.compaction if tip else None)
            for mark in replaced:
                self._forget(mark, thread)
        woven = weaver.weave(self._placed(keys))
        for each in woven:
            self._note(each, thread)
        return tuple(each.step for each in woven)

    def _note(self, woven: Woven, thread: ImportedThread) -> None:
        marks = [*map(self._mark_of, woven.keys)]
        if woven.step.kind == "revert":
            thread.take_back(woven.step.id, count_reverted_messages(woven.step))
        else:
            thread.add(woven.step.id, marks, closes=woven.step.closes)
        for mark in marks:
            self._threads.setdefault(mark, thread)
        if woven.sums is not None:
            self._sums[woven.step.id] = woven.sums
            self._tallies[thread.label] = woven.sums.tally

    # ---- what there is --------------------------------------------------------------------------------------

    def _mark(self, number: int) -> None:
        """Mark the items of a path; where nothing was imported before, any marks that differ will do."""
        path, found = self._paths[number], self._marks[number]
        if not self._known:
            found += [b"%d.%d" % (number, place) for place in range(len(path.items))]
            return
        before = self._mark_before(path)
        for item in path.items:
            if isinstance(item, Summed):
                before = compaction_mark(before, item.compaction.summary, replacements(item))
            else:
                before = message_mark(before, item.message)
            found.append(before)

    def _placed(self, keys: Iterable[Key]) -> list[Placed]:
        return [(key, self._paths[key[0]].items[key[1]]) for key in keys]

    def _mark_of(self, key: Key) -> Mark:
        return self._marks[key[0]][key[1]]

    def _mark_before(self, path: Path) -> Mark:
        return START if path.leaves is None or not path.at else self._marks[path.leaves][path.at - 1]

    def _continued(self, mark: Mark) -> ImportedThread | None:
        """The session that ends with an item, and may be gone on with."""
        ending = (thread for thread in self._known if thread.end == mark and thread.is_untouched)
        return next((thread for thread in ending if mark != START and thread.label not in self._grown), None)

    def _half_written(self, before: Mark, items: Sequence[TranscriptEntry | Summed]) -> ImportedThread | None:
        """The session that may be gone on with and ends with the beginning of a reply, behind a mark.

        Results of the reply may follow it there: tools are called while the rest of a reply is written.
        """
        item = items[0]
        if isinstance(item, Summed) or item.message.role != "assistant":
            return None
        for thread in self._known:
            behind = thread.newest_behind(before)
            if not behind or not thread.is_untouched or thread.label in self._grown:
                continue
            reply, *results = (self._ledger.step(thread.places[mark].step) for mark in behind[:_MOST_REPLACED])
            is_reply = reply is not None and reply.kind == "reply" and _is_beginning(reply, item)
            if is_reply and len(behind) <= _MOST_REPLACED and _are_answered(results, items):
                return thread
        return None

    def _left(self, before: Mark) -> ImportedThread | None:
        """Return the main session if the transcript went back behind a mark and has the end of the session beside that.

        The session then goes on with the main path, and what was left becomes a fork: as if all was imported at once.
        """
        thread = next(iter(self._known), None)
        if thread is None or not thread.is_untouched or thread.label in self._grown:
            return None
        behind = thread.newest_behind(before)
        beside = {mark for marks in self._marks[1:] for mark in marks}
        return thread if beside.issuperset(behind) and self._may_replace(thread, behind) else None

    def _steps_of(self, thread: ImportedThread, marks: Iterable[Mark]) -> list[Step]:
        """Return the steps that have items of a thread, in their order."""
        names = dict.fromkeys(thread.places[mark].step for mark in marks)
        return [step for name in names if (step := self._ledger.step(name)) is not None]

    def _forget(self, mark: Mark, thread: ImportedThread) -> None:
        """Note that a thread is about to lose an item, which another one may have."""
        other = next((each for each in self._known if each is not thread and mark in each.places), None)
        if other is not None:
            self._threads[mark] = other
        elif self._threads.get(mark) is thread:
            del self._threads[mark]

    def _fork(self, mark: Mark) -> Fork | None:
        """Where to leave a thread behind an item, if a turn ends there."""
        thread = self._threads.get(mark)
        place = thread.find(mark) if thread else None
        if thread is None or place is None or place.last is None or not place.closes:
            return None
        return Fork(thread, place.number + 1, mark, place.last)

    def _standing(self, tip: str | None) -> ImportResumePoint:
        step = None if tip is None else self._ledger.step(tip)
        if step is None or tip is None:
            return ImportResumePoint()
        sums = self._sums_at(tip)
        if step.closes:
            return ImportResumePoint(sums=sums)
        turn = Turn(self._ledger.thread(tip, first=step.turn))
        has_begun = any(each.kind in ("reply", "result") for each in turn.steps)
        return ImportResumePoint(is_open=True, has_begun=has_begun, pending=turn.pending, sums=sums)

    def _sums_at(self, name: str | None) -> Sums:
        """The sums up to a step; every step that something is put behind has them."""
        if name is None:
            return Sums()
        if name not in self._sums:
            step = self._ledger.step(name)
            spent = read_usage(step.data.get("spent")) if step else None
            self._sums[name] = Sums(spent or Usage(), tally_until(self._ledger, name))
        return self._sums[name]

    def _tally_of(self, label: str) -> Tally:
        """What a session consists of that nothing is added to."""
        if label not in self._tallies:
            record = self._ledger.session(label)
            self._tallies[label] = tally_until(self._ledger, record.tip if record else None)
        return self._tallies[label]

    # ---- names ----------------------------------------------------------------------------------------------

    def _name(self, path: Path, number: int) -> str:
        label = self._label
        if number or self._known:
            label = name_path(path, self._label, lambda label: label in self._named or self._is_there(label))
        self._named.add(label)
        return label

    def _is_there(self, label: str) -> bool:
        return self._ledger.session(label) is not None

    def _why(self, before: Mark) -> str:
        if not self._known:
            return ""
        ended = next((thread for thread in self._known if thread.end == before and not thread.is_untouched), None)
        return GONE_ON.format(label=ended.label) if ended else EARLIER.format(label=self._label)


def _join_results(steps: Iterable[_Compared]) -> list[_Compared]:
    """Return steps with results that follow each other as one: tools finish one by one."""
    joined: list[_Compared] = []
    for turn, content, marks in steps:
        if joined and content[0] == "result" and joined[-1][1] == content:
            joined[-1] = (*joined[-1][:2], [*joined[-1][2], *marks])
        else:
            joined.append((turn, content, marks))
    return joined


def _is_beginning(step: Step, entry: TranscriptEntry) -> bool:
    """True if a recorded reply is the beginning of an entry: the same reply, cut off while it was written."""
    known, now = step.messages[-1].parts, entry.message.parts
    names = {str(step.data.get("id") or ""), entry.reply} - {""}
    if len(names) > 1 or not known or len(now) < len(known) or known[:-1] != now[: len(known) - 1]:
        return False
    last, grown = known[-1], now[len(known) - 1]
    if isinstance(last, Text | Reasoning) and type(grown) is type(last):
        return grown.text.startswith(last.text)
    if isinstance(last, ToolCall) and isinstance(grown, ToolCall):
        return (last.id, last.name) == (grown.id, grown.name)
    return last == grown


def _are_answered(results: Sequence[Step | None], items: Sequence[TranscriptEntry | Summed]) -> bool:
    """True if steps are results and nothing else, and all of these are among the results of a reply in a transcript."""
    if not all(step is not None and step.kind == "result" for step in results):
        return False
    known = {part.call_id for step in results if step for message in step.messages for part in message.tool_results}
    found: set[str] = set()
    for item in items[1:]:
        if isinstance(item, Summed) or not item.message.tool_results:
            break
        found.update(part.call_id for part in item.message.tool_results)
    return known <= found
