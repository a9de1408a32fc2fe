"""A transcript becomes sessions: once, however often it is imported, and only what is new of one that has grown."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import ConflictError, ExistsError
from nexus_core.session.importing.labels import name_session
from nexus_core.session.importing.paths import read_paths
from nexus_core.session.importing.planning import Growth, Planner
from nexus_core.session.importing.sources import keep_source
from nexus_core.session.importing.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.transcript import Transcript
    from nexus_core.values.ledger import Ledger, SessionRecord

ATTEMPTS = 5
"""So often an import begins anew because somebody else has changed the same sessions meanwhile."""
ABOUT = "transcript"
"""Where a session says what it was imported from."""


class Given(NamedTuple):
    """What is imported.

    Attributes:
        transcript: What was read.
        source: The bytes it was read from.
        name: What the file is called.
        label: What the session shall be called; "" for whatever fits.
        cwd: The directory it is about.
    """

    transcript: Transcript
    source: bytes = b""
    name: str = ""
    label: str = ""
    cwd: str = ""


class Imported(NamedTuple):
    """What became of a transcript.

    Attributes:
        label: The main session.
        growths: What was added to which session, path by path.
        origin: The session that the main one belongs to: that of which it is a subagent.
        left_out: How many branches are no sessions, because there are too many.
    """

    label: str
    growths: tuple[Growth, ...] = ()
    origin: str = ""
    left_out: int = 0


def import_transcript(ledger: Ledger, given: Given, *, dry_run: bool = False) -> Imported:
    """Bring a transcript into a ledger; what is there already stays as it is.

    Each session is added in one transaction. If the import is cut off between two, the next one adds the rest.

    Args:
        ledger: Where to.
        given: What.
        dry_run: Whether to say only what would be added.

    Raises:
        ExistsError: The session that is named is another conversation.
        LedgerError: The ledger cannot be written.
    """
    for attempt in range(ATTEMPTS):
        planned = _plan(ledger, given)
        if dry_run:
            return planned
        try:
            _write(ledger, given, planned)
        except (ConflictError, ExistsError):  # somebody else was faster
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return planned
    raise AssertionError  # the last attempt returns or raises


def find_imported(ledger: Ledger, source: bytes) -> str | None:
    """The main session of a file that was imported whole, if it was."""
    digest = digest_of(source)
    for record in ledger.sessions(status=None):
        about = about_import(record)
        if about.get("digest") == digest and _is_own(ledger, record):
            return record.label
    return None


def about_import(record: SessionRecord) -> dict[str, Any]:
    """What a session knows of the transcript it was imported from; nothing for others."""
    about = record.data.get(ABOUT)
    return about if isinstance(about, dict) else {}


def known_sessions(ledger: Ledger, given: Given) -> list[SessionRecord]:
    """The sessions that were made of this transcript before, the main one first."""
    found = _made_of(ledger, _identity(given.transcript))
    if not given.transcript.id:  # one conversation is told from another by its name only
        wanted = given.label or name_session(given.transcript, given.name, "", lambda _: False)
        found = [each for each in found if _is_called(ledger, str(about_import(each).get("main")), wanted)]
    return sorted(found, key=lambda each: (about_import(each).get("kind") != "main", each.created, each.label))


def digest_of(source: bytes) -> str:
    """The address of a file's content."""
    return blake2b(source, digest_size=32).hexdigest()


def _identity(transcript: Transcript) -> dict[str, str]:
    return {"format": transcript.format, "id": transcript.id, "agent": transcript.agent}


def _made_of(ledger: Ledger, identity: dict[str, str]) -> list[SessionRecord]:
    return [
        record
        for record in ledger.sessions(status=None)
        if about_import(record).items() >= identity.items() and _is_own(ledger, record)
    ]


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
    made = _made_of(ledger, {**_identity(transcript), "agent": "", "kind": "main"})
    return made[0].label if made else ""


def _label(ledger: Ledger, given: Given, known: Sequence[SessionRecord], parent: str) -> str:
    if known:
        return known[0].label
    if not given.label:
        return name_session(given.transcript, given.name, parent, lambda label: ledger.session(label) is not None)
    if ledger.session(given.label) is not None:
        raise ExistsError(
            f"there is a session {given.label!r} already, and it is another conversation", hint="choose another name"
        )
    return given.label


def _plan(ledger: Ledger, given: Given) -> Imported:
    known, origin = known_sessions(ledger, given), _parent(ledger, given.transcript)
    label = _label(ledger, given, known, origin)
    threads = Threads(ledger, known).threads
    paths = read_paths(given.transcript)
    growths = tuple(Planner(ledger, paths, threads, label, given.transcript.api).plan())
    return Imported(label, growths, origin, len(paths) - len(growths))


def _write(ledger: Ledger, given: Given, planned: Imported) -> None:
    source = {}
    if given.source:
        source = {"digest": digest_of(given.source), "source": keep_source(ledger, given.source)}
    for growth in planned.growths:
        if not growth.steps:
            continue
        if not growth.is_new:
            ledger.append_many(growth.label, growth.steps, after=growth.after)
            continue
        names = {"session": growth.label, "main": planned.label, "kind": growth.path.kind}
        about = {**_identity(given.transcript), **names}
        data = {"model": given.transcript.model, "cwd": given.cwd, ABOUT: about}
        origin = planned.origin if growth.label == planned.label else planned.label
        ledger.create(growth.label, head=growth.after, origin=origin, data=data, steps=growth.steps)
    _finish(ledger, planned.label, source)


def _finish(ledger: Ledger, label: str, source: dict[str, str]) -> None:
    """Note what was imported, so that the same file is known at once; only now, because now it is whole."""
    record = ledger.session(label)
    if record is not None and not about_import(record).items() >= source.items():
        ledger.update(label, data={**record.data, ABOUT: {**about_import(record), **source}})
