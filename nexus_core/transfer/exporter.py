"""A session as lines of JSON: who it is, what its steps refer to, every step with its digest, and the end.

    {"nexus_session": 1, "sessions": [{"label": …, "head": …, "tip": …, …}]}
    {"blob": "<digest>", "base64": "…"}
    {"step": "<id>", "parent": …, "kind": …, "closes": …, "messages": […], …, "digest": …, "chain": …}
    {"end": "<digest of all lines before>", "blobs": 1, "steps": 1}

Everything is written as it is in the ledger. What takes secrets out of an export belongs into `_line`, through which
all of it goes; there is nothing yet that does.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, get_args

from nexus_core.assembly.epoch import read_epoch
from nexus_core.dialects.neutral import message_from_json, message_to_json
from nexus_core.errors import FileError, LedgerError, NexusError, SessionExistsError
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.ledger.codec import build_step_row, compute_blob_digest, encode_step
from nexus_core.session.steps.projecting import project
from nexus_core.session.steps.weighing import Weightless
from nexus_core.text.safety import visible_json
from nexus_core.transcripts.nexus import EXPORT_KEY
from nexus_core.transfer.importer import ABOUT, about_import, source_pieces
from nexus_core.transfer.transcript_steps import Tally, tally, tally_until
from nexus_core.types.ledger import NewStep, SessionRecord, SessionStatus
from nexus_core.types.messages import Conversation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.ledger.store import StepRow
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.messages import Message

SCHEMA = 1
"""Raised when a reader of the version before could misread what is written."""
SESSION = ("label", "head", "tip", "status", "origin", "data")
EPOCH, VIEW = "epoch", "view"
"""What steps name by its address: system prompt and tools, and what the model was told since."""
_ADDRESS = re.compile(r"[0-9a-f]{64}")
STEP = ("parent", "kind", "closes", "messages", "tokens", "counter", "data", "created", "digest", "chain")


def export_lines(ledger: Ledger, label: str, *, forks: bool = False, ascii_only: bool = False) -> Iterator[str]:
    """A session, line by line, each with its line end.

    Args:
        ledger: Where it is.
        label: Which session.
        forks: Whether the sessions that were forked from it go with it.
        ascii_only: Whether all other characters are escaped.

    Raises:
        LedgerError: Something that belongs to it is missing.
    """
    digest = blake2b(digest_size=32)
    counts = {"blobs": 0, "steps": 0}
    for body in _bodies(ledger, _related(ledger, label, forks=forks)):
        line = _line(body, ascii_only=ascii_only)
        digest.update(line.encode())
        counts["blobs"] += "blob" in body
        counts["steps"] += "step" in body
        yield line
    yield _line({"end": digest.hexdigest(), **counts}, ascii_only=ascii_only)


def _bodies(ledger: Ledger, records: Sequence[SessionRecord]) -> Iterator[dict[str, Any]]:
    sessions = [{name: getattr(record, name) for name in SESSION} for record in records]
    yield {EXPORT_KEY: SCHEMA, "sessions": sessions}
    steps = _steps(ledger, records)
    for digest in _referred(ledger, records, steps):
        yield {"blob": digest, "base64": b64encode(_blob(ledger, digest)).decode()}
    for step in steps:
        facts = {name: getattr(step, name) for name in STEP}
        yield {"step": step.id, **facts, "messages": [message_to_json(message) for message in step.messages]}


def _related(ledger: Ledger, label: str, *, forks: bool) -> list[SessionRecord]:
    """The session, and those that were forked from it and from each other."""
    record = ledger.session(label)
    if record is None:
        raise LedgerError(f"there is no session {label!r}")
    if not forks:
        return [record]
    others = sorted(ledger.sessions(status=None), key=lambda each: each.label)
    found = {record.label: record}
    while True:
        more = [each for each in others if each.label not in found and _origin(ledger, each) in found]
        if not more:
            return list(found.values())
        found.update((each.label, each) for each in more)


def _origin(ledger: Ledger, record: SessionRecord) -> str:
    """The session it was forked from, by the name that has now."""
    origin = ledger.session(record.origin) if record.origin else None
    return origin.label if origin else ""


def _steps(ledger: Ledger, records: Iterable[SessionRecord]) -> list[Step]:
    """Every step once, each behind the one before it."""
    found: dict[str, Step] = {}
    for record in records:
        if record.tip is not None:
            found.update((step.id, step) for step in ledger.thread(record.tip))
    return list(found.values())


def _referred(ledger: Ledger, records: Iterable[SessionRecord], steps: Iterable[Step]) -> list[str]:
    """The blobs that sessions and steps name; those of messages stand in the messages."""
    digests: dict[str, None] = {}
    for record in records:
        source = about_import(record).get("source")
        if isinstance(source, str):
            digests.update(dict.fromkeys([source, *source_pieces(ledger, source)]))
    named = {str(value): name for step in steps for name, value in step.data.items() if _is_address(name, value)}
    for digest, name in named.items():
        if name == EPOCH:
            digests.update(dict.fromkeys(filter(None, (digest, read_epoch(_blob(ledger, digest)).view))))
        elif name == VIEW or ledger.blob(digest) is not None:
            digests[digest] = None
    return list(digests)


def _is_address(name: str, value: object) -> bool:
    return name != "digest" and isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _blob(ledger: Ledger, digest: str) -> bytes:
    content = ledger.blob(digest)
    if content is None:
        hint = "`nexus ledger verify` says what else is missing"
        raise LedgerError(f"something that belongs to it is missing: there is no blob {digest}", hint=hint)
    return content


def _line(body: dict[str, Any], *, ascii_only: bool) -> str:
    text = json.dumps(body, ensure_ascii=ascii_only, separators=(",", ":"))
    return visible_json(text) + "\n"


def everything_said(ledger: Ledger, tip: str | None) -> tuple[Message, ...]:
    """The messages of a thread, compacted or not."""
    return () if tip is None else tuple(sent.message for sent in project(ledger.thread(tip), Weightless()))


def write_messages(messages: Sequence[Message], api: str, dialects: DialectRegistry) -> list[Any] | dict[str, Any]:
    """Messages as an API's own list, with nothing in it that the API would refuse.

    Where they begin with instructions, which the API takes only beside the list, it is a request that has both.
    """
    speaking = dialects.get(api)
    mended = [message for _, message in apply_repair_rules(messages, speaking.rules).messages]
    if speaking.rules.system == "field" and mended and mended[0].role == "system":
        return speaking.write_request(Conversation(messages=tuple(mended), extra={"_body": True}))  # as REST takes it
    return speaking.write(mended)


_NAME = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_LATEST = 1 << 50
_WHOLE = "export the session again"


class Export(NamedTuple):
    """What an export holds.

    Attributes:
        sessions: The session, and those that were forked from it.
        steps: Their steps by name, each behind the one before it.
        parents: The step before each.
        digests: The digest of each.
        blobs: What sessions and steps refer to.
    """

    sessions: list[SessionRecord]
    steps: dict[str, NewStep]
    parents: dict[str, str | None]
    digests: dict[str, str]
    blobs: list[bytes]

    def thread(self, tip: str | None) -> Iterator[str]:
        """The steps up to one, the newest first."""
        while tip is not None:
            yield tip
            tip = self.parents[tip]


def is_export(text: str) -> bool:
    """Whether a text begins as an export does."""
    return text.startswith(f'{{"{EXPORT_KEY}":')


def read_export(text: str, name: str) -> Export:
    """What is in an export, after a look at every digest.

    Args:
        text: The whole file.
        name: What to call it in errors.

    Raises:
        FileError: It is not whole, was changed, or is of a later Nexus; names the line.
    """
    return _Reading(name).read(text)


class _Reading:
    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 1
        self._rows: dict[str, StepRow] = {}
        self._found = Export([], {}, {}, {}, [])

    def read(self, text: str) -> Export:
        lines = text.replace("\r\n", "\n").split("\n")  # a line end is never part of what an export says
        digest = blake2b(digest_size=32)
        for number, line in enumerate(lines, 1):
            self._line = number
            body = self._parsed(line)
            if "end" in body:
                self._end(body, digest.hexdigest(), lines[number:])
                return self._found
            digest.update(f"{line}\n".encode())
            self._take(body)
        return self._refuse("its end is missing")

    def _take(self, body: dict[str, Any]) -> None:
        try:
            if "step" in body:
                self._step(body)
            elif "blob" in body:
                self._blob(body)
            elif self._line == 1:
                self._head(body)
            else:
                self._refuse("nothing that an export has")
        except FileError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, NexusError) as error:
            what = error.what if isinstance(error, NexusError) else "something in it is of another kind than expected"
            self._refuse(what)

    def _head(self, body: dict[str, Any]) -> None:
        if body.get(EXPORT_KEY) != SCHEMA:
            self._refuse(f"expected version {SCHEMA}, not {body.get(EXPORT_KEY)!r}", hint="update Nexus")
        for given in body["sessions"]:
            record = SessionRecord(**{name: given[name] for name in SESSION})
            if record.status not in get_args(SessionStatus) or not isinstance(record.data, dict):
                raise TypeError
            self._found.sessions.append(record)

    def _blob(self, body: dict[str, Any]) -> None:
        content = b64decode(body["base64"], validate=True)
        if compute_blob_digest(content) != body["blob"]:
            self._refuse(f"blob {body['blob']} was changed since it was exported")
        self._found.blobs.append(content)

    def _step(self, body: dict[str, Any]) -> None:
        name, given = body["step"], {key: body[key] for key in STEP}
        parent, created = given["parent"], given["created"]
        if not _NAME.fullmatch(name) or name in self._rows or type(created) is not int or not 0 <= created < _LATEST:
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
        self._found.steps[name] = step
        self._found.parents[name] = parent
        self._found.digests[name] = row.digest

    def _end(self, body: dict[str, Any], digest: str, rest: list[str]) -> None:
        if body["end"] != digest:
            self._refuse("it was changed since it was exported")
        if any(line.strip() for line in rest):
            self._refuse("something stands behind its end")
        if not self._found.sessions:
            self._refuse("there is no session in it")
        for record in self._found.sessions:
            for name in (record.head, record.tip):
                if name is not None and name not in self._rows:
                    self._refuse(f"step {name} is missing, where session {record.label!r} stands")

    def _parsed(self, line: str) -> dict[str, Any]:
        try:
            body = json.loads(line)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self._refuse("its end is missing" if not line else "not an object in JSON")
        return body

    def _refuse(self, what: str, hint: str = _WHOLE) -> NoReturn:
        raise FileError(f"this export cannot be used: {what}", where=f"{self._name}:{self._line}", hint=hint)


class Restored(NamedTuple):
    """What becomes of a session.

    Attributes:
        record: What it is like.
        is_new: Whether it is made.
        after: The step behind which the steps go; None for none.
        steps: What is added; nothing where all of it is there.
        tally: What the session consists of with them.
    """

    record: SessionRecord
    is_new: bool
    after: str | None
    steps: tuple[NewStep, ...]
    tally: Tally


def restore(ledger: Ledger, export: Export, *, label: str = "", dry_run: bool = False) -> list[Restored]:
    """Bring the sessions of an export into a ledger; what is there already stays as it is.

    Each session is added in one transaction. If that is cut off between two, the next import adds the rest.

    Args:
        ledger: Where to.
        export: What.
        label: What the session shall be called; by default what it is called in the export.
        dry_run: Whether to say only what would be added.

    Raises:
        SessionExistsError: A session of that name is another conversation, or has gone on otherwise.
        LedgerError: A step of that name is there already and says something else.
    """
    planned = _Plan(ledger, export).plan(label)
    if dry_run:
        return planned
    ledger.put_blobs(export.blobs)
    for each in planned:
        if not each.is_new:
            ledger.append_many(each.record.label, each.steps, after=each.after)
            continue
        record = each.record
        ledger.create(record.label, head=each.after, origin=record.origin, data=record.data, steps=each.steps)
        if record.tip is not None and (record.status != "active" or not each.steps):
            # It was last changed where it comes from.
            ledger.update(record.label, status=record.status, updated=export.steps[record.tip].created)
    return planned


class _Plan:
    def __init__(self, ledger: Ledger, export: Export) -> None:
        self._ledger = ledger
        self._export = export
        self._planned: set[str] = set()

    def plan(self, label: str) -> list[Restored]:
        main = self._export.sessions[0].label
        return [self._restored(_named(record, main, label)) for record in self._export.sessions]

    def _restored(self, record: SessionRecord) -> Restored:
        after, steps = self._missing(record.tip)
        there = self._ledger.session(record.label)
        if there is None:
            self._ensure_closed(record.label, after)
        elif there.tip != after and (steps or not _leads_to(self._ledger, there.tip, after)):
            raise SessionExistsError(
                f"session {there.label!r} is another conversation, or has gone on otherwise",
                hint="import it under another name: --name NAME",
            )
        after = after if there is None else there.tip
        self._planned.update(step.id for step in steps)
        if there is None or steps:
            found = tally(self._export.steps[name] for name in reversed([*self._export.thread(record.tip)]))
        else:
            found = tally_until(self._ledger, there.tip)
        return Restored(record if there is None else there, there is None, after, steps, found)

    def _missing(self, tip: str | None) -> tuple[str | None, tuple[NewStep, ...]]:
        """The last step of a thread that is there, and those that are not."""
        names: list[str] = []
        for name in self._export.thread(tip):
            if name in self._planned or self._is_there(name):
                return name, tuple(self._export.steps[each] for each in reversed(names))
            names.append(name)
        return None, tuple(self._export.steps[each] for each in reversed(names))

    def _is_there(self, name: str) -> bool:
        known = self._ledger.step(name)
        if getattr(known, "is_erased", False):
            hint = "import it into another ledger: --ledger NEW"
            raise LedgerError(f"step {name} was deleted here with its session, and does not come back", hint=hint)
        if known is not None and known.digest != self._export.digests[name]:
            raise LedgerError(f"there is another step {name}", hint="`nexus ledger verify` says whether it is whole")
        return known is not None

    def _ensure_closed(self, label: str, after: str | None) -> None:
        if after is not None and not self._export.steps[after].closes:
            raise SessionExistsError(
                f"the turn that is open in {label!r} is there already, in a session of another name",
                hint="`nexus session list` says which; finish the turn there",
            )


def _named(record: SessionRecord, main: str, label: str) -> SessionRecord:
    """A session under another name, with those that are named after it."""
    if not label:
        return record
    names = {
        each: label + each.removeprefix(main) if each == main or each.startswith(f"{main}/") else each
        for each in (record.label, record.origin)
    }
    about = about_import(record)
    data = {**record.data, ABOUT: {**about, "session": names[record.label], "main": label}} if about else record.data
    return replace(record, label=names[record.label], origin=names[record.origin], data=data)


def _leads_to(ledger: Ledger, tip: str | None, step: str | None) -> bool:
    """Whether a step is among those up to another."""
    if tip is None or step is None:
        return step is None
    try:
        return bool(ledger.thread(tip, first=step))
    except LedgerError:
        return False
