"""An export as it was written: checked line by line, so that nothing is taken over that is missing or was changed."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, get_args

from nexus_core.dialects.neutral import message_from_json
from nexus_core.errors import FileError, NexusError
from nexus_core.ledger.codec import build_step_row, compute_blob_digest, encode_step
from nexus_core.session.exporting.lines import SCHEMA, SESSION, STEP
from nexus_core.transcripts.nexus import EXPORT_KEY
from nexus_core.types.ledger import NewStep, SessionRecord, SessionStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.ledger.store import StepRow

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
