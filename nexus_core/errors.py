"""Every error that Nexus raises on purpose.

NexusError                 something a person can put right; the message says what, where and how
├── ConfigError            a settings file cannot be used
├── FileError              a file cannot be read or written
├── MessageError           a message has a shape that no API knows
│   └── TranscriptError    a file is not a transcript that can be read
├── BudgetError            what must be sent does not fit
├── LedgerError            conversations cannot be read or written
│   ├── ConflictError      somebody else has added to the session meanwhile
│   ├── ExistsError        there is a session of that name already
│   └── UnreachableError   the server or file does not answer; nothing says that it is damaged
├── TurnError              a session cannot do that now
│   └── PendingCalls       tools were called and their results are not recorded yet
├── SummaryError           nobody could summarise a conversation
├── PluginError            a plugin broke its contract
│   └── MissingExtraError  a plugin's optional dependencies are not installed
├── UsageError             something was asked for in a way that cannot be answered
│   └── UnknownNameError   a name that nothing answers to
└── ClosedError            a Nexus was used after close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from nexus_core.values.extra import Extra

SHOWN_NAMES = 12
"""So many known names are listed where none is near the unknown one."""
LONGEST_NAME = 200
"""Characters of an unknown name that are repeated."""


class NexusError(Exception):
    """Something a person can put right.

    Args:
        what: What happened, one sentence without a final period.
        where: The file (with line and column if known), plugin or setting it is about.
        hint: What to do about it.
        command: What to do about it at a terminal, where that is something else than in a program.
    """

    # For subclasses of strangers that do not call this constructor.
    what: str = "something went wrong"
    where: str | None = None
    hint: str | None = None
    command: str | None = None

    def __init__(
        self, what: str, *, where: str | None = None, hint: str | None = None, command: str | None = None
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        self.command = command

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have constructors of their own; an error must still cross a process boundary.
        return _rebuild, (type(self), self.args, self.__dict__)


class ConfigError(NexusError):
    """Raised when a settings file cannot be parsed or holds a value that is not allowed.

    Args:
        what, where, hint: As for every error.
        report: The whole message with an excerpt of the file, for errors that know their line.
    """

    def __init__(
        self, what: str, *, where: str | None = None, hint: str | None = None, report: str | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.report = report

    def __str__(self) -> str:
        return self.report or super().__str__()


class FileError(NexusError):
    """Raised when a file cannot be read or written."""


class MessageError(NexusError):
    """Raised when something given as a message, a reply or a tool cannot be read as one.

    Args:
        what, hint, command: As for every error.
        path: Where inside what was given: `messages[3].content[0].type`.
    """

    def __init__(self, what: str, *, path: str = "", hint: str | None = None, command: str | None = None) -> None:
        super().__init__(what, where=path or None, hint=hint, command=command)
        self.path = path


class TranscriptError(MessageError):
    """Raised when a file is not a transcript that can be read.

    Args:
        what, path, hint: As for every error about messages.
        code: `unknown-format`, `unsupported-format` (known by name, no reader) or `mostly-opaque`.
        nearest: The name of the format that explains most of it; "" for none.
    """

    def __init__(self, what: str, *, code: str, path: str = "", hint: str | None = None, nearest: str = "") -> None:
        super().__init__(what, path=path, hint=hint)
        self.code = code
        self.nearest = nearest


_TOO_MUCH = {
    "tokens": "shorten the largest of these, raise the budget, or use a model with a larger window",
    "bytes": "send smaller images and documents, or set models.<name>.request_bytes if the server accepts more",
}


class BudgetError(NexusError):
    """Raised when what must be sent does not fit, and nothing that remains may be left out.

    Args:
        needed: The tokens of what must be sent.
        available: The tokens there are.
        parts: What it consists of, tokens by name: the largest is the first to look at.
        unit: `tokens`; `bytes` where the tokens fit, and the request is larger than its API takes.
    """

    def __init__(
        self, needed: int, available: int, parts: Mapping[str, int], unit: Literal["tokens", "bytes"] = "tokens"
    ) -> None:
        sizes = sorted((item for item in parts.items() if item[1]), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{name} {size:,}" for name, size in sizes)
        super().__init__(
            f"{needed:,} {unit} do not fit into {available:,}",
            where=listed or None,
            hint=_TOO_MUCH[unit],
        )
        self.unit = unit
        self.needed = needed
        self.available = available
        self.parts = dict(sizes)
        self.pieces: tuple[tuple[str, int], ...] = ()

    def naming(self, pieces: Iterable[tuple[str, int]]) -> BudgetError:
        """The same error, which also says what single pieces take: sections of plugins and files, tools, messages."""
        self.pieces = tuple(pieces)
        if self.pieces:
            listed = ", ".join(f"{name} {size:,}" for name, size in self.pieces)
            self.where = "; largest: ".join(filter(None, [self.where, listed]))
        return self


class LedgerError(NexusError):
    """Raised when a ledger cannot be opened, read or written; names the file or server and what to do."""


class ConflictError(LedgerError):
    """Raised when a session has moved on since it was read; read it again and decide anew."""


class ExistsError(LedgerError):
    """Raised when a session of that name is there already."""


class UnreachableError(LedgerError):
    """Raised when the server or the file of a ledger cannot be reached or opened; whether it is sound nobody knows."""


class TurnError(NexusError):
    """Raised when a session is asked for something that its open or closed turn does not allow."""


class PendingCalls(TurnError):  # noqa: N818 - it reads as what it is: `except PendingCalls`
    """Raised when the model waits for results that are not recorded yet.

    Args:
        calls: What is waited for, as `name (id)`.
    """

    def __init__(self, calls: Iterable[str]) -> None:
        self.calls = tuple(calls)
        super().__init__(
            f"{len(self.calls)} tool call{'s' * (len(self.calls) != 1)} without a result: {', '.join(self.calls)}",
            hint="record each result with call.result(…), or call ask(…, interrupt=True) to give up on them",
            command="record each result with --call CALL, or use --interrupted to give up on them",
        )


class SummaryError(NexusError):
    """Raised when a conversation must be summarised and none of those who were asked could; nothing has changed then.

    Args:
        failures: What went wrong, by the name of each summariser that was asked.
    """

    def __init__(self, failures: Iterable[tuple[str, str]]) -> None:
        self.failures = tuple(failures)
        told = "; ".join(f"{name} {what}" for name, what in self.failures) or "nobody was asked"
        asked = {name for name, _ in self.failures}
        hint = None if "extractive" in asked else "'extractive' in compaction.summarisers needs no model"
        super().__init__(f"the conversation could not be summarised: {told}", hint=hint)


class PluginError(NexusError):
    """Raised when a bundled plugin, or any plugin under NEXUS_STRICT=1, breaks its contract.

    Args:
        message: What the plugin did, in a sentence about "it".
        plugin: The plugin's name, with its distribution if known. `what` begins with it.
        hook: The hook it was answering; None while it was being loaded.
        hint: What to do about it.
    """

    def __init__(self, message: str, *, plugin: str, hook: str | None = None, hint: str | None = None) -> None:
        where = f"plugin {plugin}" + (f", {hook}" if hook else "")
        super().__init__(f"{where}: {message}", where=where, hint=hint)
        self.message = message
        self.plugin = plugin
        self.hook = hook

    def __str__(self) -> str:
        return "\n".join([self.what, *([f"  {self.hint}"] if self.hint else [])])


class MissingExtraError(PluginError):
    """Raised when something is asked of a plugin whose optional dependencies are not installed."""

    def __init__(self, plugin: str, extra: Extra) -> None:
        super().__init__(
            f"it needs {extra.requirement}",
            plugin=plugin,
            hint=f"pip install '{extra.requirement}'",
        )
        self.extra = extra


class UsageError(NexusError):
    """Raised when an argument is not acceptable; the hint says what would be."""


class UnknownNameError(UsageError):
    """Raised when a plugin, hook, command or other named thing does not exist."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        nearest = did_you_mean(name, names) if isinstance(name, str) else ""
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        listed = f"known: {', '.join(map(_in_one_line, names[:SHOWN_NAMES]))}{more}"
        hint = nearest or (listed if names else f"there is no {kind} at all")
        super().__init__(f"unknown {kind} {_named(name)}", hint=hint)
        self.kind = kind
        self.name = name if isinstance(name, str) else ""


class ClosedError(NexusError):
    """Raised when a Nexus is used after close()."""


_ENDS = 3
"""So many names that end like what was said are suggested."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The sentence `did you mean 'x'?`, or "" when nothing known is near; a name may be the end of dotted ones."""
    from difflib import get_close_matches  # noqa: PLC0415 - a name is seldom wrong

    known = [*known]
    ends = sorted((each for each in known if each.endswith(f".{name}")), key=lambda each: (len(each), each))
    if ends and name:
        return f"did you mean {' or '.join(map(repr, ends[:_ENDS]))}?"
    nearest = get_close_matches(name, sorted(known), n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else ""


def _named(name: object) -> str:
    """What was given as a name, unless it is too large to be shown."""
    if not isinstance(name, str):
        return f"of type {type(name).__name__}"
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…")


def _in_one_line(name: str) -> str:
    """A name as it is, or as Python writes it where it holds a line break or what nobody sees."""
    return name if name.isprintable() else repr(name)


def _rebuild(kind: type[NexusError], args: tuple[object, ...], state: dict[str, object]) -> NexusError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class OtherDirectoryWarning(UserWarning):
    """A session is used in another directory than before, and takes along what was said there."""
