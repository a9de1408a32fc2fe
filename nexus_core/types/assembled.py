"""The assembled model call, its cache breakpoints and cache report."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, Protocol

from nexus_core.types.base import copy_value, dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from nexus_core.types.budget import Decision, TokenBudget
    from nexus_core.types.messages import JSON, Message, Tool, Usage
    from nexus_core.types.plugins import Finding
    from nexus_core.types.prompt import Placement, Source

BreakpointPlace = Literal["static", "history", "sent", "newest"]
"""The content that ends at a breakpoint: system prompt and tools, earlier turns, the previous call, or this call."""


class Breakpoint(NamedTuple):
    """A cache breakpoint of a call, set or skipped.

    Attributes:
        place: The content that ends there.
        after: The index in `context.messages` of the message before it; -1 for system prompt and tools.
        tokens: The tokens before it, tools and system prompt included.
        lifetime: The time that the provider keeps the prefix; "" if the request does not set one.
        skipped: The reason why it is not set; "" if it is set.
    """

    place: BreakpointPlace
    after: int
    tokens: int
    lifetime: str = ""
    skipped: str = ""


CacheVerdict = Literal["hit", "miss", "unknown"]
"""The outcome of a cache lookup: the expected prefix was found, was not found, or there is no data."""

CacheMissCause = Literal[
    "section", "tool", "renderer", "model", "compaction", "cut", "time", "short", "first", "unknown"
]
"""The reason for a cache miss: a changed section or tool, another renderer or model, a compaction, history that was
left out (`cut`), an expired cache (`time`), a prefix below the provider's minimum (`short`), or the first call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMiss:
    """The first reason why a call did not find its prefix in the cache.

    Attributes:
        cause: The kind of reason.
        name: The title of the section, or the name of the tool or model; "" for other causes.
        source: The source of the section or tool.
        message: The reason as one sentence without a final period.
    """

    cause: CacheMissCause
    name: str = ""
    source: Source | None = None
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """The expected and the actual cache hit of one call.

    Attributes:
        expected: Tokens of the prefix shared with the previous call, by our count; None if unknown.
        got: Tokens that came from the cache, as reported by the provider; None if it reports none.
        blame: The reason for a miss; None for a hit, or if unknown.
    """

    expected: int | None = None
    got: int | None = None
    blame: CacheMiss | None = None

    @property
    def verdict(self) -> CacheVerdict:
        """`hit`, `miss` or `unknown`."""
        if self.expected is None or self.got is None:
            return "unknown"
        return "hit" if self.blame is None else "miss"

    def __str__(self) -> str:
        if self.verdict == "unknown":
            return "unknown" if self.blame is None else f"unknown: {self.blame}"
        counts = f"{self.got:,} of {self.expected:,} expected tokens came from the cache"
        return counts if self.blame is None else f"{counts}: {self.blame}"


