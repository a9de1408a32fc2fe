"""OpenAI Agents SDK: a session stored in a ledger, and a filter that fits calls.

Every addition is one step and one turn: messages, which all of Nexus reads, and beside them (`items` in the step's
data) the items byte for byte. A step without a user message continues the turn before it, for programs that count or
show turns. Nothing is deleted. A step that removes the newest item is a `revert` (`popped`), one that removes all items
is a `compaction` that keeps nothing (`cleared`).
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from nexus_core.adapters.framework_sessions import ensure_framework, ensure_writable
from nexus_core.dialects.fields import to_json_dict
from nexus_core.dialects.registry import get_dialect
from nexus_core.errors import ConflictError, MessageError, SessionExistsError
from nexus_core.history.fit import FitResult, fit_messages, require_fit_options
from nexus_core.ledger.ledger import walk_back
from nexus_core.ledger.store import read_label
from nexus_core.nexus import Nexus
from nexus_core.runner import run_to_completion
from nexus_core.thread.state import (
    MARKER_KINDS,
    MAX_APPEND_ATTEMPTS,
    add_usages,
    build_contention_error,
)
from nexus_core.tokens.counters import open_counter
from nexus_core.types.assembled import CacheReport
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, Opaque, Usage
from nexus_core.types.payloads import CompactionPayload, ExternalTurnPayload, RevertPayload, SessionPayload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from agents import RunHooks

    from nexus_core.types.ledger import Ledger, SessionRecord, Step, StepKind
    from nexus_core.types.payloads import StepPayload

T = TypeVar("T")

MIN_LONG_ITEM_CHARACTERS = 64_000
"""Longer items, which are mostly images, are not stored twice if their messages can be converted back unchanged."""
MIN_STEPS_PER_READ = 8
"""Fewest steps per read if only some items are requested."""
STEP_KINDS_WITHOUT_ITEMS = ("sealed", *MARKER_KINDS)
"""Kinds of steps that repeat earlier messages, or have none."""


class ModelCall(NamedTuple):
    """A model call, as far as the SDK tells.

    Attributes:
        model: The name of the model; "" if it is not known.
        usage: The usage that the provider reported.
    """

    model: str
    usage: Usage


class SessionItemStore:
    """The items of one session. Safe under concurrent writers.

    Args:
        nexus: The Nexus whose ledger is used.
        label: The session's name.
    """

    def __init__(self, nexus: Nexus, label: str) -> None:
        self._nexus = nexus
        self._label = label

    def read(self, limit: int | None = None) -> list[Any]:
        """Return all items, oldest first, or the newest `limit`. A negative limit means all, as in the SDK.

        Raises:
            SessionExistsError: The session was created by another framework.
        """
        return self._newest(self._tip(self._find()), limit)

    def add(self, items: Sequence[Any], calls: Sequence[ModelCall] = ()) -> None:
        """Append items in one transaction.

        Args:
            items: The items.
            calls: The model calls that they come from, as far as they are known.

        Raises:
            SessionExistsError: The session was created by another framework, which keeps its state there.
            TurnError: A turn is open in the session, or it is archived.
            MessageError: An item is not a JSON object.
        """
        blocks = [to_json_dict(item, f"items[{index}]") for index, item in enumerate(items)]
        messages = tuple(map(_read_item, blocks))
        counter = open_counter(host=self._nexus.host)
        is_given_by_messages = _is_long(blocks) and _write_items(messages) == blocks
        payload = ExternalTurnPayload() if is_given_by_messages else ExternalTurnPayload(items=blocks)
        if calls:
            payload = payload.replace(usage=add_usages([call.usage for call in calls]))
            if model := next((call.model for call in reversed(calls) if call.model), ""):
                payload = payload.replace(model=model)
        step = NewStep(
            kind="turn",
            closes=True,
            messages=messages,
            tokens=counter.count_messages(messages),
            counter=counter.name,
            data=payload.to_json(),
        )
        # The SDK adds the user message first, and the results of the run in one or more additions.
        continuing = replace(step, data=payload.replace(continues=True).to_json())
        session = SessionPayload(model="", cwd=str(self._nexus.cwd))

        def change(record: SessionRecord | None) -> Step:
            known = record or self._ledger.create(self._label, data=session.to_json())
            is_new = known.tip is None or any(message.role == "user" for message in messages)
            return self._ledger.append(known.label, step if is_new else continuing, after=known.tip)

        added = self._retry_on_conflict(change)
        usage = added.payload.usage if isinstance(added.payload, ExternalTurnPayload) else None
        self._nexus.host.recorded(added, self._label, usage, CacheReport())

    def pop(self) -> Any:  # noqa: ANN401 - an item
        """Remove and return the newest item, or None if there is none."""

        def change(record: SessionRecord | None) -> Any:  # noqa: ANN401 - an item
            tip = self._tip(record)
            newest = self._newest(tip, 1)
            if tip is None or not newest:
                return None
            self._append_removal(tip, "revert", RevertPayload(restores=tip.compaction, popped=1))
            return newest[0]

        return self._retry_on_conflict(change)

    def clear(self) -> None:
        """Remove all items."""

        def change(record: SessionRecord | None) -> None:
            tip = self._tip(record)
            if tip is not None and self._newest(tip, 1):
                self._append_removal(tip, "compaction", CompactionPayload(cleared=True))

        self._retry_on_conflict(change)

    @property
    def _ledger(self) -> Ledger:
        return self._nexus.ledger

    def _find(self) -> SessionRecord | None:
        record = self._ledger.session(self._label)
        if record is not None:
            ensure_framework(record, "")
        return record

    def _retry_on_conflict(self, change: Callable[[SessionRecord | None], T]) -> T:
        """Apply a change to the current session. Read it again and retry after a conflicting write."""
        for _ in range(MAX_APPEND_ATTEMPTS):
            record = self._find()
            if record is not None:
                ensure_writable(record)
            try:
                return change(record)
            except (ConflictError, SessionExistsError):
                continue
        raise build_contention_error(self._label)

    def _append_removal(self, tip: Step, kind: StepKind, payload: StepPayload) -> None:
        # The counter keeps the token sum valid.
        step = NewStep(kind=kind, closes=True, counter=tip.counter, data=payload.to_json())
        self._ledger.append(self._label, step, after=tip.id)

    def _tip(self, record: SessionRecord | None) -> Step | None:
        return None if record is None or record.tip is None else self._ledger.step(record.tip)

    def _newest(self, tip: Step | None, limit: int | None) -> list[Any]:
        """Return the newest items up to a step, reading only a few more steps than needed."""
        if tip is None:
            return []
        begin, count = self._last_cleared(tip), None if limit is None or limit < 0 else limit
        if count is None:
            steps: Iterable[Step] = reversed(self._ledger.thread(tip.id, first=begin))
        else:
            steps = walk_back(self._ledger, tip.id, batch_size=max(count, MIN_STEPS_PER_READ))
        return list(islice(_iterate_newest_first(steps, begin), count))[::-1]

    def _last_cleared(self, tip: Step) -> str | None:
        """Return the step that cleared everything before it, or None if there is none or it was reverted."""
        step: Step | None = tip
        while step is not None and step.compaction is not None:
            nearest = self._ledger.step(step.compaction)
            if nearest is None or (isinstance(nearest.payload, CompactionPayload) and nearest.payload.cleared):
                return step.compaction
            step = None if nearest.parent is None else self._ledger.step(nearest.parent)
        return None


def _iterate_newest_first(steps: Iterable[Step], begin: str | None) -> Iterator[Any]:
    """Yield the items of a thread from its end back to a step, without those that were popped."""
    popped = 0
    for step in steps:
        if step.id == begin:
            return
        payload = step.payload
        popped += (payload.popped or 0) if isinstance(payload, RevertPayload) else 0
        if step.kind not in STEP_KINDS_WITHOUT_ITEMS:
            stored = payload.items if isinstance(payload, ExternalTurnPayload) else None
            items = _write_items(step.messages) if stored is None else stored
            left = max(len(items) - popped, 0)
            popped -= len(items) - left
            yield from reversed(items[:left])


def _read_item(block: dict[str, Any]) -> Message:
    try:
        return get_dialect("responses").read(block)
    except MessageError:  # a newer version of the API may know it
        return Message("assistant", (Opaque("responses", block),), api="responses")


def _write_items(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return get_dialect("responses").write(messages)


def _is_long(blocks: list[dict[str, Any]]) -> bool:
    return len(json.dumps(blocks)) >= MIN_LONG_ITEM_CHARACTERS


class NexusSession:
    """A session of the Agents SDK over a ledger: `Runner.run(agent, "Hello.", session=NexusSession("chat"))`.

    Items are returned unchanged, whatever their type. Popped or cleared items are not deleted: a new step marks them as
    removed.

    The SDK's items do not tell which model answered and what it used. Pass `hooks` to `Runner.run`, and the session
    stores that, too.

    Args:
        session_id: The session's name in the ledger.
        nexus: The Nexus whose ledger is used; None creates one, which `close()` closes.
        session_settings: The SDK's `SessionSettings`; its limit is the default of `get_items`.
    """

    def __init__(self, session_id: str, *, nexus: Nexus | None = None, session_settings: Any = None) -> None:  # noqa: ANN401 - the SDK's
        self.session_id = read_label(session_id)
        self.session_settings = session_settings
        used = nexus or Nexus()
        self._own = None if nexus else used
        self._items = SessionItemStore(used, self.session_id)
        self._calls: list[ModelCall] = []

    @property
    def hooks(self) -> RunHooks[Any]:
        """Hooks for `Runner.run(…, session=session, hooks=session.hooks)`, which pass on each response."""
        from agents import RunHooks

        session = self

        class ResponseHooks(RunHooks[Any]):
            async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:  # noqa: ANN401, ARG002 - the SDK's
                session.add_response(agent, response)

        return ResponseHooks()

    def add_response(self, agent: Any, response: Any) -> None:  # noqa: ANN401 - the SDK's
        """Remember the model and usage of a response, for the items that are added next. For hooks of your own.

        Args:
            agent: The agent that called the model.
            response: The SDK's `ModelResponse`.
        """
        named = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
        self._calls.append(ModelCall(named if isinstance(named, str) else "", _read_usage(response.usage)))

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, oldest first. With a limit, the newest ones."""
        wanted = getattr(self.session_settings, "limit", None) if limit is None else limit
        return await asyncio.to_thread(self._items.read, wanted)

    async def add_items(self, items: list[Any]) -> None:
        """Append items atomically.

        Raises:
            SessionExistsError: The session was created by another framework.
            TurnError: A turn is open in the session, or it is archived.
        """
        if not items:
            return
        calls: list[ModelCall] = []
        if any(_is_output(item) for item in items):  # the user's message is added before the model is called
            calls, self._calls = self._calls, []
        try:
            await run_to_completion(partial(self._items.add, items, calls))
        except Exception:
            self._calls = [*calls, *self._calls]
            raise

    async def pop_item(self) -> Any:  # noqa: ANN401 - an item of the SDK
        """Remove and return the newest item, or None if there is none."""
        return await run_to_completion(self._items.pop)

    async def clear_session(self) -> None:
        """Remove all items."""
        await run_to_completion(self._items.clear)

    def close(self) -> None:
        """Close the ledger, unless a Nexus was given. A second call does nothing."""
        if self._own is not None:
            self._own.close()


