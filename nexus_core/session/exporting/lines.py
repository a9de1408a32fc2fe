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
from base64 import b64encode
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.neutral import message_to_json
from nexus_core.errors import LedgerError
from nexus_core.request.prefix import read_prefix
from nexus_core.session.importing.sources import source_pieces
from nexus_core.session.importing.transcripts import about_import
from nexus_core.text.safety import visible_json
from nexus_core.transcripts.nexus import EXPORT_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.types.ledger import Ledger, SessionRecord, Step

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
            digests.update(dict.fromkeys(filter(None, (digest, read_prefix(_blob(ledger, digest)).sections_digest))))
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
