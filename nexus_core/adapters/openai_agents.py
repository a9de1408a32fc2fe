"""For the OpenAI Agents SDK: a session whose items are kept in a ledger, and a filter that makes each call fit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_core.dialects.finding import dialect
from nexus_core.errors import ConflictError, ExistsError, MessageError, TurnError
from nexus_core.history.fit import fit
from nexus_core.nexus import Nexus
from nexus_core.tokens.counters import open_counter
from nexus_core.values.ledger import NewStep
from nexus_core.values.message import Message
from nexus_core.values.parts import Opaque

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from nexus_core.values.ledger import Ledger, SessionRecord, Step

T = TypeVar("T")

ATTEMPTS = 100
"""So often a step is tried again when others were faster; each time one of them has got on."""
CLEARED = "The conversation was cleared here."
"""The summary of a conversation that was cleared, for those who read the session otherwise."""
SILENT = ("sealed", "compaction", "revert")
"""Kinds of steps that add no item: what they say was said before, or takes something back."""


class NexusSession:
    """A session of the Agents SDK over a ledger: `Runner.run(agent, "Hello.", session=NexusSession("chat"))`.

    Items come back equal to what was given, whatever their type. What is popped or cleared is not deleted: a step is
    added that takes it back.

    Args:
        session_id: The session's name in the ledger.
        nexus: Whose ledger; by default a Nexus of the working directory, which `close()` closes.
        session_settings: The SDK's `SessionSettings`; `limit` counts where `get_items` is given none.
    """

    def __init__(self, session_id: str, *, nexus: Nexus | None = None, session_settings: Any = None) -> None:  # noqa: ANN401 - the SDK's
        self.session_id = session_id
        self.session_settings = session_settings
        self._nexus = nexus or Nexus()
        self._is_own = nexus is None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, oldest first; with a limit, the newest so many."""
        wanted = getattr(self.session_settings, "limit", None) if limit is None else limit
        return await asyncio.to_thread(self._read, wanted)

    async def add_items(self, items: list[Any]) -> None:
        """Keep items, all of them or, where that fails, none.

        Raises:
            TurnError: A turn is open in the session, or it is archived.
        """
        if items:
            await _finished(lambda: self._changed(lambda record: self._add(record, items)))

    async def pop_item(self) -> Any:  # noqa: ANN401 - an item of the SDK
        """Take back the newest item and return it; None where there is none."""
        return await _finished(lambda: self._changed(self._pop))

    async def clear_session(self) -> None:
        """Take back everything."""
        await _finished(lambda: self._changed(self._clear))

    def close(self) -> None:
        """Let go of the ledger, if it is this session's own; a second call does nothing."""
        if self._is_own:
            self._nexus.close()

    # What follows may take its time.

    def _read(self, limit: int | None) -> list[Any]:
        record = self._ledger.session(self.session_id)
        return [] if record is None or record.tip is None else newest_items(self._ledger, record.tip, limit)

    def _add(self, record: SessionRecord | None, items: list[Any]) -> None:
        if record is None:
            record = self._ledger.create(self.session_id, data={"model": "", "cwd": str(self._nexus.cwd)})
        messages = tuple(map(_message_of, items))
        # Messages are what all of Nexus reads; items are kept beside them only where they would not come back equal.
        data = {} if _written(messages) == items else {"items": items}
        counter = open_counter(host=self._nexus.host)
        step = NewStep(
            kind="turn",
            closes=True,
            messages=messages,
            tokens=counter.count_messages(messages),
            counter=counter.name,
            data=data,
        )
        self._ledger.append(record.label, step, after=record.tip)

    def _pop(self, record: SessionRecord | None) -> Any:  # noqa: ANN401 - an item of the SDK
        if record is None or record.tip is None:
            return None
        newest, tip = newest_items(self._ledger, record.tip, 1), self._ledger.step(record.tip)
        if not newest or tip is None:
            return None
        step = NewStep(kind="revert", closes=True, data={"restores": tip.compaction, "popped": 1})
        self._ledger.append(record.label, step, after=record.tip)
        return newest[0]

    def _clear(self, record: SessionRecord | None) -> None:
        if record is not None and record.tip is not None and newest_items(self._ledger, record.tip, 1):
            step = NewStep(kind="compaction", closes=True, data={"summary": CLEARED, "cleared": True})
            self._ledger.append(record.label, step, after=record.tip)

    def _changed(self, change: Callable[[SessionRecord | None], T]) -> T:
        """Do something where the session stands; decide anew where somebody else was faster."""
        for _ in range(ATTEMPTS):
            record = self._ledger.session(self.session_id)
            _ensure_free(record)
            try:
                return change(record)
            except (ConflictError, ExistsError):
                continue
        raise ConflictError(
            f"session {self.session_id!r} never stood still long enough", hint="fewer programs at once on one session"
        )

    @property
    def _ledger(self) -> Ledger:
        return self._nexus.ledger


