"""ContextManager: a conversation in memory that always fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, cast

from nexus_core.config.schema import ContextConfig
from nexus_core.dialects.fields import describe_json_value
from nexus_core.dialects.registry import DEFAULT_DIALECT_NAME, get_default_registry
from nexus_core.dialects.requests import count_message_bytes, count_option_bytes, count_tool_bytes
from nexus_core.dialects.rules import NEUTRAL_RULES
from nexus_core.errors import UsageError
from nexus_core.history.budget import read_definitions
from nexus_core.history.groups import GrowingHistory, build_session_start_message, is_session_start
from nexus_core.history.repair import repair_messages
from nexus_core.history.repair.validity import is_valid_alone
from nexus_core.history.select import select, shrink_budget
from nexus_core.history.shorten import replace_oldest_media
from nexus_core.host.manager import get_default_host
from nexus_core.tokens.counters import open_counter
from nexus_core.tokens.messages import count_tools
from nexus_core.types.messages import Message, Part, Text, ToolResult
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nexus_core.history.groups import SizedMessage
    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.messages import ResultPart, Role, ToolCall

OVER_BUDGET = "over-budget"
_EMPTY_REQUEST_BYTES = count_option_bytes({})
_ENVIRONMENT_HEADING = "\n# Environment\n"


class MessageLogger(Protocol):
    """A log of everything that enters a conversation, including messages that are dropped later."""

    def log_system(self, prompt: str) -> None:
        """Log a new system prompt."""

    def log_message(self, message: Message) -> None:
        """Log a message that was added."""


class ContextManager:
    """A conversation in memory: system prompt, tools, and messages that always fit.

    The first message is always `[Session started: …]`, unless `config.session_start` is false.

    Args:
        config: Budget, reserve, truncation and clock; None for the defaults of `ContextConfig`.
        token_counter: The token counter; None for the best one installed.
        logger: Receives the system prompt and every message.
        now: Returns the current local time.

    Raises:
        UnknownNameError: There is no truncation strategy with the name `config.truncation_strategy`.
    """

    def __init__(
        self,
        config: ContextConfig | None = None,
        token_counter: TokenCounter | None = None,
        logger: MessageLogger | None = None,
        *,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.config = config or ContextConfig()
        self._truncation = get_default_host().truncations().get(self.config.truncation_strategy)
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

    # ---- content --------------------------------------------------------------------------------------------

    @property
    def system_prompt(self) -> str:
        """The system prompt, "" if there is none."""
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
        """Replace the tools, in the format of any API."""
        given = list(tools) if isinstance(tools, Iterator) else tools
        defined = read_definitions(given, DEFAULT_DIALECT_NAME, get_default_registry())
        self._tools_tokens, self._tools_bytes = count_tools(self._counter, defined), count_tool_bytes(defined)
        self._tools = list(given or ())

    def get_tool_definitions(self) -> list[Any]:
        """Return the tools as they were set."""
        return list(self._tools)

    def add_session_start_message(self) -> None:
        """Add `[Session started: …]` now; otherwise it is added before the first message."""
        if self._history.messages:
            raise UsageError("the session has already begun", hint="call this before you add a message")
        self._started = self._started or self._now()
        self._append(build_session_start_message(self._started))

    def add_user_message(self, content: str | Iterable[Part]) -> None:
        """Add a user message; with `clock="message"`, it begins with the time."""
        stamp = (Text(self._clock()),) if self.config.clock == "message" else ()
        self._add(Message("user", (*stamp, *_read_parts(content))))

    def add_assistant_message(self, content: str, tool_calls: Iterable[ToolCall] = ()) -> None:
        """Add a reply of the model; one without text and tool calls is not stored."""
        parts = (*_read_parts(content or ()), *_read_parts(tool_calls or ()))
        if parts:
            self._add(Message("assistant", parts))

    def add_tool_result(self, tool_call_id: str, name: str, result: str | Iterable[ResultPart] | ToolResult) -> None:
        """Add a tool result."""
        if not isinstance(result, ToolResult):
            result = ToolResult(tool_call_id, cast("tuple[ResultPart, ...]", _read_parts(result)), name)
        self._add(Message("tool", (result,)))

    def add_message(self, message: Message) -> None:
        """Add a complete message, such as one of `dialect(…).read_reply(reply).messages`."""
        _require_message(message)
        self._add(message)

    def clear_messages(self) -> None:
        """Remove all messages; system prompt, tools and the start time stay."""
        self._history = GrowingHistory()

    def apply_compaction(
        self,
        summary_message: Message,
        preserved_messages: Iterable[Message],
        new_system_prompt: str | None = None,
    ) -> None:
        """Replace all messages except the preserved ones by a summary.

        Args:
            summary_message: The result of `create_summary_message`.
            preserved_messages: The messages to keep; `select_messages_for_compaction` keeps calls and results together.
            new_system_prompt: A new system prompt, since the files may have changed; None keeps the current one.
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

    # ---- token usage ----------------------------------------------------------------------------------------

    def get_token_usage(self) -> dict[str, int]:
        """Return the tokens of system, tools and messages, their total, the budget, and the available part of it."""
        system, tools, messages = self._current_system()[1], self._tools_tokens, self._history.sizes.total
        return {
            "system": system,
            "tools": tools,
            "messages": messages,
            "total": system + tools + messages,
            "budget": self.config.max_tokens,
            "available": self._available,
        }

    def is_over_budget(self) -> bool:
        """Return True if the next `build_messages()` will leave something out."""
        return self.get_token_usage()["total"] > self._available

    # ---- messages to send -----------------------------------------------------------------------------------

    def build_messages(self) -> list[Message]:
        """Return the system prompt and the messages that fit, and remove the other messages from memory.

        The newest group is kept even if it alone is too large; then `findings` contains `over-budget`.
        """
        system, kept, self.findings = self._fit()
        if [id(message) for message, _ in kept] != list(map(id, self._history.messages)):
            self._history = _build_history(kept)
        return [*system, *(message for message, _ in kept)]

    def preview(self) -> list[Message]:
        """Return what `build_messages()` would return, without removing anything."""
        system, kept, _ = self._fit()
        return [*system, *(message for message, _ in kept)]

    def _fit(self) -> tuple[list[Message], list[SizedMessage], tuple[Finding, ...]]:
        system, system_tokens = self._current_system()
        budget = self._available - system_tokens - self._tools_tokens
        first_role: Role | None = "user" if self.config.start_with_user else None
        room = budget
        while True:
            selection = select(self._history, room, self._truncation, first_role=first_role)
            kept, findings = self._mended(self._history.pick(selection.kept))
            tokens = sum(tokens for _, tokens in kept)
            if tokens <= budget or room <= 0:
                small, too_large = self._made_small(kept, self._history.measure_bytes(selection.kept), system)
                return system, small, (*findings, *_find_token_overflow(tokens, budget), *too_large)
            room = shrink_budget(room, selection.size + selection.trimmed, tokens, budget)

    def _made_small(
        self, kept: list[SizedMessage], size: int, system: list[Message]
    ) -> tuple[list[SizedMessage], tuple[Finding, ...]]:
        """Replace the oldest images and documents if the request body is larger than every API accepts."""
        fixed = _EMPTY_REQUEST_BYTES + self._tools_bytes + sum(map(count_message_bytes, system))
        if fixed + size <= NEUTRAL_RULES.request_bytes:
            return kept, ()
        told, left = replace_oldest_media([message for message, _ in kept], NEUTRAL_RULES.request_bytes - fixed)
        known = {id(message): tokens for message, tokens in kept}
        small = [(message, known.get(id(message)) or self._size(message)) for message in told]
        return small, _find_byte_overflow(fixed + left)

    def _mended(self, kept: list[SizedMessage]) -> tuple[list[SizedMessage], tuple[Finding, ...]]:
        if self._history.sound:
            return kept, ()
        repaired = repair_messages([message for message, _ in kept], api="neutral")
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
        self._history.append(message, self._size(message) if tokens is None else tokens, count_message_bytes(message))
        self._history.sound = self._history.sound and is_valid_alone(message, NEUTRAL_RULES)

    def _size(self, message: Message) -> int:
        return self._counter.count_messages([message])

    def _clock(self) -> str:
        return f"{self._now():Current date: %Y-%m-%d, Current time: %H:%M (local)}"

    def _current_system(self) -> tuple[list[Message], int]:
        if self.config.clock != "system":
            return ([self._system] if self._system else []), self._system_tokens
        message = Message("system", _insert_clock(self.system_prompt, self._clock()))
        return [message], self._size(message)


