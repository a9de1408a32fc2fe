"""Builds the five messages from services of a program, without a session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nexus_core import UsageError
from nexus_plugins.tagged._bus import REQUEST, RESPONSE, BusMessage, Run
from nexus_plugins.tagged._clock import zone_of
from nexus_plugins.tagged._friends import friends_block
from nexus_plugins.tagged._memory import MemoryFormatter, drop_current_run, first_user_text, get_field
from nexus_plugins.tagged._moment import MomentFormatter
from nexus_plugins.tagged._options import read_options
from nexus_plugins.tagged._prompts import PromptManager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_plugins.tagged._bus import Bus, Persistence, ToolRegistry
    from nexus_plugins.tagged._options import Config


class ContextBuilder:
    """Answers requests for contexts that come over a bus, or builds one when it is called.

    Args:
        bus: Where requests come from and responses go to.
        tool_registry: Knows the tools.
        config_service: Where `plugins.tagged.*` is asked for.
        persistence_service: Knows the history; None for none.
        prompt_manager: Has the identity.
    """

    def __init__(
        self,
        bus: Bus,
        tool_registry: ToolRegistry,
        config_service: Config | None = None,
        persistence_service: Persistence | None = None,
        *,
        prompt_manager: PromptManager | None = None,
    ) -> None:
        self.bus = bus
        self.tool_registry = tool_registry
        self.persistence_service = persistence_service
        self.prompt_manager = prompt_manager or PromptManager(config_service)
        self._options = read_options(config_service)

    def subscribe_to_bus(self) -> None:
        """Answer requests from now on."""
        self.bus.subscribe(REQUEST, self.handle_build_request)

    async def handle_build_request(self, message: BusMessage) -> None:
        """Answer one request; what goes wrong is an answer too."""
        try:
            run, profile = _read_request(message.content, _text(message, "run_id"))
            messages, tools = await self._build(run, profile)
            content: dict[str, object] = {"status": "success", "messages": messages, "tools": list(tools)}
        except Exception as error:  # noqa: BLE001 - whoever asked waits for an answer, whatever a service raises
            content = {"status": "error", "error": _reason(error), "messages": [], "tools": []}
        await self.bus.publish(RESPONSE, BusMessage(content, _text(message, "run_id"), _text(message, "owner_key")))

    async def build_context(self, run: object, user_profile: Mapping[str, object] | None) -> list[dict[str, str]]:
        """The system prompt and the four blocks as messages; with `single_message`, the blocks as one.

        Args:
            run: The user message to answer: a `Run`, or one of the shapes that it describes.
            user_profile: What is known about the user.

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
            friends_block(profile if isinstance(profile, Mapping) else None, options.words),
            MomentFormatter.format_this_moment(run.current_input, run.timestamp_utc, run.timezone_offset),
        ]
        said = ["\n\n".join(blocks)] if options.single_message else blocks
        system = {"role": "system", "content": self.prompt_manager.get_core_identity()}
        return [system, *({"role": "user", "content": _sendable(text)} for text in said)], tools

    async def _history(self, run: Run) -> Sequence[object]:
        limit = self._options.limit
        if self.persistence_service is None or not limit:
            return ()
        # One more than is shown, because the user message may be stored before its context is built.
        history = await self.persistence_service.get_history(run.owner_key, limit=limit + 1)
        return drop_current_run(history, run)


def _sendable(text: str) -> str:
    """Return a text that every API accepts: halves of characters joined or replaced, without NUL characters."""
    return text.replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _reason(error: Exception) -> str:
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:  # noqa: BLE001 - the exception of a service may fail at this too
        return kind


def _read_request(content: object, run_id: str) -> tuple[Run, object]:
    """Return run and user profile of a request: `{"run": …, "user_profile": …}`, or the run itself."""
    run = content["run"] if isinstance(content, Mapping) and "run" in content else content
    profile = get_field(content, "user_profile") or get_field(get_field(run, "metadata"), "user_profile")
    return _read_run(run, run_id), profile


def _read_run(given: object, run_id: str = "") -> Run:
    """Return a run of any shape as a `Run`.

    Args:
        given: A run; see `Run` for the shapes.
        run_id: Its id, for runs without one.

    Raises:
        UsageError: It has no user message.
    """
    metadata = get_field(given, "metadata")
    text = get_field(given, "current_input")
    if text is None:
        text = first_user_text(get_field(given, "history"))
    if not isinstance(text, str):
        raise UsageError(
            f"the run has no user message: {type(given).__name__}",
            hint="give a Run, or an object with owner_key and history",
        )
    moment, zone = get_field(given, "timestamp_utc"), get_field(given, "timezone_offset")
    if zone is None:
        zone = _usable_zone(get_field(metadata, "client_timezone_offset"))
    return Run(
        owner_key=str(get_field(given, "owner_key") or ""),
        current_input=text,
        timestamp_utc=get_field(metadata, "client_timestamp_utc") if moment is None else moment,
        timezone_offset=zone,  # type: ignore[arg-type] # checked where it is used
        id=str(get_field(given, "id") or run_id),
    )


def _usable_zone(zone: object) -> int | str:
    """Return a client's offset, or UTC for one that is missing or wrong: a message matters more than its clock."""
    try:
        zone_of(zone)  # type: ignore[arg-type] # it says so if it is no offset
    except UsageError:
        return 0
    return zone  # type: ignore[return-value] # as above


def _text(message: object, name: str) -> str:
    return str(getattr(message, name, ""))
