"""Reading of a transcript, whichever program wrote it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.finding import BUILT_IN
from nexus_core.dialects.transcripts import chatgpt, claude, codex, messages, nexus, nexus3, pi
from nexus_core.dialects.transcripts.account import Account
from nexus_core.dialects.transcripts.document import elements, members, parse_document, place
from nexus_core.dialects.transcripts.lines import read_records
from nexus_core.dialects.transcripts.recognition import (
    OWN,
    UNSUPPORTED,
    FormatDetector,
    TranscriptFormat,
    extract_line_shape,
)
from nexus_core.errors import MessageError, TranscriptError
from nexus_core.values.parts import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.dialects.finding import Dialects
    from nexus_core.dialects.transcripts.document import Piece
    from nexus_core.dialects.transcripts.transcript import Transcript
    from nexus_core.values.message import Message

    ReadDocument = Callable[[str, Mapping[str, Piece], Account], Transcript]

_KNOWN = (
    "sessions of Claude Code, Codex, pi, NEXUS3 and Nexus, exports of ChatGPT, "
    "messages and requests of any API are known"
)
_MESSAGES = TranscriptFormat(messages.FORMAT, "a list of messages", messages.score_line, messages.read_lines)
FORMATS = (
    TranscriptFormat(nexus.FORMAT, "an export of Nexus", nexus.score_line, nexus.read_session),
    TranscriptFormat("codex", "a Codex rollout", codex.score_line, codex.read_session),
    TranscriptFormat("claude-code", "a session of Claude Code", claude.score_line, claude.read_session),
    TranscriptFormat(chatgpt.FORMAT, "a conversation of ChatGPT", chatgpt.score_line),
    TranscriptFormat(nexus3.FORMAT, "a saved session of NEXUS3", nexus3.score_line),
    *UNSUPPORTED,
    # Of formats with the same lines the one with a line of its own comes first: Droid's messages look like pi's.
    TranscriptFormat("pi", "a session of pi", pi.score_line, pi.read_session),
    _MESSAGES,
)
"""The formats there are, the most specific first."""
_DOCUMENTS: Mapping[str, ReadDocument] = {
    chatgpt.FORMAT: chatgpt.read_conversation,
    nexus3.FORMAT: nexus3.read_saved_session,
    messages.FORMAT: messages.read_request,
}
"""Readers of formats that are one JSON document."""


class ConversationText(NamedTuple):
    """One of several conversations in a file.

    Attributes:
        text: Its JSON.
        line: The line of the file where it begins.
    """

    text: str
    line: int


def read_transcript(source: str | Iterable[str], name: str = "", dialects: Dialects = BUILT_IN) -> Transcript:
    """Read a conversation that a program wrote down; the content tells which program it was.

    A line that is broken is skipped with a note in the report; so is half a line at the end, as while a session is
    being written.

    Args:
        source: The text of a file, or its lines.
        name: What to call it in errors.
        dialects: The shapes that its messages may be in.

    Raises:
        TranscriptError: It is in a format that Nexus does not know or cannot read, or most of it would be opaque.
        MessageError: A list of messages has something else in it, or there are several conversations; names file
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


def split_conversations(text: str) -> list[ConversationText]:
    """Return the conversations of a file that is a JSON list of several; an empty list for any other file."""
    if not text.removeprefix("\ufeff").lstrip().startswith("["):
        return []
    try:
        values = parse_document(text.removeprefix("\ufeff"), "")
    except MessageError:
        return []
    # One is read as it is; what is none among several is refused by itself, and keeps no other from being imported.
    if len(values) < 2 or not any(map(_is_conversation, values)):  # noqa: PLR2004 - see above
        return []
    found = elements(text.removeprefix("\ufeff"))
    return [ConversationText(json.dumps(piece.value, ensure_ascii=False), piece.line) for piece in found]


def is_session_line(value: dict[str, Any]) -> bool:
    """True if a line is surely of a session that a program keeps, in which messages are inside of other things."""
    outline = extract_line_shape(value)
    return any(form.score_line(outline) == OWN for form in FORMATS if form is not _MESSAGES)


def _split(text: str) -> list[str]:
    # Only a line feed ends a line of JSON; other signs that Python takes for one may be in its texts.
    lines = text.removeprefix("\ufeff").split("\n")
    return lines if lines[-1] else lines[:-1]


