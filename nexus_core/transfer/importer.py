"""Import of transcripts: sessions in a ledger, each transcript once, later only its new entries."""

from __future__ import annotations

import json
import re
import zlib
from hashlib import blake2b
from itertools import count, groupby, islice, takewhile
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.neutral import message_to_json
from nexus_core.errors import ConflictError, LedgerError, SessionExistsError
from nexus_core.ledger.json_text import write_canonical_json, write_json
from nexus_core.session.steps.turns import Turn, read_usage
from nexus_core.transfer.transcript_steps import (
    ImportResumePoint,
    Summed,
    Sums,
    Tally,
    Weaver,
    Weights,
    backwards,
    in_order,
    read_paths,
    replacements,
    tally_until,
)
from nexus_core.types.messages import Reasoning, Text, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from nexus_core.transcripts.base import Transcript, TranscriptEntry
    from nexus_core.transfer.transcript_steps import Key, Path, Placed, Woven
    from nexus_core.types.ledger import Ledger, NewStep, SessionRecord, Step
    from nexus_core.types.messages import Message

PIECE = 1 << 20
_QUICK = 1
"""How hard to compress: a transcript says most things twice, which is found at once."""


def keep_source(ledger: Ledger, content: bytes) -> str:
    """Keep the bytes of a file; returns the address of the list of its pieces."""
    pieces = [zlib.compress(content[at : at + PIECE], _QUICK) for at in range(0, len(content), PIECE)]
    digests = ledger.put_blobs(pieces)
    return ledger.put_blob(json.dumps({"zlib": digests}).encode())


def source_pieces(ledger: Ledger, address: str) -> list[str]:
    """The addresses of the pieces of a file."""
    listed = json.loads(_blob(ledger, address))
    return [str(each) for each in listed["zlib"]]


def read_source(ledger: Ledger, address: str) -> bytes:
    """The bytes of a file that was kept.

    Raises:
        LedgerError: A piece of it is missing.
    """
    return b"".join(zlib.decompress(_blob(ledger, each)) for each in source_pieces(ledger, address))


def _blob(ledger: Ledger, digest: str) -> bytes:
    content = ledger.blob(digest)
    if content is None:
        hint = "`nexus ledger verify` says what else is missing"
        raise LedgerError(f"the file that was imported is not whole: there is no blob {digest}", hint=hint)
    return content


_PROGRAMS = {"claude-code": "claude"}
_RANDOM = re.compile(r"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$)", re.IGNORECASE)
"""The beginning of a UUID, which is what people compare; names that somebody chose are used whole."""
_LONGEST = 80
"""Characters that are taken from an id or a file's name; of a longer one the end is a digest of all of it."""
_UNUSUAL = re.compile(r"[^\w.@+-]+")


def name_session(transcript: Transcript, name: str, parent: str, is_taken: Callable[[str], bool]) -> str:
    """A name for a transcript: program and id, of a UUID the beginning where that is free; else the file's name.

    Args:
        transcript: The transcript.
        name: The file.
        parent: The session whose subagent it is.
        is_taken: Whether a session is called so.
    """
    program = _PROGRAMS.get(transcript.format, transcript.format)
    beginning = _RANDOM.match(transcript.id)
    names = [f"{program}-{_plain(each)}" for each in ([beginning[0]] if beginning else []) + [transcript.id]]
    wanted = [parent] if parent else names if transcript.id else [_plain(_stem(name)) or program]
    agent = f"/agent-{_plain(transcript.agent)}" if transcript.agent else ""
    return _free([each + agent for each in wanted], is_taken)


def name_path(path: Path, main: str, is_taken: Callable[[str], bool]) -> str:
    """A name for a session beside the main one."""
    if path.kind == "subagent":
        return _free([f"{main}/agent-{_plain(path.name)}"], is_taken)
    kind = "fork" if path.kind == "main" else path.kind
    return next(label for number in count(1) if not is_taken(label := f"{main}/{kind}-{number}"))


