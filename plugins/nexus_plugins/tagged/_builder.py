"""Builds the five messages from services of a program, without a session."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from nexus_plugins.tagged._bus import REQUEST, RESPONSE, BusMessage
from nexus_plugins.tagged._friends import friends_block
from nexus_plugins.tagged._memory import MemoryFormatter
from nexus_plugins.tagged._moment import MomentFormatter
from nexus_plugins.tagged._options import read_options
from nexus_plugins.tagged._prompts import PromptManager

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_plugins.tagged._bus import Bus, Persistence, Run, ToolRegistry
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
            run: Run = message.content["run"]  # type: ignore[assignment]
            profile: Mapping[str, object] = message.content.get("user_profile") or {}  # type: ignore[assignment]
            messages, tools = await self._build(run, profile)
            content: dict[str, object] = {"status": "success", "messages": messages, "tools": list(tools)}
        except Exception as error:  # noqa: BLE001 - whoever asked waits for an answer, whatever a service raises
            reason = f"{type(error).__name__}: {error}"
            content = {"status": "error", "error": reason, "messages": [], "tools": []}
        await self.bus.publish(RESPONSE, BusMessage(content, _text(message, "run_id"), _text(message, "owner_key")))

    async def build_context(self, run: Run, user_profile: Mapping[str, object] | None) -> list[dict[str, str]]:
        """The system prompt and the four blocks as messages; with `single_message`, the blocks as one.

        Args:
            run: What is to be answered.
            user_profile: What is known about who said it.
        """
        messages, _ = await self._build(run, user_profile)
        return messages

    async def _build(
        self, run: Run, profile: Mapping[str, object] | None
    ) -> tuple[list[dict[str, str]], Sequence[object]]:
        history, tools = await asyncio.gather(
            self._history(run.owner_key), asyncio.to_thread(self.tool_registry.get_all_tool_definitions)
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
            friends_block(profile, options.words),
            MomentFormatter.format_this_moment(
                run.current_input, time.time() if run.timestamp_utc is None else run.timestamp_utc, run.timezone_offset
            ),
        ]
        said = ["\n\n".join(blocks)] if options.single_message else blocks
        system = {"role": "system", "content": self.prompt_manager.get_core_identity()}
        return [system, *({"role": "user", "content": text} for text in said)], tools

    async def _history(self, owner_key: str) -> Sequence[object]:
        if self.persistence_service is None:
            return ()
        return await self.persistence_service.get_history(owner_key, limit=self._options.limit)


def _text(message: object, name: str) -> str:
    return str(getattr(message, name, ""))