def _score_values(values: Iterable[dict[str, Any]]) -> FormatDetector:
    evidence = FormatDetector(FORMATS)
    for value in values:
        evidence.add(value)
    return evidence


def _read_lines(lines: Sequence[str], account: Account) -> Transcript:
    records = read_records(lines, account)
    evidence = _score_values(record.value for record in records)
    found = evidence.best()
    first = records[0].number if records else 1
    if found is None and any(account.dialects.offering(record.value) for record in records):
        found = _MESSAGES
    if found is None:
        raise _unknown(place(account.name, first), evidence)
    if found.read is None:
        raise _unsupported(found, place(account.name, first))
    return _readable(found.read(records, account), account.name, evidence)


def _read_document(lines: Sequence[str], written: Sequence[str], account: Account) -> Transcript | None:
    """Read a single JSON document; None where it is none, but most lines are."""
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
        raise _unknown(place(account.name, 1))
    return _read_object(text, value, account, None)


def _read_object(text: str, value: dict[str, Any], account: Account, start: Piece | None) -> Transcript | None:
    """Read one object; None where it can only be the one line of a file."""
    evidence = _score_values([value])
    found = evidence.best()
    read = _DOCUMENTS.get(found.name) if found else None
    if found is not None and read is None and found.read is None:
        raise _unsupported(found, place(account.name, 1))
    if read is None or (found is _MESSAGES and not messages.is_request(value)):
        return None
    return _readable(read(text, members(text, start), account), account.name, evidence)


def _read_listed(text: str, values: list[Any], account: Account) -> Transcript:
    if any(map(_is_conversation, values)):
        if len(values) > 1:
            raise MessageError(
                f"there are {len(values)} conversations in it",
                path=account.name,
                hint="`nexus session import FILE` makes a session of each; for one: jq '.[0]' FILE | nexus context -",
            )
        (start,) = elements(text)
        found = _read_object(text, values[0], account, start)
        if found is None:
            raise _unknown(place(account.name, 1))
        return found
    evidence = _score_values(value for value in values if isinstance(value, dict))
    form = evidence.best()
    if form is not None and form.read is None:
        raise _unsupported(form, place(account.name, 1))
    return _readable(messages.read_list(text, account), account.name, evidence)


def _readable(transcript: Transcript, name: str, evidence: FormatDetector) -> Transcript:
    """Return the transcript if most of its messages were understood.

    Raises:
        TranscriptError: Most of them are opaque.
    """
    entries = [*transcript.entries, *(entry for branch in transcript.branches for entry in branch.entries)]
    opaque = sum(_is_opaque(entry.message) for entry in entries)
    if 2 * opaque <= len(entries):
        return transcript
    raise TranscriptError(
        f"{opaque:,} of {len(entries):,} messages would be opaque: they are in a shape that Nexus does not know",
        code="mostly-opaque",
        path=name or "transcript",
        hint=_near(evidence),
        nearest=transcript.format,
    )


def _is_opaque(message: Message) -> bool:
    """True if nothing in the message was understood; an item of Responses that is kept whole is known by its type."""
    return bool(message.parts) and all(
        isinstance(part, Opaque) and not (part.api == "responses" and messages.is_responses_item(part.block))
        for part in message.parts
    )


def _unknown(path: str, evidence: FormatDetector | None = None) -> TranscriptError:
    name = evidence.nearest()[0] if evidence else ""
    hint = f"{_near(evidence)}; {_KNOWN}" if name and evidence else _KNOWN
    return TranscriptError(
        "not a transcript that Nexus knows", code="unknown-format", path=path, hint=hint, nearest=name
    )


def _unsupported(form: TranscriptFormat, path: str) -> TranscriptError:
    return TranscriptError(
        f"this is {form.title}; Nexus cannot read it yet",
        code="unsupported-format",
        path=path,
        hint=_KNOWN,
        nearest=form.name,
    )


def _near(evidence: FormatDetector) -> str:
    name, lines = evidence.nearest()
    return f"the nearest format is {name}, which explains {lines:,} of {evidence.lines:,} entries" if name else _KNOWN


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict) or "role" in value:
        return False
    return chatgpt.score_line(value) == OWN or "messages" in value


def _is_whole(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