class ContextWriter(Protocol):
    """Writes assembled calls in the formats of APIs."""

    def write(self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool) -> dict[str, Any]:
        """Return the arguments of the SDK's call."""

    def plan(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool
    ) -> tuple[Breakpoint, ...]:
        """Return the cache breakpoints of the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledContext:
    """One assembled model call: system prompt, messages and tools, with their sources and token counts.

    `to` writes it in an API's format. Only the system prompt, the messages, the tools and the model's name are sent. It
    can be copied, but not pickled: send what `to` returns to another process.

    Attributes:
        system_prompt: The system prompt.
        history: The messages of earlier turns that fit.
        current_message: The user message of this turn.
        progress: Replies and tool results of this turn so far.
        tools: The tools that the agent's permissions allow.
        model: The model's name.
        provider: The provider of the model.
        model_config: Options of the provider from the settings.
        token_budget: The model's context window, and the tokens of each part.
        session_label: The session's name.
        turn_id: The id of the turn; "" for a preview.
        parent_turn_id: The id of the turn before; None for the first.
        role: The agent role.
        toolset_name: The name of the set of tools.
        permissions_granted: The agent's permissions.
        source_event_id: The id of the event that started the turn; None if it has none.
        workspace_path: The agent's working directory.
        decisions: What was left out or shortened to fit; `first` and `last` are positions of steps in the session.
        findings: Warnings for the user, such as an unknown model.
        renderer: The name of the renderer.
        epoch: The digest of the frozen prefix: system prompt and tools.
        system_context: The sections of the system prompt as JSON.
        place: Computes `placements` when they are first read.
        message_tokens: The tokens of each of `messages`; empty if they were not counted.
        writer: Writes the call in the formats of APIs.
    """

    system_prompt: str
    history: tuple[Message, ...] = ()
    current_message: Message | None = None
    progress: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    model: str = ""
    provider: str = ""
    model_config: JSON = field(default_factory=dict)
    token_budget: TokenBudget
    session_label: str = ""
    turn_id: str = field(default="", compare=False)
    parent_turn_id: str | None = None
    role: str = "unified"
    toolset_name: str = ""
    permissions_granted: tuple[str, ...] = ()
    source_event_id: str | None = None
    workspace_path: Path
    decisions: tuple[Decision, ...] = ()
    findings: tuple[Finding, ...] = ()
    renderer: str = "labelled"
    epoch: str = ""
    system_context: JSON = field(default_factory=dict)
    place: Callable[[], tuple[Placement, ...]] = field(default=tuple, compare=False)
    message_tokens: tuple[int, ...] = field(default=())
    writer: ContextWriter = field(compare=False)

    def __repr__(self) -> str:
        """Return its size and its model."""
        budget, count = self.token_budget, len(self.messages)
        taken = f"{budget.total:,} of {budget.available:,} tokens"
        facts = (f"{count:,} message{'' if count == 1 else 's'}", taken, f"model {self.model!r}" if self.model else "")
        return f"AssembledContext({', '.join(filter(None, facts))})"

    def __copy__(self) -> AssembledContext:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> AssembledContext:
        names = [each.name for each in fields(self) if each.name not in _SHARED_FIELDS]
        return replace(self, **{name: deepcopy(getattr(self, name), memo) for name in names})

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AssembledContext cannot be pickled; pickle the dict that context.to(…) returns instead")

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The sections, tools and messages of the call with their sources, in order, including those left out."""
        return self.place()

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages after the system prompt: history, current message and progress."""
        current = () if self.current_message is None else (self.current_message,)
        return (*self.history, *current, *self.progress)

    def to(self, api: str, *, cache: bool = True, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - an SDK's arguments are of any type
        """Return the arguments of an SDK's call: `client.messages.create(**context.to("anthropic", max_tokens=8000))`.

        They include those of `provider.options` in the settings that the API knows.

        Args:
            api: `openai`, `responses`, `anthropic`, `gemini`, `neutral`, or a dialect of a plugin.
            cache: Whether to set cache breakpoints, or the cache key of the API.
            options: Further arguments of the call, which override the computed ones.

        Raises:
            UnknownNameError: There is no such API.
            BudgetError: The request body is larger than this API accepts.
        """
        return self.writer.write(self, api, options, cache=cache)

    def breakpoints(self, api: str, *, cache: bool = True, **options: Any) -> tuple[Breakpoint, ...]:  # noqa: ANN401 - an SDK's arguments are of any type
        """Return the cache breakpoints of the call, and why further ones were not set.

        Args and errors are those of `to`.
        """
        return self.writer.plan(self, api, options, cache=cache)


class _CopyOnReadContext(AssembledContext):
    """A copy of a context whose parts are copied when they are first read, since most plugins read few."""

    __slots__ = ("_original",)
    _original: AssembledContext

    def __getattr__(self, name: str) -> object:
        """Copy a part that is read for the first time."""
        if name not in _FIELD_NAMES:
            raise AttributeError(f"an AssembledContext has no attribute {name!r}")
        value = getattr(self._original, name)
        value = value if name in _SHARED_FIELDS else copy_value(value)
        object.__setattr__(self, name, value)
        return value


_FIELD_NAMES = frozenset(each.name for each in fields(AssembledContext))
_SHARED_FIELDS = ("place", "writer", "message_tokens")
"""Not copied: functions of the Nexus that made the context, and an immutable tuple that may be long."""


def copy_on_read(context: AssembledContext) -> AssembledContext:
    """Return a copy that a plugin may modify. Each part is copied when it is first read."""
    copy = object.__new__(_CopyOnReadContext)
    object.__setattr__(copy, "_original", context)
    return copy


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """The outcome of a turn that an agent has run by itself.

    Attributes:
        messages: All messages of the turn, in the format of any API or as `Message`.
        tool_calls: The tool calls as the agent reports them.
        usage: Token usage of the turn, or its fields by name; None if unknown.
        stop_reason: The reason why the turn ended, as the agent names it.
        error: The error message; None if the turn succeeded.
        id: The agent's id of this run, "" for none. A result with an id can be recorded again and is stored once.
    """

    messages: tuple[object, ...]
    tool_calls: tuple[object, ...] = ()
    usage: Usage | None = None
    stop_reason: str = ""
    error: str | None = None
    id: str = ""

    if TYPE_CHECKING:  # the constructor accepts more types than the fields have

        def __init__(
            self,
            *,
            messages: Iterable[object],
            tool_calls: Iterable[object] = (),
            usage: Usage | Mapping[str, int] | None = None,
            stop_reason: str = "",
            error: str | None = None,
            id: str = "",  # noqa: A002 - the field's name
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