def _free(wanted: list[str], is_taken: Callable[[str], bool]) -> str:
    for label in wanted:
        if not is_taken(label):
            return label
    return next(label for number in count(2) if not is_taken(label := f"{wanted[-1]}-{number}"))


def _stem(name: str) -> str:
    stem = re.split(r"[/\\]", name)[-1]
    return stem.rsplit(".", 1)[0] or stem


def _plain(text: str) -> str:
    """A text that can be typed: nothing in a transcript decides how it looks on a terminal."""
    plain = _UNUSUAL.sub("-", text).strip("-")
    if len(plain) <= _LONGEST:
        return plain
    digest = blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{plain[: _LONGEST - len(digest) - 1]}-{digest}"


Mark = bytes
"""Stands for an item and all before it."""

START: Mark = b""


def message_mark(before: Mark, message: Message) -> Mark:
    """The mark of something said."""
    return _mark(before, write_json(message_to_json(message), "a message"))


def compaction_mark(before: Mark, summary: str, messages: Iterable[Message]) -> Mark:
    """The mark of a compaction, by what the model read from then on."""
    return _mark(before, write_json([summary, *map(message_to_json, messages)], "a compaction"))


def _mark(before: Mark, text: str) -> Mark:
    return blake2b(before + text.encode(), digest_size=16).digest()


_COMPARED = ("id", "stop", "model", "usage", "kinds")
"""Facts about the messages of a step that a later line of the transcript may change."""
CHUNK = 64
"""So many steps of a fork are read at first; twice as many each time that is not enough."""


class ItemRef(NamedTuple):
    """Where an item is.

    Attributes:
        number: How many items come before it.
        step: The step that has it.
        last: The step behind which goes what follows it; None where it is not the last one in its step.
        closes: Whether a turn ends there.
    """

    number: int
    step: str
    last: str | None = None
    closes: bool = False


class Fork(NamedTuple):
    """Where a thread leaves another.

    Attributes:
        thread: The other.
        items: How many items they have in common.
        end: The mark of the last of these.
        step: The last step they have in common.
    """

    thread: ImportedThread
    items: int
    end: Mark
    step: str


class StepShape(NamedTuple):
    """A recorded step, to be compared with what its items would become now.

    Attributes:
        turn: The turn that it belongs to.
        content: As `shape_of` returns it.
    """

    turn: str
    content: tuple[str, bool, str]


class ImportedThread:
    """The items of one session.

    Attributes:
        label: The session.
        tip: Its newest step.
        end: The mark of its last item.
        items: How many there are.
        places: Its own items.
        shapes: The recorded steps that have or had items, by their ids.
        fork: Where it leaves another, in which is found what they have in common.
        is_untouched: Whether nobody has gone on with it since it was imported.
    """

    def __init__(self, label: str, fork: Fork | None = None) -> None:
        self.label = label
        self.tip: str | None = fork.step if fork else None
        self.end: Mark = fork.end if fork else START
        self.items = fork.items if fork else 0
        self.is_untouched = True
        self.fork = fork
        self.places: dict[Mark, ItemRef] = {}
        self.shapes: dict[str, StepShape] = {}
        self._marks: list[Mark] = []

    def add(self, step: str, marks: Iterable[Mark], *, closes: bool) -> None:
        """One more step and its items; one without any goes on from the last."""
        self.tip = step
        for mark in marks:
            self.places[mark] = ItemRef(self.items, step)
            self._marks.append(mark)
            self.end = mark
            self.items += 1
        last = self.places.get(self.end)
        if last is not None:
            self.places[self.end] = ItemRef(last.number, last.step, step, closes)

    def newest_behind(self, mark: Mark) -> list[Mark]:
        """Return its own items behind an item, in their order; none where that is not followed by one of its own."""
        own = self.places.get(mark)
        if own is not None:
            return self._marks[len(self._marks) - (self.items - own.number - 1) :]
        return list(self._marks) if mark == (self.fork.end if self.fork else START) else []

    def take_back(self, step: str, count: int = 1) -> None:
        """Leave out its last own items; `step` says so."""
        for _ in range(min(count, len(self._marks))):
            del self.places[self._marks.pop()]
            self.items -= 1
            self.end = self._marks[-1] if self._marks else self.fork.end if self.fork else START
        self.tip = step

    def find(self, mark: Mark) -> ItemRef | None:
        """Where an item of this thread is, its own or one that it has in common with others."""
        here: ImportedThread | None = self
        limit = self.items
        while here is not None:
            place = here.places.get(mark)
            if place is not None and place.number < limit:
                return place
            limit = min(limit, here.fork.items) if here.fork else 0
            here = here.fork.thread if here.fork else None
        return None