def _insert_clock(prompt: str, clock: str) -> str:
    """Put the clock first under `# Environment`, which ends the prompt of a `PromptLoader`, or else at the end."""
    before, heading, environment = f"\n{prompt}".rpartition(_ENVIRONMENT_HEADING)
    if heading:
        return f"{before}{heading}{clock}\n{environment}".removeprefix("\n")
    return f"{prompt}\n\n{clock}" if prompt else clock


def _require_message(message: object) -> None:
    if not isinstance(message, Message):
        raise UsageError(
            "expected a Message", hint='get_dialect("anthropic").read(item) makes one from what an API returned'
        )


def _read_parts(content: object) -> tuple[Part, ...]:
    """Return content as parts of a message.

    Raises:
        UsageError: It is neither text nor parts.
    """
    if isinstance(content, str):
        return (Text(content),)
    given = tuple(content) if isinstance(content, Iterable) and not isinstance(content, bytes | Mapping) else (content,)
    for part in given:
        if not isinstance(part, Part):
            raise UsageError(
                f"expected a text or parts of a message, not {describe_json_value(part)}", hint="str(…), or [Text(…)]"
            )
    return given


def _build_history(kept: list[SizedMessage]) -> GrowingHistory:
    history = GrowingHistory()
    for message, tokens in kept:
        history.append(message, tokens, count_message_bytes(message))
    return history


def _find_token_overflow(tokens: int, budget: int) -> tuple[Finding, ...]:
    if tokens <= budget:
        return ()
    if budget < 0:
        text = f"the system prompt and the tools take {-budget:,} tokens more than are available"
    else:
        text = f"{tokens:,} tokens must be sent and {budget:,} are available: the newest messages are too long"
    return (Finding(OVER_BUDGET, text),)


def _find_byte_overflow(size: int) -> tuple[Finding, ...]:
    if size <= NEUTRAL_RULES.request_bytes:
        return ()
    text = f"{size:,} bytes must be sent, and not every API takes more than {NEUTRAL_RULES.request_bytes:,}"
    return (Finding(OVER_BUDGET, text),)
