"""Threads and searches: one range of an index for each branch that is crossed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError
from nexus_core.history.ledger.rows import StepRow
from nexus_core.history.ledger.stored import StoredStep
from nexus_core.history.ledger.texts import canonical
from nexus_core.text.surrogates import join_halves
from nexus_core.values.parts import Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.history.ledger.rows import Place
    from nexus_core.history.ledger.store import Record, Store
    from nexus_core.values.ledger import Step
    from nexus_core.values.message import Message

EVERYTHING = (1 << 63) - 1
"""No limit, in a word that every database knows."""
_ID, _PARENT, _POSITION = (StepRow._fields.index(name) for name in ("id", "parent", "position"))
_AT_ONCE = 200
"""So many steps are looked at in one go."""


def thread(store: Store, tip: str, *, first: str | None, limit: int | None) -> list[Record]:
    """The steps up to and including `tip`, oldest first: from `first` on, or the newest `limit`."""
    floor = 0 if first is None else _place(store, first).position
    left = EVERYTHING if limit is None else max(limit, 0)
    found: list[Record] = []
    name: str | None = tip
    while name is not None and left > 0:
        rows = store.tail(name, floor=floor, limit=left)
        if not rows:
            if name == tip and floor:  # or it is older than `first`
                break
            raise no_step(name)
        if found and rows[0][_POSITION] >= found[-1][_POSITION]:
            raise LedgerError(
                f"step {name} is damaged: it comes before itself", hint="`nexus session verify` says more"
            )
        found += rows
        left -= len(rows)
        name = rows[-1][_PARENT] if rows[-1][_POSITION] > floor else None  # in another branch, which this one left
    if first is not None and limit is None and (not found or found[-1][_ID] != first):
        raise LedgerError(f"step {first} does not come before {tip}", hint="they are of different branches")
    found.reverse()
    return found


def skip_reverted(steps: Iterable[Step]) -> Iterator[Step]:
    """Leave out the steps that an import took back, and those that say so.

    An import takes back what a transcript has otherwise by now, such as a reply that was still being written.

    Args:
        steps: Steps of a thread, newest first.
    """
    left = 0
    for step in steps:
        if is_import_revert(step):
            left += int(str(step.data["popped"]))
        elif left > 0 and step.kind not in ("compaction", "revert", "pin"):
            left -= len(step.messages)  # one without any ends or seals what was taken back
        else:
            yield step


def is_import_revert(step: Step) -> bool:
    """True for the step by which an import takes back the newest messages."""
    return step.kind == "revert" and "imported" in step.data and isinstance(step.data.get("popped"), int)


def scan(
    store: Store, tip: str, text: str, *, limit: int, within: int, blob: Callable[[str], bytes | None]
) -> Iterator[Step]:
    """The newest steps of a thread in whose messages a text occurs; reads no more than it takes to find them.

    Args:
        store: Where the steps are.
        tip: The end of the thread.
        text: What to look for.
        limit: So many are enough.
        within: So many steps are looked at; of a long thread, not those before.
        blob: Fetches what messages refer to.
    """
    place = _place(store, tip)
    wanted = join_halves(text)
    # As it is written inside JSON, so that the store can leave out most of what does not contain it.
    needle = canonical(wanted)[1:-1]
    branch: str | None = place.branch
    below = place.position + 1
    floor = max(below - within, 0)
    while branch is not None and limit > 0 and below > floor:
        rows = store.search(branch, floor=floor, below=below, text=needle, limit=_AT_ONCE)
        for row in rows:
            step = StoredStep(row, blob)
            if any(wanted in words for message in step.messages for words in words_of(message)):
                yield step
                limit -= 1
                if limit == 0:
                    return
        if len(rows) == _AT_ONCE:
            below = rows[-1][_POSITION]
            continue
        before = store.branch(branch)
        branch, below = (before.parent, before.position + 1) if before else (None, 0)


def words_of(message: Message) -> Iterator[str]:
    """What is said in a message: words, thoughts, calls with their arguments, results."""
    for part in message.parts:
        if isinstance(part, Text | Reasoning):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.name
            yield from _strings(json.loads(canonical(dict(part.arguments))))
        elif isinstance(part, ToolResult):
            yield part.text


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)


def no_step(name: str) -> LedgerError:
    """The error for a step that should be there and is not."""
    return LedgerError(f"there is no step {name}", hint="`nexus session verify` says whether it was deleted")


def deleted_step(name: str) -> LedgerError:
    """The error for a step whose content was deleted."""
    hint = "its content is gone for good; take a session that is still there: `nexus session list --all`"
    return LedgerError(f"step {name} was deleted with its session", hint=hint)


def _place(store: Store, name: str) -> Place:
    place = store.place(name)
    if place is None:
        raise no_step(name)
    return place
