"""Reading of transcripts in any known format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.errors import MessageError, TranscriptError
from nexus_core.transcripts import chatgpt, claude, codex, gemini_cli, messages, nexus, nexus3, pi
from nexus_core.transcripts.base import (
    SCORE_OWN,
    LineAccount,
    format_location,
    locate_elements,
    locate_members,
    parse_document,
    read_json_lines,
)
from nexus_core.transcripts.recognition import FormatDetector, extract_line_shape
from nexus_core.transcripts.unsupported import UNSUPPORTED
from nexus_core.types.messages import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.transcripts.base import LocatedValue, Transcript, TranscriptFormat
    from nexus_core.types.messages import Message

_KNOWN_FORMATS = (
    "sessions of Claude Code, Codex, Gemini CLI, pi, NEXUS3 and Nexus, exports of ChatGPT, "
    "messages and requests of any API are known"
)
FORMATS = (
    nexus.FORMAT,
    codex.FORMAT,
    claude.FORMAT,
    chatgpt.FORMAT,
    nexus3.FORMAT,
    gemini_cli.FORMAT,
    *UNSUPPORTED,
    # Droid's messages look like pi's, but it also has lines of its own, so it comes first.
    pi.FORMAT,
    messages.FORMAT,
)
"""All formats, the most specific first."""


class ConversationText(NamedTuple):
    """One of several conversations in a file.

    Attributes:
        text: The conversation's JSON.
        line: Number of the line where it starts in the file.
    """

    text: str
    line: int


def read_transcript(
    source: str | Iterable[str],
    name: str = "",
    dialects: DialectRegistry = BUILT_IN_DIALECTS,
    *,
    advance: Callable[[float], None] | None = None,
) -> Transcript:
    """Parse a saved conversation, detecting its format from the content.

    A line that is not valid JSON is skipped with a note in the report. So is an incomplete last line, as in a session
    that is being written.

    Args:
        source: The text of a file, or its lines.
        name: File name for errors.
        dialects: Dialects that its messages may have.
        advance: Called with shares of the work, whose sum is about 1.

    Raises:
        TranscriptError: Nexus does not know the format or cannot read it, or most messages would be opaque.
        MessageError: A list of messages has another element, or the file has several conversations. The error has
            file and line.
    """
    lines = _split_lines(source) if isinstance(source, str) else list(source)
    written = [line for line in lines if line and not line.isspace()]
    if not written:
        raise MessageError("the transcript is empty", path=name or "transcript", hint=_KNOWN_FORMATS)
    if len(written) == 1 or not _is_json_object(written[0]):
        found = _read_document(lines, written, LineAccount(name, dialects))
        if found:
            return found
    share = 0.5 / len(lines)  # each line is parsed, and then gets an outcome
    report = None if advance is None else lambda number: advance(number * share)
    return _read_lines(lines, LineAccount(name, dialects, advance=report))


def split_conversations(text: str) -> list[ConversationText]:
    """Return the conversations of a JSON list with several, [] for any other file."""
    if not text.removeprefix("\ufeff").lstrip().startswith("["):
        return []
    try:
        values = parse_document(text.removeprefix("\ufeff"), "")
    except MessageError:
        return []
    # A list of one is read by `read_transcript`. Elements that are not conversations are returned as well, so that each
    # is rejected on its own and the others are imported.
    if len(values) < 2 or not any(map(_is_conversation, values)):  # noqa: PLR2004 - several
        return []
    found = locate_elements(text.removeprefix("\ufeff"))
    return [ConversationText(json.dumps(piece.value, ensure_ascii=False), piece.line) for piece in found]


def is_session_line(value: dict[str, Any]) -> bool:
    """Return True if only a program's session log has such a line, not a message list."""
    outline = extract_line_shape(value)
    return any(form.score_line(outline) == SCORE_OWN for form in FORMATS if form is not messages.FORMAT)


def _split_lines(text: str) -> list[str]:
    # Only a line feed ends a line: JSON texts may contain other characters that `str.splitlines` splits at.
    lines = text.removeprefix("\ufeff").split("\n")
    return lines if lines[-1] else lines[:-1]


def _score_values(values: Iterable[dict[str, Any]]) -> FormatDetector:
    evidence = FormatDetector(FORMATS)
    for value in values:
        evidence.add(value)
    return evidence