class Threads:
    """The threads of one transcript that are in the ledger.

    Attributes:
        threads: One for each session, in their order.

    Args:
        ledger: The ledger.
        records: The sessions, each behind the one it was forked from.
    """

    def __init__(self, ledger: Ledger, records: Iterable[SessionRecord]) -> None:
        self._ledger = ledger
        self._forks: dict[str, Fork] = {}  # whoever leaves a step there is
        self.threads = [self._read(record) for record in records]

    def _read(self, record: SessionRecord) -> ImportedThread:
        steps = [] if record.tip is None else self._unknown(record.tip)
        before = steps[0].parent if steps else record.tip
        thread = ImportedThread(record.label, self._forks.get(before or ""))
        for step in steps:
            if "imported" not in step.data:  # from here on it is the user's
                thread.is_untouched = False
                break
            if step.kind == "revert":
                thread.take_back(step.id, count_reverted_messages(step))
            else:
                thread.add(step.id, _marks(step, thread.end), closes=step.closes)
                thread.shapes[step.id] = StepShape(step.turn, shape_of(step))
            self._forks[step.id] = Fork(thread, thread.items, thread.end, step.id)
        return thread

    def _unknown(self, tip: str) -> list[Step]:
        """The steps up to one, from the first that no other thread has."""
        count = CHUNK if self._forks else None
        while True:
            steps = self._ledger.thread(tip, limit=count)
            known = next((at for at in range(len(steps) - 1, -1, -1) if steps[at].id in self._forks), -1)
            if known >= 0 or count is None or len(steps) < count:
                return steps[known + 1 :]
            count *= 2


def shape_of(step: Step | NewStep) -> tuple[str, bool, str]:
    """Return what a step says besides its messages, apart from names and sums: its kind, its end, and its data."""
    data = {name: value for name in _COMPARED if (value := step.data.get(name)) is not None}
    return step.kind, step.closes, write_canonical_json(data)


def count_reverted_messages(step: Step | NewStep) -> int:
    """Return how many messages a `revert` of an import takes back."""
    popped = step.data.get("popped")
    return popped if isinstance(popped, int) else 1


def _marks(step: Step, before: Mark) -> list[Mark]:
    if step.kind == "compaction":
        return [compaction_mark(before, str(step.data.get("summary", "")), step.messages)]
    marks = []
    for message in step.messages:
        before = message_mark(before, message)
        marks.append(before)
    return marks


if TYPE_CHECKING:
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


ATTEMPTS = 5
"""So often an import begins anew because somebody else has changed the same sessions meanwhile."""
ABOUT = "transcript"
"""Where a session says what it was imported from."""


class Given(NamedTuple):
    """What is imported.

    Attributes:
        transcript: What was read.
        source: The bytes it was read from; digest: their address, where it is known.
        name: What the file is called.
        label: What the session shall be called; "" for whatever fits.
        cwd: The directory it is about, where it does not say so itself.
    """

    transcript: Transcript
    source: bytes = b""
    name: str = ""
    label: str = ""
    cwd: str = ""
    digest: str = ""


