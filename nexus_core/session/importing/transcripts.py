"""A transcript becomes sessions: once, however often it is imported, and only what is new of one that has grown."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import ConflictError, SessionExistsError
from nexus_core.session.importing.labels import name_session
from nexus_core.session.importing.paths import read_paths
from nexus_core.session.importing.planning import Growth, ImportPlanner
from nexus_core.session.importing.sources import keep_source
from nexus_core.session.importing.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from nexus_core.transcripts.base import Transcript
    from nexus_core.types.ledger import Ledger, SessionRecord

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