def _read_lines(lines: Sequence[str], account: LineAccount) -> Transcript:
    records = read_json_lines(lines, account)
    evidence = _score_values(record.value for record in records)
    found = evidence.best()
    first = records[0].number if records else 1
    if found is None and any(account.dialects.offering(record.value) for record in records):
        found = messages.FORMAT
    if found is None:
        raise _build_unknown_error(format_location(account.name, first), evidence)
    if found.read_lines is None:
        raise _build_unsupported_error(found, format_location(account.name, first))
    return _require_understood(found.read_lines(records, account), account.name, evidence)


def _read_document(lines: Sequence[str], written: Sequence[str], account: LineAccount) -> Transcript | None:
    """Parse a single JSON document.

    Returns None if it is not one but most lines are JSON objects.
    """
    separator = "" if lines[0].endswith("\n") else "\n"
    text = separator.join(lines)
    try:
        value = parse_document(text, account.name)
    except MessageError:
        if 2 * sum(map(_is_json_object, written)) >= len(written):
            return None
        raise
    if isinstance(value, list):
        return _read_list(text, value, account)
    if not isinstance(value, dict):
        raise _build_unknown_error(format_location(account.name, 1))
    return _read_object(text, value, account, None)


def _read_object(
    text: str, value: dict[str, Any], account: LineAccount, start: LocatedValue | None
) -> Transcript | None:
    """Parse an object as a document.

    Returns None if it can only be the single line of a JSON Lines file.
    """
    evidence = _score_values([value])
    found = evidence.best()
    read = found.read_document if found else None
    if found is not None and read is None and found.read_lines is None:
        raise _build_unsupported_error(found, format_location(account.name, 1))
    if read is None or (found is messages.FORMAT and not messages.has_message_list(value)):
        return None
    return _require_understood(read(text, locate_members(text, start), account), account.name, evidence)


def _read_list(text: str, values: list[Any], account: LineAccount) -> Transcript:
    if any(map(_is_conversation, values)):
        if len(values) > 1:
            raise MessageError(
                f"there are {len(values)} conversations in it",
                path=account.name,
                hint="`nexus session import FILE` imports each as a session; for one: jq '.[0]' FILE | nexus context -",
            )
        (start,) = locate_elements(text)
        found = _read_object(text, values[0], account, start)
        if found is None:
            raise _build_unknown_error(format_location(account.name, 1))
        return found
    evidence = _score_values(value for value in values if isinstance(value, dict))
    form = evidence.best()
    if form is not None and form.read_lines is None:
        raise _build_unsupported_error(form, format_location(account.name, 1))
    return _require_understood(messages.read_list(text, account), account.name, evidence)


def _require_understood(transcript: Transcript, name: str, evidence: FormatDetector) -> Transcript:
    """Return the transcript if at most half of its messages are opaque.

    Raises:
        TranscriptError: More than half of them are.
    """
    entries = [*transcript.entries, *(entry for branch in transcript.branches for entry in branch.entries)]
    opaque = sum(_is_opaque_message(entry.message) for entry in entries)
    if 2 * opaque <= len(entries):
        return transcript
    raise TranscriptError(
        f"{opaque:,} of {len(entries):,} messages would be opaque: Nexus does not know their format",
        code="mostly-opaque",
        path=name or "transcript",
        hint=_describe_nearest(evidence),
        nearest=transcript.format,
    )


def _is_opaque_message(message: Message) -> bool:
    """Return True if all parts are opaque.

    Responses items of known types do not count, they are opaque by design.
    """
    return bool(message.parts) and all(
        isinstance(part, Opaque) and not (part.api == "responses" and messages.is_known_responses_item(part.block))
        for part in message.parts
    )


def _build_unknown_error(path: str, evidence: FormatDetector | None = None) -> TranscriptError:
    name = evidence.nearest()[0] if evidence else ""
    hint = f"{_describe_nearest(evidence)}; {_KNOWN_FORMATS}" if name and evidence else _KNOWN_FORMATS
    return TranscriptError(
        "not a transcript that Nexus knows", code="unknown-format", path=path, hint=hint, nearest=name
    )


def _build_unsupported_error(form: TranscriptFormat, path: str) -> TranscriptError:
    return TranscriptError(
        f"this is {form.title}; Nexus cannot read it yet",
        code="unsupported-format",
        path=path,
        hint=_KNOWN_FORMATS,
        nearest=form.name,
    )


def _describe_nearest(evidence: FormatDetector) -> str:
    name, lines = evidence.nearest()
    return (
        f"the nearest format is {name}, which explains {lines:,} of {evidence.lines:,} entries"
        if name
        else _KNOWN_FORMATS
    )


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict) or "role" in value:
        return False
    return chatgpt.score_line(value) == SCORE_OWN or "messages" in value


def _is_json_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