def _is_output(item: Any) -> bool:  # noqa: ANN401 - an item of the SDK
    return isinstance(item, dict) and item.get("role") not in ("user", "system", "developer")


def _read_usage(usage: Any) -> Usage:  # noqa: ANN401 - the SDK's Usage
    read, made = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cached_input_tokens=getattr(read, "cached_tokens", None) or 0,
        cache_write_tokens=getattr(read, "cache_write_tokens", None) or 0,
        reasoning_tokens=getattr(made, "reasoning_tokens", None) or 0,
    )


def fit_input(**options: Any) -> Callable[[Any], Awaitable[Any]]:  # noqa: ANN401 - as for fit_messages
    """Return a filter for `RunConfig(call_model_input_filter=fit_input(budget=50_000))` that makes every call fit.

    The agent's instructions and function tools are counted. The stored session does not change.

    Args:
        options: As for `nexus_core.fit_messages`. `model` is the agent's, if that is a name.
    """
    require_fit_options(options)

    async def fitted(data: Any) -> Any:  # noqa: ANN401 - the SDK's CallModelData and ModelInputData
        sent, agent = data.model_data, data.agent
        given: dict[str, Any] = {
            "api": "responses",
            "model": agent.model if isinstance(agent.model, str) else "",
            "system": sent.instructions,
            "tools": [_build_tool_definition(tool) for tool in agent.tools if hasattr(tool, "params_json_schema")],
        }
        work: Callable[[], FitResult[Any]] = partial(fit_messages, sent.input, **given | options)
        return replace(sent, input=(await asyncio.to_thread(work)).messages)

    return fitted


def _build_tool_definition(tool: Any) -> dict[str, Any]:  # noqa: ANN401 - the SDK's FunctionTool
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }
