"""Reading and scanning of threads, one index range per branch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError
from nexus_core.ledger.codec import StoredStep
from nexus_core.ledger.json_text import write_canonical_json
from nexus_core.ledger.store import StepRow
from nexus_core.text.safety import repair_surrogates
from nexus_core.types.messages import Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.ledger.store import LedgerStore, ParentRef, StepFields
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message

NO_LIMIT = (1 << 63) - 1
"""The largest integer of every database."""
_ID_COLUMN, _PARENT_COLUMN, _POSITION_COLUMN = (StepRow._fields.index(name) for name in ("id", "parent", "position"))
_STEPS_PER_SEARCH = 200
"""Maximum steps of one query of a search."""


def read_thread(store: LedgerStore, tip: str, *, first: str | None, limit: int | None) -> list[StepFields]:
    """Return the steps from `first` to `tip`, or the newest `limit`, oldest first.

    Raises:
        LedgerError: A step is missing, the rows form a cycle, or `first` does not come before `tip`.
    """
    floor = 0 if first is None else _require_place(store, first).position
    left = NO_LIMIT if limit is None else max(limit, 0)
    found: list[StepFields] = []
    name: str | None = tip
    while name is not None and left > 0:
        rows = store.tail(name, floor=floor, limit=left)
        if not rows:
            if name == tip and floor:  # it may be older than `first`
                break
            raise missing_step_error(name)
        if found and rows[0][_POSITION_COLUMN] >= found[-1][_POSITION_COLUMN]:
            raise LedgerError(f"step {name} is damaged: it comes before itself", hint="`nexus ledger verify` says more")
        found += rows
        left -= len(rows)
        # The parent of the oldest row is in the branch that this one was forked from.
        name = rows[-1][_PARENT_COLUMN] if rows[-1][_POSITION_COLUMN] > floor else None
    if first is not None and limit is None and (not found or found[-1][_ID_COLUMN] != first):
        raise LedgerError(f"step {first} does not come before {tip}", hint="they are of different branches")
    found.reverse()
    return found


def skip_reverted(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps without those that an import reverted, and without the reverts.

    An import reverts messages that have changed in the transcript since, such as a reply that was still streamed.

    Args:
        steps: Steps of a thread, newest first.
    """
    left = 0
    for step in steps:
        if is_import_revert(step):
            left += int(str(step.data["popped"]))
        elif left > 0 and step.kind not in ("compaction", "revert", "pin"):
            left -= len(step.messages)  # one without messages belongs to the turn that was reverted
        else:
            yield step


def is_import_revert(step: Step) -> bool:
    """Return True for a step by which an import reverts the newest messages."""
    return step.kind == "revert" and "imported" in step.data and isinstance(step.data.get("popped"), int)


def scan_thread(
    store: LedgerStore, tip: str, text: str, *, limit: int, within: int, blob: Callable[[str], bytes | None]
) -> Iterator[Step]:
    """Yield the newest steps of a thread with a text in their messages.

    Args:
        store: The rows.
        tip: The newest step of the thread.
        text: The text.
        limit: The maximum number of steps to yield.
        within: The maximum number of steps to search, the newest.
        blob: Returns the blob with a digest, or None.
    """
    place = _require_place(store, tip)
    wanted, needle = repair_surrogates(text), encode_search_text(text)
    branch: str | None = place.branch
    below = place.position + 1
    floor = max(below - within, 0)
    while branch is not None and limit > 0 and below > floor:
        rows = store.search(branch, floor=floor, below=below, text=needle, limit=_STEPS_PER_SEARCH)
        for row in rows:
            step = StoredStep(row, blob)
            if any(wanted in part for message in step.messages for part in find_message_texts(message)):
                yield step
                limit -= 1
                if limit == 0:
                    return
        if len(rows) == _STEPS_PER_SEARCH:
            below = rows[-1][_POSITION_COLUMN]
            continue
        before = store.branch(branch)
        branch, below = (before.parent, before.position + 1) if before else (None, 0)


def encode_search_text(text: str) -> str:
    """Return a text as it is escaped inside JSON.

    A store filters rows with it without decoding them.
    """
    return write_canonical_json(repair_surrogates(text))[1:-1]


def find_message_texts(message: Message) -> Iterator[str]:
    """Yield the text, reasoning, tool calls and tool results of a message."""
    for part in message.parts:
        if isinstance(part, Text | Reasoning):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.name
            yield from _find_strings(json.loads(write_canonical_json(dict(part.arguments))))
        elif isinstance(part, ToolResult):
            yield part.text


def _find_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _find_strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _find_strings(item)


def missing_step_error(name: str) -> LedgerError:
    """Return the error for a missing step."""
    return LedgerError(f"there is no step {name}", hint="`nexus ledger verify` says whether it was deleted")


def deleted_step_error(name: str) -> LedgerError:
    """Return the error for a step whose content was deleted."""
    hint = "its content is gone for good; take a session that is still there: `nexus session list --include-archived`"
    return LedgerError(f"step {name} was deleted with its session", hint=hint)


def _require_place(store: LedgerStore, name: str) -> ParentRef:
    place = store.place(name)
    if place is None:
        raise missing_step_error(name)
    return place
