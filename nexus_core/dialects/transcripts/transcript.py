"""What is read from a transcript, whichever program wrote it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.values.conversation import Stop, Tool, Usage
    from nexus_core.values.message import Message
    from nexus_core.values.parts import JSON

EntryKind = Literal["said", "injected", "summary", "branch-summary"]
"""Whose word an entry is: that of its role; the program's own, in somebody's name; or what stands for entries that were
compacted, or for a branch that was left."""

BranchKind = Literal["fork", "subagent", "rolled-back"]
"""Why entries are not on the main path: the user went on from an earlier place, another agent wrote them, or the
program took turns back."""

Outcome = Literal["message", "merged", "branch", "compaction", "mirror", "metadata", "skipped", "blank"]
"""What became of a line: a message of the main path, more of a message that another line began, part of a branch or of
a compaction, a copy of what other lines say, something kept as it is, something of no use, or nothing."""


class Entry(NamedTuple):  # of which there may be very many, and a dataclass takes four times as long to make
    """A message and what the transcript says about it.

    Attributes:
        message: The message.
        lines: The lines it was read from.
        ids: What the transcript calls each of them; none where it has no names.
        parent: The name of what it follows, also if that is in another file.
        kind: Whose word it is.
        time: When it was written, as the transcript has it.
        model: Who answered.
        reply: The API's name for the answer.
        stop: Why the answer ended.
        usage: What the call cost.
        raw: The lines as they stand.
        said: The message before Nexus rendered it; None where that is `message`.
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
class Branch:
    """Entries that are not on the main path.

    Attributes:
        kind: Why not.
        entries: What was said there, from where it leaves another path.
        parent: The name of what it follows; "" where it follows nothing in this transcript.
        name: The subagent's name.
        leaves: The path it leaves: a branch by its place among the branches; None for the main path.
        at: How many entries of that path come before it; 0 where it follows nothing.
    """

    kind: BranchKind
    entries: tuple[Entry, ...]
    parent: str = ""
    name: str = ""
    leaves: int | None = None
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The place where a summary took the place of what was said before.

    Attributes:
        line: The line that tells of it.
        at: How many entries of the main path come before it.
        kept_from: From which entry on the model still read them; `at` where it read none of them any more.
        summary: The summary; "" where the transcript does not have it.
        context: What the model read before those from then on: the summary, and copies that the program made.
        id: What the transcript calls it.
        time: When it was, as the transcript has it.
        tokens_before: How long the conversation was, as the program counted; None when it did not say.
        raw: The line as it stands.
    """

    line: int
    at: int
    kept_from: int
    summary: str = ""
    context: tuple[Entry, ...] = ()
    id: str = ""
    time: str = ""
    tokens_before: int | None = None
    raw: JSON = field(default_factory=dict)


class Line(NamedTuple):
    """Something that is not part of the conversation, kept as it is.

    Attributes:
        number: Its line.
        kind: What the program calls it: `system/turn_duration`; `broken`, `incomplete` or `repeated` for a line that
            could not be used.
        value: What it says in JSON; its text where it is none.
    """

    number: int
    kind: str
    value: object


class Note(NamedTuple):
    """A remark about a line."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of every line.

    Attributes:
        lines: How many there are; of a JSON document, how many elements it lists.
        outcomes: The lines by what became of them, each line once.
        notes: What a person should know, by line.
    """

    lines: int
    outcomes: Mapping[Outcome, tuple[int, ...]]
    notes: tuple[Note, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """How many lines became that."""
        return len(self.outcomes.get(outcome, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation that a program wrote down.

    Attributes:
        format: Who writes such transcripts: `claude-code`, `codex`, `pi`, `chatgpt`; `messages` for a list of any API.
        api: The dialect of its messages; "" where it has words of its own.
        entries: The main path, oldest first: what led to the newest entry.
        report: What became of every line.
        id: What the program calls the conversation.
        other_ids: Further names that the program gave it since, oldest first.
        agent: The subagent whose file it is; "" for the conversation itself.
        cwd: The directory in which it began, as the program calls it; "" where it does not say.
        system: Instructions that stand beside the messages.
        tools: What the model could ask for.
        asked: The model that a request is for, which need not have answered yet.
        branches: Everything else that was said.
        compactions: Those on the main path, oldest first.
        metadata: All other lines, as they stand.
    """

    format: str
    api: str
    entries: tuple[Entry, ...]
    report: Report
    id: str = ""
    other_ids: tuple[str, ...] = ()
    agent: str = ""
    cwd: str = ""
    system: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    asked: str = ""
    branches: tuple[Branch, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    metadata: tuple[Line, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the main path, compacted or not."""
        return tuple(entry.message for entry in self.entries)

    @property
    def context(self) -> tuple[Entry, ...]:
        """What the model would read next: since the last compaction, and what that left."""
        if not self.compactions:
            return self.entries
        last = self.compactions[-1]
        return (*last.context, *self.entries[last.kept_from :])

    @property
    def model(self) -> str:
        """Who answered last, else who is asked; "" when nobody is named."""
        return next((entry.model for entry in reversed(self.entries) if entry.model), self.asked)
