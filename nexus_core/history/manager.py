"""A conversation in memory that always fits: add messages, build what to send."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, cast

from nexus_core.dialects.fields import named
from nexus_core.dialects.finding import UNTOLD, default_dialects
from nexus_core.dialects.rules import NEUTRAL
from nexus_core.dialects.sizes import measure_message, measure_options, measure_tools
from nexus_core.errors import UsageError
from nexus_core.history.allowance import read_definitions
from nexus_core.history.asking import NEWEST, ask_truncation, smaller_room
from nexus_core.history.groups import build_session_start_message, is_input, is_session_start
from nexus_core.history.growing import GrowingHistory
from nexus_core.history.soundness import is_sound_alone
from nexus_core.values.finding import Finding
from nexus_core.values.message import Message
from nexus_core.values.parts import Part, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nexus_core.config.schema import ContextConfig
    from nexus_core.history.growing import Sized
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.parts import ResultPart, ToolCall

OVER_BUDGET = "over-budget"
_EMPTY = measure_options({})
_ENVIRONMENT = "\n# Environment\n"


class MessageLogger(Protocol):
    """Is told everything that enters a conversation; what is dropped later stays in the log."""

    def log_system(self, prompt: str) -> None:
        """The system prompt was set."""

    def log_message(self, message: Message) -> None:
        """A message was added."""


class ContextManager:
    """Holds a system prompt, tools and messages; gives back what fits.

    The first message is always `[Session started: …]`, unless `config.session_start` is false.

    Args:
        config: Budget, reserve, truncation and clock; the defaults of `ContextConfig` otherwise.
        token_counter: Who counts; the best that is installed otherwise.
        logger: Told about the system prompt and every message.
        now: The clock, in local time.

    Raises:
        UnknownNameError: `config.truncation_strategy` is not the name of a truncation.
    """

    def __init__(
        self,
        config: ContextConfig | None = None,
        token_counter: TokenCounter | None = None,
        logger: MessageLogger | None = None,
        *,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        from nexus_core.config.schema import ContextConfig  # noqa: PLC0415 - pydantic only for those who manage
        from nexus_core.host.default import default_host  # noqa: PLC0415 - plugins are looked for when needed
        from nexus_core.tokens.counters import open_counter  # noqa: PLC0415 - as above

        self.config = config or ContextConfig()
        self._truncation = default_host().truncations().get(self.config.truncation_strategy)
        self._counter = token_counter or open_counter()
        self._logger = logger
        self._now = now
        self._system: Message | None = None
        self._system_tokens = 0
        self._tools: list[Any] = []
        self._tools_tokens = 0
        self._tools_bytes = 0
        self._history = GrowingHistory()
        self._started: datetime | None = None
        self.findings: tuple[Finding, ...] = ()

    # ---- what it holds --------------------------------------------------------------------------------------

    @property
    def system_prompt(self) -> str:
        """The system prompt, "" when there is none."""
        return self._system.content if self._system else ""

    @property
    def messages(self) -> list[Message]:
        """The messages in memory; the list is a copy."""
        return list(self._history.messages)

    def set_system_prompt(self, prompt: str) -> None:
        """Replace the system prompt."""
        self._system = Message("system", (Text(prompt),)) if prompt else None
        self._system_tokens = self._size(self._system) if self._system else 0
        if self._logger:
            self._logger.log_system(prompt)

    def set_tool_definitions(self, tools: Iterable[object] | None) -> None:
        """Replace the tools, in whatever shape the provider wants them."""
        given = list(tools) if isinstance(tools, Iterator) else tools
        from nexus_core.tokens.messages import count_tools  # noqa: PLC0415 - not every conversation has tools

        defined = read_definitions(given, UNTOLD, default_dialects())
        self._tools_tokens, self._tools_bytes = count_tools(self._counter, defined), measure_tools(defined)
        self._tools = list(given or ())

    def get_tool_definitions(self) -> list[Any]:
        """The tools, for the call."""
        return list(self._tools)

    def add_session_start_message(self) -> None:
        """Add `[Session started: …]` now; otherwise it is added before the first message."""
        if self._history.messages:
            raise UsageError("the session has already begun", hint="call this before you add anything")
        self._started = self._started or self._now()
        self._append(build_session_start_message(self._started))

    def add_user_message(self, content: str | Iterable[Part]) -> None:
        """Add a message of the user; with `clock="message"`, it begins with the time."""
        stamp = (Text(self._clock()),) if self.config.clock == "message" else ()
        self._add(Message("user", (*stamp, *_parts_of(content))))

    def add_assistant_message(self, content: str, tool_calls: Iterable[ToolCall] = ()) -> None:
        """Add a reply of the model; one without text and tool calls is not stored."""
        parts = (*_parts_of(content or ()), *_parts_of(tool_calls or ()))
        if parts:
            self._add(Message("assistant", parts))

    def add_tool_result(self, tool_call_id: str, name: str, result: str | Iterable[ResultPart] | ToolResult) -> None:
        """Add what a tool brought."""
        if not isinstance(result, ToolResult):
            result = ToolResult(tool_call_id, cast("tuple[ResultPart, ...]", _parts_of(result)), name)
        self._add(Message("tool", (result,)))

    def add_message(self, message: Message) -> None:
        """Add a message as it is, with everything it holds: what `dialect(…).read_reply(reply).messages` gives."""
        _require_message(message)
        self._add(message)

    def clear_messages(self) -> None:
        """Forget the messages; system prompt, tools and the time of the start stay."""
        self._history = GrowingHistory()

    def apply_compaction(
        self,
        summary_message: Message,
        preserved_messages: Iterable[Message],
        new_system_prompt: str | None = None,
    ) -> None:
        """Put a summary in the place of all messages but those that are preserved.

        Args:
            summary_message: What `create_summary_message` gave.
            preserved_messages: What stays; `select_messages_for_compaction` keeps calls and their results together.
            new_system_prompt: Replaces the system prompt, which may have changed on disk; None leaves it as it is.
        """
        preserved = list(preserved_messages)
        for message in (summary_message, *preserved):
            _require_message(message)
        known = {
            id(message): tokens for message, tokens in zip(self._history.messages, self._history.tokens, strict=True)
        }
        self._history = GrowingHistory()
        self._append(summary_message)
        for message in preserved:
            self._keep(message, known.get(id(message)))
        if new_system_prompt is not None:
            self.set_system_prompt(new_system_prompt)

    # ---- what it takes --------------------------------------------------------------------------------------

    def get_token_usage(self) -> dict[str, int]:
        """Tokens of system, tools and messages, their total, the budget, and what of it is available."""
        system, tools, messages = self._current_system()[1], self._tools_tokens, self._history.sums.total
        return {
            "system": system,
            "tools": tools,
            "messages": messages,
            "total": system + tools + messages,
            "budget": self.config.max_tokens,
            "available": self._available,
        }

    def is_over_budget(self) -> bool:
        """Whether the next `build_messages()` will leave something out."""
        return self.get_token_usage()["total"] > self._available

    # ---- what to send ---------------------------------------------------------------------------------------

    def build_messages(self) -> list[Message]:
        """System prompt and the messages that fit; what does not fit is forgotten, so that memory equals what is sent.

        The newest group stays even when it alone is too big; `findings` says so.
        """
        system, kept, self.findings = self._fit()
        if [id(message) for message, _ in kept] != list(map(id, self._history.messages)):
            self._history = _history_of(kept)
        return [*system, *(message for message, _ in kept)]

    def preview(self) -> list[Message]:
        """What `build_messages()` would return, without forgetting anything."""
        system, kept, _ = self._fit()
        return [*system, *(message for message, _ in kept)]

    def _fit(self) -> tuple[list[Message], list[Sized], tuple[Finding, ...]]:
        system, system_tokens = self._current_system()
        budget = self._available - system_tokens - self._tools_tokens
        room = budget
        while True:
            chosen = self._chosen(room)
            picked = self._history.pick(chosen)
            kept, findings = self._mended(self._begun(picked))
            tokens = sum(tokens for _, tokens in kept)
            if tokens <= budget or room <= 0:
                small, too_large = self._made_small(kept, self._history.measure(chosen), system)
                return system, small, (*findings, *_overflow(tokens, budget), *too_large)
            room = smaller_room(room, sum(tokens for _, tokens in picked), tokens, budget)

    def _made_small(
        self, kept: list[Sized], size: int, system: list[Message]
    ) -> tuple[list[Sized], tuple[Finding, ...]]:
        """Without older pictures and documents, where with them it would be larger than every API takes."""
        fixed = _EMPTY + self._tools_bytes + sum(map(measure_message, system))
        if fixed + size <= NEUTRAL.request_bytes:
            return kept, ()
        from nexus_core.history.hiding import hide_oldest  # noqa: PLC0415 - few conversations are so large

        told, left = hide_oldest([message for message, _ in kept], NEUTRAL.request_bytes - fixed)
        known = {id(message): tokens for message, tokens in kept}
        small = [(message, known.get(id(message)) or self._size(message)) for message in told]
        return small, _too_large(fixed + left)

    def _chosen(self, room: int) -> list[slice]:
        if self._history.sums.total <= room:
            return [slice(None)]
        # Without room for anything, the newest group still goes.
        return ask_truncation(self._truncation, self._history.sums, room) if room > 0 else [NEWEST]

    def _begun(self, kept: list[Sized]) -> list[Sized]:
        """Without what stands before the first word of the user, if that is wanted and there is one."""
        if not self.config.start_with_user:
            return kept
        first = next((place for place, (message, _) in enumerate(kept) if is_input(message)), 0)
        return kept[first:]

    def _mended(self, kept: list[Sized]) -> tuple[list[Sized], tuple[Finding, ...]]:
        if self._history.sound:
            return kept, ()
        from nexus_core.history.repair import repair  # noqa: PLC0415 - only for what was added in a wrong order

        repaired = repair([message for message, _ in kept], api="neutral")
        known = {id(message): tokens for message, tokens in kept}
        mended = [(message, known.get(id(message)) or self._size(message)) for message in repaired.messages]
        return mended, repaired.findings

    # ---- sizes ----------------------------------------------------------------------------------------------

    @property
    def _available(self) -> int:
        return self.config.max_tokens - self.config.reserve_tokens

    def _add(self, message: Message) -> None:
        if self.config.session_start and not self._history.messages and not is_session_start(message):
            self.add_session_start_message()
        self._append(message)

    def _append(self, message: Message) -> None:
        self._keep(message)
        if self._logger:
            self._logger.log_message(message)

    def _keep(self, message: Message, tokens: int | None = None) -> None:
        self._history.append(message, self._size(message) if tokens is None else tokens, measure_message(message))
        self._history.sound = self._history.sound and is_sound_alone(message, NEUTRAL)

    def _size(self, message: Message) -> int:
        return self._counter.count_messages([message])

    def _clock(self) -> str:
        return f"{self._now():Current date: %Y-%m-%d, Current time: %H:%M (local)}"

    def _current_system(self) -> tuple[list[Message], int]:
        if self.config.clock != "system":
            return ([self._system] if self._system else []), self._system_tokens
        message = Message("system", _with_clock(self.system_prompt, self._clock()))
        return [message], self._size(message)


def _with_clock(prompt: str, clock: str) -> str:
    """Put the clock first under `# Environment`, which ends the prompt of a `PromptLoader`, or else at the end."""
    before, heading, environment = f"\n{prompt}".rpartition(_ENVIRONMENT)
    if heading:
        return f"{before}{heading}{clock}\n{environment}".removeprefix("\n")
    return f"{prompt}\n\n{clock}" if prompt else clock


def _require_message(message: object) -> None:
    if not isinstance(message, Message):
        raise UsageError(
            "expected a Message", hint='dialect("anthropic").read(item) makes one from what an API returned'
        )


def _parts_of(content: object) -> tuple[Part, ...]:
    """What is said, in parts."""
    if isinstance(content, str):
        return (Text(content),)
    given = tuple(content) if isinstance(content, Iterable) and not isinstance(content, bytes | Mapping) else (content,)
    for part in given:
        if not isinstance(part, Part):
            raise UsageError(f"expected a text or parts of a message, not {named(part)}", hint="str(…), or [Text(…)]")
    return given


def _history_of(kept: list[Sized]) -> GrowingHistory:
    history = GrowingHistory()
    for message, tokens in kept:
        history.append(message, tokens, measure_message(message))
    return history


def _overflow(tokens: int, budget: int) -> tuple[Finding, ...]:
    if tokens <= budget:
        return ()
    if budget < 0:
        text = f"the system prompt and the tools take {-budget:,} tokens more than are available"
    else:
        text = f"{tokens:,} tokens must be sent and {budget:,} are available: the newest messages are too long"
    return (Finding(OVER_BUDGET, text),)


def _too_large(size: int) -> tuple[Finding, ...]:
    if size <= NEUTRAL.request_bytes:
        return ()
    text = f"{size:,} bytes must be sent, and not every API takes more than {NEUTRAL.request_bytes:,}"
    return (Finding(OVER_BUDGET, text),)
