"""Exceptions of Nexus, each with what is wrong, where, and what to do.

NexusError                       base class of all of them
├── ConfigError                  a settings file is malformed or has an invalid value
├── FileError                    a file cannot be read or written
├── MessageError                 a message, reply or tool has no known shape
│   └── TranscriptError          a file is not a transcript that can be read
├── BudgetError                  what must be sent exceeds the token or byte budget
├── LedgerError                  the ledger cannot be opened, read or written
│   ├── ConflictError            another writer has appended to the session
│   ├── SessionExistsError       the session's name is taken
│   └── LedgerUnreachableError   the ledger's server or file cannot be reached
├── TurnError                    the session's open or closed turn does not allow the operation
│   └── PendingToolCallsError    tool calls have no recorded results yet
├── SummaryError                 every summarizer failed
├── ProviderError                a model's provider gave no reply
├── PluginError                  a plugin broke its contract
│   └── MissingExtraError        a plugin's optional dependencies are not installed
├── UsageError                   an argument is invalid
│   └── UnknownNameError         nothing has that name
└── NexusClosedError             a Nexus was used after close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.deprecation import find_renamed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from nexus_core.types.plugins import Extra

MAX_LISTED_NAMES = 12
"""Known names in the hint of an error about an unknown one, when none is similar."""
MAX_NAME_CHARACTERS = 200
"""Characters of an unknown name that the message repeats."""


class NexusError(Exception):
    """An error that its message explains how to fix.

    Args:
        what: What happened, one sentence without a final period.
        where: The file (with line and column if known), plugin or setting it is about.
        hint: What to do about it, in a program.
        command: What to do about it at a terminal, if that differs from `hint`.
    """

    # For third-party subclasses that do not call this constructor.
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
    """Raised when a settings file cannot be parsed or has an invalid value.

    Args:
        what, where, hint: As for every error.
        report: The whole message with an excerpt of the file, if the line is known.
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
    """Raised when a value cannot be read as a message, a reply or a tool.

    Args:
        what, hint, command: As for every error.
        path: The place inside the value, such as `messages[3].content[0].type`.
    """

    def __init__(self, what: str, *, path: str = "", hint: str | None = None, command: str | None = None) -> None:
        super().__init__(what, where=path or None, hint=hint, command=command)
        self.path = path


class TranscriptError(MessageError):
    """Raised when a file is not a transcript that can be read.

    Args:
        what, path, hint: As for every error about messages.
        code: `unknown-format`, `unsupported-format` (known by name, no reader) or `mostly-opaque`.
        nearest: The format that recognizes most of the file; "" for none.
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
    """Raised when the parts of a call that cannot be left out exceed the budget.

    Args:
        needed: Tokens or bytes of those parts.
        available: The budget.
        parts: The size of each part by its name.
        unit: `bytes` if the tokens fit and the request body is larger than the API accepts.
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
        """Add the sizes of the largest sections, tools and messages to the error, and return it."""
        self.pieces = tuple(pieces)
        if self.pieces:
            listed = ", ".join(f"{name} {size:,}" for name, size in self.pieces)
            self.where = "; largest: ".join(filter(None, [self.where, listed]))
        return self


class LedgerError(NexusError):
    """Raised when a ledger cannot be opened, read or written."""


class ConflictError(LedgerError):
    """Raised when another writer has appended to the session since it was read. Read it again, then retry."""


class SessionExistsError(LedgerError):
    """Raised when a session of that name exists already."""


class LedgerUnreachableError(LedgerError):
    """Raised when a ledger's server or file cannot be reached. It says nothing about its integrity."""


class TurnError(NexusError):
    """Raised when the state of a session's turn does not allow an operation."""


class PendingToolCallsError(TurnError):
    """Raised when tool calls have no recorded results yet.

    Args:
        calls: The calls without a result, as `name (id)`.
    """

    def __init__(self, calls: Iterable[str]) -> None:
        self.calls = tuple(calls)
        super().__init__(
            f"{len(self.calls)} tool call{'s' * (len(self.calls) != 1)} without a result: {', '.join(self.calls)}",
            hint="record each result with call.result(…), or call ask(…, interrupt=True) to give up on them",
            command="record each result with --call CALL, or use --discard-open-turn to give up on them",
        )


class SummaryError(NexusError):
    """Raised when every summarizer failed. The session is unchanged.

    Args:
        failures: The name of each summarizer, and what went wrong.
    """

    def __init__(self, failures: Iterable[tuple[str, str]]) -> None:
        self.failures = tuple(failures)
        told = "; ".join(f"{name} {what}" for name, what in self.failures) or "no summarizer is configured"
        asked = {name for name, _ in self.failures}
        hint = None if "extractive" in asked else "'extractive' in compaction.summarizers needs no model"
        super().__init__(f"the conversation could not be summarized: {told}", hint=hint)


