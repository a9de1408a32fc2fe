"""Reading of transcripts in any known format."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.errors import MessageError, NexusError, TranscriptError
from nexus_core.host.calls import describe_exception
from nexus_core.host.manager import get_installed_host
from nexus_core.transcripts import chatgpt, claude, codex, gemini_cli, messages, nexus, nexus3, pi
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    LineAccount,
    TranscriptFormat,
    format_location,
    locate_elements,
    locate_members,
    parse_document,
    read_json_lines,
)
from nexus_core.transcripts.collector import split_records
from nexus_core.transcripts.recognition import FormatDetector, extract_line_shape
from nexus_core.transcripts.unsupported import UNSUPPORTED
from nexus_core.types.messages import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.host.manager import Host
    from nexus_core.transcripts.base import JsonLine, LocatedValue, ScoreLine, Transcript
    from nexus_core.types.messages import Message

_KNOWN_FORMATS = (
    "sessions of Claude Code, Codex, Gemini CLI, pi, NEXUS3, Nexus and of the programs that `nexus_transcripts` adds, "
    "exports of ChatGPT, messages and requests of any API are known; docs/reference/transcripts.md lists them"
)
_SPECIFIC_FORMATS = (nexus.FORMAT, codex.FORMAT, claude.FORMAT, chatgpt.FORMAT, nexus3.FORMAT, gemini_cli.FORMAT)
_GENERAL_FORMATS = (*UNSUPPORTED, pi.FORMAT, messages.FORMAT)
BUILT_IN_NAMES = tuple(form.name for form in (*_SPECIFIC_FORMATS, *_GENERAL_FORMATS))
"""Names of Nexus's own formats, which no plugin can use."""


def load_formats(host: Host) -> tuple[TranscriptFormat, ...]:
    """Return all formats, the most specific first, with those of a host's plugins. Imports every reader.

    A reader that cannot be imported is reported to the host and left out.
    """
    found: list[TranscriptFormat] = []
    readers = host.transcripts(BUILT_IN_NAMES)
    for name in readers:
        module, _, attribute = readers.get(name).target.partition(":")
        try:
            form = getattr(import_module(module), attribute)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin's module may raise anything when imported
            host.note(
                readers.owner(name), "nexus_transcripts", f"{readers.get(name).target} {describe_exception(error)}"
            )
            continue
        if not isinstance(form, TranscriptFormat) or form.name != name:
            what = f"the format {form.name!a}" if isinstance(form, TranscriptFormat) else type(form).__name__
            message = f"{readers.get(name).target} is {what}, expected the TranscriptFormat {name!a}"
            host.note(readers.owner(name), "nexus_transcripts", message)
            continue
        found.append(form._replace(score_line=_guard_score(form.score_line)))
    # Those of plugins come before pi, because Droid's messages look like pi's, and it also has lines of its own.
    return (*_SPECIFIC_FORMATS, *found, *_GENERAL_FORMATS)


def _guard_score(score: ScoreLine) -> ScoreLine:
    """Return a score function that does not raise: a line that it cannot score is not its own."""

    def score_line(outline: dict[str, Any]) -> int:
        try:
            return score(outline)
        except Exception:  # noqa: BLE001 - a plugin's function may raise anything
            return SCORE_NONE

    return score_line


def _load_installed_formats() -> tuple[TranscriptFormat, ...]:
    host = get_installed_host()
    if host not in _INSTALLED:
        _INSTALLED.clear()
        _INSTALLED[host] = load_formats(host)
    return _INSTALLED[host]