class Imported(NamedTuple):
    """What became of a transcript.

    Attributes:
        label: The main session.
        growths: What was added to which session, path by path.
        origin: The session that the main one belongs to: that of which it is a subagent.
        left_out: How many branches are no sessions, because there are too many.
        known: How many sessions there were of it before.
    """

    label: str
    growths: tuple[Growth, ...] = ()
    origin: str = ""
    left_out: int = 0
    known: int = 0


def import_transcript(ledger: Ledger, given: Given, *, dry_run: bool = False) -> Imported:
    """Bring a transcript into a ledger; what is there already stays as it is.

    Each session is added in one transaction. If the import is cut off between two, the next one adds the rest.

    Args:
        ledger: Where to.
        given: What.
        dry_run: Whether to say only what would be added.

    Raises:
        SessionExistsError: The session that is named is another conversation.
        LedgerError: The ledger cannot be written.
    """
    for attempt in range(ATTEMPTS):
        planned = _plan(ledger, given)
        if dry_run:
            return planned
        try:
            _write(ledger, given, planned)
        except (ConflictError, SessionExistsError):  # somebody else was faster
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return planned
    raise AssertionError  # the last attempt returns or raises


def find_imported(ledger: Ledger, digest: str) -> list[SessionRecord]:
    """The sessions of a file that was imported whole, the main one first; none where it was not.

    Args:
        ledger: Where to look.
        digest: The address of the file's content, as `digest_of` gives it.
    """
    records = ledger.sessions(status=None)
    for record in records:
        about = about_import(record)
        if about.get("digest") != digest or not _is_own(ledger, record):
            continue
        identity = {name: about.get(name) for name in ("format", "agent")}
        found = _made_of(ledger, records, identity, _ids_of(about), "" if about.get("id") else record.label)
        if len(found) >= about.get("sessions", 1):  # else the import was cut off
            return found
    return []


def about_import(record: SessionRecord) -> dict[str, Any]:
    """What a session knows of the transcript it was imported from; nothing for others."""
    about = record.data.get(ABOUT)
    return about if isinstance(about, dict) else {}


def known_sessions(ledger: Ledger, given: Given) -> list[SessionRecord]:
    """The sessions that were made of this transcript before, the main one first."""
    wanted = ""
    if not given.transcript.id:  # one conversation is told from another by its name only
        wanted = given.label or name_session(given.transcript, given.name, "", lambda _: False)
    transcript = given.transcript
    identity = {"format": transcript.format, "agent": transcript.agent}
    return _made_of(ledger, ledger.sessions(status=None), identity, {transcript.id, *transcript.other_ids}, wanted)


def digest_of(source: bytes) -> str:
    """The address of a file's content."""
    return blake2b(source, digest_size=32).hexdigest()


def _ids_of(about: dict[str, Any]) -> set[str]:
    """Return the names that the program gave to the transcript of a session."""
    others = about.get("other_ids")
    return {str(about.get("id", "")), *(map(str, others) if isinstance(others, list) else ())}


def _made_of(
    ledger: Ledger, records: Iterable[SessionRecord], identity: dict[str, Any], ids: Container[str], main: str = ""
) -> list[SessionRecord]:
    """Of these sessions those that were made of one transcript, each behind the one it was forked from, the main first.

    Args:
        ledger: Where they are.
        records: The sessions.
        identity: What they know of the transcript.
        ids: Its names, of which they know one.
        main: The main one's name, where that tells one transcript from another.
    """
    found = [
        each
        for each in records
        if (about := about_import(each)).items() >= identity.items()
        and any(name in ids for name in _ids_of(about))
        and _is_own(ledger, each)
    ]
    if main:
        found = [each for each in found if _is_called(ledger, str(about_import(each).get("main")), main)]
    return sorted(found, key=lambda each: (about_import(each).get("number", 0), each.created, each.label))


def _is_called(ledger: Ledger, label: str, other: str) -> bool:
    """Whether two names are of one session, or would be."""
    one, two = ledger.session(label), ledger.session(other)
    return label == other or (one is not None and two is not None and one.label == two.label)


