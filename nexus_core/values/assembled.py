"""What one call of a model is made of."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from nexus_core.values.copying import copied
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nexus_core.values.breakpoint import Breakpoint
    from nexus_core.values.budget import Decision, TokenBudget
    from nexus_core.values.conversation import Tool
    from nexus_core.values.finding import Finding
    from nexus_core.values.message import Message
    from nexus_core.values.parts import JSON
    from nexus_core.values.placement import Placement


class Writer(Protocol):
    """Puts contexts into the shapes of APIs; given the API, further arguments of the call, whether to use its cache."""

    def write(self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool) -> dict[str, Any]:
        """The arguments of the SDK's call."""

    def plan(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool
    ) -> tuple[Breakpoint, ...]:
        """What the provider is told to keep in its cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledContext:
    """Everything that one call of a model is made of, in no API's shape.

    Only the system prompt, the messages, the tools and the model's name are sent; the rest is for whoever makes the
    call. It can be copied, but not pickled: what `to` returns can be handed to another process.

    Attributes:
        system_prompt: What the model reads first.
        history: The turns before this one, as many as fit.
        current_message: What this turn is about.
        progress: What the model and its tools have said in this turn so far.
        tools: What the model may ask for; only what is permitted.
        model: Whom to ask.
        provider: Who serves it.
        model_config: Options from the settings, for whoever makes the call.
        token_budget: The model's window and what takes it up.
        session_label: The session.
        turn_id: The turn, as the steps say that are recorded in it; "" for one that is only tried out.
        parent_turn_id: The turn before this one, None for the first.
        role: What part the agent plays.
        toolset_name: What the tools together are called.
        permissions_granted: What the agent may do.
        source_event_id: What set it off, if that has a name.
        workspace_path: The directory the agent works in.
        decisions: What was left out so that it fits; `first` and `last` count the steps of the session.
        findings: What a person should know, such as a model that nobody knows.
        renderer: What put it into words.
        epoch: The address of what is frozen: system prompt and tools.
        system_context: What the system prompt was put together from, as it is written down.
        place: Says where each piece comes from; asked when `placements` is.
        message_tokens: What each of `messages` takes; empty where nobody counted.
        writer: Puts it into the shapes of APIs.
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
    writer: Writer = field(compare=False)

    def __repr__(self) -> str:
        """How much it is, and for whom; all of it is too long to read."""
        budget, count = self.token_budget, len(self.messages)
        taken = f"{budget.total:,} of {budget.available:,} tokens"
        facts = (f"{count:,} message{'' if count == 1 else 's'}", taken, f"model {self.model!r}" if self.model else "")
        return f"AssembledContext({', '.join(filter(None, facts))})"

    def __copy__(self) -> AssembledContext:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> AssembledContext:
        names = [each.name for each in fields(self) if each.name not in _SHARED]
        return replace(self, **{name: deepcopy(getattr(self, name), memo) for name in names})

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AssembledContext stays in its process; what context.to(…) returns can be sent to another")

    def apart(self) -> AssembledContext:
        """The same for somebody who may do with it what they like; each part is copied when it is first looked at."""
        told = object.__new__(_Apart)
        object.__setattr__(told, "_original", self)
        return told

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Every section, tool and message that was put into the call or left out of it, in the order of the call."""
        return self.place()

    @property
    def messages(self) -> tuple[Message, ...]:
        """History, current message and progress: all that is said after the system prompt."""
        current = () if self.current_message is None else (self.current_message,)
        return (*self.history, *current, *self.progress)

    def to(self, api: str, *, cache: bool = True, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - an SDK's arguments are of any type
        """The arguments of an SDK's call: `client.messages.create(**context.to("anthropic", max_tokens=8000))`.

        What the settings have in `provider.options` is among them, as far as the API knows it.

        Args:
            api: `openai`, `responses`, `anthropic`, `gemini`, `neutral`, or what a plugin offers.
            cache: Whether the provider is told what to keep in its cache, by marks or by a key.
            options: Further arguments of the call, as they are; they take the place of what would be there otherwise.

        Raises:
            UnknownNameError: There is no such API.
            BudgetError: The API takes fewer bytes than the one that the model is known by, and fewer than these.
        """
        return self.writer.write(self, api, options, cache=cache)

    def breakpoints(self, api: str, *, cache: bool = True, **options: Any) -> tuple[Breakpoint, ...]:  # noqa: ANN401 - as above
        """The places of the call at which the provider is told to keep all before in its cache, and why others are not.

        Args and errors are those of `to`.
        """
        return self.writer.plan(self, api, options, cache=cache)


class _Apart(AssembledContext):
    """A context whose parts are those of another, copied one by one: most who are told of one look at its numbers."""

    __slots__ = ("_original",)
    _original: AssembledContext

    def __getattr__(self, name: str) -> object:
        """A part that nobody has looked at yet."""
        if name not in _PARTS:
            raise AttributeError(f"an AssembledContext has no attribute {name!r}")
        value = getattr(self._original, name)
        value = value if name in _SHARED else copied(value)
        object.__setattr__(self, name, value)
        return value


_PARTS = frozenset(each.name for each in fields(AssembledContext))
_SHARED = ("place", "writer", "message_tokens")
"""What looks things up in the Nexus that a context came from, and thousands of numbers."""
