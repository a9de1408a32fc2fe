"""A text becomes a transcript, whichever program wrote it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.finding import BUILT_IN
from nexus_core.dialects.transcripts import chatgpt, claude, codex, messages, nexus, pi
from nexus_core.dialects.transcripts.account import Account
from nexus_core.dialects.transcripts.document import elements, members, parse_document, place
from nexus_core.dialects.transcripts.lines import Record, read_records
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.dialects.finding import Dialects
    from nexus_core.dialects.transcripts.document import Piece
    from nexus_core.dialects.transcripts.transcript import Transcript

    Recognises = Callable[[dict[str, Any]], bool]
    Reads = Callable[[Sequence[Record], Account], Transcript]

_KNOWN = "sessions of Claude Code, Codex, pi and Nexus, exports of ChatGPT, messages and requests of any API are known"
_READERS: tuple[tuple[Recognises, Reads], ...] = (
    (nexus.recognises, nexus.read_session),
    (codex.recognises, codex.read_session),
    (claude.recognises, claude.read_session),
    (pi.recognises, pi.read_session),
    (messages.recognises, messages.read_lines),
)


def read_transcript(source: str | Iterable[str], name: str = "", dialects: Dialects = BUILT_IN) -> Transcript:
    """Read a conversation that a program wrote down; which program it was, its content tells.

    A line that is broken is skipped with a note in the report; so is half a line at the end, as while a session is
    being written.

    Args:
        source: The text of a file, or its lines.
        name: What to call it in errors.
        dialects: The shapes that its messages may be in.

    Raises:
        MessageError: It is nothing that Nexus understands, or a list of messages with something else in it; names file
            and line.
    """
    lines = _split(source) if isinstance(source, str) else list(source)
    written = [line for line in lines if line and not line.isspace()]
    if not written:
        raise MessageError("there is nothing in it", path=name or "transcript", hint=_KNOWN)
    if len(written) == 1 or not _is_whole(written[0]):
        found = _read_document(lines, written, Account(name, dialects))
        if found:
            return found
    return _read_lines(lines, Account(name, dialects))


def is_session_line(value: dict[str, Any]) -> bool:
    """Whether a line is surely of a session that a program keeps, in which messages are inside of other things."""
    return any(recognises(value) for recognises, _ in _READERS if recognises is not messages.recognises)


def _split(text: str) -> list[str]:
    # Only a line feed ends a line of JSON; other signs that Python takes for one may stand in its texts.
    lines = text.removeprefix("\ufeff").split("\n")
    return lines if lines[-1] else lines[:-1]


def _read_lines(lines: Sequence[str], account: Account) -> Transcript:
    records = read_records(lines, account)
    for record in records:
        for recognises, read in _READERS:
            if recognises(record.value):
                return read(records, account)
    if any(account.dialects.offering(record.value) for record in records):
        return messages.read_lines(records, account)
    first = records[0].number if records else 1
    raise MessageError("not a transcript that Nexus knows", path=place(account.name, first), hint=_KNOWN)


def _read_document(lines: Sequence[str], written: Sequence[str], account: Account) -> Transcript | None:
    """A single JSON document; None where it is none, but most lines are."""
    separator = "" if lines[0].endswith("\n") else "\n"
    text = separator.join(lines)
    try:
        value = parse_document(text, account.name)
    except MessageError:
        if 2 * sum(map(_is_whole, written)) >= len(written):
            return None
        raise
    if isinstance(value, list):
        return _read_listed(text, value, account)
    if not isinstance(value, dict):
        raise MessageError("not a transcript that Nexus knows", path=place(account.name, 1), hint=_KNOWN)
    return _read_object(text, value, account, None)


def _read_object(text: str, value: dict[str, Any], account: Account, start: Piece | None) -> Transcript | None:
    if chatgpt.recognises(value):
        return chatgpt.read_conversation(text, members(text, start), account)
    if messages.is_request(value):
        return messages.read_request(text, members(text, start), account)
    return None


def _read_listed(text: str, values: list[Any], account: Account) -> Transcript:
    if not any(map(_is_conversation, values)):
        return messages.read_list(text, account)
    if len(values) > 1:
        raise MessageError(
            f"there are {len(values)} conversations in it",
            path=account.name,
            hint="take one of them out: jq '.[0]' FILE | nexus context -",
        )
    (start,) = elements(text)
    found = _read_object(text, values[0], account, start)
    if found is None:
        raise MessageError("not a transcript that Nexus knows", path=place(account.name, 1), hint=_KNOWN)
    return found


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and "role" not in value and (chatgpt.recognises(value) or "messages" in value)


def _is_whole(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