class ProviderError(NexusError):
    """Raised when a model's provider gives no reply. The turn stays open, and the call can be sent again.

    Args:
        what, where, hint: As for every error, without keys.
        status: HTTP status of the response; None if there was none.
        attempts: Number of requests that were sent.
        said: The provider's own error message, shortened.
        unset_variable: The environment variable of the key, if it is not set and nothing was sent; else "".
    """

    unset_variable: str = ""

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        status: int | None = None,
        attempts: int = 0,
        said: str = "",
        unset_variable: str = "",
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.status = status
        self.attempts = attempts
        self.said = said
        self.unset_variable = unset_variable


class PluginError(NexusError):
    """Raised when a bundled plugin, or any plugin under NEXUS_STRICT=1, breaks its contract.

    Args:
        message: What the plugin did, as a sentence whose subject is "it".
        plugin: The plugin's name, with its distribution if known. `what` begins with it.
        hook: The hook that was called; None if the plugin was being loaded.
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
    """Raised when a plugin is used whose optional dependencies are not installed."""

    def __init__(self, plugin: str, extra: Extra) -> None:
        super().__init__(
            f"it needs {extra.requirement}",
            plugin=plugin,
            hint=f"pip install '{extra.requirement}'",
        )
        self.extra = extra


class UsageError(NexusError):
    """Raised when an argument is invalid. The hint says what is accepted."""


_NO_SESSIONS_HINT = "no sessions yet; `nexus session import` or `session.ask()` creates one"
_EMPTY_HINTS = {
    "file, session, step or model": _NO_SESSIONS_HINT,
    "server": "no MCP servers here; `nexus mcp add` or `nexus mcp import` adds one",
    "session": _NO_SESSIONS_HINT,
    "skill": "no skills here; a file .nexus3/skills/NAME/SKILL.md is one",
}
"""Hint of an UnknownNameError by kind, if nothing of that kind exists."""


class UnknownNameError(UsageError):
    """Raised when no plugin, hook, session, model or setting has that name.

    Args:
        kind: The kind of thing, such as `session`.
        name: The unknown name.
        known: The names that exist. The hint has the nearest of them, or lists them.
    """

    _max_listed_names = MAX_LISTED_NAMES

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names, limit = sorted(known), self._max_listed_names
        nearest = did_you_mean(name, names) if isinstance(name, str) else ""
        more = f" and {len(names) - limit} more" if len(names) > limit else ""
        listed = f"known: {', '.join(map(_escape_name, names[:limit]))}{more}"
        hint = nearest or (listed if names else _EMPTY_HINTS.get(kind, f"no {kind} exists"))
        super().__init__(f"unknown {kind} {_quote_name(name)}", hint=hint)
        self.kind = kind
        self.name = name if isinstance(name, str) else ""


class NexusClosedError(NexusError):
    """Raised when a Nexus is used after close()."""


class AgentExistsError(UsageError):
    """Raised when a pool has an agent of that id already."""


class AgentDestroyedError(UsageError):
    """Raised when an agent is used after it was destroyed, or a pool after it was closed."""


class AgentCycleError(UsageError):
    """Raised when an agent would be its own parent, directly or through others."""


_MAX_SUGGESTIONS = 3
"""Dotted names that are suggested for their last part."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?`, or "" if no known name is similar. The end of a dotted name counts as similar."""
    from difflib import get_close_matches

    known = [*known]
    ends = sorted((each for each in known if each.endswith(f".{name}")), key=lambda each: (len(each), each))
    if ends and name:
        return f"did you mean {' or '.join(map(repr, ends[:_MAX_SUGGESTIONS]))}?"
    nearest = get_close_matches(name, sorted(known), n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else ""


def _quote_name(name: object) -> str:
    """Return a name for a message, shortened if it is long."""
    if not isinstance(name, str):
        return f"of type {type(name).__name__}"
    return repr(name if len(name) <= MAX_NAME_CHARACTERS else f"{name[:MAX_NAME_CHARACTERS]}…")


def _escape_name(name: str) -> str:
    """Return a name, escaped if it has line breaks or invisible characters."""
    return name if name.isprintable() else repr(name)


def _rebuild(kind: type[NexusError], args: tuple[object, ...], state: dict[str, object]) -> NexusError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class OtherDirectoryWarning(UserWarning):
    """Warning for a session that was last used in another directory, whose conversation continues here."""


_RENAMED = {
    "ClosedError": "NexusClosedError",
    "ExistsError": "SessionExistsError",
    "PendingCalls": "PendingToolCallsError",
    "UnreachableError": "LedgerUnreachableError",
}

# Hidden from type checkers, which would accept any misspelled name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return find_renamed(__name__, name, _RENAMED)