_INSTALLED: dict[Host, tuple[TranscriptFormat, ...]] = {}
"""The formats of all bundled and installed plugins, for callers without a host."""


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
    formats: Sequence[TranscriptFormat] | None = None,
    advance: Callable[[float], None] | None = None,
) -> Transcript:
    """Parse a saved conversation, detecting its format from the content.

    A line that is not valid JSON is skipped with a note in the report. So is an incomplete last line, as in a session
    that is being written.

    Args:
        source: The text of a file, or its lines.
        name: File name for errors.
        dialects: Dialects that its messages may have.
        formats: Formats that it may have, the most specific first; None for those of all installed plugins.
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
    known = _load_installed_formats() if formats is None else formats
    if len(written) == 1 or not _is_json_object(written[0]):
        found = _read_text(lines, LineAccount(name, dialects), known) or _read_document(
            lines, written, LineAccount(name, dialects), known
        )
        if found:
            return found
    share = 0.5 / len(lines)  # each line is parsed, and then gets an outcome
    report = None if advance is None else lambda number: advance(number * share)
    return _read_lines(lines, LineAccount(name, dialects, advance=report), known)


def gather_transcript(path: Path, formats: Sequence[TranscriptFormat]) -> str | None:
    """Return one JSON text for a conversation in a database or in several files, None for any other file.

    Args:
        path: The database, or the file that names the conversation.
        formats: The formats, from `load_formats`.

    Raises:
        TranscriptError: It belongs to such a conversation, but cannot be read, or the reader fails.
    """
    for form in formats:
        if form.gather_files is not None:
            with _ReaderGuard(form, str(path)):
                found = form.gather_files(path)
            if found is not None:
                return found
    return None


def list_transcript_files(path: Path, formats: Sequence[TranscriptFormat]) -> list[Path]:
    """Return the files of a conversation: the given one, and those of its tree if it is in several.

    Args:
        path: The file that names the conversation.
        formats: The formats, from `load_formats`.

    Raises:
        TranscriptError: There are too many files, or the reader fails.
    """
    for form in formats:
        if form.list_conversation_files is not None:
            with _ReaderGuard(form, str(path)):
                found = form.list_conversation_files(path)
            if found:
                return [path, *found]
    return [path]


def split_conversations(text: str) -> list[ConversationText]:
    """Return the conversations of a JSON list, or of JSON Lines, with several, [] for any other file."""
    if text.removeprefix("\ufeff").lstrip().startswith("{"):
        return _split_lines_of_conversations(text.removeprefix("\ufeff"))
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


def _split_lines_of_conversations(text: str) -> list[ConversationText]:
    """Return the lines of a data set, each of which is a conversation of ShareGPT; [] for any other file."""
    if '"conversations"' not in text.lstrip().split("\n", 1)[0]:  # not all lines of a large file, to look at one
        return []
    found: list[ConversationText] = []
    for number, line in enumerate(text.split("\n"), 1):
        if '"conversations"' not in line:
            if line.strip():
                return []
        else:
            found.append(ConversationText(line, number))
    is_data_set = len(found) > 1 and all(_is_json_object(each.text) for each in found)
    return found if is_data_set else []


def is_session_line(value: dict[str, Any]) -> bool:
    """Return True if only a program's session log has such a line, not a message list."""
    outline = extract_line_shape(value)
    formats = _load_installed_formats()
    return any(form.score_line(outline) == SCORE_OWN for form in formats if form is not messages.FORMAT)


def _split_lines(text: str) -> list[str]:
    # Only a line feed ends a line: JSON texts may contain other characters that `str.splitlines` splits at.
    lines = text.removeprefix("\ufeff").split("\n")
    return lines if lines[-1] else lines[:-1]


def _score_values(values: Iterable[dict[str, Any]], formats: Sequence[TranscriptFormat]) -> FormatDetector:
    evidence = FormatDetector(formats)
    for value in values:
        evidence.add(value)
    return evidence


def _read_text(lines: Sequence[str], account: LineAccount, formats: Sequence[TranscriptFormat]) -> Transcript | None:
    """Parse a text that is not JSON. Returns None if no format matches it."""
    candidates = [form for form in formats if form.match_text is not None and form.read_text is not None]
    text = _join_lines(lines) if candidates else ""
    for form in candidates:
        if form.match_text is not None and form.read_text is not None and form.match_text(text):
            with _ReaderGuard(form, account.name):
                return form.read_text(text, account)
    return None


def _read_lines(lines: Sequence[str], account: LineAccount, formats: Sequence[TranscriptFormat]) -> Transcript:
    records = read_json_lines(lines, account)
    evidence = _score_values((record.value for record in records), formats)
    found = evidence.best()
    first = records[0].number if records else 1
    if found is None and any(account.dialects.offering(record.value) for record in records):
        found = messages.FORMAT
    if found is None:
        raise _build_unknown_error(format_location(account.name, first), evidence)
    if found.read_lines is None:
        raise _build_unsupported_error(found, format_location(account.name, first))
    with _ReaderGuard(found, account.name):
        transcript = found.read_lines(records, account)
    return _require_understood(transcript, account.name, evidence)


