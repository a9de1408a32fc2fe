"""LangGraph: a checkpointer over a ledger, whose threads are sessions of Nexus.

Each `put` and each `put_writes` is one transaction. The messages of the root graph are steps that all of Nexus reads:
`nexus session list`, `show`, `search`, `compact` and `explain` work on threads. The rest of a checkpoint is the `state`
of such a step, or of one of its own, byte for byte as LangGraph's serializer wrote it. Elements of lists, such as
messages, are numbered, and stored once in a thread: a checkpoint names ranges of numbers, so a thread grows with its
messages, not with their square. Nothing but `delete_thread` erases anything.
"""

from __future__ import annotations

import asyncio
import random
from base64 import b64decode, b64encode
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from nexus_core.adapters.framework_sessions import (
    FrameworkSessions,
    build_state_step,
    ensure_exact_text,
    read_exact_label,
)
from nexus_core.adapters.langgraph import convert_message
from nexus_core.adapters.synced_messages import SyncedMessages, build_turn_step
from nexus_core.dialects.registry import get_dialect
from nexus_core.errors import LedgerError, MessageError, UsageError
from nexus_core.nexus import Nexus
from nexus_core.runner import run_to_completion
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, Opaque, Usage
from nexus_core.types.payloads import ExternalTurnPayload, StatePayload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from nexus_core.types.ledger import Step

FRAMEWORK = "langgraph"
"""Marks the sessions of this adapter."""
MIN_SHARED_BYTES = 64
"""Shorter elements of a list are not stored apart: a reference would take as much."""
VERSION_DIGITS = 8
"""Digits of the number in a channel's version, which LangGraph compares as texts."""

Encoded = tuple[str, str]
"""A value by LangGraph's serializer: the type, and the bytes in base64."""
EncodedValue = Encoded | list[Encoded]
"""An encoded value, or the encoded elements of a list that is stored by its elements."""
Numbers = list[int]
"""Numbers of elements. These aliases are for the methods of a class that has a method `list`."""
NewSteps = list[NewStep]
CheckpointNames = list[list[str]]
"""Namespace and id of each checkpoint."""


class StoredCheckpoint(NamedTuple):
    """A checkpoint as it is stored.

    Attributes:
        id: Its id.
        parent: The id of the checkpoint before it; None for the first.
        header: The checkpoint without the values of its channels.
        metadata: Its metadata.
        values: The stored value of each channel: an encoded one, or ranges of numbered elements.
    """

    id: str
    parent: str | None
    header: Encoded
    metadata: Encoded
    values: dict[str, Any]


class StoredWrite(NamedTuple):
    """A pending write of a task."""

    channel: str
    value: Any
    path: str


class CheckpointLog:
    """The checkpoints of a thread, read from the steps of its session.

    Attributes:
        tip: The newest step that was read; None before the first.
        checkpoints: Checkpoints by namespace and id.
        writes: Pending writes by namespace and checkpoint, then by task and index.
        shown: The numbers of the messages that the session shows.
        elements: The numbered elements.
    """

    def __init__(self) -> None:
        self.tip: Step | None = None
        self.checkpoints: dict[str, dict[str, StoredCheckpoint]] = {}
        self.writes: dict[tuple[str, str], dict[tuple[str, int], StoredWrite]] = {}
        self.shown: SyncedMessages[int] = SyncedMessages()
        self.elements: list[Encoded] = []
        self._numbers: dict[Encoded, int] = {}
        self._versions: dict[tuple[str, str, str], Any] = {}

    def find_number(self, element: Encoded) -> int | None:
        """Return the number of a stored element; None if it is new."""
        return self._numbers.get(element)

    def find_value(self, namespace: str, parent: str | None, channel: str, version: object) -> Any:  # noqa: ANN401 - a stored value
        """Return the stored value of a channel that a checkpoint did not write itself; None if there is none."""
        before = self.checkpoints.get(namespace, {}).get(parent or "")
        if before is not None and channel in before.values:
            return before.values[channel]
        return self._versions.get((namespace, channel, str(version)))

    def read(self, steps: Iterable[Step]) -> None:
        """Add the next steps of the thread."""
        for step in steps:
            self._read_step(step)
            self.tip = step

    def _read_step(self, step: Step) -> None:
        payload = step.payload
        state: Any = payload.state if isinstance(payload, ExternalTurnPayload | StatePayload) else None
        shown = None if state is None else [(number, 1) for number in expand_ranges(state.get("shows") or ())]
        self.shown.read_step(step, shown)
        if state is not None:
            self._read_state(state)

    def _read_state(self, state: Any) -> None:  # noqa: ANN401 - JSON
        for kind, text in state.get("elements") or ():
            self._numbers.setdefault((kind, text), len(self.elements))
            self.elements.append((kind, text))
        if (put := state.get("put")) is not None:
            self._read_put(put)
        if (written := state.get("writes")) is not None:
            stored = self.writes.setdefault((written["ns"], written["id"]), {})
            for index, channel, value in written["values"]:
                key = written["task"], index
                if index < 0 or key not in stored:  # as LangGraph's own savers: only special writes are replaced
                    stored[key] = StoredWrite(channel, value, written["path"])
        for namespace, name in state.get("removed") or ():
            self.checkpoints.get(namespace, {}).pop(name, None)
            self.writes.pop((namespace, name), None)

    def _read_put(self, put: Any) -> None:  # noqa: ANN401 - JSON
        namespace, own = put["ns"], put["values"]
        for channel, (version, value) in own.items():
            self._versions[namespace, channel, version] = value
        values = {channel: value for channel, (_, value) in own.items()}
        for channel, version in put["kept"].items():
            values[channel] = self.find_value(namespace, put["parent"], channel, version)
        self.checkpoints.setdefault(namespace, {})[put["id"]] = StoredCheckpoint(
            put["id"], put["parent"], tuple(put["checkpoint"]), tuple(put["metadata"]), values
        )


