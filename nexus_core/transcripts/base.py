"""Transcript values, and the tools that readers share.

Values come first: what is read from a transcript, whichever program wrote it. Then the tools: the account of every
line, JSON Lines, JSON documents with line numbers, formats, trees of entries, opaque messages for unknown shapes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from nexus_core.dialects.fields import MAX_NESTING_LEVELS, ErrorPath, describe_json_value
from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.errors import MessageError
from nexus_core.types.base import dataclass
from nexus_core.types.messages import Message, Opaque

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.transcripts.writer import TranscriptWriter
    from nexus_core.types.messages import JSON, Role, Stop, Tool, Usage

EntryKind = Literal["said", "injected", "summary", "branch-summary"]
"""Author of an entry: the message's role (`said`), the program in the user's name (`injected`), or a summary of
compacted entries or of an abandoned branch."""

BranchKind = Literal["fork", "subagent", "rolled-back"]
"""Why entries are not on the main path: the user continued from an earlier entry, a subagent wrote them, or the program
rolled turns back."""

LineOutcome = Literal["message", "merged", "branch", "compaction", "mirror", "metadata", "skipped", "blank"]
"""Outcome of a line: a message of the main path, merged into the message of another line, part of a branch or
compaction, a copy of other lines, kept as metadata, unusable, or blank."""


class TranscriptEntry(NamedTuple):  # there may be very many, and creating a dataclass is four times slower
    """A message with its metadata in the transcript.

    Attributes:
        message: The message.
        lines: Numbers of the lines it was read from.
        ids: Ids of these lines; empty if the format has none.
        parent: Id of the previous entry, which may be in another file.
        kind: Author of the entry.
        time: Time in the transcript's format.
        model: Model of a reply.
        reply: The API's id of the reply.
        stop: Stop reason of the reply.
        usage: Token usage of the call.
        raw: The lines' JSON, unchanged.
        said: The user message before Nexus rendered it; None if it is the same as `message`.
    """

    message: Message
    lines: tuple[int, ...]
    ids: tuple[str, ...] = ()
    parent: str = ""
    kind: EntryKind = "said"
    time: str = ""
    model: str = ""
    reply: str = ""
    stop: Stop = ""
    usage: Usage | None = None
    raw: tuple[JSON, ...] = ()
    said: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptBranch:
    """Entries that are not on the main path.

    Attributes:
        kind: Why they are not.
        entries: The entries after the fork.
        parent: Id of the entry before the first one; "" if it is not in this transcript.
        name: The subagent's name.
        leaves: The path it forks from: the index of a branch, None for the main path.
        at: Number of entries on that path before the fork; 0 if there is no parent.
    """

    kind: BranchKind
    entries: tuple[TranscriptEntry, ...]
    parent: str = ""
    name: str = ""
    leaves: int | None = None
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptCompaction:
    """A compaction on the main path: a summary replaces earlier entries.

    Attributes:
        line: Number of its line.
        at: Number of main path entries before it.
        kept_from: Index of the first entry that the model still reads; `at` if it reads no earlier one.
        summary: The summary; "" if the transcript does not contain it.
        context: Entries that the model reads before the kept ones: the summary, and copies made by the program.
        id: The transcript's id of the compaction.
        time: Time in the transcript's format.
        tokens_before: Tokens before the compaction, as counted by the program; None if unknown.
        raw: The line's JSON, unchanged.
    """

    line: int
    at: int
    kept_from: int
    summary: str = ""
    context: tuple[TranscriptEntry, ...] = ()
    id: str = ""
    time: str = ""
    tokens_before: int | None = None
    raw: JSON = field(default_factory=dict)


class KeptLine(NamedTuple):
    """A line that is not part of the conversation, kept unchanged.

    Attributes:
        number: The line's number.
        kind: The program's type of the line, such as `system/turn_duration`; `broken`, `incomplete` or `repeated` for
            an unusable line.
        value: The line's JSON, or its text if it is not JSON.
    """

    number: int
    kind: str
    value: object


class LineNote(NamedTuple):
    """A note about a line, for the user."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReport:
    """Outcomes of all lines of a transcript.

    Attributes:
        lines: Number of lines; for a JSON document, number of elements.
        outcomes: Line numbers by outcome. Each line has one outcome.
        notes: Notes for the user, by line.
    """

    lines: int
    outcomes: Mapping[LineOutcome, tuple[int, ...]]
    notes: tuple[LineNote, ...] = ()

    def count(self, outcome: LineOutcome) -> int:
        """Return the number of lines with an outcome."""
        return len(self.outcomes.get(outcome, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation that a program saved.

    Attributes:
        format: Name of the format: `claude-code`, `codex`, `pi`, `chatgpt`; `messages` for a list of any API.
        api: Dialect of its messages; "" if the format has its own.
        entries: The main path, oldest first: the entries that lead to the newest one.
        report: Outcomes of all lines.
        id: The program's id of the conversation.
        other_ids: Ids that the program gave it later, oldest first.
        agent: Name of the subagent whose file it is; "" for the main conversation.
        cwd: Working directory at the start; "" if unknown.
        system: System messages that are not among the entries.
        tools: Tools that the model could call.
        asked: The model that a request is for, even if there is no reply yet.
        branches: Entries that are not on the main path.
        compactions: Compactions on the main path, oldest first.
        metadata: All other lines, unchanged.
    """

    format: str
    api: str
    entries: tuple[TranscriptEntry, ...]
    report: LineReport
    id: str = ""
    other_ids: tuple[str, ...] = ()
    agent: str = ""
    cwd: str = ""
    system: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    asked: str = ""
    branches: tuple[TranscriptBranch, ...] = ()
    compactions: tuple[TranscriptCompaction, ...] = ()
    metadata: tuple[KeptLine, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """Messages of the main path, including compacted ones."""
        return tuple(entry.message for entry in self.entries)

    @property
    def context(self) -> tuple[TranscriptEntry, ...]:
        """Entries that the next call would send: of the last compaction, and later ones."""
        if not self.compactions:
            return self.entries
        last = self.compactions[-1]
        return (*last.context, *self.entries[last.kept_from :])

    @property
    def model(self) -> str:
        """Model of the last reply, else the requested model, "" if unknown."""
        return next((entry.model for entry in reversed(self.entries) if entry.model), self.asked)


_LINES_PER_REPORT = 50
"""Lines that are reported as progress at once."""


class LineAccount:
    """Collects the outcome of each line while a transcript is read.

    Attributes:
        name: File name for errors.
        dialects: Dialects that messages may have.
        advance: Called with numbers of lines, first when they are parsed, then when they have an outcome.
        lines: Number of lines.
    """

    def __init__(
        self,
        name: str = "",
        dialects: DialectRegistry = BUILT_IN_DIALECTS,
        *,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        self.name = name
        self.dialects = dialects
        self.advance = advance
        self.lines = 0
        self._unreported = 0
        self._outcomes: dict[LineOutcome, list[int]] = defaultdict(list)
        self._notes: list[LineNote] = []
        self._kept: list[KeptLine] = []
        self._unknown: dict[str, list[int]] = defaultdict(list)

    def use(self, outcome: LineOutcome, *numbers: int) -> None:
        """Record the outcome of lines."""
        if numbers:
            self._outcomes[outcome] += numbers
            self.report_progress(len(numbers))

    def report_progress(self, lines: int) -> None:
        """Call `advance` for lines, and for those that were too few to call it before."""
        self._unreported += lines
        if self._unreported >= _LINES_PER_REPORT and self.advance is not None:
            self.advance(self._unreported)
            self._unreported = 0

    def keep(self, number: int, kind: str, value: object, outcome: LineOutcome = "metadata") -> None:
        """Keep a line unchanged and record its outcome."""
        self._kept.append(KeptLine(number, kind, value))
        self.use(outcome, number)

    def keep_unknown(self, number: int, kind: str, value: object) -> None:
        """Keep a line of a type that the reader does not know. A note counts each type."""
        self._unknown[kind].append(number)
        self.keep(number, kind, value)

    def note(self, number: int, text: str) -> None:
        """Add a note about a line."""
        self._notes.append(LineNote(number, text))

    @property
    def metadata(self) -> tuple[KeptLine, ...]:
        """The kept lines, in file order."""
        return tuple(sorted(self._kept, key=lambda line: line.number))

    def report(self) -> LineReport:
        """Return the outcomes and notes so far, and report the rest of the progress."""
        if self._unreported and self.advance is not None:
            self.advance(self._unreported)
            self._unreported = 0
        outcomes = {outcome: tuple(sorted(numbers)) for outcome, numbers in sorted(self._outcomes.items())}
        notes = [*self._notes]
        for kind, numbers in self._unknown.items():
            times = "once" if len(numbers) == 1 else f"{len(numbers):,} times"
            notes.append(LineNote(numbers[0], f"unknown type {kind!a}, {times}: kept, not part of a message"))
        return LineReport(lines=self.lines, outcomes=outcomes, notes=tuple(sorted(notes)))


TOO_LARGE_TEXT = "nested too deeply, or a number with thousands of digits"
"""Reason why Python cannot parse JSON that may be valid."""


class JsonLine(NamedTuple):
    """A line with a JSON object."""

    number: int
    value: dict[str, Any]


def read_json_lines(lines: Iterable[str], account: LineAccount) -> list[JsonLine]:
    """Parse JSON Lines.

    Lines that are not objects are skipped with a note. The last may be incomplete.
    """
    records = []
    unread: list[_UnreadLine] = []
    number = last = 0
    for number, line in enumerate(lines, 1):
        if number % _LINES_PER_REPORT == 0:
            account.report_progress(_LINES_PER_REPORT)
        if not line or line.isspace():
            account.use("blank", number)
            continue
        last = number
        found = _parse_line(number, line)
        if isinstance(found, JsonLine):
            records.append(found)
        else:
            unread.append(found)
    account.lines = number
    account.report_progress(number % _LINES_PER_REPORT)
    for each in unread:
        is_incomplete = each.is_invalid_json and each.number == last
        account.keep(each.number, "incomplete" if is_incomplete else "broken", each.text, "skipped")
        account.note(each.number, "incomplete, as in a session that is being written" if is_incomplete else each.error)
    return records


def find_text(value: dict[str, Any], key: str) -> str:
    """Return a text field, "" for anything else."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def find_object(value: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object field, {} for anything else."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def list_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list, [] for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def describe_json_error(error: json.JSONDecodeError) -> str:
    """Return the parser's message with the column."""
    what = error.msg.removesuffix(" at")  # some messages end with it
    return f"not JSON: {what[:1].lower()}{what[1:]} at column {error.colno}"


def relocate_json_error(text: str, error: json.JSONDecodeError) -> json.JSONDecodeError:
    """Return an error of a parser at the place where a person finds it.

    The parser reads on behind a broken line of JSON Lines and fails in the next one, or behind the end of the text.
    """
    begin = len(text) - len(text.lstrip())
    if error.colno == 1 and text.startswith("{", error.pos) and text.startswith("{", begin):
        start = max(text.rfind("\n{", 0, max(error.pos - 1, 0)) + 1, begin)
        try:
            json.loads(text[start : error.pos].rstrip())
        except json.JSONDecodeError as own:
            return json.JSONDecodeError(own.msg, text, start + own.pos)
    return json.JSONDecodeError(error.msg, text, min(error.pos, len(text.rstrip("\r\n"))))


def require_shallow(value: dict[str, Any] | list[Any]) -> None:
    """Reject JSON whose nesting could overflow the stack of recursive code.

    Raises:
        MessageError: It is nested deeper than `MAX_NESTING_LEVELS`.
    """
    level: list[Any] = [value]
    for _ in range(MAX_NESTING_LEVELS):
        inside = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
        level = [inner for inner in inside if isinstance(inner, dict | list)]
        if not level:
            return
    raise MessageError(f"nested deeper than {MAX_NESTING_LEVELS} levels")


_JSON_WHITESPACE = re.compile(r"[ \t\r\n]*")
_JSON_BLANKS = " \t\r\n"
_JSON_DECODER: Any = json.JSONDecoder()


def _load_json(line: str) -> Any:  # noqa: ANN401 - JSON has many types
    """Parse a line like `json.loads`, in less time if it has no blanks around it, as most lines."""
    try:
        value, end = _JSON_DECODER.scan_once(line, 0)
    except StopIteration:  # it begins with a blank, or is not JSON
        return json.loads(line)
    return value if end == len(line) or not line[end:].strip(_JSON_BLANKS) else json.loads(line)


class _UnreadLine(NamedTuple):
    number: int
    text: str
    error: str
    is_invalid_json: bool = False


def _parse_line(number: int, line: str) -> JsonLine | _UnreadLine:
    try:
        value = _load_json(line)
    except json.JSONDecodeError as error:
        return _UnreadLine(number, line.rstrip("\r\n"), describe_json_error(error), is_invalid_json=True)
    except (ValueError, RecursionError):
        return _UnreadLine(number, line.rstrip("\r\n"), TOO_LARGE_TEXT)
    if not isinstance(value, dict):
        return _UnreadLine(number, line.rstrip("\r\n"), f"expected an object, not {describe_json_value(value)}")
    return JsonLine(number, value)


class LocatedValue(NamedTuple):
    """A value in a JSON document, with its position.

    Attributes:
        value: The value.
        line: Number of the line where it starts.
        offset: Index of its first character in the document.
    """

    value: Any
    line: int
    offset: int


def parse_document(text: str, name: str) -> Any:  # noqa: ANN401 - JSON has many types
    """Parse a JSON document.

    Args:
        text: The document.
        name: File name for errors.

    Raises:
        MessageError: It is not JSON, or nested too deeply. The error has the line.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        found = relocate_json_error(text, error)
        raise MessageError(describe_json_error(found), path=format_location(name, found.lineno)) from None
    except (ValueError, RecursionError):
        raise MessageError(TOO_LARGE_TEXT, path=name) from None
    if isinstance(value, dict | list):
        with ErrorPath(name):
            require_shallow(value)
    return value


def locate_members(text: str, start: LocatedValue | None = None) -> dict[str, LocatedValue]:
    """Return the members of an object with their positions.

    Args:
        text: A valid JSON document.
        start: The object in the document; None for the document itself.
    """
    found: dict[str, LocatedValue] = {}
    scanner = _JsonScanner(text, start)
    while scanner.has_next():
        key = scanner.read_value().value
        scanner.skip_delimiter()  # the colon
        found[key] = scanner.read_value()
    return found


def locate_elements(text: str, start: LocatedValue | None = None) -> Iterator[LocatedValue]:
    """Yield the elements of a list with their positions.

    Args:
        text: A valid JSON document.
        start: The list in the document; None for the document itself.
    """
    scanner = _JsonScanner(text, start)
    while scanner.has_next():
        yield scanner.read_value()


def format_location(name: str, line: int) -> str:
    """Return `file:line`, which editors and terminals turn into a link."""
    return f"{name}:{line}" if name else f"line {line}"


class _JsonScanner:
    """Iterates over the values of an object or list in valid JSON."""

    def __init__(self, text: str, start: LocatedValue | None) -> None:
        self._text = text
        self._line = start.line if start else 1
        self._offset = self._counted = start.offset if start else 0
        self._skip_whitespace()

    def has_next(self) -> bool:
        """Skip a bracket or comma, and return True if a value follows."""
        self.skip_delimiter()
        return self._text[self._offset] not in "]}"

    def skip_delimiter(self) -> None:
        """Skip one bracket, comma or colon, but not a closing bracket."""
        self._skip_whitespace()
        # After the last value `has_next` must still find the closing bracket.
        if self._text[self._offset] not in "]}":
            self._offset += 1
        self._skip_whitespace()

    def read_value(self) -> LocatedValue:
        """Parse the value at the current offset."""
        offset = self._offset
        self._line += self._text.count("\n", self._counted, offset)
        self._counted = offset
        value, self._offset = _JSON_DECODER.raw_decode(self._text, offset)
        return LocatedValue(value, self._line, offset)

    def _skip_whitespace(self) -> None:
        found = _JSON_WHITESPACE.match(self._text, self._offset)
        self._offset = found.end() if found else self._offset


if TYPE_CHECKING:
    ScoreLine = Callable[[dict[str, Any]], int]
    ReadLines = Callable[[Sequence[JsonLine], LineAccount], Transcript]
    ReadDocument = Callable[[str, Mapping[str, LocatedValue], LineAccount], Transcript]
    ReadText = Callable[[str, LineAccount], Transcript]
    MatchText = Callable[[str], bool]
    GatherFiles = Callable[[Path], str | None]
    ListConversationFiles = Callable[[Path], list[Path]]

SCORE_NONE, SCORE_SHARED, SCORE_OWN = range(3)
"""Scores of a line: not written by this program; written by it and others; written only by it."""


class TranscriptFormat(NamedTuple):
    """A transcript format of some program.

    Attributes:
        name: Name of the format, the value of `Transcript.format`.
        title: Name for messages, with an article: `a Copilot CLI event log`.
        score_line: Scores the outline of an object: `SCORE_NONE`, `SCORE_SHARED` or `SCORE_OWN`.
        read_lines: Reads JSON Lines; None if the format has no reader, or only one for documents.
        read_document: Reads a JSON document, given its members; None if a file has one object per line.
        match_text: True for the text of a file that is not JSON; None for a format of JSON.
        read_text: Reads such a text.
        gather_files: Returns one JSON text for a conversation that its program keeps in a database or in several files,
            given the path of the database or of the file that names the conversation; None for any other path. It
            opens no file that is not part of the conversation, follows no link, and writes nothing.
        writer: Writes a conversation in this format; None if the format is only read.
        list_conversation_files: Returns the other files of a conversation in several files, given the file that names
            it, so that growth in any of them is noticed; [] for any other path. It opens no file that is not part of
            the conversation.
    """

    name: str
    title: str
    score_line: ScoreLine
    read_lines: ReadLines | None = None
    read_document: ReadDocument | None = None
    match_text: MatchText | None = None
    read_text: ReadText | None = None
    gather_files: GatherFiles | None = None
    writer: TranscriptWriter | None = None
    list_conversation_files: ListConversationFiles | None = None


if TYPE_CHECKING:
    PathPosition = tuple[int | None, int]
    """A path, None for the main one, and the number of its entries before the position."""


def trace_path(leaf: str, parents: Mapping[str, str], known: Container[str] = ()) -> list[str]:
    """Return the ids on the path to a leaf.

    Starts after the last `known` id or at the root. Cycles are cut.
    """
    path: dict[str, None] = {}
    current = leaf
    while current and current not in known and current not in path:
        path[current] = None
        current = parents.get(current, "")
    return list(path)[::-1]


def read_branches(
    newest: Iterable[str],
    parents: Mapping[str, str],
    positions: dict[str, PathPosition],
    read: Callable[[Sequence[str]], tuple[list[TranscriptEntry], list[int]]],
) -> tuple[TranscriptBranch, ...]:
    """Return the branches beside the main path, in file order.

    Args:
        newest: All ids, newest first.
        parents: Parent of each id.
        positions: Positions of the ids on the main path. Those on branches are added.
        read: Returns the entries of a path, and for each id the number of entries up to it.
    """
    found: list[TranscriptBranch] = []
    for leaf in newest:
        path = trace_path(leaf, parents, positions)
        if not path:
            continue
        entries, counts = read(path)
        parent = parents.get(path[0], "")
        # An id before the first entry of a branch has the position of the fork.
        start = positions.get(parent, (None, 0))
        positions |= {name: (len(found), count) if count else start for name, count in zip(path, counts, strict=True)}
        if entries:
            found.append(
                TranscriptBranch(kind="fork", entries=tuple(entries), parent=parent, leaves=start[0], at=start[1])
            )
    return _order_branches(found)


def _order_branches(found: Sequence[TranscriptBranch]) -> tuple[TranscriptBranch, ...]:
    """Reverse branches that are listed newest first.

    Their references to each other are updated.
    """
    last = len(found) - 1
    return tuple(
        branch if branch.leaves is None else replace(branch, leaves=last - branch.leaves) for branch in found[::-1]
    )


if TYPE_CHECKING:
    Given = TypeVar("Given")
    Read = TypeVar("Read")


def try_read(read: Callable[[Given], Read], given: Given, account: LineAccount, line: int) -> Read | None:
    """Return the result of `read`, or None and add a note if it fails."""
    try:
        return read(given)
    except MessageError as error:
        account.note(line, f"kept as it is: {error.what}" + (f" at {error.path}" if error.path else ""))
        return None


def build_opaque_message(role: Role, form: str, block: JSON) -> Message:
    """Return an opaque message. Content that is nested too deeply is left out."""
    try:
        require_shallow(dict(block))
    except MessageError as error:
        block = {"type": error.what}
    return Message(role, (Opaque(form, block),))
