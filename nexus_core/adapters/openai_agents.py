"""For the OpenAI Agents SDK: a session that is kept in a ledger, and a filter that makes each call fit."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_core.adapters.kept_items import KeptItems
from nexus_core.history.fit import Fitted, fit, require_options
from nexus_core.nexus import Nexus
from nexus_core.session.arguments import read_label

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


class NexusSession:
    """A session of the Agents SDK over a ledger: `Runner.run(agent, "Hello.", session=NexusSession("chat"))`.

    Items come back equal to what was given, whatever their type. What is popped or cleared is not deleted: a step is
    added that takes it back.

    Args:
        session_id: The session's name in the ledger.
        nexus: Whose ledger; by default that of a Nexus of its own, which `close()` closes.
        session_settings: The SDK's `SessionSettings`; its limit counts where `get_items` is given none.
    """

    def __init__(self, session_id: str, *, nexus: Nexus | None = None, session_settings: Any = None) -> None:  # noqa: ANN401 - the SDK's
        self.session_id = read_label(session_id)
        self.session_settings = session_settings
        used = nexus or Nexus()
        self._own = None if nexus else used
        self._items = KeptItems(used, self.session_id)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, oldest first; with a limit, the newest so many."""
        wanted = getattr(self.session_settings, "limit", None) if limit is None else limit
        return await asyncio.to_thread(self._items.read, wanted)

    async def add_items(self, items: list[Any]) -> None:
        """Keep items, all of them or none.

        Raises:
            TurnError: A turn is open in the session, or it is archived.
        """
        if items:
            await _finish(partial(self._items.add, items))

    async def pop_item(self) -> Any:  # noqa: ANN401 - an item of the SDK
        """Take back the newest item and return it; None where there is none."""
        return await _finish(self._items.pop)

    async def clear_session(self) -> None:
        """Take back everything."""
        await _finish(self._items.clear)

    def close(self) -> None:
        """Let go of the ledger, where no Nexus was given; a second call does nothing."""
        if self._own is not None:
            self._own.close()


def fit_input(**options: Any) -> Callable[[Any], Awaitable[Any]]:  # noqa: ANN401 - as for fit
    """For `RunConfig(call_model_input_filter=fit_input(budget=50_000))`: every call is sent what fits.

    The agent's instructions and function tools are counted. What a session keeps does not change.

    Args:
        options: As for `nexus_core.fit`. `model` is the agent's, where that is a name.
    """
    require_options(options)

    async def fitted(data: Any) -> Any:  # noqa: ANN401 - the SDK's CallModelData and ModelInputData
        sent, agent = data.model_data, data.agent
        given: dict[str, Any] = {
            "api": "responses",
            "model": agent.model if isinstance(agent.model, str) else "",
            "system": sent.instructions,
            "tools": [_definition(tool) for tool in agent.tools if hasattr(tool, "params_json_schema")],
        }
        work: Callable[[], Fitted[Any]] = partial(fit, sent.input, **given | options)
        return replace(sent, input=(await asyncio.to_thread(work)).messages)

    return fitted


def _definition(tool: Any) -> dict[str, Any]:  # noqa: ANN401 - the SDK's FunctionTool
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }


async def _finish(work: Callable[[], T]) -> T:
    """Do something in a thread; who is cancelled meanwhile learns it when it is done, so that nothing overtakes it."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # which would be reported as lost otherwise
        raise cancelled
    return task.result()
