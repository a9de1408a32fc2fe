"""Import of transcripts as sessions of a ledger.

A transcript is imported once, and later only what was added to it.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, replace
from itertools import count, groupby, islice, takewhile
from pathlib import PurePosixPath, PureWindowsPath
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from nexus_core.errors import ConflictError, LedgerError, SessionExistsError
from nexus_core.thread.state import Turn
from nexus_core.transcripts.base import TranscriptCompaction
from nexus_core.transfer.imported_threads import (
    START,
    ForkPoint,
    ImportedThread,
    digest_compaction,
    digest_message,
    get_step_shape,
    read_threads,
)
from nexus_core.transfer.transcript_steps import (
    StepBuilder,
    ThreadTotals,
    TranscriptThreads,
    list_replacements,
    read_totals,
)
from nexus_core.types.base import blake2b
from nexus_core.types.messages import Part, Reasoning, Text, ToolCall, Usage
from nexus_core.types.payloads import ReplyPayload, SessionPayload, TranscriptPayload

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from nexus_core.transcripts.base import Transcript, TranscriptEntry
    from nexus_core.transfer.imported_threads import PrefixDigest, StepShape
    from nexus_core.transfer.transcript_steps import ItemKey, PathItem, TranscriptThread
    from nexus_core.types.ledger import Ledger, NewStep, SessionRecord, Step

    _ComparedStep = tuple[str, StepShape, list[PrefixDigest]]
    """The turn, the shape and the items of a step."""

_PLAN_SHARE, _ENCODE_SHARE = 0.5, 0.2
"""Shares of an import in which steps are built and encoded; in the rest, the ledger writes them."""
_MIN_REPORTED_SHARE = 0.001
"""Smallest share of an import that is reported."""
_MAX_ATTEMPTS = 5
"""Attempts of an import while other processes change the same sessions."""
_MAX_REPLACED_MESSAGES = 200
"""Messages that are added again at once, so that a session does not grow by all of itself with every import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChange:
    """The effect of an import on one session.

    Attributes:
        label: The session.
        kind: `main`, or the kind of the branch that became the session.
        totals: The session's totals with the new steps.
        is_new: True if the import creates the session.
        after: The step that the new steps follow; None for none.
        added: Number of new steps; 0 if the ledger has all of them.
        steps: The new steps.
        is_open: True if the session's last turn is open with the new steps.
        note: The reason why it is not the expected session.
    """

    label: str
    kind: str
    totals: ThreadTotals
    is_new: bool = False
    after: str | None = None
    added: int = 0
    steps: tuple[NewStep, ...] = ()
    is_open: bool = False
    note: str = ""

    @property
    def what(self) -> str:
        """`new`, `more` or `same`."""
        return "new" if self.is_new else "more" if self.added else "same"

    def without_steps(self) -> SessionChange:
        """Return the change without the content of the steps, which may be large."""
        return replace(self, steps=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The effect of importing a transcript.

    Attributes:
        label: The main session.
        sessions: The sessions of the transcript, the main one first; empty for a transcript without messages.
        left_out: Number of branches that are not imported, because there are too many.
    """

    label: str
    sessions: tuple[SessionChange, ...] = ()
    left_out: int = 0


class TranscriptImporter:
    """Adds transcripts to a ledger, each once.

    Nothing that the ledger has is changed.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._digested: tuple[bytes, str] | None = None  # the last file, and its digest

    def find_imported(self, data: bytes) -> list[SessionChange]:
        """Return the sessions of a file that was imported, the main one first.

        Empty if the file is new or has grown, or its import was interrupted.

        Args:
            data: The content of the file.
        """
        digest = self._compute_digest(data)
        records = self._ledger.sessions(status=None)
        for record in records:
            about = record.payload.transcript
            if about is None or about.digest != digest or not _is_own(self._ledger, record):
                continue
            main = "" if about.id else record.label
            identity = about.only("format", "agent")
            found = _find_sessions(self._ledger, records, identity, {about.id, *about.other_ids}, main)
            if about.sessions is None or len(found) >= about.sessions:  # else the import was interrupted
                return [self._describe(each) for each in found]
        return []

    def import_transcript(
        self,
        transcript: Transcript,
        data: bytes = b"",
        *,
        file_name: str = "",
        label: str = "",
        cwd: str = "",
        dry_run: bool = False,
        advance: Callable[[float], None] | None = None,
    ) -> ImportReport:
        """Add a transcript to the ledger.

        Each session is added in one transaction. If the import is interrupted between two, the next one adds the rest.

        Args:
            transcript: The transcript.
            data: The file it was read from, which is stored, too; empty for none.
            file_name: The name of the file, from which a transcript without an id gets its name.
            label: The name of the main session; "" for one made of the program and the id.
            cwd: The directory of the conversation, if the transcript does not contain it.
            dry_run: True to return the report only, without adding anything.
            advance: Called with shares of the work, whose sum is less than 1: the transaction itself reports nothing.

        Raises:
            SessionExistsError: The named session has another conversation.
            LedgerError: The ledger cannot be written.
        """
        plan_share, encode_share = _scale(advance, _PLAN_SHARE), _scale(advance, _ENCODE_SHARE)
        if dry_run:
            return _ImportPlan(self._ledger, transcript, file_name, label, plan_share).report()
        with BackgroundCompressor(data) as original:
            for attempt in range(_MAX_ATTEMPTS):
                plan = _ImportPlan(self._ledger, transcript, file_name, label, plan_share)
                try:
                    self._write(plan, transcript, original, cwd, encode_share)
                except (ConflictError, SessionExistsError):  # another process was faster
                    if attempt == _MAX_ATTEMPTS - 1:
                        raise
                else:
                    return plan.report()
        raise AssertionError  # the last attempt returns or raises

    def _compute_digest(self, data: bytes) -> str:
        if self._digested is None or self._digested[0] is not data:
            self._digested = data, blake2b(data, digest_size=32).hexdigest()
        return self._digested[1]

    def _describe(self, record: SessionRecord) -> SessionChange:
        return SessionChange(
            label=record.label,
            kind=record.payload.transcript.kind if record.payload.transcript else "",
            totals=read_totals(self._ledger, record.tip),
            is_open=record.open_turn is not None,
        )

    def _write(
        self,
        plan: _ImportPlan,
        transcript: Transcript,
        original: BackgroundCompressor,
        cwd: str,
        advance: Callable[[float], None] | None,
    ) -> None:
        """Add the planned steps.

        The first session gets the digest of the file and the number of its sessions.
        """
        labels = plan.list_labels()
        first = labels[0] if labels else plan.label  # not the main one, if the main path has no messages
        file = TranscriptPayload(sessions=len(labels))
        if transcript.other_ids:
            file = file.replace(other_ids=transcript.other_ids)
        if original.content:
            digest = self._compute_digest(original.content)
            file = file.replace(digest=digest, source=original.store(self._ledger))
        known = SessionPayload(model=transcript.model, cwd=transcript.cwd if _is_absolute(transcript.cwd) else cwd)
        total = sum(len(change.steps) for change in plan.changes.values())
        for number, change in enumerate(plan.changes.values(), plan.known_count):
            steps = _report_each(change.steps, total, advance)
            if change.is_new:
                about = TranscriptPayload(
                    format=transcript.format,
                    id=transcript.id,
                    agent=transcript.agent,
                    session=change.label,
                    main=plan.label,
                    kind=change.kind,
                    number=number,
                )
                new = known.replace(transcript=about.merge(file) if change.label == first else about).to_json()
                origin = plan.parent if change.label == plan.label else plan.label
                self._ledger.create(change.label, head=change.after, origin=origin, data=new, steps=steps)
            elif change.steps:
                self._ledger.append_many(change.label, steps, after=change.after)
        record = self._ledger.session(first)
        stored = (record.payload.transcript if record else None) or TranscriptPayload()
        is_other_file = bool(file.subtract(stored))
        if record is not None and is_other_file and (total or not self._has_longer_file(record, original.content)):
            # A file that grows may name its model and directory later. The session's time of change stays.
            updated = record.payload
            if self._is_untouched(record):
                updated = updated.merge(known.without(*(name for name in ("model", "cwd") if not getattr(known, name))))
            updated = updated.replace(transcript=stored.merge(file))
            self._ledger.update(first, data=updated.to_json(), updated=record.updated)

    def _has_longer_file(self, record: SessionRecord, data: bytes) -> bool:
        """True if the file that a session was imported from is whole and begins with another one, an older copy."""
        try:
            known = read_original(self._ledger, record) or b""
        except LedgerError:  # a chunk is missing: any whole file is better
            return False
        return len(known) > len(data) and known.startswith(data)

    def _is_untouched(self, record: SessionRecord) -> bool:
        """True if the user has not continued a session: its newest step is imported."""
        tip = None if record.tip is None else self._ledger.step(record.tip)
        return tip is not None and tip.payload.imported is not None


def _scale(advance: Callable[[float], None] | None, share: float) -> Callable[[float], None] | None:
    """Return an `advance` for a part of the work, which adds up what is less than `_MIN_REPORTED_SHARE`."""
    if advance is None:
        return None
    unreported = 0.0

    def add(amount: float) -> None:
        nonlocal unreported
        unreported += amount * share
        if unreported >= _MIN_REPORTED_SHARE:
            advance(unreported)
            unreported = 0.0

    return add


def _report_each(steps: Sequence[NewStep], total: int, advance: Callable[[float], None] | None) -> Iterable[NewStep]:
    """Yield steps, and report the share of each when the ledger asks for the next one."""
    if advance is None:
        return steps

    def report() -> Iterator[NewStep]:
        for step in steps:
            yield step
            advance(1 / total)

    return report()


def _is_absolute(path: str) -> bool:
    """True if a path is absolute on any system."""
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


# ---- the imported file --------------------------------------------------------------------------------------------

CHUNK_BYTES = 1 << 20
"""A file is stored in chunks of this size, so that each chunk of a growing file is stored once."""
_COMPRESSION_LEVEL = 1
"""The fastest: a transcript repeats most of its text, which every level finds."""


class BackgroundCompressor:
    """Compresses an imported file while its steps are built: zlib runs beside Python on another core.

    Used as a context manager; compression stops when it is left.

    Attributes:
        content: The file.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._chunks: list[bytes] = []
        self._error: Exception | None = None
        self._is_cancelled = Event()
        self._thread = Thread(target=self._compress, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_cancelled.set()
        self._thread.join()

    def store(self, ledger: Ledger) -> str:
        """Store the file, and return the digest of the list of its chunks."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return ledger.put_blob(json.dumps({"zlib": ledger.put_blobs(self._chunks)}).encode())

    def _compress(self) -> None:
        try:
            for at in range(0, len(self.content), CHUNK_BYTES):
                if self._is_cancelled.is_set():
                    return
                self._chunks.append(zlib.compress(self.content[at : at + CHUNK_BYTES], _COMPRESSION_LEVEL))
        except Exception as error:  # noqa: BLE001 - such as too little memory; `store` raises it
            self._error = error


def list_original_blobs(ledger: Ledger, record: SessionRecord) -> list[str]:
    """Return the blobs of an imported file: the list of chunks, then the chunks.

    Empty for a session without a file.

    Raises:
        LedgerError: The list is missing.
    """
    address = record.payload.transcript.source if record.payload.transcript else ""
    if not address:
        return []
    return [address, *map(str, json.loads(_read_blob(ledger, address))["zlib"])]


def read_original(ledger: Ledger, record: SessionRecord) -> bytes | None:
    """Return the file that a session was imported from, or None.

    Raises:
        LedgerError: A chunk of it is missing.
    """
    blobs = list_original_blobs(ledger, record)
    return b"".join(zlib.decompress(_read_blob(ledger, each)) for each in blobs[1:]) if blobs else None


def _read_blob(ledger: Ledger, digest: str) -> bytes:
    content = ledger.blob(digest)
    if content is None:
        hint = "`nexus ledger verify` says what else is missing"
        raise LedgerError(f"the file that was imported is not whole: there is no blob {digest}", hint=hint)
    return content


# ---- sessions of a transcript -------------------------------------------------------------------------------------


def _find_sessions(
    ledger: Ledger, records: Iterable[SessionRecord], identity: TranscriptPayload, ids: Container[str], main: str = ""
) -> list[SessionRecord]:
    """Return the sessions of one transcript, the main one first.

    Each follows the one it was forked from.

    Args:
        ledger: The ledger.
        records: Its sessions.
        identity: Fields that all of them have.
        ids: The program's ids of the transcript; each session has one of them.
        main: The main session's name, for a transcript without an id.
    """
    found = [
        (each, about)
        for each in records
        if (about := each.payload.transcript) is not None
        and not identity.subtract(about)
        and any(name in ids for name in (about.id, *about.other_ids))
        and _is_own(ledger, each)
    ]
    if main:
        found = [(each, about) for each, about in found if _is_same_session(ledger, about.main, main)]
    found.sort(key=lambda pair: (pair[1].number, pair[0].created, pair[0].label))
    return [each for each, _ in found]


def _is_same_session(ledger: Ledger, label: str, other: str) -> bool:
    """True if two names are names of one session, or would be."""
    one, two = ledger.session(label), ledger.session(other)
    return label == other or (one is not None and two is not None and one.label == two.label)


def _is_own(ledger: Ledger, record: SessionRecord) -> bool:
    """True if an import created a session. A fork has inherited its data."""
    about = record.payload.transcript
    named = ledger.session(about.session) if about and about.session else None
    return named is not None and named.label == record.label


# ---- names --------------------------------------------------------------------------------------------------------

_PROGRAMS = {"claude-code": "claude", "gemini-cli": "gemini"}
_UUID_START = re.compile(r"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$)", re.IGNORECASE)
"""The first eight digits of a UUID, which people compare; ids chosen by a person are used whole."""
_MAX_NAME_CHARS = 80
"""A longer id or file name ends with a digest of all of it."""
_UNUSUAL = re.compile(r"[^\w.@+-]+")


def _name_main_session(transcript: Transcript, file_name: str, parent: str, is_taken: Callable[[str], bool]) -> str:
    """Return a free name: program and id, or the name of the file.

    Of a UUID, the first digits are used if they are free.

    Args:
        transcript: The transcript.
        file_name: Its file.
        parent: The session whose subagent it is.
        is_taken: True if a session has the name.
    """
    program = _PROGRAMS.get(transcript.format, transcript.format)
    start = _UUID_START.match(transcript.id)
    names = [f"{program}-{_make_typeable(each)}" for each in ([start[0]] if start else []) + [transcript.id]]
    stem = re.split(r"[/\\]", file_name)[-1]
    stem = stem.rsplit(".", 1)[0] or stem
    wanted = [parent] if parent else names if transcript.id else [_make_typeable(stem) or program]
    agent = f"/agent-{_make_typeable(transcript.agent)}" if transcript.agent else ""
    return _find_free_name([each + agent for each in wanted], is_taken)


def _name_branch(path: TranscriptThread, main: str, is_taken: Callable[[str], bool]) -> str:
    """Return a free name for a session beside the main one."""
    if path.kind == "subagent":
        return _find_free_name([f"{main}/agent-{_make_typeable(path.name)}"], is_taken)
    kind = "fork" if path.kind == "main" else path.kind
    return next(label for number in count(1) if not is_taken(label := f"{main}/{kind}-{number}"))


def _find_free_name(wanted: list[str], is_taken: Callable[[str], bool]) -> str:
    for label in wanted:
        if not is_taken(label):
            return label
    return next(label for number in count(2) if not is_taken(label := f"{wanted[-1]}-{number}"))


def _make_typeable(text: str) -> str:
    """Replace characters that cannot be typed.

    A transcript must not decide how a name looks on a terminal.
    """
    plain = _UNUSUAL.sub("-", text).strip("-")
    if len(plain) <= _MAX_NAME_CHARS:
        return plain
    digest = blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{plain[: _MAX_NAME_CHARS - len(digest) - 1]}-{digest}"


# ---- the plan -----------------------------------------------------------------------------------------------------


class _ImportPlan:
    """The changes that a transcript requires. Only reads the ledger.

    Attributes:
        label: The main session.
        parent: The session whose subagent the transcript is; "" for none.
        known_count: Number of sessions that the transcript has in the ledger.
        changes: The changes by the numbers of the paths, each after that of the path it forks from.
    """

    def __init__(
        self,
        ledger: Ledger,
        transcript: Transcript,
        file_name: str,
        label: str,
        advance: Callable[[float], None] | None,
    ) -> None:
        self._ledger = ledger
        self._api = transcript.api
        records = self._find_known(transcript, file_name, label)
        self.known_count = len(records)
        self.parent = self._find_parent(transcript)
        self.label = self._choose_label(transcript, file_name, label, records)
        self._known = read_threads(ledger, records)
        self._paths = TranscriptThreads(transcript, advance)
        self._digests: list[list[PrefixDigest]] = [[] for _ in self._paths.paths]
        self._threads: dict[PrefixDigest, ImportedThread] = {}  # the first that has an item
        self._totals: dict[str, tuple[ThreadTotals, Usage]] = {}  # up to a step
        self._grown: set[str] = set()
        self._named: set[str] = set()
        for thread in self._known:
            for digest in thread.items:
                self._threads.setdefault(digest, thread)
        for number in self._paths.order:
            self._digest_path(number)
        self.changes = {number: self._plan_path(number) for number in self._paths.select_sessions()}

    def report(self) -> ImportReport:
        """Return the changes of all sessions.

        An unchanged path is left out if another path changes its session.
        """
        grown = {change.label for change in self.changes.values() if change.steps}
        sessions = tuple(
            change
            for number, change in self.changes.items()
            if self._paths.paths[number].items and (change.steps or change.label not in grown)
        )
        return ImportReport(label=self.label, sessions=sessions, left_out=len(self._paths.paths) - len(self.changes))

    def list_labels(self) -> list[str]:
        """Return the sessions that have messages of the transcript, each once."""
        used = (change.label for number, change in self.changes.items() if self._paths.paths[number].items)
        return list(dict.fromkeys(used))

    # ---- sessions --------------------------------------------------------------------------------------------

    def _find_known(self, transcript: Transcript, file_name: str, label: str) -> list[SessionRecord]:
        main = ""
        if not transcript.id:  # only the name tells one conversation from another
            main = label or _name_main_session(transcript, file_name, "", lambda _: False)
        identity = TranscriptPayload(format=transcript.format, agent=transcript.agent)
        ids = {transcript.id, *transcript.other_ids}
        return _find_sessions(self._ledger, self._ledger.sessions(status=None), identity, ids, main)

    def _find_parent(self, transcript: Transcript) -> str:
        if not transcript.agent:
            return ""
        identity = TranscriptPayload(format=transcript.format, agent="", kind="main")
        ids = {transcript.id, *transcript.other_ids}
        found = _find_sessions(self._ledger, self._ledger.sessions(status=None), identity, ids)
        return found[0].label if found else ""

    def _choose_label(self, transcript: Transcript, file_name: str, label: str, known: Sequence[SessionRecord]) -> str:
        if known:
            return known[0].label
        if not label:
            return _name_main_session(transcript, file_name, self.parent, self._is_taken)
        if self._is_taken(label):
            raise SessionExistsError(
                f"session {label!r} exists already, with another conversation", hint="choose another name"
            )
        return label

    def _choose_path_label(self, number: int) -> str:
        label = self.label
        if number or self._known:
            path = self._paths.paths[number]
            label = _name_branch(path, self.label, lambda name: name in self._named or self._is_taken(name))
        self._named.add(label)
        return label

    def _is_taken(self, label: str) -> bool:
        return self._ledger.session(label) is not None

    # ---- changes ---------------------------------------------------------------------------------------------

    def _plan_path(self, number: int) -> SessionChange:
        path, digests = self._paths.paths[number], self._digests[number]
        there = next((index for index, digest in enumerate(digests) if digest not in self._threads), len(digests))
        before = digests[there - 1] if there else self._get_digest_before(path)
        thread = self._find_ending_thread(before) if there or number == 0 else None
        if thread is None and there < len(digests):
            thread = self._find_growing_thread(before, path.items[there:])
            thread = thread or (self._find_rewound_thread(before) if number == 0 else None)
            if thread is None:
                newer = self._find_newer_thread(before, path.items[there:])
                if newer is not None:
                    return self._keep(path, newer.label)
                return self._fork_session(number, there, before)
        change = None if thread is None else self._extend(number, there, before, thread)
        return change or self._keep(path, self._threads[digests[-1]].label if digests else self.label)

    def _keep(self, path: TranscriptThread, label: str) -> SessionChange:
        """Describe the session of a path without changing it."""
        record = None if label in self._grown else self._ledger.session(label)
        if record is None:
            return SessionChange(label=label, kind=path.kind, totals=ThreadTotals())
        totals, is_open = read_totals(self._ledger, record.tip), record.open_turn is not None
        return SessionChange(label=label, kind=path.kind, totals=totals, is_open=is_open)

    def _extend(self, number: int, there: int, before: PrefixDigest, thread: ImportedThread) -> SessionChange | None:
        """Add the missing items to a session. None if it has all of them.

        Turns at its end are replaced if they differ from an import of the whole transcript at once: the program has
        written more of a reply since, or its usage, or the transcript went back.
        """
        keys: list[ItemKey] = [(number, index) for index in range(there, len(self._paths.paths[number].items))]
        own = self._find_own_keys(thread, number, there)
        replaced = thread.list_after(before)
        changed = self._find_changed(thread, [*own, *keys], [*map(self._get_digest, own), *replaced])
        if self._may_replace(thread, changed):
            first = len(own) + len(replaced) - len(changed)
            replaced, keys = changed, [*own[first:], *keys]
        if not keys:
            return None
        self._grown.add(thread.label)
        return self._build(number, keys, thread, replaced=replaced)

    def _fork_session(self, number: int, there: int, before: PrefixDigest) -> SessionChange:
        """Start a session at the end of the nearest turn before an item.

        Items after that turn are added again.
        """
        keys: list[ItemKey] = [(number, index) for index in range(len(self._digests[number]) - 1, there - 1, -1)]
        fork = None
        for key in self._paths.walk_back(number, there):
            fork = self._find_fork_point(self._get_digest(key))
            if fork is not None:
                break
            keys.append(key)
        thread = ImportedThread(self._choose_path_label(number), fork)
        note = self._explain_fork(before) if there or number == 0 else ""
        return self._build(number, keys[::-1], thread, is_new=True, note=note)

    def _build(
        self,
        number: int,
        keys: Sequence[ItemKey],
        thread: ImportedThread,
        *,
        replaced: Sequence[PrefixDigest] = (),
        is_new: bool = False,
        note: str = "",
    ) -> SessionChange:
        """Build the steps of items at the end of a thread.

        They take the place of the replaced items.
        """

        def find_step(key: ItemKey) -> str | None:
            item = thread.find(self._get_digest(key))
            return item.step if item else None

        after = thread.tip
        tip = None if after is None or is_new else self._ledger.step(after)  # a new session begins after a turn
        turn = Turn(self._ledger.thread(tip.id, first=tip.turn)) if tip is not None and not tip.closes else None
        totals, spent = self._get_totals(after)
        builder = StepBuilder(
            self._paths, self._api, self._paths.count_tokens, find_step, turn=turn, totals=totals, spent=spent
        )
        if replaced:
            builder.revert(self._read_steps(thread, replaced), tip.compaction if tip else None)
            for digest in replaced:
                self._forget(digest, thread)
        built = builder.build(keys)
        for step, own in built:  # another path may fork from one of the steps, or continue the thread
            digests = [*map(self._get_digest, own)]
            thread.add(step, digests)
            for digest in digests:
                self._threads.setdefault(digest, thread)
        self._totals |= builder.totals
        steps = tuple(step for step, _ in built)
        return SessionChange(
            label=thread.label,
            kind=self._paths.paths[number].kind,
            is_new=is_new,
            after=after,
            added=len(steps),
            steps=steps,
            totals=builder.totals[steps[-1].id][0],
            is_open=not steps[-1].closes,
            note=note,
        )

    def _get_totals(self, step_id: str | None) -> tuple[ThreadTotals, Usage]:
        """Return totals and usage up to a step that others may follow."""
        if step_id is None:
            return ThreadTotals(), Usage()
        if step_id not in self._totals:
            step = self._ledger.step(step_id)
            spent = (step.payload.total_usage if step else None) or Usage()
            self._totals[step_id] = read_totals(self._ledger, step_id), spent
        return self._totals[step_id]

    def _explain_fork(self, before: PrefixDigest) -> str:
        if not self._known:
            return ""
        ended = next((thread for thread in self._known if thread.end == before and not thread.is_untouched), None)
        if ended is not None:
            return f"{ended.label!r} was continued here since it was imported"
        return f"the transcript continues from an earlier step than the end of {self.label!r}"

    # ---- items -----------------------------------------------------------------------------------------------

    def _digest_path(self, number: int) -> None:
        """Compute the digests of a path.

        If nothing was imported before, any unique values will do.
        """
        path, found = self._paths.paths[number], self._digests[number]
        if not self._known:
            found += [b"%d.%d" % (number, index) for index in range(len(path.items))]
            return
        before = self._get_digest_before(path)
        for item in path.items:
            if isinstance(item, TranscriptCompaction):
                before = digest_compaction(before, item.summary, list_replacements(item))
            else:
                before = digest_message(before, item.message)
            found.append(before)

    def _get_digest(self, key: ItemKey) -> PrefixDigest:
        return self._digests[key[0]][key[1]]

    def _get_digest_before(self, path: TranscriptThread) -> PrefixDigest:
        return START if path.leaves is None or not path.at else self._digests[path.leaves][path.at - 1]

    def _find_own_keys(self, thread: ImportedThread, number: int, there: int) -> list[ItemKey]:
        """Return the last items that a path and a thread share, in whole turns.

        Items that other threads have, too, are left out, and more than could be replaced.
        """
        before = self._paths.walk_back(number, there)
        keys = takewhile(lambda key: self._get_digest(key) in thread.items, before)
        found = [*islice(keys, _MAX_REPLACED_MESSAGES + 1)][::-1]
        if len(found) <= _MAX_REPLACED_MESSAGES:
            return found
        steps = [thread.items[self._get_digest(key)].step for key in found]
        starts = (at for at in range(1, len(steps)) if steps[at] != steps[at - 1])
        return found[next((at for at in starts if thread.turns[steps[at]] == steps[at]), len(found)) :]

    def _find_changed(
        self, thread: ImportedThread, keys: Sequence[ItemKey], known: Sequence[PrefixDigest]
    ) -> list[PrefixDigest]:
        """Return the items of a thread from its first outdated turn on.

        A turn is outdated if an import of the whole transcript at once would make it differently.

        Args:
            thread: The thread.
            keys: The items of the transcript from the thread's first own item on.
            known: The items of the thread.
        """
        builder = StepBuilder(
            self._paths, self._api, lambda _: 0, lambda _: None, turn=None, totals=ThreadTotals(), spent=Usage()
        )
        built = [("", get_step_shape(step), [*map(self._get_digest, own)]) for step, own in builder.build(keys) if own]
        wanted = _join_results(built)
        groups = groupby(known, key=lambda digest: thread.items[digest].step)
        stored = _join_results([(thread.turns[step], thread.shapes[step], [*digests]) for step, digests in groups])
        for at, (turn, shape, digests) in enumerate(stored):
            _, new, found = wanted[at] if at < len(wanted) else ("", None, [])
            is_growing = at == len(stored) - 1 and shape[0] == "result"  # tools finish one by one
            if new != shape or (found[: len(digests)] if is_growing else found) != digests:
                first = next(index for index in range(at + 1) if stored[index][0] == turn)
                return [digest for _, _, each in stored[first:] for digest in each]
        return []

    def _may_replace(self, thread: ImportedThread, digests: Sequence[PrefixDigest]) -> bool:
        """True if items can be added again: not too many, and no compaction among them."""
        kinds = {thread.shapes[thread.items[digest].step][0] for digest in digests}
        return 0 < len(digests) <= _MAX_REPLACED_MESSAGES and "compaction" not in kinds

    def _read_steps(self, thread: ImportedThread, digests: Iterable[PrefixDigest]) -> list[Step]:
        """Return the steps that have items of a thread, in their order."""
        names = dict.fromkeys(thread.items[digest].step for digest in digests)
        return [step for name in names if (step := self._ledger.step(name)) is not None]

    def _forget(self, digest: PrefixDigest, thread: ImportedThread) -> None:
        """Note that a thread is about to lose an item, which another thread may have."""
        other = next((each for each in self._known if each is not thread and digest in each.items), None)
        if other is not None:
            self._threads[digest] = other
        elif self._threads.get(digest) is thread:
            del self._threads[digest]

    # ---- threads ---------------------------------------------------------------------------------------------

    def _may_extend(self, thread: ImportedThread) -> bool:
        return thread.is_untouched and thread.label not in self._grown

    def _find_ending_thread(self, digest: PrefixDigest) -> ImportedThread | None:
        """Return the thread that ends with an item, and may be extended."""
        if digest == START:
            return None
        return next((thread for thread in self._known if thread.end == digest and self._may_extend(thread)), None)

    def _find_growing_thread(self, before: PrefixDigest, items: Sequence[PathItem]) -> ImportedThread | None:
        """Return the thread that ends with the beginning of the next reply.

        Results of the reply may follow it there: tools are called while the program writes the rest of a reply.
        """
        item = items[0]
        if isinstance(item, TranscriptCompaction) or item.message.role != "assistant":
            return None
        for thread in self._known:
            after = thread.list_after(before)
            if not after or not self._may_extend(thread):
                continue
            steps = (self._ledger.step(thread.items[digest].step) for digest in after[:_MAX_REPLACED_MESSAGES])
            reply, *results = steps
            is_reply = reply is not None and reply.kind == "reply" and _is_beginning(reply, item)
            if is_reply and len(after) <= _MAX_REPLACED_MESSAGES and _has_results(items, results):
                return thread
        return None

    def _find_newer_thread(self, before: PrefixDigest, items: Sequence[PathItem]) -> ImportedThread | None:
        """Return the thread that has more of a path's last reply than the path: the transcript is an older copy."""
        for thread in self._known:
            after = thread.list_after(before)[:_MAX_REPLACED_MESSAGES]
            steps = self._read_steps(thread, after)
            if steps and _is_shorter_copy(items, steps):
                return thread
        return None

    def _find_rewound_thread(self, before: PrefixDigest) -> ImportedThread | None:
        """Return the main thread if its end is now a branch of the transcript.

        The session continues with the main path, and its end becomes a fork: as if all was imported at once.
        """
        thread = next(iter(self._known), None)
        if thread is None or not self._may_extend(thread):
            return None
        after = thread.list_after(before)
        branches = {digest for digests in self._digests[1:] for digest in digests}
        return thread if branches.issuperset(after) and self._may_replace(thread, after) else None

    def _find_fork_point(self, digest: PrefixDigest) -> ForkPoint | None:
        """Return the fork point after an item, if a turn ends there."""
        thread = self._threads.get(digest)
        item = thread.find(digest) if thread else None
        if thread is None or item is None or item.last is None or not item.closes:
            return None
        return ForkPoint(thread, item.number + 1, digest, item.last)


def _join_results(steps: Iterable[_ComparedStep]) -> list[_ComparedStep]:
    """Join consecutive steps with results: tools finish one by one."""
    joined: list[_ComparedStep] = []
    for turn, shape, digests in steps:
        if joined and shape[0] == "result" and joined[-1][1] == shape:
            joined[-1] = (*joined[-1][:2], [*joined[-1][2], *digests])
        else:
            joined.append((turn, shape, digests))
    return joined


def _is_beginning(step: Step, entry: TranscriptEntry) -> bool:
    """True if a stored reply is the beginning of an entry.

    The same reply was imported while the program wrote it.
    """
    return _is_same_reply(step, entry) and _begins_with(entry.message.parts, step.messages[-1].parts)


def _is_shorter_copy(items: Sequence[PathItem], steps: Sequence[Step]) -> bool:
    """True if items are the beginning of a reply, and results of it, of which stored steps have more."""
    entry, *others = items
    reply, *results = steps
    if isinstance(entry, TranscriptCompaction) or entry.message.role != "assistant" or reply.kind != "reply":
        return False
    known = {part.call_id for step in results for message in step.messages for part in message.tool_results}
    has_results = all(
        not isinstance(item, TranscriptCompaction)
        and item.message.tool_results
        and known.issuperset(part.call_id for part in item.message.tool_results)
        for item in others
    )
    return has_results and _is_same_reply(reply, entry) and _begins_with(reply.messages[-1].parts, entry.message.parts)


def _is_same_reply(step: Step, entry: TranscriptEntry) -> bool:
    """True unless a stored reply and an entry have different ids."""
    return len({step.payload.id if isinstance(step.payload, ReplyPayload) else "", entry.reply} - {""}) <= 1


def _begins_with(now: Sequence[Part], known: Sequence[Part]) -> bool:
    """True if the parts of a message begin with those of another, whose last one may be cut off."""
    if not known or len(now) < len(known) or tuple(known[:-1]) != tuple(now[: len(known) - 1]):
        return False
    last, grown = known[-1], now[len(known) - 1]
    if isinstance(last, Text | Reasoning) and type(grown) is type(last):
        return grown.text.startswith(last.text)
    if isinstance(last, ToolCall) and isinstance(grown, ToolCall):
        return (last.id, last.name) == (grown.id, grown.name)
    return last == grown


def _has_results(items: Sequence[PathItem], steps: Sequence[Step | None]) -> bool:
    """True if steps have only results that follow the first of the items."""
    if not all(step is not None and step.kind == "result" for step in steps):
        return False
    known = {part.call_id for step in steps if step for message in step.messages for part in message.tool_results}
    found: set[str] = set()
    for item in items[1:]:
        if isinstance(item, TranscriptCompaction) or not item.message.tool_results:
            break
        found.update(part.call_id for part in item.message.tool_results)
    return known <= found