def _join_lines(lines: Sequence[str]) -> str:
    return ("" if lines[0].endswith("\n") else "\n").join(lines)


def _read_document(
    lines: Sequence[str], written: Sequence[str], account: LineAccount, formats: Sequence[TranscriptFormat]
) -> Transcript | None:
    """Parse a single JSON document.

    Returns None if it is not one but most lines are JSON objects.

    Raises:
        TranscriptError: Its format is not known. Text that does not begin like JSON is in none.
        MessageError: It begins like JSON and is invalid.
    """
    text = _join_lines(lines)
    try:
        value = parse_document(text, account.name)
    except MessageError:
        if 2 * sum(map(_is_json_object, written)) >= len(written):
            return None
        if text.lstrip()[:1] not in ("{", "["):  # no column of a page or a note is worth a look
            raise _build_unknown_error(format_location(account.name, 1)) from None
        raise
    if isinstance(value, list):
        return _read_list(text, value, account, formats)
    if not isinstance(value, dict):
        raise _build_unknown_error(format_location(account.name, 1))
    return _read_object(text, value, account, None, formats)


def _read_object(
    text: str,
    value: dict[str, Any],
    account: LineAccount,
    start: LocatedValue | None,
    formats: Sequence[TranscriptFormat],
) -> Transcript | None:
    """Parse an object as a document.

    Returns None if it can only be the single line of a JSON Lines file.
    """
    evidence = _score_values([value], formats)
    found = evidence.best()
    read = found.read_document if found else None
    if found is not None and read is None and found.read_lines is None:
        raise _build_unsupported_error(found, format_location(account.name, 1))
    if read is None or (found is messages.FORMAT and not messages.has_message_list(value)):
        return None
    with _ReaderGuard(found, account.name):
        transcript = read(text, locate_members(text, start), account)
    return _require_understood(transcript, account.name, evidence)


def _read_list(text: str, values: list[Any], account: LineAccount, formats: Sequence[TranscriptFormat]) -> Transcript:
    if any(map(_is_conversation, values)):
        if len(values) > 1:
            raise MessageError(
                f"there are {len(values)} conversations in it",
                path=account.name,
                hint="`nexus session import FILE` imports each as a session; for one: jq '.[0]' FILE | nexus context -",
            )
        (start,) = locate_elements(text)
        found = _read_object(text, values[0], account, start, formats)
        if found is None:
            raise _build_unknown_error(format_location(account.name, 1))
        return found
    evidence = _score_values((value for value in values if isinstance(value, dict)), formats)
    form = evidence.best()
    if form is None or form is messages.FORMAT:
        return _require_understood(messages.read_list(text, account), account.name, evidence)
    if form.read_lines is None:
        raise _build_unsupported_error(form, format_location(account.name, 1))
    with _ReaderGuard(form, account.name):
        transcript = form.read_lines(_list_records(text, account), account)
    return _require_understood(transcript, account.name, evidence)


def _list_records(text: str, account: LineAccount) -> list[JsonLine]:
    """Return the objects of a list, numbered by element as if each were a line."""
    values = [piece.value for piece in locate_elements(text)]
    account.lines = len(values)
    return split_records(values, account)


class _ReaderGuard:
    """Turns an exception of a reader into an error that names it. A file must never end in a traceback."""

    def __init__(self, form: TranscriptFormat | None, name: str) -> None:
        self._form = form.name if form else ""
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, NexusError):
            raise TranscriptError(
                f"the reader of {self._form} {describe_exception(error)}",
                code="reader-failed",
                path=self._name or "transcript",
                hint="report it with the file, or disable the plugin that has the reader",
                nearest=self._form,
            ) from error


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
    return chatgpt.score_line(value) == SCORE_OWN or not _CONVERSATION_KEYS.isdisjoint(value)


_CONVERSATION_KEYS = frozenset({"messages", "conversations", "steps"})
"""Keys of the messages in a document that is one conversation."""


def _is_json_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
