"""Tagged messages built from a program's own services, without a session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core import UsageError
from nexus_plugins.tagged._blocks import (
    MemoryFormatter,
    MomentFormatter,
    drop_current_run,
    first_user_text,
    format_capabilities,
    format_friends,
    get_field,
    parse_zone,
    read_tools,
)
from nexus_plugins.tagged._options import read_options
from nexus_plugins.tagged._renderer import CORE_IDENTITY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from nexus_plugins.tagged._options import ConfigService

REQUEST = "context.build.request"
"""The topic of requests. The content of the message is `{"run": …, "user_profile": …}`, or the run itself, whose
`metadata` then has the `user_profile`."""
RESPONSE = "context.build.response"
"""The topic of responses. Their content is `{"status": "success", "messages": […], "tools": […]}`, or
`{"status": "error", "error": "…", "messages": [], "tools": []}`."""


class Run(NamedTuple):
    """A user message to reply to.

    A `ContextBuilder` also accepts any other object or dict with these attributes, and runs with `id`, `owner_key`,
    `history` (the user message is the first in it) and `metadata` (`user_profile`, `client_timestamp_utc`,
    `client_timezone_offset`).

    Attributes:
        owner_key: The owner of the history.
        current_input: The text of the user message.
        timestamp_utc: Time of the message; without a valid one, the model gets no time.
        timezone_offset: Minutes west of UTC, or the name of a time zone.
        id: The id of the run. Messages in the history with this `run_id` are not repeated in the memory block.
    """

    owner_key: str
    current_input: str
    timestamp_utc: object = None
    timezone_offset: int | str = 0
    id: str = ""


class BusMessage(NamedTuple):
    """A message on a bus. A request may be any object with these attributes.

    Attributes:
        content: The request (see `REQUEST`) or the response (see `RESPONSE`).
        run_id: The id of the run; a response repeats it.
        owner_key: The owner of the run; a response repeats it.
    """

    content: Mapping[str, object]
    run_id: str = ""
    owner_key: str = ""


class Bus(Protocol):
    """A publish-subscribe message bus."""

    def subscribe(self, topic: str, handler: Callable[[BusMessage], Awaitable[None]], /) -> object:
        """Call a function with every message on a topic."""

    async def publish(self, topic: str, message: BusMessage, /) -> object:
        """Send a message to all subscribers of a topic."""


class ToolRegistry(Protocol):
    """The source of tool definitions."""

    def get_all_tool_definitions(self) -> Sequence[object]:
        """Return all tool definitions, in the format of any API. It may block: it is called in a thread."""


class PersistenceService(Protocol):
    """The store of past messages."""

    async def get_history(self, owner_key: str, limit: int) -> Sequence[object]:
        """Return the newest messages of an owner, in either order: dicts or objects.

        Each has role, content and timestamp. A `run_id` identifies the messages of the current run reliably.
        """


class PromptManager:
    """The system prompt with the identity, and the block about tools.

    Args:
        config_service: The source of `plugins.tagged.*`: `Settings` of Nexus, or any object with such a `get`.
        identity: The text of the identity; "" for the one that ships with the plugin.
    """

    def __init__(self, config_service: ConfigService | None = None, *, identity: str = "") -> None:
        self._phrases = read_options(config_service).phrases
        self._identity = identity or CORE_IDENTITY

    def get_core_identity(self) -> str:
        """Return the system prompt, which is the same in every call."""
        return self._identity

    def get_capabilities_prompt(self, tool_definitions: Iterable[object]) -> str:
        """Return the block `[CAPABILITIES]` for tools in the format of any API.

        Raises:
            MessageError: A definition is invalid.
        """
        return format_capabilities(read_tools(tool_definitions), self._phrases)


class ContextBuilder:
    """Builder of tagged messages, called directly or by requests on a bus.

    Args:
        bus: The bus of requests and responses.
        tool_registry: The source of tools.
        config_service: The source of `plugins.tagged.*`; None for the defaults.
        persistence_service: The source of the history; None for no history.
        prompt_manager: The source of the identity; None for the default one.
    """

    def __init__(
        self,
        bus: Bus,
        tool_registry: ToolRegistry,
        config_service: ConfigService | None = None,
        persistence_service: PersistenceService | None = None,
        *,
        prompt_manager: PromptManager | None = None,
    ) -> None:
        self.bus = bus
        self.tool_registry = tool_registry
        self.persistence_service = persistence_service
        self.prompt_manager = prompt_manager or PromptManager(config_service)
        self._options = read_options(config_service)

    def subscribe_to_bus(self) -> None:
        """Subscribe to requests and publish a response to each."""
        self.bus.subscribe(REQUEST, self.handle_build_request)

    async def handle_build_request(self, message: BusMessage) -> None:
        """Publish the response to a request. An exception becomes a response with the status `error`."""
        try:
            run, profile = _read_request(message.content, _get_text(message, "run_id"))
            messages, tools = await self._build(run, profile)
            content: dict[str, object] = {"status": "success", "messages": messages, "tools": list(tools)}
        except Exception as error:  # noqa: BLE001 - a service may raise anything, and the requester waits
            content = {"status": "error", "error": _describe_error(error), "messages": [], "tools": []}
        await self.bus.publish(
            RESPONSE, BusMessage(content, _get_text(message, "run_id"), _get_text(message, "owner_key"))
        )

    async def build_context(self, run: object, user_profile: Mapping[str, object] | None) -> list[dict[str, str]]:
        """Return the system prompt and the four blocks as messages, with `single_message` one for all blocks.

        Args:
            run: The user message: a `Run`, or another form that its docstring describes.
            user_profile: The profile of the user; None for none.

        Raises:
            UsageError: The run has no user message.
        """
        messages, _ = await self._build(_read_run(run), user_profile)
        return messages

    async def _build(self, run: Run, profile: object) -> tuple[list[dict[str, str]], Sequence[object]]:
        history, tools = await asyncio.gather(
            self._history(run), asyncio.to_thread(self.tool_registry.get_all_tool_definitions)
        )
        options = self._options
        blocks = [
            self.prompt_manager.get_capabilities_prompt(tools),
            MemoryFormatter.format_shared_memory(
                history,
                options.limit,
                timezone=run.timezone_offset,
                language=options.language,
                tool_calls=options.tool_calls,
            ),
            format_friends(profile if isinstance(profile, Mapping) else None, options.phrases),
            MomentFormatter.format_this_moment(run.current_input, run.timestamp_utc, run.timezone_offset),
        ]
        texts = ["\n\n".join(blocks)] if options.single_message else blocks
        system = {"role": "system", "content": self.prompt_manager.get_core_identity()}
        return [system, *({"role": "user", "content": _make_sendable(text)} for text in texts)], tools

    async def _history(self, run: Run) -> Sequence[object]:
        limit = self._options.limit
        if self.persistence_service is None or not limit:
            return ()
        # One more than is shown, because the user message may be stored before its context is built.
        history = await self.persistence_service.get_history(run.owner_key, limit=limit + 1)
        return drop_current_run(history, run)


def _make_sendable(text: str) -> str:
    """Return a text that every API accepts: surrogates joined or replaced, NUL characters removed."""
    return text.replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _describe_error(error: Exception) -> str:
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:  # noqa: BLE001 - the `__str__` of an exception may raise too
        return kind


def _read_request(content: object, run_id: str) -> tuple[Run, object]:
    """Return run and user profile of a request: `{"run": …, "user_profile": …}`, or the run itself."""
    run = content["run"] if isinstance(content, Mapping) and "run" in content else content
    profile = get_field(content, "user_profile") or get_field(get_field(run, "metadata"), "user_profile")
    return _read_run(run, run_id), profile


def _read_run(run: object, run_id: str = "") -> Run:
    """Convert a run of any form to a `Run`.

    Args:
        run: A run; see `Run` for the forms.
        run_id: The id of a run without one.

    Raises:
        UsageError: The run has no user message.
    """
    metadata = get_field(run, "metadata")
    text = get_field(run, "current_input")
    if text is None:
        text = first_user_text(get_field(run, "history"))
    if not isinstance(text, str):
        raise UsageError(
            f"the run has no user message: {type(run).__name__}",
            hint="give a Run, or an object with owner_key and history",
        )
    moment, zone = get_field(run, "timestamp_utc"), get_field(run, "timezone_offset")
    if zone is None:
        zone = _get_zone_or_utc(get_field(metadata, "client_timezone_offset"))
    return Run(
        owner_key=str(get_field(run, "owner_key") or ""),
        current_input=text,
        timestamp_utc=get_field(metadata, "client_timestamp_utc") if moment is None else moment,
        timezone_offset=zone,  # type: ignore[arg-type] # checked where it is used
        id=str(get_field(run, "id") or run_id),
    )


def _get_zone_or_utc(zone: object) -> int | str:
    """Return a client's time zone, or UTC if it is missing or invalid, since a wrong clock must not block a message."""
    try:
        parse_zone(zone)  # type: ignore[arg-type] # it raises UsageError for any other type
    except UsageError:
        return 0
    return zone  # type: ignore[return-value] # validated above


def _get_text(message: object, name: str) -> str:
    return str(getattr(message, name, ""))
