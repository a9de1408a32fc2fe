"""Export of sessions as JSON lines or API messages, and import of exports.

    {"nexus_session": 1, "sessions": [{"label": …, "head": …, "tip": …, …}]}
    {"blob": "<digest>", "base64": "…"}
    {"step": "<id>", "parent": …, "kind": …, "closes": …, "messages": […], …, "digest": …, "chain": …}
    {"end": "<digest of all lines before>", "blobs": 1, "steps": 1}

An export has everything as it is in the ledger, secrets included; all of it is written by `_format_line`. The import
checks every line, so that nothing missing or changed is accepted, and keeps ids and digests.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from nexus_core.dialects.neutral import message_from_json, message_to_json
from nexus_core.errors import FileError, LedgerError, NexusError, SessionExistsError
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.ledger.codec import build_step_row, compute_blob_digest, encode_step
from nexus_core.request.prefix import read_prefix
from nexus_core.text.safety import visible_json
from nexus_core.thread.cache import NullSizer
from nexus_core.thread.projection import project_steps
from nexus_core.transcripts.nexus import EXPORT_KEY
from nexus_core.transfer.importer import SessionChange, list_original_blobs
from nexus_core.transfer.transcript_steps import MAX_TIME_MS, add_up_steps, read_totals
from nexus_core.types.base import blake2b
from nexus_core.types.ledger import NewStep, SessionRecord, SessionStatus
from nexus_core.types.messages import Conversation
from nexus_core.types.payloads import ReplyPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.ledger.store import StepRow
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.messages import Message

_SCHEMA = 1
"""Increased when a reader of the version before could misread an export."""
_SESSION_FIELDS = ("label", "head", "tip", "status", "origin", "data")
_STEP_FIELDS = ("parent", "kind", "closes", "messages", "tokens", "counter", "data", "created", "digest", "chain")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STEP_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


# ---- export -------------------------------------------------------------------------------------------------------


def export_session(ledger: Ledger, label: str, *, with_forks: bool = False, ascii_only: bool = False) -> Iterator[str]:
    """Yield the lines of a session's export, each with its line end.

    Args:
        ledger: The ledger.
        label: The session.
        with_forks: True to export the sessions that were forked from it, too.
        ascii_only: True to escape all other characters.

    Raises:
        LedgerError: There is no such session, or a part of it is missing.
    """
    digest = blake2b(digest_size=32)
    counts = {"blobs": 0, "steps": 0}
    for body in _list_bodies(ledger, _find_records(ledger, label, with_forks=with_forks)):
        line = _format_line(body, ascii_only=ascii_only)
        digest.update(line.encode())
        counts["blobs"] += "blob" in body
        counts["steps"] += "step" in body
        yield line
    yield _format_line({"end": digest.hexdigest(), **counts}, ascii_only=ascii_only)


def read_all_messages(ledger: Ledger, tip: str | None) -> tuple[Message, ...]:
    """Return the messages of a thread, compacted ones included."""
    return () if tip is None else tuple(sent.message for sent in project_steps(ledger.thread(tip), NullSizer()))


def format_messages(messages: Sequence[Message], api: str, dialects: DialectRegistry) -> list[Any] | dict[str, Any]:
    """Return messages as an API's own list, repaired where the API would refuse them.

    If they begin with instructions that the API accepts only outside the list, it is a request body with both.
    """
    dialect = dialects.get(api)
    repaired = [message for _, message in apply_repair_rules(messages, dialect.rules).messages]
    if dialect.rules.system == "field" and repaired and repaired[0].role == "system":
        return dialect.write_request(Conversation(messages=tuple(repaired), extra={"_body": True}))  # as REST has it
    return dialect.write(repaired)


def _list_bodies(ledger: Ledger, records: Sequence[SessionRecord]) -> Iterator[dict[str, Any]]:
    sessions = [{name: getattr(record, name) for name in _SESSION_FIELDS} for record in records]
    yield {EXPORT_KEY: _SCHEMA, "sessions": sessions}
    steps = _read_steps(ledger, records)
    for digest in _find_blobs(ledger, records, steps):
        yield {"blob": digest, "base64": b64encode(_read_blob(ledger, digest)).decode()}
    for step in steps:
        fields = {name: getattr(step, name) for name in _STEP_FIELDS}
        yield {"step": step.id, **fields, "messages": [message_to_json(message) for message in step.messages]}


def _find_records(ledger: Ledger, label: str, *, with_forks: bool) -> list[SessionRecord]:
    """Return a session, and the forks of it and of each other."""
    record = ledger.session(label)
    if record is None:
        raise LedgerError(f"there is no session {label!r}")
    if not with_forks:
        return [record]
    others = sorted(ledger.sessions(status=None), key=lambda each: each.label)
    found = {record.label: record}
    while True:
        more = [each for each in others if each.label not in found and _get_origin(ledger, each) in found]
        if not more:
            return list(found.values())
        found.update((each.label, each) for each in more)


def _get_origin(ledger: Ledger, record: SessionRecord) -> str:
    """Return the current name of the session that another was forked from."""
    origin = ledger.session(record.origin) if record.origin else None
    return origin.label if origin else ""


def _read_steps(ledger: Ledger, records: Iterable[SessionRecord]) -> list[Step]:
    """Return every step once, each after its parent."""
    found: dict[str, Step] = {}
    for record in records:
        if record.tip is not None:
            found.update((step.id, step) for step in ledger.thread(record.tip))
    return list(found.values())


def _find_blobs(ledger: Ledger, records: Iterable[SessionRecord], steps: Iterable[Step]) -> list[str]:
    """Return the digests of the blobs of sessions and steps.

    Blobs of messages are written inside the messages.
    """
    digests: dict[str, None] = {}
    for record in records:
        digests.update(dict.fromkeys(list_original_blobs(ledger, record)))
    payloads = [step.payload for step in steps]
    prefixes, sections = {each.epoch for each in payloads}, {each.sections_digest for each in payloads}
    replies = {each.digest for each in payloads if isinstance(each, ReplyPayload)}
    # A newer version may refer to other blobs.
    named = dict.fromkeys(value for each in payloads for value in each.to_json().values() if _is_blob_digest(value))
    for digest in (each for each in named if each not in replies):
        if digest in prefixes:
            digests.update(
                dict.fromkeys(filter(None, (digest, read_prefix(_read_blob(ledger, digest)).sections_digest)))
            )
        elif digest in sections or ledger.blob(digest) is not None:
            digests[digest] = None
    return list(digests)


def _is_blob_digest(value: object) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _read_blob(ledger: Ledger, digest: str) -> bytes:
    content = ledger.blob(digest)
    if content is None:
        hint = "`nexus ledger verify` says what else is missing"
        raise LedgerError(f"something that belongs to it is missing: there is no blob {digest}", hint=hint)
    return content


def _format_line(body: dict[str, Any], *, ascii_only: bool) -> str:
    text = json.dumps(body, ensure_ascii=ascii_only, separators=(",", ":"))
    return visible_json(text) + "\n"


# ---- reading ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionExport:
    """The content of an export.

    Attributes:
        sessions: The session, and its forks.
        steps: Their steps by id, each after its parent.
        parents: The parent of each step.
        digests: The digest of each step.
        blobs: Blobs that sessions and steps refer to.
    """

    sessions: list[SessionRecord] = field(default_factory=list)
    steps: dict[str, NewStep] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    blobs: list[bytes] = field(default_factory=list)

    def walk_back(self, tip: str | None) -> Iterator[str]:
        """Yield the ids of the steps of a thread, newest first."""
        while tip is not None:
            yield tip
            tip = self.parents[tip]


def is_export(text: str) -> bool:
    """True if a text begins like an export."""
    return text.startswith(f'{{"{EXPORT_KEY}":')


def read_export(text: str, name: str) -> SessionExport:
    """Parse an export and check every digest.

    Args:
        text: The whole file.
        name: The name of the file in errors.

    Raises:
        FileError: It is incomplete, was changed, or is from a later version; names the line.
    """
    return _ExportParser(name).read(text)


class _ExportParser:
    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 1
        self._rows: dict[str, StepRow] = {}
        self._export = SessionExport()

    def read(self, text: str) -> SessionExport:
        lines = text.replace("\r\n", "\n").split("\n")  # JSON escapes line ends inside of texts
        digest = blake2b(digest_size=32)
        for number, line in enumerate(lines, 1):
            self._line = number
            body = self._parse(line)
            if "end" in body:
                self._check_end(body, digest.hexdigest(), lines[number:])
                return self._export
            digest.update(f"{line}\n".encode())
            self._read_body(body)
        return self._refuse("its end is missing")

    def _parse(self, line: str) -> dict[str, Any]:
        try:
            body = json.loads(line)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self._refuse("its end is missing" if not line else "not an object in JSON")
        return body

    def _read_body(self, body: dict[str, Any]) -> None:
        try:
            if "step" in body:
                self._read_step(body)
            elif "blob" in body:
                self._read_blob(body)
            elif self._line == 1:
                self._read_sessions(body)
            else:
                self._refuse("nothing that an export has")
        except FileError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, NexusError) as error:
            what = error.what if isinstance(error, NexusError) else "something in it is of another kind than expected"
            self._refuse(what)

    def _read_sessions(self, body: dict[str, Any]) -> None:
        if body.get(EXPORT_KEY) != _SCHEMA:
            self._refuse(f"expected version {_SCHEMA}, not {body.get(EXPORT_KEY)!r}", hint="update Nexus")
        for given in body["sessions"]:
            record = SessionRecord(**{name: given[name] for name in _SESSION_FIELDS})
            if record.status not in get_args(SessionStatus) or not isinstance(record.data, dict):
                raise TypeError
            self._export.sessions.append(record)

    def _read_blob(self, body: dict[str, Any]) -> None:
        content = b64decode(body["base64"], validate=True)
        if compute_blob_digest(content) != body["blob"]:
            self._refuse(f"blob {body['blob']} was changed since it was exported")
        self._export.blobs.append(content)

    def _read_step(self, body: dict[str, Any]) -> None:
        name, given = body["step"], {key: body[key] for key in _STEP_FIELDS}
        parent, created = given["parent"], given["created"]
        if not _STEP_ID.fullmatch(name) or name in self._rows:
            raise TypeError
        if type(created) is not int or not 0 <= created < MAX_TIME_MS:
            raise TypeError
        if parent is not None and parent not in self._rows:
            self._refuse(f"the step before {name} is missing")
        step = NewStep(
            kind=given["kind"],
            closes=given["closes"] is True,
            messages=tuple(message_from_json(message) for message in given["messages"]),
            tokens=given["tokens"],
            counter=given["counter"],
            data=given["data"],
            id=name,
            created=created,
        )
        before = None if parent is None else self._rows[parent]
        turn = before.turn if before is not None and not before.closes else None
        row = build_step_row(encode_step(step, name, created), before, turn=turn, branch="")
        if (row.digest, row.chain) != (given["digest"], given["chain"]):
            self._refuse(f"step {name} was changed since it was exported")
        self._rows[name] = row
        self._export.steps[name] = step
        self._export.parents[name] = parent
        self._export.digests[name] = row.digest

    def _check_end(self, body: dict[str, Any], digest: str, rest: list[str]) -> None:
        if body["end"] != digest:
            self._refuse("it was changed since it was exported")
        if any(line.strip() for line in rest):
            self._refuse("there is text after its end")
        if not self._export.sessions:
            self._refuse("there is no session in it")
        for record in self._export.sessions:
            for name in (record.head, record.tip):
                if name is not None and name not in self._rows:
                    self._refuse(f"step {name}, the end of session {record.label!r}, is missing")

    def _refuse(self, what: str, hint: str = "export the session again") -> NoReturn:
        raise FileError(f"this export cannot be used: {what}", where=f"{self._name}:{self._line}", hint=hint)


# ---- import -------------------------------------------------------------------------------------------------------


def import_export(
    ledger: Ledger, export: SessionExport, *, label: str = "", dry_run: bool = False
) -> list[SessionChange]:
    """Add the sessions of an export to a ledger, with the same ids and digests.

    Nothing that the ledger has is changed or added twice.

    Each session is added in one transaction. If the import is interrupted between two, the next one adds the rest.

    Args:
        ledger: The ledger.
        export: The export.
        label: Another name for the session, and for those named after it; "" for its own.
        dry_run: True to return the changes only, without adding anything.

    Raises:
        SessionExistsError: A session of that name has another conversation, or was continued differently.
        LedgerError: A step with the same id has another content.
    """
    planned = _ExportPlan(ledger, export).plan(label)
    if not dry_run:
        ledger.put_blobs(export.blobs)
        for record, change in planned:
            _write_change(ledger, export, record, change)
    return [change for _, change in planned]


def _write_change(ledger: Ledger, export: SessionExport, record: SessionRecord, change: SessionChange) -> None:
    if not change.is_new:
        ledger.append_many(change.label, change.steps, after=change.after)
        return
    ledger.create(change.label, head=change.after, origin=record.origin, data=record.data, steps=change.steps)
    if record.tip is not None and (record.status != "active" or not change.steps):
        # The time of its last change is that of the exported session.
        ledger.update(change.label, status=record.status, updated=export.steps[record.tip].created)


class _ExportPlan:
    """A comparison of an export with a ledger, which is only read."""

    def __init__(self, ledger: Ledger, export: SessionExport) -> None:
        self._ledger = ledger
        self._export = export
        self._planned: set[str] = set()  # steps

    def plan(self, label: str) -> list[tuple[SessionRecord, SessionChange]]:
        """Return each session as it is to be stored, and its change."""
        main = self._export.sessions[0].label
        records = [_rename(record, main, label) for record in self._export.sessions]
        return [
            (record, self._plan_session(record, "fork" if number else "main")) for number, record in enumerate(records)
        ]

    def _plan_session(self, record: SessionRecord, kind: str) -> SessionChange:
        after, steps = self._find_missing(record.tip)
        known = self._ledger.session(record.label)
        if known is None:
            self._check_turn_closed(record.label, after)
        elif known.tip != after and (steps or not _is_ancestor(self._ledger, known.tip, after)):
            raise SessionExistsError(
                f"session {known.label!r} is another conversation, or has gone on otherwise",
                hint="import it under another name: --name NAME",
            )
        self._planned.update(step.id for step in steps)
        if known is None or steps:
            ids = reversed([*self._export.walk_back(record.tip)])
            totals = add_up_steps(self._export.steps[step_id] for step_id in ids)
        else:
            totals = read_totals(self._ledger, known.tip)
        return SessionChange(
            label=record.label if known is None else known.label,
            kind=kind,
            totals=totals,
            is_new=known is None,
            after=after if known is None else known.tip,
            added=len(steps),
            steps=steps,
            is_open=not steps[-1].closes if steps else known is not None and known.open_turn is not None,
        )

    def _find_missing(self, tip: str | None) -> tuple[str | None, tuple[NewStep, ...]]:
        """Return the last step of a thread that the ledger has, and the steps after it."""
        missing: list[NewStep] = []
        for step_id in self._export.walk_back(tip):
            if step_id in self._planned or self._is_stored(step_id):
                return step_id, tuple(reversed(missing))
            missing.append(self._export.steps[step_id])
        return None, tuple(reversed(missing))

    def _is_stored(self, step_id: str) -> bool:
        known = self._ledger.step(step_id)
        if getattr(known, "is_erased", False):
            hint = "import it into another ledger: --ledger NEW"
            raise LedgerError(f"step {step_id} was deleted here with its session, and does not come back", hint=hint)
        if known is not None and known.digest != self._export.digests[step_id]:
            raise LedgerError(f"there is another step {step_id}", hint="`nexus ledger verify` says whether it is whole")
        return known is not None

    def _check_turn_closed(self, label: str, after: str | None) -> None:
        if after is not None and not self._export.steps[after].closes:
            raise SessionExistsError(
                f"the turn that is open in {label!r} is there already, in a session of another name",
                hint="`nexus session list` says which; finish the turn there",
            )


def _rename(record: SessionRecord, main: str, label: str) -> SessionRecord:
    """Return a session under another name, if it is the main one or named after it."""
    if not label:
        return record
    names = {
        each: label + each.removeprefix(main) if each == main or each.startswith(f"{main}/") else each
        for each in (record.label, record.origin)
    }
    payload, about = record.payload, record.payload.transcript
    if about:
        payload = payload.replace(transcript=about.replace(session=names[record.label], main=label))
    return replace(record, label=names[record.label], origin=names[record.origin], data=payload.to_json())


def _is_ancestor(ledger: Ledger, tip: str | None, step_id: str | None) -> bool:
    """True if a step is in the thread of another. None is before every step."""
    if tip is None or step_id is None:
        return step_id is None
    try:
        return bool(ledger.thread(tip, first=step_id))
    except LedgerError:
        return False
