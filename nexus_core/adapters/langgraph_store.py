"""LangGraph: a store of items over a ledger, which outlives threads and processes.

All items of a store are in one session. A batch of changes is one step, in one transaction; a changed or deleted item
stays in the ledger, as everything does. Vectors of a semantic index are stored with the items, so that a text is
embedded once.
"""

from __future__ import annotations

import json
from array import array
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, PutOp, SearchOp, ensure_embeddings
from langgraph.store.memory import InMemoryStore

from nexus_core.adapters.framework_sessions import (
    FrameworkSessions,
    build_state_step,
    ensure_exact_text,
    read_exact_label,
)
from nexus_core.errors import UsageError
from nexus_core.nexus import Nexus
from nexus_core.runner import run_to_completion
from nexus_core.types.payloads import StatePayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langgraph.store.base import IndexConfig, Op, Result

    from nexus_core.types.ledger import NewStep, Step

FRAMEWORK = "langgraph-store"
"""Marks the sessions of this adapter."""


class VectorCache(Embeddings):
    """Embeddings that remember the vectors of texts.

    Args:
        embeddings: Embeds the texts that are new.

    Attributes:
        vectors: The vectors of stored texts.
        new: Texts that were embedded since they were last stored.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._queries: dict[str, list[float]] = {}
        self.vectors: dict[str, list[float]] = {}
        self.new: set[str] = set()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        if missing := self._find_missing(texts):
            self._add(missing, self._embeddings.embed_documents(missing))
        return [self.vectors[text] for text in texts]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts, without blocking the event loop."""
        if missing := self._find_missing(texts):
            self._add(missing, await self._embeddings.aembed_documents(missing))
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, which `aembed_query` may have left."""
        known = self._queries.pop(text, None)
        return self._embeddings.embed_query(text) if known is None else known

    async def aembed_query(self, text: str) -> list[float]:
        """Embed a query without blocking the event loop, and keep the vector for the next `embed_query`."""
        self._queries[text] = vector = await self._embeddings.aembed_query(text)
        return vector

    def _find_missing(self, texts: Iterable[str]) -> list[str]:
        return [text for text in dict.fromkeys(texts) if text not in self.vectors]

    def _add(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        self.vectors |= {text: list(map(float, vector)) for text, vector in zip(texts, vectors, strict=True)}
        self.new.update(texts)


class ItemLog:
    """The items of a store, read from the steps of its session.

    Args:
        index: The configuration of the semantic index, over a `VectorCache`; None for none.

    Attributes:
        tip: The newest step that was read; None before the first.
        items: The items, for reading.
    """

    def __init__(self, index: IndexConfig | None) -> None:
        self.tip: Step | None = None
        self.items = InMemoryStore(index=index)
        self._vectors = index["embed"] if index is not None else None
        self._dims = index["dims"] if index is not None else 0

    def read(self, steps: Iterable[Step]) -> None:
        """Add the changes in the next steps of the session."""
        for step in steps:
            if isinstance(step.payload, StatePayload) and step.payload.state is not None:
                self._read_state(step.payload.state, datetime.fromtimestamp(step.created / 1000, UTC))
            self.tip = step

    def _read_state(self, state: Any, moment: datetime) -> None:  # noqa: ANN401 - JSON
        if isinstance(self._vectors, VectorCache):
            for text, encoded in (state.get("vectors") or {}).items():
                if len(vector := decode_vector(encoded)) == self._dims:  # else of another model
                    self._vectors.vectors.setdefault(text, vector)
        for namespace, key, encoded, index in state.get("puts") or ():
            place, value = tuple(namespace), None if encoded is None else json.loads(encoded)
            if not isinstance(value, dict | None):  # refused now; a store that has one must still open
                continue
            before = self.items.get(place, key)
            self.items.batch([PutOp(place, key, value, index)])
            if (item := self.items.get(place, key)) is not None:
                item.created_at, item.updated_at = before.created_at if before else moment, moment


class NexusStore(BaseStore):
    """A store over a ledger: `graph.compile(store=NexusStore())`.

    Values are JSON, as in LangGraph's stores over databases. Safe under concurrent writers, in this process and in
    others.

    Args:
        nexus: The Nexus whose ledger is used; None creates one, which `close()` closes.
        name: The session in which the items are. Use another one with another embedding model.
        index: LangGraph's configuration of a semantic index; None for none.
    """

    def __init__(self, nexus: Nexus | None = None, *, name: str = FRAMEWORK, index: IndexConfig | None = None) -> None:
        used = nexus or Nexus()
        self._own = None if nexus else used
        self._name = read_exact_label(name, "name")
        self._vectors = None if index is None else VectorCache(ensure_embeddings(index["embed"]))
        config: Any = None if index is None else {**index, "embed": self._vectors}
        self._index: IndexConfig | None = config
        self._sessions = FrameworkSessions(used, FRAMEWORK, partial(ItemLog, self._index))

    def close(self) -> None:
        """Close the ledger, unless a Nexus was given. A second call does nothing."""
        if self._own is not None:
            self._own.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: all that read, then all that write, in one transaction.

        Raises:
            UsageError: A value is not a dict of JSON values, or a key or namespace has lone surrogates.
            SessionExistsError: The session of the store's name is another one.
        """
        given = list(ops)
        puts = _encode_puts(given)
        if self._vectors is not None:  # embeds the new texts, and refuses what LangGraph's own store would
            for op in given:
                if isinstance(op, PutOp):
                    InMemoryStore(index=self._index).batch([op])
        return self._run(given, puts)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does, without blocking the event loop."""
        given = list(ops)
        puts = _encode_puts(given)
        if self._vectors is not None:
            for op in given:
                if isinstance(op, PutOp):
                    await InMemoryStore(index=self._index).abatch([op])
                elif isinstance(op, SearchOp) and op.query:
                    await self._vectors.aembed_query(op.query)
        return await run_to_completion(partial(self._run, given, puts))

    def _run(self, ops: Sequence[Op], puts: list[list[Any]]) -> list[Result]:
        with self._sessions.lock:
            items = self._sessions.load(self._name).items
            results = [None if isinstance(op, PutOp) else items.batch([op])[0] for op in ops]
        if puts:
            self._sessions.append(self._name, lambda _log: [self._build_step(puts)])
            if self._vectors is not None:
                self._vectors.new.clear()
        return results

    def _build_step(self, puts: list[list[Any]]) -> NewStep:
        state: dict[str, Any] = {"puts": puts}
        if self._vectors is not None and self._vectors.new:
            vectors = self._vectors.vectors
            state["vectors"] = {text: encode_vector(vectors[text]) for text in sorted(self._vectors.new)}
        return build_state_step(state)


def encode_vector(vector: Sequence[float]) -> str:
    """Return a vector as base64 of doubles."""
    return b64encode(array("d", vector).tobytes()).decode()


def decode_vector(encoded: str) -> list[float]:
    """Return the vector that was encoded."""
    numbers = array("d")
    numbers.frombytes(b64decode(encoded))
    return numbers.tolist()


def _encode_puts(ops: Iterable[Op]) -> list[list[Any]]:
    return [_encode_put(op) for op in ops if isinstance(op, PutOp)]


def _encode_put(op: PutOp) -> list[Any]:
    """Return the stored form of a change. The value is a text in ASCII, which no ledger alters."""
    for part in op.namespace:
        ensure_exact_text(part, "the namespace part")
    ensure_exact_text(op.key, "the key")
    if not isinstance(op.value, dict | None):
        raise UsageError(f"the value of {op.key!r} is not a dict: {op.value!r}", hint='wrap it: {"value": …}')
    try:
        value = None if op.value is None else json.dumps(op.value)
    except (TypeError, ValueError, RecursionError) as error:
        hint = "a store takes dicts, lists, text, numbers, booleans and None"
        raise UsageError(f"the value of {op.key!r} is not JSON: {error}", hint=hint) from None
    return [list(op.namespace), op.key, value, op.index]