class NexusSaver(BaseCheckpointSaver[str]):
    """A checkpointer over a ledger: `graph.compile(checkpointer=NexusSaver())`.

    A thread is the session of the same name. Safe under concurrent writers, in this process and in others.

    Args:
        nexus: The Nexus whose ledger is used; None creates one, which `close()` closes.
        serde: LangGraph's serializer; None for its default one, without pickle.
        messages_channel: The channel whose messages the session shows; "" shows none.

    Raises:
        UsageError: The serializer would unpickle, or it encrypts while the messages are shown as they are.
    """

    def __init__(
        self, nexus: Nexus | None = None, *, serde: SerializerProtocol | None = None, messages_channel: str = "messages"
    ) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(pickle_fallback=False))
        _require_safe_serializer(self.serde, messages_channel)
        self._nexus = nexus or Nexus()
        self._own = None if nexus else self._nexus
        self._channel = messages_channel
        self._threads = FrameworkSessions(self._nexus, FRAMEWORK, CheckpointLog)

    def close(self) -> None:
        """Close the ledger, unless a Nexus was given. A second call does nothing."""
        if self._own is not None:
            self._own.close()

    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002 - LangGraph's
        """Return the next version of a channel. Versions of two branches differ."""
        number, width = 0, VERSION_DIGITS
        if current is not None:
            digits = str(current).partition(".")[0]
            number, width = int(digits), max(len(digits) if isinstance(current, str) else 0, VERSION_DIGITS)
        return f"{number + 1:0{width}}.{random.getrandbits(32):08x}"

    # ---- reading ----------------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, or the newest of its namespace; None if there is none.

        Raises:
            SessionExistsError: The session of that name was not created by LangGraph.
        """
        thread, namespace = _read_thread_id(config), _read_namespace(config)
        with self._threads.lock:
            log = self._threads.load(thread)
            stored = log.checkpoints.get(namespace, {})
            name = get_checkpoint_id(config) or max(stored, default="")
            return self._build_tuple(log, thread, namespace, stored[name]) if name in stored else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first, of a thread or, without a config, of all threads."""
        found = self._find_checkpoints(config, filter or {}, (get_checkpoint_id(before) if before else None) or "")
        yield from islice(found, None if limit is None else max(limit, 0))

    def _find_checkpoints(
        self, config: RunnableConfig | None, wanted: dict[str, Any], before: str
    ) -> Iterator[CheckpointTuple]:
        threads = self._threads.list_labels() if config is None else [_read_thread_id(config)]
        namespace = None if config is None else config["configurable"].get("checkpoint_ns")
        name = None if config is None else get_checkpoint_id(config)
        for thread in threads:
            with self._threads.lock:
                log = self._threads.load(thread)
                stored = [
                    (space, each)
                    for space, checkpoints in log.checkpoints.items()
                    for each in sorted(checkpoints.values(), key=lambda one: one.id, reverse=True)
                    if (namespace is None or space == namespace)
                    and (not name or each.id == name)
                    and (not before or each.id < before)
                ]
            for space, each in stored:
                metadata = self._decode(each.metadata)
                if all(metadata.get(key) == value for key, value in wanted.items()):
                    with self._threads.lock:
                        built = self._build_tuple(log, thread, space, each)
                    yield built

    def _build_tuple(
        self, log: CheckpointLog, thread: str, namespace: str, stored: StoredCheckpoint
    ) -> CheckpointTuple:
        values = {name: self._decode_value(log, value) for name, value in stored.values.items() if value is not None}
        writes = log.writes.get((namespace, stored.id), {})
        ordered = sorted(writes.items(), key=lambda item: writes_sort_key(item[1].path, *item[0]))
        checkpoint: Any = {**self._decode(stored.header), "channel_values": values}
        pending = [(task, write.channel, self._decode_value(log, write.value)) for (task, _), write in ordered]
        return CheckpointTuple(
            config=_build_config(thread, namespace, stored.id),
            checkpoint=checkpoint,
            metadata=self._decode(stored.metadata),
            parent_config=_build_config(thread, namespace, stored.parent) if stored.parent else None,
            pending_writes=pending,
        )

    # ---- writing ----------------------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint in one transaction, and return its config.

        Raises:
            SessionExistsError: The session of that name was not created by LangGraph.
            TurnError: A turn of Nexus's own is open in the session, or it is archived.
            UsageError: The thread_id or the checkpoint_ns cannot be stored as it is.
        """
        thread, namespace = _read_thread_id(config), _read_namespace(config)
        header: dict[str, Any] = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        values = checkpoint["channel_values"]
        encoded = {name: self._encode_value(name, values[name]) for name in new_versions if name in values}
        put: dict[str, Any] = {
            "ns": namespace,
            "id": checkpoint["id"],
            "parent": get_checkpoint_id(config),
            "checkpoint": self._encode(header),
            "metadata": self._encode(get_checkpoint_metadata(config, metadata)),
        }
        versions = checkpoint["channel_versions"]
        put["kept"] = {name: str(version) for name, version in versions.items() if name not in new_versions}
        messages = values.get(self._channel) if namespace == "" else None

        def plan(log: CheckpointLog) -> NewSteps:
            numbering = ElementNumbering(log)
            own = {name: [str(new_versions[name]), numbering.refer(value)] for name, value in encoded.items()}
            state: dict[str, Any] = {"put": {**put, "values": own}}
            stored: Any = own[self._channel][1] if self._channel in own else None
            if self._channel in put["kept"]:
                stored = log.find_value(namespace, put["parent"], self._channel, put["kept"][self._channel])
            if not isinstance(messages, list) or (messages and not isinstance(stored, dict)):
                return self._plan_steps(log, state, numbering, None, ())
            numbers = expand_ranges(stored["list"]) if messages else []
            return self._plan_steps(log, state, numbering, numbers, messages)

        self._threads.append(thread, plan)
        return _build_config(thread, namespace, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task in one transaction. The checkpoint need not be stored yet.

        Raises:
            SessionExistsError, TurnError, UsageError: As for `put`.
        """
        name = get_checkpoint_id(config)
        if not name:
            raise UsageError("the config names no checkpoint", hint="pass the config that `put` returned")
        about = {"ns": _read_namespace(config), "id": name, "task": task_id, "path": task_path}
        encoded = [
            (WRITES_IDX_MAP.get(channel, index), channel, self._encode_value(channel, value))
            for index, (channel, value) in enumerate(writes)
        ]

        def plan(log: CheckpointLog) -> NewSteps:
            stored = log.writes.get((about["ns"], about["id"]), {})
            new = [each for each in encoded if each[0] < 0 or (task_id, each[0]) not in stored]
            if not new:
                return []
            numbering = ElementNumbering(log)
            values = [[index, channel, numbering.refer(value)] for index, channel, value in new]
            return self._plan_steps(log, {"writes": {**about, "values": values}}, numbering, None, ())

        self._threads.append(_read_thread_id(config), plan)

    def _plan_steps(
        self,
        log: CheckpointLog,
        state: dict[str, Any],
        numbering: ElementNumbering,
        numbers: Numbers | None,
        messages: Sequence[Any],
    ) -> NewSteps:
        """Return the steps that store a state, and make the session show the messages with these numbers."""
        if numbering.added:
            state["elements"] = numbering.added
        if numbers is None:
            return [build_state_step(state)]
        kept, steps = log.shown.plan_change(numbers, log.tip)
        new = messages[kept:]
        if not new:
            return [*steps, build_state_step(state)]
        state["shows"] = build_ranges(numbers[kept:])
        step = build_turn_step(
            self._nexus.host,
            state,
            [_read_message(message) for message in new],
            model=next(filter(None, map(_find_model, reversed(new))), ""),
            usages=[usage for message in new if (usage := _read_usage(message)) is not None],
            is_continued=kept > 0,
        )
        return [*steps, step]

    # ---- deletion and copies ----------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Delete the session of a thread: its content is erased, and the deletion is recorded.

        Raises:
            SessionExistsError: The session of that name was not created by LangGraph.
            LedgerError: The ledger cannot delete.
        """
        self._threads.delete(read_exact_label(thread_id, "thread_id"), reason="deleted by LangGraph")

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs. Their steps stay in the ledger."""
        wanted = set(map(str, run_ids))
        for thread in self._threads.list_labels() if wanted else ():
            self._remove(thread, lambda log: self._find_run_checkpoints(log, wanted))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, as a fork of its session. A thread that does not exist is not copied.

        Raises:
            SessionExistsError: There is a session with the target's name.
        """
        source, target = (read_exact_label(each, "thread_id") for each in (source_thread_id, target_thread_id))
        record = self._threads.find(source)
        if record is not None:
            self._threads.ledger.create(target, head=record.head, origin=source, data=record.data)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove all checkpoints but the newest of each namespace, or, with the strategy `delete`, whole threads.

        Checkpoints that the newest one needs to rebuild a delta channel stay.

        Raises:
            UsageError: The strategy is another one.
        """
        if strategy not in ("keep_latest", "delete"):
            raise UsageError(f"unknown strategy {strategy!r}", hint="`keep_latest` or `delete`")
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
            elif self._threads.find(label := read_exact_label(thread, "thread_id")) is not None:
                self._remove(label, self._find_older_checkpoints)

    def _remove(self, thread: str, find: Callable[[CheckpointLog], CheckpointNames]) -> None:
        def plan(log: CheckpointLog) -> NewSteps:
            removed = find(log)
            return [build_state_step({"removed": removed})] if removed else []

        self._threads.append(thread, plan)

    def _find_run_checkpoints(self, log: CheckpointLog, runs: set[str]) -> CheckpointNames:
        return [
            [namespace, name]
            for namespace, checkpoints in log.checkpoints.items()
            for name, stored in checkpoints.items()
            if self._decode(stored.metadata).get("run_id") in runs
        ]

    def _find_older_checkpoints(self, log: CheckpointLog) -> CheckpointNames:
        removed = []
        for namespace, checkpoints in log.checkpoints.items():
            newest: str | None = max(checkpoints, default="")
            kept = {newest}
            while newest in checkpoints and self._decode(checkpoints[newest].metadata).get(
                "counters_since_delta_snapshot"
            ):
                newest = checkpoints[newest].parent
                kept.add(newest)
            removed += [[namespace, name] for name in checkpoints if name not in kept]
        return removed

    # ---- values -----------------------------------------------------------------------------------------------

    def _encode(self, value: object) -> Encoded:
        kind, content = self.serde.dumps_typed(value)
        return kind, b64encode(content).decode()

    def _decode(self, encoded: Sequence[str]) -> Any:  # noqa: ANN401 - any value
        try:
            return self.serde.loads_typed((encoded[0], b64decode(encoded[1])))
        except (NotImplementedError, ValueError, TypeError) as error:  # of another type, such as a pickle, or damaged
            hint = "use the serializer with which it was stored; `nexus ledger verify` says whether it was changed"
            raise LedgerError(f"a value of a checkpoint cannot be read: {error}", hint=hint) from None

    def _encode_value(self, channel: str, value: object) -> EncodedValue:
        """Return an encoded value, or the encoded elements of a list that is stored by its elements."""
        if type(value) is list and value:
            first = self._encode(value[0])
            if channel == self._channel or len(first[1]) >= MIN_SHARED_BYTES:
                return [first, *(self._encode(each) for each in value[1:])]
        return self._encode(value)

    def _decode_value(self, log: CheckpointLog, value: Any) -> Any:  # noqa: ANN401 - a stored value, and any value
        if isinstance(value, dict):
            return [self._decode(log.elements[number]) for number in expand_ranges(value["list"])]
        return self._decode(value)

    # ---- async ------------------------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return what `get_tuple` does, without blocking the event loop."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield what `list` does, without blocking the event loop."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do what `put` does, without blocking the event loop."""
        return await run_to_completion(partial(self.put, config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Do what `put_writes` does, without blocking the event loop."""
        await run_to_completion(partial(self.put_writes, config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Do what `delete_thread` does, without blocking the event loop."""
        await run_to_completion(partial(self.delete_thread, thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do what `delete_for_runs` does, without blocking the event loop."""
        await run_to_completion(partial(self.delete_for_runs, run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do what `copy_thread` does, without blocking the event loop."""
        await run_to_completion(partial(self.copy_thread, source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do what `prune` does, without blocking the event loop."""
        await run_to_completion(partial(self.prune, thread_ids, strategy=strategy))


class ElementNumbering:
    """Numbers for the elements of new values: those of stored elements, and new ones.

    Args:
        log: The thread.

    Attributes:
        added: The elements that are not stored yet, in the order of their numbers.
    """

    def __init__(self, log: CheckpointLog) -> None:
        self._log = log
        self._new: dict[Encoded, int] = {}
        self.added: list[Encoded] = []

    def refer(self, value: EncodedValue) -> Any:  # noqa: ANN401 - JSON
        """Return the stored form of a value: itself, or the ranges of its elements' numbers."""
        if isinstance(value, tuple):
            return list(value)
        return {"list": build_ranges([self._number(each) for each in value])}

    def _number(self, element: Encoded) -> int:
        known = self._log.find_number(element)
        if known is None:
            known = self._new.get(element)
        if known is None:
            known = self._new[element] = len(self._log.elements) + len(self.added)
            self.added.append(element)
        return known


def build_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Return numbers as ranges: the first number and the length of each."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][0] + ranges[-1][1]:
            ranges[-1][1] += 1
        else:
            ranges.append([number, 1])
    return ranges


def expand_ranges(ranges: Iterable[Sequence[int]]) -> list[int]:
    """Return the numbers of ranges."""
    return [number for first, length in ranges for number in range(first, first + length)]


def _require_safe_serializer(serde: object, messages_channel: str) -> None:
    is_encrypted = isinstance(serde, EncryptedSerializer)
    inner = serde.serde if isinstance(serde, EncryptedSerializer) else serde
    if getattr(inner, "pickle_fallback", False):
        hint = "JsonPlusSerializer(pickle_fallback=False); a pickle in a ledger could run any program when it is read"
        raise UsageError("the serializer would unpickle what is in the ledger", hint=hint)
    if is_encrypted and messages_channel:
        hint = 'NexusSaver(…, messages_channel="") stores no message in clear text; `nexus session show` then has none'
        raise UsageError("the serializer encrypts, and the session would show the messages", hint=hint)


# ---- configs --------------------------------------------------------------------------------------------------------


def _read_thread_id(config: RunnableConfig) -> str:
    thread = config.get("configurable", {}).get("thread_id")
    if thread is None:
        raise UsageError("the config has no thread_id", hint='pass {"configurable": {"thread_id": "…"}}')
    return read_exact_label(thread, "thread_id")


def _read_namespace(config: RunnableConfig) -> str:
    namespace = str(config["configurable"].get("checkpoint_ns") or "")
    ensure_exact_text(namespace, "the checkpoint_ns")
    return namespace


def _build_config(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}}


# ---- messages -------------------------------------------------------------------------------------------------------


def _read_message(message: Any) -> Message:  # noqa: ANN401 - any message that LangChain accepts
    try:
        return get_dialect("openai").read(convert_message(message, 0))
    except MessageError:  # not a message of LangChain; it is stored all the same
        return Message("assistant", (Opaque("openai", {"content": str(message)}),), api="openai")


def _find_model(message: Any) -> str:  # noqa: ANN401 - as above
    about = getattr(message, "response_metadata", None) or {}
    name = about.get("model_name") or about.get("model") or about.get("model_id")
    return name if isinstance(name, str) else ""


def _read_usage(message: Any) -> Usage | None:  # noqa: ANN401 - as above
    usage = getattr(message, "usage_metadata", None)
    if not usage:
        return None
    read, made = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    return Usage(
        input_tokens=usage.get("input_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        cached_input_tokens=read.get("cache_read") or 0,
        cache_write_tokens=read.get("cache_creation") or 0,
        reasoning_tokens=made.get("reasoning") or 0,
    )