def _is_own(ledger: Ledger, record: SessionRecord) -> bool:
    """Whether a session was made by an import; a fork of it has inherited what it knows of that."""
    named = ledger.session(str(about_import(record).get("session")))
    return named is not None and named.label == record.label


def _parent(ledger: Ledger, transcript: Transcript) -> str:
    """The session of which a transcript is a subagent, if it was imported."""
    if not transcript.agent:
        return ""
    identity = {"format": transcript.format, "agent": "", "kind": "main"}
    made = _made_of(ledger, ledger.sessions(status=None), identity, {transcript.id, *transcript.other_ids})
    return made[0].label if made else ""


def _label(ledger: Ledger, given: Given, known: Sequence[SessionRecord], parent: str) -> str:
    if known:
        return known[0].label
    if not given.label:
        return name_session(given.transcript, given.name, parent, lambda label: ledger.session(label) is not None)
    if ledger.session(given.label) is not None:
        raise SessionExistsError(
            f"session {given.label!r} exists already, with another conversation", hint="choose another name"
        )
    return given.label


def _plan(ledger: Ledger, given: Given) -> Imported:
    known, origin = known_sessions(ledger, given), _parent(ledger, given.transcript)
    label = _label(ledger, given, known, origin)
    threads = Threads(ledger, known).threads
    paths = read_paths(given.transcript)
    growths = tuple(ImportPlanner(ledger, paths, threads, label, given.transcript.api).plan())
    return Imported(label, growths, origin, len(paths) - len(growths), len(known))


def _write(ledger: Ledger, given: Given, planned: Imported) -> None:
    """Add what was planned; the same file is known at once when as many sessions are there as it became."""
    labels = list(dict.fromkeys(growth.label for growth in planned.growths if growth.path.items))
    first = labels[0] if labels else planned.label  # not the main one, where nothing is said on the main path
    about: dict[str, Any] = {"sessions": len(labels)}
    if given.transcript.other_ids:
        about["other_ids"] = list(given.transcript.other_ids)
    if given.source:
        digest = given.digest or digest_of(given.source)
        about |= {"digest": digest, "source": keep_source(ledger, given.source)}
    for number, growth in enumerate(planned.growths, planned.known):
        if growth.is_new:
            data = _data(given, planned, growth, number)
            if growth.label == first:
                data[ABOUT] |= about
            origin = planned.origin if growth.label == planned.label else planned.label
            ledger.create(growth.label, head=growth.after, origin=origin, data=data, steps=growth.steps)
        elif growth.steps:
            ledger.append_many(growth.label, growth.steps, after=growth.after)
    record = ledger.session(first)
    if record is not None and not about_import(record).items() >= about.items():
        # Nobody has said anything in it by that. A file that grows may say later which model it is, and where.
        known = {"model": given.transcript.model, "cwd": _cwd(given)} if _is_imported(ledger, record) else {}
        found = {name: value for name, value in known.items() if value}
        data = {**record.data, **found, ABOUT: {**about_import(record), **about}}
        ledger.update(first, data=data, updated=record.updated)


def _data(given: Given, planned: Imported, growth: Growth, number: int) -> dict[str, Any]:
    transcript = given.transcript
    names = {"session": growth.label, "main": planned.label, "kind": growth.path.kind, "number": number}
    about = {"format": transcript.format, "id": transcript.id, "agent": transcript.agent, **names}
    return {"model": transcript.model, "cwd": _cwd(given), ABOUT: about}


def _cwd(given: Given) -> str:
    return given.transcript.cwd if _is_absolute(given.transcript.cwd) else given.cwd


def _is_imported(ledger: Ledger, record: SessionRecord) -> bool:
    """True if the newest step of a session was imported, so that the user has not gone on with it."""
    tip = None if record.tip is None else ledger.step(record.tip)
    return tip is not None and "imported" in tip.data


def _is_absolute(path: str) -> bool:
    """Whether a path says where it is, on whichever system; a session works there when it is gone on with."""
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