def newest_items(ledger: Ledger, tip: str, limit: int | None) -> list[Any]:
    """The items up to a step, oldest first; with a limit, the newest so many. No more steps are read than it takes."""
    if limit == 0:
        return []
    begin = _last_cleared(ledger, tip)
    if limit is None or limit < 0:  # as in the SDK's own sessions
        return _items_in(ledger.thread(tip, first=begin))
    window = limit
    while True:
        steps = ledger.thread(tip, limit=window)
        is_all = len(steps) < window
        for place, step in enumerate(steps):
            if step.id == begin:
                steps, is_all = steps[place:], True
                break
        items = _items_in(steps)
        if is_all or len(items) >= limit:
            return items[-limit:]
        window *= 2


def fit_input(**options: Any) -> Callable[[Any], Awaitable[Any]]:  # noqa: ANN401 - as for fit
    """For `RunConfig(call_model_input_filter=fit_input(budget=50_000))`: every call gets what fits of its input.

    Instructions and function tools of the agent are counted with it. Nothing that is kept in a session changes.

    Args:
        options: As for `nexus_core.fit`; `model` is the agent's where it is a name.
    """

    async def fitted(data: Any) -> Any:  # noqa: ANN401 - CallModelData in, ModelInputData out
        sent, agent = data.model_data, data.agent
        given = {
            "api": "responses",
            "model": agent.model if isinstance(agent.model, str) else "",
            "system": sent.instructions,
            "tools": [_definition(tool) for tool in agent.tools if hasattr(tool, "params_json_schema")],
            **options,
        }
        kept = await asyncio.to_thread(fit, sent.input, **given)
        return replace(sent, input=kept.messages)

    return fitted


async def _finished(work: Callable[[], T]) -> T:
    """What a change brings about; it is never left half done, not even by a caller that is cancelled meanwhile."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:  # once is enough
                continue
        task.exception()  # nobody is left to be told
        raise


def _ensure_free(record: SessionRecord | None) -> None:
    if record is not None and record.status == "archived":
        undo = f"nexus session archive --undo {quote(record.label)}"
        raise TurnError(f"session {record.label!r} is archived", hint=f"`{undo}` takes it back into use")
    if record is not None and record.open_turn is not None:
        raise TurnError(
            f"a turn is open in session {record.label!r}",
            hint="nexus.session(…).interrupt() ends it; if another program works on it, use another session_id",
        )


def _last_cleared(ledger: Ledger, tip: str) -> str | None:
    """The step that cleared what was before it, if there is one that counts."""
    step = ledger.step(tip)
    while step is not None and step.compaction is not None:
        step = ledger.step(step.compaction)
        if step is not None and "cleared" in step.data:
            return step.id
        step = ledger.step(step.parent) if step is not None and step.parent is not None else None
    return None


def _items_in(steps: list[Step]) -> list[Any]:
    """The items of steps, without those that later ones take back. Without the first steps, it is the end of the same."""
    items: list[Any] = []
    for step in steps:
        if "popped" in step.data:
            items = items[: -step.data["popped"]]
        elif step.kind not in SILENT:
            items += step.data["items"] if "items" in step.data else _written(step.messages)
    return items


def _message_of(item: object) -> Message:
    try:
        return dialect("responses").read(item)
    except MessageError:
        if not isinstance(item, Mapping):
            raise
        return Message("assistant", (Opaque("responses", item),), api="responses")  # it may be of a later SDK


def _written(messages: tuple[Message, ...]) -> list[Any]:
    return dialect("responses").write(messages)


def _definition(tool: Any) -> dict[str, Any]:  # noqa: ANN401 - a FunctionTool
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }
